package api

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"hash/crc32"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
)

// Operators manage the keys of all accounts. A key with the scope manage manages the keys of its
// own account. It can give other keys only what it has itself, and gets the same answer for a key of
// another account as for an unknown one.

// owner returns the account whose keys the call may manage. It returns "" for an operator's call,
// which may manage all keys.
func (c *call) owner() string {
	if c.isOperators() {
		return ""
	}
	return c.caller.key.AccountID
}

func (s *Server) handleKeys(c *call) error {
	after, limit, err := page(c, keyIDPrefix)
	if err != nil {
		return err
	}
	account := c.owner()
	if account == "" {
		if account, err = s.queryAccount(c.ctx, c.query()); err != nil {
			return err
		}
	}
	rows, more, err := s.cfg.Store.Keys(c.ctx, account, after, limit)
	return answerList(c, rows, more, err, viewKey)
}

func pathKey(c *call) (string, error) { return pathID(c, "key_id", keyIDPrefix, errKeyID) }

// readKey reads the key in the path, if the caller may manage it.
func (s *Server) readKey(c *call) (mediagate.Key, error) {
	id, err := pathKey(c)
	if err != nil {
		return mediagate.Key{}, err
	}
	key, err := s.cfg.Store.Key(c.ctx, id)
	if owner := c.owner(); err == nil && owner != "" && key.AccountID != owner {
		err = errKeyID
	}
	return key, notFoundAs(err, errKeyID)
}

func (s *Server) handleKey(c *call) error {
	key, err := s.readKey(c)
	return answerOne(c, http.StatusOK, key, err, viewKey)
}

func (s *Server) handleKeyCreation(c *call) error {
	account, err := accountOf(c)
	if err != nil {
		return err
	}
	f, key, err := readFields(s, c, settingsFields, s.readNewKey)
	if err != nil {
		return err
	}
	secret, stored := NewKey()
	if c.isOperators() {
		key.AccountID, key.Prefix, key.LastFour = account, stored.Prefix, stored.LastFour
		key, err = s.cfg.Store.CreateKey(c.ctx, key, stored.Hash)
		err = notFoundAs(err, errAccountID)
	} else {
		key, err = s.giveKey(c, f, key, stored)
	}
	if err != nil {
		return err
	}
	return c.showKey(http.StatusCreated, key, secret)
}

func (s *Server) handleKeyChange(c *call) error {
	id, err := pathKey(c)
	if err != nil {
		return err
	}
	f, apply, err := readFields(s, c, settingsFields, s.readKeyChange)
	if err != nil {
		return err
	}
	var key mediagate.Key
	if c.isOperators() {
		key, err = s.cfg.Store.UpdateKey(c.ctx, id, apply)
	} else {
		key, err = s.changeOwnKey(c, f, id, apply)
	}
	if err != nil {
		return notFoundAs(err, errKeyID)
	}
	s.forgetKey(id)
	return c.ok(viewKey(key))
}

func (s *Server) handleKeyRotation(c *call) error {
	id, err := pathKey(c)
	if err != nil {
		return err
	}
	f, grace, err := readFields(s, c, settingsFields, (*fields).grace)
	if err != nil {
		return err
	}
	secret, stored := NewKey()
	var key mediagate.Key
	if c.isOperators() {
		key, err = s.cfg.Store.RotateKey(c.ctx, id, stored, grace)
	} else {
		key, err = s.renewOwnKey(c, f, id, stored, grace)
	}
	if err != nil {
		return notFoundAs(err, errKeyID)
	}
	s.forgetKey(id)
	return c.showKey(http.StatusCreated, key, secret)
}

func (s *Server) handleKeyDeletion(c *call) error {
	key, err := s.readKey(c)
	if err != nil {
		return err
	}
	if err := s.cfg.Store.DeleteKey(c.ctx, key.ID); err != nil {
		return notFoundAs(err, errKeyID)
	}
	s.forgetKey(key.ID)
	return c.NoContent(http.StatusNoContent)
}

// giveKey makes a key that may do no more than the caller's key.
func (s *Server) giveKey(c *call, f *fields, key mediagate.Key, secret mediagate.KeySecret) (mediagate.Key, error) {
	account, err := s.ownAccount(c)
	if err != nil {
		return mediagate.Key{}, err
	}
	return s.cfg.Store.GiveKey(c.ctx, c.caller.key.ID, secret, func(giver mediagate.Key) (mediagate.Key, error) {
		has, err := s.grantableBy(c, giver, account)
		if err != nil {
			return mediagate.Key{}, err
		}
		given := has.followAccount(key)
		return given, f.refuseExcess(has.excess(given))
	})
}

