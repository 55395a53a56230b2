package api

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api/listener"
	"github.com/mediagate/mediagate/limit"
)

// access says who may use a route.
type access uint8

// A row of the table that says nothing is the operator's.
const (
	accessAdmin   access = iota // the operator
	accessKey                   // holders of a key
	accessLists                 // the same, who may send it as clients of other services do
	accessBalance               // the same, with the balance endpoints' answers
	accessOpen                  // anyone
	accessVendors               // anyone, since the path has a token that only a vendor was given
)

// keyless reports that nobody is asked for a key.
func (a access) keyless() bool { return a == accessOpen || a == accessVendors }

// keyFresh is how long a key is believed without asking again. A deleted key
// must be refused everywhere within a second, so it leaves room for the
// request itself.
const keyFresh = 700 * time.Millisecond

// maxCachedKeys bounds the memory that callers can take.
const maxCachedKeys = 10_000

var (
	errNoHeader   = &mediagate.Error{Kind: mediagate.KindUnauthenticated, Message: "No Authorization header"}
	errTwoHeaders = mediagate.Invalid("Authorization", "Authorization must be sent once")
	errTwoKeys    = mediagate.Invalid("Authorization", "Authorization, x-api-key, x-goog-api-key and ?key= must not name different keys")
	errUnknownKey = &mediagate.Error{Kind: mediagate.KindUnauthenticated, Message: "invalid API key"}
	errAddress    = &mediagate.Error{Kind: mediagate.KindForbidden, Message: "this API key may not be used from this address"}
	errNotAdmin   = &mediagate.Error{Kind: mediagate.KindForbidden, Message: "an API key is no admin key"}
	errWrongAdmin = &mediagate.Error{Kind: mediagate.KindUnauthenticated, Message: "invalid admin key"}
)

// caller is a live key and what follows from it.
type caller struct {
	key      mediagate.Key
	account  mediagate.Account
	prefixes []netip.Prefix // of key.AllowIPs
	closed   bool           // the stored list holds an entry that cannot be read
	seen     time.Time
}

// bearer returns the token of the Authorization header. A missing header,
// another scheme and an empty token are the same to us.
func bearer(r *http.Request) (string, bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	return token, token != "" && strings.EqualFold(scheme, "Bearer")
}

// credential is the one token that the call came with. Several that differ are
// refused: whoever stands before us may have looked at another one.
func (c *call) credential(to access) (string, error) {
	if len(c.Request().Header.Values("Authorization")) > 1 {
		return "", errTwoHeaders
	}
	var tokens []string
	if token, ok := bearer(c.Request()); ok {
		tokens = append(tokens, token)
	}
	if to == accessLists {
		tokens = append(tokens, c.foreignKeys()...)
	}
	switch tokens = slices.Compact(tokens); len(tokens) {
	case 0:
		return "", errNoHeader
	case 1:
		return tokens[0], nil
	default:
		return "", errTwoKeys
	}
}

// who is the key that the call came with, in the budget's books.
func (c *call) who() string {
	if c.caller == nil {
		return mediagate.ByOperator
	}
	return c.caller.key.ID
}

// tenant is whose share of a limit the call takes: its account's, or the operators'.
func (c *call) tenant() string {
	if c.caller == nil {
		return mediagate.ByOperator
	}
	return c.caller.key.AccountID
}

// asActor is who the call's changes are noted as made by.
func (c *call) asActor() mediagate.Actor {
	a := mediagate.Actor{By: c.who(), RequestID: c.requestID}
	if c.client.IsValid() {
		a.Address = c.client.String()
	}
	return a
}

// authenticate admits the call to the route or says why not.
func (s *Server) authenticate(c *call, to route) error {
	if to.access.keyless() {
		return nil
	}
	token, err := c.credential(to.access)
	if err != nil {
		return err
	}
	if to.access == accessAdmin {
		return s.admitAdmin(c, token)
	}
	c.token = token
	err = s.admit(c.ctx, c)
	switch {
	case err == nil:
		s.lastUses.note(c.caller.key.ID, s.now())
		return nil
	case to.access == accessBalance && !mediagate.Is(err, mediagate.KindForbidden):
		return failedLookup(err, noRecord)
	default:
		return err
	}
}

