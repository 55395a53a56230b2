package outbound_test

import (
	"strings"
	"testing"

	"github.com/mediagate/mediagate/internal/outbound"
)

func TestSite(t *testing.T) {
	t.Parallel()
	const none = "\x00"
	for base, urls := range map[string]map[string]string{
		"https://api.example.com": {
			"https://api.example.com/files/a.png":         "files/a.png",
			"https://API.Example.COM./files/a.png":        "files/a.png",
			"HTTPS://api.example.com:443/files/a.png?x=1": "files/a.png",
			"https://api.example.com/files/a.png#part":    "files/a.png",
			"https://ａｐｉ.example.com/files/a.png":         "files/a.png",
			"https://api.example.com/files/../v1/tasks":   "files/../v1/tasks",
			"https://api.example.com/files/%2e%2e/b":      "files/%2e%2e/b",
			"https://api.example.com/files%2Fa.png":       "files%2Fa.png",
			"https://api.example.com/":                    "",
			"https://api.example.com":                     none,
			"http://api.example.com/files/a.png":          none,
			"https://api.example.com:8443/files/a.png":    none,
			"https://api.example.com.evil.com/files/a":    none,
			"https://evil.com/https://api.example.com/":   none,
			"https://user@api.example.com/files/a.png":    none,
			"https://api.example.com@evil.com/files/a":    none,
			`https://api.example.com\@evil.com/files/a`:   none,
			"//api.example.com/files/a.png":               none,
			"files/a.png":                                 none,
		},
		"http://127.0.0.1:8080/": {
			"http://127.0.0.1:8080/files/a.png":          "files/a.png",
			"http://[::ffff:127.0.0.1]:8080/files/a.png": none,
			"http://127.0.0.1/files/a.png":               none,
			"http://localhost:8080/files/a.png":          none,
		},
	} {
		site, err := outbound.ParseSite(base)
		if err != nil {
			t.Fatal(err)
		}
		for raw, want := range urls {
			got, ok := site.Path(raw)
			if !ok {
				got = none
			}
			if got != want {
				t.Errorf("below %s, %s is %q, want %q", base, raw, got, want)
			}
		}
	}
	if _, ok := (outbound.Site{}).Path("https://api.example.com/"); ok {
		t.Error("a site that is none has a place")
	}
}

func TestSiteURL(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{
		"https://API.example.com":     "https://api.example.com/files/a",
		"https://api.example.com:443": "https://api.example.com/files/a",
		"http://127.0.0.1:8080":       "http://127.0.0.1:8080/files/a",
		"http://[::1]:8080/?x=1":      "http://[::1]:8080/files/a",
	} {
		site, err := outbound.ParseSite(base)
		if err != nil {
			t.Fatal(err)
		}
		if got := site.URL("files/a"); got != want {
			t.Errorf("below %s: %s, want %s", base, got, want)
		}
		if got := site.Origin() + "/"; !strings.HasPrefix(want, got) || strings.Count(got, "/") != 3 {
			t.Errorf("the origin of %s is %s", base, got)
		}
		if path, ok := site.Path(want); !ok || path != "files/a" {
			t.Errorf("%s is not found again: %q", want, path)
		}
	}
	for _, base := range []string{"", "api.example.com", "ftp://example.com", "https://u:p@example.com", "https://"} {
		if _, err := outbound.ParseSite(base); err == nil {
			t.Errorf("%q is taken", base)
		}
	}
	if got := (outbound.Site{}).Origin(); got != "" {
		t.Errorf("the origin of no site is %s", got)
	}
}
