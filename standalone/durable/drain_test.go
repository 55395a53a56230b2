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
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/workflows"
)

// asked counts what the server is asked for.
type asked struct {
	workflows.Client
	begun, looks atomic.Int64
}

func (a *asked) Begin(ctx context.Context, t mediagate.Task) (bool, error) {
	a.begun.Add(1)
	return a.Client.Begin(ctx, t)
}

func (a *asked) Runs(ctx context.Context, id string) (bool, error) {
	a.looks.Add(1)
	return a.Client.Runs(ctx, id)
}

// D2: one pass starts all that an outage has left. It replaces the runs that were
// terminated, and those that completed though their task is open, leaves those that
// run, and does nothing about a run that has no row.
func TestD2DrainAfterAnOutage(t *testing.T) {
	t.Parallel()
	const unseen, accounts, open = 300, 7, 20
	w := setup(t)
	var behind atomic.Int64 // the clock, until all is in place
	behind.Store(int64(2 * time.Minute))
	w.World = activitytest.New(func() time.Time { return time.Now().Add(-time.Duration(behind.Load())) })
	engine := &asked{Client: w.engine}
	w.Activities.Engine = engine
	w.Activities.Settings.PassInterval = time.Hour // the first look alone
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	added := 0
	add := func(id string) mediagate.Task {
		task := w.NewVideo()
		task.ID, task.AccountID, task.DeadlineAt = id, fmt.Sprintf("acc_%d", added%accounts), time.Now().Add(time.Hour)
		added++
		w.Store.Add(task)
		return task
	}
	for i := range unseen {
		add(fmt.Sprintf("task_unseen_%d", i))
	}
	runOf := func(id string) string {
		t.Helper()
		d, err := w.temporal.DescribeWorkflowExecution(ctx, id, "")
		must(err)
		return d.GetWorkflowExecutionInfo().GetExecution().GetRunId()
	}
	kept, gone := map[string]string{}, map[string]string{}
	var seen []string
	for i := range open {
		runs, terminated := add(fmt.Sprintf("task_runs_%d", i)), add(fmt.Sprintf("task_terminated_%d", i))
		never, broken := add(fmt.Sprintf("task_never_%d", i)), add(fmt.Sprintf("task_broken_%d", i))
		for _, task := range []mediagate.Task{runs, terminated, never, broken} { // the last two were never seen to run
			must(w.engine.Start(ctx, task))
		}
		seen = append(seen, runs.ID, terminated.ID)
		must(w.temporal.TerminateWorkflow(ctx, terminated.ID, "", "by hand"))
		must(w.temporal.TerminateWorkflow(ctx, broken.ID, "", "by hand"))
		for _, id := range []string{runs.ID, never.ID} {
			kept[id] = runOf(id)
		}
		for _, id := range []string{terminated.ID, broken.ID} {
			gone[id] = runOf(id)
		}
	}
	stray := w.NewVideo()
	stray.ID = "task_without_row"
	must(w.engine.Start(ctx, stray))
	kept[stray.ID] = runOf(stray.ID)
	must(w.Store.MarkChecked(ctx, seen, true))
	behind.Store(0)

	stop, done := make(chan struct{}), make(chan error, 1)
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(w.Activities)
	env.SetTestTimeout(patience)
	env.SetWorkerStopChannel(stop)
	go func() {
		_, err := env.ExecuteActivity(w.Activities.Reconcile)
		done <- err
	}()
	w.awaits("all that have no run are started", func() bool {
		tasks, _, err := w.Store.UnseenTasks(ctx, 0, "", 1)
		must(err)
		looks, err := w.Store.OpenTasks(ctx, time.Now().Add(-time.Minute), mediagate.Look{}, 1)
		must(err)
		return len(tasks)+len(looks) == 0
	})
	close(stop)
	must(<-done)

	for i := range unseen {
		if runs, err := w.engine.Runs(ctx, fmt.Sprintf("task_unseen_%d", i)); err != nil || !runs {
			t.Fatalf("task %d has no run: %v", i, err)
		}
	}
	for id, run := range kept {
		if runOf(id) != run {
			t.Errorf("the run of %s was replaced", id)
		}
	}
	for id, run := range gone {
		if runs, err := w.engine.Runs(ctx, id); err != nil || !runs || runOf(id) == run {
			t.Errorf("%s: runs %v, %v, in place of the one that was terminated: %v", id, runs, err, runOf(id) != run)
		}
	}
	if begun, looks := engine.begun.Load(), engine.looks.Load(); begun != unseen+2*open || looks != 2*open {
		t.Errorf("%d starts and %d looks, want %d and %d", begun, looks, unseen+2*open, 2*open)
	}
}

// D1: a run that completed though its task is open is replaced as well, also where
// the row was never seen to run.
func TestD1CompletedRunOfAnOpenTask(t *testing.T) {
	t.Parallel()
	w := setup(t)
	task := w.NewVideo()
	task.DeadlineAt = time.Now().Add(time.Hour)
	run, err := w.temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: task.ID, TaskQueue: "elsewhere"}, "Done")
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
	began, err := w.engine.Begin(t.Context(), task)
	if err != nil || !began {
		t.Fatalf("begun %v, %v", began, err)
	}
	again, err := w.engine.Begin(t.Context(), task)
	if err != nil || again {
		t.Errorf("begun again %v, %v: it runs", again, err)
	}
}
