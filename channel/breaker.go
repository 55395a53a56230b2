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

// A channel has a breaker. While a vendor is away, or refuses our account, the breaker keeps
// tasks from using up attempts there, and tasks that wait make no calls.
//
// A closed breaker lets all jobs through. It opens at once if the vendor refuses our credentials
// or says that our account is empty. It also opens if enough submits fail. The process looks at the
// submits that ended within the last failureWindow. The breaker opens if at least failuresToOpen of
// them failed, and these are at least half of them. For example, with 4 failures of 4 it stays
// closed, with 5 of 10 it opens, and with 5 of 11 it stays closed.
//
// A submit fails if it does not reach the vendor, if the answer is lost, or if the answer proves
// nothing, such as HTTP 500. An answer about the request (invalid, moderated), about the model (none
// of that name, not allowed to us) or about the moment (throttled, full) is a success here. A submit
// that we did not send, because time or memory on our side had run out, and a submit that failed by
// a fault of ours count as neither. If the vendor says that a job succeeded, but names no media for
// it, the job counts as one more failed submit.
//
// Polls do not count. They go to another endpoint, and one job can make them fail. A poll that
// succeeds does not show that the vendor takes jobs, so it could not close the breaker.
//
// An open breaker lets no job through for openFor. Then it lets one through, the probe. If the
// vendor answers the probe, the breaker closes. If the probe fails, the breaker stays open for
// twice as long as before, up to openMost: 30 s, 1 min, 2 min, 4 min, 5 min. The probe is a task
// like any other. As long as there is no task, the breaker stays as it is, and the next task is
// the probe.
//
// Each process counts its own submits. The state of the breaker is in the database, one row a
// channel, so that all processes stop and continue together, and only one job is the probe. The
// probe has a lease: if its process dies, another job becomes the probe when the lease ends.
const (
	failureWindow  = time.Minute
	failuresToOpen = 5
	openFor        = 30 * time.Second
	openMost       = 5 * time.Minute
	// probeRoom is how much longer a probe's lease is than the longest call.
	probeRoom = 30 * time.Second
	// statesFresh is how long a process relies on the states that it has read.
	statesFresh = time.Second
	// statesTimeout bounds one reading of the states, for which submits wait.
	statesTimeout = 2 * time.Second
	// countEvery is how often a process stores what it has counted.
	countEvery = 5 * time.Second
	// retiredFor is how long jobs avoid a model after the vendor has said that the model is gone.
	// After that time jobs go there again. The vendor's answer to the first of them shows whether
	// the model is back.
	retiredFor = time.Hour
)

// BreakerStore keeps the breakers of all processes. Each change of a breaker is one conditional
// update. If its condition does not hold, the store changes nothing, and the caller learns the
// present state from the result. For example, CloseBreaker returns closed as false if the probe's
// lease has ended and another job is the probe by now, or if an operator has enabled the channel
// meanwhile.
type BreakerStore interface {
	ChannelStates(ctx context.Context) ([]mediagate.ChannelState, error)
	// TripBreaker opens a closed breaker, unless the call began before the breaker last changed.
	TripBreaker(ctx context.Context, t mediagate.Trip) (state mediagate.ChannelState, tripped bool, err error)
	// ClaimProbe makes the job the probe if one is due, until the lease ends.
	ClaimProbe(
		ctx context.Context, channel, probe string, lease time.Duration,
	) (state mediagate.ChannelState, claimed bool, err error)
	// CloseBreaker closes the breaker, since the vendor has answered the probe.
	CloseBreaker(ctx context.Context, channel, probe string) (state mediagate.ChannelState, closed bool, err error)
	// ReopenBreaker keeps the breaker open for another pause, after a failed probe.
	ReopenBreaker(
		ctx context.Context, channel, probe string, reason mediagate.ParkReason, pause time.Duration,
	) (state mediagate.ChannelState, reopened bool, err error)
	// ReleaseProbe lets another job be the probe.
	ReleaseProbe(ctx context.Context, channel, probe string) (state mediagate.ChannelState, released bool, err error)
	// RetireModel keeps the channel's jobs away from a model for shutFor, after the vendor has
	// answered that it has no such model. If the call with that answer began before the channel last
	// changed, RetireModel changes nothing.
	RetireModel(
		ctx context.Context, channel, upstream string, began time.Time, shutFor time.Duration,
	) (mediagate.ChannelState, error)
	// CountCalls adds to the counters that operators see.
	CountCalls(ctx context.Context, calls []mediagate.ChannelCalls) error
}

