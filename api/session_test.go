package api_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
	"github.com/mediagate/mediagate/internal/limit"
)

const session = "/console/session"

// browser is a signed-in browser.
type browser struct {
	*gateway
	cookie, csrf string
}

// signIn signs a new browser in with a key.
func (g *gateway) signIn(key string) browser {
	g.t.Helper()
	a := g.send(request{method: http.MethodPost, path: session, body: `{"key":"` + key + `"}`})
	if a.status != http.StatusCreated {
		g.t.Fatalf("sign-in: %d %s", a.status, a.body)
	}
	cookie, _, _ := strings.Cut(a.header.Get("Set-Cookie"), ";")
	csrf, _ := a.at("csrf").(string)
	return browser{g, cookie, csrf}
}

// ask sends a request with the cookie, and with the CSRF token if it is needed.
func (b browser) ask(r request) answer {
	b.t.Helper()
	r.header = r.header.Clone()
	if r.header == nil {
		r.header = http.Header{}
	}
	r.header.Add("Cookie", b.cookie)
	if r.method != "" && r.method != http.MethodGet && r.header.Get("X-CSRF-Token") == "" {
		r.header.Set("X-CSRF-Token", b.csrf)
	}
	return b.send(r)
}

func (b browser) read(path string) answer {
	b.t.Helper()
	return b.ask(request{path: path})
}

