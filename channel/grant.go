package channel

import (
	"context"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/internal/failpoint"
)

const (
	grantEvery  = 500 * time.Millisecond // between two checks for free slots, while a task may wait for one
	grantRarely = 5 * time.Second        // the same, if the channel has no limit and no task waits
	grantMost   = 32                     // the most grants at once
	grantUnused = 2 * time.Minute        // after this time an unused grant is taken back
)

// grants is the state of a poller's granting (D7). Only the goroutine that grants uses it, except
// for freed.
type grants struct {
	freed chan struct{} // holds one element if slots were freed since the last check
	most  int           // the most grants of the next batch; small after an outage of the channel
}

// slotsFreed makes the poller check for free slots now. If freed holds an element already, the check
// comes at once anyway.
func (p *Poller) slotsFreed() {
	select {
	case p.grants.freed <- struct{}{}:
	default:
	}
}

// grant gives free slots to the tasks that are queued for the channel, until callCtx ends. If the
// channel has no limit of jobs, tasks are queued for it only while it takes no jobs. So while no
// task is queued for such a channel, the poller checks less often. grant returns KindConflict if
// another poller has taken over.
func (p *Poller) grant(ctx, callCtx context.Context) error {
	for callCtx.Err() == nil {
		if err := p.grantFree(ctx); err != nil {
			return err
		}
		pause := grantEvery
		if p.channel.Concurrency == 0 && p.queued.Load() == 0 {
			pause = grantRarely
		}
		select {
		case <-callCtx.Done():
		case <-p.grants.freed:
		case <-time.After(pause):
		}
	}
	return nil
}

// grantFree grants the slots that are free now, and wakes the tasks. The signal is only the fast
// way, since GrantSlots also brings forward the wakes of the tasks (D2).
func (p *Poller) grantFree(ctx context.Context) error {
	for {
		got, err := p.grantBatch(ctx)
		if err != nil {
			return err
		}
		p.queued.Store(int64(got.Waiting))
		if len(got.Tasks) == 0 {
			return nil
		}
		failpoint.Hit(failpoint.SlotGranted)
		p.Workflows.Wake(ctx, p.name, got.Tasks)
		// A batch below grantMost is the last one for now. No slot is free any more, or batches are
		// still small after an outage. The next check comes after a pause, or when a slot is freed.
		if got.Waiting == 0 || len(got.Tasks) < grantMost {
			return nil
		}
	}
}

// grantBatch makes one batch of grants. While the channel takes no jobs, it makes none. When the
// channel takes jobs again, the first batch is one grant, which may be the breaker's probe, and
// each further batch is twice as large: 1, 2, 4, up to grantMost.
//
// The database decides under the lock of the channel's row, which also fences a poller of an
// earlier epoch (D7, D8). A task that does not use its grant within grantUnused goes back to the
// queue.
func (p *Poller) grantBatch(ctx context.Context) (mediagate.Granted, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	// Most channels have no queue. A cheap query saves them the transaction that grants.
	queued, err := p.Store.QueuedTasks(ctx, p.name, 1)
	if err != nil || len(queued) == 0 {
		return mediagate.Granted{}, err
	}
	most, c := p.grants.most, p.channel
	// While the channel takes no jobs, GrantSlots is called all the same: it takes unused grants
	// back.
	if p.Breakers.TakesJobs(c.Name) {
		p.grants.most = min(2*max(most, 1), grantMost)
	} else {
		most, p.grants.most = 0, 1
	}
	return p.Store.GrantSlots(ctx, mediagate.Granting{
		Channel: p.name, Epoch: p.epoch, Slots: c.Slots(), Most: most, TakeBack: grantUnused,
	})
}
