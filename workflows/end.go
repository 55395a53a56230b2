package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
)

// end settles. The terminal state that comes back counts, whoever wrote it. A
// job that still runs at the vendor is stopped first, where that can be.
func (g *generate) end(ctx workflow.Context, status mediagate.Status, failure *mediagate.Failure) error {
	return g.settle(ctx, activities.SettleArgs{Status: status, Failure: failure})
}

// failUnlessKnown fails a task whose patience is over. The end of its attempt,
// where it came to be known after the run had looked, counts for more: the task
// goes on with that.
func (g *generate) failUnlessKnown(ctx workflow.Context, failure *mediagate.Failure) error {
	return g.settle(ctx, activities.SettleArgs{
		Status: mediagate.StatusFailed, Failure: failure, WithoutOutcome: !outcomeKnown(g.story),
	})
}

func (g *generate) settle(ctx workflow.Context, end activities.SettleArgs) error {
	if g.story.CanCancel && g.story.State == mediagate.AttemptAccepted {
		actCtx := workflow.WithActivityOptions(ctx, ask(g.provider(), "cancel the vendor's job", 30*time.Second))
		if err := workflow.ExecuteActivity(actCtx, acts.CancelJob, g.attempt()).Get(ctx, nil); err != nil {
			g.log.Warn("vendor job not cancelled", "error", err)
		}
	}
	end.TaskID, end.N = g.in.TaskID, g.story.N
	if end.Failure != nil {
		g.failure = end.Failure.Code
	}
	end.Failure = publicFailure(end.Failure)
	g.showWork(ctx, "settling: "+string(end.Status))
	return g.database(ctx, "settle: "+string(end.Status), acts.Settle, end)
}

// publicFailure keeps operators' words out of a task's failure.
func publicFailure(f *mediagate.Failure) *mediagate.Failure {
	if f != nil && f.Code == mediagate.CodeFunds {
		return &mediagate.Failure{Code: mediagate.CodeProviderAway, Message: f.Message, Retryable: true}
	}
	return f
}

// sweep removes files that were copied for an end that did not come.
func (g *generate) sweep(ctx workflow.Context) error {
	if g.story.Status == mediagate.StatusCompleted || !g.story.Succeeded {
		return nil
	}
	ctx = workflow.WithActivityOptions(ctx, mirror("remove files that nobody will see", 0))
	if err := workflow.ExecuteActivity(ctx, acts.SweepResults, activities.TaskArgs{TaskID: g.in.TaskID}).Get(ctx, nil); err != nil {
		g.log.Warn("files not removed", "error", err)
	}
	return nil
}

// callback starts the delivery pending round, in a workflow of its own
// that outlives this one (D14). Whoever started it first, it runs.
func (g *generate) callback(ctx workflow.Context) error {
	if g.story.WebhookRound == 0 || g.story.WebhookState != mediagate.WebhookPending {
		return nil
	}
	ctx = workflow.WithChildOptions(ctx, childOptions(g.in.TaskID, g.story.WebhookRound))
	child := workflow.ExecuteChildWorkflow(ctx, DeliverWebhook, RoundInput{TaskID: g.in.TaskID, Round: g.story.WebhookRound})
	return started(child.GetChildWorkflowExecution().Get(ctx, nil))
}
