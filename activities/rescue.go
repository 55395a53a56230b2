package activities

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/mediagate/mediagate"
)

// What should have ended long ago and has a run all the same is in the hands of
// a run that is blocked, or whose workflow tasks fail: after a deploy that
// broke determinism, or for a panic. No signal reaches it. It is terminated and
// replaced, which D1 makes harmless: the new run goes by the row.

// rescueTasks gets overdue tasks going. A task is woken at first, some time
// before its run is replaced: after an outage that outlasted their deadlines,
// healthy runs by the thousand are overdue for a moment.
func (a *Activities) rescueTasks(ctx context.Context, t *tally) error {
	s := a.Settings
	overdue := mediagate.Overdue{
		Grace: max(0, s.OverdueAfter-s.RescueEvery), ParkTimeout: s.ParkTimeout, UnknownTimeout: unknownAfter,
		QueueTimeout: s.QueueTimeout, Again: s.RescueEvery,
	}
	return batches(ctx, func(ctx context.Context) ([]mediagate.Rescue, error) {
		found, err := a.Store.ClaimOverdue(ctx, overdue, passBatch)
		t.add(func(r *PassReport) { r.Overdue += len(found) })
		return found, err
	}, func(ctx context.Context, rescue mediagate.Rescue) error {
		if rescue.Times == 1 {
			return a.Engine.SignalWake(ctx, rescue.TaskID)
		}
		started, err := a.replace(ctx, rescue)
		if started {
			t.add(func(r *PassReport) { r.Replaced++ })
		}
		return err
	})
}

// wakeUnsettled makes runs look at their rows whose attempt ended a while ago, and
// that were told: an activity that outlived its own step may have heard it in their
// place, or an operator reset them to a point before it without the signals. A run
// that is still copying, or waits for its turn to, hears of nothing new.
func (a *Activities) wakeUnsettled(ctx context.Context) error {
	return a.byID(ctx, a.Store.UnsettledTasks, a.Engine.SignalWake)
}

// rescueUntold replaces runs that do not hear that their task has ended: one that is
// blocked, or whose workflow tasks fail, would be signalled for ever. It is woken at
// first, some time before: after an outage of Temporal healthy runs by the thousand have
// heard of nothing. While a replacement does not help they become ever more rare: a run
// that came after the end gets a quarter of the time since then.
func (a *Activities) rescueUntold(ctx context.Context, t *tally) error {
	began := a.Now()
	defer func() { a.untold.forget(began.Add(-2 * a.Settings.RescueEvery)) }()
	return a.byID(ctx, a.Store.UntoldEnds, func(ctx context.Context, id string) error {
		switch woken, ok := a.untold.seen(id, began); {
		case !ok:
			err := a.Engine.SignalWake(ctx, id)
			if err == nil || mediagate.Is(err, mediagate.KindConflict) { // one that takes no signal hears of nothing, either
				a.untold.wake(id, a.Now())
			}
			return err
		case a.Now().Sub(woken) < a.Settings.RescueEvery:
			return nil
		}
		task, err := a.Store.TaskByID(ctx, id)
		if err != nil {
			return err
		}
		started, err := a.Engine.Replace(ctx, task, a.Now().Sub(task.EndedAt)/4, fmt.Sprintf(
			"mediagate's reconciler: the task ended at %s, but this run has not heard of it. A new run goes on from the database", clock(task.EndedAt)))
		if started {
			a.untold.wake(id, a.Now()) // the new run has as long
			t.add(func(r *PassReport) { r.Replaced++ })
			a.Logger.WarnContext(ctx, "replaced the run of a task that had ended", "task", id, "ended", clock(task.EndedAt))
		}
		return err
	})
}

// untold notes when this process woke, or replaced, runs that had not heard of their
// task's end. What is forgotten, as with the process, costs one more wake.
type untold struct {
	mu    sync.Mutex
	woken map[string]lastWoken
}

type lastWoken struct{ at, seen time.Time }

// seen tells when the task's run was woken, and notes that it still has not heard.
func (u *untold) seen(id string, now time.Time) (at time.Time, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	w, ok := u.woken[id]
	if ok {
		w.seen = now
		u.woken[id] = w
	}
	return w.at, ok
}

