package replay

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"

	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/task"
)

// line is one step of a run.
type line struct {
	At     time.Time `json:"at"`
	Event  int64     `json:"event"`
	What   string    `json:"what"`
	Detail string    `json:"detail,omitempty"`
}

// story lists a run's decisions and the events that it received. It leaves out Temporal's internal
// events.
func story(events []*historypb.HistoryEvent) []line {
	t := describer{activity: map[int64]string{}, tries: map[int64]string{}}
	var lines []line
	for _, e := range events {
		if what, detail := t.describe(e); what != "" {
			lines = append(lines, line{e.GetEventTime().AsTime(), e.GetEventId(), what, detail})
		}
	}
	return lines
}

// describer describes events. It records the names and tries of activities by the event that
// scheduled them.
type describer struct {
	activity, tries map[int64]string
}

func (t *describer) describe(e *historypb.HistoryEvent) (what, detail string) {
	summary := text(e.GetUserMetadata().GetSummary())
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
		a := e.GetWorkflowExecutionStartedEventAttributes()
		detail = input(a.GetInput())
		if before := a.GetContinuedExecutionRunId(); before != "" {
			detail += ", continues run " + before
		}
		return "started", detail
	case enumspb.EVENT_TYPE_WORKFLOW_TASK_FAILED:
		a := e.GetWorkflowTaskFailedEventAttributes()
		return "workflow task failed", a.GetCause().String() + ": " + a.GetFailure().GetMessage()
	case enumspb.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT:
		return "workflow task timed out", e.GetWorkflowTaskTimedOutEventAttributes().GetTimeoutType().String()
	case enumspb.EVENT_TYPE_MARKER_RECORDED:
		return local(e.GetMarkerRecordedEventAttributes())
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		name := e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName()
		t.activity[e.GetEventId()] = name
		return "begin " + name, summary
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED:
		if a := e.GetActivityTaskStartedEventAttributes(); a.GetAttempt() > 1 {
			t.tries[a.GetScheduledEventId()] = fmt.Sprintf(" (try %d, after: %s)", a.GetAttempt(), reason(a.GetLastFailure()))
		}
		return "", ""
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
		a := e.GetActivityTaskCompletedEventAttributes()
		return t.ended(a.GetScheduledEventId(), "ended", result(a.GetResult()))
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_FAILED:
		a := e.GetActivityTaskFailedEventAttributes()
		return t.ended(a.GetScheduledEventId(), "failed", reason(a.GetFailure()))
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
		a := e.GetActivityTaskTimedOutEventAttributes()
		return t.ended(a.GetScheduledEventId(), "timed out", reason(a.GetFailure()))
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED:
		return t.ended(e.GetActivityTaskCancelRequestedEventAttributes().GetScheduledEventId(), "is to stop", "")
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_CANCELED:
		return t.ended(e.GetActivityTaskCanceledEventAttributes().GetScheduledEventId(), "stopped", "")
	case enumspb.EVENT_TYPE_TIMER_STARTED:
		return "sleep", cmp.Or(summary, e.GetTimerStartedEventAttributes().GetStartToFireTimeout().AsDuration().String())
	case enumspb.EVENT_TYPE_TIMER_FIRED:
		return "sleep is over", ""
	case enumspb.EVENT_TYPE_TIMER_CANCELED:
		return "sleep is cut short", ""
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
		a := e.GetWorkflowExecutionSignaledEventAttributes()
		return "signal " + a.GetSignalName(), text(a.GetInput().GetPayloads()...)
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED:
		return "cancel of the run", e.GetWorkflowExecutionCancelRequestedEventAttributes().GetCause()
	case enumspb.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED:
		return "start child", e.GetStartChildWorkflowExecutionInitiatedEventAttributes().GetWorkflowId()
	case enumspb.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED:
		return "child not started", e.GetStartChildWorkflowExecutionFailedEventAttributes().GetCause().String()
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
		return "completed", ""
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
		return "failed", reason(e.GetWorkflowExecutionFailedEventAttributes().GetFailure())
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:
		return "terminated", e.GetWorkflowExecutionTerminatedEventAttributes().GetReason()
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
		return "cancelled", ""
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
		return "continued", "by run " + e.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
	default:
		return "", ""
	}
}

