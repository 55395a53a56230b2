package channel

import (
	"context"
	"time"

	"github.com/mediagate/mediagate"
)

// Parked tasks try again by themselves every few minutes (D12). The functions of this file let
// them try sooner if there is a reason to.
const (
	// retryEvery is the least time between two retries for a vendor that answers again. A vendor
	// that fails often also recovers often, and each retry makes calls.
	retryEvery = time.Minute
	// probeEvery is the pause between two retries while the breaker's probe is due. Each of them
	// retries one task, which should become the probe. If that task finds another channel instead, the
	// next retry takes the next task.
	probeEvery = 10 * time.Second
	// retryFor is how long tasks are retried after a breaker has closed. It is the default pause
	// after which a parked task tries again by itself.
	retryFor = 5 * time.Minute
)

// shutOutReasons are the reasons for which a task parks when no channel takes it.
var shutOutReasons = []mediagate.ParkReason{mediagate.ParkProviderAway, mediagate.ParkCredentials, mediagate.ParkFunds}

// retries is the state of a poller's retries of tasks that no channel took.
type retries struct {
	changedAt time.Time // the change of the channel's state after which tasks are retried
	until     time.Time // when these retries end: earlier than planned once all tasks were retried
	probedAt  time.Time
}

// retryAnswered retries the tasks that are parked because the vendor was away, once it answers
// polls again after a series of failures.
func (p *Poller) retryAnswered(ctx context.Context) {
	if !p.answers.Load() || p.Now().Sub(p.retriedAt) < retryEvery || !p.Breakers.TakesJobs(p.channel.Name) {
		return // while the channel takes no jobs, the tasks would be parked again
	}
	p.answers.Store(false)
	p.retriedAt = p.Now()
	// Tasks may wait for jobs of the account under its present name and under former ones.
	for _, name := range append([]string{p.channel.Name}, p.channel.Former...) {
		away := []mediagate.ParkReason{mediagate.ParkProviderAway}
		p.retryParked(ctx, mediagate.Parked{Reasons: away, Channel: name}, claimBatch)
	}
}

// retryShutOut retries the tasks that are parked because no channel took them. When the channel's
// breaker has closed, or an operator has enabled the channel, it retries all of them, one batch
// at a time. When the breaker lets a probe through, it retries one task, in case no other task
// comes that could be the probe. A new poller acts as if the last change had just come, since the
// previous poller may have died before it had retried all tasks.
func (p *Poller) retryShutOut(ctx context.Context) {
	// Only the poller of the present name retries: the pollers of former names would retry the same
	// tasks again.
	if p.name != p.channel.Name {
		return
	}
	r, now := &p.retries, p.Now()
	parked := mediagate.Parked{Reasons: shutOutReasons, Provider: p.channel.Provider}
	s := p.Breakers.State(p.channel.Name)
	switch {
	// The breaker is open and no probe is due, or the channel is disabled.
	case !s.TakesJobs(now):
		return
	// A probe is due. Retry one task, in case no other task comes.
	case s.Open:
		if now.Sub(r.probedAt) >= probeEvery {
			r.probedAt = now
			p.retryParked(ctx, parked, 1)
		}
		return
	// The breaker has closed, or the channel was enabled, since the last retry.
	case !s.ChangedAt.Equal(r.changedAt):
		r.changedAt, r.until = s.ChangedAt, now.Add(retryFor)
	}
	if now.Before(r.until) && p.retryParked(ctx, parked, claimBatch) < claimBatch {
		r.until = now
	}
}

// retryParked makes parked tasks try again now, and returns how many. If the database fails, it
// returns limit, since there may be more.
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
