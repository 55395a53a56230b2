package activities

import (
	"context"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/channel"
	"github.com/mediagate/mediagate/task"
)

const (
	// signalWidth is how many workflows are signalled at once, of one channel.
	signalWidth = 16
	// tellPatience is how long one waits for its turn.
	tellPatience = 30 * time.Second
)

// finishPatience is how long the tasks of a batch wait for their turn to be ended
// before their runs are signalled.
const finishPatience = 5 * time.Second

// accounts are the vendor accounts of this worker, all activities the same.
func (a *Activities) accounts() *channel.Accounts {
	a.opened.Do(func() {
		a.vendors = &channel.Accounts{
			Channels: a.Channels, Store: a.Store, Breakers: a.Breakers, Workflows: signals{a}, Grace: a.Settings.ChannelGrace,
			Now: a.Now, Logger: a.Logger, NewID: a.NewID, Meter: a.Meter,
		}
	})
	return a.vendors
}

// signals is the engine as the vendor accounts see it.
type signals struct{ *Activities }

// StepsChanged wakes the runs of tasks. Before that it copies the files of those whose
// next step is Mirror, which ends them, where that is quick and a permit is free.
func (s signals) StepsChanged(ctx, calls context.Context, name string, woken []channel.StepChange) {
	began := time.Now()
	_ = each(ctx, woken, signalWidth, func(e channel.StepChange) error {
		s.carryOut(ctx, e.Changed)
		traced := s.traceJob(calls, e)
		if e.Changed.Step.Kind == task.Mirror {
			s.copyEnded(traced, e, finishPatience-time.Since(began))
		}
		return s.wake(ctx, name, e.Changed.State.ID)
	})
}

// copyEnded copies the files of an attempt that has just ended at its vendor, which
// ends its task: the run then finds a terminal task, and has no more steps to take. What
// is not done in time, or cannot be, is left to the run.
//
// Once the patience of a batch is over nothing is begun, though there be room: each
// round of its copies would keep the runs behind it waiting.
func (s signals) copyEnded(ctx context.Context, e channel.StepChange, patience time.Duration) {
	if patience <= 0 || ctx.Err() != nil || s.Settings.QuickCopy <= 0 {
		return
	}
	if err := mediagate.Guarded(func() error { return s.tryCopy(ctx, e, patience) }); err != nil && ctx.Err() == nil {
		s.Logger.DebugContext(ctx, "a task's end is left to its run", "task", e.Changed.State.ID, "attempt", e.N, "error", err)
	}
}

func (s signals) tryCopy(ctx context.Context, e channel.StepChange, patience time.Duration) error {
	row, err := s.Store.Attempt(ctx, e.Changed.State.ID, e.N)
	if err != nil {
		return err
	}
	t, err := s.Store.TaskByID(ctx, e.Changed.State.ID)
	if err != nil {
		return err
	}
	return s.copyBriefly(ctx, t, row, patience)
}

// Wake wakes the runs of tasks.
func (s signals) Wake(ctx context.Context, name string, taskIDs []string) {
	_ = each(ctx, taskIDs, signalWidth, func(id string) error { return s.wake(ctx, name, id) })
}

// wake signals a run. One that is gone, or cannot be reached, is left to the wake scan.
func (s signals) wake(ctx context.Context, name, taskID string) error {
	waiting, cancel := context.WithTimeout(ctx, tellPatience)
	defer cancel()
	turn, err := s.Limits.Signals.Acquire(waiting, name, 1)
	if err != nil {
		return err
	}
	defer turn.Release()
	_, err = s.Engine.Wake(ctx, taskID)
	if err != nil {
		s.Logger.WarnContext(ctx, "workflow not signalled: its wake is due in seconds", "channel", name, "task", taskID, "error", err)
	}
	return err
}
