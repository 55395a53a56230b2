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

// Rules decide which targets are allowed. The zero value allows all public targets and has no own
// domains. Do not change the slices of Rules in use.
type Rules struct {
	// Allow lists exceptions to the address rules, the port rule and the rule against local names.
	// It takes precedence over OwnPrefixes. Empty in production.
	Allow []netip.Prefix
	// OwnDomains and their subdomains cannot receive callbacks.
	OwnDomains []string
	// OwnPrefixes are public addresses that lead to the service itself or into its network: those of
	// the ingress, of the machine, and of the operator's NAT64 prefix.
	OwnPrefixes []netip.Prefix
	// Resolver defaults to Go's own. The resolver of libc reads short, octal and decimal IPv4
	// addresses, such as 127.1.
	Resolver Resolver
	// Dial connects to an address that the rules allow. Tests set it. It defaults to a net.Dialer
	// that checks the address once more when the socket connects.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// azureWire is the address of a platform service inside every Azure network. No registry lists it:
// elsewhere it is a public address like any other.
var azureWire = netip.MustParsePrefix("168.63.129.16/32")

// public refuses the special-purpose ranges of the IANA registries.
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

// check refuses an address that clients must not connect to. exempt reports whether an exception
// allows the address; the exception then covers the port and the name as well.
func (r Rules) check(addr netip.Addr) (exempt bool, err error) {
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

// owns reports whether host, in canonical form, is one of our own domains or a subdomain.
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

// ParseOwn separates the entries of a setting into domains, in canonical form, and prefixes. A
// single address is a prefix of its full length. The error lists every entry that is neither.
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

// ParsePrefix parses an address range, or a single address as a range of one. It converts a range
// of IPv4-mapped addresses into the IPv4 range.
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

// InterfacePrefixes returns the addresses of this machine's interfaces, for Rules.OwnPrefixes.
// Without them a client could make a machine with a public address call its own ports.
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
