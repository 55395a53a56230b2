package activities

import (
	"context"
	"time"

	"github.com/mediagate/mediagate/channel"
)

const (
	// signalWidth is how many workflows are signalled at once, of one channel.
	signalWidth = 16
	// tellPatience is how long one waits for its turn.
	tellPatience = 30 * time.Second
)

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

// StepsChanged wakes the runs of tasks.
func (s signals) StepsChanged(ctx context.Context, name string, woken []channel.StepChange) {
	_ = each(ctx, woken, signalWidth, func(e channel.StepChange) error {
		s.carryOut(ctx, e.Changed)
		s.traceJob(ctx, e)
		return s.wake(ctx, name, e.Changed.State.ID)
	})
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
