package vertex_test

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/providertest"
	"github.com/mediagate/mediagate/providers/vertex"
)

// clock is a clock that the test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

const tokenRoute = "POST /token"

func tokenOf(n string) providertest.Reply {
	return providertest.Reply{Body: `{"access_token":"` + n + `","expires_in":3600,"token_type":"Bearer"}`}
}

// used returns the tokens of the calls in line.
func used(v *providertest.Vendor) []string {
	var tokens []string
	for _, r := range v.Unrouted() {
		tokens = append(tokens, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	}
	return tokens
}

// A token serves many calls. The adapter replaces it before its end, and once if the vendor refuses
// it.
func TestTokens(t *testing.T) {
	t.Parallel()
	s, at := suite(), &clock{now: time.Now()}
	vendor := providertest.NewVendor(t)
	vendor.On(tokenRoute, tokenOf("first-token"), tokenOf("second-token"), tokenOf("third-token"))
	p := s.Open(t, vendor.URL, providers.Options{Now: at.Now})
	poll := func(replies ...providertest.Reply) {
		t.Helper()
		vendor.Add(replies...)
		if _, err := p.Poll(t.Context(), s.Ref); err != nil {
			t.Fatal(err)
		}
	}
	poll(word("false"))
	at.Advance(54 * time.Minute)
	poll(word("false"))
	at.Advance(2 * time.Minute) // less than tokenMargin is left
	poll(word("false"))
	poll(refusal(401, "UNAUTHENTICATED", "expired"), word("false"))
	poll(word("false"))
	want := "first-token first-token second-token second-token third-token third-token"
	if got := strings.Join(used(vendor), " "); got != want {
		t.Errorf("tokens %s, want %s", got, want)
	}
	if n := len(vendor.RequestsOn(tokenRoute)); n != 3 {
		t.Errorf("%d tokens were made, want 3", n)
	}
}

// Concurrent calls share one new token.
func TestOneTokenForAll(t *testing.T) {
	t.Parallel()
	s := suite()
	vendor := providertest.NewVendor(t)
	vendor.On(tokenRoute, granted)
	p := s.Open(t, vendor.URL, providers.Options{})
	var polls sync.WaitGroup
	for range 10 {
		vendor.Add(word("false"))
		polls.Go(func() {
			if _, err := p.Poll(t.Context(), s.Ref); err != nil {
				t.Error(err)
			}
		})
	}
	polls.Wait()
	if n := len(vendor.RequestsOn(tokenRoute)); n != 1 {
		t.Errorf("%d tokens were made, want 1", n)
	}
}

// The assertion names the account, the scope and the address of the tokens.
func TestAssertion(t *testing.T) {
	t.Parallel()
	s := suite()
	vendor := s.Vendor(t, word("false"))
	if _, err := s.Open(t, vendor.URL, providers.Options{}).Poll(t.Context(), s.Ref); err != nil {
		t.Fatal(err)
	}
	form, err := url.ParseQuery(vendor.RequestsOn(tokenRoute)[0].Body)
	if err != nil || form.Get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" {
		t.Fatalf("%v, %v", form, err)
	}
	claims := jwt.MapClaims{}
	key, err := jwt.ParseRSAPrivateKeyFromPEM([]byte(privateKey()))
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := jwt.ParseWithClaims(form.Get("assertion"), claims, func(*jwt.Token) (any, error) { return &key.PublicKey, nil })
	if err != nil || parsed.Header["alg"] != "RS256" || parsed.Header["kid"] != "4f1c0a77b2d94a6c8a6f0d1e2b3c4d5e" {
		t.Fatalf("%v, %v", parsed, err)
	}
	if claims["iss"] != "gateway@acme-media.iam.gserviceaccount.com" || claims["aud"] != vendor.URL+"/token" ||
		claims["scope"] != "https://www.googleapis.com/auth/cloud-platform" {
		t.Errorf("claims %v", claims)
	}
}

// Only the token server's own error words prove that the account is invalid.
func TestTokenRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		reply        providertest.Reply
		submit, poll mediagate.Kind
	}{
		"no such account": {providertest.Reply{Status: 400, Body: `{"error":"invalid_grant","error_description":"Invalid grant: account not found"}`}, mediagate.KindCredentials, mediagate.KindCredentials},
		"wrong signature": {providertest.Reply{Status: 401, Body: `{"error":"invalid_client"}`}, mediagate.KindCredentials, mediagate.KindCredentials},
		"another word":    {providertest.Reply{Status: 400, Body: `{"error":"slow_down"}`}, mediagate.KindUnreached, mediagate.KindTransient},
		"its words, 503":  {providertest.Reply{Status: 503, Body: `{"error":"invalid_grant"}`}, mediagate.KindUnreached, mediagate.KindTransient},
		"HTML 401":        {providertest.Reply{Status: 401, Body: "<html>"}, mediagate.KindUnreached, mediagate.KindTransient},
		"no token":        {providertest.Reply{Body: `{"expires_in":3600}`}, mediagate.KindUnreached, mediagate.KindTransient},
		"no header's":     {providertest.Reply{Body: `{"access_token":"a\nb"}`}, mediagate.KindUnreached, mediagate.KindTransient},
		"an endless one":  {tokenOf(strings.Repeat("x", 9000)), mediagate.KindUnreached, mediagate.KindTransient},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := suite()
			vendor := providertest.NewVendor(t)
			vendor.On(tokenRoute, tt.reply)
			p := s.Open(t, vendor.URL, providers.Options{})
			job := s.Job
			job.Inputs = providertest.Inputs(s.Files)
			if _, err := p.Submit(t.Context(), job); !mediagate.Is(err, tt.submit) {
				t.Errorf("Submit: %v, want %v", err, tt.submit)
			}
			if _, err := p.Poll(t.Context(), s.Ref); !mediagate.Is(err, tt.poll) {
				t.Errorf("Poll: %v, want %v", err, tt.poll)
			}
			if n := len(vendor.Unrouted()); n != 0 {
				t.Errorf("%d calls without a token", n)
			}
		})
	}
}

