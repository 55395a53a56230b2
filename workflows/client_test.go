package workflows_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/internal/tracing"
	"github.com/mediagate/mediagate/task"
	"github.com/mediagate/mediagate/workflows"
)

// service is Temporal as far as the client calls it. It answers with its fields, and notes the
// calls.
type service struct {
	client.Client
	signalled, started error
	run                *workflowservice.DescribeWorkflowExecutionResponse // nil if there is no run

	history []*historypb.HistoryEvent // of the run, newest event first

	calls   []string
	trace   string // the trace in which the last run was started
	options client.StartWorkflowOptions
	seen    task.Seen // the memory that the started run begins with
	first   *activities.Answer
}

// historyReader reads the history of the service's run.
type historyReader struct {
	workflowservice.WorkflowServiceClient
	of *service
}

func (s *service) WorkflowService() workflowservice.WorkflowServiceClient {
	return historyReader{of: s}
}

func (s historyReader) GetWorkflowExecutionHistoryReverse(
	context.Context, *workflowservice.GetWorkflowExecutionHistoryReverseRequest, ...grpc.CallOption,
) (*workflowservice.GetWorkflowExecutionHistoryReverseResponse, error) {
	return &workflowservice.GetWorkflowExecutionHistoryReverseResponse{
		History: &historypb.History{Events: s.of.history},
	}, nil
}

func (s *service) SignalWorkflow(_ context.Context, id, _, name string, _ any) error {
	s.calls = append(s.calls, "signal "+id+" "+name)
	return s.signalled
}

func (s *service) ExecuteWorkflow(
	ctx context.Context, o client.StartWorkflowOptions, _ any, args ...any,
) (client.WorkflowRun, error) {
	s.calls, s.options, s.trace = append(s.calls, "start "+o.ID), o, tracing.Parent(ctx)
	for _, arg := range args {
		if in, ok := arg.(workflows.Input); ok {
			s.seen, s.first = in.Seen, in.First
		}
	}
	if s.run != nil && o.WorkflowIDReusePolicy == enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE {
		return nil, serviceerror.NewWorkflowExecutionAlreadyStarted("", "", "")
	}
	return nil, s.started
}

func (s *service) DescribeWorkflowExecution(
	context.Context, string, string,
) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	if s.run == nil {
		return nil, serviceerror.NewNotFound("no such run")
	}
	return s.run, nil
}

func (s *service) TerminateWorkflow(_ context.Context, id, run, _ string, _ ...any) error {
	s.calls = append(s.calls, "terminate "+id+" "+run)
	return nil
}

// TestWake checks the errors of a signal. Only one is about the run itself: the run has had as
// many signals as it may.
func TestWake(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err                   error
		runs, fails, conflict bool
	}{
		"taken":  {nil, true, false, false},
		"no run": {serviceerror.NewNotFound("workflow execution already completed"), false, false, false},
		"too many": {
			serviceerror.NewInvalidArgument("exceeded workflow execution limit for signal events"), true, true, true,
		},
		"away":      {serviceerror.NewUnavailable("connection refused"), false, true, false},
		"throttled": {serviceerror.NewResourceExhausted(0, "rate limit exceeded"), false, true, false},
	} {
		runs, err := workflows.Client{Temporal: &service{signalled: test.err}}.Wake(t.Context(), "task_1")
		if runs != test.runs || (err != nil) != test.fails || mediagate.Is(err, mediagate.KindConflict) != test.conflict {
			t.Errorf("%s: %v, %v; want %+v", name, runs, err, test)
		}
	}
}

