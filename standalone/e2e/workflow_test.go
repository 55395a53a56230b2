package e2e_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/mediagate/mediagate/failpoint"
)

// What somebody with the Temporal UI can do to a run.
const (
	terminated = "terminated"
	cancelled  = "cancelled"
	reset      = "reset"
)

// meddle does it.
func (w *world) meddle(c client.Client, workflowID, how string) {
	w.t.Helper()
	var err error
	switch how {
	case terminated:
		err = c.TerminateWorkflow(w.t.Context(), workflowID, "", "by a test")
	case cancelled:
		err = c.CancelWorkflow(w.t.Context(), workflowID, "")
	case reset:
		_, err = c.ResetWorkflowExecution(w.t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
			Namespace:                 w.namespace,
			WorkflowExecution:         &commonpb.WorkflowExecution{WorkflowId: workflowID},
			Reason:                    "by a test",
			WorkflowTaskFinishEventId: w.firstDecision(c, workflowID),
			RequestId:                 randomText(20),
		})
	}
	if err != nil {
		w.t.Fatalf("%s is not %s: %v", workflowID, how, err)
	}
}

// firstDecision is the earliest event that a run can be reset to.
func (w *world) firstDecision(c client.Client, workflowID string) int64 {
	w.t.Helper()
	history := c.GetWorkflowHistory(w.t.Context(), workflowID, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		event, err := history.Next()
		if err != nil {
			w.t.Fatal(err)
		}
		if event.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			return event.GetEventId()
		}
	}
	w.t.Fatalf("%s has decided nothing yet", workflowID)
	return 0
}

// stepLease is how long a run may take to ask again that was given an activity (D2).
const stepLease = 10 * time.Minute

// How a task ends whose run was meddled with before the end was stored.
func meddledEnd(how string) string {
	if how == cancelled {
		return "cancelled"
	}
	return "completed"
}

// Each run is meddled with while the vendor works: the one that is worth most,
// and takes its time until its wake is due.
func TestWorkflowMeddledWhileAwaiting(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{shape: production})
	c := w.dial()
	t.Cleanup(c.Close)
	for _, how := range []string{terminated, cancelled, reset} {
		task := w.submit(job{model: alpha, directive: "duration=20s"})
		task.want = meddledEnd(how)
		w.awaitProcessing(task)
		w.meddle(c, task.id, how)
	}
	w.verify(recoverTime)
}

// The run is meddled with before anything was sent: after the worker died with
// its intent stored, and for a cancel and a termination also before that.
func verifyMeddledWhilePending(t *testing.T, how string) {
	t.Helper()
	w := newWorld(t, options{shape: production, failpoint: failpoint.IntentStored})
	c := w.dial()
	t.Cleanup(c.Close)
	task := w.submit(job{model: alpha})
	w.victim().awaitKilled(t, crashLimit)
	w.meddle(c, task.id, how)
	task.want = meddledEnd(how)
	if how == cancelled {
		task.minJobs, task.maxJobs = 0, 0
	}
	if how != reset { // a run that has not begun cannot be reset
		early := w.submit(job{model: alpha})
		w.awaitRun(c, early.id)
		w.meddle(c, early.id, how)
		if early.want = meddledEnd(how); how == cancelled {
			early.minJobs, early.maxJobs = 0, 0
		}
	}
	w.victim().start(t)
	limit := recoverTime
	if how == terminated { // neither sender nor run is left: the lease of the step ends first
		limit += stepLease
	}
	w.verify(limit)
}

// awaitRun waits until Temporal has a run.
func (w *world) awaitRun(c client.Client, workflowID string) {
	w.t.Helper()
	eventually(w.t, 30*time.Second, workflowID+" runs", func() error {
		_, err := c.DescribeWorkflowExecution(w.t.Context(), workflowID, "")
		return err
	})
}

// The run is meddled with while the file is being copied, which hangs.
func verifyMeddledWhileMirroring(t *testing.T, how string) {
	t.Helper()
	w := newWorld(t, options{shape: production})
	c := w.dial()
	t.Cleanup(c.Close)
	task := w.submit(job{model: alpha, directive: "fail=timeout, at=download, times=1, result_bytes=12000000"})
	task.want = meddledEnd(how)
	w.awaitDownload(task)
	w.meddle(c, task.id, how)
	w.verify(recoverTime)
}

// The delivery round is meddled with while it waits for its next attempt. The
// task has ended, so that nothing but the delivery can change.
func verifyMeddledWhileDelivering(t *testing.T, how string) {
	t.Helper()
	w := newWorld(t, options{shape: production})
	c := w.dial()
	t.Cleanup(c.Close)
	task := w.submit(job{model: alpha})
	w.hooks.fail(task.id, 1)
	eventually(t, 60*time.Second, "the first delivery comes", func() error {
		if w.hooks.count(task.id) == 0 {
			return errors.New("none yet")
		}
		return nil
	})
	w.meddle(c, "webhook/"+task.id+"/1", how)
	if how == reset { // the task's own run, too, though it has ended
		w.meddle(c, task.id, reset)
	}
	w.verify(recoverTime)
	if n := w.hooks.count(task.id); n < 2 {
		t.Errorf("%d deliveries came, want another one after the failed first", n)
	}
}

// meddlings are the scenarios of every step and way.
func meddlings() map[string]func(*testing.T) {
	all := map[string]func(*testing.T){}
	for step, run := range map[string]func(*testing.T, string){
		"pending": verifyMeddledWhilePending, "mirroring": verifyMeddledWhileMirroring, "delivering": verifyMeddledWhileDelivering,
	} {
		for _, how := range []string{terminated, cancelled, reset} {
			all[fmt.Sprintf("run %s while %s", how, step)] = func(t *testing.T) { t.Helper(); run(t, how) }
		}
	}
	return all
}
