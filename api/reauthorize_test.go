package api_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
)

// losses are the ways in which a key loses a right while a call waits, with the resulting answers.
var losses = map[string]struct {
	status  int
	message string
	loss    func(k *mediagate.Key, now time.Time) // nil: the key is deleted
}{
	"deleted":   {401, "invalid API key", nil},
	"expired":   {401, "invalid API key", func(k *mediagate.Key, now time.Time) { k.ExpiresAt = now.Add(time.Millisecond) }},
	"scope":     {403, "lacks the scope", func(k *mediagate.Key, _ time.Time) { k.Scopes = []mediagate.Scope{mediagate.ScopeManage} }},
	"allow_ips": {403, "address", func(k *mediagate.Key, _ time.Time) { k.AllowIPs = []string{"192.0.2.7"} }},
}

// lose removes the key's right as another process would, and waits until the cached key has expired.
func (g *gateway) lose(id string, loss func(k *mediagate.Key, now time.Time)) {
	g.t.Helper()
	if loss == nil {
		g.must(g.store.DeleteKey(g.t.Context(), id))
	} else {
		_, err := g.store.UpdateKey(g.t.Context(), id, func(k *mediagate.Key) error {
			loss(k, g.clock.now())
			return nil
		})
		g.must(err)
	}
	g.clock.advance(time.Second)
}

// TestKeyIsCheckedAgainAfterTheBody checks that a key that loses its right while its body arrives
// is refused, without any effect.
func TestKeyIsCheckedAgainAfterTheBody(t *testing.T) {
	t.Parallel()
	calls := map[string]struct {
		path, body string
		fields     []string
	}{
		"submit": {videos, videoBody, nil},
		"quote":  {"/v1/quote", `{"endpoint":"` + videos + `",` + videoBody[1:], nil},
		"upload": {uploadPath, formOf(filePart(aPicture)), []string{"Content-Type: multipart/form-data; boundary=" + boundary}},
		"speech": {"/v1/audio/speech", `{"model":"eta-4o-mini-tts","input":"hello","voice":"alloy"}`, nil},
		"modal":  {"/v1/artgen/generations/modal", `{"task_id":"task_01KAJ5XW4M9Q7T2C8N6BVRE3HD","prompt":"a fox"}`, nil},
	}
	for name, call := range calls {
		for how, test := range losses {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				g := newGateway(t)
				address := g.serve()
				row, key := g.newKey(mediagate.Key{Unlimited: true})
				text := request{method: "POST", path: call.path, key: key, body: call.body}.text("1.1", call.fields...)
				s := dial(t, address)
				s.send(text[:len(text)-5])
				eventually(t, "the call is let in", func() bool { return g.held() > 0 })
				g.lose(row.ID, test.loss)
				s.send(text[len(text)-5:])
				a := s.answer()
				if a.status != test.status || !strings.Contains(a.body, test.message) {
					t.Errorf("%d %s", a.status, a.body)
				}
				tasks, _, err := g.store.Tasks(t.Context(), mediagate.TaskFilter{AccountID: g.account.ID, Limit: 10})
				if err != nil || len(tasks) > 0 || len(g.bucket.files) > 0 {
					t.Errorf("%d tasks, %d files, %v", len(tasks), len(g.bucket.files), err)
				}
			})
		}
	}
}

// slowModerator moderates until a test ends it.
type slowModerator struct{ asked, answer chan struct{} }

func (j slowModerator) Check(context.Context, []string) (mediagate.Verdict, error) {
	j.asked <- struct{}{}
	<-j.answer
	return mediagate.Verdict{}, nil
}

// TestKeyIsCheckedAgainAfterModeration checks the same while a submit is moderated. The submit's
// transaction does not check the scope.
func TestKeyIsCheckedAgainAfterModeration(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{"submit": videos, "speech": "/v1/audio/speech"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			judge := slowModerator{make(chan struct{}), make(chan struct{})}
			g := newGateway(t, func(c *api.Config) { c.Moderator = judge })
			row, key := g.newKey(mediagate.Key{Unlimited: true})
			body := videoBody
			if name == "speech" {
				body = `{"model":"eta-4o-mini-tts","input":"hello","voice":"alloy"}`
			}
			answered := make(chan answer)
			go func() { answered <- g.send(request{method: "POST", path: path, key: key, body: body}) }()
			<-judge.asked
			g.lose(row.ID, losses["scope"].loss)
			judge.answer <- struct{}{}
			a := <-answered
			a.wantError(t, 403, "permission_error", "lacks the scope generate")
		})
	}
}

// TestKeyIsCheckedAgainAfterAWait checks that a long poll of a key that lost its right returns
// nothing of the task.
func TestKeyIsCheckedAgainAfterAWait(t *testing.T) {
	t.Parallel()
	for how, test := range losses {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			g := newGateway(t)
			address := g.serve()
			row, key := g.newKey(mediagate.Key{Unlimited: true})
			id := g.submit(videos, videoBody)
			s := dial(t, address)
			s.send(request{path: "/v1/tasks/" + id + "?wait=60", key: key}.text("1.1"))
			eventually(t, "the poll waits", func() bool { return api.Waiting(g.server) == 1 })
			g.lose(row.ID, test.loss)
			g.complete(id, mediagate.Result{Key: "results/1", MimeType: "video/mp4", Size: 7})
			a := s.answer()
			a.wantError(t, test.status, map[int]string{401: "authentication_error", 403: "permission_error"}[test.status], test.message)
		})
	}
}

// TestKeyIsCheckedAgainBeforeEachEvent checks that a stream ends without another event once its
// key lost its right.
func TestKeyIsCheckedAgainBeforeEachEvent(t *testing.T) {
	t.Parallel()
	for how, test := range losses {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			g := newGateway(t)
			address := g.serve()
			row, key := g.newKey(mediagate.Key{Unlimited: true})
			id := g.submit(videos, videoBody)
			s := g.follow(address, id, key, "")
			s.wantTask(g, id, "1")
			eventually(t, "the stream waits", func() bool { return api.Waiting(g.server) == 1 })
			g.lose(row.ID, test.loss)
			g.complete(id, mediagate.Result{Key: "results/1", MimeType: "video/mp4", Size: 7})
			s.wantEnd()
			if again := g.follow(address, id, key, "1"); again.status != test.status {
				t.Errorf("who comes again is told %d, want %d", again.status, test.status)
			}
		})
	}
}
