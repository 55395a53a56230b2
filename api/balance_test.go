package api_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
)

var balancePaths = []string{"/v1/balance", "/balance", "/v1/user/balance", "/user/balance"}

func TestTokenBalance(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	_, limited := g.newKey(mediagate.Key{Quota: 2_500_500}) // 2.5005 USD
	for _, path := range balancePaths[:2] {
		a := g.send(request{path: path, key: limited})
		want := `{"success":true,"remain_balance":2.5005,"remain_credits":2500,"used_balance":0,"used_credits":0,"unlimited_quota":false}` + "\n"
		if a.status != 200 || a.body != want {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
		a = g.get(path)
		want = `{"success":true,"remain_balance":-1,"remain_credits":-1,"used_balance":0,"used_credits":0,"unlimited_quota":true}` + "\n"
		if a.body != want {
			t.Errorf("unlimited: %s", a.body)
		}
	}
	// A hold is taken off at once; what was charged is used at the end.
	id := g.send(request{method: http.MethodPost, path: images, key: limited, body: imageBody}).taskID(t)
	a := g.send(request{path: "/v1/balance", key: limited})
	if a.at("remain_balance") != 2.4855 || a.at("used_balance") != 0.0 || a.at("remain_credits") != 2485.0 {
		t.Errorf("during a task: %s", a.body)
	}
	g.complete(id)
	a = g.send(request{path: "/v1/balance", key: limited})
	if a.at("remain_balance") != 2.4855 || a.at("used_balance") != 0.015 || a.at("used_credits") != 15.0 {
		t.Errorf("after it: %s", a.body)
	}
}

func TestUserBalance(t *testing.T) {
	t.Parallel()
	g := newGateway(t, func(c *api.Config) { c.CreditsPerUnit = 10 })
	id := g.submit(images, imageBody)
	g.complete(id)
	for _, path := range balancePaths[2:] {
		a := g.get(path)
		want := `{"success":true,"remain_balance":99.985,"remain_credits":999,"used_balance":0.015,"used_credits":0.15}` + "\n"
		if a.status != 200 || a.body != want {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
}

func TestBalanceWithoutAKey(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	unknown, _ := api.NewKey()
	gone, secret := g.newKey(mediagate.Key{Unlimited: true})
	g.must(g.store.DeleteKey(t.Context(), gone.ID))
	for _, path := range balancePaths {
		a := g.send(request{path: path})
		a.wantError(t, 401, "authentication_error", "No Authorization header")
		if a.at("success") != false || a.at("message") != "No Authorization header" {
			t.Errorf("%s: both shapes wanted: %s", path, a.body)
		}
		for _, key := range []string{unknown, "nonsense", adminKey, secret} {
			a := g.send(request{path: path, key: key})
			if want := `{"success":false,"message":"record not found"}` + "\n"; a.status != 200 || a.body != want {
				t.Errorf("%s: %d %s", path, a.status, a.body)
			}
		}
	}
}

// brokenStore fails in the methods that a test names.
type brokenStore struct {
	api.Store
	err error // of everything that is read
}

func (s *brokenStore) Account(ctx context.Context, id string) (mediagate.Account, error) {
	if s.err != nil {
		return mediagate.Account{}, s.err
	}
	return s.Store.Account(ctx, id)
}

func (s *brokenStore) Key(ctx context.Context, id string) (mediagate.Key, error) {
	if s.err != nil {
		return mediagate.Key{}, s.err
	}
	return s.Store.Key(ctx, id)
}

func TestBalanceLookupsThatFail(t *testing.T) {
	t.Parallel()
	store := &brokenStore{}
	g := newGateway(t, func(c *api.Config) { store.Store, c.Store = c.Store, store })
	g.get("/v1/balance") // the key is remembered now
	tests := map[string]struct {
		err     error
		path    string
		message string
	}{
		"account gone":       {mediagate.Errorf(mediagate.KindNotFound, "no account"), "/v1/user/balance", "user does not exist"},
		"key gone meanwhile": {mediagate.Errorf(mediagate.KindNotFound, "no key"), "/v1/balance", "record not found"},
		"fault":              {errAway, "/user/balance", "database error"},
		"token, fault":       {errAway, "/balance", "database error"},
	}
	for name, test := range tests {
		store.err = test.err
		a := g.get(test.path)
		if want := `{"success":false,"message":"` + test.message + `"}` + "\n"; a.status != 200 || a.body != want {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
}
