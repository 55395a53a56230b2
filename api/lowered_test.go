package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
)

// A limit that is lowered below what is held takes nothing away: open tasks end with
// their money right, files stay, what is abandoned counts as before. Nothing new is given
// until the limit has room again, and a bad value changes nothing.
func TestLimitsLoweredBelowWhatIsHeld(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	path := "/accounts/" + g.account.ID
	set := func(body string) {
		t.Helper()
		if a := g.operate(http.MethodPatch, path, body); a.status != http.StatusOK {
			t.Fatalf("%s: %d %s", body, a.status, a.body)
		}
	}
	refused := func(a answer, says string) {
		t.Helper()
		if message, _ := a.at("error", "message").(string); a.status != http.StatusTooManyRequests || !strings.Contains(message, says) {
			t.Errorf("%d %s, want 429 and %q", a.status, a.body, says)
		}
	}
	video := func() answer { return g.post(videos, videoBody) }
	file := func() answer { return g.upload(formOf(filePart(aPicture))) }
	set(`{"rate":100,"in_flight":3,"unpaid":"10","uploads_per_day":100000}`)
	open := []string{g.submit(videos, videoBody), g.submit(videos, videoBody), g.submit(videos, videoBody)}
	stored := file()
	if stored.status != http.StatusOK {
		t.Fatalf("an upload: %d %s", stored.status, stored.body)
	}
	before := g.operate(http.MethodGet, path, "").body
	for _, field := range []string{"rate", "in_flight", "unpaid", "uploads_per_day"} {
		for _, bad := range []string{"-1", "-0.5", "1e30", "1e309", `"many"`, "true", "[1]", "0.00000001"} {
			g.operate(http.MethodPatch, path, `{"name":"new","`+field+`":`+bad+`}`).wantError(t, 400, "invalid_request_error", field)
		}
	}
	if now := g.operate(http.MethodGet, path, "").body; now != before {
		t.Errorf("after refusals: %s, before %s", now, before)
	}

	set(`{"in_flight":1,"uploads_per_day":1}`)
	refused(video(), "in flight")
	refused(file(), "uploads_per_day")
	if n := len(g.bucket.files); n != 1 {
		t.Errorf("%d files, want the one from before", n)
	}
	for i, id := range open[:2] {
		refused(video(), "in flight") // three and two of one
		if i == 0 {
			g.complete(id, mediagate.Result{Key: "results/1", MimeType: "video/mp4", Size: 7})
			continue
		}
		g.accept(id)
		g.cancel(id) // its job may run on
	}
	account, err := g.store.Account(t.Context(), g.account.ID)
	g.must(err)
	if account.Held != 420_000 || account.Spent != 420_000 {
		t.Errorf("held %s, spent %s, want 0.42 each", account.Held, account.Spent)
	}
	set(`{"in_flight":3,"unpaid":"0.41"}`)
	refused(video(), "unpaid")
	set(`{"unpaid":"0.42"}`)
	video().taskID(t)
	set(`{"rate":1}`) // of which five are counted within the minute
	refused(video(), "once a minute")
	g.clock.advance(2 * time.Minute)
	set(`{"in_flight":4}`)
	video().taskID(t)
	g.complete(open[2], mediagate.Result{Key: "results/2", MimeType: "video/mp4", Size: 7})
}