// changeOwnKey changes a key on behalf of another key of the account, the giver.
//
// A change that only narrows the key is always allowed. If it widens the key, the giver must be
// able to make the resulting key itself, so no key can widen itself. Keys that share limits by a
// rotation are checked together, each with its own settings. The giver pays for raised quota. If
// the key gains something other than quota, the giver pays for the key's whole unspent quota.
func (s *Server) changeOwnKey(
	c *call, f *fields, id string, apply func(k *mediagate.Key) error,
) (mediagate.Key, error) {
	account, err := s.ownAccount(c)
	if err != nil {
		return mediagate.Key{}, err
	}
	change := func(giver mediagate.Key, k *mediagate.Key) error {
		has, err := s.grantableBy(c, giver, account)
		if err != nil {
			return err
		}
		if err := apply(k); err != nil {
			return err
		}
		if f.given("group") {
			*k = has.followAccount(*k)
		}
		return nil
	}
	check := func(giver, was, is mediagate.Key) (widened bool, err error) {
		excess := grantable{key: was, catalog: c.models.catalog}.excess(is)
		if len(excess) == 0 || giver.ID == is.ID {
			return false, f.refuseExcess(excess)
		}
		has, err := s.grantableBy(c, giver, account)
		if err != nil {
			return false, err
		}
		return !slices.Equal(excess, []string{"quota"}), f.refuseExcess(has.excess(is))
	}
	return s.cfg.Store.ChangeKey(c.ctx, c.caller.key.ID, id, change, check)
}

// renewOwnKey gives the caller a new secret of the key. The key must not exceed what the caller
// may do itself, and the caller pays for the key's unspent quota.
func (s *Server) renewOwnKey(
	c *call, f *fields, id string, secret mediagate.KeySecret, grace time.Duration,
) (mediagate.Key, error) {
	account, err := s.ownAccount(c)
	if err != nil {
		return mediagate.Key{}, err
	}
	return s.cfg.Store.RenewKey(c.ctx, c.caller.key.ID, id, secret, grace, func(giver, k mediagate.Key) error {
		has, err := s.grantableBy(c, giver, account)
		if err != nil || giver.ID == k.ID {
			return err
		}
		return f.refuseExcess(has.excess(k))
	})
}

// ownAccount reads the current state of the caller's account.
func (s *Server) ownAccount(c *call) (mediagate.Account, error) {
	account, err := s.cfg.Store.Account(c.ctx, c.caller.key.AccountID)
	return account, notFoundAs(err, errUnknownKey)
}

// grantableBy returns what the giver can give now. It checks the scope manage again, which the
// giver may have lost after the call was admitted.
func (s *Server) grantableBy(c *call, giver mediagate.Key, account mediagate.Account) (grantable, error) {
	if !slices.Contains(giver.Scopes, mediagate.ScopeManage) {
		return grantable{}, errScope(mediagate.ScopeManage)
	}
	accountGroup := cmp.Or(account.Group, defaultGroup)
	return grantable{
		key:          giver,
		group:        s.groups[cmp.Or(giver.Group, accountGroup)].models,
		accountGroup: accountGroup,
		catalog:      c.models.catalog,
	}, nil
}

