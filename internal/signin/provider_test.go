package signin_test

import (
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/internal/outbound"
	"github.com/mediagate/mediagate/internal/signin"
	"github.com/mediagate/mediagate/internal/signin/issuertest"
)

const token = "a-token-of-a-browser"

func newProvider(t *testing.T, issuer string, change func(*signin.Config)) *signin.Provider {
	t.Helper()
	cfg := signin.Config{
		Issuer: issuer, ClientID: issuertest.ClientID, Secret: func() (string, error) { return issuertest.Secret, nil },
		Roles: map[string]mediagate.OperatorRole{
			"groups=ops": mediagate.RoleOperate, "groups=everybody": mediagate.RoleRead, "email=ada@example.com": mediagate.RoleAdmin,
		},
		RedirectURL: "https://api.example.com/console/oidc/callback",
		Rules:       outbound.Rules{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
		Now:         time.Now,
	}
	if change != nil {
		change(&cfg)
	}
	p, err := signin.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// signIn plays the browser with the token.
func signIn(t *testing.T, p *signin.Provider, i *issuertest.Issuer) (string, mediagate.OperatorRole, error) {
	t.Helper()
	address, err := p.Begin(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	code, state, err := i.Code(address)
	if err != nil {
		t.Fatal(err)
	}
	return p.Finish(t.Context(), token, url.Values{"state": {state}, "code": {code}})
}

func TestRolesOfClaims(t *testing.T) {
	t.Parallel()
	i := issuertest.New(t)
	p := newProvider(t, i.URL, nil)
	for name, tt := range map[string]struct {
		claims map[string]any
		name   string
		role   mediagate.OperatorRole
	}{
		"a value of a list":         {map[string]any{"groups": []string{"x", "ops"}}, "oidc:sub:sub-1", mediagate.RoleOperate},
		"the highest of several":    {map[string]any{"groups": []string{"everybody", "ops"}}, "oidc:sub:sub-1", mediagate.RoleOperate},
		"a text":                    {map[string]any{"groups": "everybody"}, "oidc:sub:sub-1", mediagate.RoleRead},
		"a verified address":        {map[string]any{"email": "ada@example.com", "email_verified": true}, "oidc:ada@example.com", mediagate.RoleAdmin},
		"verified in words":         {map[string]any{"email": "ada@example.com", "email_verified": "true"}, "oidc:ada@example.com", mediagate.RoleAdmin},
		"a name like an address":    {map[string]any{"sub": "ada@example.com", "groups": "ops"}, "oidc:sub:ada@example.com", mediagate.RoleOperate},
		"an address like a name":    {map[string]any{"email": "sub:ada@example.com", "email_verified": true, "groups": "ops"}, "oidc:sub:sub-1", mediagate.RoleOperate},
		"a quoted address":          {map[string]any{"email": `"ada"@example.com`, "email_verified": true, "groups": "ops"}, "oidc:sub:sub-1", mediagate.RoleOperate},
		"an address from the right": {map[string]any{"email": "\u202emoc.elpmaxe@ada", "email_verified": true, "groups": "ops"}, "oidc:sub:sub-1", mediagate.RoleOperate},
		"another script's letter":   {map[string]any{"email": "\u0430da@example.com", "email_verified": true, "groups": "ops"}, "oidc:sub:sub-1", mediagate.RoleOperate},
		"an address of anybody's":   {map[string]any{"email": "ada@example.com", "email_verified": false}, "", ""},
		"no claim":                  {map[string]any{}, "", ""},
		"another value":             {map[string]any{"groups": []string{"opsies", "op"}}, "", ""},
		"a claim of another shape":  {map[string]any{"groups": map[string]any{"ops": true}}, "", ""},
		"numbers":                   {map[string]any{"groups": []any{1, nil, true}}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			claims := map[string]any{"sub": "sub-1"}
			maps.Copy(claims, tt.claims)
			i.SignIn(claims)
			who, role, err := signIn(t, p, i)
			if who != tt.name || role != tt.role {
				t.Errorf("%s has the role %q: %v", who, role, err)
			}
			if tt.role == "" && (!mediagate.Is(err, mediagate.KindForbidden) || !strings.Contains(err.Error(), "oidc.roles")) {
				t.Errorf("without a role: %v", err)
			}
		})
	}
}

func TestTokensThatDoNotHold(t *testing.T) {
	t.Parallel()
	i := issuertest.New(t)
	p := newProvider(t, i.URL, nil)
	for name, tt := range map[string]struct {
		claims map[string]any
		clock  time.Duration
		want   string
	}{
		"another audience":                {claims: map[string]any{"aud": "other"}, want: "does not hold"},
		"for another party":               {claims: map[string]any{"aud": []string{"other", issuertest.ClientID}, "azp": "other"}, want: "does not hold"},
		"another nonce":                   {claims: map[string]any{"nonce": "other"}, want: "does not hold"},
		"without a nonce":                 {claims: map[string]any{"nonce": nil}, want: "does not hold"},
		"another issuer":                  {claims: map[string]any{"iss": "https://other.example.com"}, want: "does not hold"},
		"nobody":                          {claims: map[string]any{"sub": ""}, want: "names nobody"},
		"a name with a line break":        {claims: map[string]any{"sub": "a\nb"}, want: "names nobody"},
		"a name from the right":           {claims: map[string]any{"sub": "\u202enimda"}, want: "names nobody"},
		"a name of unseen characters":     {claims: map[string]any{"sub": "admin\u200b"}, want: "names nobody"},
		"a name with a space":             {claims: map[string]any{"sub": "sub-1 "}, want: "names nobody"},
		"a name in another script":        {claims: map[string]any{"sub": "\u0430dmin"}, want: "names nobody"},
		"a name without an end":           {claims: map[string]any{"sub": strings.Repeat("x", 256)}, want: "names nobody"},
		"a clock that is late":            {clock: -10 * time.Minute, want: "its clock and ours differ"},
		"a clock that is early":           {clock: 10 * time.Minute, want: "does not hold"},
		"a clock that is early by little": {clock: time.Minute},
		"a clock that is late by little":  {clock: -time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			claims := map[string]any{"sub": "sub-1", "groups": "ops"}
			maps.Copy(claims, tt.claims)
			i.SignIn(claims)
			i.SetClock(tt.clock)
			_, _, err := signIn(t, p, i)
			if tt.want == "" && err != nil {
				t.Errorf("refused: %v", err)
			}
			if tt.want != "" && (!mediagate.Is(err, mediagate.KindUnauthenticated) || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

func TestCodesAndStatesHoldOnce(t *testing.T) {
	t.Parallel()
	i := issuertest.New(t)
	i.SignIn(map[string]any{"sub": "sub-1", "groups": "ops"})
	p := newProvider(t, i.URL, nil)
	address, err := p.Begin(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	code, state, err := i.Code(address)
	if err != nil {
		t.Fatal(err)
	}
	finish := func(token, state, code string) error {
		_, _, err := p.Finish(t.Context(), token, url.Values{"state": {state}, "code": {code}})
		return err
	}
	if err := finish("the-token-of-another-browser", state, code); !mediagate.Is(err, mediagate.KindUnauthenticated) {
		t.Errorf("in another browser: %v", err)
	}
	if err := finish(token, state+"x", code); !mediagate.Is(err, mediagate.KindUnauthenticated) {
		t.Errorf("another state: %v", err)
	}
	if err := finish(token, state, code); err != nil {
		t.Errorf("at first: %v", err)
	}
	if err := finish(token, state, code); !mediagate.Is(err, mediagate.KindUnauthenticated) {
		t.Errorf("a second time: %v", err)
	}
	// A code that another browser got is worth nothing here: its challenge was another one.
	other, err := p.Begin(t.Context(), "the-token-of-another-browser")
	if err != nil {
		t.Fatal(err)
	}
	stolen, _, err := i.Code(other)
	if err != nil {
		t.Fatal(err)
	}
	if err := finish(token, state, stolen); !mediagate.Is(err, mediagate.KindUnauthenticated) {
		t.Errorf("another browser's code: %v", err)
	}
}

func TestKeysRotate(t *testing.T) {
	t.Parallel()
	i := issuertest.New(t)
	i.SignIn(map[string]any{"sub": "sub-1", "groups": "ops"})
	p := newProvider(t, i.URL, nil)
	for n := range 3 {
		if _, _, err := signIn(t, p, i); err != nil {
			t.Errorf("after %d rotations: %v", n, err)
		}
		i.Rotate()
	}
}

func TestBeginAsksForWhatRolesNeed(t *testing.T) {
	t.Parallel()
	i := issuertest.New(t)
	address, err := newProvider(t, i.URL, nil).Begin(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	if q.Get("scope") != "openid profile email groups" || q.Get("code_challenge_method") != "S256" || len(q.Get("code_challenge")) != 43 || len(q.Get("nonce")) != 43 {
		t.Errorf("sent to %s", address)
	}
	if strings.Contains(address, token) || strings.Contains(address, issuertest.Secret) {
		t.Errorf("a secret is in %s", address)
	}
}

func TestProvidersThatAreNone(t *testing.T) {
	t.Parallel()
	answering := func(status int, format, body string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", format)
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for name, issuer := range map[string]string{
		"away":           gone.URL,
		"a page":         answering(200, "text/html", "<html>a proxy</html>"),
		"a failure":      answering(500, "text/html", strings.Repeat("x", 1<<16)),
		"without an end": answering(200, "application/json", `{"issuer":"`+strings.Repeat("x", 2<<20)),
		"another issuer": answering(200, "application/json", `{"issuer":"https://other.example.com"}`),
		"without keys":   answering(200, "application/json", `{}`),
		"a redirect":     answering(302, "text/html", ""),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, issuer, nil)
			if _, err := p.Begin(t.Context(), token); !mediagate.Is(err, mediagate.KindUnavailable) || len(err.Error()) > 400 {
				t.Errorf("%v", err)
			}
			if err := p.Check(t.Context()); err == nil {
				t.Error("nothing is wrong with it")
			}
		})
	}
}

// What the provider said of itself stays in use while it is away: its answer to the code decides.
func TestProviderComesAndGoes(t *testing.T) {
	t.Parallel()
	i := issuertest.New(t)
	i.SignIn(map[string]any{"sub": "sub-1", "groups": "ops"})
	p := newProvider(t, i.URL, nil)
	if err := p.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	i.SetHTML(true)
	if _, _, err := signIn(t, p, i); err == nil {
		t.Error("signed in by a page")
	}
	i.SetHTML(false)
	if _, _, err := signIn(t, p, i); err != nil {
		t.Error(err)
	}
}

func TestClientSecret(t *testing.T) {
	t.Parallel()
	i := issuertest.New(t)
	i.SignIn(map[string]any{"sub": "sub-1", "groups": "ops"})
	secret, unread := "another secret", error(nil)
	p := newProvider(t, i.URL, func(c *signin.Config) { c.Secret = func() (string, error) { return secret, unread } })
	if _, _, err := signIn(t, p, i); !mediagate.Is(err, mediagate.KindUnauthenticated) || strings.Contains(err.Error(), secret) {
		t.Errorf("a wrong secret: %v", err)
	}
	secret = issuertest.Secret // it is read anew
	if _, _, err := signIn(t, p, i); err != nil {
		t.Error(err)
	}
	unread = errors.New("no such file")
	if _, _, err := signIn(t, p, i); !errors.Is(err, unread) {
		t.Errorf("no secret: %v", err)
	}
}

func TestFingerprint(t *testing.T) {
	t.Parallel()
	one := newProvider(t, "https://login.example.com", nil)
	if same := newProvider(t, "https://login.example.com", nil); same.Fingerprint() != one.Fingerprint() {
		t.Error("the same settings have two fingerprints")
	}
	other := newProvider(t, "https://login.example.com", func(c *signin.Config) { c.Roles = map[string]mediagate.OperatorRole{"groups=ops": mediagate.RoleRead} })
	if other.Fingerprint() == one.Fingerprint() {
		t.Error("other roles have the same fingerprint")
	}
	if one.Host() != "login.example.com" {
		t.Errorf("host %s", one.Host())
	}
}
