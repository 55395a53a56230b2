package listener

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Proxies says which proxies in front of us are trusted: a number of them, or all those in certain
// networks. Each proxy appends the address of its client to X-Forwarded-For.
type Proxies struct {
	Hops     int
	Networks []netip.Prefix // unused if Hops is set
}

// ClientAddress returns the address of the client. With Hops it is the entry of X-Forwarded-For at
// that position from the right. With Networks the search begins at the peer and goes through the
// entries from right to left; the first address that belongs to no trusted proxy is the client.
// Entries further left are not trusted. It returns the zero address if there is no readable one.
//
// Example: with 10.0.0.0/8 trusted, a peer 10.0.0.1 and X-Forwarded-For "1.1.1.1, 2.2.2.2,
// 10.0.0.2", the client is 2.2.2.2.
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

// ReadAddress parses an address with or without a port.
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

// ReadNetwork parses an address, or a CIDR without host bits. Its error says what the text must
// be.
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
		return netip.Prefix{}, fmt.Errorf("must not have bits set after its prefix, write %s", p.Masked())
	}
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p, nil
}

// Contains reports whether one of the networks contains the address.
func Contains(prefixes []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(a) })
}
