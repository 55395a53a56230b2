package api_test

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
	"github.com/mediagate/mediagate/internal/outbound"
	"github.com/mediagate/mediagate/internal/signin"
	"github.com/mediagate/mediagate/internal/signin/issuertest"
)

// Operators other than that of adminKey.
const (
	readKey    = "the-key-of-rose-who-reads-0123456789"
	operateKey = "the-key-of-ada-who-operates-012345678"
)

func named() []api.Operator {
	return append(admins(adminKey),
		api.Operator{Name: "rose", KeyHash: api.HashKey(readKey), Role: mediagate.RoleRead},
		api.Operator{Name: "ada", KeyHash: api.HashKey(operateKey), Role: mediagate.RoleOperate})
}

func newNamed(t *testing.T) *gateway {
	t.Helper()
	return newGateway(t, func(c *api.Config) { c.Operators = named() })
}

// TestRolesDecide checks the least role for each kind of route, with a key and with a session. A
// refusal names the required role.
func TestRolesDecide(t *testing.T) {
	t.Parallel()
	g := newNamed(t)
	id := g.submit(videos, hooked)
	keys := map[mediagate.OperatorRole]string{mediagate.RoleRead: readKey, mediagate.RoleOperate: operateKey, mediagate.RoleAdmin: adminKey}
	for name, tt := range map[string]struct {
		method, path, body string
		needs              mediagate.OperatorRole
	}{
		"a list":            {method: "GET", path: "/tasks", needs: mediagate.RoleRead},
		"a story":           {method: "GET", path: "/tasks/" + id, needs: mediagate.RoleRead},
		"a prompt":          {method: "GET", path: "/tasks/" + id + "?prompt=true", needs: mediagate.RoleOperate},
		"money, to see":     {method: "GET", path: "/accounts/" + g.account.ID + "/ledger", needs: mediagate.RoleRead},
		"the audit":         {method: "GET", path: "/audit", needs: mediagate.RoleRead},
		"an action":         {method: "POST", path: "/tasks/" + id + "/actions", body: `{}`, needs: mediagate.RoleOperate},
		"an action on many": {method: "POST", path: "/tasks/actions", body: `{}`, needs: mediagate.RoleOperate},
		"a channel":         {method: "PATCH", path: "/channels/kling-a", body: `{}`, needs: mediagate.RoleOperate},
		"money":             {method: "POST", path: "/accounts/" + g.account.ID + "/grants", body: `{}`, needs: mediagate.RoleAdmin},
		"an account":        {method: "PATCH", path: "/accounts/" + g.account.ID, body: `{"other":1}`, needs: mediagate.RoleAdmin},
		"a key":             {method: "POST", path: "/accounts/" + g.account.ID + "/keys", body: `{}`, needs: mediagate.RoleAdmin},
		"a restored backup": {method: "POST", path: "/recover", body: `{}`, needs: mediagate.RoleAdmin},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for role, key := range keys {
				r := request{method: tt.method, path: "/admin/v1" + tt.path, body: tt.body}
				inSession := g.signIn(key).ask(r)
				r.key = key
				for _, a := range []answer{g.send(r), inSession} {
					if role.Includes(tt.needs) {
						if a.status == http.StatusForbidden || a.status == http.StatusUnauthorized {
							t.Errorf("%s: %d %s", role, a.status, a.body)
						}
						continue
					}
					a.wantError(t, 403, "permission_error", "this needs the role "+string(tt.needs))
				}
			}
		})
	}
}

// TestOperatorsAreNamed checks that changes are recorded under the operator's name.
func TestOperatorsAreNamed(t *testing.T) {
	t.Parallel()
	g := newNamed(t)
	id := g.submit(videos, hooked)
	a := g.send(request{method: http.MethodPost, path: "/admin/v1/tasks/" + id + "/actions", key: operateKey, body: `{"action":"fail","reason":"a test"}`})
	a.wantStatus(t, http.StatusAccepted)
	a = g.send(request{path: "/admin/v1/audit?limit=1", key: readKey})
	if a.at("data", 0, "by") != "ada" || a.at("data", 0, "object") != id {
		t.Errorf("audit: %s", a.body)
	}
	if a := g.send(request{path: "/admin/v1/tasks/" + id, key: readKey}); !strings.Contains(a.body, "by ada") {
		t.Errorf("story: %s", a.body)
	}
	if !strings.Contains(g.log.String(), `"operator":"ada"`) || strings.Contains(g.log.String(), operateKey) {
		t.Errorf("log: %s", g.log)
	}
	if view := g.signIn(operateKey).read(session); view.at("name") != "ada" || view.at("role") != "operate" || view.at("operator") != true {
		t.Errorf("session: %s", view.body)
	}
}

