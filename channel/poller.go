package channel

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mediagate/mediagate"
)

const (
	claimBatch   = 256                    // rows claimed at once
	claimLease   = 45 * time.Second       // longer than any one poll takes
	pollWidth    = 64                     // polls under way at once
	idlePause    = time.Second            // at most, between two claims
	hintPause    = 200 * time.Millisecond // between two looks for rows that a hint has made due
	pollTimeout  = 20 * time.Second
	lostAfter    = 3                      // refusals in a row ("not found", bad credentials) before a row is in trouble
	storeEvery   = 100 * time.Millisecond // results are stored in batches
	failureLimit = 3                      // failed polls in a row that count as "vendor away"
	storeTimeout = 15 * time.Second       // of one call to the database
	claimPause   = 50 * time.Millisecond  // at least, between two claims
)

// Beat is what the heartbeats of a poller's activity show. LateMilli and LastError are set only
// while rows wait.
type Beat struct {
	Waiting   int    `json:"waiting"`
	LateMilli int64  `json:"late_ms"` // of the row that was asked for last
	Polls     int64  `json:"polls"`
	Queued    int    `json:"queued,omitempty"` // tasks that wait for a slot
	LastError string `json:"last_error,omitempty"`
}

// Poller polls for all tasks that wait under one name. Its epoch fences it:
// once another one has begun, this one can claim nothing more (D8).
type Poller struct {
	*Accounts
	name    string  // under which the rows wait: the channel's, or a former one
	channel Channel // none where tasks are given up
	epoch   int64
	pace    *pace
	width   chan struct{} // holds one for each call under way
	batches sync.WaitGroup
	log     *slog.Logger

	complaints sync.Map // kind of an error → *rate.Limiter: what is logged of polls that fail
	waiting    int
	retriedAt  time.Time
	retries    retries
	grants     grants // of the goroutine that makes them
	idleSince  time.Time
	queued     atomic.Int64 // tasks that wait for a slot
	toAsk      atomic.Int64 // rows that are claimed and not asked for yet
	late       atomic.Int64 // of the row asked for last, in nanoseconds
	steps      atomic.Int64 // see Steps
	answers    atomic.Bool  // the vendor answers again, after a run of failures
	polls      atomic.Int64
	failures   atomic.Int64 // in a row
	lastErr    atomic.Pointer[string]
	lastBeat   atomic.Pointer[Beat]
}

