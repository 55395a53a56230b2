package outbound_test

import (
	"testing"

	"github.com/mediagate/mediagate/internal/outbound"
)

func TestReceiver(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"https://example.com/hook":               "example.com",
		"https://a.b.EXAMPLE.com:443/":           "example.com",
		"http://4711.wild.example.co.uk/x?y=z":   "example.co.uk",
		"https://one.github.io/":                 "one.github.io",
		"https://github.io/":                     "github.io",
		"http://receiver/":                       "receiver",
		"http://192.0.2.7:8080/":                 "192.0.2.7",
		"http://[2001:db8:1:2:3::9]/":            "2001:db8:1:2::/64",
		"http://[::ffff:192.0.2.7]/":             "192.0.2.7",
		"https://\u4f8b\u3048.example.jp/":       "example.jp",
		"ftp://example.com/":                     "",
		"no address":                             "",
		"https://user:password@example.com/hook": "",
	} {
		if got := outbound.Receiver(raw); got != want {
			t.Errorf("Receiver(%q) = %q, want %q", raw, got, want)
		}
	}
}
