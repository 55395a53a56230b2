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

// A row of the table that says nothing is the operators'.
const (
	accessAdmin   access = iota // operators
	accessKey                   // holders of a key
	accessLists                 // the same, who may send it as clients of other services do
	accessBalance               // the same, with the balance endpoints' answers
	accessOpen                  // anyone
	accessVendors               // anyone, since the path has a token that only a vendor was given
)

// keyless reports that nobody is asked for a key.
func (a access) keyless() bool { return a == accessOpen || a == accessVendors }

var (
	errNoHeader    = &mediagate.Error{Kind: mediagate.KindUnauthenticated, Message: "No Authorization header"}
	errTwoHeaders  = mediagate.Invalid("Authorization", "Authorization must be sent once")
	errTwoKeys     = mediagate.Invalid("Authorization", "Authorization, x-api-key, x-goog-api-key and ?key= must not name different keys")
	errUnknownKey  = &mediagate.Error{Kind: mediagate.KindUnauthenticated, Message: "invalid API key"}
	errAddress     = &mediagate.Error{Kind: mediagate.KindForbidden, Message: "this API key may not be used from this address"}
	errNotOperator = &mediagate.Error{Kind: mediagate.KindForbidden, Message: "an API key is not the key of an operator"}
	errNoOperator  = &mediagate.Error{Kind: mediagate.KindUnauthenticated, Message: "no operator has this key"}
)

// caller is a live key and what follows from it.
type caller struct {
	key      mediagate.Key
	account  mediagate.Account
	prefixes []netip.Prefix // of key.AllowIPs
	closed   bool           // the stored list holds an entry that cannot be read
}

// bearer returns the token of the Authorization header. A missing header,
// another scheme and an empty token are the same to us.
func bearer(r *http.Request) (string, bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	return token, token != "" && strings.EqualFold(scheme, "Bearer")
}

// credential is what a call says who it is by.
type credential struct {
	token   string
	session bool // the token is a session's, not a key
}

// findCredential is the one credential that the call came with. Several keys that differ
// are refused: whoever stands before us may have looked at another one. A session counts
// where none of them can be a key.
func (s *Server) findCredential(c *call, to access) (credential, error) {
	if len(c.Request().Header.Values("Authorization")) > 1 {
		return credential{}, errTwoHeaders
	}
	var tokens []string
	if token, ok := bearer(c.Request()); ok {
		tokens = append(tokens, token)
	}
	if to == accessLists {
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

// tenant is whose share of a limit the call takes: its account's, the operators', or of
// calls for which nobody is asked for a key, its network's.
func (c *call) tenant() string {
	if c.route.access.keyless() {
		return listener.NetworkOf(c.client).String()
	}
	if c.caller == nil {
		return operatorsTenant
	}
	return c.caller.key.AccountID
}

// isOperators reports that the call is to the admin API, which admits operators alone.
func (c *call) isOperators() bool { return c.route.access == accessAdmin }

// asActor is who the call's changes are noted as made by: an operator's name, or the id of a key.
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

// authenticate admits the call to the route or says why not.
func (s *Server) authenticate(c *call, to route) (err error) {
	if to.access.keyless() {
		return nil
	}
	if c.credential, err = s.findCredential(c, to.access); err != nil {
		return err
	}
	if to.access == accessAdmin {
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
	case to.access == accessBalance && !mediagate.Is(err, mediagate.KindForbidden):
		return failedLookup(err, noRecord)
	default:
		return err
	}
}

// admit judges whether the key that the call came with may make it.
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
	c.caller, c.judged = who, s.now()
	return nil
}

// callerOf finds the key that the call came with, or that its session is of.
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

// again judges the key anew, once the call has waited: for its body, for a task,
// for whoever is asked before something is begun. A call that was quick was judged
// well enough. Operators' calls have no key to lose.
func (s *Server) again(ctx context.Context, c *call) error {
	if c.caller == nil {
		return nil
	}
	if fresh(c.judged, s.now()) {
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

// findKey returns the live key of the token: KindUnauthenticated when there is none, and
// the store's errors.
func (s *Server) findKey(ctx context.Context, token string, turn turn) (*caller, error) {
	if !wellFormed(token) {
		return nil, errUnknownKey
	}
	return s.findKeyHash(ctx, HashKey(token), turn)
}

// findKeyHash is findKey for a key of which the hash is known.
func (s *Server) findKeyHash(ctx context.Context, hash [32]byte, turn turn) (*caller, error) {
	who, err := s.keys.find(ctx, hash, turn)
	switch {
	case mediagate.Is(err, mediagate.KindNotFound), err == nil && !who.key.ExpiresAt.IsZero() && !s.now().Before(who.key.ExpiresAt):
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
			who.closed = true // rather nobody than anybody
			continue
		}
		who.prefixes = append(who.prefixes, p)
	}
	return who, nil
}

// forgetKey drops what is remembered of a key that was changed through this process, so
// that here it is seen at once.
func (s *Server) forgetKey(id string) {
	s.keys.forgetWhere(func(who *caller) bool { return who.key.ID == id })
	s.sessions.forgetWhere(func(session mediagate.Session) bool { return session.KeyID == id })
}

// mayBegin refuses new work of a suspended account before it costs anything. The account is that of
// the last second: the store decides.
func (c *caller) mayBegin() error {
	if c.account.Suspended {
		return mediagate.Suspended()
	}
	return nil
}

// group is the name of the caller's group: the key's, or else its account's.
func (c *caller) group() string {
	return cmp.Or(c.key.Group, c.account.Group, defaultGroup)
}

// parseAllowed reads one entry of a key's allow list, which leaves something out.
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

// allowedFrom reports whether the address is in one of the prefixes; an empty
// list allows any.
func allowedFrom(a netip.Addr, prefixes []netip.Prefix) bool {
	return len(prefixes) == 0 || listener.Contains(prefixes, a)
}