// TestD1Start checks that the server says whether a run was started before (D1). After a run that
// failed another is started, which begins with what that one had seen, and asks (D5). Only the
// first run of a task begins with a step.
func TestD1Start(t *testing.T) {
	t.Parallel()
	ended := func(status enumspb.WorkflowExecutionStatus) *workflowservice.DescribeWorkflowExecutionResponse {
		desc := described(0, 0)
		desc.WorkflowExecutionInfo.Status = status
		return desc
	}
	submitted := mediagate.Task{ID: "task_1", Plan: mediagate.Plan{Routes: []mediagate.Route{{Provider: "kling"}}}}
	for name, test := range map[string]struct {
		run             *workflowservice.DescribeWorkflowExecutionResponse
		err             error
		fails, conflict bool
		starts          int
		seen            int
	}{
		"started":            {nil, nil, false, false, 1, 0},
		"away":               {nil, serviceerror.NewUnavailable("connection refused"), true, false, 1, 0},
		"one is under way":   {described(0, 0), nil, true, true, 1, 0},
		"one has completed":  {ended(enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED), nil, true, true, 1, 0},
		"one was terminated": {ended(enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED), nil, false, false, 2, 3},
		"another was quicker": {
			ended(enumspb.WORKFLOW_EXECUTION_STATUS_FAILED), serviceerror.NewWorkflowExecutionAlreadyStarted("", "", ""), true,
			true, 2, 3,
		},
	} {
		temporal := &service{started: test.err, run: test.run, history: []*historypb.HistoryEvent{scheduled(t, 3)}}
		err := workflows.Client{Temporal: temporal}.Start(t.Context(), submitted)
		if (err != nil) != test.fails || mediagate.Is(err, mediagate.KindConflict) != test.conflict {
			t.Errorf("%s: %v", name, err)
		}
		if first := temporal.first != nil; first != (test.starts == 1) {
			t.Errorf("%s: the last start carries the first step: %v", name, first)
		}
		if len(temporal.calls) != test.starts || temporal.seen.N != test.seen {
			t.Errorf("%s: %v, knowing of attempt %d; want %+v", name, temporal.calls, temporal.seen.N, test)
		}
	}
}

func payloads(t *testing.T, value any) *commonpb.Payloads {
	t.Helper()
	encoded, err := converter.GetDefaultDataConverter().ToPayloads(value)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

func knows(n int, job string) task.Seen {
	return task.Seen{Sending: task.Sending{N: n, Channel: "a"}, Ref: mediagate.JobRef{JobID: job}}
}

// scheduled is the start of a step to which the run passed what it had seen: attempt n.
func scheduled(t *testing.T, n int) *historypb.HistoryEvent {
	t.Helper()
	return &historypb.HistoryEvent{
		EventType: enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED,
		Attributes: &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{
			ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{
				Input: payloads(t, activities.StepArgs{TaskID: "task_1", Seen: knows(n, "")}),
			},
		},
	}
}

// TestD5MemoryOfTheRunBefore checks that a run that replaces another begins with what that one
// had seen: its result; or its last steps, and the last heartbeat of a sender that was in its
// call.
func TestD5MemoryOfTheRunBefore(t *testing.T) {
	t.Parallel()
	type events = []*historypb.HistoryEvent
	other := &historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED}
	result := &historypb.HistoryEvent{
		EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED,
		Attributes: &historypb.HistoryEvent_WorkflowExecutionCompletedEventAttributes{
			WorkflowExecutionCompletedEventAttributes: &historypb.WorkflowExecutionCompletedEventAttributes{
				Result: payloads(t, knows(2, "job")),
			},
		},
	}
	completed := func(seen task.Seen) *historypb.HistoryEvent {
		return &historypb.HistoryEvent{
			EventType: enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED,
			Attributes: &historypb.HistoryEvent_ActivityTaskCompletedEventAttributes{
				ActivityTaskCompletedEventAttributes: &historypb.ActivityTaskCompletedEventAttributes{
					Result: payloads(t, activities.Answer{Seen: seen}),
				},
			},
		}
	}
	answer, lesser := completed(knows(2, "job")), completed(knows(1, ""))
	marker := func(m *historypb.MarkerRecordedEventAttributes) *historypb.HistoryEvent {
		m.MarkerName = "LocalActivity"
		return &historypb.HistoryEvent{
			EventType:  enumspb.EVENT_TYPE_MARKER_RECORDED,
			Attributes: &historypb.HistoryEvent_MarkerRecordedEventAttributes{MarkerRecordedEventAttributes: m},
		}
	}
	question := marker(&historypb.MarkerRecordedEventAttributes{
		Details: map[string]*commonpb.Payloads{"result": payloads(t, activities.Answer{Seen: knows(2, "job")})},
	})
	failed := marker(&historypb.MarkerRecordedEventAttributes{Failure: &failurepb.Failure{Message: "away"}})
	started := &historypb.HistoryEvent{
		EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED,
		Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
			WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{
				Input: payloads(t, workflows.Input{TaskID: "task_1", Seen: knows(2, "job")}),
			},
		},
	}
	timedOut := &historypb.HistoryEvent{
		EventType: enumspb.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT,
		Attributes: &historypb.HistoryEvent_ActivityTaskTimedOutEventAttributes{
			ActivityTaskTimedOutEventAttributes: &historypb.ActivityTaskTimedOutEventAttributes{
				Failure: &failurepb.Failure{Cause: &failurepb.Failure{FailureInfo: &failurepb.Failure_TimeoutFailureInfo{
					TimeoutFailureInfo: &failurepb.TimeoutFailureInfo{LastHeartbeatDetails: payloads(t, knows(2, "job"))},
				}}},
			},
		},
	}
	for name, test := range map[string]struct {
		history events
		beat    any // the heartbeat of the step under way; nil if there is none
	}{
		"its result":              {events{result, answer}, nil},
		"its last answer":         {events{other, answer, scheduled(t, 1)}, nil},
		"a question that failed":  {events{failed, answer, scheduled(t, 1)}, nil},
		"an answer that lacks it": {events{lesser, question, scheduled(t, 1)}, nil},
		"its last question":       {events{other, question, scheduled(t, 1)}, nil},
		"what it began with":      {events{other, started}, nil},
		"a sender that was lost":  {events{timedOut, other, scheduled(t, 1)}, nil},
		"a sender in its call":    {events{other, scheduled(t, 1)}, knows(2, "job")},
		"a copy under way":        {events{other, answer}, 7},
	} {
		run := described(0, time.Hour)
		if run.PendingActivities = nil; test.beat != nil {
			run.PendingActivities = []*workflowpb.PendingActivityInfo{{HeartbeatDetails: payloads(t, test.beat)}}
		}
		temporal := &service{run: run, history: test.history}
		if err := (workflows.Client{Temporal: temporal}).Replace(
			t.Context(), mediagate.Task{ID: "task_1"}, "late",
		); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(knows(2, "job"), temporal.seen); diff != "" {
			t.Errorf("%s: the new run knows (-want +got):\n%s", name, diff)
		}
	}
}

