package api

import (
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

// Operators manage the keys of all accounts. A key with the scope manage manages those of
// its own account: it gives nothing that it lacks itself, and the key of another account is
// as unknown to it as one that was never made.

// owner is the account whose keys the call may manage; empty for an operator's call, which
// may manage those of all accounts.
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
		if account, err = s.queryAccount(c); err != nil {
			return err
		}
	}
	rows, more, err := s.cfg.Store.Keys(c.ctx, account, after, limit)
	return answerList(c, rows, more, err, viewKey)
}

func pathKey(c *call) (string, error) { return pathID(c, "key_id", keyIDPrefix, errKeyID) }

// readKey reads the key that the path names, if the caller manages it.
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

// giveKey makes a key that has no more than the caller's.
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
		given := has.follow(key)
		return given, f.beyond(has.lacks(given))
	})
}

// changeOwnKey takes any change that leaves the key with nothing that it had not
// before. Beyond that the whole key that comes of it must be one that the
// caller could make; of itself it is not: a key only narrows itself. Keys that
// share limits by a rotation are judged alike, each with what it has besides. The
// caller pays for quota that is raised, and for all of it where the key may do more
// in another way.
func (s *Server) changeOwnKey(c *call, f *fields, id string, apply func(k *mediagate.Key) error) (mediagate.Key, error) {
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
			*k = has.follow(*k)
		}
		return nil
	}
	check := func(giver, was, is mediagate.Key) (widened bool, err error) {
		beyond := grantable{key: was, catalog: c.models.catalog}.lacks(is)
		if len(beyond) == 0 || giver.ID == is.ID {
			return false, f.beyond(beyond)
		}
		has, err := s.grantableBy(c, giver, account)
		if err != nil {
			return false, err
		}
		return !slices.Equal(beyond, []string{"quota"}), f.beyond(has.lacks(is))
	}
	return s.cfg.Store.ChangeKey(c.ctx, c.caller.key.ID, id, change, check)
}

// renewOwnKey gives the caller a secret with all that the key may do,
// which must not be more than what it may do itself, and takes the quota of it.
func (s *Server) renewOwnKey(c *call, f *fields, id string, secret mediagate.KeySecret, grace time.Duration) (mediagate.Key, error) {
	account, err := s.ownAccount(c)
	if err != nil {
		return mediagate.Key{}, err
	}
	return s.cfg.Store.RenewKey(c.ctx, c.caller.key.ID, id, secret, grace, func(giver, k mediagate.Key) error {
		has, err := s.grantableBy(c, giver, account)
		if err != nil || giver.ID == k.ID {
			return err
		}
		return f.beyond(has.lacks(k))
	})
}

// ownAccount reads the caller's account as it is now.
func (s *Server) ownAccount(c *call) (mediagate.Account, error) {
	account, err := s.cfg.Store.Account(c.ctx, c.caller.key.AccountID)
	return account, notFoundAs(err, errUnknownKey)
}

// grantableBy are what the key has to give, as it is now: it may have lost the scope
// since the call was let in.
func (s *Server) grantableBy(c *call, giver mediagate.Key, account mediagate.Account) (grantable, error) {
	if !slices.Contains(giver.Scopes, mediagate.ScopeManage) {
		return grantable{}, errScope(mediagate.ScopeManage)
	}
	has := grantable{key: giver, accountGroup: account.Group, catalog: c.models.catalog}
	if has.accountGroup == "" {
		has.accountGroup = defaultGroup
	}
	name := has.accountGroup
	if giver.Group != "" {
		name = giver.Group
	}
	has.group = s.groups[name].models
	return has, nil
}

