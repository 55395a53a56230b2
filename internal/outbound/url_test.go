package outbound

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
)

func prefixes(list ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, s := range list {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

func TestCheckWebhookURL(t *testing.T) {
	t.Parallel()
	own := Rules{OwnDomains: []string{"Gw-Own.com.", "bücher.example.net"}, OwnPrefixes: prefixes("20.30.40.0/24", "2600:1f00::/32")}
	dev := Rules{Allow: prefixes("127.0.0.0/8"), OwnDomains: own.OwnDomains}
	const base = "https://a.example.com/"
	tests := map[string]struct {
		rules Rules
		url   string
		want  string // canonical; empty: refused
	}{
		"plain":                  {own, "https://a.example.com/cb", "https://a.example.com/cb"},
		"canonical":              {own, "HTTPS://A.Example.COM.:0443/x?y=%2f&z=ü#f", "https://a.example.com/x?y=%2f&z=%C3%BC"},
		"empty port":             {own, "http://a.example.com:/", "http://a.example.com/"},
		"port 443 on http":       {own, "http://a.example.com:443/", "http://a.example.com:443/"},
		"port 80 on https":       {own, "https://a.example.com:80", "https://a.example.com:80"},
		"port 81":                {own, "http://a.example.com:81", ""},
		"port 65535":             {own, "http://a.example.com:65535", ""},
		"port 65616":             {own, "http://a.example.com:65616", ""}, // 80 in 16 bits
		"2048 characters":        {own, base + strings.Repeat("é", MaxURL-len(base)), base + strings.Repeat("%C3%A9", MaxURL-len(base))},
		"2049 characters":        {own, base + strings.Repeat("é", MaxURL-len(base)+1), ""},
		"invalid UTF-8":          {own, base + "\xff", ""},
		"space":                  {own, base + "a b", ""},
		"wide space":             {own, base + "a\u3000b", ""},
		"newline":                {own, base + "\nHost: x", ""},
		"DEL":                    {own, base + "\x7f", ""},
		"C1 control":             {own, base + "\u0085", ""},
		"backslash":              {own, `https://a.example.com\@8.8.8.8`, ""},
		"bad escape":             {own, base + "%zz", ""},
		"no scheme":              {own, "a.example.com/cb", ""},
		"relative":               {own, "/cb", ""},
		"user":                   {own, "https://u@a.example.com", ""},
		"empty user":             {own, "https://@a.example.com", ""},
		"idn":                    {own, "https://münchen.example.com", "https://xn--mnchen-3ya.example.com"},
		"escaped non-UTF-8":      {own, "https://嗊.a%AAb.com", ""},
		"escaped dots":           {own, "http://127%E3%80%820%E3%80%820%E3%80%821/", ""},
		"broken punycode":        {own, "https://xn--a.example.com", ""},
		"underscore":             {own, "https://a_b.example.com", "https://a_b.example.com"},
		"two hyphens":            {own, "https://r3---sn.example.com", "https://r3---sn.example.com"},
		"empty label":            {own, "https://a..example.com", ""},
		"two root dots":          {own, "https://a.example.com..", ""},
		"label of 63":            {own, "https://" + strings.Repeat("a", 63) + ".com", "https://" + strings.Repeat("a", 63) + ".com"},
		"label of 64":            {own, "https://" + strings.Repeat("a", 64) + ".com", ""},
		"star":                   {own, "https://*.example.com", ""},
		"public v4":              {own, "http://8.8.8.8", "http://8.8.8.8"},
		"public v4 root dot":     {own, "http://8.8.8.8.", "http://8.8.8.8"},
		"public v6":              {own, "http://[2606:4700::1111]:443", "http://[2606:4700::1111]:443"},
		"public v6 no port":      {own, "http://[2606:4700::1111]", "http://[2606:4700::1111]"},
		"v6 with zone":           {own, "http://[2606:4700::1111%25eth0]", ""},
		"v6 without brackets":    {own, "http://2606:4700::1111/", ""},
		"v4 in brackets":         {own, "http://[8.8.8.8]/", ""},
		"below 172.16":           {own, "http://172.15.255.255", "http://172.15.255.255"},
		"172.16":                 {own, "http://172.16.0.0", ""},
		"above 172.31":           {own, "http://172.32.0.0", "http://172.32.0.0"},
		"below azure":            {own, "http://168.63.129.15", "http://168.63.129.15"},
		"azure":                  {own, "http://168.63.129.16", ""},
		"azure mapped":           {own, "http://[::ffff:168.63.129.16]", ""},
		"own v4":                 {own, "http://20.30.40.255", ""},
		"beside own v4":          {own, "http://20.30.41.0", "http://20.30.41.0"},
		"own v6":                 {own, "http://[2600:1f00::5]", ""},
		"6to4":                   {own, "http://[2002:7f00:1::]", ""},
		"v4-compatible":          {own, "http://[::127.0.0.1]", ""},
		"decimal":                {own, "http://134744072", ""},
		"hex":                    {own, "http://0x08080808", ""},
		"octal":                  {own, "http://010.8.8.8", ""},
		"five parts":             {own, "http://8.8.8.8.8", ""},
		"name ending in 0x":      {own, "http://a.0x", ""},
		"name ending in number":  {own, "http://a.example.1", ""},
		"name with digits":       {own, "http://1.example.com1", "http://1.example.com1"},
		"full-width digits":      {own, "http://１２７.0.0.1", ""},
		"soft hyphen":            {own, "http://local\u00adhost", ""},
		"localhost":              {own, "http://localhost", ""},
		"LOCALHOST.":             {own, "http://LOCALHOST.", ""},
		"single label":           {own, "http://intranet", ""},
		".local":                 {own, "http://printer.local", ""},
		".internal":              {own, "http://a.b.internal", ""},
		".test":                  {own, "http://a.test", ""},
		".onion":                 {own, "http://a.onion", ""},
		"home.arpa":              {own, "http://a.home.arpa", ""},
		"no special TLD":         {own, "http://internal.com", "http://internal.com"},
		"own domain":             {own, "https://gw-own.com", ""},
		"own subdomain":          {own, "https://a.b.GW-OWN.com.", ""},
		"own idn":                {own, "https://xn--bcher-kva.example.net", ""},
		"suffix of another":      {own, "https://notgw-own.com", "https://notgw-own.com"},
		"own as a label":         {own, "https://gw-own.com.example.com", "https://gw-own.com.example.com"},
		"exception":              {dev, "http://127.0.0.1:9999/", "http://127.0.0.1:9999/"},
		"exception mapped":       {dev, "http://[::ffff:127.0.0.1]:9999/", "http://[::ffff:127.0.0.1]:9999/"},
		"beside the exception":   {dev, "http://10.0.0.1/", ""},
		"port beside exception":  {dev, "http://8.8.8.8:9999/", ""},
		"localhost by exception": {dev, "http://localhost:9999/", "http://localhost:9999/"}, // addresses decide later
		"name and port later":    {dev, "http://a.example.com:9999/", "http://a.example.com:9999/"},
		"own, with exceptions":   {dev, "http://gw-own.com:9999/", ""},
		"zone, with exceptions":  {Rules{Allow: prefixes("::/0")}, "http://[fe80::1%25eth0]/", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := tt.rules.CheckWebhookURL(tt.url)
			if tt.want == "" {
				wantViolation(t, err)
				return
			}
			if err != nil {
				t.Fatalf("refused: %v", err)
			}
			if diff := cmp.Diff(tt.want, got.String()); diff != "" {
				t.Errorf("canonical (-want +got):\n%s", diff)
			}
		})
	}
}

func wantViolation(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		t.Fatal("passed")
	}
	if !mediagate.Is(err, mediagate.KindInvalid) {
		t.Errorf("kind %s: %v", mediagate.KindOf(err), err)
	}
}

