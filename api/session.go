package api

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mediagate/mediagate"
)

// A browser signs in to the console with a key and gets a session: a cookie that counts if the call
// has no key. The session stands for an operator, or for the key, which is checked at each call as
// if the call had brought it.

const (
	sessionPath = consolePath + "/session"
	csrfHeader  = "X-Csrf-Token"
	sessionLife = 12 * time.Hour
	signInBody  = 4 << 10 // small, since anyone may send it without a key

	// SignInLinkLife is how long a sign-in link works.
	SignInLinkLife = time.Hour
)

var (
	errNoSession = &mediagate.Error{Kind: mediagate.KindUnauthenticated, Message: "no session: sign in"}
	errSignInKey = &mediagate.Error{Kind: mediagate.KindUnauthenticated, Message: "invalid key"}
	errLink      = &mediagate.Error{
		Kind: mediagate.KindUnauthenticated, Message: "the link was used or has expired: sign in with a key",
	}
	errCSRF      = &mediagate.Error{Kind: mediagate.KindForbidden, Message: "X-CSRF-Token must be the csrf of the session"}
	errCrossSite = &mediagate.Error{Kind: mediagate.KindForbidden, Message: "a page of another site must not sign in"}
	errOperator  = &mediagate.Error{
		Kind: mediagate.KindForbidden, Message: "an operator's session has no account: it is for the admin API",
	}
)

// sessionView says who is signed in.
type sessionView struct {
	Object         string          `json:"object"`
	Operator       bool            `json:"operator"`
	Name           *string         `json:"name"`    // of the operator; null in a key's session
	Role           *string         `json:"role"`    // likewise
	Account        *sessionAccount `json:"account"` // null in an operator's session
	Key            *apiKey         `json:"key"`     // likewise
	CSRF           string          `json:"csrf"`
	ExpiresAt      int64           `json:"expires_at"`
	Currency       string          `json:"currency"`
	CreditsPerUnit int64           `json:"credits_per_unit"`
	Version        string          `json:"version"`
}

type sessionAccount struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// NewSessionToken makes the token of a session or a link, and the hash under which it is stored.
// The token itself is not stored.
func NewSessionToken() (token string, hash [32]byte) {
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails: the runtime aborts the program instead
	token = base64.RawURLEncoding.EncodeToString(random[:])
	return token, hashToken(token)
}

func hashToken(token string) [32]byte { return sha256.Sum256([]byte(token)) }

// isToken reports whether the text has the form of a session token.
func isToken(text string) bool {
	random, err := base64.RawURLEncoding.Strict().DecodeString(text)
	return err == nil && len(random) == 32
}

// csrfOf returns the value that a page must send with every change. Only a page that may read
// the view of the session knows it.
func csrfOf(token string) string {
	mac := hmac.New(sha256.New, []byte(token))
	_, _ = mac.Write([]byte("mediagate csrf")) // never fails
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// checkCSRF refuses a change that is authenticated by the cookie alone, since a browser also
// sends the cookie for other sites' pages.
func (c *call) checkCSRF(token string) error {
	if method := c.Request().Method; method == http.MethodGet || method == http.MethodHead {
		return nil
	}
	if subtle.ConstantTimeCompare([]byte(c.Request().Header.Get(csrfHeader)), []byte(csrfOf(token))) == 1 {
		return nil
	}
	return errCSRF
}

// sessionCookie returns the session cookie, without a token, for the listener that the request came
// by. Over TLS it has the prefix __Host-, so that no other host can set it. On the admin API's own
// listener the cookie has neither the prefix nor Secure, since the server cannot know whether TLS
// is used in front of that listener.
func (s *Server) sessionCookie(r *http.Request) *http.Cookie {
	cookie := &http.Cookie{Name: "mediagate_session", Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode}
	if strings.HasPrefix(originOf(s.cfg.PublicURL), "https:") && r.Context().Value(throughAdmin{}) == nil {
		cookie.Name, cookie.Secure = "__Host-"+cookie.Name, true
	}
	return cookie
}

// originOf returns the origin of an address as browsers write it, without the scheme's default
// port. It returns "" for an address without a host.
func originOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	origin := strings.ToLower(u.Scheme + "://" + u.Host)
	if own := map[string]string{"http": ":80", "https": ":443"}[u.Scheme]; u.Port() != "" {
		origin = strings.TrimSuffix(origin, own)
	}
	return origin
}

