package channel

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mediagate/mediagate"
)

const (
	claimBatch  = 256                    // the most rows claimed at once
	claimLease  = 45 * time.Second       // longer than any single poll takes
	pollWidth   = 64                     // the most polls under way at once
	idlePause   = time.Second            // the longest pause between two claims
	hintPause   = 200 * time.Millisecond // between two checks for a row that a hint has made due
	pollTimeout = 20 * time.Second
	// A job is in trouble after lostAfter answers in a row that do not show it.
	lostAfter    = 3
	storeEvery   = 100 * time.Millisecond // how long a batch of results waits for further ones
	failureLimit = 3                      // failed polls in a row after which the vendor counts as away
	storeTimeout = 15 * time.Second       // bounds one call to the database
	claimPause   = 50 * time.Millisecond  // the shortest pause between two claims
)

// Beat is what the heartbeats of a poller's activity show. LateMilli and LastError are set only
// while rows wait.
type Beat struct {
	Waiting   int    `json:"waiting"`
	LateMilli int64  `json:"late_ms"` // how late the last poll was
	Polls     int64  `json:"polls"`
	Queued    int    `json:"queued,omitempty"` // tasks that wait for a slot
	LastError string `json:"last_error,omitempty"`
}

// Poller polls for all tasks that wait under one name. Its epoch fences it: once another poller
// has begun, this one can claim nothing more (D8).
//
// Only Run's own goroutine uses waiting, retriedAt, retries and idleSince, so these fields need no
// lock. The goroutines that poll, store and grant share only the atomic fields, logLimits, width,
// batches, grants.freed and pace. All of these are safe for concurrent use.
type Poller struct {
	*Accounts
	name    string  // the name that the rows wait under: the channel's, or a former one
	channel Channel // empty for an orphaned name
	epoch   int64
	pace    *pace
	width   chan struct{} // holds one element for each call under way
	// Everything that Run has begun: granting, batches of polls, and the signals and copies that
	// follow.
	batches sync.WaitGroup
	log     *slog.Logger

	logLimits sync.Map // kind of an error → *rate.Limiter of the log lines for failed polls
	waiting   int
	retriedAt time.Time
	retries   retries
	grants    grants // used by the goroutine that grants
	idleSince time.Time
	queued    atomic.Int64 // tasks that wait for a slot, at the last check
	toAsk     atomic.Int64 // claimed rows that still wait for their call
	late      atomic.Int64 // how late the last poll was, in nanoseconds
	steps     atomic.Int64 // see Steps
	answers   atomic.Bool  // the vendor answers again after a series of failures
	polls     atomic.Int64
	failures  atomic.Int64 // failed polls in a row
	lastErr   atomic.Pointer[string]
	lastBeat  atomic.Pointer[Beat]
}

// Poller returns a new poller for the tasks that wait under the name; its method Run polls for
// them. It uses the channel of that name, or else the channel that had the name before. It returns
// nil if there is no such channel, or if the name is a former one and nothing waits under it. Once a
// poller has been returned, earlier pollers of the name can claim nothing more.
func (a *Accounts) Poller(ctx context.Context, name string) (*Poller, error) {
	c, ok, err := a.channelFor(ctx, name)
	if err != nil || !ok {
		return nil, err
	}
	epoch, err := a.Store.BeginEpoch(ctx, name)
	if err != nil {
		return nil, err
	}
	return &Poller{
		Accounts: a, name: name, channel: c, epoch: epoch, pace: a.pace(c), width: make(chan struct{}, pollWidth),
		grants: grants{freed: make(chan struct{}, 1), most: grantMost},
		log:    a.Logger.With("channel", name, "epoch", epoch),
	}, nil
}

// Steps returns how many calls the poller has made to the database to claim rows, count rows, store
// answers and change tasks. If the number stays the same for longer than any batch takes, the poller
// is stuck.
func (p *Poller) Steps() int64 { return p.steps.Load() }

// Beat returns the latest beat, which is renewed each second. It returns false before the first.
func (p *Poller) Beat() (Beat, bool) {
	if b := p.lastBeat.Load(); b != nil {
		return *b, true
	}
	return Beat{}, false
}

