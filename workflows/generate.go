package workflows

import (
	"errors"

	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
)

// Generate sees one task through: submit, await, mirror, settle, and hands
// the callback to its own workflow. It ends when the row is terminal.
func Generate(ctx workflow.Context, in Input) error {
	outer := ctx
	// Steps run to their end even when the run is cancelled from outside: the
	// cancel is an input like any other, and the money must still be settled.
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	g := &generate{in: in, log: workflow.GetLogger(ctx), inbox: openInbox(ctx, outer, in.TaskID)}
	return g.run(ctx)
}

// generate is the state of a run: what it was told, nothing that the database
// does not know as well.
type generate struct {
	in  Input
	log log.Logger

	began   activities.Generation // of the worker that began this run
	story   mediagate.Story
	clock   clock
	inbox   inbox
	lost    lostSubmission
	display display

	refusals int                   // attempts that the vendor refused for now, in a row
	retryDue bool                  // a parking's wait is over: the step may be tried once more
	modalOf  int                   // the attempt whose wait for modal parameters this run has noted
	failure  mediagate.FailureCode // that this run has settled for, if with one
	backlog  backlog
}

// errRowMissing ends a run whose task is not in the database.
var errRowMissing = errors.New("row_missing")

func (g *generate) run(ctx workflow.Context) error {
	if err := g.reload(ctx); err != nil {
		return err
	}
	if g.began = activities.Began(g.story); g.began > activities.BeforeOneStep {
		g.display = display{shown: asStarted(ctx), started: true}
	}
	for {
		if g.story.Missing {
			return temporal.NewNonRetryableApplicationError(
				"the database has no such task: see the memo for account, key and hold", "row_missing", errRowMissing)
		}
		if g.story.Status.Terminal() {
			return g.finish(ctx)
		}
		if g.inbox.runCancelled() && !g.inbox.cancelRecorded {
			if err := g.recordCancel(ctx); err != nil {
				return err
			}
			continue
		}
		if workflow.GetInfo(ctx).GetContinueAsNewSuggested() && !g.inbox.onlyHere() {
			// What a run knows besides the row, it can learn again.
			return workflow.NewContinueAsNewError(ctx, Generate, g.in)
		}
		g.inbox.unseen = false
		if err := g.step(ctx); err != nil {
			return err
		}
	}
}

// finish hands over what follows the task's end. Lists are told of that end last:
// what is written together with the run's own end costs no write of theirs.
func (g *generate) finish(ctx workflow.Context) error {
	g.explainEnd(ctx)
	if !g.display.started {
		g.list(ctx, g.story.Status)
	}
	err := g.callback(ctx)
	if err == nil {
		err = g.sweep(ctx)
	}
	if g.display.started {
		g.list(ctx, g.story.Status)
	}
	return err
}

// recordCancel makes an operator's cancel of the run the task's own cancel.
func (g *generate) recordCancel(ctx workflow.Context) error {
	g.inbox.cancelRecorded = true
	return g.database(ctx, "record the cancel", acts.CancelTask, activities.TaskArgs{TaskID: g.in.TaskID})
}

// step takes the next step that the story asks for. An error is one of the
// workflow's own machinery; what a step could not do has parked the task.
func (g *generate) step(ctx workflow.Context) error {
	st := g.story
	switch {
	case st.CancelRequested:
		return g.end(ctx, mediagate.StatusCancelled, nil)
	case g.inbox.failOrdered():
		return g.end(ctx, mediagate.StatusFailed, g.parkFailure())
	case st.N == 0 && st.Failure != nil:
		return g.end(ctx, mediagate.StatusFailed, st.Failure)
	case st.N == 0 && st.JudgeInputs:
		return g.judge(ctx)
	case g.backlog.n > 0:
		return g.send(ctx, g.backlog.n)
	case !st.QueuedAt.IsZero():
		return g.queued(ctx)
	case st.N == 0:
		return g.send(ctx, 1)
	}
	switch st.State {
	case mediagate.AttemptIntent:
		if g.late(ctx) {
			return g.awaitSender(ctx)
		}
		return g.submit(ctx, st.N)
	case mediagate.AttemptUnknown:
		return g.resolve(ctx)
	case mediagate.AttemptRejected:
		return g.afterRejection(ctx)
	default:
		return g.stepAccepted(ctx)
	}
}

// stepAccepted is step for an attempt that the vendor took.
func (g *generate) stepAccepted(ctx workflow.Context) error {
	st := g.story
	switch {
	case st.Failure != nil:
		return g.end(ctx, mediagate.StatusFailed, st.Failure)
	case st.ModalExpired:
		return g.end(ctx, mediagate.StatusFailed, mediagate.NoModal())
	case !st.ModalUntil.IsZero():
		return g.modal(ctx)
	case st.Succeeded && !st.Mirrored:
		return g.mirror(ctx)
	case st.Succeeded:
		return g.end(ctx, mediagate.StatusCompleted, nil)
	case st.State == mediagate.AttemptEnded:
		return g.send(ctx, st.N+1) // given up: the next attempt
	case st.Trouble != "" || troubles(st.ParkReason):
		return g.parkTrouble(ctx)
	default:
		return g.await(ctx)
	}
}

// reload reads the story anew, which the run goes on from.
func (g *generate) reload(ctx workflow.Context) error { return g.load(ctx, false) }

// glance reads the story anew while a step is under way, whose own story the run
// goes on from.
func (g *generate) glance(ctx workflow.Context) error { return g.load(ctx, true) }

func (g *generate) load(ctx workflow.Context, working bool) error {
	ctx = workflow.WithLocalActivityOptions(ctx, load())
	err := g.takeStory(ctx, workflow.ExecuteLocalActivity(ctx, nameLoadTask, activities.LoadArgs{TaskID: g.in.TaskID, Working: working}))
	if err == nil {
		g.clock.readJustNow(ctx, g.story.ReadAt)
	}
	return err
}

// takeStory makes the future's story the run's. It decodes into a fresh one:
// what a story leaves out is over, and must not linger from the one before.
func (g *generate) takeStory(ctx workflow.Context, future workflow.Future) error {
	var st mediagate.Story
	if err := future.Get(ctx, &st); err != nil {
		return err
	}
	g.story = st
	g.clock.read(ctx, st.ReadAt)
	return nil
}

// fromOldWorker reports that the story in force comes from a worker of before
// stories had a date. What the code of that time did next is in the run's
// history, which cannot change: only a cancel stopped a step, and what the
// database's absence kept from being sent parked.
func (g *generate) fromOldWorker() bool { return g.story.ReadAt.IsZero() }

// provider is whose queue the next call goes to.
func (g *generate) provider() string {
	if g.story.Provider != "" {
		return g.story.Provider
	}
	return g.in.Provider
}

func (g *generate) attempt() activities.AttemptArgs {
	return activities.AttemptArgs{TaskID: g.in.TaskID, N: g.story.N}
}

// proceed notes that a step succeeded: a parked task goes on.
func (g *generate) proceed(ctx workflow.Context, st mediagate.Story) error {
	g.story, g.retryDue = st, false
	g.inbox.retried()
	if st.ParkReason == "" || st.Status.Terminal() || st.Missing {
		return nil
	}
	g.lost.lookups = 0
	return g.database(ctx, "unpark", acts.UnparkTask, activities.TaskArgs{TaskID: g.in.TaskID})
}

// database runs a short step on our own tables and takes its story.
func (g *generate) database(ctx workflow.Context, id string, activity, args any) error {
	ctx = workflow.WithActivityOptions(ctx, database(id))
	return g.takeStory(ctx, workflow.ExecuteActivity(ctx, activity, args))
}
