package hostguard_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate/standalone/hostguard"
)

func TestWrap(t *testing.T) {
	t.Parallel()
	const origin = "Origin"
	for name, test := range map[string]struct {
		host    string
		origins []string
		names   string
		local   string // address of the connection; empty: 127.0.0.1
		refused bool
	}{
		"loopback":                        {host: "127.0.0.1:8233"},
		"another loopback":                {host: "127.8.9.10:8233"},
		"loopback of IPv6":                {host: "[::1]:8233"},
		"loopback without port":           {host: "[::1]"},
		"localhost":                       {host: "localhost:8233"},
		"localhost in capitals":           {host: "LOCALHOST.:8233"},
		"no port":                         {host: "localhost"},
		"its own origin":                  {host: "127.0.0.1:8233", origins: []string{"http://127.0.0.1:8233"}},
		"a name":                          {host: "temporal.example", names: "sandbox, Temporal.Example."},
		"a name behind TLS":               {host: "temporal.example", origins: []string{"https://temporal.example"}, names: "temporal.example"},
		"a name, and another port":        {host: "temporal:8233", origins: []string{"https://temporal.example:8443"}, names: "temporal,temporal.example"},
		"the address of the connection":   {host: "192.0.2.7:8233", local: "192.0.2.7"},
		"that in IPv6":                    {host: "192.0.2.7:8233", local: "::ffff:192.0.2.7"},
		"a foreign name":                  {host: "evil.example:8233", refused: true},
		"a name that begins well":         {host: "localhost.evil.example", refused: true},
		"a name that ends well":           {host: "evil-localhost", refused: true},
		"a loopback in a name":            {host: "127.0.0.1.evil.example", refused: true},
		"a part of a name":                {host: "example", names: "temporal.example", refused: true},
		"below a name":                    {host: "a.temporal.example", names: "temporal.example", refused: true},
		"an address of somewhere":         {host: "192.0.2.8:8233", local: "192.0.2.7", refused: true},
		"every address":                   {host: "0.0.0.0:8233", refused: true},
		"no host":                         {host: "", refused: true},
		"nonsense":                        {host: "[::1", refused: false},
		"two ports":                       {host: "127.0.0.1:1:2", refused: true},
		"a foreign origin":                {host: "127.0.0.1:8233", origins: []string{"http://evil.example"}, refused: true},
		"another port of the loopback":    {host: "127.0.0.1:8233", origins: []string{"http://127.0.0.1:3000"}, refused: true},
		"another name of the loopback":    {host: "127.0.0.1:8233", origins: []string{"http://localhost:8233"}, refused: true},
		"no origin of its own":            {host: "127.0.0.1:8233", origins: []string{"null"}, refused: true},
		"an empty origin":                 {host: "127.0.0.1:8233", origins: []string{""}, refused: true},
		"a file":                          {host: "127.0.0.1:8233", origins: []string{"file://127.0.0.1:8233"}, refused: true},
		"two origins":                     {host: "127.0.0.1:8233", origins: []string{"http://127.0.0.1:8233", "http://evil.example"}, refused: true},
		"a foreign host with its origin":  {host: "evil.example:8233", origins: []string{"http://evil.example:8233"}, refused: true},
		"a foreign origin beside a name":  {host: "temporal.example", origins: []string{"https://evil.example"}, names: "temporal.example", refused: true},
		"an origin that has a name in it": {host: "localhost", origins: []string{"https://localhost@evil.example"}, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			names, err := hostguard.ParseNames(test.names)
			if err != nil {
				t.Fatal(err)
			}
			local := test.local
			if local == "" {
				local = "127.0.0.1"
			}
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				passed := false
				r := httptest.NewRequestWithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.ParseIP(local), Port: 8233}), method, "/", http.NoBody)
				r.Host = test.host
				for _, o := range test.origins {
					r.Header.Add(origin, o)
				}
				w := httptest.NewRecorder()
				names.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { passed = true })).ServeHTTP(w, r)
				if passed == test.refused || (w.Code == http.StatusForbidden) != test.refused {
					t.Errorf("%s: passed %v with status %d", method, passed, w.Code)
				}
			}
		})
	}
}

func TestParseNames(t *testing.T) {
	t.Parallel()
	for list, want := range map[string]hostguard.Names{
		"": nil, " , ": nil, "A.example., b": {"a.example", "b"}, "192.0.2.7,2001:db8::1": {"192.0.2.7", "2001:db8::1"},
	} {
		got, err := hostguard.ParseNames(list)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: %v (-want +got)\n%s", list, err, diff)
		}
	}
	for _, list := range []string{"https://a.example", "a.example:80", "*.example", "[::1]", "a b"} {
		if got, err := hostguard.ParseNames(list); err == nil {
			t.Errorf("%q is taken as %q", list, got)
		}
	}
}
