package workflows

import (
	"context"
	"errors"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/mediagate/mediagate/activities"
)

const (
	// beatsWithin is the greatest age of the last heartbeat of an activity that counts as busy.
	beatsWithin = time.Minute
	// brokenAttempts is the attempt of a workflow task from which on its failures count as
	// permanent. The fifth attempt comes half a minute after the first.
	brokenAttempts = 5
)

// description is Temporal's description of a workflow's newest run, or nil if there is none. The
// getters of a nil description return zero values, so the functions of this file need no check for
// nil.
type description = workflowservice.DescribeWorkflowExecutionResponse

// describe asks Temporal for a workflow's newest run. A workflow that does not exist is no error.
func (c Client) describe(ctx context.Context, id string) (*description, error) {
	desc, err := c.Temporal.DescribeWorkflowExecution(ctx, id, "")
	if _, ok := errors.AsType[*serviceerror.NotFound](err); ok {
		return nil, nil
	}
	return desc, err
}

// running reports whether the run is under way.
func running(desc *description) bool {
	return desc.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
}

// completed reports whether the run has ended without an error.
func completed(desc *description) bool {
	return desc.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
}

// stateOf returns the state of the run in Temporal. The order of the cases matters. For example, a
// run whose workflow tasks fail counts as failing even while one of its activities sends
// heartbeats.
func stateOf(desc *description) activities.RunState {
	// A pending workflow task at its first attempt waits for a worker. From the second attempt on
	// it has failed.
	pending := desc.GetPendingWorkflowTask()
	switch attempt := pending.GetAttempt(); {
	case completed(desc):
		return activities.RunCompleted
	case !running(desc):
		return activities.RunNone
	case attempt >= brokenAttempts:
		return activities.RunBroken
	case attempt > 1:
		return activities.RunFailing
	// A run whose workflow task waits for a worker counts as busy: a new run would have to wait
	// for a worker as well.
	case pending != nil || beats(desc):
		return activities.RunBusy
	default:
		return activities.RunIdle
	}
}

// busy reports whether the run works, so that it must not be replaced. An activity that sends
// heartbeats counts even while the run's workflow tasks fail: its call may be under way.
func busy(desc *description) bool {
	return stateOf(desc) == activities.RunBusy || running(desc) && beats(desc)
}

// beats reports whether an activity of the run has just sent a heartbeat.
func beats(desc *description) bool {
	for _, step := range desc.GetPendingActivities() {
		if beat := step.GetLastHeartbeatTime(); beat != nil && time.Since(beat.AsTime()) < beatsWithin {
			return true
		}
	}
	return false
}

// waitsForPermit reports whether the run's delivery got no permit at its last try. Temporal tries
// it again. Between two tries the activity sends no heartbeats, so busy may be false for such a
// run.
func waitsForPermit(desc *description) bool {
	if desc.GetPendingWorkflowTask() != nil {
		return false
	}
	for _, step := range desc.GetPendingActivities() {
		if last := step.GetLastFailure(); last != nil &&
			activities.WaitsForPermit(temporal.GetDefaultFailureConverter().FailureToError(last)) {
			return true
		}
	}
	return false
}

// terminate ends the described run, and no newer one. If the run has ended by itself, that is not
// an error. For example, two workers may both find a run blocked. The second termination names the
// old run, so it does not hit the run that the first worker has started by then.
func (c Client) terminate(ctx context.Context, desc *description, reason string) error {
	if !running(desc) {
		return nil
	}
	run := desc.GetWorkflowExecutionInfo().GetExecution()
	err := c.Temporal.TerminateWorkflow(ctx, run.GetWorkflowId(), run.GetRunId(), reason)
	if _, ok := errors.AsType[*serviceerror.NotFound](err); ok {
		return nil
	}
	return err
}
