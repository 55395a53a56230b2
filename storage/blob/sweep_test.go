package blob

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
)

// Objects of a page are removed in one call: one by one, a sweep would remove fewer than
// clients can store until the next one. Where the service leaves some, that is an error.
func TestSweepRemovesPages(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer string
		fails  bool
	}{
		"all gone":       {"", false},
		"one was gone":   {"<Error><Key>files/0</Key><Code>NoSuchKey</Code></Error>", false},
		"one is refused": {"<Error><Key>files/0</Key><Code>AccessDenied</Code></Error>", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					calls++
					body, _ := io.ReadAll(r.Body)
					if r.Header.Get("Content-MD5") == "" || r.Header.Get("X-Amz-Checksum-Crc32") != "" {
						t.Errorf("the checksum is none that all services know: %v", r.Header)
					}
					if got := strings.Count(string(body), "<Key>"); got != 1000 {
						t.Errorf("%d objects in a call", got)
					}
					_, _ = io.WriteString(w, "<DeleteResult>"+c.answer+"</DeleteResult>")
					return
				}
				var list strings.Builder
				first := r.URL.Query().Get("start-after") == ""
				for i := range 1000 {
					fmt.Fprintf(&list, "<Contents><Key>files/%t%d</Key><LastModified>%s</LastModified></Contents>", first, i, noon.Add(-2*time.Hour).Format(time.RFC3339))
				}
				_, _ = fmt.Fprintf(w, "<ListBucketResult><IsTruncated>%t</IsTruncated>%s</ListBucketResult>", first, list.String())
			}))
			t.Cleanup(server.Close)
			s := openTest(t, func(c *Config) { c.Endpoint = server.URL })
			n, err := s.DeleteOlder(t.Context(), "files/", time.Hour)
			switch {
			case c.fails && (!mediagate.Is(err, mediagate.KindUnavailable) || n != 0 || calls != 1):
				t.Errorf("removed %d in %d calls: %v, want an error", n, calls, err)
			case !c.fails && (err != nil || n != 2000 || calls != 2):
				t.Errorf("removed %d in %d calls: %v", n, calls, err)
			}
		})
	}
}
