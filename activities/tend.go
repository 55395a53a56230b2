package activities

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/channel"
)

// stuckAfter is how long a poller may make no step. No batch takes that long.
const stuckAfter = 3 * time.Minute

// ChannelArgs names a channel, for TendChannel and for the workflow that keeps it running.
type ChannelArgs struct {
	Channel string `json:"channel"`
}

// TendChannel polls the vendor for all tasks that wait for the channel, until the worker stops.
// Its epoch fences it: once another run has begun, this one can claim nothing more, and returns
// (D8).
//
// On a worker that lacks the channel TendChannel fails with KindUnreached, so that Temporal offers
// it to another worker. gone says that no worker has the channel any more, and that no task waits
// for it.
//
// For example, a worker hangs at 12:00:00 and sends no heartbeats. Temporal starts the activity on
// another worker, which begins epoch 8. When the first worker goes on, its epoch 7 can claim
// nothing. For rows that the new poller has claimed, an answer of the first worker counts only if
// it says that the job has ended.
func (a *Activities) TendChannel(ctx context.Context, in ChannelArgs) (gone bool, err error) {
	poller, err := a.accounts().Poller(ctx, in.Channel)
	if err != nil {
		return false, a.fail(ctx, err)
	}
	// No channel of this worker has that name, or had it before.
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

// keepAlive sends heartbeats with the poller's beat. It sends them independently of the poller, so
// the channel does not look dead at once if the database hangs. A poller that has made no step for
// stuckAfter is dead: the heartbeats stop, and another worker takes over.
func keepAlive(ctx context.Context, p *channel.Poller) (stop func()) {
	steps, still := p.Steps(), time.Duration(0)
	return heartbeat(ctx, func() []any {
		// No heartbeat is sent once the poller has been still for too long: Temporal then starts
		// the activity again.
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
	// missingStep is by how much the pause grows with each try on a worker that lacks the channel,
	// up to missingMost.
	missingStep = 5 * time.Second
	missingMost = 30 * time.Second
	// missingPause is the pause between two checks of a channel that no worker has.
	missingPause = 15 * time.Second

	codeElsewhere = "channel_elsewhere"
)

// tendMissing is TendChannel on a worker that lacks the channel. Another worker should have it,
// so the activity fails and is offered to others, with growing pauses. Once no worker has had the
// channel for the grace time, tendMissing releases the tasks that wait for it (D11), and goes on
// until none waits. gone then says that nothing is left to do.
func (a *Activities) tendMissing(ctx context.Context, name string) (gone bool, err error) {
	orphaned := a.accounts().Orphaned(name)
	defer heartbeat(ctx, func() []any {
		return []any{channel.Beat{LastError: "no worker has this channel"}}
	}, nil)()
	for stop := activity.GetWorkerStopChannel(ctx); ; {
		// While another worker has the channel, fail, so that Temporal offers the activity again.
		// The pause grows with the attempts.
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
		waiting, err := orphaned.ReleaseTasks(ctx)
		if mediagate.Is(err, mediagate.KindConflict) {
			return false, nil // fenced: a newer run has the channel
		}
		if err != nil || waiting == 0 {
			return err == nil, a.fail(ctx, err)
		}
		select {
		case <-stop:
			return false, nil
		case <-ctx.Done():
			return false, nil
		case <-time.After(missingPause):
		}
	}
}

// seenElsewhere reports whether a worker has had the channel within the grace time. Workers record
// each minute which channels they have.
func (a *Activities) seenElsewhere(ctx context.Context, name string) (bool, error) {
	seen, err := a.Breakers.LastSeen(ctx, name)
	if err != nil {
		return false, err
	}
	if seen.Before(a.StartedAt) {
		seen = a.StartedAt // the grace begins here: perhaps no worker ran before
	}
	return a.Now().Sub(seen) < a.Settings.ChannelGrace, nil
}

const (
	// signalWidth is how many workflows of one channel are signalled at the same time.
	signalWidth = 16
	// signalPatience is how long a signal waits for a permit.
	signalPatience = 30 * time.Second
)

// accounts returns the vendor accounts of this worker, the same for all activities. The first call
// makes them, from the fields that the worker has set.
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

// StepsChanged wakes the runs of tasks. Copies may take seconds each, and do not delay the
// signals of other tasks. If the worker stops, its copies are left to the runs.
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

// wakeChanged carries out the effects of the changes, and wakes the runs.
func (s signals) wakeChanged(ctx context.Context, name string, changes ...channel.StepChange) {
	_ = forEach(ctx, changes, signalWidth, func(e channel.StepChange) error {
		s.carryOut(ctx, e.Changed)
		s.traceJob(ctx, e)
		return s.wake(ctx, name, e.Changed.State.ID)
	})
}

// RoomToCopy takes room for one of the copies that pollers of this process make. It never waits:
// without room the run copies the files in a step of its own.
func (s signals) RoomToCopy(provider string) (release func()) {
	if s.Settings.QuickCopy > 0 {
		// This bounds the copies of all pollers of the process. Each copy also takes a permit of
		// Copies, as the copies of runs do.
		if permit, ok := s.Limits.PollCopies.TryAcquire(provider, 1); ok {
			return permit.Release
		}
	}
	return nil
}

// Wake wakes the runs of tasks.
func (s signals) Wake(ctx context.Context, name string, taskIDs []string) {
	_ = forEach(ctx, taskIDs, signalWidth, func(id string) error { return s.wake(ctx, name, id) })
}

// wake signals a run. If the run is gone, or cannot be reached, the wake scan takes care of it. The
// permits keep the signals of one busy channel from delaying those of others.
func (s signals) wake(ctx context.Context, name, taskID string) error {
	waiting, cancel := context.WithTimeout(ctx, signalPatience)
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
