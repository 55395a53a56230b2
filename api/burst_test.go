package api_test

import (
	"net/http"
	"testing"

	"github.com/mediagate/mediagate/api"
	"github.com/mediagate/mediagate/internal/limit"
)

// TestRequestsLeaveRoom checks that other accounts are served while one has as many submits under way
// as it may. They come through a proxy, whose connections count one by one. One over the limit is
// refused with Retry-After. The tests of package limit check the shares of several accounts.
func TestRequestsLeaveRoom(t *testing.T) {
	t.Parallel()
	const most = 64
	store := &heldStore{leave: make(chan struct{})}
	g := newGateway(t, func(c *api.Config) {
		store.testStore, _ = c.Store.(testStore)
		c.Store, c.StoreTimeout = store, patience // what waits for all to come is not given up meanwhile
		c.Limits = limit.For(limit.Sizes{Connections: most, BodyMemory: 1 << 30, LargestBody: 1 << 20})
		c.Limits.Quotes = nil // which would have them wait for their turn first
	})
	address := g.serve()
	submit := func(key string) request {
		return request{method: http.MethodPost, path: videos, key: key, body: videoBody}
	}
	var wait []*socket
	begin := func(key string) {
		s := dial(t, address)
		s.send(submit(key).text("1.1"))
		wait = append(wait, s)
		eventually(t, "it is under way", func() bool { return g.limits.Requests.Figures().Held == int64(len(wait)) })
	}
	crowd := g.other()
	for range most / 8 {
		begin(crowd)
	}
	tooMany := dial(t, address).ask(submit(crowd))
	tooMany.wantError(t, 429, "rate_limit_error", "requests in progress")
	tooMany.wantWait(t, "1")
	dial(t, address).ask(request{path: "/v1/tasks", key: crowd}).wantStatus(t, http.StatusOK, "a list of theirs")
	begin(g.key)
	close(store.leave)
	for _, s := range wait {
		s.answer().taskID(t)
	}
	eventually(t, "all is given back", func() bool { return g.limits.Requests.Figures().Held == 0 })
}
