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
	// beatsWithin is how old the last heartbeat of an activity at work may be.
	beatsWithin = time.Minute
	// brokenAttempts is from when on the failures of a workflow task are no bad luck: the
	// fifth attempt comes half a minute after the first.
	brokenAttempts = 5
)

// description is a workflow's newest run as Temporal has it; nil where there is none.
type description = workflowservice.DescribeWorkflowExecutionResponse

func (c Client) describe(ctx context.Context, id string) (*description, error) {
	desc, err := c.Temporal.DescribeWorkflowExecution(ctx, id, "")
	if _, ok := errors.AsType[*serviceerror.NotFound](err); ok {
		return nil, nil
	}
	return desc, err
}

func running(desc *description) bool {
	return desc.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
}

func completed(desc *description) bool {
	return desc.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
}

// stateOf is what Temporal says of the run.
func stateOf(desc *description, now time.Time) activities.RunState {
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
	case pending != nil || beats(desc, now):
		return activities.RunBusy
	default:
		return activities.RunIdle
	}
}

// busy reports that the run is to be left alone.
func busy(desc *description) bool {
	now := time.Now()
	return stateOf(desc, now) == activities.RunBusy || running(desc) && beats(desc, now)
}

// beats reports that an activity of the run has just given a sign of life.
func beats(desc *description, now time.Time) bool {
	for _, step := range desc.GetPendingActivities() {
		if beat := step.GetLastHeartbeatTime(); beat != nil && now.Sub(beat.AsTime()) < beatsWithin {
			return true
		}
	}
	return false
}

// waitsForPermit reports that the run's delivery got no permit when it was last tried.
// Temporal tries it again.
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

// terminate ends that run. One that has ended by itself is as good.
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