func TestSessionOfKey(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	made := g.send(request{method: http.MethodPost, path: session, body: `{"key":" ` + g.key + `\n"}`})
	made.wantStatus(t, http.StatusCreated)
	key := g.get("/v1/keys/" + g.keyRow.ID)
	csrf, _ := made.at("csrf").(string)
	want := map[string]any{
		"object": "session", "operator": false, "name": nil, "role": nil, "account": map[string]any{"id": g.account.ID, "name": "test"}, "key": key.data,
		"csrf": csrf, "expires_at": float64(g.clock.now().Add(12 * time.Hour).Unix()), "currency": "USD", "credits_per_unit": 1000.0, "version": "1.2.3",
	}
	if diff := cmp.Diff(want, made.data); diff != "" || len(csrf) != 43 {
		t.Errorf("csrf %q; session (-want +got):\n%s", csrf, diff)
	}
	cookie, _, _ := strings.Cut(made.header.Get("Set-Cookie"), ";")
	b := browser{g, cookie, csrf}
	read := b.read(session)
	if diff := cmp.Diff(made.data, read.data); diff != "" || read.status != 200 {
		t.Errorf("%d; read (-made +read):\n%s", read.status, diff)
	}
	for _, a := range []answer{made, read} {
		if got := a.header.Get("Cache-Control"); got != "no-store" {
			t.Errorf("Cache-Control is %q", got)
		}
	}
	b.ask(request{method: http.MethodPost, path: videos, body: videoBody}).wantStatus(t, 200, "submit")
	if a := b.read("/v1/tasks"); a.status != 200 || a.at("data", 0, "model") != "alpha-v3" {
		t.Errorf("tasks: %d %s", a.status, a.body)
	}
	for _, path := range []string{"/v1/balance", "/v1/user/balance", "/v1/models", "/v1beta/models"} {
		if a := b.read(path); a.status != 200 || a.at("success") == false {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	b.read("/admin/v1/accounts").wantError(t, 403, "permission_error", "takes no API key")
	if log := g.log.String(); strings.Contains(log, g.key) || strings.Contains(log, csrf) || strings.Contains(log, strings.TrimPrefix(cookie, "mediagate_session=")) {
		t.Errorf("a secret is in the log:\n%s", log)
	}
}

// TestSessionsAreActors checks that a change through a session is recorded for its key or under
// the operator's name.
func TestSessionsAreActors(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	g.signIn(g.key).ask(request{method: http.MethodPost, path: "/v1/keys", body: `{"name":"by the key","unlimited":true}`}).
		wantStatus(t, 201)
	operator := g.signIn(adminKey)
	operator.ask(request{method: http.MethodPatch, path: "/admin/v1/keys/" + g.keyRow.ID, body: `{"name":"by the operator"}`}).
		wantStatus(t, 200)
	entries := operator.read("/admin/v1/audit?account=" + g.account.ID)
	if first, second := entries.at("data", 0, "by"), entries.at("data", 1, "by"); first != mediagate.AdminOperator || second != g.keyRow.ID {
		t.Errorf("by %v and %v: %s", first, second, entries.body)
	}
}

func TestSessionOfOperator(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	b := g.signIn(adminKey)
	a := b.read(session)
	want := map[string]any{
		"object": "session", "operator": true, "name": "admin", "role": "admin", "account": nil, "key": nil, "csrf": b.csrf,
		"expires_at": float64(g.clock.now().Add(12 * time.Hour).Unix()), "currency": "USD", "credits_per_unit": 1000.0, "version": "1.2.3",
	}
	if diff := cmp.Diff(want, a.data); diff != "" {
		t.Errorf("session (-want +got):\n%s", diff)
	}
	b.read("/admin/v1/accounts").wantStatus(t, 200)
	for _, path := range []string{"/v1/tasks", "/v1/models", "/v1/balance"} {
		b.read(path).wantError(t, 403, "permission_error", "operator's session")
	}
	// With another admin key the session is none, and with none nobody is an operator.
	for _, other := range []string{"another-admin-key-of-the-tests-01234567", ""} {
		elsewhere := g.another(func(c *api.Config) { c.Operators = admins(other) })
		b.gateway = elsewhere
		b.read("/admin/v1/accounts").wantError(t, 401, "authentication_error", "no session")
		b.read(session).wantError(t, 401, "authentication_error", "no session")
	}
	g.send(request{method: http.MethodPost, path: session, body: `{"key":"` + adminKey + `x"}`}).wantError(t, 401, "authentication_error", "invalid key")
}

// another returns another process over the same database.
func (g *gateway) another(change func(*api.Config)) *gateway {
	g.t.Helper()
	cfg := api.Config{
		Store: g.store, Catalog: api.BuiltIn(g.t), Routes: g.vendors, Uploads: g.bucket, Files: g.bucket, FileURL: fileURL, Starter: g.starter, Runs: g.starter,
		Signer: noSigner{}, Remover: g.bucket, Speaker: g.speaker, Operators: admins(adminKey), Now: g.clock.now,
	}
	change(&cfg)
	server, err := api.New(cfg)
	g.must(err)
	g.t.Cleanup(server.Close)
	there := *g
	there.server = server
	return &there
}

func TestSignInRefusals(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	unknown, _ := api.NewKey()
	_, expired := g.newKey(mediagate.Key{Unlimited: true, ExpiresAt: g.clock.now().Add(time.Second)})
	_, elsewhere := g.newKey(mediagate.Key{Unlimited: true, AllowIPs: []string{"198.51.100.0/24"}})
	token, _ := api.NewSessionToken()
	g.clock.advance(time.Second)
	for name, test := range map[string]struct {
		body    string
		header  http.Header
		status  int
		message string
	}{
		"nothing":           {body: `{}`, status: 400, message: "key is required"},
		"a blank":           {body: `{"key":" "}`, status: 400, message: "key is required"},
		"a link of nothing": {body: `{"link":""}`, status: 400, message: "link is required"},
		"both":              {body: `{"key":"x","link":"y"}`, status: 400, message: "link must not be given together with key"},
		"too much":          {body: `{"key":"` + strings.Repeat("x", 5000) + `"}`, status: 413, message: "4096 bytes"},
		"an unknown key":    {body: `{"key":"` + unknown + `"}`, status: 401, message: "invalid key"},
		"no key at all":     {body: `{"key":"x"}`, status: 401, message: "invalid key"},
		"an expired key":    {body: `{"key":"` + expired + `"}`, status: 401, message: "invalid key"},
		"another address":   {body: `{"key":"` + elsewhere + `"}`, status: 403, message: "address"},
		"an unknown link":   {body: `{"link":"` + token + `"}`, status: 401, message: "the link"},
		"no link at all":    {body: `{"link":"x"}`, status: 401, message: "the link"},
		"another site":      {body: `{"key":"` + g.key + `"}`, header: http.Header{"Sec-Fetch-Site": {"cross-site"}}, status: 403, message: "another site"},
		"another subdomain": {body: `{"key":"` + g.key + `"}`, header: http.Header{"Sec-Fetch-Site": {"same-site"}}, status: 403, message: "another site"},
		"another origin":    {body: `{"key":"` + g.key + `"}`, header: http.Header{"Origin": {"https://evil.example.com"}}, status: 403, message: "another site"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := g.send(request{method: http.MethodPost, path: session, body: test.body, header: test.header})
			word := map[int]string{401: "authentication_error", 403: "permission_error"}[test.status]
			if word == "" {
				word = "invalid_request_error"
			}
			a.wantError(t, test.status, word, test.message)
			if got := a.header.Values("Set-Cookie"); got != nil {
				t.Errorf("Set-Cookie is %q", got)
			}
		})
	}
	for name, header := range map[string]http.Header{
		"the same origin": {"Sec-Fetch-Site": {"same-origin"}, "Origin": {"http://example.com"}},
		"no fetch data":   {"Origin": {"http://example.com"}}, // the Host of these requests
	} {
		g.send(request{method: http.MethodPost, path: session, body: `{"key":"` + g.key + `"}`, header: header}).
			wantStatus(t, 201, name)
	}
}

// TestSignInBehindProxy checks that sign-in works though a proxy changed the Host. A page without
// TLS gets no session if the cookie needs TLS, since the browser would drop the cookie; the
// answer names the address to open. Browsers accept such a cookie for localhost.
func TestSignInBehindProxy(t *testing.T) {
	t.Parallel()
	const plain, foreign = "over http a browser keeps no session, since public_url is https: open https://api.example.org/console", "another site"
	g := newGateway(t, func(c *api.Config) { c.PublicURL = "https://api.example.org" })
	for origin, message := range map[string]string{
		"https://api.example.org":     "",
		"http://api.example.org":      plain,
		"http://api.example.org:8080": plain,
		"http://example.com":          plain, // the Host of these requests
		"https://example.com":         "",
		"https://x.example.org":       foreign,
		"http://x.example.org":        foreign,
		"":                            "",
	} {
		header := http.Header{}
		if origin != "" {
			header.Set("Origin", origin)
		}
		a := g.send(request{method: http.MethodPost, path: session, body: `{"key":"` + g.key + `"}`, header: header})
		switch {
		case message != "":
			a.wantError(t, 403, "permission_error", message)
		case a.status != 201:
			t.Errorf("%s: %d %s", origin, a.status, a.body)
		}
	}
	for _, host := range []string{"localhost:8080", "127.0.0.1:8080", "[::1]:8080"} {
		r := httptest.NewRequest(http.MethodPost, session, strings.NewReader(`{"key":"`+g.key+`"}`))
		r.Host = host
		r.Header.Set("Origin", "http://"+host)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		g.server.ServeHTTP(w, r)
		if w.Code != 201 {
			t.Errorf("%s: %d %s", host, w.Code, w.Body)
		}
	}
}

func TestSessionCookies(t *testing.T) {
	t.Parallel()
	for public, want := range map[string]string{
		"":                             "mediagate_session=~; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict",
		"http://127.0.0.1:8080":        "mediagate_session=~; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict",
		"https://api.example.com":      "__Host-mediagate_session=~; Path=/; Max-Age=43200; HttpOnly; Secure; SameSite=Strict",
		"HTTPS://api.example.com:8443": "__Host-mediagate_session=~; Path=/; Max-Age=43200; HttpOnly; Secure; SameSite=Strict",
	} {
		t.Run(public, func(t *testing.T) {
			t.Parallel()
			g := newGateway(t, func(c *api.Config) { c.PublicURL = public })
			a := g.send(request{method: http.MethodPost, path: session, body: `{"key":"` + g.key + `"}`})
			set := a.header.Get("Set-Cookie")
			cookie, _, _ := strings.Cut(set, ";")
			name, token, _ := strings.Cut(cookie, "=")
			if len(token) != 43 || strings.Replace(set, token, "~", 1) != want {
				t.Errorf("the cookie is %q, want %q", set, want)
			}
			csrf, _ := a.at("csrf").(string)
			b := browser{g, cookie, csrf}
			b.read("/v1/tasks").wantStatus(t, 200)
			out := b.ask(request{method: http.MethodDelete, path: session})
			cleared := strings.Replace(strings.Replace(want, "~", "", 1), "43200", "0", 1)
			if got := out.header.Get("Set-Cookie"); out.status != 204 || got != cleared {
				t.Errorf("sign-out: %d, cookie %q, want %q", out.status, got, cleared)
			}
			// Over TLS a cookie that another host may have set is none.
			if name != "mediagate_session" {
				b.cookie = strings.TrimPrefix(g.signIn(g.key).cookie, "__Host-")
				b.read("/v1/tasks").wantError(t, 401, "authentication_error", "No Authorization header")
			}
		})
	}
}

// TestSessionsNeedCSRF checks that the cookie alone changes nothing, since a browser sends it for
// other pages too.
func TestSessionsNeedCSRF(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	b, other, operator := g.signIn(g.key), g.signIn(g.key), g.signIn(adminKey)
	calls := []request{
		{method: http.MethodPost, path: videos, body: videoBody},
		{method: http.MethodPost, path: "/v1/quote", body: `{"endpoint":"` + videos + `","model":"alpha-v3","prompt":"a"}`},
		{method: http.MethodPatch, path: "/v1/keys/" + g.keyRow.ID, body: `{"name":"x"}`},
		{method: http.MethodPost, path: "/v1/webhooks/secret"},
		{method: http.MethodDelete, path: session},
	}
	refused := func(b browser, call request, token string) {
		t.Helper()
		call.header = http.Header{"X-CSRF-Token": {token}}
		if token == "" {
			call.header = http.Header{"X-Csrf-Token": {"", ""}}
		}
		call.header["Cookie"] = []string{b.cookie}
		g.send(call).wantError(t, 403, "permission_error", "X-CSRF-Token")
	}
	for _, call := range calls {
		for _, token := range []string{"", "x", other.csrf, b.csrf + "x"} {
			refused(b, call, token)
		}
	}
	grant := request{method: http.MethodPost, path: "/admin/v1/accounts/" + g.account.ID + "/grants", body: `{"amount":"1","reference":"x"}`}
	refused(operator, grant, b.csrf)
	operator.ask(grant).wantStatus(t, 201, "grant")
	for _, call := range calls {
		if a := b.ask(call); a.status/100 != 2 {
			t.Errorf("%s %s with the token: %d %s", call.method, call.path, a.status, a.body)
		}
	}
	other.ask(request{method: http.MethodHead, path: "/v1/tasks", header: http.Header{"X-Csrf-Token": {"x"}}}).
		wantStatus(t, 200, "HEAD")
}

// TestKeyComesBeforeCookie checks that a key takes precedence over a cookie. Credentials that
// cannot be a key do not: browsers and proxies send Basic auth and tokens of identity providers
// in addition to the cookie.
func TestKeyComesBeforeCookie(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	b := g.signIn(g.key)
	stranger, _ := api.NewKey()
	for name, test := range map[string]struct {
		path   string
		header http.Header
		status int
	}{
		"a live key":              {"/v1/tasks", http.Header{"Authorization": {"Bearer " + g.other()}}, 200},
		"an unknown key":          {"/v1/tasks", http.Header{"Authorization": {"Bearer " + stranger}}, 401},
		"another scheme":          {"/v1/tasks", http.Header{"Authorization": {"Basic eDp5"}}, 200},
		"an empty header":         {"/v1/tasks", http.Header{"Authorization": {""}}, 200},
		"an identity's token":     {"/v1/tasks", http.Header{"Authorization": {"Bearer eyJhbGciOiJub25lIn0.e30."}}, 200},
		"one of each":             {"/v1/models", http.Header{"Authorization": {"Bearer eyJhbGciOiJub25lIn0.e30."}, "X-Api-Key": {stranger}}, 400},
		"other keys":              {"/v1/models?key=AIza", http.Header{"X-Api-Key": {"sk-ant"}}, 200},
		"two headers":             {"/v1/tasks", http.Header{"Authorization": {"Basic eDp5", "Basic eDp6"}}, 400},
		"another header":          {"/v1/models", http.Header{"X-Api-Key": {stranger}}, 401},
		"where it does not count": {"/v1/tasks", http.Header{"X-Api-Key": {g.key}}, 401},
		"another one":             {"/v1/models", http.Header{"X-Goog-Api-Key": {stranger}}, 401},
		"in the query":            {"/v1/models?key=" + stranger, nil, 401},
		"the session":             {session, http.Header{"Authorization": {"Bearer " + g.key}}, 401},
		"Basic at the session":    {session, http.Header{"Authorization": {"Basic eDp5"}}, 200},
		"a token at the session":  {session, http.Header{"Authorization": {"Bearer eyJhbGciOiJub25lIn0.e30."}, "X-Api-Key": {""}}, 200},
		"the admin key":           {session, http.Header{"Authorization": {"Bearer " + adminKey}}, 401},
		"an operator's identity":  {"/admin/v1/accounts", http.Header{"Authorization": {"Bearer eyJhbGciOiJub25lIn0.e30."}}, 403},
		"a client's key":          {"/admin/v1/accounts", http.Header{"Authorization": {"Bearer " + adminKey}}, 200},
	} {
		b.ask(request{path: test.path, header: test.header}).wantStatus(t, test.status, name)
	}
	// A call that changes something still needs the token of its session.
	b.ask(request{method: http.MethodPost, path: videos, body: videoBody, header: http.Header{"Authorization": {"Basic eDp5"}, "X-Csrf-Token": {"x"}}}).wantError(t, 403, "permission_error", "X-CSRF-Token")
	// A key needs no token.
	b.ask(request{method: http.MethodPost, path: videos, body: videoBody, key: g.key, header: http.Header{"X-Csrf-Token": {"x"}}}).
		wantStatus(t, 200, "a submit with a key")
}

// TestKeylessRoutesIgnoreCookies checks that routes without a key ignore cookies, valid or not.
func TestKeylessRoutesIgnoreCookies(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	b := g.signIn(g.key)
	good, bad := b.cookie, "mediagate_session="+strings.Repeat("A", 43)
	for _, path := range []string{"/healthz", "/readyz", "/openapi.json", "/files/nothing", "/console"} {
		var statuses []int
		for _, cookie := range []string{good, bad, "mediagate_session=x"} {
			b.cookie = cookie
			statuses = append(statuses, b.read(path).status)
		}
		if want := g.send(request{path: path}).status; statuses[0] != want || statuses[1] != want || statuses[2] != want {
			t.Errorf("%s: %v, want %d", path, statuses, want)
		}
	}
}

func TestInvalidCookies(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	b := g.signIn(g.key)
	token, hash := api.NewSessionToken()
	g.must(g.store.AddLink(t.Context(), mediagate.Session{Hash: hash, KeyID: g.keyRow.ID}, time.Hour))
	for name, test := range map[string]struct{ cookie, message string }{
		"unknown":    {"mediagate_session=" + strings.Repeat("A", 43), "no session"},
		"a link":     {"mediagate_session=" + token, "no session"},
		"a key":      {"mediagate_session=" + g.key, "No Authorization header"},
		"short":      {"mediagate_session=" + b.cookie[18:59], "No Authorization header"},
		"with spare": {"mediagate_session=" + strings.Repeat("A", 42) + "B", "No Authorization header"}, // bits beyond the 32 bytes
		"empty":      {"mediagate_session=", "No Authorization header"},
		"two":        {b.cookie + "; mediagate_session=" + token, "No Authorization header"},
		"another":    {"session=" + b.cookie[18:], "No Authorization header"},
		"over TLS":   {"__Host-" + b.cookie, "No Authorization header"},
	} {
		b.cookie = test.cookie
		b.read("/v1/tasks").wantError(t, 401, "authentication_error", test.message)
		b.read(session).wantError(t, 401, "authentication_error", "no session")
		b.ask(request{method: http.MethodDelete, path: session}).wantStatus(t, 204, "sign-out", name)
	}
	g.send(request{path: session}).wantError(t, 401, "authentication_error", "no session")
	if a := g.send(request{method: http.MethodDelete, path: session}); a.status != 204 || a.body != "" {
		t.Errorf("sign-out without a cookie: %d %s", a.status, a.body)
	}
	g.send(request{method: http.MethodPost, path: session, body: `{"link":"` + token + `"}`}).
		wantStatus(t, 201, "the link, which is not used up")
}

// TestSessionEnds checks that a session ends at once in this process, and within a second in
// others.
func TestSessionEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(b browser, row mediagate.Key){
		"by signing out": func(b browser, _ mediagate.Key) {
			b.ask(request{method: http.MethodDelete, path: session}).wantStatus(b.t, 204)
		},
		"by signing in again": func(b browser, _ mediagate.Key) {
			before := b.cookie
			a := b.ask(request{method: http.MethodPost, path: session, body: `{"key":"` + b.key + `"}`})
			if after := a.header.Get("Set-Cookie"); a.status != 201 || strings.HasPrefix(after, before) {
				b.t.Errorf("%d %s", a.status, after)
			}
		},
		"with the key, deleted": func(b browser, row mediagate.Key) {
			b.operate(http.MethodDelete, "/keys/"+row.ID, "").wantStatus(b.t, 204)
		},
		"with the key, rotated": func(b browser, row mediagate.Key) {
			b.operate(http.MethodPost, "/keys/"+row.ID+"/rotate", `{"grace_seconds":3600}`).wantStatus(b.t, 201)
		},
		"with the key, expired": func(b browser, _ mediagate.Key) { b.clock.advance(time.Hour) },
		"in time":               func(b browser, _ mediagate.Key) { b.clock.advance(12 * time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGateway(t)
			settings := mediagate.Key{Unlimited: true}
			if strings.HasSuffix(name, "expired") {
				settings.ExpiresAt = g.clock.now().Add(time.Hour)
			}
			row, key := g.newKey(settings)
			b, second := g.signIn(key), g.signIn(key)
			there := b
			there.gateway = g.another(func(*api.Config) {})
			for _, at := range []browser{b, there} {
				at.read("/v1/tasks").wantStatus(t, 200, "before")
			}
			end(b, row)
			b.read("/v1/tasks").wantError(t, 401, "authentication_error", "no session")
			g.clock.advance(999 * time.Millisecond)
			there.read("/v1/tasks").wantError(t, 401, "authentication_error", "no session")
			there.read(session).wantError(t, 401, "authentication_error", "no session")
			alone := strings.HasPrefix(name, "by ")
			if a := second.read("/v1/tasks"); (a.status == 200) != alone {
				t.Errorf("another session of the key: %d %s", a.status, a.body)
			}
		})
	}
}

