package durable_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	sdk "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/workflows"
)

// bench is a world whose reconciler has no patience, with one task.
type bench struct {
	*world
	task mediagate.Task
}

func setupBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{world: setup(t)}
	b.Activities.Engine = b.engine
	s := &b.Activities.Settings
	s.PassInterval, s.OverdueAfter, s.RoundAfter, s.RescueEvery = 100*time.Millisecond, time.Second, time.Second, time.Second
	b.task = b.NewVideo()
	b.task.DeadlineAt = time.Now().Add(5 * time.Second)
	b.Async.End(b.task.ID, activitytest.Success())
	b.Async.OnSubmit = func(_ context.Context, job mediagate.Job) (mediagate.Submission, error) {
		return mediagate.Submission{Ref: mediagate.JobRef{JobID: "job-" + job.ExternalID, ExternalID: job.ExternalID}}, nil
	}
	b.Store.Add(b.task)
	return b
}

// wedge runs a worker whose workflow is broken until stuck says that its run
// gets nowhere.
func (b *bench) wedge(name string, broken any, start func() error, stuck func() error) {
	b.t.Helper()
	w := sdk.New(b.temporal, workflows.QueueMain, sdk.Options{})
	w.RegisterWorkflowWithOptions(broken, workflow.RegisterOptions{Name: name})
	calls := sdk.New(b.temporal, workflows.QueueCall(activitytest.AsyncProvider), sdk.Options{DisableWorkflowWorker: true})
	calls.RegisterActivity(b.Activities)
	for _, part := range []sdk.Worker{w, calls} {
		if err := part.Start(); err != nil {
			b.t.Fatal(err)
		}
		defer part.Stop()
	}
	b.ok(start())
	b.eventually("the run is wedged", stuck)
}

// deploy runs the real worker until the test ends.
func (b *bench) deploy() {
	b.serves([]string{activitytest.AsyncChannel}, activitytest.AsyncProvider, activitytest.SyncProvider)
}

func (b *bench) ok(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) eventually(what string, check func() error) {
	b.t.Helper()
	b.within(patience, what, check)
}

