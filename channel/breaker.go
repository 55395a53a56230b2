package channel

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/mediagate/mediagate"
)

// A channel has a breaker, so that a vendor that is away, or refuses our
// account, costs few tasks an attempt, and tasks that wait for it few calls.
//
// Closed, it lets all jobs through. It opens at once when the vendor refuses
// our credentials or says that our account is empty; and when, of the submits
// that ended within failureWindow here, failuresToOpen or more and at least half
// could not reach the vendor, got no answer, or one that makes no sense. What
// the vendor says of a request (invalid, moderated) or of the moment (throttled,
// full) is an answer, and none of these. What was not sent for want of time or
// memory here is neither. A job that succeeded by the vendor's word, and of which
// it names no media, counts as one more submit that failed. Polls don't count:
// they go to another endpoint, one job can spoil them, and they could not close
// what they opened, since to learn whether jobs are taken takes a job.
//
// Open, it lets none through, until after openFor one is: the probe. An answer
// closes the breaker, another failure opens it for twice as long, up to openMost.
// The probe is a task like any other. While no task waits the breaker stays as it is,
// and the next task is the probe.
//
// Each process counts for itself; the state is the database's, one row a channel
// (storage), so that all processes stop and go together, and that one job is
// the probe. The probe has a lease: a process that dies with it delays the next
// one and no more.
const (
	failureWindow  = time.Minute
	failuresToOpen = 5
	openFor        = 30 * time.Second
	openMost       = 5 * time.Minute
	// probeRoom is what a probe's lease has beside the longest call.
	probeRoom = 30 * time.Second
	// statesFresh is for how long a process goes by what it has read.
	statesFresh = time.Second
	// statesTimeout bounds one look at the database, which submits wait for.
	statesTimeout = 2 * time.Second
	// countEvery is how often what a process has counted is stored.
	countEvery = 5 * time.Second
	// retiredFor is how long no job goes to a model that the vendor says it has no more. After
	// that one job asks again.
	retiredFor = time.Hour
)

// BreakerStore keeps the breakers of all processes.
type BreakerStore interface {
	ChannelStates(ctx context.Context) ([]mediagate.ChannelState, error)
	TripBreaker(ctx context.Context, t mediagate.Trip) (state mediagate.ChannelState, tripped bool, err error)
	ClaimProbe(
		ctx context.Context, channel, probe string, lease time.Duration,
	) (state mediagate.ChannelState, claimed bool, err error)
	CloseBreaker(ctx context.Context, channel, probe string) (state mediagate.ChannelState, closed bool, err error)
	ReopenBreaker(
		ctx context.Context, channel, probe string, reason mediagate.ParkReason, openFor time.Duration,
	) (state mediagate.ChannelState, reopened bool, err error)
	ReleaseProbe(ctx context.Context, channel, probe string) (state mediagate.ChannelState, released bool, err error)
	RetireModel(ctx context.Context, channel, upstream string, shutFor time.Duration) (mediagate.ChannelState, error)
	CountCalls(ctx context.Context, calls []mediagate.ChannelCalls) error
}

// Breakers are what a process knows of all channels' breakers, and its part in
// them. Its fields are set before it is used.
type Breakers struct {
	Store  BreakerStore
	Now    func() time.Time
	Logger *slog.Logger
	NewID  func(prefix string) string

	first   singleflight.Group // the first look at the database
	reading sync.Mutex         // held by who asks the database for the states

	mu      sync.Mutex
	states  map[string]mediagate.ChannelState
	readAt  time.Time
	changed map[string]bool // by this process since the last reading began
	windows map[string]*window
	counts  map[counted]*mediagate.ChannelCalls
}

type counted struct {
	channel string
	minute  time.Time
}

// TakesJobs reports whether the channel takes new jobs. One that takes none still
// polls, mirrors and cancels what it has. It asks the database at most once in
// statesFresh, for all channels; while that is away it goes by what was known
// last. All wait for the first look.
func (b *Breakers) TakesJobs(name string) bool { return b.State(name).TakesJobs(b.Now()) }

