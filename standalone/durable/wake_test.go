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
	"github.com/mediagate/mediagate/task"
	"github.com/mediagate/mediagate/workflows"
)

// bench is a world with one task.
type bench struct {
	*world
	task mediagate.Task
}

func setupBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{world: setup(t)}
	b.task = b.NewVideo()
	b.task.DeadlineAt = time.Now().Add(1000 * time.Hour)
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
	b.startWorker([]string{activitytest.AsyncChannel}, activitytest.AsyncProvider, activitytest.SyncProvider)
}

func (b *bench) ok(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// eventually waits until check returns nil. While the task's run rests, the doubles' clock runs a
// hundred times as fast, so that wakes come due. While the run works, it does not: the ten seconds
// in which an attempt must be sent (D4) would last a tenth of a second.
func (b *bench) eventually(what string, check func() error) {
	b.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("%s: not within %s: %v", what, patience, err)
		}
		if b.isResting() {
			b.later(5 * time.Second)
		}
	}
}

// isResting reports whether the task has no run, or one without a workflow task or an activity.
func (b *bench) isResting() bool {
	desc, err := b.temporal.DescribeWorkflowExecution(b.t.Context(), b.task.ID, "")
	return err != nil || desc.GetPendingWorkflowTask() == nil && len(desc.GetPendingActivities()) == 0
}

// isEnded is a condition of eventually: the task has ended, and its callback.
func (b *bench) isEnded() error {
	t := b.world.task(b.task.ID)
	if !t.Status.Terminal() || t.Webhook.State == mediagate.WebhookPending {
		return fmt.Errorf("it is %s, its webhook %+v", t.Status, t.Webhook)
	}
	return nil
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

// terminated checks that the reason that operators read has the word.
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

// D1, D2: a deploy broke the workflow, and the next one mended it. The runs of the first
// cannot go on with the code of the second.
func TestD2WedgedRunIsReplaced(t *testing.T) {
	t.Parallel()
	blocked := func(ctx workflow.Context, _ workflows.Input) error { return forEver(ctx) }
	cases := map[string]struct {
		broken  func(workflow.Context, workflows.Input) error
		cancel  bool // the client cancels meanwhile
		status  mediagate.Status
		submits int
	}{
		"blocked before the submit": {blocked, false, mediagate.StatusCompleted, 1},
		"blocked and cancelled":     {blocked, true, mediagate.StatusCancelled, 0},
		"blocked after the submit": {func(ctx workflow.Context, in workflows.Input) error {
			if err := workflow.Sleep(ctx, time.Millisecond); err != nil { // which the mended code does not expect
				return err
			}
			step := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
				TaskQueue: workflows.QueueCall(activitytest.AsyncProvider), StartToCloseTimeout: time.Minute,
			})
			args := activities.StepArgs{TaskID: in.TaskID, Step: task.Step{Kind: task.Submit, N: 1}}
			if err := workflow.ExecuteActivity(step, "SubmitJob", args).Get(ctx, nil); err != nil {
				return err
			}
			return forEver(ctx)
		}, false, mediagate.StatusCompleted, 1},
		"panics": {func(workflow.Context, workflows.Input) error { panic("a deploy that went wrong") }, false, mediagate.StatusCompleted, 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupBench(t)
			stuck := b.blocked(b.task.ID)
			if name == "panics" {
				stuck = b.failing(b.task.ID)
			}
			b.wedge("Generate", c.broken, func() error { return b.engine.Start(t.Context(), b.task) }, stuck)
			wedged := b.runID(b.task.ID)
			if c.cancel {
				b.change(b.task.ID, task.CancelRequested{})
			}
			b.deploy()
			b.eventually("the task ends and is called back", b.isEnded)
			if got, end, submits := b.world.task(b.task.ID), b.Store.End(b.task.ID), len(b.Async.Submits()); got.Status != c.status || end.Times != 1 || submits != c.submits {
				t.Errorf("it ended %d times, as %s, after %d submits", end.Times, got.Status, submits)
			}
			if name == "panics" { // the run heals by itself once its workflow task is tried again
				return
			}
			b.eventually("another run is there", func() error {
				if b.runID(b.task.ID) == wedged {
					return errors.New("not yet")
				}
				return nil
			})
			b.terminated(b.task.ID, wedged, "workflow tasks of this run fail")
		})
	}
}

// D2: the signal of a change that is lost, or that an operator's reset has left out, is
// made good.
func TestD2LostSignalIsMadeGood(t *testing.T) {
	t.Parallel()
	b := &bench{world: setup(t)}
	b.task = b.NewVideo()
	b.Store.Add(b.task)
	b.deploy()
	b.ok(b.engine.Start(t.Context(), b.task))
	b.await("the run sleeps", func() bool { return len(b.Async.Submits()) == 1 && len(b.pending(b.task.ID)) == 0 })
	b.change(b.task.ID, task.VendorEnded{N: 1, Outcome: activitytest.Success()})
	b.eventually("the task ends and is called back", b.isEnded)
}

// D2: the same for a delivery round.
func TestD2WedgedRoundIsReplaced(t *testing.T) {
	t.Parallel()
	b := setupBench(t)
	b.change(b.task.ID, task.FailRequested{}, task.EndDue{})
	id := workflows.IDWebhook(b.task.ID, 1)
	broken := func(ctx workflow.Context, _ workflows.RoundInput) error { return forEver(ctx) }
	b.wedge("DeliverWebhook", broken, func() error {
		return b.engine.EnsureRound(t.Context(), mediagate.WebhookRound{TaskID: b.task.ID, AccountID: b.task.AccountID, Round: 1})
	}, b.blocked(id))
	wedged := b.runID(id)
	b.deploy()
	b.eventually("the callback is delivered", b.isEnded)
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
			keep := func() error { return keeper.Wake(t.Context()) }
			stuck := b.blocked(workflows.IDWake)
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
			b.wedge("Wake", c.broken, func() error {
				err := keep()
				wedged = b.runID(workflows.IDWake)
				return err
			}, stuck)
			b.ok(keep())
			b.ok(keep()) // at the same point as before
			if len(replaced) != 1 || b.runID(workflows.IDWake) == wedged {
				t.Fatalf("replaced: %v", replaced)
			}
			b.terminated(workflows.IDWake, wedged, c.word)
			b.deploy()
			b.eventually("its activity runs", func() error {
				desc, err := b.temporal.DescribeWorkflowExecution(t.Context(), workflows.IDWake, "")
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