// TestSessionOfNarrowedKey checks that a session has the rights of its key and loses them with
// it.
func TestSessionOfNarrowedKey(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	row, key := g.newKey(mediagate.Key{Unlimited: true})
	b := g.signIn(key)
	change := func(body string) {
		t.Helper()
		g.operate(http.MethodPatch, "/keys/"+row.ID, body).wantStatus(t, 200)
	}
	change(`{"scopes":["generate"]}`)
	b.read("/v1/tasks").wantError(t, 403, "permission_error", "scope read")
	change(`{"scopes":null,"models":["theta-*"]}`)
	b.ask(request{method: http.MethodPost, path: videos, body: videoBody}).wantError(t, 403, "permission_error", "may not use model")
	change(`{"models":null,"allow_ips":["198.51.100.0/24"]}`)
	b.read("/v1/tasks").wantError(t, 403, "permission_error", "address")
	b.read(session).wantError(t, 403, "permission_error", "address")
	b.read("/v1/balance").wantError(t, 403, "permission_error", "address")
	change(`{"allow_ips":null,"name":"renamed"}`)
	if a := b.read(session); a.at("key", "name") != "renamed" {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestSignInLink(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	link := func(of mediagate.Session) string {
		t.Helper()
		token, hash := api.NewSessionToken()
		of.Hash = hash
		g.must(g.store.AddLink(t.Context(), of, api.SignInLinkLife))
		return token
	}
	take := func(token string) answer {
		t.Helper()
		return g.send(request{method: http.MethodPost, path: session, body: `{"link":"` + token + `"}`})
	}
	ofKey := link(mediagate.Session{KeyID: g.keyRow.ID})
	if a := take(ofKey); a.status != 201 || a.at("key", "id") != g.keyRow.ID || a.at("expires_at") != float64(g.clock.now().Add(12*time.Hour).Unix()) {
		t.Errorf("%d %s", a.status, a.body)
	}
	take(ofKey).wantError(t, 401, "authentication_error", "the link was used")
	if a := take(link(mediagate.Session{OperatorHash: api.HashKey(adminKey)})); a.status != 201 || a.at("operator") != true {
		t.Errorf("%d %s", a.status, a.body)
	}
	take(link(mediagate.Session{OperatorHash: api.HashKey("another")})).wantError(t, 401, "authentication_error", "no session")
	away, _ := g.newKey(mediagate.Key{Unlimited: true, AllowIPs: []string{"198.51.100.1"}})
	take(link(mediagate.Session{KeyID: away.ID})).wantError(t, 403, "permission_error", "address")
}

// sessionStore counts the lookups of sessions.
type sessionStore struct {
	api.Store
	sessions atomic.Int64
}

func (s *sessionStore) Session(ctx context.Context, hash [32]byte) (mediagate.Session, error) {
	s.sessions.Add(1)
	return s.Store.Session(ctx, hash)
}

func newSessionStore(t *testing.T) (*gateway, *sessionStore) {
	t.Helper()
	store := &sessionStore{}
	g := newGateway(t, func(c *api.Config) {
		store.Store, c.TrustedProxies.Hops = c.Store, 1
		c.Store, c.Limits.UnknownKeys = store, limit.New("", 2)
	})
	return g, store
}

func TestSessionsAreCached(t *testing.T) {
	t.Parallel()
	g, store := newSessionStore(t)
	b := g.signIn(g.key)
	asked := func(what string, want int64) {
		t.Helper()
		if n := store.sessions.Swap(0); n != want {
			t.Errorf("%s: asked for %d times, want %d", what, n, want)
		}
	}
	for range 20 {
		b.read("/v1/tasks")
	}
	asked("a session", 1)
	g.clock.advance(time.Second)
	b.read("/v1/tasks")
	asked("a second later", 1)
	b.cookie = "mediagate_session=" + strings.Repeat("A", 43)
	for range 20 {
		b.read("/v1/tasks").wantError(t, 401, "authentication_error", "no session")
	}
	asked("an unknown one", 1)
	b.cookie = "mediagate_session=x"
	b.read("/v1/tasks")
	asked("no token", 0)
}

// TestSignInsAreThrottled checks that failed sign-ins and wrong cookies share the limit of wrong
// keys from one address.
func TestSignInsAreThrottled(t *testing.T) {
	t.Parallel()
	signIn := func(body string) request { return request{method: http.MethodPost, path: session, body: body} }
	cookie := func(method, path string) request {
		return request{method: method, path: path, header: http.Header{"Cookie": {"mediagate_session=TOKEN"}}}
	}
	for name, try := range map[string]request{
		"keys":                 signIn(`{"key":"KEY"}`),
		"admin keys":           signIn(`{"key":"TOKEN"}`),
		"links":                signIn(`{"link":"TOKEN"}`),
		"cookies":              cookie(http.MethodGet, "/v1/tasks"),
		"cookies of operators": cookie(http.MethodGet, "/admin/v1/accounts"),
		"sign-outs":            cookie(http.MethodDelete, session),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, _ := newSessionStore(t)
			b := g.signIn(g.key)
			from := http.Header{"X-Forwarded-For": {"192.0.2.1"}}
			failed := func() {
				t.Helper()
				key, _ := api.NewKey()
				token, _ := api.NewSessionToken()
				fresh := strings.NewReplacer("KEY", key, "TOKEN", token).Replace
				r := try
				r.body, r.header = fresh(r.body), from.Clone()
				if cookie := try.header.Get("Cookie"); cookie != "" {
					r.header.Set("Cookie", fresh(cookie))
				}
				if a := g.send(r); a.status != 401 && (r.method != http.MethodDelete || a.status != 204) {
					t.Errorf("%d %s", a.status, a.body)
				}
			}
			for range api.MaxFailuresOfNetwork {
				failed()
			}
			taken, err := g.limits.UnknownKeys.Acquire(t.Context(), "taken", 2)
			g.must(err)
			defer taken.Release()
			var waiting sync.WaitGroup
			waiting.Go(failed)
			if name != "admin keys" { // which the database is not asked for
				eventually(t, "it waits for its turn", func() bool { return g.limits.UnknownKeys.Figures().Waiting > 0 })
			}
			b.ask(request{path: "/v1/tasks", header: from}).wantStatus(t, 200, "a session that is known")
			taken.Release()
			waiting.Wait()
		})
	}
}

