package api

import (
	"cmp"
	"context"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api/listener"
)

// access says who may use a route.
type access uint8

// The zero value is accessAdmin, so that a route whose row in the table names no access is for
// operators only.
const (
	accessAdmin   access = iota // operators
	accessKey                   // callers with a key
	accessLists                 // callers with a key, sent in any of the places that clients of other services use
	accessBalance               // callers with a key; errors in the balance endpoints' form
	accessOpen                  // anyone
	accessVendors               // anyone, since the path has a token that only a vendor knows
)

// keyless reports whether the route takes no key.
func (a access) keyless() bool { return a == accessOpen || a == accessVendors }

var (
	errNoHeader   = &mediagate.Error{Kind: mediagate.KindUnauthenticated, Message: "No Authorization header"}
	errTwoHeaders = mediagate.Invalid("Authorization", "Authorization must be sent once")
	errTwoKeys    = mediagate.Invalid(
		"Authorization", "Authorization, x-api-key, x-goog-api-key and ?key= must not name different keys",
	)
	errUnknownKey = &mediagate.Error{Kind: mediagate.KindUnauthenticated, Message: "invalid API key"}
	errAddress    = &mediagate.Error{
		Kind: mediagate.KindForbidden, Message: "this API key may not be used from this address",
	}
	errNotOperator = &mediagate.Error{
		Kind: mediagate.KindForbidden, Message: "the admin API takes no API key: send an operator's key",
	}
	errNoOperator = &mediagate.Error{Kind: mediagate.KindUnauthenticated, Message: "no operator has this key"}
)

// caller is a live key with its account.
type caller struct {
	key      mediagate.Key
	account  mediagate.Account
	prefixes []netip.Prefix // of key.AllowIPs
	closed   bool           // an entry of the stored list cannot be read, so no address is allowed
}

// bearer returns the token of the Authorization header. It returns false for a missing header,
// another scheme or an empty token.
func bearer(r *http.Request) (string, bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	return token, token != "" && strings.EqualFold(scheme, "Bearer")
}

// credential is what a call authenticates with.
type credential struct {
	token   string
	session bool // the token is that of a session, and not a key
}

// findCredential returns the call's one credential. It refuses a call with several different
// keys, because a proxy in front may have checked another one. The session in the cookie counts
// only if the call sends nothing else that can be a key.
func (s *Server) findCredential(c *call) (credential, error) {
	if len(c.Request().Header.Values("Authorization")) > 1 {
		return credential{}, errTwoHeaders
	}
	var tokens []string
	if token, ok := bearer(c.Request()); ok {
		tokens = append(tokens, token)
	}
	if c.route.access == accessLists {
		tokens = append(tokens, c.foreignKeys()...)
	}
	if !slices.ContainsFunc(tokens, s.mayBeKey) {
		if token := s.sessionToken(c); token != "" {
			return credential{token, true}, nil
		}
	}
	switch tokens = slices.Compact(tokens); len(tokens) {
	case 0:
		return credential{}, errNoHeader
	case 1:
		return credential{token: tokens[0]}, nil
	default:
		return credential{}, errTwoKeys
	}
}

// tenant names the share of a limit that the call uses: its account's, the operators', or its
// network's if the route takes no key.
func (c *call) tenant() string {
	if c.route.access.keyless() {
		return listener.NetworkOf(c.client).String()
	}
	if c.caller == nil {
		return operatorsTenant
	}
	return c.caller.key.AccountID
}

// isOperators reports whether the call is to the admin API, which only operators may use.
func (c *call) isOperators() bool { return c.route.access == accessAdmin }

// asActor returns the actor to whom the call's changes are attributed: an operator by name, or a
// key by its id.
func (c *call) asActor() mediagate.Actor {
	a := mediagate.Actor{By: c.operator.name, RequestID: c.requestID}
	if c.caller != nil {
		a.By = c.caller.key.ID
	}
	if c.client.IsValid() {
		a.Address = c.client.String()
	}
	return a
}

// authenticate admits the call to its route, or returns the error that refuses it.
func (s *Server) authenticate(c *call) (err error) {
	access := c.route.access
	if access.keyless() {
		return nil
	}
	if c.credential, err = s.findCredential(c); err != nil {
		return err
	}
	if access == accessAdmin {
		err = s.admitOperator(c)
	} else {
		err = s.admit(c.ctx, c)
	}
	if err == nil && c.credential.session {
		err = c.checkCSRF(c.credential.token)
	}
	switch {
	case err == nil:
		if c.caller != nil {
			s.lastUses.note(c.caller.key.ID, s.now())
		}
		return nil
	case access == accessBalance && !mediagate.Is(err, mediagate.KindForbidden):
		return asLookupFailure(err, noRecord)
	default:
		return err
	}
}

