package signin

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/mail"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/internal/outbound"
)

// Bounds of the conversation with a provider.
const (
	callTimeout = 5 * time.Second
	maxAnswer   = 1 << 20
	freshFor    = 10 * time.Minute // what the provider says of itself is asked for again then
	retryAfter  = 5 * time.Second  // and so soon after a failure
	clockLeeway = 5 * time.Minute  // by which a token may be issued in our future
	maxName     = 255
)

// What the names of people begin with. No operator of the settings is named so.
const (
	oidcEmail   = "oidc:"
	oidcSubject = "oidc:sub:"
)

// Config says by whom and how operators are signed in.
type Config struct {
	Issuer   string
	ClientID string
	// Secret reads the client's secret. It is asked at each sign-in, so a new one needs no restart.
	Secret func() (string, error)
	// Roles are given for claims of a token, written claim=value. The value of a claim that is a
	// list is any of its texts.
	Roles map[string]mediagate.OperatorRole
	// RedirectURL is where the provider sends browsers back.
	RedirectURL string
	Rules       outbound.Rules
	Now         func() time.Time
}

// Provider is the identity provider that the settings name. Its methods may be called at the
// same time.
type Provider struct {
	cfg         Config
	host        string
	fingerprint [32]byte
	client      *http.Client

	mu     sync.Mutex
	found  *discovered
	err    error         // of the last try to ask it
	tried  time.Time     // when that ended
	asking chan struct{} // closed at the end of the try under way; nil: there is none
}

// discovered is what a provider says of itself.
type discovered struct {
	verifier *oidc.IDTokenVerifier
	config   oauth2.Config // without the secret
}

// New makes a Provider, which need not be there yet. The host of the issuer may be private: an operator
// chose it. Other hosts that it names are held to the rules.
func New(cfg Config) (*Provider, error) {
	host, err := outbound.Host(cfg.Issuer)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(cfg.Issuer)
	if err != nil {
		return nil, err
	}
	settings, err := json.Marshal([]any{cfg.Issuer, cfg.ClientID, cfg.Roles})
	if err != nil {
		return nil, err
	}
	client := cfg.Rules.Client(outbound.Options{Timeout: callTimeout, IgnorePorts: true, AllowHosts: []string{host}})
	client.Transport = bounded{client.Transport}
	return &Provider{cfg: cfg, host: u.Host, fingerprint: sha256.Sum256(settings), client: client}, nil
}

// bounded cuts answers off that are too long to be a provider's.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxAnswer), resp.Body}
	}
	return resp, err
}

// Host is that of the issuer, with its port, by which people know the provider.
func (p *Provider) Host() string { return p.host }

// Fingerprint is the hash of the settings on which a session's name and role depend.
func (p *Provider) Fingerprint() [32]byte { return p.fingerprint }

// Check reports why operators cannot sign in, as far as the provider shows it.
func (p *Provider) Check(ctx context.Context) error {
	_, err := p.discover(ctx)
	return err
}

