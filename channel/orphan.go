package channel

import (
	"context"
	"time"

	"github.com/mediagate/mediagate"
)

// Orphaned is for the tasks that wait under a name of which no worker has had
// a channel for the grace time. It can give them up and do nothing else.
func (a *Accounts) Orphaned(name string) *Poller {
	return &Poller{Accounts: a, name: name, log: a.Logger.With("channel", name)}
}

// GiveUp puts the tasks that wait for the channel in trouble, wakes those that
// are queued for a slot of it, to go elsewhere, and tells how many of both are
// left.
func (p *Poller) GiveUp(ctx context.Context) (left int, err error) {
	queued, err := p.Store.QueuedTasks(ctx, p.name, claimBatch)
	if err != nil {
		return 0, err
	}
	ids := make([]string, len(queued))
	for i, row := range queued {
		ids[i] = row.TaskID
	}
	p.Workflows.SignalWake(ctx, p.name, ids)
	waiting, err := p.giveUp(ctx)
	return len(queued) + waiting, err
}

func (p *Poller) giveUp(ctx context.Context) (waiting int, err error) {
	if waiting, _, err = p.stats(ctx, p.name); err != nil || waiting == 0 {
		return waiting, err
	}
	if p.epoch == 0 {
		if p.epoch, err = p.Store.BeginEpoch(ctx, p.name); err != nil {
			return waiting, err
		}
	}
	rows, err := p.claimDue(ctx, claimBatch)
	if err != nil || len(rows) == 0 {
		return waiting, err
	}
	results := make([]mediagate.PollResult, 0, len(rows))
	unsignalled := make([]mediagate.Await, 0)
	for _, row := range rows {
		if row.Ended {
			unsignalled = append(unsignalled, row)
			continue
		}
		results = append(results, mediagate.PollResult{
			TaskID: row.TaskID, N: row.N, NextPollAt: p.Now().Add(time.Minute), Trouble: mediagate.ParkChannelMissing,
		})
	}
	ended, err := p.storePolls(ctx, rows[0].Claim, results)
	if err != nil {
		return waiting, err
	}
	p.Workflows.SignalEnded(ctx, ctx, append(unsignalled, ended...), false)
	return waiting, nil
}
