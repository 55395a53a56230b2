package durable_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"

	"github.com/mediagate/mediagate"
)

// scheduled waits until the task's run has a call waiting in a queue.
func (w *world) scheduled(id string) {
	w.t.Helper()
	w.awaits(id+" is to be submitted", func() bool {
		d, err := w.temporal.DescribeWorkflowExecution(w.t.Context(), id, "")
		if err != nil {
			w.t.Fatal(err)
		}
		for _, p := range d.GetPendingActivities() {
			if p.GetActivityType().GetName() == "SubmitJob" && p.GetState() == enums.PENDING_ACTIVITY_STATE_SCHEDULED {
				return true
			}
		}
		return false
	})
}

// D3: on a queue that nobody serves, after a rollback or a provider's removal,
// the deadline, an operator and the client are heard all the same.
func TestD3QueueThatNobodyServes(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.serves(nil)
	late := w.begin(w.NewVideo(), "task_late", 4*time.Second)
	for _, id := range []string{"task_ordered", "task_by_hand", "task_cancelled", "task_woken"} {
		w.begin(w.NewVideo(), id, time.Hour)
		w.scheduled(id)
	}
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	command, err := w.Store.RecordAction(ctx, mediagate.Action{TaskID: "task_ordered", Action: mediagate.ActionFail})
	must(err)
	must(w.engine.SignalAction(ctx, command))
	must(w.temporal.SignalWorkflow(ctx, "task_by_hand", "", mediagate.ActionFail, nil))
	for _, id := range []string{"task_cancelled", "task_woken"} {
		_, err := w.Store.RequestCancel(ctx, "acc_1", id)
		must(err)
	}
	must(w.engine.SignalCancel(ctx, "task_cancelled"))
	must(w.engine.SignalWake(ctx, "task_woken")) // the reconciler's

	w.ended("task_ordered", mediagate.StatusFailed, mediagate.CodeInternal)
	w.ended("task_by_hand", mediagate.StatusFailed, mediagate.CodeInternal)
	w.ended("task_cancelled", mediagate.StatusCancelled, "")
	w.ended("task_woken", mediagate.StatusCancelled, "")
	w.ended(late.ID, mediagate.StatusFailed, mediagate.CodeGenerationTimeout)
	if got := w.Store.Settlements(late.ID)[0].EndedAt; got.Before(late.DeadlineAt) {
		t.Errorf("given up %v before the deadline", late.DeadlineAt.Sub(got))
	}
	if got := w.Async.Submits(); len(got) != 0 {
		t.Errorf("%d jobs submitted", len(got))
	}
}

// D3: a submit that lies behind a full queue until its deadline is not sent,
// and a synchronous call that hangs ends by then.
func TestD3FullQueue(t *testing.T) {
	t.Parallel()
	const tasks = 260 // more than a worker's calls to a provider at once
	w := setup(t)
	var (
		mu   sync.Mutex
		late = map[string]time.Duration{}
	)
	w.Sync.OnSubmit = func(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
		task, err := w.Store.TaskByID(context.WithoutCancel(ctx), job.TaskID)
		if since := time.Since(task.DeadlineAt); err != nil || since > 0 {
			mu.Lock()
			late[job.TaskID] = since
			mu.Unlock()
		}
		<-ctx.Done()
		return mediagate.Submission{}, mediagate.Errorf(mediagate.KindAmbiguous, "cut off")
	}
	w.serves(nil, "sync") // before the first begins: on a busy machine all of them take longer than one has
	ids, deadline := make([]string, tasks), time.Now().Add(15*time.Second)
	for i := range ids {
		ids[i] = fmt.Sprintf("task_%03d", i)
		w.begin(w.NewImage(), ids[i], max(time.Until(deadline), time.Second))
	}
	for _, id := range ids {
		w.ended(id, mediagate.StatusFailed, "")
	}
	if len(late) > 0 {
		t.Errorf("calls that were made after their deadline: %v", late)
	}
	if got := len(w.Sync.Submits()); got == 0 {
		t.Error("no call was made: the test shows nothing")
	}
	for _, id := range ids {
		if f := w.Store.Settlements(id)[0].Failure; f.Code != mediagate.CodeGenerationTimeout {
			t.Errorf("%s failed with %+v", id, f)
		}
	}
}
