package channel

import (
	"math/rand/v2"
	"slices"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
)

// Channel is a configured channel with its adapter. Fingerprint identifies the vendor account, so
// that a job can be matched with the account that made it (D11).
type Channel struct {
	mediagate.Channel
	Fingerprint string
	Aka         []string // other fingerprints of the same account
	Vendor      providers.Provider
	Adapter     providers.Adapter // the provider's entry in the table of adapters
}

// Candidate is a channel that can make a job, with the route that it would take.
type Candidate struct {
	Channel
	Route mediagate.Route
}

// Retired reports whether the vendor of a channel no longer has the model of a route.
type Retired func(channel string, route mediagate.Route) bool

// Channels are the channels that this process has.
type Channels interface {
	// Candidates returns the channels that can make the job, in the order in which to try them,
	// each with the route that it would take. It returns none if no configured channel serves any
	// of the routes, if all routes that can make the job are retired, or if only a missing channel
	// can use the job's source. The job needs only Params and Source. If retired is nil, no route
	// counts as retired.
	Candidates(model string, routes []mediagate.Route, job mediagate.Job, retired Retired) []Candidate
	// Made reports whether the channel's account made the source.
	Made(source *mediagate.Source, name string) bool
	// Channel returns the channel of that name.
	Channel(name string) (Channel, bool)
	// All returns all channels.
	All() []Channel
}

// Configured holds the channels of the settings. It does not change after its creation, so it needs
// no lock.
type Configured struct {
	byName map[string]Channel
	list   []Channel // by priority
}

// NewConfigured returns a Configured with these channels. Their names must differ.
func NewConfigured(channels []Channel) *Configured {
	b := &Configured{byName: make(map[string]Channel, len(channels)), list: slices.Clone(channels)}
	for _, c := range channels {
		b.byName[c.Name] = c
	}
	slices.SortStableFunc(b.list, func(x, y Channel) int { return x.Priority - y.Priority })
	return b
}

// Channel returns the channel of that name.
func (b *Configured) Channel(name string) (Channel, bool) {
	c, ok := b.byName[name]
	return c, ok
}

// All returns all channels, by priority.
func (b *Configured) All() []Channel { return b.list }

// Candidates returns the channels that support the request: the channels of the first route, then
// those of the second, and so on. Two channels of one route may support different requests, since
// their options may choose different dialects of the vendor. Within a route the lowest priority
// number comes first, and channels of the same priority are mixed by weight. A channel is listed
// once, with the first route that it can take. Its other routes would not help: if the account is
// full or the vendor is away, no route of the channel works.
//
// Channels whose account made the source of the job come before all others. Only that account
// knows the vendor's ids of the source. To any other account the source is just a file, and some
// adapters cannot use it without the ids.
//
// If no channel supports the request, Candidates returns all channels that serve a route. The
// adapter that then gets the job refuses it and says why, and the task fails with that reason.
// There are two exceptions, in which Candidates returns none. In the first, only the account that
// made the source supports the request, and this process lacks the channel of that account: the
// request may be good all the same (D11). In the second, every route that supports the request is
// retired.
func (b *Configured) Candidates(
	model string, routes []mediagate.Route, job mediagate.Job, retired Retired,
) []Candidate {
	anyRetired := false
	// First choice: the channels whose adapters support the request.
	able := b.candidates(model, routes, func(c Channel, r mediagate.Route) bool {
		if !c.supports(r, job, b.Made(job.Source, c.Name)) {
			return false
		}
		if retired == nil || !retired(c.Name, r) {
			return true
		}
		anyRetired = true
		return false
	})
	if anyRetired && len(able) == 0 {
		return nil
	}
	if len(able) > 0 {
		slices.SortStableFunc(able, func(x, y Candidate) int {
			return b.distance(job.Source, x.Name) - b.distance(job.Source, y.Name)
		})
		return able
	}
	// No channel supports it. List all that serve a route, so that the adapter can say why; or
	// none, if the missing account would support it.
	all := b.candidates(model, routes, func(Channel, mediagate.Route) bool { return true })
	if job.Source != nil &&
		!slices.ContainsFunc(all, func(c Candidate) bool { return b.Made(job.Source, c.Name) }) &&
		slices.ContainsFunc(all, func(c Candidate) bool {
			return c.Provider == job.Source.Provider && c.supports(c.Route, job, true)
		}) {
		return nil
	}
	return all
}

