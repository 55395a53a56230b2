package blob

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// Objects are removed several at once: one after the other, a sweep would remove
// fewer than clients can store until the next one.
func TestSweepRemovesSeveralAtOnce(t *testing.T) {
	t.Parallel()
	const objects = 2*deleteWidth + 1
	waiting, all := make(chan struct{}, objects), make(chan struct{})
	go func() {
		for range deleteWidth {
			<-waiting
		}
		close(all)
	}()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			var list strings.Builder
			for i := range objects {
				fmt.Fprintf(&list, "<Contents><Key>files/%d</Key><LastModified>%s</LastModified></Contents>", i, noon.Add(-2*time.Hour).Format(time.RFC3339))
			}
			_, _ = io.WriteString(w, "<ListBucketResult>"+list.String()+"</ListBucketResult>")
			return
		}
		waiting <- struct{}{}
		select {
		case <-all:
			w.WriteHeader(http.StatusNoContent)
		case <-time.After(10 * time.Second):
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	t.Cleanup(server.Close)
	s := openTest(t, func(c *Config) { c.Endpoint = server.URL })
	if n, err := s.DeleteOlder(t.Context(), "files/", time.Hour); err != nil || n != objects {
		t.Errorf("removed %d of %d: %v", n, objects, err)
	}
}
