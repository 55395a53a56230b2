package api_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
	"github.com/mediagate/mediagate/internal/limit"
)

// looked is a store that counts lookups of keys.
type looked struct {
	api.Store
	asked, under, most atomic.Int64
}

func (s *looked) KeyByHash(ctx context.Context, hash [32]byte) (mediagate.Key, mediagate.Account, error) {
	s.asked.Add(1)
	defer s.under.Add(-1)
	for under := s.under.Add(1); ; {
		most := s.most.Load()
		if under <= most || s.most.CompareAndSwap(most, under) {
			return s.Store.KeyByHash(ctx, hash)
		}
	}
}

// newLooked returns a gateway behind a proxy, with such a store.
func newLooked(t *testing.T) (*gateway, *looked) {
	t.Helper()
	store := &looked{}
	g := newGateway(t, func(c *api.Config) {
		store.Store = c.Store
		c.Store, c.TrustedProxies.Hops = store, 1
		c.Limits.UnknownKeys = limit.New("", 2)
	})
	return g, store
}

// try sends a call with a key, from an address.
func (g *gateway) try(client, path, key string) answer {
	g.t.Helper()
	return g.send(request{path: path, key: key, header: http.Header{"X-Forwarded-For": {client}}})
}

// guess tries n made-up keys from an address at once.
func (g *gateway) guess(client string, n int) {
	g.t.Helper()
	var guesses sync.WaitGroup
	for range n {
		guesses.Go(func() {
			made, _ := api.NewKey()
			g.try(client, "/v1/tasks", made).wantStatus(g.t, http.StatusUnauthorized)
		})
	}
	guesses.Wait()
}

// TestKeysAreCached checks that a key, known or not, is looked up once a second, and a key with wrong
// check digits not at all.
func TestKeysAreCached(t *testing.T) {
	t.Parallel()
	g, store := newLooked(t)
	made, _ := api.NewKey()
	for key, status := range map[string]int{g.key: 200, made: 401} {
		store.asked.Store(0)
		for range 20 {
			g.try("192.0.2.1", "/v1/tasks", key).wantStatus(t, status)
		}
		if n := store.asked.Load(); n != 1 {
			t.Errorf("%d look-ups at one moment, answered %d", n, status)
		}
		g.clock.advance(time.Second)
		g.try("192.0.2.1", "/v1/tasks", key)
		if n := store.asked.Load(); n != 2 {
			t.Errorf("%d look-ups after a second, answered %d", n, status)
		}
	}
	g.try("192.0.2.1", "/v1/tasks", "mgk_"+strings.Repeat("0", 38))
	if n := store.asked.Load(); n != 2 {
		t.Error("a key with wrong check digits was looked up")
	}
}

// TestExtendedKeyWorksAtOnce checks that a key that was unknown works once it exists: at once in
// this process, within a second in others.
func TestExtendedKeyWorksAtOnce(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	row, key := g.newKey(mediagate.Key{Unlimited: true, ExpiresAt: g.clock.now().Add(time.Hour)})
	revive := func(until time.Time) string {
		return fmt.Sprintf(`{"expires_at":%q}`, until.UTC().Format(time.RFC3339))
	}
	g.clock.advance(time.Hour - time.Millisecond)
	g.send(request{path: "/v1/tasks", key: key}).wantStatus(t, 200, "just before its end")
	g.clock.advance(time.Millisecond) // the remembered key has expired, too
	g.send(request{path: "/v1/tasks", key: key}).wantError(t, 401, "authentication_error", "invalid API key")
	g.operate(http.MethodPatch, "/keys/"+row.ID, revive(g.clock.now().Add(time.Hour))).wantStatus(t, 200)
	g.send(request{path: "/v1/tasks", key: key}).wantStatus(t, 200, "here")
	g.clock.advance(2 * time.Hour)
	g.send(request{path: "/v1/tasks", key: key}).wantError(t, 401, "authentication_error", "invalid API key")
	_, err := g.store.UpdateKey(t.Context(), row.ID, func(k *mediagate.Key) error {
		k.ExpiresAt = g.clock.now().Add(time.Hour)
		return nil
	})
	g.must(err)
	g.clock.advance(time.Second)
	g.send(request{path: "/v1/tasks", key: key}).wantStatus(t, 200, "elsewhere")
}