func TestCheckMediaURL(t *testing.T) {
	t.Parallel()
	const base = "https://cdn.example.com/"
	dev := Rules{Allow: prefixes("127.0.0.0/8")}
	tests := map[string]struct {
		rules Rules
		url   string
		ok    bool
	}{
		"https":                   {Rules{}, base + "a.png?x=1#y", true},
		"http, other port":        {Rules{}, "http://cdn.example.com:8080/a.png", true},
		"single label":            {Rules{}, "http://cdn/a.png", true}, // judged when fetched
		"public literal":          {Rules{}, "http://8.8.8.8:8080/a.png", true},
		"own domain":              {Rules{OwnDomains: []string{"example.com"}}, base, true}, // our uploads live there
		"2048 characters":         {Rules{}, base + strings.Repeat("画", MaxURL-len(base)), true},
		"2049 characters":         {Rules{}, base + strings.Repeat("画", MaxURL-len(base)+1), false},
		"data URI":                {Rules{}, "data:image/png;base64,AAAA", false},
		"ftp":                     {Rules{}, "ftp://cdn.example.com/a.png", false},
		"file":                    {Rules{}, "file:///etc/passwd", false},
		"relative":                {Rules{}, "a.png", false},
		"empty":                   {Rules{}, "", false},
		"no host":                 {Rules{}, "http:///a.png", false},
		"port 0":                  {Rules{}, "http://cdn.example.com:0/", false},
		"port 65535":              {Rules{}, "http://cdn.example.com:65535/", true},
		"port 65536":              {Rules{}, "http://cdn.example.com:65536/", false},
		"space":                   {Rules{}, base + "a b.png", false},
		"user":                    {Rules{}, "http://a:b@cdn.example.com/", false},
		"private":                 {Rules{}, "http://192.168.1.1/a.png", false},
		"private v6":              {Rules{}, "http://[fd00::1]/a.png", false},
		"metadata":                {Rules{}, "http://169.254.169.254/latest", false},
		"decimal":                 {Rules{}, "http://2130706433/", false},
		"localhost":               {Rules{}, "http://localhost:9000/a.png", false},
		"below localhost":         {Rules{}, "http://a.localhost/a.png", false},
		"exception":               {dev, "http://127.0.0.1:9000/a.png", true},
		"localhost by exception":  {dev, "http://localhost:9000/a.png", true},
		"localhost, other except": {Rules{Allow: prefixes("10.0.0.0/8")}, "http://localhost:9000/a.png", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := tt.rules.CheckMediaURL(tt.url)
			if tt.ok && err != nil {
				t.Errorf("refused: %v", err)
			}
			if !tt.ok {
				wantViolation(t, err)
			}
		})
	}
}