// described returns a run whose workflow task is at that attempt, if it has one, and whose
// activity sent its last heartbeat so long ago, if it has one.
func described(attempt int32, beat time.Duration) *workflowservice.DescribeWorkflowExecutionResponse {
	desc := &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
		Status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, Execution: &commonpb.WorkflowExecution{
			WorkflowId: "task_1", RunId: "run_1",
		},
	}}
	if attempt > 0 {
		desc.PendingWorkflowTask = &workflowpb.PendingWorkflowTaskInfo{Attempt: attempt}
	}
	if beat > 0 {
		desc.PendingActivities = []*workflowpb.PendingActivityInfo{
			{LastHeartbeatTime: timestamppb.New(time.Now().Add(-beat))},
		}
	}
	return desc
}

// TestD2DescribeAndReplace checks what the states of runs are, and which runs are terminated for
// another. A run whose activity sends heartbeats never is. The new run has its account's
// priority. The cases are not parallel, since a heartbeat would get older while they wait for
// each other.
func TestD2DescribeAndReplace(t *testing.T) {
	t.Parallel()
	completed := described(0, 0)
	completed.WorkflowExecutionInfo.Status = enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
	replaced := []string{"terminate task_1 run_1", "start task_1"}
	for name, test := range map[string]struct {
		run      *workflowservice.DescribeWorkflowExecutionResponse
		state    activities.RunState
		replaced []string
	}{
		"none":                          {nil, activities.RunNone, []string{"start task_1"}},
		"completed":                     {completed, activities.RunCompleted, []string{"start task_1"}},
		"it sleeps":                     {described(0, 0), activities.RunIdle, replaced},
		"its activity beats":            {described(0, time.Second), activities.RunBusy, nil},
		"its activity beats no more":    {described(0, time.Hour), activities.RunIdle, replaced},
		"it waits for a worker":         {described(1, 0), activities.RunBusy, nil},
		"it has failed":                 {described(2, 0), activities.RunFailing, replaced},
		"it has failed beside one":      {described(2, time.Second), activities.RunFailing, nil},
		"it has failed five times":      {described(5, 0), activities.RunBroken, replaced},
		"it has failed five beside one": {described(5, time.Second), activities.RunBroken, nil},
	} {
		t.Run(name, func(t *testing.T) {
			temporal := &service{run: test.run}
			c := workflows.Client{Temporal: temporal}
			if state, err := c.DescribeRun(t.Context(), "task_1"); state != test.state || err != nil {
				t.Errorf("the run is %s, %v; want %s", state, err, test.state)
			}
			if err := c.Replace(t.Context(), mediagate.Task{ID: "task_1", AccountID: "acc_1"}, "late"); err != nil {
				t.Error(err)
			}
			same(t, "calls", temporal.calls, test.replaced)
			if got := temporal.options.Priority.FairnessKey; test.replaced != nil && got != "acc_1" {
				t.Errorf("the new run waits among those of %q", got)
			}
		})
	}
}

