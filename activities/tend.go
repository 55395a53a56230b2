package activities

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/failpoint"
)

const (
	claimBatch   = 256              // rows claimed at once
	claimLease   = 45 * time.Second // longer than any one poll takes
	pollWidth    = 64               // polls under way at once
	idlePause    = time.Second      // at most, between two looks for due rows
	pollTimeout  = 20 * time.Second
	lostAfter    = 3 // refusals in a row ("not found", bad credentials) before a row is in trouble
	signalWidth  = 16
	storeEvery   = 100 * time.Millisecond // results are stored in batches
	failureLimit = 3                      // failed polls in a row that count as "vendor away"
	wakeEvery    = time.Minute            // between two wakings of a channel's parked tasks
	storeTimeout = 15 * time.Second       // of one call to the database
	stuckAfter   = 3 * time.Minute        // without a step: no batch takes that long
)

// ChannelArgs names a channel.
type ChannelArgs struct {
	Channel string `json:"channel"`
}

// ChannelBeat is what the channel's activity shows while it runs.
type ChannelBeat struct {
	Waiting   int    `json:"waiting"`
	LateMilli int64  `json:"late_ms"` // of the last batch, worst row
	Polls     int64  `json:"polls"`
	LastError string `json:"last_error,omitempty"`
}

// TendChannel polls the vendor for all tasks that wait for the channel, until
// the worker stops. Its epoch fences it: once another run has begun, this one
// can claim nothing more and returns (D8).
//
// On a worker that lacks the channel it fails with KindUnreached, so that
// another one gets it; gone says that no worker has the channel any more, and
// that no task waits for it.
func (a *Activities) TendChannel(ctx context.Context, in ChannelArgs) (gone bool, err error) {
	channel, ok := a.Channels.Channel(in.Channel)
	if !ok {
		if channel, ok, err = a.standIn(ctx, in.Channel); err != nil {
			return false, a.fail(ctx, err)
		}
	}
	if !ok {
		return a.tendMissing(ctx, in.Channel)
	}
	epoch, err := a.Store.BeginEpoch(ctx, in.Channel)
	if err != nil {
		return false, a.fail(ctx, err)
	}
	t := &tender{
		Activities: a, name: in.Channel, channel: channel, epoch: epoch,
		limiter: a.limiter(channel),
		log:     a.Logger.With("channel", in.Channel, "epoch", epoch),
	}
	defer t.keepAlive(ctx)()
	err = t.run(ctx, activity.GetWorkerStopChannel(ctx))
	if mediagate.Is(err, mediagate.KindConflict) {
		return false, nil // fenced: the newer run polls
	}
	return false, a.fail(ctx, err)
}

func pollRate(c BoundChannel) rate.Limit {
	if c.RequestsPerSecond <= 0 {
		return rate.Inf
	}
	return rate.Limit(c.RequestsPerSecond)
}

// tender is one run of TendChannel.
type tender struct {
	*Activities
	name    string // under which the rows wait: of the channel, or one that it stands in for
	channel BoundChannel
	epoch   int64
	limiter *rate.Limiter
	log     *slog.Logger

	waiting   int
	late      time.Duration
	wokenAt   time.Time
	polled    int64 // polls until idleSince
	idleSince time.Time
	steps     atomic.Int64 // that the run has made, of any kind
	wake      atomic.Bool  // the vendor is back: its parked tasks may go on
	polls     atomic.Int64
	failures  atomic.Int64 // in a row
	lastErr   atomic.Pointer[string]
	lastBeat  atomic.Pointer[ChannelBeat]
}

