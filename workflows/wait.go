package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/mediagate/mediagate/activities"
)

// pause waits without a purpose of its own: any signal but an upstream one
// ends it, and the story is read anew. It reports whether the time ran out.
func (g *generate) pause(ctx workflow.Context, summary string, d time.Duration) (due bool, err error) {
	due, err = g.wait(ctx, summary, d)
	if due && err == nil {
		err = g.reload(ctx)
	}
	return due, err
}

// wait waits for d, or for a signal, after which the story is as it then
// stands. It reports whether the time ran out.
func (g *generate) wait(ctx workflow.Context, summary string, d time.Duration) (due bool, err error) {
	timerCtx, stopTimer := workflow.WithCancel(ctx)
	defer stopTimer()
	timer := workflow.NewTimerWithOptions(timerCtx, d, workflow.TimerOptions{Summary: summary})
	selector := workflow.NewSelector(ctx)
	selector.AddFuture(timer, func(workflow.Future) { due = true })
	came := g.inbox.whileWaiting(ctx, selector, g.story.N)
	for !due && !came.signalled && !came.runCancelled && len(came.commands) == 0 {
		selector.Select(ctx)
	}
	if came.runCancelled {
		return false, g.recordCancel(ctx)
	}
	if err := g.inbox.takeAll(ctx, came.commands); err != nil {
		return false, err
	}
	if came.signalled || len(came.commands) > 0 {
		return false, g.reload(ctx)
	}
	return due, nil
}

// interruptibly runs a step that may take long, and listens meanwhile: a
// cancel, an operator's "fail" and a task that has ended otherwise stop the
// step. The run waits for it to end all the same, where the options say so,
// before it settles (D5). The options bound it, so that the deadline counts too.
func (g *generate) interruptibly(ctx workflow.Context, options workflow.ActivityOptions, activity, args, result any) error {
	stepCtx, stop := workflow.WithCancel(workflow.WithActivityOptions(ctx, options))
	future := workflow.ExecuteActivity(stepCtx, activity, args)
	done := false
	selector := workflow.NewSelector(ctx)
	selector.AddFuture(future, func(workflow.Future) { done = true })
	came := g.inbox.whileWorking(ctx, selector, g.fromOldWorker())
	for !done {
		*came = arrivals{}
		selector.Select(ctx)
		if came.cancel || came.runCancelled {
			stop()
		}
		if came.runCancelled && !done && g.began > activities.BeforeOneStep {
			// A copy ends its task by itself, and must find the cancel in the row.
			// It is not yet recorded for the run: what the step tells may be older.
			if err := g.database(ctx, "record the cancel", acts.CancelTask, activities.TaskArgs{TaskID: g.in.TaskID}); err != nil {
				return err
			}
		}
		if err := g.inbox.takeAll(ctx, came.commands); err != nil {
			return err
		}
		if came.wake && !done {
			if err := g.glance(ctx); err != nil {
				return err
			}
		}
		if g.inbox.failOrdered() || came.wake && g.ending() {
			stop()
		}
	}
	return future.Get(ctx, result)
}
