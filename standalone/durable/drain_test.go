package durable_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/testsuite"
	sdk "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/task"
	"github.com/mediagate/mediagate/workflows"
)

// counted counts the calls to the server.
type counted struct {
	workflows.Client
	starts, wakes, describes atomic.Int64
}

func (c *counted) Start(ctx context.Context, t mediagate.Task) error {
	c.starts.Add(1)
	return c.Client.Start(ctx, t)
}

func (c *counted) Wake(ctx context.Context, id string) (bool, error) {
	c.wakes.Add(1)
	return c.Client.Wake(ctx, id)
}

func (c *counted) DescribeRun(ctx context.Context, id string) (activities.RunState, error) {
	c.describes.Add(1)
	return c.Client.DescribeRun(ctx, id)
}

// TestD2DrainAfterAnOutage checks the first attempt of each wake after an outage (D2). It starts
// the runs that are missing and replaces those that were terminated. It does not replace live
// runs, and ignores a run without a row.
func TestD2DrainAfterAnOutage(t *testing.T) {
	t.Parallel()
	const unstarted, accounts, open = 40, 7, 20 // no worker answers, so these must not exceed the limit of unanswered runs
	w := setup(t)
	engine := &counted{Client: w.engine}
	w.Activities.Engine = engine
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	added := 0
	add := func(id string) mediagate.Task {
		one := w.NewVideo()
		one.ID, one.AccountID = id, fmt.Sprintf("acc_%d", added%accounts)
		added++
		w.Store.Add(one)
		return one
	}
	for i := range unstarted {
		add(fmt.Sprintf("task_unstarted_%d", i))
	}
	runOf := func(id string) string {
		t.Helper()
		d, err := w.temporal.DescribeWorkflowExecution(ctx, id, "")
		must(err)
		return d.GetWorkflowExecutionInfo().GetExecution().GetRunId()
	}
	kept, gone := map[string]string{}, map[string]string{}
	for i := range open {
		for _, kind := range []string{"runs", "terminated", "silent", "lost"} { // runs of the last two kinds have never asked for a step
			one := add(fmt.Sprintf("task_%s_%d", kind, i))
			must(w.engine.Start(ctx, one))
			if kind == "runs" || kind == "terminated" {
				w.change(one.ID, task.Asked{})
			}
			if kind == "terminated" || kind == "lost" {
				must(w.temporal.TerminateWorkflow(ctx, one.ID, "", "by hand"))
				gone[one.ID] = runOf(one.ID)
			} else {
				kept[one.ID] = runOf(one.ID)
			}
		}
	}
	stray := w.NewVideo()
	stray.ID = "task_without_row"
	must(w.engine.Start(ctx, stray))
	kept[stray.ID] = runOf(stray.ID)
	w.later(time.Hour)

	stop, done := make(chan struct{}), make(chan error, 1)
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(w.Activities)
	env.SetTestTimeout(patience)
	env.SetWorkerStopChannel(stop)
	go func() {
		_, err := env.ExecuteActivity(w.Activities.TendWakes)
		done <- err
	}()
	w.await("every wake is tried", func() bool {
		due, err := w.Store.DueWakes(ctx, 1)
		must(err)
		return len(due) == 0
	})
	close(stop)
	must(<-done)

	runs := func(id string) bool {
		state, err := w.engine.DescribeRun(ctx, id)
		must(err)
		return state != activities.RunNone
	}
	for i := range unstarted {
		if id := fmt.Sprintf("task_unstarted_%d", i); !runs(id) {
			t.Fatalf("%s has no run", id)
		}
	}
	for id, run := range kept {
		if runOf(id) != run {
			t.Errorf("the run of %s was replaced", id)
		}
	}
	for id, run := range gone {
		if !runs(id) || runOf(id) == run {
			t.Errorf("%s runs: %v, by a new run: %v", id, runs(id), runOf(id) != run)
		}
	}
	starts, wakes, describes := engine.starts.Load(), engine.wakes.Load(), engine.describes.Load()
	if starts != unstarted+2*open || wakes != 3*open || describes != open {
		t.Errorf("%d starts, %d signals and %d describes, want %d, %d and %d",
			starts, wakes, describes, unstarted+2*open, 3*open, open)
	}
}

// TestD1CompletedRunOfAnOpenTask checks that a run that completed although its task is open is
// replaced, too (D1).
func TestD1CompletedRunOfAnOpenTask(t *testing.T) {
	t.Parallel()
	w := setup(t)
	open := w.NewVideo()
	run, err := w.temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: open.ID, TaskQueue: "elsewhere"}, "Done")
	if err != nil {
		t.Fatal(err)
	}
	done := sdk.New(w.temporal, "elsewhere", sdk.Options{})
	done.RegisterWorkflowWithOptions(func(workflow.Context) error { return nil }, workflow.RegisterOptions{Name: "Done"})
	if err := done.Start(); err != nil {
		t.Fatal(err)
	}
	defer done.Stop()
	if err := run.Get(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := w.engine.Start(t.Context(), open); !mediagate.Is(err, mediagate.KindConflict) {
		t.Errorf("started: %v, want a conflict", err)
	}
	if runs, err := w.engine.Wake(t.Context(), open.ID); err != nil || runs {
		t.Errorf("signalled: %v, %v", runs, err)
	}
	replaced := func() string {
		if err := w.engine.Replace(t.Context(), open, "by a test"); err != nil {
			t.Fatal(err)
		}
		d, err := w.temporal.DescribeWorkflowExecution(t.Context(), open.ID, "")
		if err != nil {
			t.Fatal(err)
		}
		return d.GetWorkflowExecutionInfo().GetExecution().GetRunId()
	}
	first := replaced()
	if again := replaced(); first == run.GetRunID() || again != first {
		t.Errorf("runs %s, %s, %s: want another one, which is left alone", run.GetRunID(), first, again)
	}
}
