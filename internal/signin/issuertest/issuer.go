// Package issuertest is a small OpenID Connect provider for tests. It signs in the person that the
// test chooses, at once and without a password, and can misbehave in the ways that tests need.
package issuertest

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// The client that an Issuer knows.
const (
	ClientID = "mediagate"
	Secret   = "the-secret-of-the-client"
)

// Issuer is a provider on the loopback. Its methods change its behaviour between sign-ins.
type Issuer struct {
	*httptest.Server

	mu    sync.Mutex
	key   *rsa.PrivateKey
	kid   string
	codes map[string]request

	// claims are added to each token, and replace its own claims of the same name.
	claims map[string]any
	clock  time.Duration // by which its clock is ahead
	html   bool          // answers everything with a page
}

// request holds the parameters with which a browser was sent to the issuer.
type request struct{ nonce, challenge, redirect string }

// New starts an issuer, which stops with the test.
func New(tb testing.TB) *Issuer {
	tb.Helper()
	i := &Issuer{codes: map[string]request{}, claims: map[string]any{"sub": "nobody"}}
	i.Rotate()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", i.discovery)
	mux.HandleFunc("GET /authorize", i.authorize)
	mux.HandleFunc("POST /token", i.token)
	mux.HandleFunc("GET /keys", i.keys)
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if i.isHTML() {
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte("<html>a proxy</html>"))
			return
		}
		mux.ServeHTTP(w, r)
	}))
	tb.Cleanup(i.Close)
	return i
}

// SignIn sets whom the issuer signs in from now on, by the claims of its tokens.
func (i *Issuer) SignIn(claims map[string]any) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.claims = claims
}

// SetClock sets the issuer's clock ahead, or back if ahead is negative.
func (i *Issuer) SetClock(ahead time.Duration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.clock = ahead
}

// SetHTML makes the issuer answer every request with a page, as a proxy in front of it may.
func (i *Issuer) SetHTML(html bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.html = html
}

func (i *Issuer) isHTML() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.html
}

// Rotate replaces the issuer's signing key.
func (i *Issuer) Rotate() {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err) // there is no randomness
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.key, i.kid = key, rand.Text()
}

// Code returns the code and the state with which the issuer would redirect a browser that was sent
// to the address.
func (i *Issuer) Code(address string) (code, state string, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", "", err
	}
	q := u.Query()
	return i.grant(q), q.Get("state"), nil
}

func (i *Issuer) grant(q url.Values) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	code := rand.Text()
	i.codes[code] = request{nonce: q.Get("nonce"), challenge: q.Get("code_challenge"), redirect: q.Get("redirect_uri")}
	return code
}

func (i *Issuer) discovery(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]any{
		"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token", "jwks_uri": i.URL + "/keys",
		"id_token_signing_alg_values_supported": []string{"RS256"}, "scopes_supported": []string{"openid", "email", "groups"},
	})
}

func (i *Issuer) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("client_id") != ClientID || q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" {
		http.Error(w, "invalid_request", http.StatusBadRequest)
		return
	}
	back := url.Values{"code": {i.grant(q)}, "state": {q.Get("state")}}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound) //nolint:gosec // a test's own client asks
}

// token exchanges a code once.
func (i *Issuer) token(w http.ResponseWriter, r *http.Request) {
	id, secret, _ := r.BasicAuth()
	code := r.PostFormValue("code")
	i.mu.Lock()
	defer i.mu.Unlock()
	asked, ok := i.codes[code]
	delete(i.codes, code)
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	switch {
	case id != ClientID || secret != Secret:
		answer(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client"})
		return
	case !ok || asked.redirect != r.PostFormValue("redirect_uri") || asked.challenge != base64.RawURLEncoding.EncodeToString(sum[:]):
		answer(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant"})
		return
	}
	now := time.Now().Add(i.clock)
	claims := jwt.MapClaims{"iss": i.URL, "aud": ClientID, "iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix(), "nonce": asked.nonce}
	maps.Copy(claims, i.claims)
	unsigned := jwt.NewWithClaims(jwt.SigningMethodRS256, claims)
	unsigned.Header["kid"] = i.kid
	signed, err := unsigned.SignedString(i.key)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answer(w, http.StatusOK, map[string]any{"access_token": rand.Text(), "token_type": "Bearer", "expires_in": 300, "id_token": signed})
}

func (i *Issuer) keys(w http.ResponseWriter, _ *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	answer(w, http.StatusOK, map[string]any{"keys": []any{map[string]any{
		"kty": "RSA", "use": "sig", "alg": "RS256", "kid": i.kid,
		"n": base64.RawURLEncoding.EncodeToString(i.key.N.Bytes()),
		"e": base64.RawURLEncoding.EncodeToString(big.NewInt(int64(i.key.E)).Bytes()),
	}}})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
