package channel

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

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
	lostAfter    = 3                      // refusals in a row ("not found", bad credentials) before a row is in trouble
	storeEvery   = 100 * time.Millisecond // results are stored in batches
	failureLimit = 3                      // failed polls in a row that count as "vendor away"
	wakeEvery    = time.Minute            // between two wakings of a channel's parked tasks
	storeTimeout = 15 * time.Second       // of one call to the database
)

// Beat is what a poller shows while it runs.
type Beat struct {
	Waiting   int    `json:"waiting"`
	LateMilli int64  `json:"late_ms"` // of the last batch, worst row
	Polls     int64  `json:"polls"`
	LastError string `json:"last_error,omitempty"`
}

// Poller polls for all tasks that wait under one name. Its epoch fences it:
// once another one has begun, this one can claim nothing more (D8).
type Poller struct {
	*Accounts
	// Report is told of each beat; set it before Run.
	Report func(ctx context.Context, b Beat)

	name    string  // under which the rows wait: of the channel, or one that it stands in for
	channel Channel // none where tasks are given up
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
	lastBeat  atomic.Pointer[Beat]
}

// Poller begins to poll for the tasks that wait under the name, with the
// channel of that name or one that stands in for it; nil where there is none.
func (a *Accounts) Poller(ctx context.Context, name string) (*Poller, error) {
	c, ok := a.Channels.Channel(name)
	if !ok {
		var err error
		if c, ok, err = a.standIn(ctx, name); err != nil || !ok {
			return nil, err
		}
	}
	epoch, err := a.Store.BeginEpoch(ctx, name)
	if err != nil {
		return nil, err
	}
	return &Poller{
		Accounts: a, name: name, channel: c, epoch: epoch, limiter: a.limiter(c),
		log: a.Logger.With("channel", name, "epoch", epoch),
	}, nil
}

func pollRate(c Channel) rate.Limit {
	if c.RequestsPerSecond <= 0 {
		return rate.Inf
	}
	return rate.Limit(c.RequestsPerSecond)
}

// Steps counts what the run has done, of any kind: one that makes none for
// longer than any batch takes is stuck.
func (p *Poller) Steps() int64 { return p.steps.Load() }

// Beat is the last one that was reported; false before the first.
func (p *Poller) Beat() (Beat, bool) {
	if b := p.lastBeat.Load(); b != nil {
		return *b, true
	}
	return Beat{}, false
}

// Run claims and polls until calls ends, which is the context of calls to the
// vendor, or the run is fenced (KindConflict), or the database fails.
func (p *Poller) Run(ctx, calls context.Context) error {
	statsAt := time.Time{}
	for calls.Err() == nil && !p.relieved() {
		if now := p.Now(); now.Sub(statsAt) >= time.Second {
			waiting, _, err := p.stats(ctx)
			if err != nil {
				return err
			}
			p.waiting, statsAt = waiting, now
			p.beat(ctx)
			p.wakeParked(ctx)
		}
		rows, err := p.claimDue(ctx)
		if err != nil {
			return err
		}
		if len(rows) > 0 {
			if err := p.poll(ctx, calls, rows); err != nil {
				return err
			}
		}
		pause := idlePause
		if len(rows) > 0 {
			pause = 0
		} else if p.waiting > 0 {
			pause = p.untilDue(ctx)
		}
		select {
		case <-calls.Done():
			return nil
		case <-time.After(pause):
		}
	}
	return nil
}

// batch bounds a claim to what the budget can poll well within the lease.
func (p *Poller) batch() int {
	if p.channel.RequestsPerSecond <= 0 {
		return claimBatch
	}
	return min(claimBatch, max(1, int(p.channel.RequestsPerSecond*5)))
}

func (p *Poller) claim() string { return p.NewID("claim_") }

func (p *Poller) claimDue(ctx context.Context) ([]mediagate.Await, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	p.steps.Add(1)
	return p.Store.ClaimDue(ctx, p.name, p.epoch, p.claim(), claimLease, p.batch())
}

func (p *Poller) stats(ctx context.Context) (waiting int, nextDue time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	p.steps.Add(1)
	return p.Store.AwaitStats(ctx, p.name)
}

// untilDue is the pause until the next row is due, within idlePause: new rows
// and hints are noticed at the next look.
func (p *Poller) untilDue(ctx context.Context) time.Duration {
	_, next, err := p.stats(ctx)
	if err != nil || next.IsZero() {
		return idlePause
	}
	return min(max(next.Sub(p.Now()), 20*time.Millisecond), idlePause)
}

func (p *Poller) beat(ctx context.Context) {
	beat := Beat{Waiting: p.waiting, LateMilli: p.late.Milliseconds(), Polls: p.polls.Load()}
	if s := p.lastErr.Load(); s != nil {
		beat.LastError = *s
	}
	p.lastBeat.Store(&beat)
	p.Report(ctx, beat)
}

// poll asks the vendor for each row, with bounded width and under the
// account's budget, and stores what it hears in small batches. Once calls
// ends, what is left of the batch falls to the next tender.
func (p *Poller) poll(ctx, calls context.Context, rows []mediagate.Await) error {
	claim := rows[0].Claim
	results := make(chan mediagate.PollResult, len(rows))
	owed := make([]mediagate.Await, 0)
	p.late = 0
	var group errgroup.Group
	group.SetLimit(pollWidth)
	stored := make(chan error, 1)
	go func() { stored <- p.store(ctx, claim, results) }()
	for _, row := range rows {
		if row.Ended {
			owed = append(owed, row)
			continue
		}
		p.late = max(p.late, p.Now().Sub(row.NextPollAt))
		if err := p.limiter.Wait(calls); err != nil {
			break
		}
		group.Go(func() error {
			results <- p.pollRow(calls, row)
			return nil
		})
	}
	_ = group.Wait()
	close(results)
	err := <-stored
	p.Workflows.SignalEnded(ctx, owed)
	p.beat(ctx)
	return err
}

// store writes results as they come, a batch a moment, and signals the
// workflows whose waiting is over.
func (p *Poller) store(ctx context.Context, claim string, results <-chan mediagate.PollResult) error {
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
		ended, err := p.storePolls(ctx, claim, batch)
		if err != nil {
			failed = err // the rows stay claimed until their lease ends: nothing is lost
			continue
		}
		if len(ended) > 0 {
			failpoint.Hit(failpoint.OutcomeStored)
			p.Workflows.SignalEnded(ctx, ended)
		}
	}
	return failed
}

func (p *Poller) storePolls(ctx context.Context, claim string, batch []mediagate.PollResult) ([]mediagate.Await, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	p.steps.Add(1)
	return p.Store.StorePolls(ctx, p.name, claim, batch)
}

// wakeParked lets the tasks go on that were parked since the vendor was away,
// once it answers again after a run of failures (D12): now and then only, since
// a vendor that fails often also recovers often.
func (p *Poller) wakeParked(ctx context.Context) {
	if !p.wake.Load() || p.Now().Sub(p.wokenAt) < wakeEvery {
		return
	}
	p.wake.Store(false)
	p.wokenAt = p.Now()
	names := append([]string{p.channel.Name}, p.channel.Former...)
	if !slices.Contains(names, p.name) {
		names = append(names, p.name)
	}
	for _, name := range names {
		p.wakeTasks(ctx, name, mediagate.ParkProviderAway)
	}
}
