package durable_test

import (
	"context"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
)

// TestStepAtWorkIsSeen checks that a step that copies sends heartbeats, so that its run counts
// as busy and is not replaced.
func TestStepAtWorkIsSeen(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Activities.Settings.QuickCopy = 0
	var opened atomic.Int32
	letGo := make(chan struct{})
	w.Fetcher.OnFetch = func(ctx context.Context, _, _ string) (io.ReadCloser, int64, error) {
		opened.Add(1)
		select {
		case <-letGo:
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
		return io.NopCloser(strings.NewReader("film")), 4, nil
	}
	look := func(id string) activities.RunState {
		state, err := w.engine.DescribeRun(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return state
	}
	w.startWorker([]string{activitytest.AsyncChannel}, activitytest.AsyncProvider)
	task := w.startTask(w.NewVideo(), "task_copied", time.Hour)
	w.await("the run sleeps", func() bool { return len(w.Async.Submits()) == 1 && look(task.ID) == activities.RunIdle })
	w.Async.End(task.ID, activitytest.Success())
	w.await("the step beats", func() bool {
		steps := w.pending(task.ID)
		return len(steps) == 1 && steps[0].GetActivityType().GetName() == "MirrorResult" && look(task.ID) == activities.RunBusy
	})
	close(letGo)
	w.await("the run ends", func() bool { return look(task.ID) == activities.RunCompleted })
	if got := w.task(task.ID); got.Status != mediagate.StatusCompleted || opened.Load() != 1 {
		t.Errorf("the task is %s, its file was opened %d times", got.Status, opened.Load())
	}
	if state := look("task_none"); state != activities.RunNone {
		t.Errorf("a task that never had a run: %s", state)
	}
}
