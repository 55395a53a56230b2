package outbound

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"code.dny.dev/ssrf"

	"github.com/mediagate/mediagate"
)

// Resolver finds the addresses of a name. *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Rules says which targets are allowed. The zero value allows what is public
// and knows no domain as its own. Rules is a value: its slices must not be
// changed once it is in use.
type Rules struct {
	// Allow lists exceptions to the address rules, the port rule and the rule
	// against local names. It wins over OwnPrefixes. Empty in production.
	Allow []netip.Prefix
	// OwnDomains may not be called back, nor anything below them.
	OwnDomains []string
	// OwnPrefixes are addresses that reach the service itself or its network,
	// though they look public: ingress addresses, the addresses of the
	// machine, a NAT64 prefix of the operator's.
	OwnPrefixes []netip.Prefix
	// Resolver defaults to Go's own, which takes no short, octal or decimal
	// form of an IPv4 address for a name.
	Resolver Resolver
	// Dial makes a connection to an address that passed the rules; tests put
	// their own in. It defaults to a net.Dialer that judges the address once
	// more when the socket connects.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// azureWire is a service address inside every Azure network that no registry
// lists: from outside it is an ordinary public address.
var azureWire = netip.MustParsePrefix("168.63.129.16/32")

// public knows the special-purpose ranges of the IANA registries.
var public = ssrf.New(ssrf.WithAnyPort(), ssrf.WithDeniedV4Prefixes(azureWire))

const (
	reasonAddress  = "the address is not publicly reachable"
	reasonResolved = "the host resolves to an address that is not allowed"
	reasonPort     = "the port is not 80 or 443"
	reasonLocal    = "the host is a local name"
	reasonOwn      = "the host belongs to this service"
	reasonZone     = "an address with a zone is not allowed"
)

func violation(reason string) *mediagate.Error {
	return &mediagate.Error{Kind: mediagate.KindInvalid, Message: reason}
}

// judge says whether addr may be connected to, and whether that is so by an
// exception, which then covers port and name as well.
func (r Rules) judge(addr netip.Addr) (exempt bool, err error) {
	if !addr.IsValid() {
		return false, violation(reasonAddress)
	}
	if addr.Zone() != "" {
		return false, violation(reasonZone)
	}
	addr = addr.Unmap()
	if contains(r.Allow, addr) {
		return true, nil
	}
	if contains(r.OwnPrefixes, addr) {
		return false, violation(reasonOwn)
	}
	if err := public.SafeAddr(addr); err != nil {
		return false, violation(reasonAddress)
	}
	return false, nil
}

func contains(prefixes []netip.Prefix, addr netip.Addr) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// owns reports whether host, in canonical form, is one of our own domains or
// below one.
func (r Rules) owns(host string) bool {
	return slices.ContainsFunc(r.OwnDomains, func(domain string) bool {
		own, err := canonicalName(domain)
		if err != nil {
			own = strings.ToLower(domain)
		}
		return host == own || strings.HasSuffix(host, "."+own)
	})
}

// allowsLoopback reports whether an exception covers loopback addresses.
func (r Rules) allowsLoopback() bool {
	v4, v6 := netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")
	return slices.ContainsFunc(r.Allow, func(p netip.Prefix) bool { return p.Overlaps(v4) || p.Overlaps(v6) })
}

func (r Rules) resolver() Resolver {
	if r.Resolver != nil {
		return r.Resolver
	}
	return &net.Resolver{PreferGo: true}
}

// ParseOwn sorts settings that name what is the service's own into domains,
// in canonical form, and prefixes; a single address is a prefix of one. The
// error lists every entry that is neither.
func ParseOwn(entries []string) (domains []string, prefixes []netip.Prefix, err error) {
	var bad []error
	for _, entry := range entries {
		if p, err := ParsePrefix(entry); err == nil {
			prefixes = append(prefixes, p)
			continue
		}
		domain, err := canonicalName(entry)
		if err != nil || endsInNumber(domain) {
			bad = append(bad, fmt.Errorf("%q is neither a domain nor an address range", entry))
			continue
		}
		domains = append(domains, domain)
	}
	return domains, prefixes, errors.Join(bad...)
}

// ParsePrefix reads an address range, or a single address as a range of one.
// Ranges of IPv4-mapped addresses become what they stand for.
func ParsePrefix(s string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(s); err == nil {
		if addr.Zone() != "" {
			return netip.Prefix{}, fmt.Errorf("%q has a zone", s)
		}
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%q is no address range", s)
	}
	if p.Addr().Is4In6() {
		if p.Bits() < 96 {
			return netip.Prefix{}, fmt.Errorf("%q reaches beyond the IPv4-mapped addresses", s)
		}
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p.Masked(), nil
}

// InterfacePrefixes returns the addresses of this machine's interfaces, for
// Rules.OwnPrefixes: a machine with a public address could otherwise be made
// to call its own ports.
func InterfacePrefixes() ([]netip.Prefix, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("list the machine's addresses: %w", err)
	}
	var prefixes []netip.Prefix
	for _, a := range addrs {
		ipnet, ok := a.(*net.IPNet)
		if !ok {
			continue
		}
		if addr, ok := netip.AddrFromSlice(ipnet.IP); ok {
			addr = addr.Unmap()
			prefixes = append(prefixes, netip.PrefixFrom(addr, addr.BitLen()))
		}
	}
	return prefixes, nil
}
