package channel

import (
	"context"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

// Orphaned returns a poller for a name of which no worker has had a channel for the
// grace time. It can give up the tasks that wait under the name, and nothing else.
func (a *Accounts) Orphaned(name string) *Poller {
	return &Poller{Accounts: a, name: name, log: a.Logger.With("channel", name)}
}

// GiveUp parks the tasks that wait for a job of the channel, and has those that are
// queued for a slot of it look for another channel (D11). It returns how many of both
// are left. Returns KindConflict when another run polls under the name.
func (p *Poller) GiveUp(ctx context.Context) (left int, err error) {
	queued, err := p.leaveQueue(ctx)
	if err != nil {
		return 0, err
	}
	waiting, err := p.giveUp(ctx)
	return queued + waiting, err
}

// leaveQueue has queued tasks look for another channel now.
func (p *Poller) leaveQueue(ctx context.Context) (queued int, err error) {
	rows, err := p.Store.QueuedTasks(ctx, p.name, claimBatch)
	if err != nil {
		return 0, err
	}
	var ids []string
	for _, row := range rows {
		changed, err := p.changeTask(ctx, row.TaskID, task.ChannelGone{Channel: p.name})
		switch {
		case err != nil && !mediagate.Is(err, mediagate.KindNotFound):
			return 0, err
		case changed.Effects.Wake:
			ids = append(ids, row.TaskID)
		}
	}
	p.Workflows.Wake(ctx, p.name, ids)
	return len(rows), nil
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
	results := make([]mediagate.PollResult, len(rows))
	for i, row := range rows {
		results[i] = mediagate.PollResult{TaskID: row.TaskID, N: row.N, NextPollAt: p.Now().Add(time.Minute), Trouble: mediagate.ParkChannelMissing}
	}
	p.Workflows.StepsChanged(ctx, p.name, p.change(ctx, rows[0].Claim, results))
	return waiting, nil
}
