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
	Adapter     providers.Adapter // its row of the table of adapters
}

// Candidate is a channel that can make a job, and the route that it would take.
type Candidate struct {
	Channel
	Route mediagate.Route
}

// Retired reports whether the vendor of a channel no longer has the model of a route.
type Retired func(channel string, route mediagate.Route) bool

// Channels holds the channels that this process has.
type Channels interface {
	// Candidates lists the channels that can make the job, with the route that
	// each would take, in the order in which to try them; none when no configured
	// channel serves any of the routes, or when all that can make the job are retired.
	// Of the job, params and source are read. A nil retired leaves no route out.
	Candidates(model string, routes []mediagate.Route, job mediagate.Job, retired Retired) []Candidate
	// Made reports whether the channel's account made the source.
	Made(source *mediagate.Source, name string) bool
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

// Candidates lists, for one route after the other, the channels which can
// express the request: options may choose between dialects of a vendor. Of a
// route's channels the lowest priority comes first, and equal ones are mixed by
// weight. Before all come those whose account made what the job works on: there
// it is known with all that belongs to it, elsewhere it is a file of unknown
// origin, if that goes at all. A channel stands for the first route that it can
// take: what is full or away is the account, not the route. Where no channel can,
// all are listed that serve a route: the adapter says why not, and the task ends
// with that. But none is where only the account can that made the source, whose
// channel is not here: that says nothing of the request (D11). And none is where each
// route that could make the job is retired.
func (b *Configured) Candidates(
	model string, routes []mediagate.Route, job mediagate.Job, retired Retired,
) []Candidate {
	anyRetired := false
	able := b.candidates(model, routes, func(c Channel, r mediagate.Route) bool {
		if !c.expressesFrom(r, job, b.Made(job.Source, c.Name)) {
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
	all := b.candidates(model, routes, func(Channel, mediagate.Route) bool { return true })
	if job.Source != nil &&
		!slices.ContainsFunc(all, func(c Candidate) bool { return b.Made(job.Source, c.Name) }) &&
		slices.ContainsFunc(all, func(c Candidate) bool {
			return c.Provider == job.Source.Provider && c.expressesFrom(c.Route, job, true)
		}) {
		return nil
	}
	return all
}

// candidates lists, for one route after the other, the channels that meet the
// demand, each once.
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

// expressesFrom is expresses for a job that works on a source, which the
// channel's account has made if own says so.
func (c Channel) expressesFrom(r mediagate.Route, job mediagate.Job, own bool) bool {
	job.Source = job.Source.As(own, mediagate.UploadComing)
	return c.expresses(r, job)
}

// distance is 0 where the source was made, else 1.
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
	for i, made := range source.MadeBy(makers) {
		if made && b.list[i].Name == name {
			return true
		}
	}
	return false
}

// serving lists the channels of a route that meet the demand.
func (b *Configured) serving(
	model string, route mediagate.Route, demand func(Channel, mediagate.Route) bool,
) []Channel {
	var fit []Channel
	for _, c := range b.list {
		if c.Serves(model, route) && demand(c, route) {
			fit = append(fit, c)
		}
	}
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

// draw picks one of the channels by weight; the first where none has any.
func draw(channels []Channel) int {
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

// expresses asks the channel's adapter.
func (c Channel) expresses(r mediagate.Route, job mediagate.Job) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = true // a bug of the adapter: its submission will show it
		}
	}()
	if c.Adapter.Express == nil {
		return true
	}
	job.Upstream, job.Operation = r.Upstream, r.Operation
	return c.Adapter.Express(job, c.Options) == nil
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