func TestCallbackURL(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"https://a.example.com":             "https://a.example.com/callback",
		"https://a.example.com/":            "https://a.example.com/callback",
		"https://a.example.com/cb":          "https://a.example.com/cb/callback",
		"https://a.example.com/cb/":         "https://a.example.com/cb/callback",
		"https://a.example.com/cb//":        "https://a.example.com/cb//callback",
		"https://a.example.com/cb#x":        "https://a.example.com/cb/callback",
		"https://a.example.com?a=1&b=%2F":   "https://a.example.com/callback?a=1&b=%2F",
		"https://a.example.com/cb/?a=/":     "https://a.example.com/cb/callback?a=/",
		"https://a.example.com/a%2Fb":       "https://a.example.com/a%2Fb/callback",
		"https://a.example.com/cb%2F":       "https://a.example.com/cb%2F/callback",
		"https://a.example.com/a/../b":      "https://a.example.com/a/../b/callback",
		"https://a.example.com/a%20b/%3Fc/": "https://a.example.com/a%20b/%3Fc/callback",
	}
	for raw, want := range tests {
		t.Run(raw, func(t *testing.T) {
			t.Parallel()
			u, err := url.Parse(raw)
			if err != nil {
				t.Fatal(err)
			}
			if got := CallbackURL(u).String(); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			if u.String() != raw {
				t.Errorf("the base was changed to %s", u)
			}
		})
	}
}

func TestHost(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ host, private string }{
		"https://API.example.com/v1":   {"api.example.com:443", ""},
		"http://api.example.com:8080":  {"api.example.com:8080", ""},
		"https://localhost.vendor.com": {"localhost.vendor.com:443", ""},
		"http://sandbox:9900":          {"sandbox:9900", "sandbox:9900"},
		"http://localhost":             {"localhost:80", "localhost:80"},
		"http://kling.internal:8080":   {"kling.internal:8080", "kling.internal:8080"},
		"https://kling.corp.":          {"kling.corp:443", "kling.corp:443"},
		"http://127.0.0.1":             {"127.0.0.1:80", "127.0.0.1:80"},
		"http://[::1]:9000/x":          {"[::1]:9000", "[::1]:9000"},
		"ftp://api.example.com":        {"", ""},
		"https://u:p@api.example.com":  {"", ""},
		"api.example.com":              {"", ""},
	}
	for raw, want := range tests {
		t.Run(raw, func(t *testing.T) {
			t.Parallel()
			got, err := Host(raw)
			if got != want.host || (err == nil) != (want.host != "") {
				t.Errorf("Host = %q, %v; want %q", got, err, want.host)
			}
			private, also := PrivateHost(raw)
			if private != want.private || (also == nil) != (err == nil) {
				t.Errorf("PrivateHost = %q, %v; want %q", private, also, want.private)
			}
		})
	}
}

func TestParseOwn(t *testing.T) {
	t.Parallel()
	domains, own, err := ParseOwn([]string{"Example.COM.", "20.30.40.7/24", "::ffff:1.2.3.4", "::ffff:10.0.0.0/104", "münchen.example"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"example.com", "xn--mnchen-3ya.example"}, domains); diff != "" {
		t.Errorf("domains (-want +got):\n%s", diff)
	}
	want := prefixes("20.30.40.0/24", "1.2.3.4/32", "10.0.0.0/8")
	if diff := cmp.Diff(want, own, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Errorf("prefixes (-want +got):\n%s", diff)
	}

	bad := []string{"a b", "1.2.3", "", "fe80::1%eth0", "::ffff:0:0/90", "10.0.0.0/33"}
	_, _, err = ParseOwn(append([]string{"fine.example.com"}, bad...))
	if err == nil {
		t.Fatal("no error")
	}
	if n := strings.Count(err.Error(), "\n") + 1; n != len(bad) {
		t.Errorf("%d problems, want %d:\n%v", n, len(bad), err)
	}
}