// sessionToken returns the token in the session cookie. It returns "" if there are several such
// cookies, if the value does not have the form of a token, or if a header has a key, which takes
// precedence. Headers may also hold other credentials, which a proxy in front uses: those of Basic
// auth, or an identity provider's token.
func (s *Server) sessionToken(c *call) string {
	r := c.Request()
	given := slices.Concat(r.Header.Values("X-Api-Key"), r.Header.Values("X-Goog-Api-Key"))
	if token, ok := bearer(r); ok {
		given = append(given, token)
	}
	if slices.ContainsFunc(given, s.mayBeKey) {
		return ""
	}
	cookies := r.CookiesNamed(s.sessionCookie(r).Name)
	if len(cookies) != 1 || !isToken(cookies[0].Value) {
		return ""
	}
	return cookies[0].Value
}

// mayBeKey reports whether the text has the form of an API key, or is an operator's key.
func (s *Server) mayBeKey(text string) bool {
	if wellFormed(text) {
		return true
	}
	_, ok := s.operatorOfKey(HashKey(text))
	return ok
}

// findSession returns the live session of the token: KindUnauthenticated if there is none, and
// the store's errors. An operator's session ends with the operator's key.
func (s *Server) findSession(ctx context.Context, c *call, token string) (session mediagate.Session, err error) {
	err = s.throttleLogin(ctx, c, func(acquire permitFunc) error {
		session, err = s.sessions.find(ctx, hashToken(token), acquire)
		if mediagate.Is(err, mediagate.KindNotFound) || err == nil && !s.lives(session) {
			return errNoSession
		}
		return err
	})
	return session, err
}

func (s *Server) lives(session mediagate.Session) bool {
	if !s.now().Before(session.ExpiresAt) {
		return false
	}
	if session.KeyID != "" {
		return true
	}
	_, ok := s.operatorOfSession(session)
	return ok
}

// callerOfSession finds the key that the session stands for.
func (s *Server) callerOfSession(ctx context.Context, session mediagate.Session) (*caller, error) {
	if session.KeyID == "" {
		return nil, errOperator
	}
	who, err := s.findKeyHash(ctx, session.KeyHash, nil)
	if mediagate.Is(err, mediagate.KindUnauthenticated) {
		err = errNoSession
	}
	return who, err
}

// viewSession says who the token's session stands for.
func (s *Server) viewSession(c *call, token string) (view sessionView, err error) {
	session, err := s.findSession(c.ctx, c, token)
	if err != nil {
		return view, err
	}
	view = sessionView{
		Object: "session", Operator: session.KeyID == "", CSRF: csrfOf(token), ExpiresAt: session.ExpiresAt.Unix(),
		Currency: s.cfg.Currency, CreditsPerUnit: s.cfg.CreditsPerUnit, Version: s.cfg.Version,
	}
	if view.Operator {
		c.operator, _ = s.operatorOfSession(session)
		view.Name, view.Role = orNull(c.operator.name), orNull(string(c.operator.role))
		return view, nil
	}
	who, err := s.callerOfSession(c.ctx, session)
	if err != nil {
		return view, err
	}
	if !c.allowed(who) {
		return view, errAddress
	}
	c.caller = who // for the log
	s.lastUses.note(who.key.ID, s.now())
	view.Account, view.Key = &sessionAccount{who.account.ID, who.account.Name}, new(viewKey(who.key))
	return view, nil
}

func (s *Server) handleSession(c *call) error {
	token := s.sessionToken(c)
	if token == "" {
		return errNoSession
	}
	view, err := s.viewSession(c, token)
	if err != nil {
		return err
	}
	c.Response().Header().Set("Cache-Control", "no-store")
	return c.ok(view)
}

var signInFields = fieldMaskOf("key", "link")

// checkTLS refuses a sign-in from our own page without TLS if the cookie needs TLS. The browser
// would drop the cookie, and the console would ask for the key again. From localhost a browser
// accepts the cookie even without TLS.
func (s *Server) checkTLS(r *http.Request) error {
	public := originOf(s.cfg.PublicURL)
	page, err := url.Parse(r.Header.Get("Origin"))
	if err != nil || page.Scheme != "http" || !s.sessionCookie(r).Secure || isOwnMachine(page.Hostname()) {
		return nil
	}
	if own, err := url.Parse(public); err != nil || page.Host != r.Host && page.Hostname() != own.Hostname() {
		return nil // another site's page
	}
	return mediagate.Errorf(
		mediagate.KindForbidden, "over http a browser keeps no session, since public_url is https: open %s%s", public,
		consolePath,
	)
}