// TestD14ARoundThatWaitsIsNotReplaced checks that a round that waits for its permit is left
// alone: a new run would wait from the beginning.
func TestD14ARoundThatWaitsIsNotReplaced(t *testing.T) {
	t.Parallel()
	waiting := described(0, time.Hour)
	waiting.PendingActivities[0].LastFailure = temporal.GetDefaultFailureConverter().ErrorToFailure(
		temporal.NewApplicationErrorWithOptions(
			"no permit", mediagate.KindUnavailable.String(), temporal.ApplicationErrorOptions{Details: []any{"no_place"}},
		))
	for name, test := range map[string]struct {
		run      *workflowservice.DescribeWorkflowExecutionResponse
		replaced bool
	}{
		"it waits for a permit": {waiting, false},
		"it gets nowhere":       {described(0, time.Hour), true},
		"it delivers":           {described(0, time.Second), false},
	} {
		service := &service{run: test.run}
		replaced, err := workflows.Client{Temporal: service}.ReplaceRound(
			t.Context(), mediagate.WebhookRound{TaskID: "task_1", Round: 1}, "late",
		)
		if replaced != test.replaced || err != nil || (len(service.calls) > 0) != test.replaced {
			t.Errorf("%s: replaced %v, %v, by %v", name, replaced, err, service.calls)
		}
	}
}

