package channel

import (
	"context"
	"time"

	"github.com/mediagate/mediagate"
)

// Parked tasks try again by themselves every few minutes (D12). These functions have
// them try sooner, when there is reason to.
const (
	// retryEvery is the pause between two retries since the vendor answers again: a
	// vendor that fails often also recovers often.
	retryEvery = time.Minute
	// probeEvery is the pause between two tasks that are retried to be the breaker's
	// probe: one of them may have another channel to go to by now.
	probeEvery = 10 * time.Second
	// retryFor is how long tasks are retried after a breaker has closed. By then each
	// has tried again by itself.
	retryFor = 5 * time.Minute
)

// shutOut are the reasons for which tasks are parked that no channel took.
var shutOut = []mediagate.ParkReason{mediagate.ParkProviderAway, mediagate.ParkCredentials, mediagate.ParkFunds}

// retries is the state of a poller's retries of tasks that no channel took.
type retries struct {
	changedAt time.Time // of the breaker's state that tasks are retried for
	until     time.Time // zero: all were retried
	probedAt  time.Time
}

// retryAnswered retries the tasks that were parked since the vendor was away, once it
// answers polls again after a run of failures.
func (p *Poller) retryAnswered(ctx context.Context) {
	if !p.answers.Load() || p.Now().Sub(p.retriedAt) < retryEvery || !p.Breakers.TakesJobs(p.channel.Name) {
		return // while it takes no jobs they would be parked again
	}
	p.answers.Store(false)
	p.retriedAt = p.Now()
	for _, name := range p.names() {
		away := []mediagate.ParkReason{mediagate.ParkProviderAway}
		p.retryParked(ctx, mediagate.Parked{Reasons: away, Channel: name}, claimBatch)
	}
}

// retryShutOut retries the tasks that are parked since no channel took them: all of
// them, a batch each time, once the channel's breaker has closed or an operator has
// enabled it; one of them when the breaker lets a probe through, since no other task
// may come. A poller that begins does so too: the one before may have died.
func (p *Poller) retryShutOut(ctx context.Context) {
	if p.name != p.channel.Name {
		return // the channel has a poller of its own
	}
	r, now := &p.retries, p.Now()
	parked := mediagate.Parked{Reasons: shutOut, Provider: p.channel.Provider}
	s := p.Breakers.State(p.channel.Name)
	switch {
	case !s.TakesJobs(now):
		return
	case s.Open:
		if now.Sub(r.probedAt) >= probeEvery {
			r.probedAt = now
			p.retryParked(ctx, parked, 1)
		}
		return
	case !s.ChangedAt.Equal(r.changedAt):
		r.changedAt, r.until = s.ChangedAt, now.Add(retryFor)
	}
	if now.Before(r.until) && p.retryParked(ctx, parked, claimBatch) < claimBatch {
		r.until = now
	}
}

// retryParked has parked tasks try again now, and returns how many. If the database
// fails it returns limit: there may be more.
func (a *Accounts) retryParked(ctx context.Context, parked mediagate.Parked, limit int) int {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	retried, err := a.Store.RetryParked(ctx, parked, limit)
	if err != nil {
		a.Logger.WarnContext(ctx, "parked tasks were not retried",
			"channel", parked.Channel, "provider", parked.Provider, "error", err)
		return limit
	}
	return retried
}