// A key reads "mgk_", 32 random base62 digits (190.5 bits), and 6 check
// digits: the CRC-32 of all before them. So a mistyped or made-up key is
// refused without asking the database.
const (
	keyMark   = "mgk_"
	keyRandom = 32
	keyCheck  = 6
	keyLength = len(keyMark) + keyRandom + keyCheck

	base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// NewKey makes the secret of an API key, and what is stored of it: its hash, and the
// parts that may be shown. The secret itself is stored nowhere.
func NewKey() (secret string, stored mediagate.KeySecret) {
	digits := make([]byte, 0, keyLength)
	digits = append(digits, keyMark...)
	var pool [2 * keyRandom]byte
	for len(digits) < len(keyMark)+keyRandom {
		_, _ = rand.Read(pool[:]) // never fails: the runtime aborts the program instead
		for _, b := range pool {
			// 248 is the largest multiple of 62 in a byte: above it the
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

// HashKey is the form in which a key is stored and looked up.
func HashKey(secret string) [32]byte { return sha256.Sum256([]byte(secret)) }

// wellFormed reports whether the text could be a key of ours.
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

// grantable are what a key has, and so the most that it can give.
type grantable struct {
	key          mediagate.Key
	group        []string // the models of its group, as patterns; empty: all
	accountGroup string   // that of its account
	catalog      *catalog.Catalog
}

// beyond refuses fields in which a key would be more than another. It names one
// that the client gave, if there is one, else one that it left out.
func (f *fields) beyond(beyond []string) error {
	if len(beyond) == 0 {
		return nil
	}
	field := beyond[0]
	for _, name := range beyond {
		if top, _, _ := strings.Cut(name, "."); f.given(top) {
			field = name
			break
		}
	}
	return &mediagate.Error{
		Kind: mediagate.KindForbidden, Message: field + " goes beyond what this API key has itself", Param: field,
	}
}

// follow lets a key that names its account's group follow the account instead,
// where the giver does so too: pinned to it, it would keep the models and prices
// that the account loses.
func (p grantable) follow(k mediagate.Key) mediagate.Key {
	if p.key.Group == "" && k.Group == p.accountGroup {
		k.Group = ""
	}
	return k
}

// lacks are the fields in which the key has more than may be given.
func (p grantable) lacks(k mediagate.Key) (beyond []string) {
	has := p.key
	for _, limit := range []struct {
		field  string
		within bool
	}{
		{"scopes", !slices.ContainsFunc(k.Scopes, func(s mediagate.Scope) bool { return !slices.Contains(has.Scopes, s) })},
		{"models", p.coverModels(k.Models)},
		{"group", k.Group == has.Group},
		{"allow_ips", coverAddresses(has.AllowIPs, k.AllowIPs)},
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
			beyond = append(beyond, limit.field)
		}
	}
	return beyond
}

// atMost reports whether a bound is within another. Nil is none.
func atMost[T ~int | ~int64](bound, most *T) bool {
	return most == nil || bound != nil && *bound <= *most
}

// coverModels reports whether the patterns allow no model that these do
// not.
//
// A pattern is judged as if it were a name. In its place of * could stand a text
// that occurs in no pattern at all, so one that covers it has a * there itself;
// and no list of patterns covers what none of them does by itself.
//
// A model that the catalog lacks is for keys that name it to the letter.
func (p grantable) coverModels(patterns []string) bool {
	if len(patterns) == 0 {
		return len(p.key.Models) == 0 || matchesAny(p.key.Models, "*")
	}
	for _, pattern := range patterns {
		if !matchesAny(p.key.Models, pattern) || !matchesAny(p.group, pattern) {
			return false
		}
		if _, known := p.catalog.Model(pattern); !known && literal(pattern) && !slices.Contains(p.key.Models, pattern) {
			return false
		}
	}
	return true
}

// coverAddresses reports whether all that the second list allows is allowed by
// the first. An empty list allows any.
func coverAddresses(most, entries []string) bool {
	if len(most) == 0 {
		return true
	}
	wide := prefixesOf(most)
	return len(entries) > 0 && !slices.ContainsFunc(entries, func(entry string) bool {
		p, err := parseAllowed("allow_ips", entry)
		return err == nil && !coverPrefix(wide, p) // what cannot be read allows nobody
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

// coverPrefix reports whether the prefixes hold all addresses of another, one of
// them or several together.
func coverPrefix(prefixes []netip.Prefix, p netip.Prefix) bool {
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
	low, high := halves(p)
	return coverPrefix(inside, low) && coverPrefix(inside, high)
}

// halves are the two prefixes of which one consists.
func halves(p netip.Prefix) (low, high netip.Prefix) {
	address := p.Addr().AsSlice()
	address[p.Bits()/8] |= 0x80 >> (p.Bits() % 8)
	upper, _ := netip.AddrFromSlice(address)
	return netip.PrefixFrom(p.Addr(), p.Bits()+1), netip.PrefixFrom(upper, p.Bits()+1)
}
