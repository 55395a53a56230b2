package workflows

import (
	"context"
	"slices"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/task"
)

// memoryPage is how many events are read from the end of a history. Each step of a run leaves five
// events, so one page holds the last step's whole memory with room to spare.
const memoryPage = 100

// readSeen returns what the described run has seen of its task. For a completed run that is its
// result. For any other run readSeen computes it from the last events, as the run itself did. If a
// sender was in its call when the run was terminated, its heartbeat knows more than the history,
// and counts as well.
//
// For example, a run learns from an answer that attempt 2 was sent. It is then terminated, and the
// database fails over to a replica that knows attempt 1 only. The next run begins with attempt 2 in
// its memory, and its first question puts that attempt back (D5).
func (c Client) readSeen(ctx context.Context, desc *description) (task.Seen, error) {
	// The task had no run yet.
	execution := desc.GetWorkflowExecutionInfo().GetExecution()
	if execution.GetRunId() == "" {
		return task.Seen{}, nil
	}
	page := &workflowservice.GetWorkflowExecutionHistoryReverseRequest{
		Namespace: c.Namespace, Execution: execution, MaximumPageSize: memoryPage,
	}
	history, err := c.Temporal.WorkflowService().GetWorkflowExecutionHistoryReverse(ctx, page)
	if err != nil {
		return task.Seen{}, err
	}
	events := history.GetHistory().GetEvents()
	// The page lists the newest event first. Take the memory from the newest event that holds all
	// of it, and apply the events after that one.
	begin := slices.IndexFunc(events, hasWholeMemory)
	// Without such an event on the page, its events are all that is known.
	if begin < 0 {
		begin = len(events) - 1
	}
	var seen task.Seen
	for _, event := range slices.Backward(events[:begin+1]) {
		seen = seenAfter(event, seen)
	}
	for _, step := range desc.GetPendingActivities() {
		seen = seen.With(decode[task.Seen](step.GetHeartbeatDetails()))
	}
	return seen, nil
}

// hasWholeMemory reports whether the event holds all that the run remembered at that time. The
// start holds it in the run's input, the end in the result, and each scheduled activity in its
// arguments.
func hasWholeMemory(event *historypb.HistoryEvent) bool {
	switch event.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED,
		enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		return true
	default:
		return false
	}
}

// seenAfter returns the run's memory after the event, computed as the run itself does: a change of
// waitForAnswer or takeStep in generate.go needs the same change here. Events that carry no memory,
// such as timers, change nothing.
func seenAfter(event *historypb.HistoryEvent, seen task.Seen) task.Seen {
	switch event.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
		return decode[task.Seen](event.GetWorkflowExecutionCompletedEventAttributes().GetResult())
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
		return decode[Input](event.GetWorkflowExecutionStartedEventAttributes().GetInput()).Seen
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		return decode[activities.StepArgs](event.GetActivityTaskScheduledEventAttributes().GetInput()).Seen
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
		return seen.Updated(decode[activities.Answer](event.GetActivityTaskCompletedEventAttributes().GetResult()).Seen)
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
		return seen.With(decode[task.Seen](heartbeatOf(event.GetActivityTaskTimedOutEventAttributes().GetFailure())))
	case enumspb.EVENT_TYPE_MARKER_RECORDED: // a question; if it failed, there is no answer in it
		result := event.GetMarkerRecordedEventAttributes().GetDetails()["result"]
		return seen.Updated(decode[activities.Answer](result).Seen)
	default:
		return seen
	}
}

// heartbeatOf returns the last heartbeat of an activity that timed out.
func heartbeatOf(failure *failurepb.Failure) *commonpb.Payloads {
	for ; failure != nil; failure = failure.GetCause() {
		if details := failure.GetTimeoutFailureInfo().GetLastHeartbeatDetails(); details != nil {
			return details
		}
	}
	return nil
}

// decode reads the first payload. It returns the zero value for a payload that it cannot read,
// such as the details of another activity.
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
