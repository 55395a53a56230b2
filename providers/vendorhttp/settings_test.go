package vendorhttp

import (
	"strings"
	"testing"

	"github.com/mediagate/mediagate"
)

func TestSettings(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		base, key string
		field     string // the field that is wrong; empty: none
	}{
		"public address":       {"", "k", ""},
		"address and prefix":   {"https://api.example.com/v1/", "k", ""},
		"relative":             {"api.example.com", "k", "base_url"},
		"of files":             {"file:///etc", "k", "base_url"},
		"with a user":          {"https://me:pass@api.example.com", "k", "base_url"},
		"with a query":         {"https://api.example.com/?a=b", "k", "base_url"},
		"with an empty query":  {"https://api.example.com/?", "k", "base_url"},
		"with a fragment":      {"https://api.example.com/#a", "k", "base_url"},
		"no key":               {"", "", "credentials.api_key"},
		"key with line breaks": {"", "k\r\nX-Evil: 1", "credentials.api_key"},
		"oversized key":        {"", strings.Repeat("k", maxCredential+1), "credentials.api_key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check := Check(mediagate.Channel{Name: "toy-a", BaseURL: tc.base, Credentials: mediagate.Secrets(map[string]string{"api_key": tc.key})})
			check.BaseURL("https://api.toy.example.com")
			check.Credential("api_key")
			err := check.Err()
			if (err != nil) != (tc.field != "") {
				t.Fatal(err)
			}
			if err != nil && (!mediagate.Is(err, mediagate.KindInvalid) || !strings.Contains(err.Error(), `"toy-a": `+tc.field)) {
				t.Errorf("%v, want it to name the channel and %s", err, tc.field)
			}
		})
	}
}
