package api_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// TestMediaWithinSubmitsHaveAPrice checks that media in submits count against the daily uploads
// of an account. They are kept after the task is cancelled.
func TestMediaWithinSubmitsHaveAPrice(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	g.operate(http.MethodPatch, "/accounts/"+g.account.ID, `{"uploads_per_day":`+strconv.Itoa(2*len(aPicture)+100)+`}`)
	submit := func() answer {
		return g.post(videos, `{"model":"delta-02","prompt":"a cat","first_frame_image":"`+dataOf(aPicture)+`"}`)
	}
	for range 2 {
		g.cancel(submit().taskID(t))
	}
	a := submit()
	if message, _ := a.at("error", "message").(string); a.status != http.StatusTooManyRequests || !strings.Contains(message, "uploads_per_day") || a.header.Get("Retry-After") == "" {
		t.Errorf("the third: %d %v %s", a.status, a.header, a.body)
	}
	if n := len(g.bucket.files); n != 2 {
		t.Errorf("%d files are stored, want 2", n)
	}
}
