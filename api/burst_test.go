package api_test

import (
	"net/http"
	"testing"

	"github.com/mediagate/mediagate/api"
	"github.com/mediagate/mediagate/internal/limit"
)

// TestRequestsLeaveRoom checks that other accounts are served while three have more submits under
// way than there are connections. The submits come through a proxy, whose connections count one
// by one. Those over the limit are refused with Retry-After.
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
	for _, share := range []int{most / 8, most / 16, most / 32} {
		key := g.other()
		for n := range most {
			s := dial(t, address)
			if n >= share {
				a := s.ask(submit(key))
				if a.wantError(t, 429, "rate_limit_error", "requests in progress"); a.header.Get("Retry-After") != "1" {
					t.Fatalf("one too many: %v", a.header)
				}
				continue
			}
			s.send(submit(key).text("1.1"))
			wait = append(wait, s)
			eventually(t, "it is under way", func() bool { return g.limits.Requests.Figures().Held == int64(len(wait)) })
		}
		if a := dial(t, address).ask(request{path: "/v1/tasks", key: key}); a.status != http.StatusOK {
			t.Errorf("a list of theirs: %d %s", a.status, a.body)
		}
	}
	s := dial(t, address)
	s.send(submit(g.key).text("1.1"))
	wait = append(wait, s)
	eventually(t, "a stranger's is under way", func() bool { return g.limits.Requests.Figures().Held == int64(len(wait)) })
	close(store.leave)
	for _, s := range wait {
		s.answer().taskID(t)
	}
	eventually(t, "all is given back", func() bool { return g.limits.Requests.Figures().Held == 0 })
}