// An API key consists of "mgk_", 32 random base62 digits (190.5 bits), and 6 check digits, the CRC-32
// of the rest. So a mistyped key is refused without a query to the database.
const (
	keyMark   = "mgk_"
	keyRandom = 32
	keyCheck  = 6
	keyLength = len(keyMark) + keyRandom + keyCheck

	base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// NewKey makes the secret of an API key, and what is stored of it: its hash, and the parts that
// may be shown. The secret itself is not stored.
func NewKey() (secret string, stored mediagate.KeySecret) {
	digits := make([]byte, 0, keyLength)
	digits = append(digits, keyMark...)
	var pool [2 * keyRandom]byte
	for len(digits) < len(keyMark)+keyRandom {
		_, _ = rand.Read(pool[:]) // never fails: the runtime aborts the program instead
		for _, b := range pool {
			// 248 is the largest multiple of 62 in a byte: from there on the
			// remainder would favour the first digits.
			if b < 248 && len(digits) < len(keyMark)+keyRandom {
				digits = append(digits, base62[b%62])
			}
		}
	}
	secret = string(digits) + checkDigits(string(digits))
	stored.Hash = HashKey(secret)
	stored.Prefix, stored.LastFour = secret[:len(keyMark)+6], secret[keyLength-4:]
	return secret, stored
}

// HashKey returns the hash under which a key is stored and looked up.
func HashKey(secret string) [32]byte { return sha256.Sum256([]byte(secret)) }

// wellFormed reports whether the text has the form of an API key.
func wellFormed(secret string) bool {
	if len(secret) != keyLength || !strings.HasPrefix(secret, keyMark) {
		return false
	}
	body, check := secret[:keyLength-keyCheck], secret[keyLength-keyCheck:]
	return checkDigits(body) == check
}

func checkDigits(body string) string {
	sum := crc32.ChecksumIEEE([]byte(body))
	var out [keyCheck]byte
	for i := range out {
		out[keyCheck-1-i] = base62[sum%62]
		sum /= 62
	}
	return string(out[:])
}

// grantable is what a key has, and so the most that it can give.
type grantable struct {
	key          mediagate.Key
	group        []string // patterns of the models of its group; empty: all
	accountGroup string   // the group of its account
	catalog      *catalog.Catalog
}

// refuseExcess returns an error that names a field in which one key exceeds another. It prefers a
// field that the client sent.
func (f *fields) refuseExcess(excess []string) error {
	if len(excess) == 0 {
		return nil
	}
	field := excess[0]
	for _, name := range excess {
		if top, _, _ := strings.Cut(name, "."); f.given(top) {
			field = name
			break
		}
	}
	return &mediagate.Error{
		Kind: mediagate.KindForbidden, Message: field + " exceeds what this API key has itself", Param: field,
	}
}

// followAccount drops the key's group if it is the group of the account and the giver has no group of
// its own. The key then follows the account, as the giver does. With a fixed group, the key would keep
// models and prices that the account may lose.
func (p grantable) followAccount(k mediagate.Key) mediagate.Key {
	if p.key.Group == "" && k.Group == p.accountGroup {
		k.Group = ""
	}
	return k
}

// excess lists the fields in which the key exceeds what may be given.
func (p grantable) excess(k mediagate.Key) (fields []string) {
	has := p.key
	for _, limit := range []struct {
		field  string
		within bool
	}{
		{"scopes", !slices.ContainsFunc(k.Scopes, func(s mediagate.Scope) bool { return !slices.Contains(has.Scopes, s) })},
		{"models", p.coversModels(k.Models)},
		{"group", k.Group == has.Group},
		{"allow_ips", coversAddresses(has.AllowIPs, k.AllowIPs)},
		{"expires_at", has.ExpiresAt.IsZero() || !k.ExpiresAt.IsZero() && !k.ExpiresAt.After(has.ExpiresAt)},
		{"unlimited", has.Unlimited || !k.Unlimited},
		{"quota", has.Unlimited || k.Unlimited || k.Remaining() <= has.Remaining()},
		{"caps.day", atMost(k.Caps.Day, has.Caps.Day)},
		{"caps.week", atMost(k.Caps.Week, has.Caps.Week)},
		{"caps.month", atMost(k.Caps.Month, has.Caps.Month)},
		{"rate", atMost(k.Rate, has.Rate)},
		{"in_flight", atMost(k.InFlight, has.InFlight)},
	} {
		if !limit.within {
			fields = append(fields, limit.field)
		}
	}
	return fields
}

// atMost reports whether a limit is within another. Nil means no limit.
func atMost[T ~int | ~int64](bound, most *T) bool {
	return most == nil || bound != nil && *bound <= *most
}

// coversModels reports whether the giver may use every model that the patterns allow.
//
// It checks each pattern as if the pattern were a model's name. That suffices: a * in it stands
// for any text, also for text that occurs in none of the giver's patterns, so only a * of the
// giver's can cover it. For example, alpha-* covers alpha-v*, but alpha-v1 and alpha-v2 together
// do not. So several patterns of the giver cover a pattern only if one of them covers it alone.
//
// A model that is not in the catalog is allowed only for keys that name it literally.
func (p grantable) coversModels(patterns []string) bool {
	if len(patterns) == 0 {
		return len(p.key.Models) == 0 || matchesAny(p.key.Models, "*")
	}
	for _, pattern := range patterns {
		if !matchesAny(p.key.Models, pattern) || !matchesAny(p.group, pattern) {
			return false
		}
		if _, known := p.catalog.Model(pattern); !known && isLiteral(pattern) && !slices.Contains(p.key.Models, pattern) {
			return false
		}
	}
	return true
}

// coversAddresses reports whether the first list allows all addresses that the second allows. An
// empty list allows all.
func coversAddresses(allowed, entries []string) bool {
	if len(allowed) == 0 {
		return true
	}
	wide := prefixesOf(allowed)
	return len(entries) > 0 && !slices.ContainsFunc(entries, func(entry string) bool {
		p, err := parseAllowed("allow_ips", entry)
		return err == nil && !coversPrefix(wide, p) // an entry that cannot be read allows no address
	})
}

func prefixesOf(entries []string) (prefixes []netip.Prefix) {
	for _, entry := range entries {
		if p, err := parseAllowed("allow_ips", entry); err == nil {
			prefixes = append(prefixes, p)
		}
	}
	return prefixes
}

// coversPrefix reports whether the prefixes, one of them or several together, contain all
// addresses of p.
func coversPrefix(prefixes []netip.Prefix, p netip.Prefix) bool {
	var inside []netip.Prefix
	for _, one := range prefixes {
		switch {
		case one.Bits() <= p.Bits() && one.Contains(p.Addr()):
			return true
		case p.Contains(one.Addr()):
			inside = append(inside, one)
		}
	}
	if len(inside) == 0 {
		return false
	}
	low, high := splitPrefix(p)
	return coversPrefix(inside, low) && coversPrefix(inside, high)
}

// splitPrefix returns the two halves of a prefix.
func splitPrefix(p netip.Prefix) (low, high netip.Prefix) {
	address := p.Addr().AsSlice()
	address[p.Bits()/8] |= 0x80 >> (p.Bits() % 8)
	upper, _ := netip.AddrFromSlice(address)
	return netip.PrefixFrom(p.Addr(), p.Bits()+1), netip.PrefixFrom(upper, p.Bits()+1)
}