func (b *bench) within(limit time.Duration, what string, check func() error) {
	b.t.Helper()
	deadline := time.Now().Add(limit)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("%s: not within %s: %v", what, limit, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// runID is that of the workflow's newest run.
func (b *bench) runID(id string) string {
	b.t.Helper()
	desc, err := b.temporal.DescribeWorkflowExecution(b.t.Context(), id, "")
	b.ok(err)
	return desc.GetWorkflowExecutionInfo().GetExecution().GetRunId()
}

// failing is a condition of wedge: the run's workflow tasks have failed.
func (b *bench) failing(id string) func() error {
	return func() error {
		desc, err := b.temporal.DescribeWorkflowExecution(b.t.Context(), id, "")
		if err == nil && desc.GetPendingWorkflowTask().GetAttempt() < 2 {
			err = fmt.Errorf("its workflow task is at attempt %d", desc.GetPendingWorkflowTask().GetAttempt())
		}
		return err
	}
}

// blocked is a condition of wedge: the run has made its first step and waits.
func (b *bench) blocked(id string) func() error {
	return func() error {
		desc, err := b.temporal.DescribeWorkflowExecution(b.t.Context(), id, "")
		switch {
		case err != nil:
			return err
		case desc.GetWorkflowExecutionInfo().GetHistoryLength() < 5 || desc.GetPendingWorkflowTask() != nil || len(desc.GetPendingActivities()) > 0:
			return errors.New("it is not there yet")
		}
		return nil
	}
}

// terminated checks that operators are told why the run was ended.
func (b *bench) terminated(id, run, word string) {
	b.t.Helper()
	history := b.temporal.GetWorkflowHistory(b.t.Context(), id, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	reason := ""
	for history.HasNext() {
		event, err := history.Next()
		b.ok(err)
		reason = event.GetWorkflowExecutionTerminatedEventAttributes().GetReason()
	}
	if !strings.Contains(reason, word) {
		b.t.Errorf("the run %s was ended for %q, want a word of %q", id, reason, word)
	}
}

func forEver(ctx workflow.Context) error { return workflow.Sleep(ctx, 10_000*time.Hour) }

// D1, D2: a deploy broke the workflow, and the next one
// mended it; the runs of the first cannot go on with the code of the second.
func TestD2WedgedRunIsReplaced(t *testing.T) {
	t.Parallel()
	cases := map[string]func(workflow.Context, workflows.Input) error{
		"blocked before the submit": func(ctx workflow.Context, _ workflows.Input) error { return forEver(ctx) },
		"blocked after the submit": func(ctx workflow.Context, in workflows.Input) error {
			step := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
				TaskQueue: workflows.QueueCall(activitytest.AsyncProvider), StartToCloseTimeout: time.Minute,
			})
			if err := workflow.ExecuteActivity(step, "SubmitJob", activities.AttemptArgs{TaskID: in.TaskID, N: 1}).Get(ctx, nil); err != nil {
				return err
			}
			return forEver(ctx)
		},
		"panics": func(workflow.Context, workflows.Input) error { panic("a deploy that went wrong") },
	}
	for name, broken := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupBench(t)
			stuck := b.blocked(b.task.ID)
			if name == "panics" {
				stuck = b.failing(b.task.ID)
			}
			b.wedge("Generate", broken, func() error { return b.engine.Start(t.Context(), b.task) }, stuck)
			wedged := b.runID(b.task.ID)
			b.deploy()
			b.eventually("the task ends and is called back", func() error {
				task, err := b.Store.TaskByID(t.Context(), b.task.ID)
				if err == nil && (!task.Status.Terminal() || task.Webhook.State != mediagate.WebhookDelivered) {
					err = fmt.Errorf("it is %s, its webhook %+v", task.Status, task.Webhook)
				}
				return err
			})
			ends := b.Store.Settlements(b.task.ID)
			submits := len(b.Async.Submits())
			if len(ends) != 1 || submits > 1 || (ends[0].Status == mediagate.StatusCompleted) != (submits == 1) {
				t.Errorf("it ended %d times, as %s, after %d submits", len(ends), ends[0].Status, submits)
			}
			if name == "panics" { // which heals by itself when its task is tried again in time
				return
			}
			b.eventually("another run is there", func() error {
				if b.runID(b.task.ID) == wedged {
					return errors.New("not yet")
				}
				return nil
			})
			word := "the task should have ended"
			if submits == 1 { // and what came of it was settled on without the run
				word = "this run has not heard of it"
			}
			b.terminated(b.task.ID, wedged, word)
		})
	}
}

// D2: a run that waits for what another activity has heard in its place, or an
// operator's reset has left out, does not wait for its deadline.
func TestD2LostSignalIsMadeGood(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Activities.Engine = w.engine
	w.Activities.Settings.PassInterval, w.Activities.Settings.RescueEvery = 100*time.Millisecond, time.Second
	task := w.NewVideo()
	w.Store.Add(task)
	b := &bench{world: w, task: task}
	b.deploy()
	b.ok(b.engine.Start(t.Context(), task))
	b.eventually("the vendor has the job", func() error {
		row, err := b.Store.Attempt(t.Context(), task.ID, 1)
		if err == nil && row.State != mediagate.AttemptAccepted {
			err = fmt.Errorf("it is %s", row.State)
		}
		return err
	})
	won, err := b.Store.RecordOutcome(t.Context(), task.ID, 1, activitytest.Success())
	b.ok(err)
	if !won {
		t.Fatal("another outcome was there before")
	}
	b.eventually("the task is completed", func() error {
		got, err := b.Store.TaskByID(t.Context(), task.ID)
		if err == nil && got.Status != mediagate.StatusCompleted {
			err = fmt.Errorf("it is %s", got.Status)
		}
		return err
	})
}

// D2: a client that cancels does not wait for its task to be overdue: a run that
// cannot go on takes no cancel, and is replaced once its workflow tasks have
// failed for a while.
func TestD2CancelReachesATaskWhoseRunFails(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Activities.Engine = b.engine
	b.Activities.Settings.PassInterval = time.Second
	task := b.NewVideo()
	b.Store.Add(task)
	w := &bench{world: b, task: task}
	blocked := func(ctx workflow.Context, _ workflows.Input) error { return forEver(ctx) }
	w.wedge("Generate", blocked, func() error { return b.engine.Start(t.Context(), task) }, w.blocked(task.ID))
	wedged := w.runID(task.ID)
	w.deploy() // whose workflow would not have slept: no history goes on with it
	_, err := b.Store.RequestCancel(t.Context(), task.AccountID, task.ID)
	w.ok(err)
	w.ok(b.engine.Cancel(t.Context(), task.ID))
	w.within(2*patience, "the task is cancelled", func() error {
		got, err := b.Store.TaskByID(t.Context(), task.ID)
		if err == nil && got.Status != mediagate.StatusCancelled {
			err = fmt.Errorf("it is %s", got.Status)
		}
		return err
	})
	w.terminated(task.ID, wedged, "the client cancelled the task")
}

