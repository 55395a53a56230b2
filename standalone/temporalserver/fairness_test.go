package temporalserver_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// workOrder holds the order in which work was done: accounts, by queue.
type workOrder struct {
	mu    sync.Mutex
	order map[string][]string
}

func (s *workOrder) note(what, account string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.order[what] = append(s.order[what], account)
}

func (s *workOrder) of(what string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.order[what])
}

// Step records the account of an activity, by the server's information about it. In the child,
// the first attempt fails, to check that the retry still has the key.
func (s *workOrder) Step(ctx context.Context) error {
	info := activity.GetInfo(ctx)
	if info.TaskQueue == "child" && info.Attempt == 1 {
		return temporal.NewApplicationErrorWithOptions("later", "later", temporal.ApplicationErrorOptions{NextRetryDelay: time.Second})
	}
	s.note(info.TaskQueue, info.Priority.FairnessKey)
	return nil
}

// steps runs an activity on each queue: the second in a run that continues the first, the third
// in a child.
func (s *workOrder) steps(ctx workflow.Context, queues []string) error {
	if !workflow.IsReplaying(ctx) {
		s.note("runs", workflow.GetInfo(ctx).Priority.FairnessKey)
	}
	options := workflow.ActivityOptions{TaskQueue: queues[0], StartToCloseTimeout: time.Minute}
	if err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options), "Step").Get(ctx, nil); err != nil {
		return err
	}
	switch len(queues) {
	case 1:
		return nil
	case 2:
		return workflow.ExecuteChildWorkflow(ctx, "steps", queues[1:]).Get(ctx, nil)
	default:
		return workflow.NewContinueAsNewError(ctx, "steps", queues[1:])
	}
}

// TestFairness checks that accounts take turns at each queue, so that many waiting tasks of one
// account do not delay the first task of another. The server uses the fairness key of the run.
// The run's activities inherit the key, also when they are retried, and so do its children and
// the run that continues it.
func TestFairness(t *testing.T) {
	t.Parallel()
	server := start(t, filepath.Join(t.TempDir(), "temporal.db"))
	t.Cleanup(func() { stop(t, server) })
	c := dial(t, server)
	t.Cleanup(c.Close)
	const backlog = 30
	begin := func(account string, n int) {
		for i := range n {
			_, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
				ID: fmt.Sprint(account, i), TaskQueue: queue, Priority: temporal.Priority{FairnessKey: account},
			}, "steps", []string{"first", "continued", "child"})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	begin("busy", backlog)
	begin("newcomer", 1)

	s := &workOrder{order: map[string][]string{}}
	serve := func(name string, workflowsToo bool) {
		t.Helper()
		w := worker.New(c, name, worker.Options{DisableWorkflowWorker: !workflowsToo, MaxConcurrentActivityExecutionSize: 1})
		w.RegisterActivity(s)
		if workflowsToo {
			w.RegisterWorkflowWithOptions(s.steps, workflow.RegisterOptions{Name: "steps"})
		}
		if err := w.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop)
	}
	// A quarter of the backlog may come before the newcomer: earlier work, and work that the
	// server hands out at once.
	checkTurn := func(what string) {
		t.Helper()
		order := s.of(what)
		if at := slices.Index(order, "newcomer"); at < 0 || at > backlog/4 {
			t.Errorf("%s: the newcomer came as number %d of %v", what, at+1, order)
		}
	}
	serve(queue, true)
	for i, name := range []string{"first", "continued", "child"} { // a queue is served once all of its work waits in it
		waitFor(t, "runs with work for the queue "+name, (i+1)*(backlog+1), func() int { return len(s.of("runs")) })
		if name == "first" {
			checkTurn("runs")
		}
		serve(name, false)
		waitFor(t, "done of the queue "+name, backlog+1, func() int { return len(s.of(name)) })
		checkTurn(name)
	}
}

// waitFor waits until count returns at least want.
func waitFor(t *testing.T, what string, want int, count func() int) {
	t.Helper()
	for give := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		n := count()
		if n >= want {
			return
		}
		if time.Now().After(give) {
			t.Fatalf("%s: %d, want %d", what, n, want)
		}
	}
}
