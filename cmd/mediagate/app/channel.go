package app

import (
	"fmt"
	"slices"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
	"github.com/mediagate/mediagate/catalog"
	"github.com/mediagate/mediagate/channel"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/all"
)

// domain converts the channel to its domain type.
func (c Channel) domain() mediagate.Channel {
	return mediagate.Channel{
		Name: c.Name, Provider: c.Provider, BaseURL: c.BaseURL, Credentials: mediagate.Secrets(c.Credentials),
		Options: c.Options,
		Models:  c.Models, Priority: c.Priority, Weight: c.Weight, Concurrency: c.Concurrency,
		RequestsPerSecond: c.RequestsPerSecond, PollMin: c.PollInterval.Min, PollMax: c.PollInterval.Max,
		CallbackSecret: mediagate.NewSecret(c.CallbackSecret), Account: c.Account, Former: c.Former,
		Passthrough: upstreams(c.Passthrough),
	}
}

func upstreams(passed map[string]Passed) map[string]string {
	names := make(map[string]string, len(passed))
	for id, p := range passed {
		names[id] = p.Upstream
	}
	return names
}

// domainChannels converts the configured channels to their domain type. A channel that serves a
// model also serves its aliases.
func domainChannels(settings []Channel, models *catalog.Catalog) []mediagate.Channel {
	list := make([]mediagate.Channel, len(settings))
	for i, setting := range settings {
		list[i] = setting.domain()
		list[i].Models = slices.Clone(setting.Models)
		for _, m := range models.Models() {
			if slices.Contains(setting.Models, m.Canonical) && !slices.Contains(setting.Models, m.ID) {
				list[i].Models = append(list[i].Models, m.ID)
			}
		}
	}
	return list
}

// apiChannels converts the channels to what operators see over the API.
func apiChannels(channels []mediagate.Channel) []api.Channel {
	list := make([]api.Channel, len(channels))
	for i, c := range channels {
		list[i] = api.Channel{
			Name: c.Name, Provider: c.Provider, Models: c.Models, Priority: c.Priority, Weight: c.Weight,
			Concurrency: c.Concurrency, Serves: c.Serves,
		}
	}
	return list
}

// openChannels opens the adapters of the channels. Their calls and downloads use the channel's
// proxy. observe returns the function that gets each call of a channel. It may be nil.
func openChannels(
	vendors all.Vendors, channels []mediagate.Channel, opt providers.Options, files fetcher,
	observe func(channel string) func(effect string, status int, took time.Duration), t *traces,
) (*channel.Configured, error) {
	opened := make([]channel.Channel, len(channels))
	for i, ch := range channels {
		opt.Watch = t.watch(ch)
		opt.Proxy, opt.Follow = files.ways[ch.Name].proxy, files.follow(ch.Name)
		if observe != nil {
			opt.Observe = observe(ch.Name)
		}
		vendor, err := vendors.New(ch, opt)
		if err != nil {
			return nil, fmt.Errorf("channels: %w", err)
		}
		adapter, _ := vendors.Adapter(ch.Provider)
		accounts := vendors.Fingerprints(ch)
		opened[i] = channel.Channel{
			Channel: ch, Fingerprint: accounts[0], Aka: accounts[1:], Vendor: vendor, Adapter: adapter,
		}
	}
	return channel.NewConfigured(opened), nil
}

// descriptions gives access to the adapters' descriptions of their operations.
type descriptions struct{ vendors all.Vendors }

// Operation returns the operation that a route names.
func (d descriptions) Operation(r mediagate.Route) (providers.Operation, bool) {
	adapter, _ := d.vendors.Adapter(r.Provider)
	o, ok := adapter.Description.Operations[r.Operation]
	return o, ok
}
