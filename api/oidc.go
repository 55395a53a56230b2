package api

import (
	"context"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/internal/limit"
)

// An operator signs in by OpenID Connect in three steps. The start gives the browser a cookie with a
// random token and sends it to the identity provider, with a state and a nonce that follow from the token.
// The provider sends it back to the callback, with a code. The callback exchanges the code for
// the operator's name and role, and makes a session. Nothing is stored between the steps.

const (
	oidcPath         = consolePath + "/oidc"
	oidcStartPath    = oidcPath + "/start"
	oidcCallbackPath = oidcPath + "/callback"

	// oidcSessionLife is how long a session by OpenID Connect lives. An operator whose account the
	// identity provider closes stays signed in for at most this time.
	oidcSessionLife = 4 * time.Hour
	// oidcFlowLife is how long a browser may take between start and callback.
	oidcFlowLife = 10 * time.Minute
	// oidcTime bounds the calls to the identity provider.
	oidcTime = 15 * time.Second
)

// IdentityProvider signs operators in by OpenID Connect.
type IdentityProvider interface {
	// Host returns the host of the provider's address, by which people know the provider.
	Host() string
	// Fingerprint returns a fingerprint of the provider's settings. When it changes, all earlier
	// sessions end.
	Fingerprint() [32]byte
	// Begin returns the address at the provider to which the browser with this token is sent.
	Begin(ctx context.Context, token string) (address string, err error)
	// Finish exchanges the answer, the query with which the provider sent the browser back, for the
	// operator's name and role. It returns KindUnauthenticated, KindForbidden for a person whom the
	// provider refuses or who has no role, and KindUnavailable.
	Finish(ctx context.Context, token string, answer url.Values) (name string, role mediagate.OperatorRole, err error)
}

// CallbackURL is where an identity provider sends browsers back, below our public address.
func CallbackURL(publicURL string) string {
	return strings.TrimSuffix(publicURL, "/") + oidcCallbackPath
}

var errNoFlow = &mediagate.Error{
	Kind:    mediagate.KindUnauthenticated,
	Message: "no sign-in is under way in this browser, or it took too long: begin again",
}

// oidcView says whether operators can sign in by OpenID Connect, and where.
type oidcView struct {
	Object   string  `json:"object"`
	Provider *string `json:"provider"` // its host; null: only keys sign in here
}

// signsInHere reports whether the listener by which the call came offers sign-in by OpenID Connect.
// Only a listener that has the admin API does.
func (s *Server) signsInHere(c *call) bool {
	return s.cfg.IdentityProvider != nil && s.isServedHere(c.Request(), admin+"/")
}

func (s *Server) handleOIDC(c *call) error {
	view := oidcView{Object: "oidc"}
	if s.signsInHere(c) {
		view.Provider = new(s.cfg.IdentityProvider.Host())
	}
	return c.ok(view)
}

// flowCookie is the cookie of a sign-in under way, without a token. It is SameSite=Lax: the
// provider's redirect comes from another site, and a browser sends no strict cookie with it.
func (s *Server) flowCookie(r *http.Request) *http.Cookie {
	cookie := s.sessionCookie(r) //nolint:gosec // Secure where TLS is known, see there
	cookie.Name = strings.Replace(cookie.Name, "session", "oidc", 1)
	cookie.SameSite = http.SameSiteLaxMode
	return cookie
}

// handleOIDCStart sends the browser to the identity provider.
func (s *Server) handleOIDCStart(c *call) error {
	if !s.signsInHere(c) {
		return errRoute(c.Request())
	}
	token, _ := NewSessionToken()
	ctx, cancel := c.detachedContext(oidcTime)
	defer cancel()
	address, err := s.cfg.IdentityProvider.Begin(ctx, token)
	if err != nil {
		return err
	}
	cookie := s.flowCookie(c.Request()) //nolint:gosec // Secure where TLS is known, see there
	cookie.Value, cookie.MaxAge = token, int(oidcFlowLife.Seconds())
	http.SetCookie(c.Response(), cookie)
	c.Response().Header().Set("Cache-Control", "no-store")
	return c.Redirect(http.StatusFound, address)
}

// handleOIDCCallback makes a session for the operator whom the identity provider sends back.
// It also ends the cookie of the sign-in, so that calling the same address again signs nobody in.
func (s *Server) handleOIDCCallback(c *call) error {
	if !s.signsInHere(c) {
		return errRoute(c.Request())
	}
	cookie := s.flowCookie(c.Request()) //nolint:gosec // Secure where TLS is known, see there
	given := c.Request().CookiesNamed(cookie.Name)
	cookie.MaxAge = -1
	http.SetCookie(c.Response(), cookie)
	c.Response().Header().Set("Cache-Control", "no-store")
	if len(given) != 1 || !isToken(given[0].Value) {
		return errNoFlow
	}
	who, err := s.finishFlow(c, given[0].Value)
	if err != nil {
		return err
	}
	c.operator = who
	token, hash := NewSessionToken()
	session := mediagate.Session{
		Hash: hash, OperatorHash: s.cfg.IdentityProvider.Fingerprint(), Operator: who.name, Role: who.role,
	}
	if err := s.cfg.Store.AddSession(c.ctx, session, oidcSessionLife); err != nil {
		return err
	}
	s.log.InfoContext(c.ctx, "an operator signed in by OpenID Connect",
		"operator", who.name, "role", who.role, "request", c.requestID)
	own := s.sessionCookie(c.Request()) //nolint:gosec // Secure where TLS is known, see there
	own.Value, own.MaxAge = token, int(oidcSessionLife.Seconds())
	http.SetCookie(c.Response(), own)
	return c.Redirect(http.StatusFound, consolePath+"/sign-in#signed-in")
}

// finishFlow finds out whom the identity provider sends back. An answer that fails the checks
// counts as a failed login. A refusal by the provider does not count, since the browser did not
// guess.
func (s *Server) finishFlow(c *call, token string) (who operator, err error) {
	err = s.throttleLogin(c.ctx, c, func(acquire permitFunc) error {
		var permit *limit.Permit
		if acquire != nil {
			if permit, err = acquire(c.ctx); err != nil {
				return err
			}
		}
		defer permit.Release()
		c.withoutTimeout(func() {
			ctx, cancel := c.detachedContext(oidcTime)
			defer cancel()
			who.name, who.role, err = s.cfg.IdentityProvider.Finish(ctx, token, c.Request().URL.Query())
		})
		return err
	})
	if err != nil {
		s.log.WarnContext(c.ctx, "a sign-in by OpenID Connect failed", "error", err, "request", c.requestID)
		if mediagate.Is(err, mediagate.KindUnauthenticated) {
			s.logins.Count(slog.String("client", c.client.String()))
		}
	}
	return who, err
}

// failedPage is the page that a browser shows after a sign-in has failed.
var failedPage = template.Must(template.New("").Parse(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Not signed in</title></head>
<body><main><h1>Not signed in</h1><p>{{.Message}}</p>
<p><a href="{{.SignIn}}">Back to the sign-in page</a>, where operators' keys work without the identity provider.</p>
<p><small>{{.RequestID}}</small></p></main></body></html>
`))

// renderPage answers a person's failed call with a page.
func (c *call) renderPage(status int, message string) error {
	var page strings.Builder
	err := failedPage.Execute(&page, map[string]string{
		"Message": message, "SignIn": consolePath + "/sign-in", "RequestID": c.requestID,
	})
	if err != nil {
		return fmt.Errorf("render the page of an error: %w", err)
	}
	header := c.Response().Header()
	header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	c.text(status, "text/html; charset=utf-8", []byte(page.String()))
	return nil
}