// TestTriesOfAnAddress checks that an address that tries keys has at most two lookups under way
// at a time, and that other clients at the same address are served.
func TestTriesOfAnAddress(t *testing.T) {
	t.Parallel()
	g, store := newLooked(t)
	_, office := g.newKey(mediagate.Key{Unlimited: true})
	const here, there = "2001:db8::1", "2001:db8:0:1::1"
	g.try(here, "/v1/tasks", g.key).wantStatus(t, 200)
	g.guess(here, api.MaxFailuresOfNetwork)
	suspects := func() int64 { return g.limits.UnknownKeys.Figures().Held }
	store.most.Store(0)
	var several sync.WaitGroup
	for i := range 4 {
		several.Go(func() { g.guess(fmt.Sprintf("2001:db8::%x", i+1), 25) })
	}
	several.Wait()
	if most := store.most.Load(); most > 2 || suspects() != 0 {
		t.Errorf("%d questions at once about 100 made-up keys, %d are held afterwards", most, suspects())
	}
	for name, test := range map[string]struct {
		client, key string
		asked       int64
	}{
		"a key that is known here":       {here, g.key, 0},
		"one that is not":                {here, office, 1},
		"a made-up one from another /64": {there, "", 1},
	} {
		store.asked.Store(0)
		status := 200
		if test.key == "" {
			test.key, _ = api.NewKey()
			status = 401
		}
		g.try(test.client, "/v1/tasks", test.key).wantStatus(t, status, name)
		if n := store.asked.Load(); n != test.asked {
			t.Errorf("%s: %d questions", name, n)
		}
	}
	made, _ := api.NewKey()
	g.waitsItsTurn(here, made, 401, func() {
		g.try(there, "/v1/tasks", office).wantStatus(t, 200, "from an address without failures")
	})
	g.clock.advance(time.Minute)
	g.try(here, "/v1/tasks", made).wantError(t, 401, "authentication_error", "invalid API key") // under suspicion no more
}

// waitsItsTurn checks that a try from an address with failures waits while all permits are held, and
// checks its answer afterwards.
func (g *gateway) waitsItsTurn(client, key string, status int, meanwhile func()) {
	g.t.Helper()
	taken, err := g.limits.UnknownKeys.Acquire(g.t.Context(), "taken", 2)
	g.must(err)
	defer taken.Release()
	var waiting sync.WaitGroup
	waiting.Go(func() {
		g.try(client, "/v1/tasks", key).wantStatus(g.t, status)
	})
	eventually(g.t, "it waits", func() bool { return g.limits.UnknownKeys.Figures().Waiting > 0 })
	meanwhile()
	taken.Release()
	waiting.Wait()
}

// TestTriesOfAll checks that tries from many addresses share a limit, and that the number of
// recorded addresses is limited.
func TestTriesOfAll(t *testing.T) {
	t.Parallel()
	g, _ := newLooked(t)
	for i := range api.MaxFailures {
		g.try(fmt.Sprintf("198.51.%d.%d", i/256, i%256), "/v1/tasks", "mgk_malformed")
	}
	if n := api.Suspects(g.server); n > api.MaxFailures {
		t.Errorf("%d addresses are remembered", n)
	}
	g.try("203.0.113.1", "/v1/tasks", g.key).wantStatus(t, 200, "a key")
	_, other := g.newKey(mediagate.Key{Unlimited: true})
	g.waitsItsTurn("203.0.113.1", other, 200, func() {})
}

// TestFailedLoginsOfOperators checks that failed logins of operators are logged: the first one,
// then totals.
func TestFailedLoginsOfOperators(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	for range 30 {
		g.send(request{path: "/admin/v1/accounts", key: strings.Repeat("x", 40)}).wantError(t, 401, "authentication_error", "no operator has this key")
	}
	g.send(request{path: "/admin/v1/accounts", key: g.key}).wantError(t, 403, "permission_error", "takes no API key")
	lines := strings.Count(g.log.String(), `"msg":"failed logins of operators"`)
	if lines != 1 || !strings.Contains(g.log.String(), `"client":"192.0.2.1","times":1`) {
		t.Errorf("%d lines: %s", lines, g.log)
	}
}
