package app

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/outbound"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/all"
)

// domain is the channel as the rest of the program knows it.
func (c Channel) domain() mediagate.Channel {
	return mediagate.Channel{
		Name: c.Name, Provider: c.Provider, BaseURL: c.BaseURL, Credentials: c.Credentials, Options: c.Options,
		Models: c.Models, Priority: c.Priority, Weight: c.Weight, Concurrency: c.Concurrency,
		RequestsPerSecond: c.RequestsPerSecond, PollMin: c.PollInterval.Min, PollMax: c.PollInterval.Max,
		CallbackSecret: c.CallbackSecret, Account: c.Account, Former: c.Former,
	}
}

// bindings are the configured channels with their adapters.
type bindings struct {
	byName map[string]activities.BoundChannel
	list   []activities.BoundChannel // by priority
}

func bind(channels []Channel, opt providers.Options) (*bindings, error) {
	b := &bindings{byName: map[string]activities.BoundChannel{}}
	for _, setting := range channels {
		ch := setting.domain()
		vendor, err := all.New(ch, opt)
		if err != nil {
			return nil, fmt.Errorf("channels: %w", err)
		}
		accounts := all.Fingerprints(ch)
		bound := activities.BoundChannel{Channel: ch, Fingerprint: accounts[0], Aka: accounts[1:], Vendor: vendor}
		if ch.BaseURL != "" {
			if bound.MediaHost, err = outbound.Host(ch.BaseURL); err != nil {
				return nil, fmt.Errorf("channel %s: base_url: %w", ch.Name, err)
			}
		}
		b.byName[ch.Name] = bound
		b.list = append(b.list, bound)
	}
	slices.SortStableFunc(b.list, func(x, y activities.BoundChannel) int { return x.Priority - y.Priority })
	return b, nil
}

// Channel finds a channel by name.
func (b *bindings) Channel(name string) (activities.BoundChannel, bool) {
	c, ok := b.byName[name]
	return c, ok
}

// All lists the channels.
func (b *bindings) All() []activities.BoundChannel { return b.list }

// Pick takes the first route that a channel serves; among its channels the
// lowest priority wins, and equal ones share by weight.
func (b *bindings) Pick(model string, routes []mediagate.Route) (activities.BoundChannel, mediagate.Route, bool) {
	for _, route := range routes {
		var fit []activities.BoundChannel
		total := 0
		for _, c := range b.list {
			if c.Provider != route.Provider || (len(c.Models) > 0 && !slices.Contains(c.Models, model)) {
				continue
			}
			if len(fit) > 0 && c.Priority != fit[0].Priority {
				break
			}
			fit = append(fit, c)
			total += c.Weight
		}
		if len(fit) == 0 {
			continue
		}
		at := rand.IntN(max(total, 1)) //nolint:gosec // sharing load needs no secret numbers
		for _, c := range fit {
			if at -= c.Weight; at < 0 {
				return c, route, true
			}
		}
		return fit[0], route, true
	}
	return activities.BoundChannel{}, mediagate.Route{}, false
}

// names lists the channels.
func (b *bindings) names() []string {
	names := make([]string, len(b.list))
	for i, c := range b.list {
		names[i] = c.Name
	}
	return names
}

func (b *bindings) close() {
	for _, c := range b.list {
		if closer, ok := c.Vendor.(providers.Closer); ok {
			closer.Close()
		}
	}
}
