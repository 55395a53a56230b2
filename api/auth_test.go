package api_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
)

func TestAuthorization(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	unknown, _ := api.NewKey()
	tests := map[string]struct {
		header  []string
		status  int
		message string
	}{
		"key":                 {[]string{"Bearer " + g.key}, 200, ""},
		"scheme in lower":     {[]string{"bearer " + g.key}, 200, ""},
		"scheme in upper":     {[]string{"BEARER " + g.key}, 200, ""},
		"spaces":              {[]string{"Bearer   " + g.key}, 200, ""},
		"none":                {nil, 401, "No Authorization header"},
		"empty":               {[]string{""}, 401, "No Authorization header"},
		"scheme only":         {[]string{"Bearer"}, 401, "No Authorization header"},
		"empty token":         {[]string{"Bearer "}, 401, "No Authorization header"},
		"other scheme":        {[]string{"Basic " + g.key}, 401, "No Authorization header"},
		"no scheme":           {[]string{g.key}, 401, "No Authorization header"},
		"unknown key":         {[]string{"Bearer " + unknown}, 401, "invalid API key"},
		"malformed key":       {[]string{"Bearer sk-123"}, 401, "invalid API key"},
		"wrong check digits":  {[]string{"Bearer " + g.key[:41] + "~"}, 401, "invalid API key"},
		"key and more":        {[]string{"Bearer " + g.key + " x"}, 401, "invalid API key"},
		"admin key elsewhere": {[]string{"Bearer " + adminKey}, 401, "invalid API key"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := g.send(request{path: "/v1/tasks", header: http.Header{"Authorization": test.header}})
			if test.status == 200 {
				a.wantStatus(t, 200)
				return
			}
			a.wantError(t, test.status, "authentication_error", test.message)
			if test.message == "No Authorization header" && a.at("error", "message") != test.message {
				t.Errorf("message %v is not exact", a.at("error", "message"))
			}
		})
	}
}

func TestAuthenticationComesBeforeTheBody(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	for _, path := range []string{videos, images, "/v1/quote", "/admin/v1/accounts"} {
		g.send(request{method: http.MethodPost, path: path, body: "{"}).wantError(t, 401, "authentication_error", "No Authorization header")
	}
}

func TestAllowedAddresses(t *testing.T) {
	t.Parallel()
	g := newGateway(t, func(c *api.Config) { c.TrustedProxies.Hops = 1 })
	_, secret := g.newKey(mediagate.Key{Unlimited: true, AllowIPs: []string{"192.0.2.0/24", "2001:db8::1"}})
	g.try("192.0.2.9", "/v1/tasks", secret).wantStatus(t, 200)
	g.try("2001:db8::2", "/v1/tasks", secret).wantError(t, 403, "permission_error", "address")
	g.try("garbage", "/v1/tasks", secret).wantError(t, 403, "permission_error", "address")
	plain := newGateway(t)
	_, secret = plain.newKey(mediagate.Key{Unlimited: true, AllowIPs: []string{"192.0.2.1"}})
	h := http.Header{"X-Forwarded-For": {"192.0.2.1"}}
	plain.send(request{path: "/v1/tasks", key: secret, remote: "192.0.2.1:999"}).wantStatus(t, 200, "its own address")
	plain.send(request{path: "/v1/tasks", key: secret, remote: "192.0.2.2:999", header: h}).
		wantStatus(t, 403, "a claimed address")
	plain.send(request{path: "/v1/balance", key: secret, remote: "192.0.2.2:999"}).
		wantStatus(t, 403, "balance from elsewhere")
}

func TestLastUseIsWritten(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	g.clock.advance(time.Hour)
	g.get("/v1/tasks")
	g.server.Close()
	k, err := g.store.Key(t.Context(), g.keyRow.ID)
	g.must(err)
	if !k.LastUsedAt.Equal(g.clock.now()) {
		t.Errorf("last used at %s", k.LastUsedAt)
	}
}

func TestAdminAuthorization(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	unknown, _ := api.NewKey()
	const path = "/admin/v1/accounts"
	g.send(request{path: path, key: adminKey}).wantStatus(t, 200)
	g.send(request{path: path}).wantError(t, 401, "authentication_error", "No Authorization header")
	g.send(request{path: path, key: g.key}).wantError(t, 403, "permission_error", "takes no API key")
	g.send(request{path: path, key: unknown}).wantError(t, 401, "authentication_error", "no operator has this key")
	g.send(request{path: path, key: adminKey + "x"}).wantError(t, 401, "authentication_error", "no operator has this key")
	open := newGateway(t, func(c *api.Config) { c.Operators = nil })
	open.send(request{path: path, header: http.Header{"Authorization": {"Bearer "}}}).wantError(t, 401, "authentication_error", "No Authorization header")
	open.send(request{path: path, key: adminKey}).wantError(t, 401, "authentication_error", "no operator has this key")
}

// noSigner is for servers that no test asks for results.
type noSigner struct{}

func (noSigner) Sign(context.Context, mediagate.Result, time.Duration) (mediagate.Link, error) {
	return mediagate.Link{}, errAway
}

func (noSigner) SignAs(context.Context, mediagate.Result, time.Duration, string, string) (mediagate.Link, error) {
	return mediagate.Link{}, errAway
}