// TestSignInsAreCounted checks that the sign-ins of an account are limited a minute, since each
// stores a row, and that those of operators are not.
func TestSignInsAreCounted(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	in := func(key string) answer {
		return g.send(request{method: http.MethodPost, path: session, body: `{"key":"` + key + `"}`})
	}
	for range 120 {
		in(g.key).wantStatus(t, 201)
	}
	a := in(g.key)
	a.wantError(t, 429, "rate_limit_error", "sign in 120 times a minute")
	a.wantWait(t, "1")
	in(g.other()).wantStatus(t, 201, "another account")
	in(adminKey).wantStatus(t, 201, "the operator")
}

// TestFailedSignInsAreLogged checks that failed sign-ins that may be guesses at the admin key are
// logged.
func TestFailedSignInsAreLogged(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	for range 5 {
		g.send(request{method: http.MethodPost, path: session, body: `{"key":"` + strings.Repeat("x", 40) + `"}`})
	}
	if lines := strings.Count(g.log.String(), `"msg":"failed logins of operators"`); lines != 1 {
		t.Errorf("%d lines: %s", lines, g.log)
	}
}

// TestSessionsAndCORS checks that no page of another origin may call with the cookie, whatever
// cors_origins allows.
func TestSessionsAndCORS(t *testing.T) {
	t.Parallel()
	g := newGateway(t, func(c *api.Config) { c.CORSOrigins = []string{"*", "https://app.example.com"} })
	b := g.signIn(g.key)
	origin := http.Header{"Origin": {"https://app.example.com"}}
	preflight := http.Header{"Origin": {"https://app.example.com"}, "Access-Control-Request-Method": {"POST"}, "Access-Control-Request-Headers": {"x-csrf-token"}}
	for _, a := range []answer{
		b.ask(request{path: "/v1/tasks", header: origin}), b.ask(request{path: session, header: origin}), b.ask(request{path: "/v1/balance", header: origin}),
		b.ask(request{method: http.MethodOptions, path: "/v1/tasks", header: preflight}), b.ask(request{method: http.MethodOptions, path: session, header: preflight}),
	} {
		if got := a.header.Get("Access-Control-Allow-Credentials"); got != "" {
			t.Errorf("Access-Control-Allow-Credentials is %q", got)
		}
	}
	b.ask(request{method: http.MethodPost, path: session, body: `{"key":"` + g.key + `"}`, header: origin}).wantError(t, 403, "permission_error", "another site")
}