// State is what is known of the channel. One without a row takes jobs.
func (b *Breakers) State(name string) mediagate.ChannelState {
	switch never, stale := b.age(); {
	case never:
		_, _, _ = b.first.Do("", func() (any, error) {
			b.reading.Lock()
			defer b.reading.Unlock()
			if never, _ := b.age(); never {
				b.read()
			}
			return nil, nil
		})
	case stale && b.reading.TryLock():
		b.read()
		b.reading.Unlock()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if s, ok := b.states[name]; ok {
		return s
	}
	return mediagate.ChannelState{Name: name, Enabled: true}
}

// Retired reports whether the channel's vendor said lately that it no longer has the model of
// the route. What another process was told is known here a second later.
func (b *Breakers) Retired(name string, route mediagate.Route) bool {
	return b.State(name).HasRetired(route.Upstream, b.Now())
}

// Retire keeps jobs from the channel's route for an hour: the vendor said that it has no such
// model. The channel takes jobs for its other models.
func (b *Breakers) Retire(ctx context.Context, name string, route mediagate.Route) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	s, err := b.Store.RetireModel(ctx, name, route.Upstream, retiredFor)
	if err != nil {
		b.Logger.WarnContext(ctx, "a retired model was not stored: the vendor is asked again", "channel", name, "error", err)
		return
	}
	b.learn(s)
	b.Logger.ErrorContext(ctx, "a vendor has no such model", "channel", name, "upstream", route.Upstream, "until", s.Retired[route.Upstream])
}

// LastSeen returns when a worker last had the channel; zero if none had.
func (b *Breakers) LastSeen(ctx context.Context, name string) (time.Time, error) {
	rows, err := b.Store.ChannelStates(ctx)
	for _, row := range rows {
		if row.Name == name {
			return row.LastSeenAt, err
		}
	}
	return time.Time{}, err
}

// age reports whether the database was never asked, and whether it is time to ask again.
func (b *Breakers) age() (never, stale bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.readAt.IsZero(), b.Now().Sub(b.readAt) >= statesFresh
}

func (b *Breakers) read() {
	b.mu.Lock()
	b.changed = make(map[string]bool)
	b.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), statesTimeout)
	defer cancel()
	rows, err := b.Store.ChannelStates(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.readAt = b.Now()
	if err != nil {
		b.Logger.Warn("the channels' states were not read", "error", err)
		return
	}
	before := b.states
	b.states = make(map[string]mediagate.ChannelState, len(rows))
	for _, row := range rows {
		b.states[row.Name] = row
	}
	for name := range b.changed { // the reading may be older
		b.states[name] = before[name]
	}
}

// learn takes in what the database said to a change.
func (b *Breakers) learn(s mediagate.ChannelState) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.states == nil {
		b.states, b.changed = make(map[string]mediagate.ChannelState), make(map[string]bool)
	}
	b.states[s.Name], b.changed[s.Name] = s, true
}

// Pass is a job's way through the breaker of a channel.
type Pass struct {
	breakers *Breakers
	channel  string
	began    time.Time
	probe    string // the job is the probe
	trips    int    // before it
}

// Enter lets a new job through, or returns false. Where the breaker is open, a job that
// it lets through is the probe, for as long as the call may take. Returns
// KindUnavailable without a database, if it had to be asked.
func (b *Breakers) Enter(ctx context.Context, name string, call time.Duration) (Pass, bool, error) {
	s, now := b.State(name), b.Now()
	e := Pass{breakers: b, channel: name, began: now}
	if s.Enabled && !s.Open {
		return e, true, nil
	}
	if !s.TakesJobs(now) {
		return Pass{}, false, nil
	}
	e.probe = b.NewID("probe_")
	s, claimed, err := b.Store.ClaimProbe(ctx, name, e.probe, call+probeRoom)
	if err != nil {
		return Pass{}, false, err
	}
	b.learn(s)
	e.trips = s.Trips
	if claimed {
		b.Logger.InfoContext(ctx, "a job finds out whether the vendor is back", "channel", name)
		return e, true, nil
	}
	e.probe = ""
	return e, s.Enabled && !s.Open, nil // somebody else has closed it
}