// Breakers holds what a process knows of all channels' breakers, and what it has counted for them.
// The fields are set before the first use.
//
// A goroutine that needs both locks takes Breakers.reading first, and then mu. No call to the
// database is made under mu. So if the database hangs, State delays only the goroutine that reads
// the states, and the callers that wait for the first reading. All other callers get the last
// reading.
type Breakers struct {
	Store  BreakerStore
	Now    func() time.Time
	Logger *slog.Logger
	NewID  func(prefix string) string

	first   singleflight.Group // the first reading of the states
	reading sync.Mutex         // held while the states are read

	// The fields below are protected by mu.
	mu     sync.Mutex
	states map[string]mediagate.ChannelState
	// When the last reading ended, whether or not it succeeded. Zero before the first.
	readAt  time.Time
	changed map[string]bool // channels that this process changed since the last reading began
	// How the recent submits of this process ended, by channel. Enough failures open the breaker.
	windows map[string]*window
	// The counts that Flush has not stored yet. They are only for operators.
	counts map[counted]*mediagate.ChannelCalls
}

// counted identifies the counters of a channel for one minute.
type counted struct {
	channel string
	minute  time.Time
}

// TakesJobs reports whether the channel takes new jobs. A channel that takes none still polls,
// mirrors and cancels what it has. TakesJobs reads the database at most once in statesFresh, for
// all channels together; while the database is away, it relies on the last reading. All callers
// wait for the first reading.
func (b *Breakers) TakesJobs(name string) bool { return b.State(name).TakesJobs(b.Now()) }

// State returns what is known of the channel. A channel without a row takes jobs. If the first
// reading failed, no channel has a state yet, and all of them take jobs.
func (b *Breakers) State(name string) mediagate.ChannelState {
	switch never, stale := b.age(); {
	case never:
		_, _, _ = b.first.Do("", func() (any, error) {
			b.reading.Lock()
			defer b.reading.Unlock()
			// Another caller may have finished the first reading just before this one got the lock.
			if never, _ := b.age(); never {
				b.read()
			}
			return nil, nil
		})
	// One caller reads the states. The others use the last reading meanwhile.
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

// Retired reports whether the channel's vendor said lately that it no longer has the model of the
// route. If the vendor said so to another process, this process knows it within a second.
func (b *Breakers) Retired(name string, route mediagate.Route) bool {
	return b.State(name).HasRetired(route.Upstream, b.Now())
}

// Retire keeps the channel's jobs away from the route's upstream model for an hour, after the vendor
// has refused a job with KindNoModel. The channel still takes jobs for its other models. If the breaker
// or an operator has changed the channel's state since the call began, Retire changes nothing, and the
// next job asks the vendor again.
func (e Pass) Retire(ctx context.Context, route mediagate.Route) {
	b := e.breakers
	if b == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	s, err := b.Store.RetireModel(ctx, e.channel, route.Upstream, e.began, retiredFor)
	if err != nil {
		b.Logger.WarnContext(ctx, "a retired model was not stored: the vendor is asked again",
			"channel", e.channel, "error", err)
		return
	}
	b.learn(s)
	if !s.HasRetired(route.Upstream, b.Now()) { // the channel's state has changed since the call began
		return
	}
	b.Logger.ErrorContext(ctx, "a vendor has no such model",
		"channel", e.channel, "upstream", route.Upstream, "until", s.Retired[route.Upstream])
}

// LastSeen returns when a worker last had the channel. It is zero if none had.
func (b *Breakers) LastSeen(ctx context.Context, name string) (time.Time, error) {
	rows, err := b.Store.ChannelStates(ctx)
	for _, row := range rows {
		if row.Name == name {
			return row.LastSeenAt, err
		}
	}
	return time.Time{}, err
}

// age reports whether the states were never read, and whether it is time to read them again.
func (b *Breakers) age() (never, stale bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.readAt.IsZero(), b.Now().Sub(b.readAt) >= statesFresh
}

// read reads the states of all channels. The caller holds b.reading.
func (b *Breakers) read() {
	b.mu.Lock()
	b.changed = make(map[string]bool)
	b.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), statesTimeout)
	defer cancel()
	rows, err := b.Store.ChannelStates(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	// A reading that failed counts as well, so that a database that is away is asked once a second,
	// and not by every submit.
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
	// Keep the states that this process has changed since the reading began, since the rows may be
	// older. For example, the reading begins at 12:00:00.0, this process opens a breaker at
	// 12:00:00.1, and the reading then returns the row from before. The next reading returns the
	// change.
	for name := range b.changed {
		b.states[name] = before[name]
	}
}

// learn keeps the state that the database returned for a change. Without that, this process would
// go on with the old state until the next reading.
func (b *Breakers) learn(s mediagate.ChannelState) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.states == nil {
		b.states, b.changed = make(map[string]mediagate.ChannelState), make(map[string]bool)
	}
	b.states[s.Name], b.changed[s.Name] = s, true
}