// TestD2Keeper checks that a singleton is started if it does not run, and replaced if it makes no
// progress.
func TestD2Keeper(t *testing.T) {
	t.Parallel()
	with := func(
		run *workflowservice.DescribeWorkflowExecutionResponse, id string,
	) *workflowservice.DescribeWorkflowExecutionResponse {
		run.WorkflowExecutionInfo.Execution.WorkflowId = id
		return run
	}
	for name, test := range map[string]struct {
		run  *workflowservice.DescribeWorkflowExecutionResponse
		want []string // at the second check
	}{
		"none":     {nil, []string{"start wake", "start wake"}},
		"it works": {with(described(0, time.Second), "wake"), nil},
		"its tasks fail": {
			with(described(5, 0), "wake"), []string{"terminate wake run_1", "start wake", "terminate wake run_1", "start wake"},
		},
		"it is at no work":   {with(described(0, 0), "wake"), []string{"terminate wake run_1", "start wake"}},
		"it waits for a try": {with(described(1, 0), "wake"), nil},
	} {
		service := &service{run: test.run}
		keeper := workflows.Keeper{Client: workflows.Client{Temporal: service}, Replaced: func(string, string) {}}
		for range 2 {
			if err := keeper.Wake(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if diff := cmp.Diff(test.want, service.calls); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestStartShowsTheTask checks that lists and pages show from a run's start on what the task is,
// at which provider it works, and which routes it lacks, and never what the client wrote.
// Whatever the run waits for, it waits with its account's priority.
func TestStartShowsTheTask(t *testing.T) {
	t.Parallel()
	type shown struct{ summary, details, status, provider, account string }
	long := strings.Repeat("a", 65) // longer than Temporal takes
	routes := []mediagate.Route{{Provider: "one", Upstream: "m-1"}, {Provider: "two"}}
	skipped := []mediagate.SkippedRoute{
		{Provider: "two", Upstream: "m-2", Reason: "mode must be std or pro"},
		{Provider: "three", Upstream: "m-3", Reason: "its adapter failed"},
	}
	for name, c := range map[string]struct {
		task mediagate.Task
		want shown
	}{
		"new": {
			mediagate.Task{Model: "v3", Type: mediagate.TypeVideo, AccountID: "acc_1", Plan: mediagate.Plan{Routes: routes}},
			shown{summary: "video by v3", status: "processing", provider: "one", account: "acc_1"},
		},
		"of no routes": { // it has no provider
			mediagate.Task{Model: "v3", Type: mediagate.TypeVideo, AccountID: long},
			shown{summary: "video by v3", status: "pending", account: long[:64]},
		},
		"of an operation": {
			mediagate.Task{
				Model: "music-a", Type: mediagate.TypeMusic, Plan: mediagate.Plan{Routes: []mediagate.Route{{Operation: "stems"}}},
			},
			shown{summary: "music by music-a: stems", status: "pending"},
		},
		"of an action, and of fewer routes": {
			mediagate.Task{
				Model: "art", Type: mediagate.TypeArt, Params: []byte(`{"prompt":"secret"}`),
				Plan: mediagate.Plan{Action: "INPAINT", Routes: []mediagate.Route{{Operation: "action"}}, Skipped: skipped},
			},
			shown{
				summary: "art by art: inpaint", status: "pending",
				details: "Routes that do not support the request:\n\n- `two` as `m-2`: mode must be std or pro\n" +
					"- `three` as `m-3`: its adapter failed",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			temporal := new(service)
			c.task.ID, c.task.Status = "task_1", mediagate.StatusPending
			if err := (workflows.Client{Temporal: temporal}).Start(t.Context(), c.task); err != nil {
				t.Fatal(err)
			}
			o := temporal.options
			got := shown{summary: o.StaticSummary, details: o.StaticDetails, account: o.Priority.FairnessKey}
			got.status, _ = o.TypedSearchAttributes.GetKeyword(workflows.AttrStatus)
			got.provider, _ = o.TypedSearchAttributes.GetKeyword(workflows.AttrProvider)
			if got != c.want {
				t.Errorf("shown is %+v, want %+v", got, c.want)
			}
		})
	}
	temporal := new(service)
	err := workflows.Client{Temporal: temporal}.EnsureRound(
		t.Context(), mediagate.WebhookRound{TaskID: "task_1", AccountID: "acc_1", Round: 1},
	)
	if got := temporal.options.Priority.FairnessKey; err != nil || got != "acc_1" {
		t.Errorf("a callback waits among those of %q, %v", got, err)
	}
}

// TestRunsAreInTheTraceOfTheSubmit checks that the runs of a task and of its callback belong to
// the trace of its submit, even if the wake scan starts them, which runs in no span of that
// trace.
func TestRunsAreInTheTraceOfTheSubmit(t *testing.T) {
	t.Parallel()
	const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	traced := mediagate.Task{ID: "task_1", TraceParent: trace}
	round := mediagate.WebhookRound{TaskID: "task_1", Round: 1, TraceParent: trace}
	for name, start := range map[string]func(workflows.Client) error{
		"started":    func(c workflows.Client) error { return c.Start(t.Context(), traced) },
		"replaced":   func(c workflows.Client) error { return c.Replace(t.Context(), traced, "late") },
		"a callback": func(c workflows.Client) error { return c.EnsureRound(t.Context(), round) },
		"a callback replaced": func(c workflows.Client) error {
			_, err := c.ReplaceRound(t.Context(), round, "late")
			return err
		},
	} {
		temporal := new(service)
		if err := start(workflows.Client{Temporal: temporal}); err != nil || temporal.trace != trace {
			t.Errorf("%s: below %q, %v; want %q", name, temporal.trace, err, trace)
		}
	}
}

// TestJob checks that a job's progress is that of its last heartbeat.
func TestJob(t *testing.T) {
	t.Parallel()
	beat, err := converter.GetDefaultDataConverter().ToPayloads(
		activities.JobProgress{After: "task_1", Done: 3, Skipped: 2, Failed: 1},
	)
	if err != nil {
		t.Fatal(err)
	}
	of := func(status enumspb.WorkflowExecutionStatus) *workflowservice.DescribeWorkflowExecutionResponse {
		return &workflowservice.DescribeWorkflowExecutionResponse{
			WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
				Status: status, Execution: &commonpb.WorkflowExecution{WorkflowId: "actions/job_1", RunId: "run"},
			},
			PendingActivities: []*workflowpb.PendingActivityInfo{{HeartbeatDetails: beat}},
		}
	}
	c := func(s *service) workflows.Client {
		return workflows.Client{Temporal: s, Pages: "https://temporal.example.com/"}
	}
	got, run, page, err := c(&service{run: of(enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING)}).Job(t.Context(), "job_1")
	want := mediagate.TaskJobStatus{
		State: mediagate.TaskJobRunning, Count: &mediagate.TaskJobCount{Done: 3, Skipped: 2, Failed: 1},
	}
	if diff := cmp.Diff(
		want, got,
	); err != nil || diff != "" || run != "run" || page != "https://temporal.example.com/actions%2Fjob_1/run/history" {
		t.Errorf("%v, run %q, page %q (-want +got):\n%s", err, run, page, diff)
	}
	got, _, _, err = c(&service{run: of(enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED)}).Job(t.Context(), "job_1")
	if diff := cmp.Diff(mediagate.TaskJobStatus{State: mediagate.TaskJobStopped}, got); err != nil || diff != "" {
		t.Errorf("cancelled: %v (-want +got):\n%s", err, diff)
	}
	if _, _, _, err := c(&service{}).Job(t.Context(), "job_1"); !mediagate.Is(err, mediagate.KindNotFound) {
		t.Errorf("a job that is none: %v", err)
	}
}
