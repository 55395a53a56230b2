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
	freshFor    = 10 * time.Minute // how long the provider's configuration is used before it is read again
	retryAfter  = 5 * time.Second  // the same after a failed try
	clockLeeway = 5 * time.Minute  // by which a token may be issued in our future
	maxName     = 255
)

// The prefixes of the names of people who sign in. No operator in the settings can have such a
// name.
const (
	oidcEmail   = "oidc:"
	oidcSubject = "oidc:sub:"
)

// Config configures a Provider.
type Config struct {
	Issuer   string
	ClientID string
	// Secret reads the client's secret. It is called at each sign-in, so a new secret needs no
	// restart.
	Secret func() (string, error)
	// Roles maps claims of a token, written claim=value, to roles. A claim that is a list has each
	// of its texts as a value.
	Roles map[string]mediagate.OperatorRole
	// RedirectURL is the address to which the provider sends browsers back.
	RedirectURL string
	Rules       outbound.Rules
	Now         func() time.Time
}

// Provider is the identity provider that the settings name. It is safe for concurrent use.
type Provider struct {
	cfg         Config
	host        string
	fingerprint [32]byte
	client      *http.Client

	mu     sync.Mutex
	found  *discovered
	err    error         // of the last try to read the configuration
	tried  time.Time     // when that try ended
	asking chan struct{} // closed when the current try ends; nil if none is in progress
}

// discovered is the configuration that a provider publishes.
type discovered struct {
	verifier *oidc.IDTokenVerifier
	config   oauth2.Config // without the secret
}

// New makes a Provider. The provider's server need not be reachable yet. The host of the issuer may
// be private, since an operator chose it. Other hosts that the provider names must keep the address
// rules.
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

// bounded is a transport that cuts off answers longer than maxAnswer.
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

// Host returns the host of the issuer, with its port if it has one. People know the provider by it.
func (p *Provider) Host() string { return p.host }

// Fingerprint returns the hash of the settings on which a session's name and role depend.
func (p *Provider) Fingerprint() [32]byte { return p.fingerprint }

// Check returns the error of the last try to read the provider's configuration.
func (p *Provider) Check(ctx context.Context) error {
	_, err := p.discover(ctx)
	return err
}

// discover returns the last configuration that the provider published, and the error of the last
// try to read it. If that try is too long ago, discover starts another one, and waits until the try
// or ctx ends.
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

// isOld reports whether the configuration must be read again.
func (p *Provider) isOld() bool {
	keep := freshFor
	if p.err != nil {
		keep = retryAfter
	}
	return p.tried.IsZero() || time.Since(p.tried) >= keep
}

// refresh reads the provider's configuration, stores it, and closes the channel. If that fails, the
// last configuration stays in use.
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

// ask reads the provider's discovery document.
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
	// Only one way of authentication is tried: a provider may take a second use of the code for
	// theft.
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

// scopes returns the scopes to ask for. If the provider has a scope with the name of a claim in
// Roles, as many have for groups, the result includes it.
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

// away returns the error of a provider that does not answer, or does not answer like a provider.
func (p *Provider) away(err error) error {
	return &mediagate.Error{Kind: mediagate.KindUnavailable, Message: p.host + " does not answer as an identity provider", Err: err}
}

// derive derives a value from the token that reveals nothing about the token.
func derive(token, what string) string {
	mac := hmac.New(sha256.New, []byte(token))
	_, _ = mac.Write([]byte("mediagate oidc " + what)) // never fails
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// Begin returns the address at the provider to which the browser with this token is sent. Its
// errors are of KindUnavailable.
func (p *Provider) Begin(ctx context.Context, token string) (string, error) {
	found, err := p.discover(ctx)
	if found == nil {
		return "", err
	}
	return found.config.AuthCodeURL(derive(token, "state"), oidc.Nonce(derive(token, "nonce")), oauth2.S256ChallengeOption(derive(token, "verifier"))), nil
}

// Finish exchanges the answer that the browser brings back for the operator's name and role. It
// checks the state first, since anybody can make up an answer with a wrong state. It returns
// KindUnauthenticated for a wrong code, state or token, KindForbidden for a person whom the
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

// check checks what go-oidc leaves to its callers: the nonce, the authorized party and the time of
// issue.
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

// nameOf returns the operator's name: the email address, if the provider has verified it, or else
// the provider's own id for the account. No email address yields the name of an id, since an
// address has no colon. Names are printable ASCII, so that invisible or lookalike characters cannot
// make one look like another.
func nameOf(subject string, claims map[string]any) (string, error) {
	if email, ok := claims["email"].(string); ok && isVerified(claims) && isPlain(email) && isAddress(email) {
		return oidcEmail + email, nil
	}
	if !isPlain(subject) {
		return "", refusal("the identity provider's token names nobody: neither by a verified email address nor by a sub, in printable ASCII without spaces", nil)
	}
	return oidcSubject + subject, nil
}

// isPlain reports whether the text is printable ASCII without spaces. OpenID Connect requires a sub
// in ASCII.
func isPlain(text string) bool {
	return text != "" && len(text) <= maxName && !strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c > '~' })
}

// isAddress reports whether the text is an email address, written without quotes.
func isAddress(text string) bool {
	address, err := mail.ParseAddress(text)
	return err == nil && address.Address == text
}

// isVerified reports whether the provider has verified the email address. Some providers write the
// claim as a text.
func isVerified(claims map[string]any) bool {
	return claims["email_verified"] == true || claims["email_verified"] == "true"
}

// roleOf returns the highest role that the claims give, or "". An email address gives a role only
// if it is verified, since anybody may claim another person's.
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
