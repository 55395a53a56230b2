package activities

import (
	"context"
	"slices"
	"strings"

	"github.com/mediagate/mediagate"
)

// sweepTask removes what was stored for a task that has ended and that it does
// not show: all of it, or what other attempts than the one that completed it
// left, and calls of that one which were given up. Of one that is erased it
// leaves nothing.
func (a *Activities) sweepTask(ctx context.Context, taskID string) error {
	task, err := a.Store.TaskByID(ctx, taskID)
	if err != nil || !task.Status.Terminal() {
		return err
	}
	if !task.InputsErasedAt.IsZero() {
		for _, key := range task.Plan.Uploads {
			if err := a.Sweeper.Delete(ctx, key); err != nil {
				return err
			}
		}
	}
	if task.Status != mediagate.StatusCompleted || !task.ErasedAt.IsZero() {
		return a.sweepFolder(ctx, taskID, mediagate.ResultFolder(taskID))
	}
	shown := keysOf(task.Results)
	if len(shown) == 0 && task.Made.StandsAlone() {
		return a.sweepFolder(ctx, taskID, mediagate.ResultFolder(taskID))
	}
	if !slices.ContainsFunc(shown, func(key string) bool { return strings.HasPrefix(key, mediagate.ResultFolder(taskID)) }) {
		return nil // where its own files are is not known: nothing is touched
	}
	return a.sweepFolder(ctx, taskID, mediagate.ResultFolder(taskID), shown...)
}

// keysOf are the objects of the files.
func keysOf(results []mediagate.Result) []string {
	keys := make([]string, len(results))
	for i, r := range results {
		keys[i] = r.Key
	}
	return keys
}

func (a *Activities) sweepFolder(ctx context.Context, taskID, folder string, keep ...string) error {
	if _, err := a.Sweeper.AbortStale(ctx, folder, 0); err != nil {
		return err
	}
	removed, err := a.Sweeper.DeletePrefix(ctx, folder, keep...)
	if removed > 0 {
		a.Logger.InfoContext(ctx, "swept results that nobody will see", "task", taskID, "objects", removed)
	}
	return err
}
