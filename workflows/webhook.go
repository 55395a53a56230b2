package workflows

import (
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/workflow"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
)

// deliveryPauses are the pauses between attempts, each from the end of the attempt before. There is
// one attempt more than pauses. For example, if each attempt fails at once, they are made at
// 12:00:00, 12:00:10, 12:00:40 and 12:01:40.
var deliveryPauses = []time.Duration{10 * time.Second, 30 * time.Second, 60 * time.Second}

// DeliverWebhook makes the attempts of one delivery round. A run that replaces another one
// continues with the attempt that is due, since the database knows the attempts that were made.
// Another attempt follows only after the outcome DeliveryRetry, and only while a pause is left.
func DeliverWebhook(ctx workflow.Context, in RoundInput) error {
	args := activities.RoundArgs{TaskID: in.TaskID, Round: in.Round}
	var state activities.RoundState
	// A run that replaces another one must not repeat the attempts that are on record.
	loadCtx := workflow.WithLocalActivityOptions(ctx, localOptions("read how far the round is"))
	if err := workflow.ExecuteLocalActivity(loadCtx, nameLoadRound, args).Get(ctx, &state); err != nil {
		return err
	}
	// The round was delivered, a newer one has begun, or the task is gone.
	if !state.Open {
		return nil
	}
	// The run before may have made an attempt. Its pause goes on here.
	if wait := state.NotBefore.Sub(workflow.Now(ctx)); !state.NotBefore.IsZero() && wait > 0 {
		if err := sleep(ctx, wait, state.Attempt); err != nil {
			return err
		}
	}
	// Wait goes with the attempt, so that the attempt can record when the next one is due. It is
	// 0 for the last one.
	for args.Attempt = state.Attempt; ; args.Attempt++ {
		args.Wait = 0
		if args.Attempt <= len(deliveryPauses) {
			args.Wait = deliveryPauses[args.Attempt-1]
		}
		attempt := fmt.Sprintf("attempt %d of %d", args.Attempt, len(deliveryPauses)+1)
		workflow.SetCurrentDetails(ctx, attempt+
			" is under way, or waits for a permit: the last failure of the pending activity says what it waits behind")
		actCtx := workflow.WithActivityOptions(ctx, deliveryOptions(attempt))
		var outcome mediagate.DeliveryOutcome
		if err := workflow.ExecuteActivity(actCtx, acts.DeliverWebhook, args).Get(ctx, &outcome); err != nil {
			return err
		}
		if outcome != mediagate.DeliveryRetry || args.Wait == 0 {
			return nil
		}
		if err := sleep(ctx, args.Wait, args.Attempt+1); err != nil {
			return err
		}
	}
}

// sleep waits until the next attempt, and shows that on the run's page.
func sleep(ctx workflow.Context, d time.Duration, next int) error {
	before := fmt.Sprintf("before attempt %d", next)
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("waiting %s %s", d.Round(time.Second), before))
	return workflow.NewTimerWithOptions(ctx, d, workflow.TimerOptions{Summary: before}).Get(ctx, nil)
}

// childOptions returns the options with which the task's own run starts a delivery round.
func childOptions(taskID string, round int) workflow.ChildWorkflowOptions {
	return workflow.ChildWorkflowOptions{
		WorkflowID: IDWebhook(taskID, round),
		TaskQueue:  QueueMain,
		// The task's run completes at once. The delivery may take minutes.
		ParentClosePolicy: enumspb.PARENT_CLOSE_POLICY_ABANDON,
		// The task's run starts a round once. Only the wake scan starts another run of it.
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		StaticSummary:         "callback of " + taskID,
	}
}
