package api

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// TestMCPComments checks that a silent stream sends a comment every ten seconds until its answer.
func TestMCPComments(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		out := httptest.NewRecorder()
		a := &mcpResponse{out: out}
		a.Header().Set("Content-Type", typeEvents)
		a.begin()
		a.mu.Lock() // the comments are written beside this test
		if !out.Flushed || out.Code != http.StatusOK {
			t.Error("the header does not go out at once")
		}
		a.mu.Unlock()
		time.Sleep(25 * time.Second)
		_, _ = a.Write([]byte("data: 1\n\n"))
		time.Sleep(9 * time.Second)
		a.finish()
		time.Sleep(time.Minute)
		if got := out.Body.String(); got != ":\n\n:\n\ndata: 1\n\n" {
			t.Errorf("%q", got)
		}
	})
}
