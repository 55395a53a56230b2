package workflows

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
)

const (
	describeTimeout = 10 * time.Second
	startTimeout    = 10 * time.Second
	// beatsWithin is how old the last heartbeat of a step at work may be.
	beatsWithin = time.Minute
	// failingAttempts is from when on a workflow task is not only unlucky: the
	// fifth attempt comes half a minute after the first.
	failingAttempts = 5
)

// description is a workflow's newest run as Temporal has it; nil where there is none.
type description = workflowservice.DescribeWorkflowExecutionResponse

func (c Client) describe(ctx context.Context, id string) (*description, error) {
	desc, err := c.Temporal.DescribeWorkflowExecution(ctx, id, "")
	if _, ok := errors.AsType[*serviceerror.NotFound](err); ok {
		return nil, nil
	}
	return desc, err
}

func running(desc *description) bool {
	return desc.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
}

// Replace terminates the task's run and starts another, as Ensure does where
// there is none. A run with a step that gives signs of life is left alone: it
// copies a large file, and the step's own bounds end it. So is one that is younger
// than patience. Only the run that was looked at is terminated, never one that has
// come in its place meanwhile.
func (c Client) Replace(ctx context.Context, t mediagate.Task, patience time.Duration, reason string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*describeTimeout)
	defer cancel()
	desc, err := c.describe(ctx, t.ID)
	if err != nil || running(desc) && (age(desc) < patience || atWork(desc, time.Now())) {
		return false, err
	}
	if err := c.terminate(ctx, desc, reason); err != nil {
		return false, err
	}
	return true, c.startAnew(ctx, t)
}

// age is how long ago the run began.
func age(desc *description) time.Duration {
	return time.Since(desc.GetWorkflowExecutionInfo().GetStartTime().AsTime())
}

// RepeatCancel tells the task's run that its row has a cancel request, or starts
// one. A run that is as old as patience and whose workflow tasks fail is replaced, as by Replace.
// Until it is, no signal goes to one that has begun to fail: that would start the
// count of its failures anew.
func (c Client) RepeatCancel(ctx context.Context, t mediagate.Task, patience time.Duration, reason string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*describeTimeout)
	defer cancel()
	desc, err := c.describe(ctx, t.ID)
	if err != nil {
		return false, err
	}
	task := desc.GetPendingWorkflowTask()
	switch {
	case !running(desc):
		return false, c.startAnew(ctx, t) // which begins by reading the row
	case task.GetAttempt() <= 1:
		return false, c.SignalCancel(ctx, t.ID)
	case !failing(desc) || age(desc) < patience:
		return false, nil
	}
	if err := c.terminate(ctx, desc, reason); err != nil {
		return false, err
	}
	return true, c.startAnew(ctx, t)
}

// ReplaceWebhook does for a delivery round what Replace does for a task. One that
// waits for its turn is left alone as well: a new run would lose it.
func (c Client) ReplaceWebhook(ctx context.Context, w mediagate.WebhookRound, reason string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*describeTimeout)
	defer cancel()
	desc, err := c.describe(ctx, IDWebhook(w.TaskID, w.Round))
	if err != nil || running(desc) && (atWork(desc, time.Now()) || waitsForPlace(desc)) {
		return false, err
	}
	if err := c.terminate(ctx, desc, reason); err != nil {
		return false, err
	}
	return true, c.EnsureWebhook(ctx, w)
}

// waitsForPlace reports that the run's delivery found no place when it was last
// tried. Temporal tries it again.
func waitsForPlace(desc *description) bool {
	if failing(desc) {
		return false
	}
	for _, step := range desc.GetPendingActivities() {
		if last := step.GetLastFailure(); last != nil &&
			activities.WaitsForPlace(temporal.GetDefaultFailureConverter().FailureToError(last)) {
			return true
		}
	}
	return false
}

// terminate ends that run. One that has ended by itself is as good.
func (c Client) terminate(ctx context.Context, desc *description, reason string) error {
	if !running(desc) {
		return nil
	}
	run := desc.GetWorkflowExecutionInfo().GetExecution()
	err := c.Temporal.TerminateWorkflow(ctx, run.GetWorkflowId(), run.GetRunId(), reason)
	if _, ok := errors.AsType[*serviceerror.NotFound](err); ok {
		return nil
	}
	return err
}

// failing reports that the run's workflow tasks fail again and again.
func failing(desc *description) bool {
	return desc.GetPendingWorkflowTask().GetAttempt() >= failingAttempts
}

// atWork reports that a step of the run has just given a sign of life.
func atWork(desc *description, now time.Time) bool {
	if failing(desc) {
		return false
	}
	for _, step := range desc.GetPendingActivities() {
		if beat := step.GetLastHeartbeatTime(); beat != nil && now.Sub(beat.AsTime()) < beatsWithin {
			return true
		}
	}
	return false
}

// Keeper keeps the singletons running. It remembers how it found them, and is
// for one goroutine.
type Keeper struct {
	Client Client
	// Replaced is called for each run that was terminated, with the reason.
	Replaced func(id, reason string)

	still map[string]string // by workflow: the point at which its run did nothing, when it was last looked at
}

// Reconciler starts the reconciler, or replaces a run of it that gets nowhere.
func (k *Keeper) Reconciler(ctx context.Context) error {
	return k.keep(ctx, IDReconciler, k.Client.EnsureReconciler)
}

// Channel does so for a channel's workflow.
func (k *Keeper) Channel(ctx context.Context, name string) error {
	return k.keep(ctx, IDChannel(name), func(ctx context.Context) error { return k.Client.EnsureChannel(ctx, name) })
}

func (k *Keeper) keep(ctx context.Context, id string, ensure func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*describeTimeout)
	defer cancel()
	desc, err := k.Client.describe(ctx, id)
	if err != nil {
		return err
	}
	trouble := k.judge(id, desc)
	switch {
	case !running(desc):
		return ensure(ctx)
	case trouble == "":
		return nil
	}
	reason := "mediagate's worker: " + trouble + ". A new run takes over; what it works on is in the database"
	if err := k.Client.terminate(ctx, desc, reason); err != nil {
		return err
	}
	k.Replaced(id, reason)
	return ensure(ctx)
}

// judge tells what is wrong with a run; nothing for a healthy one. A singleton
// has a long activity, or is about to start the next one: a run that has
// neither, and is at the same point at the next look, is blocked.
func (k *Keeper) judge(id string, desc *description) string {
	before := k.still[id]
	delete(k.still, id)
	switch info := desc.GetWorkflowExecutionInfo(); {
	case !running(desc):
		return ""
	case failing(desc):
		return fmt.Sprintf("the workflow tasks of this run fail, the last one at attempt %d", desc.GetPendingWorkflowTask().GetAttempt())
	case len(desc.GetPendingActivities()) > 0 || desc.GetPendingWorkflowTask() != nil:
		return ""
	default:
		point := fmt.Sprint(info.GetExecution().GetRunId(), info.GetHistoryLength())
		if before == point {
			return "this run is blocked, without an activity"
		}
		if k.still == nil {
			k.still = make(map[string]string)
		}
		k.still[id] = point
		return ""
	}
}
