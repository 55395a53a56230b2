package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
)

// ratedStore counts the calls for rates, and may fail.
type ratedStore struct {
	testStore
	taken, accounts atomic.Int64
	fault           error
}

func (s *ratedStore) TakeRates(ctx context.Context, limits []mediagate.RateLimit) ([]mediagate.RateLeft, bool, error) {
	s.taken.Add(1)
	if s.fault != nil {
		return nil, false, s.fault
	}
	return s.testStore.TakeRates(ctx, limits)
}

func (s *ratedStore) Account(ctx context.Context, id string) (mediagate.Account, error) {
	s.accounts.Add(1)
	return s.testStore.Account(ctx, id)
}

func newRated(t *testing.T) (*gateway, *ratedStore) {
	t.Helper()
	var store *ratedStore
	g := newGateway(t, func(c *api.Config) {
		inner, _ := c.Store.(testStore)
		store = &ratedStore{testStore: inner}
		c.Store = store
	})
	return g, store
}

func (g *gateway) rateAccount(rate *int) {
	g.t.Helper()
	_, err := g.store.UpdateAccount(g.t.Context(), g.account.ID, func(a *mediagate.Account) error {
		a.Rate = rate
		return nil
	})
	g.must(err)
}

// wantRates checks the rate headers of an answer.
func (a answer) wantRates(t *testing.T, policy, left string) {
	t.Helper()
	if p, l := a.header.Get("RateLimit-Policy"), a.header.Get("RateLimit"); p != policy || l != left {
		t.Errorf("RateLimit-Policy: %s, RateLimit: %s, want %s and %s", p, l, policy, left)
	}
}

func (a answer) wantWait(t *testing.T, seconds string) {
	t.Helper()
	if got := a.header.Get("Retry-After"); got != seconds {
		t.Errorf("Retry-After: %q, want %q", got, seconds)
	}
}

func TestRates(t *testing.T) {
	t.Parallel()
	g, store := newRated(t)
	g.rateAccount(new(3))
	_, secret := g.newKey(mediagate.Key{Unlimited: true, Rate: new(2)})
	send := func(path, body string) answer {
		return g.send(request{method: http.MethodPost, path: path, key: secret, body: body})
	}
	const policy = `"key";q=2;w=60, "account";q=3;w=60`
	a := send(videos, videoBody)
	a.taskID(t)
	a.wantRates(t, policy, `"key";r=1;t=30, "account";r=2;t=20`)
	a.wantWait(t, "")
	a = send("/v1/music/generations", "{") // is counted, whatever becomes of it
	a.wantErrorB(t, 400, "invalid_request", "invalid_request", "", "JSON")
	a.wantRates(t, policy, `"key";r=0;t=30, "account";r=1;t=20`)

	g.clock.advance(500 * time.Millisecond)
	const exhausted = `"key";r=0;t=30, "account";r=1;t=20`
	const message = "too many requests: this API key may submit 2 times a minute"
	for _, path := range []string{videos, images, "/v1/audio/speech", "/v1/artgen/generations", "/v1/artgen/generations/modal"} {
		a = send(path, "{")
		a.wantError(t, 429, "rate_limit_error", message)
		a.wantRates(t, policy, exhausted)
		a.wantWait(t, "30")
	}
	for _, path := range []string{"/v1/music/generations", "/v1/music/generations/replaceMusic"} {
		a = send(path, "{")
		a.wantErrorB(t, 429, "rate_limit_error", "rate_limited", "", message)
		a.wantRates(t, policy, exhausted)
	}
	if a = send(uploadPath, "x"); a.status != 429 || a.at("error", "type") != "rate_limit_error" || a.at("error", "code") != nil {
		t.Errorf("upload: %d %s", a.status, a.body)
	}

	// Another key has the account's last one, and the account then refuses it.
	g.post(videos, videoBody).wantRates(t, `"account";q=3;w=60`, `"account";r=0;t=20`)
	a = g.post(videos, videoBody)
	a.wantError(t, 429, "rate_limit_error", "the account may submit 3 times a minute")
	a.wantRates(t, `"account";q=3;w=60`, `"account";r=0;t=20`)
	a.wantWait(t, "20")
	a = send(videos, videoBody) // both refuse: the longer wait counts
	a.wantError(t, 429, "rate_limit_error", message)
	a.wantWait(t, "30")

	before := store.taken.Load()
	for _, free := range []request{
		{path: "/v1/tasks"},
		{path: "/v1/models"},
		{path: "/v1/balance"},
		{method: http.MethodPost, path: "/v1/quote", body: `{"endpoint":"/v1/videos/generations",` + videoBody[1:]},
		{method: http.MethodPost, path: "/v1/tasks/" + g.newest(secret) + "/cancel"},
	} {
		free.key = secret
		a := g.send(free)
		if a.status/100 != 2 {
			t.Errorf("%s: %d %s", free.path, a.status, a.body)
		}
		a.wantRates(t, "", "")
	}
	if n := store.taken.Load(); n != before {
		t.Errorf("what is no submit was counted %d times", n-before)
	}
	if n := store.accounts.Load(); n != 0 {
		t.Errorf("accounts were read %d times", n)
	}
}

