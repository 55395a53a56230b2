package channel

import (
	"encoding/json"
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
	Adapter     providers.Adapter // its row of the table of adapters
	MediaHost   string            // host of its base_url: results may come from there though it be private
}

// Channels holds the channels that this process has.
type Channels interface {
	// Pick chooses a channel for the first route that has one which can express
	// the request; ok is false when no configured channel serves any of the
	// routes.
	Pick(model string, routes []mediagate.Route, params json.RawMessage) (c Channel, r mediagate.Route, ok bool)
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

// Pick takes the first route that a channel serves which can express the
// request: options may choose between dialects of a vendor. Among its channels
// the lowest priority wins, and equal ones share by weight. Where none can, one
// is taken all the same: its adapter says why not, and the task ends with that.
func (b *Configured) Pick(model string, routes []mediagate.Route, params json.RawMessage) (Channel, mediagate.Route, bool) {
	for _, demand := range []func(Channel, mediagate.Route) bool{
		func(c Channel, r mediagate.Route) bool { return c.expresses(r, params) },
		func(Channel, mediagate.Route) bool { return true },
	} {
		for _, route := range routes {
			if c, ok := b.pick(model, route, demand); ok {
				return c, route, true
			}
		}
	}
	return Channel{}, mediagate.Route{}, false
}

func (b *Configured) pick(model string, route mediagate.Route, demand func(Channel, mediagate.Route) bool) (Channel, bool) {
	var fit []Channel
	total := 0
	for _, c := range b.list {
		switch {
		case c.Provider != route.Provider, len(c.Models) > 0 && !slices.Contains(c.Models, model), !demand(c, route):
			continue
		case len(fit) > 0 && c.Priority != fit[0].Priority:
			continue // the list is by priority
		}
		fit = append(fit, c)
		total += c.Weight
	}
	if len(fit) == 0 {
		return Channel{}, false
	}
	at := rand.IntN(max(total, 1)) //nolint:gosec // sharing load needs no secret numbers
	for _, c := range fit {
		if at -= c.Weight; at < 0 {
			return c, true
		}
	}
	return fit[0], true
}

// expresses asks the channel's adapter.
func (c Channel) expresses(r mediagate.Route, params json.RawMessage) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = true // a bug of the adapter: its submission will show it
		}
	}()
	if c.Adapter.Express == nil {
		return true
	}
	return c.Adapter.Express(mediagate.Job{Upstream: r.Upstream, Operation: r.Operation, Params: params}, c.Options) == nil
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
