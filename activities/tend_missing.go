package activities

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/mediagate/mediagate"
)

const (
	// missingStep is how much longer each try leaves a channel alone that this
	// worker lacks, up to missingMost.
	missingStep = 5 * time.Second
	missingMost = 30 * time.Second
	// missingLook is the pause between two looks at a channel that nobody has.
	missingLook = 15 * time.Second

	codeElsewhere = "channel_elsewhere"
)

// HandedBack reports that an activity failed only for running where its channel
// is not configured: no fault, and nothing to tell anybody.
func HandedBack(err error) bool {
	app, ok := errors.AsType[*temporal.ApplicationError](err)
	return ok && FromTemporal(app).Code == codeElsewhere
}

// tendMissing stands in on a worker that lacks the channel: another worker
// should have it, and gets it ever less often offered. Once no worker had it
// for the grace time, the tasks that wait for it are in trouble (D11). It rests
// until none waits; gone then says that nothing is left to tend.
func (a *Activities) tendMissing(ctx context.Context, name string) (gone bool, err error) {
	t := &tender{
		Activities: a, name: name,
		log: a.Logger.With("channel", name),
	}
	defer heartbeat(ctx, func() []any {
		return []any{ChannelBeat{LastError: "no worker has this channel"}}
	})()
	for stop := activity.GetWorkerStopChannel(ctx); ; {
		someone, err := a.elsewhere(ctx, name)
		if err != nil {
			return false, a.fail(ctx, err)
		}
		if someone {
			return false, a.fail(ctx, &mediagate.Error{
				Kind: mediagate.KindUnreached, Code: codeElsewhere, Message: "this worker lacks the channel",
				RetryAfter: min(time.Duration(activity.GetInfo(ctx).Attempt)*missingStep, missingMost),
			})
		}
		waiting, err := t.giveUp(ctx)
		if mediagate.Is(err, mediagate.KindConflict) {
			return false, nil // fenced: a newer run tends
		}
		if err != nil || waiting == 0 {
			return err == nil, a.fail(ctx, err)
		}
		select {
		case <-stop:
			return false, nil
		case <-ctx.Done():
			return false, nil
		case <-time.After(missingLook):
		}
	}
}

// elsewhere reports that a worker has had the channel within the grace time.
func (a *Activities) elsewhere(ctx context.Context, name string) (bool, error) {
	seen, err := a.Store.ChannelLastSeen(ctx, name)
	if err != nil && !mediagate.Is(err, mediagate.KindNotFound) {
		return false, err
	}
	if seen.Before(a.StartedAt) {
		seen = a.StartedAt // nobody could see it while no worker ran
	}
	return a.Now().Sub(seen) < a.Settings.ChannelGrace, nil
}

// giveUp puts the tasks that wait for the channel in trouble, and tells how
// many rows are left.
func (t *tender) giveUp(ctx context.Context) (waiting int, err error) {
	if waiting, _, err = t.stats(ctx); err != nil || waiting == 0 {
		return waiting, err
	}
	if t.epoch == 0 {
		if t.epoch, err = t.Store.BeginEpoch(ctx, t.name); err != nil {
			return waiting, err
		}
	}
	rows, err := t.claimDue(ctx)
	if err != nil || len(rows) == 0 {
		return waiting, err
	}
	results := make([]mediagate.PollResult, 0, len(rows))
	owed := make([]mediagate.Await, 0)
	for _, row := range rows {
		if row.Ended {
			owed = append(owed, row)
			continue
		}
		results = append(results, mediagate.PollResult{
			TaskID: row.TaskID, N: row.N, NextPollAt: t.Now().Add(time.Minute), Trouble: mediagate.ParkChannelMissing,
		})
	}
	ended, err := t.storePolls(ctx, rows[0].Claim, results)
	if err != nil {
		return waiting, err
	}
	t.signal(ctx, append(owed, ended...))
	return waiting, nil
}