// discover returns what the provider said of itself last, and the error of the last try to ask
// it. When that is old it asks again, and waits for the answer until ctx ends.
func (p *Provider) discover(ctx context.Context) (*discovered, error) {
	p.mu.Lock()
	if p.asking == nil && p.isOld() {
		p.asking = make(chan struct{})
		go p.refresh(p.asking) //nolint:gosec // others wait for the answer too: it outlasts this call
	}
	asking := p.asking
	p.mu.Unlock()
	if asking != nil {
		select {
		case <-asking:
		case <-ctx.Done():
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tried.IsZero() {
		return nil, p.away(ctx.Err())
	}
	return p.found, p.err
}

// isOld reports whether the provider is to be asked again.
func (p *Provider) isOld() bool {
	keep := freshFor
	if p.err != nil {
		keep = retryAfter
	}
	return p.tried.IsZero() || time.Since(p.tried) >= keep
}

// refresh asks the provider, keeps what it answers, and closes the channel. What it said before
// stays in use while it does not answer.
func (p *Provider) refresh(done chan struct{}) {
	defer close(done)
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	found, err := p.ask(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asking, p.tried, p.err = nil, time.Now(), err
	if err == nil {
		p.found = found
	}
}

// ask reads the provider's own document.
func (p *Provider) ask(ctx context.Context) (*discovered, error) {
	ctx = oidc.ClientContext(ctx, p.client)
	provider, err := oidc.NewProvider(ctx, p.cfg.Issuer)
	if err != nil {
		return nil, p.away(fmt.Errorf("%.200s", err.Error())) // it may hold a whole page
	}
	var more struct {
		Keys    string   `json:"jwks_uri"`
		Scopes  []string `json:"scopes_supported"`
		Methods []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := provider.Claims(&more); err != nil {
		return nil, p.away(err)
	}
	endpoint := provider.Endpoint()
	for name, address := range map[string]string{"authorization_endpoint": endpoint.AuthURL, "token_endpoint": endpoint.TokenURL, "jwks_uri": more.Keys} {
		if err := p.checkEndpoint(address); err != nil {
			return nil, p.away(fmt.Errorf("%s %w", name, err))
		}
	}
	// Each way is tried once: a provider may hold a second use of the code for a theft.
	endpoint.AuthStyle = oauth2.AuthStyleInHeader
	if slices.Contains(more.Methods, "client_secret_post") && !slices.Contains(more.Methods, "client_secret_basic") {
		endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	return &discovered{
		verifier: provider.Verifier(&oidc.Config{ClientID: p.cfg.ClientID, Now: p.cfg.Now}),
		config:   oauth2.Config{ClientID: p.cfg.ClientID, Endpoint: endpoint, RedirectURL: p.cfg.RedirectURL, Scopes: p.scopes(more.Scopes)},
	}, nil
}

// checkEndpoint refuses an address to which the secret or a code would go less safely than to the issuer.
func (p *Provider) checkEndpoint(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || strings.HasPrefix(p.cfg.Issuer, "https:")) {
		return errors.New("is no https URL")
	}
	return nil
}

// scopes are those that are asked for. A claim of the roles is also asked for by a scope of its name
// where the provider has one, as many do for groups.
func (p *Provider) scopes(supported []string) []string {
	scopes := []string{oidc.ScopeOpenID, oidc.ScopeProfile, oidc.ScopeEmail}
	for _, scope := range supported {
		for rule := range p.cfg.Roles {
			claim, _, _ := strings.Cut(rule, "=")
			if claim == scope && !slices.Contains(scopes, scope) {
				scopes = append(scopes, scope)
			}
		}
	}
	return scopes
}

// away is the error of a provider that does not answer, or not as one does.
func (p *Provider) away(err error) error {
	return &mediagate.Error{Kind: mediagate.KindUnavailable, Message: p.host + " does not answer as an identity provider", Err: err}
}

// derive makes a value of the token that tells nothing of it.
func derive(token, what string) string {
	mac := hmac.New(sha256.New, []byte(token))
	_, _ = mac.Write([]byte("mediagate oidc " + what)) // never fails
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// Begin returns the address at the provider to which the browser goes that has the token.
// Returns KindUnavailable.
func (p *Provider) Begin(ctx context.Context, token string) (string, error) {
	found, err := p.discover(ctx)
	if found == nil {
		return "", err
	}
	return found.config.AuthCodeURL(derive(token, "state"), oidc.Nonce(derive(token, "nonce")), oauth2.S256ChallengeOption(derive(token, "verifier"))), nil
}

// Finish exchanges the answer that the browser brings back for name and role of the operator. The
// answer is anybody's unless its state is right, so the state is checked first. Returns
// KindUnauthenticated where code, state or token do not hold, KindForbidden for a person whom the
// provider refuses or who has no role, and KindUnavailable.
func (p *Provider) Finish(ctx context.Context, token string, answer url.Values) (string, mediagate.OperatorRole, error) {
	if subtle.ConstantTimeCompare([]byte(answer.Get("state")), []byte(derive(token, "state"))) != 1 {
		return "", "", refusal("the answer belongs to another sign-in: begin again", nil)
	}
	if reason := answer.Get("error"); reason != "" {
		return "", "", mediagate.Errorf(mediagate.KindForbidden, "%s did not sign you in: %.40q", p.host, reason)
	}
	found, err := p.discover(ctx)
	if found == nil {
		return "", "", err
	}
	raw, err := p.exchange(ctx, found.config, answer.Get("code"), derive(token, "verifier"))
	if err != nil {
		return "", "", err
	}
	verified, err := found.verifier.Verify(ctx, raw)
	if err == nil {
		err = p.check(verified, derive(token, "nonce"))
	}
	if _, expired := errors.AsType[*oidc.TokenExpiredError](err); expired {
		return "", "", refusal("the identity provider's token has expired: its clock and ours differ", err)
	}
	if err != nil {
		return "", "", refusal("the identity provider's token does not hold here", err)
	}
	var claims map[string]any
	if err := verified.Claims(&claims); err != nil {
		return "", "", refusal("the identity provider's token cannot be read", err)
	}
	name, err := nameOf(verified.Subject, claims)
	if err != nil {
		return "", "", err
	}
	role := p.roleOf(claims)
	if role == "" {
		return "", "", mediagate.Errorf(mediagate.KindForbidden,
			"%s signed you in as %s, who has no role here: ask those who run this gateway to give you one (setting oidc.roles)", p.host, name)
	}
	return name, role, nil
}

func refusal(message string, err error) error {
	return &mediagate.Error{Kind: mediagate.KindUnauthenticated, Message: message, Err: err}
}

// exchange exchanges the code for an ID token.
func (p *Provider) exchange(ctx context.Context, config oauth2.Config, code, verifier string) (string, error) {
	secret, err := p.cfg.Secret()
	if err != nil {
		return "", fmt.Errorf("read the client's secret: %w", err)
	}
	config.ClientSecret = secret
	tokens, err := config.Exchange(oidc.ClientContext(ctx, p.client), code, oauth2.VerifierOption(verifier))
	if answer, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		// The answer's body is left out: it may quote the request.
		told := fmt.Errorf("status %d, %.40q", answer.Response.StatusCode, answer.ErrorCode)
		if answer.Response.StatusCode >= http.StatusInternalServerError {
			return "", p.away(told)
		}
		return "", refusal("the identity provider did not take its code: begin again", told)
	}
	if err != nil {
		return "", p.away(errors.New(outbound.Describe(err)))
	}
	raw, ok := tokens.Extra("id_token").(string)
	if !ok {
		return "", refusal("the identity provider's answer has no ID token", nil)
	}
	return raw, nil
}

// check holds a token to what go-oidc leaves to its callers.
func (p *Provider) check(token *oidc.IDToken, nonce string) error {
	var claims struct {
		Party string `json:"azp"`
	}
	if err := token.Claims(&claims); err != nil {
		return err
	}
	switch {
	case subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(nonce)) != 1:
		return errors.New("the nonce is another sign-in's")
	case claims.Party != "" && claims.Party != p.cfg.ClientID:
		return fmt.Errorf("the authorized party is %.80q", claims.Party)
	case token.IssuedAt.After(p.cfg.Now().Add(clockLeeway)):
		return fmt.Errorf("issued at %s, which is still to come", token.IssuedAt.UTC().Format(time.RFC3339))
	}
	return nil
}

// nameOf is the operator's name: the email address that the provider has verified, or else the
// provider's own name for the account. The two never meet, for an address has no colon. No name
// looks like another one by characters that nobody sees, or that have a twin in another script.
func nameOf(subject string, claims map[string]any) (string, error) {
	if email, ok := claims["email"].(string); ok && isVerified(claims) && isPlain(email) && isAddress(email) {
		return oidcEmail + email, nil
	}
	if !isPlain(subject) {
		return "", refusal("the identity provider's token names nobody: neither by a verified email address nor by a sub, in printable ASCII without spaces", nil)
	}
	return oidcSubject + subject, nil
}

// isPlain reports whether the text is printable ASCII without spaces. OpenID Connect has a sub in ASCII.
func isPlain(text string) bool {
	return text != "" && len(text) <= maxName && !strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c > '~' })
}

// isAddress reports whether the text is an email address, written without quotes.
func isAddress(text string) bool {
	address, err := mail.ParseAddress(text)
	return err == nil && address.Address == text
}

// isVerified reports whether the email address is the person's. Some providers write it as a text.
func isVerified(claims map[string]any) bool {
	return claims["email_verified"] == true || claims["email_verified"] == "true"
}

// roleOf is the highest role that the claims give; empty: none. An email address gives one only
// when it is verified: anybody may claim another.
func (p *Provider) roleOf(claims map[string]any) (highest mediagate.OperatorRole) {
	for rule, role := range p.cfg.Roles {
		claim, value, _ := strings.Cut(rule, "=")
		if claim == "email" && !isVerified(claims) {
			continue
		}
		if hasValue(claims[claim], value) && (highest == "" || role.Includes(highest)) {
			highest = role
		}
	}
	return highest
}

// hasValue reports whether a claim is the text, or a list that has it.
func hasValue(claim any, value string) bool {
	list, ok := claim.([]any)
	if !ok {
		return claim == value
	}
	return slices.Contains(list, any(value))
}
