package durable_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflow/v1"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

// scheduled waits until a call of the task's run waits in a queue.
func (w *world) scheduled(id string) {
	w.t.Helper()
	w.await(id+" is to be submitted", func() bool {
		return slices.ContainsFunc(w.pending(id), func(p *workflow.PendingActivityInfo) bool {
			return p.GetActivityType().GetName() == "SubmitJob" && p.GetState() == enums.PENDING_ACTIVITY_STATE_SCHEDULED
		})
	})
}

// TestD3QueueThatNobodyServes checks a queue without a worker, as after a rollback or the
// removal of a provider (D3). The deadline, an operator and the client can still end the task.
func TestD3QueueThatNobodyServes(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.startWorker(nil)
	late := w.startTask(w.NewVideo(), "task_late", 4*time.Second)
	for _, id := range []string{"task_ordered", "task_by_hand", "task_cancelled", "task_unsignalled"} {
		w.startTask(w.NewVideo(), id, time.Hour)
		w.scheduled(id)
	}
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := w.Store.Command(ctx, mediagate.Action{ID: "act_1", TaskID: "task_ordered", Action: mediagate.ActionFail}, task.FailRequested{})
	must(err)
	must(w.temporal.SignalWorkflow(ctx, "task_by_hand", "", mediagate.ActionFail, nil))
	w.change("task_cancelled", task.CancelRequested{})
	w.change("task_unsignalled", task.CancelRequested{}) // no Wake follows, as if the signal was lost
	for _, id := range []string{"task_ordered", "task_cancelled"} {
		_, err := w.engine.Wake(ctx, id)
		must(err)
	}

	w.expectEnd("task_ordered", mediagate.StatusFailed, mediagate.CodeInternal)
	w.expectEnd("task_by_hand", mediagate.StatusFailed, mediagate.CodeInternal)
	w.expectEnd("task_cancelled", mediagate.StatusCancelled, "")
	w.expectEnd("task_unsignalled", mediagate.StatusCancelled, "")
	w.expectEnd(late.ID, mediagate.StatusFailed, mediagate.CodeGenerationTimeout)
	if got := w.task(late.ID).EndedAt; got.Before(late.DeadlineAt) {
		t.Errorf("failed %v before the deadline", late.DeadlineAt.Sub(got))
	}
	if got := w.Async.Submits(); len(got) != 0 {
		t.Errorf("%d jobs submitted", len(got))
	}
}

// TestD3FullQueue checks that a submit that waits in a full queue until its deadline is not
// sent, and that a synchronous call that hangs ends at the deadline (D3).
func TestD3FullQueue(t *testing.T) {
	t.Parallel()
	const tasks = 260 // more than a worker's calls to a provider at once
	w := setup(t)
	var (
		mu   sync.Mutex
		late = map[string]time.Duration{}
	)
	w.Sync.OnSubmit = func(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
		t, err := w.Store.TaskByID(context.WithoutCancel(ctx), job.TaskID)
		if since := time.Since(t.DeadlineAt); err != nil || since > 0 {
			mu.Lock()
			late[job.TaskID] = since
			mu.Unlock()
		}
		<-ctx.Done()
		return mediagate.Submission{}, mediagate.Errorf(mediagate.KindAmbiguous, "cut off")
	}
	// The worker starts before the tasks: on a busy machine, starting them all takes longer than one
	// deadline.
	w.startWorker(nil, "sync")
	ids, deadline := make([]string, tasks), time.Now().Add(15*time.Second)
	for i := range ids {
		ids[i] = fmt.Sprintf("task_%03d", i)
		w.startTask(w.NewImage(), ids[i], max(time.Until(deadline), time.Second))
	}
	for _, id := range ids {
		w.expectEnd(id, mediagate.StatusFailed, "")
	}
	if len(late) > 0 {
		t.Errorf("calls that were made after their deadline: %v", late)
	}
	if got := len(w.Sync.Submits()); got == 0 {
		t.Error("no call was made: the test shows nothing")
	}
	for _, id := range ids {
		if f := w.task(id).Failure; f.Code != mediagate.CodeGenerationTimeout {
			t.Errorf("%s failed with %+v", id, f)
		}
	}
}