// admit judges whether the key that the call came with may make it.
func (s *Server) admit(ctx context.Context, c *call) error {
	who, err := s.identify(ctx, c, c.token)
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

// admitAdmin tells an ordinary key (403) from no key at all (401).
func (s *Server) admitAdmin(c *call, token string) error {
	want, got := sha256.Sum256([]byte(s.cfg.AdminKey)), sha256.Sum256([]byte(token))
	if s.cfg.AdminKey != "" && subtle.ConstantTimeCompare(want[:], got[:]) == 1 {
		return nil
	}
	_, err := s.identify(c.ctx, c, token)
	s.logins.Count(slog.String("client", c.client.String()))
	switch {
	case err == nil:
		return errNotAdmin
	case mediagate.Is(err, mediagate.KindUnauthenticated):
		return errWrongAdmin
	default:
		return err
	}
}

// keyring finds callers by their token and remembers them for a moment.
type keyring struct {
	store CallerStore
	now   func() time.Time

	mu      sync.Mutex
	known   map[[32]byte]*caller
	unknown map[[32]byte]time.Time // since when
}

func newKeyring(store CallerStore, now func() time.Time) *keyring {
	return &keyring{store: store, now: now, known: map[[32]byte]*caller{}, unknown: map[[32]byte]time.Time{}}
}

// find returns the live key of the token: KindUnauthenticated when there is
// none, and the store's errors. Of a token of which nothing is known the store is asked
// when it is the caller's turn, if there are turns.
func (k *keyring) find(ctx context.Context, token string, turn func(context.Context) (*limit.Permit, error)) (*caller, error) {
	if !wellFormed(token) {
		return nil, errUnknownKey
	}
	hash, now := HashKey(token), k.now()
	k.mu.Lock()
	who, since := k.known[hash], k.unknown[hash]
	k.mu.Unlock()
	if !since.IsZero() && fresh(since, now) {
		return nil, errUnknownKey
	}
	if who == nil && turn != nil {
		permit, err := turn(ctx)
		if err != nil {
			return nil, err
		}
		defer permit.Release()
	}
	if who == nil || !fresh(who.seen, now) {
		key, account, err := k.store.KeyByHash(ctx, hash)
		if mediagate.Is(err, mediagate.KindNotFound) {
			k.forget(hash, now)
			return nil, errUnknownKey
		}
		if err != nil {
			return nil, err
		}
		who = newCaller(key, account, now)
		k.keep(hash, who)
	}
	if !who.key.ExpiresAt.IsZero() && !now.Before(who.key.ExpiresAt) {
		return nil, errUnknownKey
	}
	return who, nil
}

func newCaller(key mediagate.Key, account mediagate.Account, now time.Time) *caller {
	who := &caller{key: key, account: account, seen: now}
	for _, entry := range key.AllowIPs {
		p, err := parseAllowed("allow_ips", entry)
		if err != nil {
			who.closed = true // rather nobody than anybody
			continue
		}
		who.prefixes = append(who.prefixes, p)
	}
	return who
}

// keep stores the caller; when the table is full, stale entries make room,
// and all of them when none is stale.
func (k *keyring) keep(hash [32]byte, who *caller) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.known) >= maxCachedKeys {
		for h, old := range k.known {
			if who.seen.Sub(old.seen) >= keyFresh {
				delete(k.known, h)
			}
		}
		if len(k.known) >= maxCachedKeys {
			clear(k.known)
		}
	}
	k.known[hash] = who
	delete(k.unknown, hash)
}

// fresh reports whether what was seen then is to be believed.
func fresh(seen, now time.Time) bool {
	age := now.Sub(seen)
	return age >= 0 && age < keyFresh
}

// forget notes that no key has the hash. That is believed as long as a key is;
// when the table is full it begins anew, which costs queries and nothing else.
func (k *keyring) forget(hash [32]byte, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.known, hash)
	if len(k.unknown) >= maxCachedKeys {
		clear(k.unknown)
	}
	k.unknown[hash] = now
}

// forgetWhere drops callers that were changed through this process, so that here
// it is seen at once. One that had expired may live again.
func (k *keyring) forgetWhere(changed func(key mediagate.Key) bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	clear(k.unknown)
	for h, who := range k.known {
		if changed(who.key) {
			delete(k.known, h)
		}
	}
}

func (k *keyring) forgetKey(id string) {
	k.forgetWhere(func(key mediagate.Key) bool { return key.ID == id })
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
