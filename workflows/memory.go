package workflows

import (
	"context"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/task"
)

// memoryPage is how many events of a history are read, from its end. The steps of a run
// leave five events each.
const memoryPage = 100

// remembered is what the described run has seen of its task: its result, or else what its
// last steps say. A sender that was in its call when the run was terminated has reported
// more than the history has.
func (c Client) remembered(ctx context.Context, desc *description) (task.Seen, error) {
	execution := desc.GetWorkflowExecutionInfo().GetExecution()
	if execution.GetRunId() == "" {
		return task.Seen{}, nil
	}
	history, err := c.Temporal.WorkflowService().GetWorkflowExecutionHistoryReverse(ctx, &workflowservice.GetWorkflowExecutionHistoryReverseRequest{
		Namespace: c.Namespace, Execution: execution, MaximumPageSize: memoryPage,
	})
	if err != nil {
		return task.Seen{}, err
	}
	var seen task.Seen
	for _, event := range history.GetHistory().GetEvents() {
		found, last := seenIn(event)
		if seen = found.With(seen); last {
			break
		}
	}
	for _, step := range desc.GetPendingActivities() {
		seen = seen.With(decode[task.Seen](step.GetHeartbeatDetails()))
	}
	return seen, nil
}

// seenIn is what an event tells of the run's memory. last says that it tells all: the events
// before it tell no more.
func seenIn(event *historypb.HistoryEvent) (seen task.Seen, last bool) {
	switch event.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
		return decode[task.Seen](event.GetWorkflowExecutionCompletedEventAttributes().GetResult()), true
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
		return decode[Input](event.GetWorkflowExecutionStartedEventAttributes().GetInput()).Seen, true
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		return decode[activities.StepArgs](event.GetActivityTaskScheduledEventAttributes().GetInput()).Seen, true
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
		return decode[activities.Answer](event.GetActivityTaskCompletedEventAttributes().GetResult()).Seen, true
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
		return decode[task.Seen](heartbeatOf(event.GetActivityTaskTimedOutEventAttributes().GetFailure())), false
	case enumspb.EVENT_TYPE_MARKER_RECORDED: // of a question
		return decode[activities.Answer](event.GetMarkerRecordedEventAttributes().GetDetails()["result"]).Seen, true
	default:
		return task.Seen{}, false
	}
}

// heartbeatOf finds the last heartbeat of an activity that timed out.
func heartbeatOf(failure *failurepb.Failure) *commonpb.Payloads {
	for ; failure != nil; failure = failure.GetCause() {
		if details := failure.GetTimeoutFailureInfo().GetLastHeartbeatDetails(); details != nil {
			return details
		}
	}
	return nil
}

// decode reads the first payload. It is the zero value of what cannot be read, such as the
// details of other activities.
func decode[T any](payloads *commonpb.Payloads) (value T) {
	if len(payloads.GetPayloads()) == 0 {
		return value
	}
	if err := converter.GetDefaultDataConverter().FromPayloads(payloads, &value); err != nil {
		var none T
		return none
	}
	return value
}