func (u *untold) wake(id string, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.woken == nil {
		u.woken = make(map[string]lastWoken)
	}
	u.woken[id] = lastWoken{now, now}
}

// forget drops those that were not seen since: they have heard.
func (u *untold) forget(since time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	maps.DeleteFunc(u.woken, func(_ string, w lastWoken) bool { return w.seen.Before(since) })
}

// byID does something about all tasks that are found to be in that state for as long
// as a run may take to hear of it.
func (a *Activities) byID(
	ctx context.Context, find func(ctx context.Context, olderThan time.Duration, after string, limit int) ([]string, error),
	do func(ctx context.Context, id string) error,
) error {
	after := ""
	return batches(ctx, func(ctx context.Context) ([]string, error) {
		found, err := find(ctx, a.Settings.RescueEvery, after, passBatch)
		if len(found) > 0 {
			after = found[len(found)-1]
		}
		return found, err
	}, do)
}

// replace reads the row once more, since a task may have ended while it waited
// for its turn. One that ends after that loses a run that had only its callback
// left to start, and the new run does that.
func (a *Activities) replace(ctx context.Context, rescue mediagate.Rescue) (started bool, err error) {
	task, err := a.Store.TaskByID(ctx, rescue.TaskID)
	if err != nil || task.Status.Terminal() {
		return false, err
	}
	since := "its deadline passed at " + clock(task.DeadlineAt)
	switch {
	case !task.QueuedAt.IsZero():
		since = "queued for a slot since " + clock(task.QueuedAt)
	case !task.ParkedAt.IsZero():
		since = fmt.Sprintf("parked (%s) since %s", task.ParkReason, clock(task.ParkedAt))
	}
	started, err = a.Engine.Replace(ctx, task, 0, fmt.Sprintf(
		"mediagate's reconciler: the task should have ended (%s), but this run does not end it. A new run goes on from the database, nothing is submitted again. Replacement %d",
		since, rescue.Times-1))
	if started {
		a.Logger.WarnContext(ctx, "replaced the run of an overdue task", "task", task.ID, "times", rescue.Times-1, "since", since)
	}
	return started, err
}

// repeatCancel makes a run hear of a cancel that it has not taken. One whose
// workflow tasks fail hears of nothing, and the client would wait for the run to
// be overdue. It is replaced, ever more rarely while that does not help: a run that came after
// the cancel gets a quarter of the time since then.
func (a *Activities) repeatCancel(ctx context.Context, task mediagate.Task, t *tally) error {
	age := a.Now().Sub(task.CancelRequestedAt)
	done, err := a.Engine.RepeatCancel(ctx, task, age/4, fmt.Sprintf(
		"mediagate's reconciler: the client cancelled the task at %s, and the workflow tasks of this run fail. A new run goes on from the database",
		clock(task.CancelRequestedAt)))
	if done {
		t.add(func(r *PassReport) { r.Replaced++ })
		a.Logger.WarnContext(ctx, "replaced the run of a cancelled task, whose workflow tasks failed", "task", task.ID, "cancelled", clock(task.CancelRequestedAt))
	}
	return err
}

// rescueRounds replaces the runs of delivery rounds that take longer than a round
// does which need not wait. Those that get on are left alone, however slowly: an
// account whose receiver does not answer has many that wait for their turn.
func (a *Activities) rescueRounds(ctx context.Context, t *tally) error {
	return batches(ctx, func(ctx context.Context) ([]mediagate.WebhookRound, error) {
		return a.Store.StuckWebhooks(ctx, a.Settings.RescueEvery, passBatch)
	}, func(ctx context.Context, w mediagate.WebhookRound) error {
		state, err := a.LoadRound(ctx, RoundArgs{TaskID: w.TaskID, Round: w.Round})
		if err != nil || a.Now().Before(state.NotTill.Add(roundAfter)) { // between two attempts
			return err
		}
		started, err := a.Engine.ReplaceWebhook(ctx, w,
			"mediagate's reconciler: the callback should be delivered or given up by now. A new run goes on with the attempt that is due")
		if started {
			t.add(func(r *PassReport) { r.Replaced++ })
			a.Logger.WarnContext(ctx, "replaced the run of a callback that hung", "task", w.TaskID, "round", w.Round)
		}
		return err
	})
}

func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }
