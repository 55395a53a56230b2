package activities

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/channel"
)

// stuckAfter is how long a poller may go without a step: no batch takes that
// long.
const stuckAfter = 3 * time.Minute

// ChannelArgs names a channel.
type ChannelArgs struct {
	Channel string `json:"channel"`
}

// TendChannel polls the vendor for all tasks that wait for the channel, until
// the worker stops. Its epoch fences it: once another run has begun, this one
// can claim nothing more and returns (D8).
//
// On a worker that lacks the channel it fails with KindUnreached, so that
// another one gets it; gone says that no worker has the channel any more, and
// that no task waits for it.
func (a *Activities) TendChannel(ctx context.Context, in ChannelArgs) (gone bool, err error) {
	poller, err := a.accounts().Poller(ctx, in.Channel)
	if err != nil {
		return false, a.fail(ctx, err)
	}
	if poller == nil {
		return a.tendMissing(ctx, in.Channel)
	}
	defer keepAlive(ctx, poller)()
	calls, cancel := untilStopped(ctx)
	defer cancel()
	err = poller.Run(ctx, calls)
	if mediagate.Is(err, mediagate.KindConflict) {
		return false, nil // fenced: the newer run polls
	}
	return false, a.fail(ctx, err)
}

// keepAlive heartbeats with the poller's beat, beside the run: a database that
// hangs must not make the channel look dead. A run that has made no step for
// longer than any batch takes is dead, and another is to take over.
func keepAlive(ctx context.Context, p *channel.Poller) (stop func()) {
	steps, still := p.Steps(), time.Duration(0)
	return heartbeat(ctx, func() []any {
		if now := p.Steps(); now != steps {
			steps, still = now, 0
		} else if still += heartbeatEvery; still > stuckAfter {
			return nil
		}
		if beat, ok := p.Beat(); ok {
			return []any{beat}
		}
		return nil
	}, nil)
}

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
	}, nil)()
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

const (
	// signalWidth is how many workflows are signalled at once, of one channel.
	signalWidth = 16
	// tellPatience is how long one waits for a permit.
	tellPatience = 30 * time.Second
)

// accounts are the vendor accounts of this worker, all activities the same.
func (a *Activities) accounts() *channel.Accounts {
	a.opened.Do(func() {
		a.vendors = &channel.Accounts{
			Channels: a.Channels, Store: a.Store, Breakers: a.Breakers, Workflows: signals{a},
			Grace: a.Settings.ChannelGrace, Now: a.Now, Logger: a.Logger, NewID: a.NewID, Meter: a.Meter,
		}
	})
	return a.vendors
}

// signals is the engine as the vendor accounts see it.
type signals struct{ *Activities }

// StepsChanged wakes the runs of tasks. Copies, of which each may take seconds, hold up
// no signal of other tasks. A worker that stops leaves its copies to the runs.
func (s signals) StepsChanged(ctx context.Context, name string, woken []channel.StepChange) {
	var copies sync.WaitGroup
	defer copies.Wait()
	var others []channel.StepChange
	for _, e := range woken {
		if e.Release == nil {
			others = append(others, e)
			continue
		}
		copies.Go(func() {
			calls, stop := untilStopped(ctx)
			_ = s.copyQuickly(calls, e.Changed)
			stop()
			e.Release()
			s.wakeChanged(ctx, name, e)
		})
	}
	s.wakeChanged(ctx, name, others...)
}

func (s signals) wakeChanged(ctx context.Context, name string, changes ...channel.StepChange) {
	_ = each(ctx, changes, signalWidth, func(e channel.StepChange) error {
		s.carryOut(ctx, e.Changed)
		s.traceJob(ctx, e)
		return s.wake(ctx, name, e.Changed.State.ID)
	})
}

// RoomToCopy takes room among the copies that pollers of this process make.
func (s signals) RoomToCopy(provider string) (release func()) {
	if s.Settings.QuickCopy > 0 {
		if permit, ok := s.Limits.PollCopies.TryAcquire(provider, 1); ok {
			return permit.Release
		}
	}
	return nil
}

// Wake wakes the runs of tasks.
func (s signals) Wake(ctx context.Context, name string, taskIDs []string) {
	_ = each(ctx, taskIDs, signalWidth, func(id string) error { return s.wake(ctx, name, id) })
}

// wake signals a run. One that is gone, or cannot be reached, is left to the wake scan.
func (s signals) wake(ctx context.Context, name, taskID string) error {
	waiting, cancel := context.WithTimeout(ctx, tellPatience)
	defer cancel()
	permit, err := s.Limits.Signals.Acquire(waiting, name, 1)
	if err != nil {
		return err
	}
	defer permit.Release()
	_, err = s.Engine.Wake(ctx, taskID)
	if err != nil {
		s.Logger.WarnContext(ctx, "workflow not signalled: its wake is due in seconds",
			"channel", name, "task", taskID, "error", err)
	}
	return err
}
