package channel

import (
	"context"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/internal/failpoint"
)

const (
	grantEvery  = 500 * time.Millisecond // between two looks for free slots while somebody may wait for one
	grantRarely = 5 * time.Second        // while nobody does, since the channel has no limit
	grantMost   = 32                     // grants at once
	grantUnused = 2 * time.Minute        // a grant that no workflow has used is taken back then
)

// grants is the state of a poller's granting (D7).
type grants struct {
	freed  chan struct{} // has one when jobs have ended
	most   int           // grants at once: few of a channel that takes jobs again
	queued int           // as found last
}

// free has the poller look for free slots now.
func (p *Poller) free() {
	select {
	case p.grants.freed <- struct{}{}:
	default:
	}
}

// grant gives free slots to the tasks that are queued for the channel, until
// calls ends. A channel whose number of jobs has no limit has queued tasks only while its
// breaker is open: the poller looks for the first of them less often.
func (p *Poller) grant(ctx, calls context.Context) error {
	for calls.Err() == nil {
		if err := p.grantFree(ctx); err != nil {
			return err
		}
		pause := grantEvery
		if p.channel.Concurrency == 0 && p.grants.queued == 0 {
			pause = grantRarely
		}
		select {
		case <-calls.Done():
		case <-p.grants.freed:
		case <-time.After(pause):
		}
	}
	return nil
}

// grantFree grants what is free now, and wakes the tasks.
func (p *Poller) grantFree(ctx context.Context) error {
	g := &p.grants
	for {
		got, err := p.grantSome(ctx)
		if err != nil {
			return err
		}
		g.queued = got.Waiting
		p.queued.Store(int64(got.Waiting))
		if len(got.Tasks) == 0 {
			return nil
		}
		failpoint.Hit(failpoint.SlotGranted)
		p.Workflows.Wake(ctx, p.name, got.Tasks)
		if got.Waiting == 0 || len(got.Tasks) < grantMost {
			return nil
		}
	}
}

// grantSome makes a batch of grants: none while the channel takes no jobs. A channel
// that takes jobs again first gets one, which may be the breaker's probe, then twice as
// many each time.
func (p *Poller) grantSome(ctx context.Context) (mediagate.Granted, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	queued, err := p.Store.QueuedTasks(ctx, p.name, 1)
	if err != nil || len(queued) == 0 {
		return mediagate.Granted{}, err
	}
	most, c := p.grants.most, p.channel
	if p.Breakers.TakesJobs(c.Name) {
		p.grants.most = min(2*max(most, 1), grantMost)
	} else {
		most, p.grants.most = 0, 1
	}
	return p.Store.GrantSlots(ctx, mediagate.Granting{
		Channel: p.name, Epoch: p.epoch, Slots: c.Slots(), Most: most, TakeBack: grantUnused,
	})
}
