package durable_test

import (
	"context"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities/activitytest"
)

// A copy that was begun before its run was told goes on until its step joins it,
// however long that takes to begin; from then on the step gives signs of life, for
// who copies elsewhere.
func TestStepAtWorkIsSeen(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Activities.Engine = w.engine
	w.Activities.Settings.QuickCopy = 100 * time.Millisecond
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
	task := w.begin(w.NewVideo(), "task_copied", time.Hour)
	works := func() bool {
		works, err := w.engine.AtWork(t.Context(), task.ID)
		if err != nil {
			t.Fatal(err)
		}
		return works
	}
	if works() {
		t.Error("a step is at work before there is a worker")
	}
	w.Async.End(task.ID, activitytest.Success())
	w.serves([]string{activitytest.AsyncChannel}, activitytest.AsyncProvider)
	w.awaits("the step is at work", works)
	close(letGo)
	w.awaits("the task ends", func() bool { return w.task(task.ID).Status.Terminal() })
	w.awaits("no step is at work", func() bool { return !works() })
	if got := w.task(task.ID); got.Status != mediagate.StatusCompleted || opened.Load() != 1 {
		t.Errorf("the task is %s, its file was opened %d times", got.Status, opened.Load())
	}
	if works, err := w.engine.AtWork(t.Context(), "task_none"); err != nil || works {
		t.Errorf("of a task without a run: %v, %v", works, err)
	}
}