// TestOperatorsAreReplaced checks that a removed key stops working at once and ends its sessions,
// and that a new role applies at once.
func TestOperatorsAreReplaced(t *testing.T) {
	t.Parallel()
	g := newNamed(t)
	rose, ada := g.signIn(readKey), g.signIn(operateKey)
	g.server.ReplaceOperators([]api.Operator{{Name: "rosa", KeyHash: api.HashKey(readKey), Role: mediagate.RoleAdmin}})
	g.send(request{path: "/admin/v1/audit", key: operateKey}).wantError(t, 401, "authentication_error", "no operator has this key")
	ada.read("/admin/v1/audit").wantError(t, 401, "authentication_error", "no session")
	g.send(request{path: "/admin/v1/audit", key: adminKey}).wantError(t, 401, "authentication_error", "no operator has this key")
	if a := rose.read(session); a.at("name") != "rosa" || a.at("role") != "admin" {
		t.Errorf("session: %s", a.body)
	}
}

const oidc = "/console/oidc"

// withIssuer configures sign-in by OpenID Connect at a small issuer.
func withIssuer(t *testing.T, roles map[string]mediagate.OperatorRole) (*gateway, *issuertest.Issuer) {
	t.Helper()
	i := issuertest.New(t)
	provider, err := signin.New(signin.Config{
		Issuer: i.URL, ClientID: issuertest.ClientID, Secret: func() (string, error) { return issuertest.Secret, nil }, Roles: roles,
		RedirectURL: api.CallbackURL("https://api.example.com/"),
		Rules:       outbound.Rules{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
		Now:         time.Now,
	})
	must(t, err)
	return newGateway(t, func(c *api.Config) { c.PublicURL, c.IdentityProvider = "https://api.example.com", provider }), i
}

// begin starts a sign-in and returns the browser's cookie and the callback to which the issuer sends
// it.
func begin(t *testing.T, g *gateway, i *issuertest.Issuer) (cookie, callback string) {
	t.Helper()
	start := g.send(request{path: oidc + "/start"})
	code, state, err := i.Code(start.header.Get("Location"))
	if err != nil || start.status != http.StatusFound {
		t.Fatalf("%d %s: %v", start.status, start.body, err)
	}
	set := start.header.Get("Set-Cookie")
	for _, attribute := range []string{"__Host-mediagate_oidc=", "; HttpOnly", "; Secure", "; SameSite=Lax", "; Max-Age=600"} {
		if !strings.Contains(set, attribute) {
			t.Errorf("Set-Cookie is %q, without %s", set, attribute)
		}
	}
	cookie, _, _ = strings.Cut(set, ";")
	return cookie, oidc + "/callback?" + url.Values{"code": {code}, "state": {state}}.Encode()
}

func back(g *gateway, cookie, callback string) answer {
	g.t.Helper()
	return g.send(request{path: callback, header: http.Header{"Cookie": {cookie}}})
}

func TestSignInByOpenIDConnect(t *testing.T) {
	t.Parallel()
	g, i := withIssuer(t, map[string]mediagate.OperatorRole{"groups=ops": mediagate.RoleOperate})
	i.SignIn(map[string]any{"sub": "1", "email": "ada@example.com", "email_verified": true, "groups": []string{"ops"}})
	if a := g.send(request{path: oidc}); a.at("provider") != strings.TrimPrefix(i.URL, "http://") {
		t.Errorf("%d %s", a.status, a.body)
	}
	cookie, callback := begin(t, g, i)
	a := back(g, cookie, callback)
	cookies := a.header.Values("Set-Cookie")
	if a.status != http.StatusFound || a.header.Get("Location") != "/console/sign-in#signed-in" || len(cookies) != 2 {
		t.Fatalf("%d %q %s", a.status, cookies, a.body)
	}
	if !strings.HasPrefix(cookies[0], "__Host-mediagate_oidc=;") || !strings.Contains(cookies[1], "; SameSite=Strict") {
		t.Errorf("Set-Cookie is %q", cookies)
	}
	own, _, _ := strings.Cut(cookies[1], ";")
	b := browser{gateway: g, cookie: own}
	view := b.read(session)
	b.csrf, _ = view.at("csrf").(string)
	if view.at("name") != "oidc:ada@example.com" || view.at("role") != "operate" || view.at("expires_at") != float64(g.clock.now().Add(4*time.Hour).Unix()) {
		t.Errorf("session: %s", view.body)
	}
	id := g.submit(videos, hooked)
	b.ask(request{method: http.MethodPost, path: "/admin/v1/tasks/" + id + "/actions", body: `{"action":"fail","reason":"a test"}`}).
		wantStatus(t, http.StatusAccepted, "an action")
	if a := g.operate(http.MethodGet, "/audit?limit=1", ""); a.at("data", 0, "by") != "oidc:ada@example.com" {
		t.Errorf("audit: %s", a.body)
	}
	b.ask(request{method: http.MethodPost, path: "/admin/v1/recover", body: `{}`}).wantError(t, 403, "permission_error", "this needs the role admin")

	// The same address a second time, with the cookie that the browser was to forget.
	if a := back(g, cookie, callback); a.status != http.StatusUnauthorized || !strings.Contains(a.body, "did not take its code") {
		t.Errorf("a replay: %d %s", a.status, a.body)
	}
	g.clock.advance(4 * time.Hour)
	b.read("/admin/v1/audit").wantError(t, 401, "authentication_error", "no session")
}

// TestSignInByOpenIDConnectFails checks that a failed sign-in shows a page with the reason.
func TestSignInByOpenIDConnectFails(t *testing.T) {
	t.Parallel()
	g, i := withIssuer(t, map[string]mediagate.OperatorRole{"groups=ops": mediagate.RoleOperate})
	i.SignIn(map[string]any{"sub": "<b>1</b>", "groups": []string{"sales"}})
	cookie, callback := begin(t, g, i)
	other, _ := begin(t, g, i)
	for name, tt := range map[string]struct {
		cookie, callback string
		status           int
		message          string
	}{
		"no cookie":           {"x=y", callback, 401, "no sign-in is under way"},
		"another browser":     {other, callback, 401, "belongs to another sign-in"},
		"no state":            {cookie, oidc + "/callback?code=1", 401, "belongs to another sign-in"},
		"anybody's no":        {cookie, oidc + "/callback?error=call-0900-1234", 401, "belongs to another sign-in"},
		"a person of no role": {cookie, callback, 403, "oidc:sub:&lt;b&gt;1&lt;/b&gt;, who has no role here: ask those who run this gateway"},
	} {
		t.Run(name, func(t *testing.T) {
			a := back(g, tt.cookie, tt.callback)
			if a.status != tt.status || !strings.Contains(a.body, tt.message) || !strings.HasPrefix(a.header.Get("Content-Type"), "text/html") {
				t.Errorf("%d %s", a.status, a.body)
			}
			if cookies := a.header.Values("Set-Cookie"); len(cookies) != 1 || !strings.Contains(cookies[0], "Max-Age=0") {
				t.Errorf("Set-Cookie is %q", cookies)
			}
		})
	}
	if lines := strings.Count(g.log.String(), `"msg":"failed logins of operators"`); lines == 0 {
		t.Errorf("nothing is in the log: %s", g.log)
	}
}

// TestIssuerRefuses checks that a refusal by the provider is no failed login.
func TestIssuerRefuses(t *testing.T) {
	t.Parallel()
	g, i := withIssuer(t, map[string]mediagate.OperatorRole{"groups=ops": mediagate.RoleOperate})
	cookie, callback := begin(t, g, i)
	_, state, _ := strings.Cut(callback, "state=")
	a := back(g, cookie, oidc+"/callback?error=access_denied&state="+state)
	if a.status != http.StatusForbidden || !strings.Contains(a.body, "did not sign you in: &#34;access_denied&#34;") {
		t.Errorf("%d %s", a.status, a.body)
	}
	if strings.Contains(g.log.String(), "failed logins of operators") {
		t.Errorf("log: %s", g.log)
	}
}

// TestSessionsEndWithTheProvider checks that other settings of the provider end its sessions, and
// that there is no sign-in without a provider.
func TestSessionsEndWithTheProvider(t *testing.T) {
	t.Parallel()
	roles := map[string]mediagate.OperatorRole{"groups=ops": mediagate.RoleOperate}
	g, i := withIssuer(t, roles)
	i.SignIn(map[string]any{"sub": "1", "groups": []string{"ops"}})
	cookie, callback := begin(t, g, i)
	own, _, _ := strings.Cut(back(g, cookie, callback).header.Values("Set-Cookie")[1], ";")
	for name, provider := range map[string]api.IdentityProvider{"none": nil, "another": otherProvider{}} {
		elsewhere := g.another(func(c *api.Config) { c.PublicURL, c.IdentityProvider = "https://api.example.com", provider })
		b := browser{gateway: elsewhere, cookie: own}
		b.read("/admin/v1/audit").wantError(t, 401, "authentication_error", "no session")
		if provider != nil {
			continue
		}
		if a := elsewhere.send(request{path: oidc}); a.status != 200 || a.at("provider") != nil {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
		for _, path := range []string{"/start", "/callback"} {
			elsewhere.send(request{path: oidc + path}).wantStatus(t, 404, name, path)
		}
	}
	(browser{gateway: g, cookie: own}).read("/admin/v1/audit").wantStatus(t, 200, "here")
}

// otherProvider is a provider with other settings.
type otherProvider struct{ api.IdentityProvider }

func (otherProvider) Fingerprint() [32]byte { return [32]byte{1} }

// TestIssuerIsAway checks that keys work while the issuer is away.
func TestIssuerIsAway(t *testing.T) {
	t.Parallel()
	i := issuertest.New(t)
	i.SetHTML(true)
	provider, err := signin.New(signin.Config{Issuer: i.URL, Now: time.Now, Rules: outbound.Rules{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}})
	must(t, err)
	well := func(context.Context) error { return nil }
	g := newGateway(t, func(c *api.Config) {
		c.IdentityProvider, c.Checks = provider, api.Checks{Database: well, Clock: well, Temporal: well, Bucket: well, OIDC: provider.Check}
	})
	if a := g.send(request{path: oidc + "/start"}); a.status != 503 || !strings.Contains(a.body, "Not signed in") {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := g.send(request{path: "/readyz"}); a.status != 200 || a.at("degraded", 0) != "oidc" {
		t.Errorf("%d %s", a.status, a.body)
	}
	g.operate(http.MethodGet, "/audit", "").wantStatus(t, 200)
}
