package activities

import (
	"context"
	"errors"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/channel"
)

const (
	// signalWidth is how many workflows are signalled at once, of one channel.
	signalWidth = 16
	// tellPatience is how long one waits for its turn.
	tellPatience = 30 * time.Second
)

// finishPatience is how long the tasks of a batch wait for their turn to be ended
// before their runs are told.
const finishPatience = 5 * time.Second

// accounts are the vendor accounts of this worker, all activities the same.
func (a *Activities) accounts() *channel.Accounts {
	a.opened.Do(func() {
		a.vendors = &channel.Accounts{
			Channels: a.Channels, Store: a.Store, Breakers: a.Breakers, Workflows: signals{a}, Grace: a.Settings.ChannelGrace,
			Now: a.Now, Logger: a.Logger, NewID: a.NewID,
		}
	})
	return a.vendors
}

// signals is the engine as the vendor accounts see it.
type signals struct{ *Activities }

// SignalEnded tells the workflows that their attempt's waiting is over. Tasks that
// files alone keep from their end are ended first, where that is quick and there is
// room for it, the first time only, and until calls ends; see finishEnded. A signal
// that fails stays outstanding: the row comes up again.
func (s signals) SignalEnded(ctx, calls context.Context, rows []mediagate.Await, fresh bool) {
	began := time.Now()
	_ = each(ctx, rows, signalWidth, func(row mediagate.Await) error {
		if fresh {
			s.finishEnded(calls, row, finishPatience-time.Since(began))
		}
		return s.signalEnded(ctx, row)
	})
}

// signalEnded tells one. A task that has no run to be told, since somebody terminated
// it, gets one, which reads the row: the reconciler's next look at it may be minutes
// away. One that has ended needs none, but its callback.
func (s signals) signalEnded(ctx context.Context, row mediagate.Await) error {
	place, ok := s.tellers.Await(ctx, row.Channel, signalWidth, tellPatience)
	if !ok {
		return errors.New("others are being signalled") // the row comes up again
	}
	defer place.Leave()
	runs, err := s.Engine.SignalUpstream(ctx, row.TaskID, row.N)
	if err == nil && !runs {
		err = s.withoutRun(ctx, row)
	}
	if err != nil {
		s.Logger.WarnContext(ctx, "workflow not signalled", "channel", row.Channel, "task", row.TaskID, "error", err)
	}
	return err
}

func (s signals) withoutRun(ctx context.Context, row mediagate.Await) error {
	task, err := s.Store.TaskByID(ctx, row.TaskID)
	switch {
	case err != nil:
		return err
	case task.Status.Terminal():
		if w := task.Webhook; w != nil && w.Round > 0 && w.State == mediagate.WebhookPending {
			if err := s.Engine.EnsureWebhook(ctx, mediagate.WebhookRound{TaskID: task.ID, AccountID: task.AccountID, Round: w.Round}); err != nil {
				return err
			}
		}
		return s.Store.DropAwait(ctx, row.TaskID, row.N)
	}
	_, err = s.Engine.Ensure(ctx, task)
	return err
}

// SignalSlot tells the workflows that a slot is theirs. A signal that fails
// comes up again, until the grant is taken back.
func (s signals) SignalSlot(ctx context.Context, name string, rows []mediagate.Queued) {
	_ = each(ctx, rows, signalWidth, func(row mediagate.Queued) error {
		err := s.Engine.SignalSlot(ctx, row.TaskID, row.N)
		if err != nil {
			s.Logger.WarnContext(ctx, "workflow not told of its slot", "channel", name, "task", row.TaskID, "error", err)
		}
		return err
	})
}

// SignalWake lets parked tasks of the channel go on.
func (s signals) SignalWake(ctx context.Context, name string, taskIDs []string) {
	_ = each(ctx, taskIDs, signalWidth, func(id string) error {
		err := s.Engine.SignalWake(ctx, id)
		if err != nil {
			s.Logger.WarnContext(ctx, "parked task not woken", "channel", name, "task", id, "error", err)
		}
		return err
	})
}
