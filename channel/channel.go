package channel

import (
	"math/rand/v2"
	"slices"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
)

// Channel is a configured channel with its adapter.
type Channel struct {
	mediagate.Channel
	Fingerprint string
	Aka         []string // other fingerprints of the same account
	Vendor      providers.Provider
	Description providers.Description // of its adapter
	MediaHost   string                // host of its base_url: results may come from there though it be private
}

// Channels holds the channels that this process has.
type Channels interface {
	// Pick chooses a channel for the first route that has one; ok is false
	// when no configured channel serves any of the routes.
	Pick(model string, routes []mediagate.Route) (c Channel, r mediagate.Route, ok bool)
	// Channel finds a channel by name.
	Channel(name string) (Channel, bool)
	// All lists the channels.
	All() []Channel
}

// Configured are the channels of the settings.
type Configured struct {
	byName map[string]Channel
	list   []Channel // by priority
}

// NewConfigured takes channels whose names differ.
func NewConfigured(channels []Channel) *Configured {
	b := &Configured{byName: make(map[string]Channel, len(channels)), list: slices.Clone(channels)}
	for _, c := range channels {
		b.byName[c.Name] = c
	}
	slices.SortStableFunc(b.list, func(x, y Channel) int { return x.Priority - y.Priority })
	return b
}

// Channel finds a channel by name.
func (b *Configured) Channel(name string) (Channel, bool) {
	c, ok := b.byName[name]
	return c, ok
}

// All lists the channels.
func (b *Configured) All() []Channel { return b.list }

// Pick takes the first route that a channel serves; among its channels the
// lowest priority wins, and equal ones share by weight.
func (b *Configured) Pick(model string, routes []mediagate.Route) (Channel, mediagate.Route, bool) {
	for _, route := range routes {
		var fit []Channel
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
	return Channel{}, mediagate.Route{}, false
}

// Names lists the channels.
func (b *Configured) Names() []string {
	names := make([]string, len(b.list))
	for i, c := range b.list {
		names[i] = c.Name
	}
	return names
}

// Close closes the adapters' idle connections.
func (b *Configured) Close() {
	for _, c := range b.list {
		if closer, ok := c.Vendor.(providers.Closer); ok {
			closer.Close()
		}
	}
}
