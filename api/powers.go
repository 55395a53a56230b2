package api

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
)

// powers are what a key has, and so the most that it can give.
type powers struct {
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
func (p powers) follow(k mediagate.Key) mediagate.Key {
	if p.key.Group == "" && k.Group == p.accountGroup {
		k.Group = ""
	}
	return k
}

// lacks are the fields in which the key has more than these powers.
func (p powers) lacks(k mediagate.Key) (beyond []string) {
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

// coverModels reports whether the patterns allow no model that these powers do
// not.
//
// A pattern is judged as if it were a name. In its place of * could stand a text
// that occurs in no pattern at all, so one that covers it has a * there itself;
// and no list of patterns covers what none of them does by itself.
//
// A model that the catalog lacks is for keys that name it to the letter.
func (p powers) coverModels(patterns []string) bool {
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
