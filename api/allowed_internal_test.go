package api

import (
	"net/netip"
	"testing"
)

func TestParseAllowed(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ entry, want string }{ // want empty: refused
		"address":          {"192.0.2.1", "192.0.2.1/32"},
		"network":          {"192.0.2.0/24", "192.0.2.0/24"},
		"host bits":        {"192.0.2.1/24", ""},
		"one address":      {"192.0.2.1/32", "192.0.2.1/32"},
		"half of all":      {"128.0.0.0/1", "128.0.0.0/1"},
		"all":              {"0.0.0.0/0", ""},
		"v6":               {"2001:db8::1", "2001:db8::1/128"},
		"v6 network":       {"2001:db8::/32", "2001:db8::/32"},
		"v6 host bits":     {"2001:db8::1/32", ""},
		"v6 all":           {"::/0", ""},
		"zone":             {"fe80::1%eth0", ""},
		"mapped":           {"::ffff:192.0.2.1", "192.0.2.1/32"},
		"mapped network":   {"::ffff:192.0.2.0/120", "192.0.2.0/24"},
		"mapped all":       {"::ffff:0.0.0.0/96", ""},
		"too long":         {"192.0.2.0/33", ""},
		"name":             {"localhost", ""},
		"leading zeros":    {"192.0.02.1", ""},
		"with port":        {"192.0.2.1:80", ""},
		"number":           {"3221225985", ""},
		"space":            {" 192.0.2.1", ""},
		"no prefix length": {"192.0.2.0/", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := parseAllowed("allow_ips[0]", test.entry)
			if test.want == "" {
				if err == nil {
					t.Fatalf("accepted as %s", p)
				}
				if e := domainError(err); e.Param != "allow_ips[0]" {
					t.Errorf("param = %q", e.Param)
				}
				return
			}
			if err != nil || p.String() != test.want {
				t.Errorf("got %s, %v, want %s", p, err, test.want)
			}
		})
	}
}

func TestAllowedFrom(t *testing.T) {
	t.Parallel()
	list := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/31"), netip.MustParsePrefix("2001:db8::/32")}
	for address, want := range map[string]bool{
		"192.0.2.0": true, "192.0.2.1": true, "192.0.2.2": false, "192.0.1.255": false, "2001:db8:ffff::1": true, "2001:db9::": false,
	} {
		if got := allowedFrom(netip.MustParseAddr(address), list); got != want {
			t.Errorf("%s: %t", address, got)
		}
	}
	if allowedFrom(netip.Addr{}, list) {
		t.Error("an unreadable address is let in")
	}
	if !allowedFrom(netip.Addr{}, nil) {
		t.Error("an empty list shuts out")
	}
}
