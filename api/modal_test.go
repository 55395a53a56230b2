package api_test

import (
	"context"
	"net/http"
	"slices"
	"testing"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
)

// twin lets an equal call finish right after the first one has looked for its like.
type twin struct {
	api.Store
	goes func()
}

func (s *twin) Replay(ctx context.Context, accountID, key, path string, body [32]byte) (taskID string, found bool, err error) {
	taskID, found, err = s.Store.Replay(ctx, accountID, key, path, body)
	if goes := s.goes; goes != nil {
		s.goes = nil
		goes()
	}
	return taskID, found, err
}

// TestConcurrentModalCallsBothSucceed checks that the later of two concurrent calls is
// acknowledged if it has the same parameters, though the task no longer waits.
func TestConcurrentModalCallsBothSucceed(t *testing.T) {
	t.Parallel()
	store := new(twin)
	g := newGateway(t, func(c *api.Config) {
		store.Store = c.Store
		c.Store = store
	})
	parent := g.submit(art, artBody)
	g.finishArt(parent, mediagate.Made{Buttons: artButtons})
	id := g.submit(art+"/inpaint", `{"task_id":"`+parent+`"}`)
	g.accept(id)
	g.askMore(id)
	call := request{
		method: http.MethodPost, path: art + "/modal", key: g.key, header: http.Header{"Idempotency-Key": {"m"}},
		body: `{"task_id":"` + id + `","mask_url":` + mask + `}`,
	}
	var first answer
	store.goes = func() { first = g.send(call) }
	second := g.send(call)
	if first.taskID(t) != id || second.taskID(t) != id || second.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("the answers: %s, %s", first.body, second.body)
	}
	if !slices.Equal(g.starter.woken, []string{id}) {
		t.Errorf("signalled: %v", g.starter.woken)
	}
	call.body = `{"task_id":"` + id + `","mask_url":` + mask + `,"prompt":"a hat"}`
	g.send(call).wantError(t, http.StatusConflict, "invalid_request_error", "idempotency key reused")
}
