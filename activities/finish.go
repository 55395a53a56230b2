package activities

import (
	"context"
	"time"

	"github.com/mediagate/mediagate"
)

// finish copies the files of a job that ended with its submit, and settles on them:
// the step that would do that costs more than most of such copies. It takes a place
// that is free at the moment, as any copy (D18), and leaves to that step what takes
// long, and what goes wrong. The step finds a copy that is under way, and files that
// are on record.
func (a *Activities) finish(ctx context.Context, task mediagate.Task, n int) (mediagate.Story, error) {
	st, err := a.story(ctx, task.ID)
	if err != nil || !a.mayFinish(ctx, st, n) {
		return st, err
	}
	row, err := a.Store.Attempt(ctx, task.ID, n)
	if err != nil {
		return mediagate.Story{}, a.fail(ctx, err)
	}
	copying, cancel := context.WithTimeout(ctx, a.Settings.QuickCopy)
	defer cancel()
	switch err := a.copyFiles(copying, task, row, 1, 0); {
	case ctx.Err() != nil:
		return mediagate.Story{}, ctx.Err()
	case err != nil:
		return st, nil // which tells of files that are still to be copied
	}
	return a.complete(ctx, MirrorArgs{TaskID: task.ID, N: n, Settle: true})
}

// mayFinish reports that nothing is between the attempt and the task's end but its
// files. A parked task is unparked first.
func (a *Activities) mayFinish(ctx context.Context, st mediagate.Story, n int) bool {
	return a.Settings.QuickCopy > 0 && !runIs(ctx, BeforeOneStep) && st.N == n && st.Succeeded && !st.Mirrored &&
		!st.Status.Terminal() && !st.CancelRequested && st.ParkReason == "" && st.ModalUntil.IsZero()
}

// finishEnded does so for an attempt that has just ended at its vendor, before its
// run is told: a run that finds its task ended has no more steps to take. The signal
// stays outstanding until the run has heard it, as ever. What is not done in time, or
// cannot be, the run finds as it was; so does one that goes on meanwhile, for a cancel
// or a command, and what it decides prevents the end here.
//
// Once the patience of a batch is over nothing is begun, though there be room: each
// round of its copies would keep the runs behind it waiting.
func (a *Activities) finishEnded(ctx context.Context, ended mediagate.Await, patience time.Duration) {
	if patience <= 0 || ctx.Err() != nil {
		return
	}
	place, ok := a.finishers.Await(ctx, ended.Channel, a.Settings.CopiesAtOnce, patience)
	if !ok {
		return
	}
	defer place.Leave()
	if err := mediagate.Guarded(func() error { return a.tryFinish(ctx, ended) }); err != nil && ctx.Err() == nil {
		a.Logger.DebugContext(ctx, "a task's end is left to its run", "task", ended.TaskID, "attempt", ended.N, "error", err)
	}
}

func (a *Activities) tryFinish(ctx context.Context, ended mediagate.Await) error {
	ctx, cancel := context.WithTimeout(ctx, a.Settings.QuickCopy)
	defer cancel()
	st, err := a.glance(ctx, ended.TaskID)
	if err != nil || !a.mayFinish(ctx, st, ended.N) {
		return err
	}
	row, err := a.Store.Attempt(ctx, ended.TaskID, ended.N)
	if err != nil {
		return err
	}
	task, err := a.Store.TaskByID(ctx, ended.TaskID)
	if err != nil {
		return err
	}
	if err := a.copyBriefly(ctx, task, row); err != nil {
		return err
	}
	_, err = a.settle(ctx, SettleArgs{TaskID: task.ID, N: ended.N, Status: mediagate.StatusCompleted}, settling{unlessOvertaken: true, runUntold: true})
	return err
}