// TestSessionsOfAdminListener checks that the operator signs in at the admin API's own listener
// and that both listeners serve the console. The cookie there is not one for TLS, since a proxy
// before that listener is unknown.
func TestSessionsOfAdminListener(t *testing.T) {
	t.Parallel()
	own, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	g := newGateway(t, func(c *api.Config) { c.AdminListener, c.PublicURL = own, "https://api.example.com" })
	public, adminAt := g.serve(), own.Addr().String()
	send := func(at string, r request, fields ...string) answer {
		t.Helper()
		s := dial(t, at)
		s.send(r.text("1.1", fields...))
		return s.answer()
	}
	signIn := func(at, key string) answer {
		t.Helper()
		return send(at, request{method: http.MethodPost, path: session, body: `{"key":"` + key + `"}`})
	}
	signIn(public, adminKey).wantStatus(t, 401, "the operator, where the admin API is not")
	a := signIn(public, g.key)
	if a.status != 201 || !strings.HasPrefix(a.header.Get("Set-Cookie"), "__Host-mediagate_session=") {
		t.Errorf("a client: %d %q", a.status, a.header.Get("Set-Cookie"))
	}
	a = signIn(adminAt, adminKey)
	cookie, _, _ := strings.Cut(a.header.Get("Set-Cookie"), ";")
	if a.status != 201 || !strings.HasPrefix(cookie, "mediagate_session=") {
		t.Fatalf("the operator: %d %q", a.status, cookie)
	}
	for path, want := range map[string][2]int{"/admin/v1/accounts": {404, 200}, session: {401, 200}, "/console": {404, 404}} {
		for i, at := range []string{public, adminAt} {
			if got := send(at, request{path: path}, "Cookie: "+cookie).status; got != want[i] {
				t.Errorf("%s at %s: %d, want %d", path, at, got, want[i])
			}
		}
	}
}
