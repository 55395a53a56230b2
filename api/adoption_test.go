package api_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
)

// lostAnswers is a store that reports each answer that is recorded as lost.
type lostAnswers struct {
	api.Store
	noted chan struct{}
}

func (l lostAnswers) Unanswered(ctx context.Context, accountID, waiterID string) error {
	err := l.Store.Unanswered(ctx, accountID, waiterID)
	l.noted <- struct{}{}
	return err
}

// losesAnswers returns a gateway with such a store.
func losesAnswers(t *testing.T) (*gateway, func()) {
	t.Helper()
	noted := make(chan struct{}, 10)
	g := newGateway(t, func(c *api.Config) { c.Store = lostAnswers{c.Store, noted} })
	return g, func() {
		t.Helper()
		select {
		case <-noted:
		case <-time.After(patience):
			t.Fatal("no answer is noted as lost")
		}
	}
}

// TestAdoption checks that a repeated submit gets the task of a waiting submit whose client left
// before the answer, once. Concurrent submits, and submits after an answer, make their own tasks.
func TestAdoption(t *testing.T) {
	t.Parallel()
	g, awaitLoss := losesAnswers(t)
	address := g.serve()
	_, otherKey := g.newKey(mediagate.Key{Unlimited: true})
	fields := []string{"Mediagate-Adopt: true", "Prefer: wait=60"}
	first := dial(t, address)
	first.send(request{method: http.MethodPost, path: videos, key: g.key, body: videoBody}.text("1.1", fields...))
	id := g.awaitStart(0).ID
	submit := func(what, key, body, adopts string) {
		t.Helper()
		a := g.send(request{method: http.MethodPost, path: videos, key: key, body: body, header: http.Header{"Mediagate-Adopt": {"true"}}})
		got, replayed := a.taskID(t), a.header.Get("Idempotency-Replayed") == "true"
		if (got == id) != (adopts == id) || replayed != (adopts != "") {
			t.Errorf("%s: task %s, replayed %v; the first one's is %s", what, got, replayed, id)
		}
	}
	submit("side by side", g.key, videoBody, "")
	first.abort()
	awaitLoss()
	submit("another body", g.key, `{"model":"alpha-v3","prompt":"a dog"}`, "")
	submit("another key", otherKey, videoBody, "")
	submit("the same", g.key, videoBody, id)
	submit("after its answer", g.key, videoBody, "")
	if a := g.send(request{method: http.MethodPost, path: videos, key: g.key, body: videoBody}); a.header.Get("Idempotency-Replayed") != "" {
		t.Error("a submit that asks for no adoption adopted a task")
	}
}

// TestAdoptionKeepsTheKey checks that a submit with an idempotency key that adopts a task is
// replayed by that key, since its client may lose this answer too. A key of another request is
// refused as usual.
func TestAdoptionKeepsTheKey(t *testing.T) {
	t.Parallel()
	g, awaitLoss := losesAnswers(t)
	submit := func(key, body string) answer {
		header := http.Header{"Mediagate-Adopt": {"true"}, "Idempotency-Key": {key}}
		return g.send(request{method: http.MethodPost, path: videos, key: g.key, body: body, header: header})
	}
	const other = `{"model":"alpha-v3","prompt":"a dog"}`
	submit("taken", other)
	began := g.starts()
	leaves := dial(t, g.serve())
	lost := request{method: http.MethodPost, path: videos, key: g.key, body: videoBody}
	leaves.send(lost.text("1.1", "Mediagate-Adopt: true", "Prefer: wait=60"))
	id := g.awaitStart(began).ID
	leaves.abort()
	awaitLoss()
	submit("taken", videoBody).wantStatus(t, http.StatusConflict, "a key of another request")
	for range 2 {
		if a := submit("fresh", videoBody); a.taskID(t) != id || a.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("the same request: task %s, want %s", a.taskID(t), id)
		}
	}
	submit("fresh", other).wantStatus(t, http.StatusConflict, "the same key for another request")
}

// unreadable is the store of a process that cannot read tasks for a while.
type unreadable struct {
	api.Store
	broken *atomic.Bool
}

func (u unreadable) Task(ctx context.Context, accountID, id string) (mediagate.Task, error) {
	if u.broken.Load() {
		return mediagate.Task{}, mediagate.Errorf(mediagate.KindUnavailable, "the database is away")
	}
	return u.Store.Task(ctx, accountID, id)
}

// TestAdoptionOutlastsAFault checks that a request that adopted a task and failed leaves it for
// the next repetition, so that the client does not pay for another task.
func TestAdoptionOutlastsAFault(t *testing.T) {
	t.Parallel()
	noted, broken := make(chan struct{}, 10), new(atomic.Bool)
	g := newGateway(t, func(c *api.Config) { c.Store = lostAnswers{unreadable{c.Store, broken}, noted} })
	submit := request{method: http.MethodPost, path: openAIVideos, key: g.key, body: boatBody}
	leaves := dial(t, g.serve())
	leaves.send(submit.text("1.1", "Prefer: wait=60"))
	id := g.awaitStart(0).ID
	leaves.abort()
	<-noted
	submit.header = http.Header{"Prefer": {"wait=1"}}
	broken.Store(true)
	g.send(submit).wantStatus(t, http.StatusServiceUnavailable, "without the database")
	broken.Store(false)
	if a := g.send(submit); a.at("id") != id || a.header.Get("Idempotency-Replayed") != "true" || g.starts() != 1 {
		t.Errorf("with it: %d %s, want %s; %d tasks were made", a.status, a.body, id, g.starts())
	}
}