// Poller begins to poll for the tasks that wait under the name, with the channel of that
// name, or the one that had it before. It is nil where there is none.
func (a *Accounts) Poller(ctx context.Context, name string) (*Poller, error) {
	c, ok, err := a.pollsFor(ctx, name)
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

// Steps counts what the run has done, of any kind: one that makes none for
// longer than any batch takes is stuck.
func (p *Poller) Steps() int64 { return p.steps.Load() }

// Beat is renewed each second; false before the first.
func (p *Poller) Beat() (Beat, bool) {
	if b := p.lastBeat.Load(); b != nil {
		return *b, true
	}
	return Beat{}, false
}

// Run claims and polls. It returns once calls ends, the context of calls to the vendor;
// when another poller has taken over (KindConflict); or when the database fails. A batch
// need not end before the next one is claimed: one slow answer delays no other.
func (p *Poller) Run(ctx, calls context.Context) error {
	calls, cancel := context.WithCancel(calls)
	defer p.batches.Wait()
	defer cancel()
	failed := make(chan error, 1)
	p.batches.Go(func() {
		if err := p.grant(ctx, calls); err != nil {
			select {
			case failed <- err:
			default:
			}
		}
	})
	for countedAt := (time.Time{}); calls.Err() == nil && !p.formerDone(); {
		if now := p.Now(); now.Sub(countedAt) >= time.Second {
			var err error
			if p.waiting, _, err = p.stats(ctx, p.name); err != nil {
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
		} else if room := p.batch() - int(p.toAsk.Load()); room > p.batch()/2 {
			rows, err := p.claimDue(ctx, room)
			if err != nil {
				return err
			}
			if len(rows) > 0 {
				p.toAsk.Add(int64(len(rows)))
				p.batches.Go(func() {
					if err := p.poll(ctx, calls, rows); err != nil {
						select {
						case failed <- err:
						default:
						}
					}
				})
			} else if pause, err = p.rest(ctx); err != nil {
				return err
			}
		}
		if err := p.sleep(ctx, calls, failed, pause); err != nil {
			return err
		}
	}
	return nil
}

// sleep ends with the pause, with calls, or when a hint has made a row due: a look costs
// a small part of what a claim does. A vendor's callback is worth as much as it is early
// (ADR 8).
func (p *Poller) sleep(ctx, calls context.Context, failed <-chan error, pause time.Duration) error {
	look := hintPause
	if p.waiting == 0 {
		look = pause
	}
	for ; pause > 0; pause -= look {
		select {
		case <-calls.Done():
			return nil
		case err := <-failed:
			return err
		case <-time.After(min(pause, look)):
		}
		if pause <= look {
			return nil
		}
		if _, next, err := p.stats(ctx, p.name); err != nil || !next.IsZero() && !next.After(p.Now()) {
			return err
		}
	}
	return nil
}

// names are those under which jobs wait for the account.
func (p *Poller) names() []string {
	names := append([]string{p.channel.Name}, p.channel.Former...)
	if !slices.Contains(names, p.name) {
		names = append(names, p.name)
	}
	return names
}

// batch bounds the rows that are claimed and wait for the budget to what it serves in a
// second, so that the order of the rows is decided late.
func (p *Poller) batch() int {
	if p.channel.RequestsPerSecond <= 0 {
		return claimBatch
	}
	return min(claimBatch, max(1, int(p.channel.RequestsPerSecond*float64(p.channel.mostRows()))))
}

// lease is how long a claim holds: longer than the budget lets its last row
// wait, and that row's poll.
func (p *Poller) lease() time.Duration {
	if p.channel.RequestsPerSecond <= 0 {
		return claimLease
	}
	return claimLease + time.Duration(float64(p.batch())/p.channel.RequestsPerSecond*float64(time.Second))
}

func (p *Poller) claim() string { return p.NewID("claim_") }

func (p *Poller) claimDue(ctx context.Context, limit int) ([]mediagate.Await, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	p.steps.Add(1)
	return p.Store.ClaimDue(ctx, p.name, p.epoch, p.claim(), p.lease(), limit)
}

func (p *Poller) stats(ctx context.Context, name string) (waiting int, nextDue time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	p.steps.Add(1)
	return p.Store.AwaitStats(ctx, name)
}

// rest is the pause while nothing is due: until the next row is due, idlePause at
// most, since only a claim finds new rows.
func (p *Poller) rest(ctx context.Context) (time.Duration, error) {
	_, next, err := p.stats(ctx, p.name)
	if err != nil || next.IsZero() {
		return idlePause, err
	}
	return min(max(next.Sub(p.Now()), claimPause), idlePause), nil
}

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

// poll asks the vendor for each row, with bounded width and under the account's
// budget, and stores the answers in small batches. Once calls ends, what is left of
// the batch falls to the next poller.
func (p *Poller) poll(ctx, calls context.Context, rows []mediagate.Await) error {
	results := make(chan mediagate.PollResult, len(rows))
	stored := make(chan error, 1)
	go func() { stored <- p.store(ctx, rows[0].Claim, results) }()
	var group sync.WaitGroup
	for _, asked := range p.questions(rows) {
		if p.admit(calls) == nil {
			late := p.Now().Sub(asked[0].NextPollAt)
			p.late.Store(int64(late))
			p.meter().Polled(p.channel.Name, late)
			group.Go(func() {
				defer func() { <-p.width }()
				for _, result := range p.ask(calls, asked) {
					results <- result
				}
			})
		}
		p.toAsk.Add(-int64(len(asked)))
	}
	group.Wait()
	close(results)
	return <-stored
}

// admit waits for the budget, and until fewer than pollWidth calls are under way.
func (p *Poller) admit(calls context.Context) error {
	if err := p.pace.limiter.Wait(calls); err != nil {
		return err
	}
	select {
	case p.width <- struct{}{}:
		return nil
	case <-calls.Done():
		return calls.Err()
	}
}

// collect returns the next batch of results. It waits storeEvery for further ones, but
// once it has an end, which a client waits for, it takes only what is there. An empty
// batch means that there are no more.
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
		urgent = urgent || r.Outcome != nil || r.Waiting
	}
	return batch
}
