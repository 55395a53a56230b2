package blob

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

func TestAbortIsRepeatedUntilNothingIsLeft(t *testing.T) {
	t.Parallel()
	const gone = `<Error><Code>NoSuchUpload</Code><Message>no</Message></Error>`
	for name, test := range map[string]struct {
		statuses []int // of the answers, the last one again and again
		calls    int
		fails    bool
	}{
		"gone at once":         {[]int{204, 404}, 2, false},
		"a part outlives it":   {[]int{204, 204, 404}, 3, false},
		"never existed":        {[]int{404}, 1, true},
		"at first it fails":    {[]int{400, 204, 404}, 3, false},
		"always said to be ok": {[]int{204}, abortTries, false},
		"always refused":       {[]int{400}, abortTries, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				status := test.statuses[min(calls, len(test.statuses)-1)]
				calls++
				w.WriteHeader(status)
				if status == http.StatusNotFound {
					_, _ = io.WriteString(w, gone)
				}
			}))
			t.Cleanup(server.Close)
			client := persistent{s3.New(s3.Options{
				BaseEndpoint: &server.URL, Region: "us-east-1", UsePathStyle: true,
				Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""), RetryMaxAttempts: 1,
			})}
			_, err := client.AbortMultipartUpload(t.Context(), &s3.AbortMultipartUploadInput{
				Bucket: aws.String("b"), Key: aws.String("k"), UploadId: aws.String("u"),
			})
			if calls != test.calls || (err != nil) != test.fails {
				t.Errorf("%d calls, error %v; want %d, failing %t", calls, err, test.calls, test.fails)
			}
		})
	}
}