// The settings may contain the account or the path of its file.
func TestServiceAccount(t *testing.T) {
	t.Parallel()
	good := account("https://oauth2.googleapis.com/token")
	file := filepath.Join(t.TempDir(), "key.json")
	if err := os.WriteFile(file, []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ value, problem string }{
		"JSON":              {good, ""},
		"JSON with space":   {"\n  " + good + "\n", ""},
		"a file":            {file, ""},
		"no token_uri":      {account(""), ""},
		"nothing":           {"", "is missing"},
		"no such file":      {file + ".old", "neither JSON nor the path of a file"},
		"a folder":          {filepath.Dir(file), "neither JSON nor the path of a file"},
		"half of it":        {good[:100], "is no JSON"},
		"another type":      {strings.Replace(good, `"type": "service_account"`, `"type": "authorized_user"`, 1), "must be the key of a service account"},
		"no email":          {strings.Replace(good, `"client_email"`, `"client_mail"`, 1), "no client_email"},
		"no key":            {strings.Replace(good, `"private_key"`, `"key"`, 1), "no private_key"},
		"a broken key":      {strings.Replace(good, "BEGIN PRIVATE KEY", "BEGIN KEY", 1), "no private_key"},
		"tokens by a file":  {account("file:///etc/passwd"), "token_uri"},
		"tokens of nowhere": {account("https://"), "token_uri"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ch := suite().Channel
			ch.Credentials["service_account"] = mediagate.NewSecret(tt.value)
			a, err := vertex.New(ch, providers.Options{})
			switch {
			case tt.problem == "" && err == nil:
				a.Close()
			case tt.problem == "", err == nil, !strings.Contains(err.Error(), tt.problem), !strings.Contains(err.Error(), "credentials.service_account"):
				t.Errorf("%v, want %q", err, tt.problem)
			}
		})
	}
}

// The host depends on the location.
func TestPublicHosts(t *testing.T) {
	t.Parallel()
	for location, ok := range map[string]bool{"us-central1": true, "global": true, "europe-west4": true, "US": false, "a.example.com/": false, "../x": false} {
		ch := suite().Channel
		ch.Credentials["location"] = mediagate.NewSecret(location)
		a, err := vertex.New(ch, providers.Options{})
		if (err == nil) != ok {
			t.Errorf("%s: %v", location, err)
		}
		if err == nil {
			a.Close()
		}
	}
}

// A missing reference, or one of another adapter, proves nothing about a job.
func TestForeignReferences(t *testing.T) {
	t.Parallel()
	s := suite()
	vendor := s.Vendor(t)
	p := s.Open(t, vendor.URL, providers.Options{})
	for _, state := range []string{"", "1", "x " + owner, "0 " + owner, "1 " + owner + "?a=b", "1 ../" + owner} {
		ref := s.Ref
		ref.State = state
		if _, err := p.Poll(t.Context(), ref); !mediagate.Is(err, mediagate.KindTransient) {
			t.Errorf("%q: %v", state, err)
		}
	}
	if _, err := p.Poll(t.Context(), mediagate.JobRef{}); !mediagate.Is(err, mediagate.KindNotFound) {
		t.Error(err)
	}
	for _, ref := range []string{"", "-1", "x"} {
		if _, _, err := p.(providers.Opener).Open(t.Context(), s.Ref, mediagate.Media{Ref: ref}); !mediagate.Is(err, mediagate.KindTransient) {
			t.Errorf("file %q: %v", ref, err)
		}
	}
	if n := len(vendor.Requests()); n != 0 {
		t.Errorf("%d calls", n)
	}
}

// A call waits for a token no longer than its context permits.
func TestTokenTooLate(t *testing.T) {
	t.Parallel()
	s := suite()
	vendor := s.Vendor(t)
	vendor.On(tokenRoute, providertest.Reply{Fault: providertest.StallHead})
	p := s.Open(t, vendor.URL, providers.Options{})
	first, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := p.Poll(first, s.Ref)
		ended <- err
	}()
	for len(vendor.RequestsOn(tokenRoute)) == 0 {
		time.Sleep(time.Millisecond)
	}
	second, stop := context.WithTimeout(t.Context(), time.Millisecond)
	defer stop()
	if _, err := p.Poll(second, s.Ref); !mediagate.Is(err, mediagate.KindTransient) || !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	cancel()
	if err := <-ended; !mediagate.Is(err, mediagate.KindTransient) {
		t.Error(err)
	}
}
