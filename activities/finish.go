package activities

import (
	"context"

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
	switch err := a.copyFiles(copying, task, row, 0); {
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