// Run claims rows and polls for them. callCtx is the context of the calls to the vendor. Run returns
// when callCtx ends, when another poller has taken over (KindConflict), or when the database fails.
// Under a former name it also returns once no task has waited there for formerIdle. It claims the
// next batch before the last one has ended, so that one slow answer delays no other.
func (p *Poller) Run(ctx, callCtx context.Context) error {
	// On return, cancel runs before Wait, since deferred functions run in reverse. So no further call
	// to the vendor begins, and then Run waits until the answers that have come are stored.
	callCtx, cancel := context.WithCancel(callCtx)
	defer p.batches.Wait()
	defer cancel()
	// The first error of a goroutine ends Run. Later ones are dropped.
	failed := make(chan error, 1)
	begin := func(work func() error) {
		p.batches.Go(func() {
			if err := work(); err != nil {
				select {
				case failed <- err:
				default:
				}
			}
		})
	}
	// Granting has its own goroutine, so that it does not wait behind polls.
	begin(func() error { return p.grant(ctx, callCtx) })
	for countedAt := (time.Time{}); callCtx.Err() == nil && !p.formerDone(); {
		// Once a second: count the rows, renew the beat, and retry tasks that may go on.
		if now := p.Now(); now.Sub(countedAt) >= time.Second {
			var err error
			if p.waiting, _, err = p.stats(ctx); err != nil {
				return err
			}
			countedAt = now
			p.beat()
			p.retryAnswered(ctx)
			p.retryShutOut(ctx)
		}
		pause := claimPause
		if p.waiting == 0 {
			pause = idlePause // until the rows are counted again
		} else if room := p.maxClaimed() - int(p.toAsk.Load()); room > p.maxClaimed()/2 {
			// Claim only while fewer than half of maxClaimed rows wait for their call, so that a
			// claim is worth its transaction.
			rows, err := p.claimDue(ctx, room)
			if err != nil {
				return err
			}
			if len(rows) > 0 {
				p.toAsk.Add(int64(len(rows)))
				begin(func() error { return p.poll(ctx, callCtx, rows) })
			} else if pause, err = p.rest(ctx); err != nil {
				return err
			}
		}
		if err := p.sleep(ctx, callCtx, failed, pause); err != nil {
			return err
		}
	}
	return nil
}

// sleep waits until the pause is over, until callCtx ends, or until a row is due. It returns early
// with the error of a goroutine that has failed. A vendor's callback (a hint) may make a row due
// during the pause, and helps only if the poller acts on it early (ADR 8). So sleep checks every
// hintPause whether a row is due. This check costs much less than a claim.
func (p *Poller) sleep(ctx, callCtx context.Context, failed <-chan error, pause time.Duration) error {
	// While no row waits, no hint can make one due.
	look := hintPause
	if p.waiting == 0 {
		look = pause
	}
	for ; pause > 0; pause -= look {
		select {
		case <-callCtx.Done():
			return nil
		case err := <-failed:
			return err
		case <-time.After(min(pause, look)):
		}
		if pause <= look {
			return nil
		}
		if _, next, err := p.stats(ctx); err != nil || !next.IsZero() && !next.After(p.Now()) {
			return err
		}
	}
	return nil
}

// maxClaimed returns how many claimed rows may wait for the budget: as many as the budget serves in
// one second if every call is full. For example, with a budget of 10 calls a second and one row a
// call, 10 rows are claimed at first, and the next ones once fewer than 5 of them wait for their call.
// A row that becomes due in between waits about a second, until those 10 are served.
func (p *Poller) maxClaimed() int {
	if p.channel.RequestsPerSecond <= 0 {
		return claimBatch
	}
	return min(claimBatch, max(1, int(p.channel.RequestsPerSecond*float64(p.channel.maxRows()))))
}

// lease returns how long a claim holds: claimLease, and the time that the budget needs if each
// claimed row costs a call of its own, as the rows of a spoiled call do. For example, with 2 calls a
// second and 20 rows a call, 40 rows are claimed at once. Their own calls take the budget 20 s, and
// the lease is 65 s.
//
// If the vendor answers the calls for the rows of a spoiled call slowly, ask polls only some of the
// rows, so that their answers are stored before the lease ends: later all but ends would be dropped.
func (p *Poller) lease() time.Duration {
	if p.channel.RequestsPerSecond <= 0 {
		return claimLease
	}
	return claimLease + time.Duration(float64(p.maxClaimed())/p.channel.RequestsPerSecond*float64(time.Second))
}