func (t *describer) ended(scheduled int64, how, detail string) (string, string) {
	return t.activity[scheduled] + " " + how, detail + t.tries[scheduled]
}

// local describes a local activity. For Ask, the run's question, it describes the answer.
func local(m *historypb.MarkerRecordedEventAttributes) (what, detail string) {
	if m.GetMarkerName() != "LocalActivity" {
		return "", ""
	}
	var about struct{ ActivityType string }
	if json.Unmarshal([]byte(text(m.GetDetails()["data"].GetPayloads()...)), &about) != nil {
		return "", ""
	}
	what = "call " + about.ActivityType
	if about.ActivityType == "Ask" {
		what = "ask"
	}
	if m.GetFailure() != nil {
		return what + " failed", reason(m.GetFailure())
	}
	return what, result(m.GetDetails()["result"])
}

// input describes the input of a run. It describes a first step in the input like an answer to the
// run's question.
func input(p *commonpb.Payloads) string {
	written := text(p.GetPayloads()...)
	var in struct {
		Task  string
		First json.RawMessage
	}
	if json.Unmarshal([]byte(written), &in) != nil || in.First == nil {
		return written
	}
	return in.Task + "; " + answer(string(in.First))
}

// result describes the result of an activity.
func result(p *commonpb.Payloads) string { return answer(text(p.GetPayloads()...)) }

// answer describes a text. For the answer to a run's question it returns the next step and its
// reason, for other texts the text itself.
func answer(written string) string {
	var a activities.Answer
	if json.Unmarshal([]byte(written), &a) != nil || a.Step.Kind == "" && !a.Missing {
		return written
	}
	var parts []string
	switch step := a.Step; {
	case a.Missing:
		return "the database has no such task"
	case step.Kind == task.Sleep:
		parts = append(parts, fmt.Sprintf("next: sleep until %s (%s)", step.Until.UTC().Format(time.RFC3339), step.Why))
	case step.Kind == task.Done:
		parts = append(parts, "next: done, "+string(a.Status))
	case step.Provider != "":
		parts = append(parts, fmt.Sprintf("next: %s of attempt %d, by %s", step.Kind, step.N, step.Provider))
	case step.N > 0:
		parts = append(parts, fmt.Sprintf("next: %s of attempt %d", step.Kind, step.N))
	default:
		parts = append(parts, "next: "+string(step.Kind))
	}
	add := func(applies bool, part string) {
		if applies {
			parts = append(parts, part)
		}
	}
	add(a.Stop, "stop the step under way")
	add(a.Behind != "", "waits behind the calls of "+a.Behind)
	add(a.N > 0, fmt.Sprintf("attempt %d on %s: %s", a.N, a.Channel, a.State))
	add(len(a.QueuedFor) > 0, "queued for "+strings.Join(a.QueuedFor, ", "))
	add(a.ParkReason != "", "parked: "+string(a.ParkReason))
	add(a.Cancelled, "cancel requested")
	add(a.Failure != "", "failure: "+string(a.Failure))
	return strings.Join(parts, "; ")
}

// reason describes a failure. For a failed activity it describes the cause.
func reason(f *failurepb.Failure) string {
	var parts []string
	for ; f != nil; f = f.GetCause() {
		if kind := f.GetApplicationFailureInfo().GetType(); kind != "" {
			parts = append(parts, kind+": "+f.GetMessage())
		} else {
			parts = append(parts, f.GetMessage())
		}
	}
	return strings.Join(parts, ": ")
}

// text returns the JSON of payloads, a string without its quotes.
func text(payloads ...*commonpb.Payload) string {
	var parts []string
	for _, p := range payloads {
		data := string(p.GetData())
		var s string
		if json.Unmarshal(p.GetData(), &s) == nil {
			data = s
		}
		if data != "" && data != "null" {
			parts = append(parts, data)
		}
	}
	return strings.Join(parts, ", ")
}
