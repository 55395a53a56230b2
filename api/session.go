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

// A browser signs in to the console with a key, and has a session from then on: a cookie
// that counts where no key is sent. It stands for its key, which is judged at each call
// as if it had come itself, or for an operator.

const (
	sessionPath = consolePath + "/session"
	csrfHeader  = "X-Csrf-Token"
	sessionLife = 12 * time.Hour
	signInBody  = 4 << 10 // anybody may send one

	// SignInLinkLife is how long a link signs in.
	SignInLinkLife = time.Hour
)

var (
	errNoSession = &mediagate.Error{Kind: mediagate.KindUnauthenticated, Message: "no session: sign in"}
	errSignInKey = &mediagate.Error{Kind: mediagate.KindUnauthenticated, Message: "invalid key"}
	errLink      = &mediagate.Error{Kind: mediagate.KindUnauthenticated, Message: "the link was used or has ended: sign in with a key"}
	errCSRF      = &mediagate.Error{Kind: mediagate.KindForbidden, Message: "X-CSRF-Token must be the csrf of the session"}
	errCrossSite = &mediagate.Error{Kind: mediagate.KindForbidden, Message: "a page of another site must not sign in"}
	errOperator  = &mediagate.Error{Kind: mediagate.KindForbidden, Message: "an operator's session has no account: it is for the admin API"}
)

// sessionView is who is signed in.
type sessionView struct {
	Object         string          `json:"object"`
	Operator       bool            `json:"operator"`
	Name           *string         `json:"name"`    // of the operator; null: a key's
	Role           *string         `json:"role"`    // the same
	Account        *sessionAccount `json:"account"` // null: an operator's
	Key            *apiKey         `json:"key"`     // the same
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

// NewSessionToken makes the token of a session or of a link, and the hash under which it
// is stored. The token itself is stored nowhere.
func NewSessionToken() (token string, hash [32]byte) {
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails: the runtime aborts the program instead
	token = base64.RawURLEncoding.EncodeToString(random[:])
	return token, hashToken(token)
}

func hashToken(token string) [32]byte { return sha256.Sum256([]byte(token)) }

// isToken reports whether the text could be a token of ours.
func isToken(text string) bool {
	random, err := base64.RawURLEncoding.Strict().DecodeString(text)
	return err == nil && len(random) == 32
}

// csrfOf is what a page has to send along that changes something with the session. Only
// who has been told the session knows it.
func csrfOf(token string) string {
	mac := hmac.New(sha256.New, []byte(token))
	_, _ = mac.Write([]byte("mediagate csrf")) // never fails
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// checkCSRF refuses a call that changes something and that the cookie alone stands for: a
// browser sends that for pages of others too.
func (c *call) checkCSRF(token string) error {
	if method := c.Request().Method; method == http.MethodGet || method == http.MethodHead {
		return nil
	}
	if subtle.ConstantTimeCompare([]byte(c.Request().Header.Get(csrfHeader)), []byte(csrfOf(token))) == 1 {
		return nil
	}
	return errCSRF
}

// sessionCookie is the cookie at the listener by which the request came, without a token.
// Over TLS no other host can set it. Whether there is TLS before the admin API's own
// listener is not known.
func (s *Server) sessionCookie(r *http.Request) *http.Cookie {
	cookie := &http.Cookie{Name: "mediagate_session", Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode}
	if strings.HasPrefix(originOf(s.cfg.PublicURL), "https:") && r.Context().Value(throughAdmin{}) == nil {
		cookie.Name, cookie.Secure = "__Host-"+cookie.Name, true
	}
	return cookie
}

// originOf is the origin of an address as browsers write it, without the scheme's own port;
// empty where it has none.
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

// sessionToken is the token of the cookie, empty where there is none that could be ours or
// where a header has a key, which comes before. A proxy before us may have put other
// credentials of the browser there: those of Basic auth, or the token of an identity provider.
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

// mayBeKey reports whether the text has the form of an API key, or is the key of an operator.
func (s *Server) mayBeKey(text string) bool {
	if wellFormed(text) {
		return true
	}
	_, ok := s.operatorOfKey(HashKey(text))
	return ok
}

// findSession returns the live session of the token: KindUnauthenticated when there is
// none, and the store's errors. An operator's ends with the operator's key.
func (s *Server) findSession(ctx context.Context, c *call, token string) (session mediagate.Session, err error) {
	err = s.throttled(ctx, c, func(turn turn) error {
		session, err = s.sessions.find(ctx, hashToken(token), turn)
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

// viewSession tells who the token's session stands for.
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

var signInFields = outlineOf("key", "link")

// checkTLS refuses a sign-in from a page of ours without TLS where the cookie needs TLS: the
// browser would drop the cookie, and the console ask for the key again. Browsers keep it for
// their own machine.
func (s *Server) checkTLS(r *http.Request) error {
	public := originOf(s.cfg.PublicURL)
	page, err := url.Parse(r.Header.Get("Origin"))
	if err != nil || page.Scheme != "http" || !s.sessionCookie(r).Secure || isOwnMachine(page.Hostname()) {
		return nil
	}
	if own, err := url.Parse(public); err != nil || page.Host != r.Host && page.Hostname() != own.Hostname() {
		return nil // the page of another site
	}
	return mediagate.Errorf(mediagate.KindForbidden, "over http a browser keeps no session, since public_url is https: open %s%s", public, consolePath)
}

// isOwnMachine reports a host at which a browser finds its own machine.
func isOwnMachine(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// handleSignIn makes a session of a key or of a link. A session that the browser had ends.
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
		if before := s.sessionToken(c); before != "" {
			err = s.endSession(c.ctx, before)
		}
	}
	if err != nil {
		_ = s.cfg.Store.EndSession(c.ctx, hash) // else it expires: nobody has its token
		return err
	}
	cookie := s.sessionCookie(c.Request()) //nolint:gosec // Secure where TLS is known, see there
	cookie.Value, cookie.MaxAge = token, int(sessionLife.Seconds())
	http.SetCookie(c.Response(), cookie)
	c.Response().Header().Set("Cache-Control", "no-store")
	return c.json(http.StatusCreated, view)
}

// signInByKey makes a session with that hash of an API key, or of an operator's key where the
// admin API is.
func (s *Server) signInByKey(c *call, key string, hash [32]byte) error {
	session := mediagate.Session{Hash: hash}
	keyHash := HashKey(key)
	if _, ok := s.operatorOfKey(keyHash); ok && s.servedHere(c.Request(), admin+"/") {
		session.OperatorHash = keyHash
		return s.cfg.Store.AddSession(c.ctx, session, sessionLife)
	}
	who, err := s.identify(c.ctx, c, key)
	if mediagate.Is(err, mediagate.KindUnauthenticated) {
		if !wellFormed(key) { // perhaps meant to be the key of an operator
			s.logins.Count(slog.String("client", c.client.String()))
		}
		return errSignInKey
	}
	if err != nil {
		return err
	}
	if err := s.countOf(c.ctx, who.account.ID, "sessions", "an account may sign in"); err != nil {
		return err
	}
	session.KeyID = who.key.ID
	return s.cfg.Store.AddSession(c.ctx, session, sessionLife)
}

func (s *Server) signInByLink(c *call, link string, hash [32]byte) error {
	return s.throttled(c.ctx, c, func(turn turn) error {
		if !isToken(link) {
			return errLink
		}
		if turn != nil {
			permit, err := turn(c.ctx)
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