// run claims and polls until the worker stops, the run is fenced, or the
// database fails.
func (t *tender) run(ctx context.Context, stop <-chan struct{}) error {
	calls, cancel := untilStopped(ctx, stop)
	defer cancel()
	statsAt := time.Time{}
	for calls.Err() == nil && !t.relieved() {
		if now := t.Now(); now.Sub(statsAt) >= time.Second {
			waiting, _, err := t.stats(ctx)
			if err != nil {
				return err
			}
			t.waiting, statsAt = waiting, now
			t.beat(ctx)
			t.wakeParked(ctx)
		}
		rows, err := t.claimDue(ctx)
		if err != nil {
			return err
		}
		if len(rows) > 0 {
			if err := t.poll(ctx, calls, rows); err != nil {
				return err
			}
		}
		pause := idlePause
		if len(rows) > 0 {
			pause = 0
		} else if t.waiting > 0 {
			pause = t.untilDue(ctx)
		}
		select {
		case <-stop:
			return nil
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
	return nil
}

// untilStopped is the context of calls to the vendor: a worker that stops
// does not wait for them, since whoever polls next repeats them.
func untilStopped(ctx context.Context, stop <-chan struct{}) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// batch bounds a claim to what the budget can poll well within the lease.
func (t *tender) batch() int {
	if t.channel.RequestsPerSecond <= 0 {
		return claimBatch
	}
	return min(claimBatch, max(1, int(t.channel.RequestsPerSecond*5)))
}

func (t *tender) claim() string { return t.NewID("claim_") }

func (t *tender) claimDue(ctx context.Context) ([]mediagate.Await, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	t.steps.Add(1)
	return t.Store.ClaimDue(ctx, t.name, t.epoch, t.claim(), claimLease, t.batch())
}

func (t *tender) stats(ctx context.Context) (waiting int, nextDue time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	t.steps.Add(1)
	return t.Store.AwaitStats(ctx, t.name)
}

// untilDue is the pause until the next row is due, within idlePause: new rows
// and hints are noticed at the next look.
func (t *tender) untilDue(ctx context.Context) time.Duration {
	_, next, err := t.stats(ctx)
	if err != nil || next.IsZero() {
		return idlePause
	}
	return min(max(next.Sub(t.Now()), 20*time.Millisecond), idlePause)
}

func (t *tender) beat(ctx context.Context) {
	beat := ChannelBeat{Waiting: t.waiting, LateMilli: t.late.Milliseconds(), Polls: t.polls.Load()}
	if s := t.lastErr.Load(); s != nil {
		beat.LastError = *s
	}
	t.lastBeat.Store(&beat)
	activity.RecordHeartbeat(ctx, beat)
}

// keepAlive repeats the last beat while a batch takes its time: a vendor that
// hangs must not make the channel look dead. A run that has made no step for
// longer than any batch takes is dead, and another is to take over.
func (t *tender) keepAlive(ctx context.Context) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(heartbeatEvery)
		defer tick.Stop()
		var still time.Duration
		for steps := t.steps.Load(); ; {
			select {
			case <-quit:
				return
			case <-tick.C:
			}
			if now := t.steps.Load(); now != steps {
				steps, still = now, 0
			} else if still += heartbeatEvery; still > stuckAfter {
				continue
			}
			if beat := t.lastBeat.Load(); beat != nil {
				activity.RecordHeartbeat(ctx, *beat)
			}
		}
	}()
	return func() {
		close(quit)
		<-done
	}
}

// poll asks the vendor for each row, with bounded width and under the
// account's budget, and stores what it hears in small batches. Once calls
// ends, what is left of the batch falls to the next tender.
func (t *tender) poll(ctx, calls context.Context, rows []mediagate.Await) error {
	claim := rows[0].Claim
	results := make(chan mediagate.PollResult, len(rows))
	owed := make([]mediagate.Await, 0)
	t.late = 0
	var group errgroup.Group
	group.SetLimit(pollWidth)
	stored := make(chan error, 1)
	go func() { stored <- t.store(ctx, claim, results) }()
	for _, row := range rows {
		if row.Ended {
			owed = append(owed, row)
			continue
		}
		t.late = max(t.late, t.Now().Sub(row.NextPollAt))
		if err := t.limiter.Wait(calls); err != nil {
			break
		}
		group.Go(func() error {
			results <- t.pollRow(calls, row)
			return nil
		})
	}
	_ = group.Wait()
	close(results)
	err := <-stored
	t.signal(ctx, owed)
	t.beat(ctx)
	return err
}

// store writes results as they come, a batch a moment, and signals the
// workflows whose waiting is over.
func (t *tender) store(ctx context.Context, claim string, results <-chan mediagate.PollResult) error {
	var failed error
	for more := true; more; {
		batch := make([]mediagate.PollResult, 0, claimBatch)
		r, ok := <-results
		if !ok {
			break
		}
		batch = append(batch, r)
		for timeout := time.After(storeEvery); more && len(batch) < claimBatch; {
			select {
			case r, ok := <-results:
				if !ok {
					more = false
					break
				}
				batch = append(batch, r)
				continue
			case <-timeout:
			}
			break
		}
		ended, err := t.storePolls(ctx, claim, batch)
		if err != nil {
			failed = err // the rows stay claimed until their lease ends: nothing is lost
			continue
		}
		if len(ended) > 0 {
			failpoint.Hit(failpoint.OutcomeStored)
			t.signal(ctx, ended)
		}
	}
	return failed
}

func (t *tender) storePolls(ctx context.Context, claim string, batch []mediagate.PollResult) ([]mediagate.Await, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	t.steps.Add(1)
	return t.Store.StorePolls(ctx, t.name, claim, batch)
}

// signal tells the workflows that their attempt's waiting is over. A signal
// that fails stays owed: the row comes up again.
func (t *tender) signal(ctx context.Context, rows []mediagate.Await) {
	_ = each(ctx, rows, signalWidth, func(row mediagate.Await) error {
		err := t.Engine.SignalUpstream(ctx, row.TaskID, row.N)
		if err != nil {
			t.log.WarnContext(ctx, "workflow not signalled", "task", row.TaskID, "error", err)
		}
		return err
	})
}