// candidates returns, route by route, the channels that meet the condition, each once. A channel
// that serves two of the routes keeps the place of the earlier route.
func (b *Configured) candidates(
	model string, routes []mediagate.Route, demand func(Channel, mediagate.Route) bool,
) []Candidate {
	var all []Candidate
	listed := make(map[string]bool)
	for _, route := range routes {
		for _, c := range b.serving(model, route, demand) {
			if !listed[c.Name] {
				listed[c.Name] = true
				all = append(all, Candidate{c, route})
			}
		}
	}
	return all
}

// distance orders the candidates: 0 for the account that made the source, and 1 for all others.
func (b *Configured) distance(source *mediagate.Source, name string) int {
	if b.Made(source, name) {
		return 0
	}
	return 1
}

// Made reports whether the channel's account made the source.
func (b *Configured) Made(source *mediagate.Source, name string) bool {
	if source == nil {
		return false
	}
	makers := make([]mediagate.VendorAccount, len(b.list))
	for i, c := range b.list {
		makers[i] = mediagate.VendorAccount{
			Channel: c.Name, Former: c.Former, Fingerprints: append([]string{c.Fingerprint}, c.Aka...),
		}
	}
	// If some channel has the account's fingerprint, only channels with the fingerprint count.
	// Otherwise the channels with the account's name count.
	for i, made := range source.MadeBy(makers) {
		if made && b.list[i].Name == name {
			return true
		}
	}
	return false
}

// serving returns the channels of a route that meet the condition, in the order in which to try them.
func (b *Configured) serving(
	model string, route mediagate.Route, demand func(Channel, mediagate.Route) bool,
) []Channel {
	var fit []Channel
	for _, c := range b.list {
		if c.Serves(model, route) && demand(c, route) {
			fit = append(fit, c)
		}
	}
	// Within each group of the same priority, draw a channel, move it to the front, and draw the
	// next from the rest. For example, of two channels with the weights 3 and 1, the first one
	// leads three of four lists.
	for from := range fit { // the list is by priority
		to := from
		for to < len(fit) && fit[to].Priority == fit[from].Priority {
			to++
		}
		drawn := from + draw(fit[from:to])
		first := fit[drawn]
		copy(fit[from+1:drawn+1], fit[from:drawn])
		fit[from] = first
	}
	return fit
}

// draw picks one of the channels at random, by weight, and returns its position. If none has a weight,
// it picks the first.
func draw(channels []Channel) int {
	// The chance of a channel is its share of all weights.
	total := 0
	for _, c := range channels {
		total += c.Weight
	}
	at := rand.IntN(max(total, 1)) //nolint:gosec // sharing load needs no secret numbers
	for i, c := range channels {
		if at -= c.Weight; at < 0 {
			return i
		}
	}
	return 0
}

// supports asks the channel's adapter whether it supports the request. own says that the channel's
// account made the source of the job, if it has one. An adapter that has no function Supports takes
// every request.
func (c Channel) supports(r mediagate.Route, job mediagate.Job, own bool) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = true // a bug of the adapter: the submission will show it
		}
	}()
	if c.Adapter.Supports == nil {
		return true
	}
	job.Upstream, job.Operation = r.Upstream, r.Operation
	job.Source = job.Source.As(own, mediagate.UploadComing)
	return c.Adapter.Supports(job, c.Options) == nil
}

// Names returns the names of the channels.
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
