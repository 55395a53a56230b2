package providertest

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/all"
)

// settings covers what a channel may get wrong: each error names the channel
// and the field, and none the value.
func (s Suite) settings(t *testing.T) {
	t.Parallel()
	change := func(edit func(*mediagate.Channel)) mediagate.Channel {
		ch := s.Channel
		ch.Credentials = maps.Clone(ch.Credentials)
		ch.Options = maps.Clone(ch.Options)
		edit(&ch)
		return ch
	}
	cases := map[string]struct {
		channel mediagate.Channel
		field   string
	}{
		"unknown credential": {change(func(c *mediagate.Channel) { c.Credentials["pin"] = mediagate.NewSecret("1234") }), "credentials.pin"},
		"unknown option":     {change(func(c *mediagate.Channel) { c.Options = map[string]string{"turbo": "yes"} }), "options.turbo"},
		"relative base URL":  {change(func(c *mediagate.Channel) { c.BaseURL = "api.example.com" }), "base_url"},
		"base URL of files":  {change(func(c *mediagate.Channel) { c.BaseURL = "file:///etc" }), "base_url"},
		"base URL and user":  {change(func(c *mediagate.Channel) { c.BaseURL = "https://me:pass@api.example.com" }), "base_url"},
		"base URL and query": {change(func(c *mediagate.Channel) { c.BaseURL = "https://api.example.com/?a=b" }), "base_url"},
	}
	for name := range s.Channel.Credentials {
		cases["no "+name] = struct {
			channel mediagate.Channel
			field   string
		}{change(func(c *mediagate.Channel) { delete(c.Credentials, name) }), "credentials."}
		cases["line break in "+name] = struct {
			channel mediagate.Channel
			field   string
		}{change(func(c *mediagate.Channel) {
			c.Credentials[name] = mediagate.NewSecret(c.Credentials[name].Reveal() + "\r\nX-Evil: 1")
		}), "credentials." + name}
		cases["oversized "+name] = struct {
			channel mediagate.Channel
			field   string
		}{change(func(c *mediagate.Channel) { c.Credentials[name] = mediagate.NewSecret(strings.Repeat("k", 5000)) }), "credentials." + name}
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := s.adapter(t).Open(tc.channel, providers.Options{})
			if !mediagate.Is(err, mediagate.KindInvalid) {
				t.Fatalf("New: %v, want an error of kind invalid", err)
			}
			for _, want := range []string{tc.channel.Name, tc.field} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not name %q: %v", want, err)
				}
			}
			s.discreet(t, err.Error(), "")
		})
	}
	t.Run("public address", func(t *testing.T) {
		t.Parallel()
		p, err := s.adapter(t).Open(s.Channel, providers.Options{})
		if s.Private {
			if !mediagate.Is(err, mediagate.KindInvalid) || !strings.Contains(err.Error(), "base_url") {
				t.Errorf("New without an address: %v", err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		// Whatever holds the adapter may be printed, as by a panic.
		for _, verb := range []string{"%v", "%+v", "%#v"} {
			s.discreet(t, fmt.Sprintf(verb, p)+fmt.Sprintf(verb, struct{ vendor any }{p})+fmt.Sprintf(verb, s.Channel), "")
		}
		if c, ok := p.(providers.Closer); ok {
			c.Close()
		}
	})
	t.Run("account", func(t *testing.T) {
		t.Parallel()
		account := s.adapter(t).Account
		same := change(func(c *mediagate.Channel) { c.Name, c.BaseURL, c.Priority = "other", "https://api.example.com", 9 })
		if account(same) != account(s.Channel) {
			t.Error("a renamed channel of the same account has another name of it")
		}
		other := change(func(c *mediagate.Channel) {
			for name := range c.Credentials {
				c.Credentials[name] = mediagate.NewSecret(c.Credentials[name].Reveal() + "x")
			}
		})
		if account(other) == account(s.Channel) {
			t.Error("two accounts have one name")
		}
		s.discreet(t, all.Fingerprint(s.Channel), "")
	})
}
