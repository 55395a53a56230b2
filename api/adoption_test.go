package api_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
)

// lostAnswers is the store, and tells of each answer that is noted as lost.
type lostAnswers struct {
	api.Store
	noted chan struct{}
}

func (l lostAnswers) Unanswered(ctx context.Context, accountID, waiterID string) error {
	err := l.Store.Unanswered(ctx, accountID, waiterID)
	l.noted <- struct{}{}
	return err
}

// losesAnswers is a gateway with such a store.
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

// A waiting submit whose client left before the answer is what the same submit of the same
// key gets, once. Submits side by side, and those after an answer, make tasks of their own.
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