// isOwnMachine reports whether a host without a port is the machine of the program that names it.
func isOwnMachine(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback()
}

// handleSignIn makes a session from a key or a link. It ends the session that the browser had
// before.
func (s *Server) handleSignIn(c *call) error {
	if err := s.checkTLS(c.Request()); err != nil {
		return err
	}
	if err := s.crossOrigin.Check(c.Request()); err != nil {
		return errCrossSite
	}
	f, err := s.fieldsOf(c, signInFields)
	if err != nil {
		return err
	}
	if f.has("key") && f.has("link") {
		f.fail("link", "link must not be given together with key")
	}
	token, hash := NewSessionToken()
	signIn, field := s.signInByKey, "key"
	if f.has("link") {
		signIn, field = s.signInByLink, "link"
	}
	secret := strings.TrimSpace(f.required(field))
	if f.err != nil {
		return f.err
	}
	if err := signIn(c, secret, hash); err != nil {
		return err
	}
	view, err := s.viewSession(c, token)
	if err == nil {
		if previous := s.sessionToken(c); previous != "" {
			err = s.endSession(c.ctx, previous)
		}
	}
	if err != nil {
		_ = s.cfg.Store.EndSession(c.ctx, hash) // if this fails too, the session expires unused
		return err
	}
	cookie := s.sessionCookie(c.Request()) //nolint:gosec // Secure where TLS is known, see there
	cookie.Value, cookie.MaxAge = token, int(sessionLife.Seconds())
	http.SetCookie(c.Response(), cookie)
	c.Response().Header().Set("Cache-Control", "no-store")
	return c.json(http.StatusCreated, view)
}

// signInByKey makes a session with that hash for an API key. On the listener of the admin API it
// also accepts an operator's key.
func (s *Server) signInByKey(c *call, key string, hash [32]byte) error {
	session := mediagate.Session{Hash: hash}
	keyHash := HashKey(key)
	if _, ok := s.operatorOfKey(keyHash); ok && s.isServedHere(c.Request(), admin+"/") {
		session.OperatorHash = keyHash
		return s.cfg.Store.AddSession(c.ctx, session, sessionLife)
	}
	who, err := s.identify(c.ctx, c, key)
	if mediagate.Is(err, mediagate.KindUnauthenticated) {
		if !wellFormed(key) { // probably meant as an operator's key
			s.logins.Count(slog.String("client", c.client.String()))
		}
		return errSignInKey
	}
	if err != nil {
		return err
	}
	if err := s.countAction(c.ctx, who.account.ID, "sessions", "an account may sign in"); err != nil {
		return err
	}
	session.KeyID = who.key.ID
	return s.cfg.Store.AddSession(c.ctx, session, sessionLife)
}

func (s *Server) signInByLink(c *call, link string, hash [32]byte) error {
	return s.throttleLogin(c.ctx, c, func(acquire permitFunc) error {
		if !isToken(link) {
			return errLink
		}
		if acquire != nil {
			permit, err := acquire(c.ctx)
			if err != nil {
				return err
			}
			defer permit.Release()
		}
		return notFoundAs(s.cfg.Store.TakeLink(c.ctx, hashToken(link), hash, sessionLife), errLink)
	})
}

// handleSignOut ends the session, if there is one.
func (s *Server) handleSignOut(c *call) error {
	if token := s.sessionToken(c); token != "" {
		_, err := s.findSession(c.ctx, c, token)
		if err == nil {
			if err = c.checkCSRF(token); err == nil {
				err = s.endSession(c.ctx, token)
			}
		}
		if err != nil && !mediagate.Is(err, mediagate.KindUnauthenticated) {
			return err
		}
	}
	cookie := s.sessionCookie(c.Request()) //nolint:gosec // Secure where TLS is known, see there
	cookie.MaxAge = -1
	http.SetCookie(c.Response(), cookie)
	return c.NoContent(http.StatusNoContent)
}

func (s *Server) endSession(ctx context.Context, token string) error {
	hash := hashToken(token)
	if err := s.cfg.Store.EndSession(ctx, hash); err != nil {
		return err
	}
	s.sessions.forget(hash, s.now())
	return nil
}
