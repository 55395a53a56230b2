package api

import (
	"net/http"
	"net/netip"
	"strings"

	"github.com/mediagate/mediagate"
)

// clientAddress is the address of the caller. Each trusted proxy appends the
// address it was called from to X-Forwarded-For, so the caller's is that many
// entries from the right; what stands further left is hearsay. The zero
// address is returned when there is no readable one.
func clientAddress(r *http.Request, trustedProxies int) netip.Addr {
	peer := readAddress(r.RemoteAddr)
	if trustedProxies <= 0 {
		return peer
	}
	var hops []string
	for _, line := range r.Header.Values("X-Forwarded-For") {
		hops = append(hops, strings.Split(line, ",")...)
	}
	if len(hops) == 0 {
		return peer
	}
	return readAddress(strings.TrimSpace(hops[max(0, len(hops)-trustedProxies)]))
}

// readAddress reads an address with or without a port.
func readAddress(s string) netip.Addr {
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return ap.Addr().Unmap().WithZone("")
	}
	a, err := netip.ParseAddr(strings.Trim(s, "[]"))
	if err != nil {
		return netip.Addr{}
	}
	return a.Unmap().WithZone("")
}

// parseAllowed reads one entry of a key's allow list: an address, or a CIDR
// without host bits that leaves something out.
func parseAllowed(param, s string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return netip.Prefix{}, mediagate.Invalid(param, "%s must be an IP address or a CIDR", param)
	}
	if p.Masked() != p {
		return netip.Prefix{}, mediagate.Invalid(param, "%s must not have bits set behind its prefix: %s is meant by it", param, p.Masked())
	}
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	if p.Bits() == 0 {
		return netip.Prefix{}, mediagate.Invalid(param, "%s must not allow every address: leave allow_ips out instead", param)
	}
	return p, nil
}

// allowedFrom reports whether the address is in one of the prefixes; an empty
// list allows any.
func allowedFrom(a netip.Addr, prefixes []netip.Prefix) bool {
	if len(prefixes) == 0 {
		return true
	}
	for _, p := range prefixes {
		if p.Contains(a) {
			return true
		}
	}
	return false
}