// Inside is the pass of a job that was let through before.
func (b *Breakers) Inside(name string) Pass {
	return Pass{breakers: b, channel: name, began: b.Now()}
}

// evidence is what the end of a submit shows of its channel.
type evidence uint8

const (
	none    evidence = iota
	answers          // the vendor is there, and takes our account
	fails            // the vendor is away, or makes no sense
	refuses          // the vendor refuses our account
)

// evidenceOf is what a submit's error shows of the channel.
func evidenceOf(err error) (evidence, mediagate.ParkReason) {
	switch {
	case err == nil:
		return answers, ""
	case errors.Is(err, mediagate.ErrHeldUp):
		return none, ""
	}
	switch mediagate.KindOf(err) {
	case mediagate.KindInvalid, mediagate.KindModerated, mediagate.KindThrottled,
		mediagate.KindCapacity, mediagate.KindNotFound, mediagate.KindNoModel, mediagate.KindForbidden:
		return answers, ""
	case mediagate.KindCredentials:
		return refuses, mediagate.ParkCredentials
	case mediagate.KindFunds:
		return refuses, mediagate.ParkFunds
	case mediagate.KindUnreached, mediagate.KindAmbiguous, mediagate.KindTransient, mediagate.KindVendor:
		return fails, mediagate.ParkProviderAway
	default: // a fault of ours
		return none, ""
	}
}

// Ended notes how the job's call ended, and moves the breaker if that is reason
// enough.
func (e Pass) Ended(ctx context.Context, err error) {
	if e.breakers == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	b := e.breakers
	seen, reason := evidenceOf(err)
	if seen == none {
		e.Unused(ctx)
		return
	}
	b.count(e, seen, err)
	switch {
	case e.probe != "" && seen == answers:
		b.close(ctx, e)
	case e.probe != "":
		b.reopen(ctx, e, reason)
	case seen == refuses, seen == fails && b.tooMany(e):
		b.trip(ctx, e, reason)
	}
}

// Unused gives the probe back if the job was it: nothing was sent.
func (e Pass) Unused(ctx context.Context) {
	if e.breakers == nil || e.probe == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	s, _, err := e.breakers.Store.ReleaseProbe(ctx, e.channel, e.probe)
	e.breakers.moved(ctx, s, err)
}

// moved takes in a change, or says that it was not stored: the lease of a probe
// and the next failure make good for it.
func (b *Breakers) moved(ctx context.Context, s mediagate.ChannelState, err error) bool {
	if err != nil {
		b.Logger.WarnContext(ctx, "a breaker was not moved", "error", err)
		return false
	}
	b.learn(s)
	return true
}

func (b *Breakers) close(ctx context.Context, e Pass) {
	s, closed, err := b.Store.CloseBreaker(ctx, e.channel, e.probe)
	if b.moved(ctx, s, err) && closed {
		b.Logger.InfoContext(ctx, "a channel is back", "channel", e.channel)
	}
}

func (b *Breakers) reopen(ctx context.Context, e Pass, reason mediagate.ParkReason) {
	pause := min(openFor<<min(e.trips, 10), openMost)
	s, reopened, err := b.Store.ReopenBreaker(ctx, e.channel, e.probe, reason, pause)
	if b.moved(ctx, s, err) && reopened {
		b.Logger.WarnContext(ctx, "a channel stays out",
			"channel", e.channel, "reason", string(reason), "next_probe", s.ProbeAt)
	}
}

// trip takes the channel out. Its log line is the operators' alert.
func (b *Breakers) trip(ctx context.Context, e Pass, reason mediagate.ParkReason) {
	s, tripped, err := b.Store.TripBreaker(ctx, mediagate.Trip{
		Channel: e.channel, Reason: reason, Began: e.began, OpenFor: openFor,
	})
	if b.moved(ctx, s, err) && tripped {
		b.Logger.ErrorContext(ctx, "a channel is taken out",
			"channel", e.channel, "reason", string(reason), "next_probe", s.ProbeAt)
	}
}

