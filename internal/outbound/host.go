package outbound

import (
	"net/netip"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

const (
	maxName  = 253
	maxLabel = 63
	// maxHost limits the bytes of a host before IDNA's mapping, whose time grows with the square of
	// a label's length. No valid host is longer.
	maxHost = 4*maxName + len(":65535")

	reasonName = "the host is not a valid name"
)

// canonicalHost converts the host of a URL, without brackets, into an address or into a lower-case
// ASCII name without the final dot.
func canonicalHost(host string) (name string, addr netip.Addr, err error) {
	if strings.Contains(host, ":") { // only an IPv6 literal has one
		addr, err = netip.ParseAddr(host)
		if err != nil {
			return "", netip.Addr{}, violation("the host is not a valid address")
		}
		if addr.Zone() != "" {
			return "", netip.Addr{}, violation(reasonZone)
		}
		return addr.String(), addr, nil
	}
	name, err = canonicalName(host)
	if err != nil {
		return "", netip.Addr{}, err
	}
	if addr, err := netip.ParseAddr(name); err == nil {
		return name, addr, nil
	}
	if endsInNumber(name) {
		// Other programs read such names as addresses: 127.1, 0x7f.1, 2130706433.
		return "", netip.Addr{}, violation("the host is a number, not a name or an address")
	}
	return name, netip.Addr{}, nil
}

// canonicalName converts a name into the form that DNS queries use. ASCII names only become lower
// case, since many real names break IDNA's rules: with "_", or with "--" in the third place. All
// others are mapped by IDNA, which also converts full-width digits and dots into ASCII.
func canonicalName(host string) (string, error) {
	if len(host) > maxHost {
		return "", violation(reasonName)
	}
	name := strings.ToLower(host)
	if !isASCII(name) || strings.Contains(name, "xn--") {
		mapped, err := idna.Lookup.ToASCII(host)
		if err != nil || !utf8.ValidString(host) { // an escaped host may hold any bytes
			return "", violation(reasonName)
		}
		// The mapped name must itself be valid, since other programs will read it.
		if again, err := idna.Lookup.ToASCII(mapped); err != nil || again != mapped {
			return "", violation(reasonName)
		}
		name = mapped
	}
	name = strings.TrimSuffix(name, ".")
	if name == "" || len(name) > maxName {
		return "", violation(reasonName)
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > maxLabel || strings.ContainsFunc(label, notHostRune) {
			return "", violation(reasonName)
		}
	}
	return name, nil
}

func notHostRune(c rune) bool {
	switch {
	case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '_':
		return false
	}
	return true
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c >= 0x80 })
}

// endsInNumber reports whether the last label is a decimal or hexadecimal number. No top-level
// domain is a number, so such a host must be an address.
func endsInNumber(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	if hex, ok := strings.CutPrefix(last, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}

// localTLDs never name a public host: the special-use domains of the IANA registry, those reserved
// for private use, and those that private networks commonly use.
var localTLDs = []string{
	"alt", "arpa", "example", "internal", "invalid", "local", "localhost", "onion", "test",
	"corp", "home", "intranet", "lan", "localdomain", "private",
}

// localName reports whether a canonical name has a single label or ends in a domain that is not
// public.
func localName(name string) bool {
	i := strings.LastIndexByte(name, '.')
	return i < 0 || slices.Contains(localTLDs, name[i+1:])
}

// loopbackName reports whether a canonical name means this machine.
func loopbackName(name string) bool {
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}