// newest returns the task that was made last.
func (g *gateway) newest(key string) string {
	g.t.Helper()
	id, _ := g.send(request{path: "/v1/tasks?limit=1", key: key}).at("data", 0, "id").(string)
	return id
}

func TestNoRateCostsNothing(t *testing.T) {
	t.Parallel()
	g, store := newRated(t)
	store.fault = errAway
	a := g.post(videos, videoBody)
	a.taskID(t)
	a.wantRates(t, "", "")
	if n := store.taken.Load(); n != 0 {
		t.Errorf("%d statements for a caller without a rate", n)
	}
}

func TestRateOfZero(t *testing.T) {
	t.Parallel()
	g, store := newRated(t)
	_, none := g.newKey(mediagate.Key{Unlimited: true, Rate: new(0)})
	a := g.send(request{method: http.MethodPost, path: videos, key: none, body: videoBody})
	a.wantError(t, 429, "rate_limit_error", "this API key may not submit: its rate is 0")
	a.wantRates(t, `"key";q=0;w=60`, `"key";r=0`)
	a.wantWait(t, "") // waiting does not help
	g.rateAccount(new(0))
	g.clock.advance(time.Second)
	_, one := g.newKey(mediagate.Key{Unlimited: true, Rate: new(1)})
	a = g.send(request{method: http.MethodPost, path: videos, key: one, body: videoBody})
	a.wantError(t, 429, "rate_limit_error", "the account may not submit: its rate is 0")
	a.wantRates(t, `"key";q=1;w=60, "account";q=0;w=60`, `"account";r=0`)
	a.wantWait(t, "")
	if n := store.taken.Load(); n != 0 {
		t.Errorf("%d statements", n)
	}
	g.rateAccount(nil)
	g.clock.advance(time.Second)
	a = g.send(request{method: http.MethodPost, path: videos, key: one, body: videoBody})
	a.taskID(t) // which the account's refusal has not used up
	a.wantRates(t, `"key";q=1;w=60`, `"key";r=0;t=60`)
	a = g.send(request{method: http.MethodPost, path: videos, key: one, body: videoBody})
	a.wantError(t, 429, "rate_limit_error", "this API key may submit once a minute")
}

// TestRatesWithoutTheirStore checks that a request with a rate is refused while the store cannot
// count. A submit needs the same database next.
func TestRatesWithoutTheirStore(t *testing.T) {
	t.Parallel()
	g, store := newRated(t)
	_, secret := g.newKey(mediagate.Key{Unlimited: true, Rate: new(9)})
	for want, fault := range map[int]error{503: &mediagate.Error{Kind: mediagate.KindUnavailable, Message: "away", Err: errAway}, 500: errAway} {
		store.fault = fault
		a := g.send(request{method: http.MethodPost, path: videos, key: secret, body: videoBody})
		a.wantError(t, want, "server_error", "")
		a.wantRates(t, `"key";q=9;w=60`, "")
	}
}

func TestReplaysAreCounted(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	_, secret := g.newKey(mediagate.Key{Unlimited: true, Rate: new(2)})
	r := request{method: http.MethodPost, path: videos, key: secret, body: videoBody, header: http.Header{"Idempotency-Key": {"k"}}}
	g.send(r).taskID(t)
	a := g.send(r)
	a.taskID(t)
	if a.header.Get("Idempotency-Replayed") != "true" {
		t.Error("not a replay")
	}
	a.wantRates(t, `"key";q=2;w=60`, `"key";r=0;t=30`)
	g.send(r).wantError(t, 429, "rate_limit_error", "2 times a minute")
}

func TestARotatedKeySharesItsRate(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	row, secret := g.newKey(mediagate.Key{Unlimited: true, Rate: new(2)})
	fresh, stored := api.NewKey()
	_, err := g.store.RotateKey(t.Context(), row.ID, stored, time.Hour)
	g.must(err)
	for _, key := range []string{secret, fresh} {
		g.send(request{method: http.MethodPost, path: videos, key: key, body: "{"}).wantError(t, 400, "invalid_request_error", "JSON")
	}
	for _, key := range []string{fresh, secret} {
		g.send(request{method: http.MethodPost, path: videos, key: key, body: videoBody}).wantError(t, 429, "rate_limit_error", "2 times")
	}
}

// TestARefusedBodyIsNotRead checks that the body of a refused request is neither requested nor
// parsed.
func TestARefusedBodyIsNotRead(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	_, secret := g.newKey(mediagate.Key{Unlimited: true, Rate: new(0)})
	for _, path := range []string{videos, uploadPath} {
		body := &untouchable{}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, body)
		r.ContentLength = 1 << 40
		r.Header.Set("Authorization", "Bearer "+secret)
		r.Header.Set("Expect", "100-continue")
		w := httptest.NewRecorder()
		g.server.ServeHTTP(w, r)
		if w.Code != 429 || w.Header().Get("Connection") != "close" || body.read.Load() {
			t.Errorf("%s: %d %s, %v, read: %t", path, w.Code, w.Body, w.Header(), body.read.Load())
		}
	}
}

type untouchable struct{ read atomic.Bool }

func (b *untouchable) Read([]byte) (int, error) {
	b.read.Store(true)
	return 0, errAway
}