// pollRow asks for one row. A panic of an adapter costs that row one poll.
func (t *tender) pollRow(ctx context.Context, row mediagate.Await) (result mediagate.PollResult) {
	defer func() {
		if p := recover(); p != nil {
			t.log.ErrorContext(ctx, "poll panicked", "task", row.TaskID, "panic", p, "stack", string(debug.Stack()))
			result = t.again(row)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	channel, err := t.askerFor(ctx, row)
	if err != nil {
		return t.nobody(ctx, row, err)
	}
	t.polls.Add(1)
	report, err := channel.Vendor.Poll(ctx, row.Ref)
	if err != nil {
		return t.pollFailed(ctx, row, err)
	}
	if t.failures.Swap(0) >= failureLimit {
		t.wake.Store(true)
	}
	result = t.again(row)
	result.Heard = true
	if report.Outcome != nil {
		failpoint.Hit(failpoint.PollTerminal)
		result.Outcome = report.Outcome
		return result
	}
	if report.State == mediagate.JobUnknown {
		t.log.WarnContext(ctx, "unknown status word", "task", row.TaskID, "word", report.Word)
	}
	result.Progress = report.Percent
	if report.Percent < 0 {
		result.Progress = synthetic(t.Now().Sub(row.AcceptedAt), row.Expected)
	}
	return result
}

// pollFailed keeps the row waiting; only an id that the vendor repeatedly
// does not know is trouble.
func (t *tender) pollFailed(ctx context.Context, row mediagate.Await, err error) mediagate.PollResult {
	result := t.again(row)
	if errors.Is(ctx.Err(), context.Canceled) { // the worker stops, which says nothing of the vendor
		result.NextPollAt = t.Now()
		return result
	}
	kind := mediagate.KindOf(err)
	text := kind.String()
	t.lastErr.Store(&text)
	t.log.WarnContext(ctx, "poll failed", "task", row.TaskID, "kind", text, "error", err)
	switch kind {
	case mediagate.KindNotFound:
		result.Missing = row.Missing + 1
		if result.Missing >= lostAfter {
			result.Trouble = mediagate.ParkJobLost
		}
	case mediagate.KindCredentials, mediagate.KindFunds, mediagate.KindForbidden:
		// The job goes on at the vendor; only we cannot see it. Ask rarely,
		// and let a person know: the time until it is mended does not count.
		result.NextPollAt = t.Now().Add(jitter(max(t.channel.PollMax, 30*time.Second)))
		result.Missing = row.Missing + 1
		if result.Missing >= lostAfter {
			result.Trouble = TroubleOf(asError(err))
		}
	case mediagate.KindUnreached:
		result.Trouble = TroubleOf(asError(err)) // not the account that made the job
	default:
		t.failures.Add(1)
		if e, ok := errors.AsType[*mediagate.Error](err); ok {
			result.NextPollAt = later(result.NextPollAt, t.Now().Add(e.RetryAfter))
		}
	}
	return result
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// wakeParked lets the tasks go on that were parked since the vendor was away,
// once it answers again after a run of failures (D12): now and then only, since
// a vendor that fails often also recovers often.
func (t *tender) wakeParked(ctx context.Context) {
	if !t.wake.Load() || t.Now().Sub(t.wokenAt) < wakeEvery {
		return
	}
	t.wake.Store(false)
	t.wokenAt = t.Now()
	names := append([]string{t.channel.Name}, t.channel.Former...)
	if !slices.Contains(names, t.name) {
		names = append(names, t.name)
	}
	for _, name := range names {
		t.wakeTasks(ctx, name, mediagate.ParkProviderAway)
	}
}

// again is a result that only sets the next time.
func (t *tender) again(row mediagate.Await) mediagate.PollResult {
	wait := nextPoll(t.Now().Sub(row.AcceptedAt), row.Expected, t.channel.PollMin, t.channel.PollMax)
	if rps := t.channel.RequestsPerSecond; rps > 0 {
		// With more tasks than the budget can serve at that pace, all are
		// asked for less often, so that none starves.
		wait = max(wait, time.Duration(float64(t.waiting)/(0.9*rps)*float64(time.Second)))
	}
	return mediagate.PollResult{TaskID: row.TaskID, N: row.N, NextPollAt: t.Now().Add(wait)}
}

// nextPoll adapts the pace to the model's expected duration: the further the
// expected end is away, before or behind, the rarer the questions.
func nextPoll(elapsed, expected, shortest, longest time.Duration) time.Duration {
	distance := (expected - elapsed).Abs()
	return min(max(distance/4, shortest), max(longest, shortest))
}

// firstPoll is the pause before the first question.
func firstPoll(expected, shortest, longest time.Duration) time.Duration {
	return nextPoll(0, expected, shortest, longest)
}

// synthetic is the progress of a job whose vendor gives none: the share of
// the expected time, never the end.
func synthetic(elapsed, expected time.Duration) int {
	if expected <= 0 {
		return 0
	}
	return int(min(95, max(0, 100*elapsed/expected)))
}

func jitter(d time.Duration) time.Duration {
	return d + time.Duration(rand.Int64N(int64(d)/4+1)) //nolint:gosec // spreading load needs no secret numbers
}
