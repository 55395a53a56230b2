package activities

import (
	"context"
	"strings"

	"github.com/mediagate/mediagate"
)

// SweepResults removes the files of a task that ended without showing them:
// cancelled, or failed, after they were copied (D13).
func (a *Activities) SweepResults(ctx context.Context, in TaskArgs) error {
	defer heartbeat(ctx, noDetails)()
	return a.fail(ctx, a.sweepTask(ctx, in.TaskID))
}

// sweepTask removes what was copied for a task that has ended and that it does
// not show: all of it, or what attempts before the one that completed it left.
func (a *Activities) sweepTask(ctx context.Context, taskID string) error {
	task, err := a.Store.TaskByID(ctx, taskID)
	if err != nil || !task.Status.Terminal() {
		return err
	}
	if task.Status != mediagate.StatusCompleted {
		return a.sweepFolder(ctx, taskID, taskFolder(taskID))
	}
	st, err := a.Store.Story(ctx, taskID)
	if err != nil {
		return err
	}
	var lost []string
	for n := 1; n <= st.N; n++ {
		if folder := attemptFolder(taskID, n); !holdsAny(folder, task.Results) {
			lost = append(lost, folder)
		}
	}
	if len(lost) == st.N {
		return nil // where its own files are is not known: nothing is touched
	}
	for _, folder := range lost {
		if err := a.sweepFolder(ctx, taskID, folder); err != nil {
			return err
		}
	}
	return nil
}

func holdsAny(folder string, results []mediagate.Result) bool {
	for _, r := range results {
		if strings.HasPrefix(r.Key, folder) {
			return true
		}
	}
	return false
}

func (a *Activities) sweepFolder(ctx context.Context, taskID, folder string) error {
	if _, err := a.Sweeper.AbortStale(ctx, folder, 0); err != nil {
		return err
	}
	removed, err := a.Sweeper.DeletePrefix(ctx, folder)
	if removed > 0 {
		a.Logger.InfoContext(ctx, "swept results that nobody will see", "task", taskID, "objects", removed)
	}
	return err
}
