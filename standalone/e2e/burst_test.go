package e2e_test

import (
	"syscall"
	"testing"
)

// TestKillWhileStartsWait checks that submits are acknowledged while Temporal hangs, and that a
// kill -9 of the process in which their starts wait loses no task.
func TestKillWhileStartsWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{shape: production, ownTemporal: true})
	w.temporal.signal(syscall.SIGSTOP)
	w.temporal.awaitStopped(t, readyLimit)
	cancelled := w.submitMany(30, job{model: alpha, noHook: true})[29]
	w.cancel(cancelled)
	cancelled.wantStatus, cancelled.minJobs, cancelled.maxJobs = "cancelled", 0, 0
	w.apis[0].kill()
	w.temporal.signal(syscall.SIGCONT)
	w.apis[0].start(t)
	w.verify(recoverTime)
}

// TestStopWhileStartsWait checks that an API that stops during a burst starts the workflow of
// each acknowledged task. There is no worker whose wake scan could start them. The tasks are
// few, because a start that waits for five seconds is left to that scan, and no other test runs
// at the same time.
func TestStopWhileStartsWait(t *testing.T) {
	w := newWorld(t, options{shape: production, workersOff: true})
	c := w.dial()
	t.Cleanup(c.Close)
	tasks := w.submitMany(20, job{model: theta, noHook: true})
	code, took := w.apis[0].terminate(t, 2*stopLimit)
	if code != 0 || took > stopLimit {
		t.Errorf("the API exits with %d after %s, want 0 within %s", code, took, stopLimit)
	}
	for _, task := range tasks {
		if _, err := c.DescribeWorkflowExecution(t.Context(), task.id, ""); err != nil {
			t.Errorf("%s was acknowledged and not started: %v", task.id, err)
		}
	}
	w.apis[0].start(t)
	w.workers[0].start(t)
	w.verify(recoverTime)
}
