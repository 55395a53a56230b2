package blob

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	smithy "github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/mediagate/mediagate"
)

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		config Config
		param  string
	}{
		"no bucket":        {Config{AccessKeyID: "a", SecretAccessKey: "b"}, "bucket"},
		"key alone":        {Config{Bucket: "m", AccessKeyID: "a"}, "access_key_id"},
		"secret alone":     {Config{Bucket: "m", SecretAccessKey: "b"}, "access_key_id"},
		"no address":       {Config{Bucket: "m", AccessKeyID: "a", SecretAccessKey: "b", Endpoint: "s3.example.com"}, "endpoint"},
		"another scheme":   {Config{Bucket: "m", AccessKeyID: "a", SecretAccessKey: "b", Endpoint: "ftp://s3.example.com"}, "endpoint"},
		"user in endpoint": {Config{Bucket: "m", AccessKeyID: "a", SecretAccessKey: "b", Endpoint: "https://u:p@s3.example.com"}, "endpoint"},
		"fragment":         {Config{Bucket: "m", AccessKeyID: "a", SecretAccessKey: "b", Endpoint: "https://s3.example.com#x"}, "endpoint"},
		"empty query":      {Config{Bucket: "m", AccessKeyID: "a", SecretAccessKey: "b", PublicEndpoint: "https://s3.example.com?"}, "public_endpoint"},
		"port alone":       {Config{Bucket: "m", AccessKeyID: "a", SecretAccessKey: "b", PublicEndpoint: "https://:9000"}, "public_endpoint"},
		"query":            {Config{Bucket: "m", AccessKeyID: "a", SecretAccessKey: "b", Endpoint: "https://s3.example.com?x=1"}, "endpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Open(t.Context(), test.config)
			var e *mediagate.Error
			if !errors.As(err, &e) || e.Kind != mediagate.KindInvalid || e.Param != test.param {
				t.Errorf("got %v, want kind invalid of %s", err, test.param)
			}
		})
	}
}

func TestStorageError(t *testing.T) {
	t.Parallel()
	answer := func(status int, code string) error {
		return &smithy.OperationError{ServiceID: "S3", OperationName: "PutObject", Err: &smithyhttp.ResponseError{
			Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}},
			Err:      &smithy.GenericAPIError{Code: code, Message: "host-id 1234 says no"},
		}}
	}
	for name, test := range map[string]struct {
		err  error
		code string
	}{
		"access denied":       {answer(403, "AccessDenied"), CodeStorageRefused},
		"no such bucket":      {answer(404, "NoSuchBucket"), CodeStorageRefused},
		"another region":      {answer(301, "PermanentRedirect"), CodeStorageRefused},
		"clock":               {answer(403, "RequestTimeTooSkewed"), CodeStorageAway},
		"upload swept away":   {answer(404, "NoSuchUpload"), CodeStorageAway},
		"internal":            {answer(500, "InternalError"), CodeStorageAway},
		"no answer":           {errors.New("dial tcp: refused"), CodeStorageAway},
		"bad request":         {answer(400, "InvalidRequest"), CodeStorageAway},
		"wrapped twice":       {errors.Join(errors.New("upload"), answer(401, "Unauthorized")), CodeStorageRefused},
		"out of time waiting": {context.DeadlineExceeded, CodeStorageAway},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := storageError(t.Context(), "storing", test.err)
			var e *mediagate.Error
			if !errors.As(err, &e) || e.Kind != mediagate.KindUnavailable || e.Code != test.code {
				t.Errorf("got %v, want kind unavailable, code %s", err, test.code)
			}
			if strings.Contains(e.Message, "host-id") {
				t.Errorf("the store's text is in the message: %s", e.Message)
			}
			if !errors.Is(err, test.err) {
				t.Error("the cause is lost")
			}
		})
	}
	if err := storageError(t.Context(), "storing", nil); err != nil {
		t.Errorf("nil becomes %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := storageError(ctx, "storing", answer(500, "InternalError")); !errors.Is(err, context.Canceled) {
		t.Errorf("%v hides that the context ended", err)
	}
}

func TestFileName(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"results/01HX/2/3":         "01HX-3.mp4",
		"results/task_1/1/0":       "task_1-0.mp4",
		"single":                   "single.mp4",
		"folder/single":            "single.mp4",
		"r/a\"b\r\nX: y/1/0":       "a_b__X__y-0.mp4",
		"results/ä;filename=x/1/0": "__filename_x-0.mp4",
	} {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			if got := fileName(key, ".mp4"); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}
