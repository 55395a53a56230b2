package listener

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Proxies are those in front of us that are believed: so many, or those in the
// networks. Each appends the address it was called from to X-Forwarded-For.
type Proxies struct {
	Hops     int
	Networks []netip.Prefix // not beside Hops
}

// ClientAddress is the address of the caller. Of so many proxies it is the entry
// that many from the right. Proxies that are known by their networks begin with
// the peer: the first from the right that is none of them is the caller. What
// stands further left is hearsay. The zero address is returned when there is no
// readable one.
func ClientAddress(r *http.Request, by Proxies) netip.Addr {
	peer := ReadAddress(r.RemoteAddr)
	if by.Hops <= 0 && !Contains(by.Networks, peer) {
		return peer
	}
	var hops []string
	for _, line := range r.Header.Values("X-Forwarded-For") {
		hops = append(hops, strings.Split(line, ",")...)
	}
	if len(hops) == 0 {
		return peer
	}
	if by.Hops > 0 {
		return ReadAddress(strings.TrimSpace(hops[max(0, len(hops)-by.Hops)]))
	}
	client := peer
	for i := len(hops) - 1; i >= 0 && Contains(by.Networks, client); i-- {
		client = ReadAddress(strings.TrimSpace(hops[i]))
	}
	return client
}

// ReadAddress reads an address with or without a port.
func ReadAddress(s string) netip.Addr {
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return ap.Addr().Unmap().WithZone("")
	}
	a, err := netip.ParseAddr(strings.Trim(s, "[]"))
	if err != nil {
		return netip.Addr{}
	}
	return a.Unmap().WithZone("")
}

// ReadNetwork reads an address, or a CIDR without host bits. Its error says what
// the text must be.
func ReadNetwork(s string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return netip.Prefix{}, errors.New("must be an IP address or a CIDR")
	}
	if p.Masked() != p {
		return netip.Prefix{}, fmt.Errorf("must not have bits set behind its prefix: %s is meant by it", p.Masked())
	}
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p, nil
}

// Contains reports whether one of the networks has the address.
func Contains(prefixes []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(a) })
}