// admit checks whether the call's key may make the call.
func (s *Server) admit(ctx context.Context, c *call) error {
	who, err := s.callerOf(ctx, c)
	if err != nil {
		return err
	}
	if !c.allowed(who) {
		return errAddress
	}
	if scope := c.route.scope; scope != "" && !slices.Contains(who.key.Scopes, scope) {
		return errScope(scope)
	}
	c.caller, c.authorizedAt = who, s.now()
	return nil
}

// callerOf finds the key that the call, or its session, authenticates with.
func (s *Server) callerOf(ctx context.Context, c *call) (*caller, error) {
	if !c.credential.session {
		return s.identify(ctx, c, c.credential.token)
	}
	session, err := s.findSession(ctx, c, c.credential.token)
	if err != nil {
		return nil, err
	}
	return s.callerOfSession(ctx, session)
}

// reauthorize checks the key again after the call has waited: for its body, for a task, or before
// it begins something. It does nothing for a quick call, whose first check is still fresh, or for
// an operator's call, which has no key.
func (s *Server) reauthorize(ctx context.Context, c *call) error {
	if c.caller == nil {
		return nil
	}
	if fresh(c.authorizedAt, s.now()) {
		return nil
	}
	return s.admit(ctx, c)
}

func errScope(scope mediagate.Scope) error {
	return mediagate.Errorf(mediagate.KindForbidden, "this API key lacks the scope %s", scope)
}

func (c *call) allowed(who *caller) bool {
	if who.closed {
		return false
	}
	return allowedFrom(c.client, who.prefixes)
}

// findKey returns the live key of the token. It returns KindUnauthenticated for an unknown key,
// and the store's errors.
func (s *Server) findKey(ctx context.Context, token string, acquire permitFunc) (*caller, error) {
	if !wellFormed(token) {
		return nil, errUnknownKey
	}
	return s.findKeyHash(ctx, HashKey(token), acquire)
}

// findKeyHash is findKey for a key whose hash is known.
func (s *Server) findKeyHash(ctx context.Context, hash [32]byte, acquire permitFunc) (*caller, error) {
	who, err := s.keys.find(ctx, hash, acquire)
	switch {
	case mediagate.Is(err, mediagate.KindNotFound),
		err == nil && !who.key.ExpiresAt.IsZero() && !s.now().Before(who.key.ExpiresAt):
		return nil, errUnknownKey
	case err != nil:
		return nil, err
	}
	return who, nil
}

func (s *Server) readCaller(ctx context.Context, hash [32]byte) (*caller, error) {
	key, account, err := s.cfg.Store.KeyByHash(ctx, hash)
	if err != nil {
		return nil, err
	}
	who := &caller{key: key, account: account}
	for _, entry := range key.AllowIPs {
		p, err := parseAllowed("allow_ips", entry)
		if err != nil {
			who.closed = true // allow no address rather than all
			continue
		}
		who.prefixes = append(who.prefixes, p)
	}
	return who, nil
}

// forgetKey drops the cached copies of a key that this process has changed, so that the change
// takes effect here at once.
func (s *Server) forgetKey(id string) {
	s.keys.forgetWhere(func(who *caller) bool { return who.key.ID == id })
	s.sessions.forgetWhere(func(session mediagate.Session) bool { return session.KeyID == id })
}

// mayBegin refuses new work of a suspended account before it costs anything. The account comes
// from the cache and may be a second old, so the store checks it again.
func (c *caller) mayBegin() error {
	if c.account.Suspended {
		return mediagate.Suspended()
	}
	return nil
}

// group names the caller's group: the key's, or else the account's.
func (c *caller) group() string {
	return cmp.Or(c.key.Group, c.account.Group, defaultGroup)
}

// parseAllowed reads one entry of a key's allow list. It refuses the network of all addresses.
func parseAllowed(param, s string) (netip.Prefix, error) {
	p, err := listener.ReadNetwork(s)
	if err != nil {
		return netip.Prefix{}, mediagate.Invalid(param, "%s %s", param, err)
	}
	if p.Bits() == 0 {
		return netip.Prefix{}, mediagate.Invalid(param, "%s must not allow every address: leave allow_ips out instead", param)
	}
	return p, nil
}

// allowedFrom reports whether one of the prefixes contains the address. An empty list allows all.
func allowedFrom(a netip.Addr, prefixes []netip.Prefix) bool {
	return len(prefixes) == 0 || listener.Contains(prefixes, a)
}
