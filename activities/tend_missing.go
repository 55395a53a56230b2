package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/channel"
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

// tendMissing stands in on a worker that lacks the channel: another worker
// should have it, and gets it ever less often offered. Once no worker had it
// for the grace time, the tasks that wait for it are in trouble (D11). It rests
// until none waits; gone then says that nothing is left to tend.
func (a *Activities) tendMissing(ctx context.Context, name string) (gone bool, err error) {
	orphaned := a.accounts().Orphaned(name)
	defer heartbeat(ctx, func() []any {
		return []any{channel.Beat{LastError: "no worker has this channel"}}
	})()
	for stop := activity.GetWorkerStopChannel(ctx); ; {
		someone, err := a.seenElsewhere(ctx, name)
		if err != nil {
			return false, a.fail(ctx, err)
		}
		if someone {
			return false, a.fail(ctx, &mediagate.Error{
				Kind: mediagate.KindUnreached, Code: codeElsewhere, Message: "this worker lacks the channel",
				RetryAfter: min(time.Duration(activity.GetInfo(ctx).Attempt)*missingStep, missingMost),
			})
		}
		waiting, err := orphaned.GiveUp(ctx)
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

// seenElsewhere reports that a worker has had the channel within the grace time.
func (a *Activities) seenElsewhere(ctx context.Context, name string) (bool, error) {
	seen, err := a.Breakers.LastSeen(ctx, name)
	if err != nil {
		return false, err
	}
	if seen.Before(a.StartedAt) {
		seen = a.StartedAt // nobody could see it while no worker ran
	}
	return a.Now().Sub(seen) < a.Settings.ChannelGrace, nil
}