// Pass is the permission of one job to go through a channel's breaker. The caller reports the end
// of the job's call by Ended. The zero Pass does nothing.
//
// A call that began before the breaker last changed says nothing about the present. For example, a
// call begins at 12:00:00, a probe closes the breaker at 12:00:05, and the call fails at 12:00:20:
// the breaker stays closed.
type Pass struct {
	breakers *Breakers
	channel  string
	began    time.Time
	probe    string // set if the job is the probe
	trips    int    // for a probe: how often the breaker has opened since it was last closed
}

// Enter lets a new job through, or returns false. call is the longest time that the job's call may
// take. A job that an open breaker lets through is the probe, and its lease lasts a little longer
// than call. Enter returns KindUnavailable if it had to ask the database and could not.
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
	// The job is not the probe. It goes through only if the breaker was closed meanwhile.
	e.probe = ""
	return e, s.Enabled && !s.Open, nil
}

// Inside returns a pass for a job that was let through earlier. Ended counts that job as a submit
// that begins now, and not as a probe.
func (b *Breakers) Inside(name string) Pass {
	return Pass{breakers: b, channel: name, began: b.Now()}
}

// evidence is what the end of a submit shows about its channel.
type evidence uint8

const (
	none    evidence = iota
	answers          // the vendor is there, and takes our account
	fails            // the vendor is away, or its answer makes no sense
	refuses          // the vendor refuses our account
)

// evidenceOf returns what a submit's error shows about the channel.
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
	default: // our own fault
		return none, ""
	}
}

// Ended notes how the job's call ended. It opens, closes or reopens the breaker if that is due. The
// end of a call counts even if the activity is cancelled or the worker stops, so Ended goes on when
// ctx ends.
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
	// The count comes first: this failure may be the one that opens the breaker.
	b.count(e, seen, err)
	switch {
	// A probe decides alone. Any other submit opens the breaker at once if the vendor refuses our
	// account. Any other failure opens it only if enough submits have failed.
	case e.probe != "" && seen == answers:
		b.close(ctx, e)
	case e.probe != "":
		b.reopen(ctx, e, reason)
	case seen == refuses, seen == fails && b.tooManyFailures(e):
		b.trip(ctx, e, reason)
	}
}

// Unused is for a job that was not sent, or whose end shows nothing about the channel. If the job
// was the probe, Unused lets another job be the probe. Callers may defer Unused: once Ended has
// stored the end of the probe, the database knows no such probe any more, and Unused changes nothing.
func (e Pass) Unused(ctx context.Context) {
	if e.breakers == nil || e.probe == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	s, _, err := e.breakers.Store.ReleaseProbe(ctx, e.channel, e.probe)
	e.breakers.learnStored(ctx, s, err)
}

// learnStored keeps the state that the database returned for a change. If the change was not stored,
// learnStored logs that and returns false. The caller does not repeat the change. If the lost change
// was the end of a probe, another job becomes the probe, at the latest when the lease ends. If it
// was the opening of the breaker, the next failure opens the breaker.
func (b *Breakers) learnStored(ctx context.Context, s mediagate.ChannelState, err error) bool {
	if err != nil {
		b.Logger.WarnContext(ctx, "a breaker was not moved", "error", err)
		return false
	}
	b.learn(s)
	return true
}

// close closes the breaker after a probe that was answered.
func (b *Breakers) close(ctx context.Context, e Pass) {
	s, closed, err := b.Store.CloseBreaker(ctx, e.channel, e.probe)
	if b.learnStored(ctx, s, err) && closed {
		b.Logger.InfoContext(ctx, "a channel is back", "channel", e.channel)
	}
}

