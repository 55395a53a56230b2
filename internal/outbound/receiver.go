package outbound

import (
	"net/netip"

	"golang.org/x/net/publicsuffix"
)

// Receiver tells whose server a URL leads to, as far as its text says: the domain
// that somebody registered, whatever stands before it, or the address. Of IPv6 it
// is the network of 64 bits, the least that one gets. URLs that break a rule have
// none.
func Receiver(raw string) string {
	t, err := parse(raw)
	switch {
	case err != nil:
		return ""
	case t.addr.Unmap().Is6():
		return netip.PrefixFrom(t.addr.WithZone(""), 64).Masked().String()
	case t.addr.IsValid():
		return t.addr.Unmap().String()
	}
	domain, err := publicsuffix.EffectiveTLDPlusOne(t.host)
	if err != nil { // it is a suffix itself, or has no dot
		return t.host
	}
	return domain
}
