package outbound

import (
	"net/netip"

	"golang.org/x/net/publicsuffix"
)

// Receiver identifies the owner of a URL's server by its text: the registered domain, such as
// example.com for https://hooks.example.com/a, or the address. For IPv6 it is the /64 network, the
// smallest that providers assign. A URL that breaks a rule has an empty receiver.
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
