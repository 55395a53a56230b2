package channel

import (
	"context"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/failpoint"
)

const (
	grantEvery  = 500 * time.Millisecond // between two looks for free slots while somebody may wait for one
	grantMost   = 32                     // grants at once
	grantUnused = 2 * time.Minute        // a grant that no workflow has used is taken back then
	grantAgain  = 30 * time.Second       // and signalled so often until then
)

// grants is how far a poller is with the slots of its channel (D7).
type grants struct {
	freed  chan struct{} // has one when jobs have ended
	most   int           // grants at once: few of a channel that takes jobs again
	queued int           // as found last
}

// free says that slots may be free now.
func (p *Poller) free() {
	select {
	case p.grants.freed <- struct{}{}:
	default: // it is known
	}
}

// grant gives free slots to the tasks that are queued for the channel, until
// calls ends. Where the number of jobs has no limit, tasks are queued only if
// the channel took none for a while: that is looked for less often.
func (p *Poller) grant(ctx, calls context.Context) error {
	tick := time.NewTicker(grantEvery)
	defer tick.Stop()
	for look := 0; calls.Err() == nil; look++ {
		if p.channel.Concurrency > 0 || p.grants.queued > 0 || look%2 == 0 {
			if err := p.grantFree(ctx); err != nil {
				return err
			}
		}
		select {
		case <-calls.Done():
		case <-p.grants.freed:
		case <-tick.C:
		}
	}
	return nil
}

// grantFree grants what is free now, and tells those workflows that have not
// used their grants yet.
func (p *Poller) grantFree(ctx context.Context) error {
	g := &p.grants
	for {
		got, err := p.grantSome(ctx)
		if err != nil {
			return err
		}
		g.queued = got.Waiting + len(got.Signals)
		p.inQueue.Store(int64(got.Waiting))
		if len(got.Signals) == 0 {
			return nil
		}
		failpoint.Hit(failpoint.SlotGranted)
		p.Workflows.SignalSlot(ctx, p.name, got.Signals)
		if got.Waiting == 0 || len(got.Signals) < grantMost {
			return nil
		}
	}
}

// grantSome makes a batch of grants: none while the channel takes no jobs, and
// of one that takes jobs again first one, which may be the breaker's probe, and
// then ever more.
func (p *Poller) grantSome(ctx context.Context) (mediagate.Granted, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	queued, err := p.Store.QueuedTasks(ctx, p.name, 1)
	if err != nil || len(queued) == 0 {
		return mediagate.Granted{}, err
	}
	most, c := p.grants.most, p.queuedFor()
	if p.Breakers.TakesJobs(c.Name) {
		p.grants.most = min(2*max(most, 1), grantMost)
	} else {
		most, p.grants.most = 0, 1
	}
	return p.Store.GrantSlots(ctx, mediagate.Granting{
		Channel: p.name, Epoch: p.epoch, Slots: c.Slots(), Most: most, TakeBack: grantUnused, Again: grantAgain,
	})
}

// queuedFor is the channel that the tasks go to which queue under the name: not
// always the one that stands in, which may only have the account of older jobs.
func (p *Poller) queuedFor() Channel {
	if heir, ok := p.successor(p.name); ok {
		return heir
	}
	return p.channel
}
