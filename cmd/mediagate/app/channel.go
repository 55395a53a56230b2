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

// domain is the channel as the rest of the program knows it.
func (c Channel) domain() mediagate.Channel {
	return mediagate.Channel{
		Name: c.Name, Provider: c.Provider, BaseURL: c.BaseURL, Credentials: mediagate.Secrets(c.Credentials), Options: c.Options,
		Models: c.Models, Priority: c.Priority, Weight: c.Weight, Concurrency: c.Concurrency,
		RequestsPerSecond: c.RequestsPerSecond, PollMin: c.PollInterval.Min, PollMax: c.PollInterval.Max,
		CallbackSecret: mediagate.NewSecret(c.CallbackSecret), Account: c.Account, Former: c.Former, Passthrough: upstreams(c.Passthrough),
	}
}

func upstreams(passed map[string]Passed) map[string]string {
	names := make(map[string]string, len(passed))
	for id, p := range passed {
		names[id] = p.Upstream
	}
	return names
}

// known are the configured channels as the rest of the program knows them. Who
// serves a model serves its aliases.
func known(settings []Channel, models *catalog.Catalog) []mediagate.Channel {
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

// shown are the channels as operators see them over the API.
func shown(channels []mediagate.Channel) []api.Channel {
	list := make([]api.Channel, len(channels))
	for i, c := range channels {
		list[i] = api.Channel{Name: c.Name, Provider: c.Provider, Models: c.Models, Priority: c.Priority, Weight: c.Weight, Concurrency: c.Concurrency, Serves: c.Serves}
	}
	return list
}

// openChannels opens the adapters of channels, whose calls and downloads go the channel's way.
// observe, which may be nil, makes for each channel what hears of its calls.
func openChannels(vendors all.Vendors, channels []mediagate.Channel, opt providers.Options, files fetcher, observe func(channel string) func(effect string, status int, took time.Duration), t *traces) (*channel.Configured, error) {
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

// descriptions are what the adapters say of their operations.
type descriptions struct{ vendors all.Vendors }

// Operation is the one that a route names.
func (d descriptions) Operation(r mediagate.Route) (providers.Operation, bool) {
	adapter, _ := d.vendors.Adapter(r.Provider)
	o, ok := adapter.Description.Operations[r.Operation]
	return o, ok
}