// reopen keeps the breaker open after a probe that failed, for twice as long as before.
func (b *Breakers) reopen(ctx context.Context, e Pass, reason mediagate.ParkReason) {
	// The shift is bounded so that it cannot overflow.
	pause := min(openFor<<min(e.trips, 10), openMost)
	s, reopened, err := b.Store.ReopenBreaker(ctx, e.channel, e.probe, reason, pause)
	if b.learnStored(ctx, s, err) && reopened {
		b.Logger.WarnContext(ctx, "a channel stays out",
			"channel", e.channel, "reason", string(reason), "next_probe", s.ProbeAt)
	}
}

// trip opens the channel's breaker. Its log line is the operators' alert.
func (b *Breakers) trip(ctx context.Context, e Pass, reason mediagate.ParkReason) {
	s, tripped, err := b.Store.TripBreaker(ctx, mediagate.Trip{
		Channel: e.channel, Reason: reason, Began: e.began, OpenFor: openFor,
	})
	if b.learnStored(ctx, s, err) && tripped {
		b.Logger.ErrorContext(ctx, "a channel is taken out",
			"channel", e.channel, "reason", string(reason), "next_probe", s.ProbeAt)
	}
}

// NoteError notes the error of a call other than a submit, for operators. Such an error neither
// opens nor closes the breaker.
func (b *Breakers) NoteError(channel, what string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.note(b.minute(channel), what, err)
}

// count counts a submit.
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
	// The window begins anew when the breaker changes, and leaves out calls that began before.
	if since := b.states[e.channel].ChangedAt; w == nil || !w.since.Equal(since) {
		w = &window{since: since}
		b.windows[e.channel] = w
	}
	if !e.began.Before(w.since) {
		w.add(b.Now(), seen == answers)
	}
}

// minute returns the counters of the channel for this minute.
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

// note records which call failed, and the kind of its error. It leaves out the error's text, since
// the vendor may repeat the prompt there.
func (b *Breakers) note(c *mediagate.ChannelCalls, what string, err error) {
	c.LastError, c.LastErrorAt = what+": "+mediagate.KindOf(err).String(), b.Now()
}

// tooManyFailures reports whether so many of the channel's recent submits have failed that the
// breaker has to open.
func (b *Breakers) tooManyFailures(e Pass) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	ok, failed := b.windows[e.channel].sum(b.Now())
	return failed >= failuresToOpen && failed >= ok
}

// Run stores the counts of this process every countEvery. It returns when ctx ends, after it has
// stored the last counts.
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

// Flush stores what was counted. Counts that cannot be stored are dropped: they are for operators
// only, and decide nothing.
//
// The counts are taken under mu and stored without it, so that submits do not wait for the
// database.
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
	// All processes use the same order, so that they cannot deadlock.
	slices.SortFunc(calls, func(x, y mediagate.ChannelCalls) int {
		return cmp.Or(cmp.Compare(x.Channel, y.Channel), x.Minute.Compare(y.Minute))
	})
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if err := b.Store.CountCalls(ctx, calls); err != nil {
		b.Logger.WarnContext(ctx, "calls were not counted", "error", err)
	}
}

// windowParts is the number of parts into which a window is divided. The window forgets one part at a
// time.
const windowParts = 12

// window counts how the recent submits of a channel ended, since its breaker last changed.
//
// The parts form a ring. Each part counts the submits of five seconds. A minute later the window
// reuses it. For example, the part of 12:00:00 to 12:00:05 is reused at 12:01:00, so a failure at
// 12:00:03 counts until 12:01:00.
type window struct {
	since time.Time
	parts [windowParts]struct {
		at         int64 // the number of the part, counted from the Unix epoch
		ok, failed int
	}
}

// partOf returns the number of the part of a window that the time belongs to.
func partOf(now time.Time) int64 { return now.UnixNano() / int64(failureWindow/windowParts) }

// add counts a submit in the part of now. It overwrites a part that is a whole window old.
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

// sum adds up the parts that are not older than the window.
func (w *window) sum(now time.Time) (ok, failed int) {
	at := partOf(now)
	for _, p := range w.parts {
		if at-p.at < windowParts {
			ok, failed = ok+p.ok, failed+p.failed
		}
	}
	return ok, failed
}