// claimDue claims due rows. The claim is committed before the vendor is called (D8). It returns
// KindConflict if a newer epoch has begun, which ends Run.
//
// Each claim has its own token. If a lease ends and the row is claimed anew, even by the same
// poller, the answer to the earlier claim no longer counts, unless it is an end (D8).
func (p *Poller) claimDue(ctx context.Context, limit int) ([]mediagate.Await, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	p.steps.Add(1)
	return p.Store.ClaimDue(ctx, p.name, p.epoch, p.NewID("claim_"), p.lease(), limit)
}

// stats counts the rows that wait under the name, and returns when the next one is due. Claimed
// rows count as waiting, and are not due before their lease ends.
func (p *Poller) stats(ctx context.Context) (waiting int, nextDue time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	p.steps.Add(1)
	return p.Store.AwaitStats(ctx, p.name)
}

// rest returns the pause while nothing is due: until the next row is due, and at most idlePause,
// since Run counts the rows and renews the beat only between two pauses.
func (p *Poller) rest(ctx context.Context) (time.Duration, error) {
	_, next, err := p.stats(ctx)
	if err != nil || next.IsZero() {
		return idlePause, err
	}
	return min(max(next.Sub(p.Now()), claimPause), idlePause), nil
}

// beat renews the beat. Temporal's UI shows it as the heartbeat of the activity. While no row
// waits, an old error or delay would mislead operators, so both are cleared.
func (p *Poller) beat() {
	if p.waiting == 0 {
		p.late.Store(0)
		p.lastErr.Store(nil)
	}
	beat := Beat{
		Waiting:   p.waiting,
		LateMilli: time.Duration(p.late.Load()).Milliseconds(),
		Polls:     p.polls.Load(),
		Queued:    int(p.queued.Load()),
	}
	if s := p.lastErr.Load(); s != nil {
		beat.LastError = *s
	}
	p.lastBeat.Store(&beat)
}

// poll polls the rows, within the account's budget and with a bounded number of calls at the same
// time. It stores the answers in small batches. When callCtx ends, poll leaves the rows that still
// wait for their call to the next poller. They keep their claim, but the next poller can claim them
// at once, since its epoch is newer.
func (p *Poller) poll(ctx, callCtx context.Context, rows []mediagate.Await) error {
	// A goroutine stores results while further calls are made. The channel has room for all results,
	// so no call waits for the database.
	results := make(chan mediagate.PollResult, len(rows))
	stored := make(chan error, 1)
	go func() { stored <- p.store(ctx, rows[0].Claim, results) }()
	var group sync.WaitGroup
	for _, asked := range p.groupRows(rows) {
		// A row that is not admitted, since callCtx has ended, is left to the next poller.
		if p.admit(callCtx) == nil {
			// The first row of a call is overdue the longest.
			late := p.Now().Sub(asked[0].NextPollAt)
			p.late.Store(int64(late))
			p.meter().Polled(p.channel.Name, late)
			group.Go(func() {
				defer func() { <-p.width }()
				for _, result := range p.ask(callCtx, asked) {
					results <- result
				}
			})
		}
		// This makes room for the next claim, even if the rows were not admitted.
		p.toAsk.Add(-int64(len(asked)))
	}
	group.Wait()
	close(results)
	return <-stored
}

// admit waits for the budget, and then until fewer than pollWidth calls are under way. The budget
// comes first, so that a call takes no room among the calls under way while it waits for the budget.
func (p *Poller) admit(callCtx context.Context) error {
	if err := p.pace.limiter.Wait(callCtx); err != nil {
		return err
	}
	select {
	case p.width <- struct{}{}:
		return nil
	case <-callCtx.Done():
		return callCtx.Err()
	}
}

// collect returns the next batch of results. It waits for the first result, and then storeEvery for
// further ones. Once the batch holds a result that a client waits for, such as the end of a job,
// collect waits no longer, and only adds the results that are there already. An empty batch means
// that all results were collected.
func collect(results <-chan mediagate.PollResult) (batch []mediagate.PollResult) {
	var timeout <-chan time.Time
	urgent := false
	for len(batch) < claimBatch {
		var r mediagate.PollResult
		var ok bool
		switch {
		case len(batch) == 0:
			if r, ok = <-results; ok {
				timeout = time.After(storeEvery)
			}
		case urgent:
			select {
			case r, ok = <-results:
			default:
				return batch
			}
		default:
			select {
			case r, ok = <-results:
			case <-timeout:
				return batch
			}
		}
		if !ok {
			return batch
		}
		batch = append(batch, r)
		// Ends, and jobs that wait for the client's parameters, change what a client sees.
		urgent = urgent || r.Outcome != nil || r.Waiting
	}
	return batch
}
