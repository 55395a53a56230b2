package listener

import (
	"net/http"
	"net/netip"
	"testing"
)

func TestClientAddress(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		remote    string
		forwarded []string
		proxies   int
		want      string // empty: none
	}{
		"no proxy":                 {remote: "192.0.2.1:5000", want: "192.0.2.1"},
		"header of a stranger":     {remote: "192.0.2.1:5000", forwarded: []string{"10.0.0.1"}, want: "192.0.2.1"},
		"one proxy":                {remote: "10.0.0.9:1", forwarded: []string{"192.0.2.1"}, proxies: 1, want: "192.0.2.1"},
		"one proxy and a lie":      {remote: "10.0.0.9:1", forwarded: []string{"203.0.113.1, 192.0.2.1"}, proxies: 1, want: "192.0.2.1"},
		"two proxies":              {remote: "10.0.0.9:1", forwarded: []string{"203.0.113.1, 192.0.2.1, 10.0.0.8"}, proxies: 2, want: "192.0.2.1"},
		"two proxies, two headers": {remote: "10.0.0.9:1", forwarded: []string{"203.0.113.1, 192.0.2.1", "10.0.0.8"}, proxies: 2, want: "192.0.2.1"},
		"too few entries":          {remote: "10.0.0.9:1", forwarded: []string{"192.0.2.1"}, proxies: 3, want: "192.0.2.1"},
		"no header":                {remote: "10.0.0.9:1", proxies: 1, want: "10.0.0.9"},
		"nonsense":                 {remote: "10.0.0.9:1", forwarded: []string{"unknown"}, proxies: 1},
		"v6":                       {remote: "[2001:db8::1]:5000", want: "2001:db8::1"},
		"v6 zone":                  {remote: "[fe80::1%eth0]:5000", want: "fe80::1"},
		"mapped v4":                {remote: "[::ffff:192.0.2.1]:5000", want: "192.0.2.1"},
		"entry with port":          {remote: "10.0.0.9:1", forwarded: []string{"192.0.2.1:77"}, proxies: 1, want: "192.0.2.1"},
		"v6 entry in brackets":     {remote: "10.0.0.9:1", forwarded: []string{"[2001:db8::1]"}, proxies: 1, want: "2001:db8::1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &http.Request{RemoteAddr: test.remote, Header: http.Header{"X-Forwarded-For": test.forwarded}}
			got := ClientAddress(r, Proxies{Hops: test.proxies})
			if test.want == "" {
				if got.IsValid() {
					t.Fatalf("got %s, want none", got)
				}
				return
			}
			if got != netip.MustParseAddr(test.want) {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// Behind proxies that are known by their networks.
func TestClientAddressByNetworks(t *testing.T) {
	t.Parallel()
	by := Proxies{Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:1::/48")}}
	tests := map[string]struct {
		remote    string
		forwarded []string
		want      string // empty: none
	}{
		"a stranger":                      {remote: "192.0.2.1:5000", want: "192.0.2.1"},
		"header of a stranger":            {remote: "192.0.2.1:5000", forwarded: []string{"10.0.0.1"}, want: "192.0.2.1"},
		"a stranger's long header":        {remote: "192.0.2.1:5000", forwarded: []string{"203.0.113.1, 10.0.0.1", "10.0.0.2"}, want: "192.0.2.1"},
		"one proxy":                       {remote: "10.0.0.9:1", forwarded: []string{"192.0.2.1"}, want: "192.0.2.1"},
		"one proxy and a lie":             {remote: "10.0.0.9:1", forwarded: []string{"203.0.113.1, 192.0.2.1"}, want: "192.0.2.1"},
		"a lie that names a proxy":        {remote: "10.0.0.9:1", forwarded: []string{"203.0.113.1, 10.0.0.7, 192.0.2.1"}, want: "192.0.2.1"},
		"three proxies":                   {remote: "10.0.0.9:1", forwarded: []string{"203.0.113.1, 192.0.2.1, 10.0.0.8,10.9.9.9"}, want: "192.0.2.1"},
		"several lines":                   {remote: "10.0.0.9:1", forwarded: []string{"203.0.113.1", "192.0.2.1", "10.0.0.8", "10.0.0.7"}, want: "192.0.2.1"},
		"nobody but proxies":              {remote: "10.0.0.9:1", forwarded: []string{"10.0.0.7, 10.0.0.8"}, want: "10.0.0.7"},
		"no header":                       {remote: "10.0.0.9:1", want: "10.0.0.9"},
		"empty header":                    {remote: "10.0.0.9:1", forwarded: []string{""}},
		"nonsense":                        {remote: "10.0.0.9:1", forwarded: []string{"192.0.2.1, unknown"}},
		"nonsense behind a proxy":         {remote: "10.0.0.9:1", forwarded: []string{"192.0.2.1, _hidden, 10.0.0.8"}},
		"nonsense further left":           {remote: "10.0.0.9:1", forwarded: []string{"unknown, 192.0.2.1"}, want: "192.0.2.1"},
		"nothing between commas":          {remote: "10.0.0.9:1", forwarded: []string{"192.0.2.1,, 10.0.0.8"}},
		"a network is no address":         {remote: "10.0.0.9:1", forwarded: []string{"192.0.2.0/24"}},
		"leading zeros":                   {remote: "10.0.0.9:1", forwarded: []string{"192.0.02.1"}},
		"with ports":                      {remote: "10.0.0.9:1", forwarded: []string{"192.0.2.1:77, 10.0.0.8:1234"}, want: "192.0.2.1"},
		"v6 in brackets":                  {remote: "[2001:db8:1::9]:1", forwarded: []string{"[2001:db8::1], [2001:db8:1::8]:443"}, want: "2001:db8::1"},
		"mapped proxies and client":       {remote: "[::ffff:10.0.0.9]:1", forwarded: []string{"::ffff:192.0.2.1, ::ffff:10.0.0.8"}, want: "192.0.2.1"},
		"a proxy in the client's clothes": {remote: "10.0.0.9:1", forwarded: []string{"::ffff:10.0.0.8"}, want: "10.0.0.8"},
		"no address as peer":              {remote: "@", forwarded: []string{"192.0.2.1"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &http.Request{RemoteAddr: test.remote, Header: http.Header{"X-Forwarded-For": test.forwarded}}
			want, _ := netip.ParseAddr(test.want)
			if got := ClientAddress(r, by); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}