// D2: the same for a delivery round.
func TestD2WedgedRoundIsReplaced(t *testing.T) {
	t.Parallel()
	b := setupBench(t)
	_, _, err := b.Store.Settle(t.Context(), mediagate.Settlement{
		TaskID: b.task.ID, Status: mediagate.StatusFailed, Failure: &mediagate.Failure{Code: mediagate.CodeInternal}, WebhookBody: []byte("{}"),
	})
	b.ok(err)
	id := workflows.IDWebhook(b.task.ID, 1)
	broken := func(ctx workflow.Context, _ workflows.RoundInput) error { return forEver(ctx) }
	b.wedge("DeliverWebhook", broken, func() error {
		return b.engine.EnsureWebhook(t.Context(), mediagate.WebhookRound{TaskID: b.task.ID, AccountID: b.task.AccountID, Round: 1})
	}, b.blocked(id))
	wedged := b.runID(id)
	b.deploy()
	b.eventually("the callback is delivered", func() error {
		deliveries, err := b.Store.Deliveries(t.Context(), b.task.ID)
		if err == nil && len(deliveries) != 1 {
			err = fmt.Errorf("%d deliveries", len(deliveries))
		}
		return err
	})
	b.terminated(id, wedged, "the callback should be delivered")
}

// D2: and for those that are to run for ever.
func TestD2WedgedSingletonIsReplaced(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		broken func(workflow.Context) error
		word   string
	}{
		"blocked": {forEver, "blocked"},
		"panics":  {func(workflow.Context) error { panic("a deploy that went wrong") }, "workflow tasks of this run fail"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupBench(t)
			var replaced []string
			keeper := workflows.Keeper{Client: b.engine, Replaced: func(id, _ string) { replaced = append(replaced, id) }}
			keep := func() error { return keeper.Reconciler(t.Context()) }
			stuck := b.blocked(workflows.IDReconciler)
			if name == "panics" {
				stuck = func() error {
					b.ok(keep())
					if len(replaced) == 0 {
						return errors.New("it is left alone")
					}
					return nil
				}
			}
			wedged := ""
			b.wedge("Reconciler", c.broken, func() error {
				err := keep()
				wedged = b.runID(workflows.IDReconciler)
				return err
			}, stuck)
			b.ok(keep())
			b.ok(keep()) // at the same point as before
			if len(replaced) != 1 || b.runID(workflows.IDReconciler) == wedged {
				t.Fatalf("replaced: %v", replaced)
			}
			b.terminated(workflows.IDReconciler, wedged, c.word)
			b.deploy()
			b.eventually("its activity runs", func() error {
				desc, err := b.temporal.DescribeWorkflowExecution(t.Context(), workflows.IDReconciler, "")
				if err == nil && len(desc.GetPendingActivities()) == 0 {
					err = errors.New("it does not")
				}
				return err
			})
			b.ok(keep())
			b.ok(keep())
			b.ok(keep())
			if len(replaced) != 1 {
				t.Errorf("a healthy run was replaced: %v", replaced)
			}
		})
	}
}

// D2: the workflow of a channel that no worker has, and
// that nobody waits for, ends.
func TestD2RemovedChannelEnds(t *testing.T) {
	t.Parallel()
	b := setupBench(t)
	b.Activities.Settings.ChannelGrace = 0
	b.ok(b.engine.EnsureChannel(t.Context(), "removed"))
	b.deploy()
	b.eventually("it ends", func() error {
		desc, err := b.temporal.DescribeWorkflowExecution(t.Context(), workflows.IDChannel("removed"), "")
		if got := desc.GetWorkflowExecutionInfo().GetStatus(); err == nil && got != enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED {
			err = fmt.Errorf("it is %s", got)
		}
		return err
	})
}
