package workflows_test

import (
	"context"
	"strings"
	"testing"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/workflows"
)

// starts keeps the options of the workflow that is started.
type starts struct {
	client.Client
	options client.StartWorkflowOptions
}

func (s *starts) ExecuteWorkflow(_ context.Context, o client.StartWorkflowOptions, _ any, _ ...any) (client.WorkflowRun, error) {
	s.options = o
	return nil, nil
}

// refusing answers each signal with an error.
type refusing struct {
	client.Client
	err error
}

func (r refusing) SignalWorkflow(context.Context, string, string, string, any) error { return r.err }

// Of the errors of a signal one is the run's own: it has had as many as it may.
func TestSignalErrors(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err              error
		fails, runIsFull bool
	}{
		"taken":     {nil, false, false},
		"no run":    {serviceerror.NewNotFound("workflow execution already completed"), false, false},
		"too many":  {serviceerror.NewInvalidArgument("exceeded workflow execution limit for signal events"), true, true},
		"away":      {serviceerror.NewUnavailable("connection refused"), true, false},
		"throttled": {serviceerror.NewResourceExhausted(0, "rate limit exceeded"), true, false},
	} {
		err := workflows.Client{Temporal: refusing{err: test.err}}.SignalWake(t.Context(), "task_1")
		if (err != nil) != test.fails || mediagate.Is(err, mediagate.KindConflict) != test.runIsFull {
			t.Errorf("%s: %v, want an error: %v, a conflict: %v", name, err, test.fails, test.runIsFull)
		}
	}
}

// An operator reads which routes a task lacks, and why.
func TestStartTellsOfSkippedRoutes(t *testing.T) {
	t.Parallel()
	routes := []mediagate.Route{{Provider: "one", Upstream: "m-1"}}
	for name, test := range map[string]struct {
		skipped []mediagate.SkippedRoute
		want    string
	}{
		"none": {nil, ""},
		"two": {
			[]mediagate.SkippedRoute{
				{Provider: "two", Upstream: "m-2", Reason: "mode must be std or pro"},
				{Provider: "three", Upstream: "m-3", Reason: "its adapter failed"},
			},
			"Routes that cannot express the request:\n\n- `two` as `m-2`: mode must be std or pro\n- `three` as `m-3`: its adapter failed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			temporal := new(starts)
			err := workflows.Client{Temporal: temporal}.Start(t.Context(), mediagate.Task{
				ID: "task_1", Model: "m", Type: mediagate.TypeVideo, Params: []byte(`{"prompt":"secret"}`),
				Plan: mediagate.Plan{Routes: routes, Skipped: test.skipped},
			})
			if err != nil {
				t.Fatal(err)
			}
			if got := temporal.options.StaticDetails; got != test.want || strings.Contains(got, "secret") {
				t.Errorf("the details are %q, want %q", got, test.want)
			}
		})
	}
}

// A list of workflows tells which operation each task is.
func TestStartSaysWhatTheTaskIs(t *testing.T) {
	t.Parallel()
	for want, task := range map[string]mediagate.Task{
		"art by art: inpaint":     {Model: "art", Type: mediagate.TypeArt, Plan: mediagate.Plan{Action: "INPAINT", Routes: []mediagate.Route{{Operation: "action"}}}},
		"music by music-a: stems": {Model: "music-a", Type: mediagate.TypeMusic, Plan: mediagate.Plan{Routes: []mediagate.Route{{Operation: "stems"}}}},
		"video by alpha-v3":       {Model: "alpha-v3", Type: mediagate.TypeVideo},
	} {
		temporal := new(starts)
		if err := (workflows.Client{Temporal: temporal}).Start(t.Context(), task); err != nil {
			t.Fatal(err)
		}
		if got := temporal.options.StaticSummary; got != want {
			t.Errorf("the summary is %q, want %q", got, want)
		}
	}
}

// A list shows a new run as one at work at its first provider; one of no route has
// nothing to say of that.
func TestStartsAreAtWork(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		task             mediagate.Task
		status, provider string
	}{
		"new":          {mediagate.Task{Status: mediagate.StatusPending, Plan: mediagate.Plan{Routes: []mediagate.Route{{Provider: "one"}, {Provider: "two"}}}}, "processing", "one"},
		"of no routes": {mediagate.Task{Status: mediagate.StatusPending}, "pending", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			temporal := new(starts)
			if err := (workflows.Client{Temporal: temporal}).Start(t.Context(), c.task); err != nil {
				t.Fatal(err)
			}
			status, _ := temporal.options.TypedSearchAttributes.GetKeyword(workflows.AttrStatus)
			provider, _ := temporal.options.TypedSearchAttributes.GetKeyword(workflows.AttrProvider)
			if status != c.status || provider != c.provider {
				t.Errorf("status %q, provider %q, %+v", status, provider, temporal.options)
			}
		})
	}
}

// What a run waits for it waits for among its account's, whoever starts it.
func TestStartsAreFair(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 65) // longer than Temporal takes
	for account, want := range map[string]string{"acc_1": "acc_1", long: long[:64]} {
		temporal := new(starts)
		c := workflows.Client{Temporal: temporal}
		for what, start := range map[string]func() error{
			"task": func() error { return c.Start(t.Context(), mediagate.Task{ID: "task_1", AccountID: account}) },
			"callback": func() error {
				return c.EnsureWebhook(t.Context(), mediagate.WebhookRound{TaskID: "task_1", AccountID: account, Round: 1})
			},
		} {
			if err := start(); err != nil {
				t.Fatal(err)
			}
			if got := temporal.options.Priority.FairnessKey; got != want {
				t.Errorf("the key of a %s is %q, want %q", what, got, want)
			}
		}
	}
}