// Saw notes an error of a call that is no submit, for operators to see.
func (b *Breakers) Saw(channel, what string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.note(b.minute(channel), what, err)
}

// count notes a submit.
func (b *Breakers) count(e Pass, seen evidence, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.minute(e.channel)
	c.Submits++
	if seen != answers {
		c.Failures++
		b.note(c, "submit", err)
	}
	if b.windows == nil {
		b.windows = make(map[string]*window)
	}
	w := b.windows[e.channel]
	if since := b.states[e.channel].ChangedAt; w == nil || !w.since.Equal(since) {
		w = &window{since: since}
		b.windows[e.channel] = w
	}
	if !e.began.Before(w.since) {
		w.add(b.Now(), seen == answers)
	}
}

// minute is what is counted of the channel now.
func (b *Breakers) minute(channel string) *mediagate.ChannelCalls {
	if b.counts == nil {
		b.counts = make(map[counted]*mediagate.ChannelCalls)
	}
	key := counted{channel, b.Now().Truncate(time.Minute)}
	if b.counts[key] == nil {
		b.counts[key] = &mediagate.ChannelCalls{Channel: channel, Minute: key.minute}
	}
	return b.counts[key]
}

// note keeps the kind of an error: its words may be the vendor's, who may repeat
// the prompt.
func (b *Breakers) note(c *mediagate.ChannelCalls, what string, err error) {
	c.LastError, c.LastErrorAt = what+": "+mediagate.KindOf(err).String(), b.Now()
}

// tooMany reports that the channel's recent submits are reason enough to open.
func (b *Breakers) tooMany(e Pass) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	ok, failed := b.windows[e.channel].sum(b.Now())
	return failed >= failuresToOpen && failed >= ok
}

// Run stores what this process counts until ctx ends.
func (b *Breakers) Run(ctx context.Context) {
	tick := time.NewTicker(countEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			b.Flush(context.WithoutCancel(ctx))
			return
		}
		b.Flush(ctx)
	}
}

// Flush stores what was counted. What cannot be stored is dropped: it is for
// operators to look at, and decides nothing.
func (b *Breakers) Flush(ctx context.Context) {
	b.mu.Lock()
	calls := make([]mediagate.ChannelCalls, 0, len(b.counts))
	for _, c := range b.counts {
		calls = append(calls, *c)
	}
	b.counts = nil
	b.mu.Unlock()
	if len(calls) == 0 {
		return
	}
	// In one order everywhere: processes must not lock each other out.
	slices.SortFunc(calls, func(x, y mediagate.ChannelCalls) int {
		return cmp.Or(cmp.Compare(x.Channel, y.Channel), x.Minute.Compare(y.Minute))
	})
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if err := b.Store.CountCalls(ctx, calls); err != nil {
		b.Logger.WarnContext(ctx, "calls were not counted", "error", err)
	}
}

// windowParts is in how many parts a window forgets.
const windowParts = 12

// window is how the submits of a channel ended lately, since its breaker last
// moved.
type window struct {
	since time.Time
	parts [windowParts]struct {
		at         int64 // which part of time
		ok, failed int
	}
}

func partOf(now time.Time) int64 { return now.UnixNano() / int64(failureWindow/windowParts) }

func (w *window) add(now time.Time, ok bool) {
	at := partOf(now)
	p := &w.parts[at%windowParts]
	if p.at != at {
		p.at, p.ok, p.failed = at, 0, 0
	}
	if ok {
		p.ok++
	} else {
		p.failed++
	}
}

func (w *window) sum(now time.Time) (ok, failed int) {
	if w == nil {
		return 0, 0
	}
	at := partOf(now)
	for _, p := range w.parts {
		if at-p.at < windowParts {
			ok, failed = ok+p.ok, failed+p.failed
		}
	}
	return ok, failed
}
