package app

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"

	"github.com/mediagate/mediagate/internal/outbound"
)

// noProxy is the proxy of a channel that does not use outbound.proxy.
const noProxy = "none"

// proxy checks the optional setting of a proxy, which may contain a user and a password. Its
// messages never show them.
func (v *validator) proxy(path, value string) {
	if value == "" {
		return
	}
	u, err := url.Parse(value)
	if err != nil {
		v.add(path, "must be an http or https URL")
		return
	}
	u.User = nil
	if problem := bareAddress.problem(u.String()); problem != "" {
		v.add(path, problem)
		return
	}
	v.check(!strings.Contains(value, "#"), path, "must have no fragment: a # in a password is %%23")
}

// proxyOf returns the proxy for a channel's calls, or nil.
func (c Config) proxyOf(ch Channel) *url.URL {
	text := cmp.Or(ch.Proxy, c.Outbound.Proxy)
	if text == "" || text == noProxy {
		return nil
	}
	u, _ := url.Parse(text) // validated before
	return u
}

// way says how a channel's calls reach its vendor.
type way struct {
	proxy *url.URL // nil for none
	host  string   // host and port of a base_url that may be private; results may come from there, too
}

// ways returns the ways of the channels by name. The empty name stands for channels that are not
// configured any more, whose results use outbound.proxy.
func (c Config) ways() (map[string]way, error) {
	ways := map[string]way{"": {proxy: c.proxyOf(Channel{})}}
	for _, ch := range c.Channels {
		w := way{proxy: c.proxyOf(ch)}
		if ch.BaseURL != "" {
			var err error
			if w.host, err = outbound.PrivateHost(ch.BaseURL); err != nil {
				return nil, fmt.Errorf("channel %s: base_url: %w", ch.Name, err)
			}
		}
		ways[ch.Name] = w
	}
	return ways, nil
}
