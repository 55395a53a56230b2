package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
)

// unknownSyncPatience is how long a lost synchronous submit is left alone
// before the task fails (D6).
const unknownSyncPatience = 60 * time.Second

// lostSenderLook is how often the row is read while a lost sender may still hold
// the vendor's call (D5): one that Temporal cannot be told by stores the answer,
// and signals nobody.
const lostSenderLook = 15 * time.Second

// lookupPauses are the pauses between lookups of a parked, lost submission (D6).
var lookupPauses = []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour}

// lostSubmission is a submission whose fate this run has found open.
type lostSubmission struct {
	attempt int       // its number; 0 for none
	until   time.Time // how long it is left alone where nobody can be asked
	lookups int       // since it was parked
}

// resolve decides on a submission whose fate is open. Where the vendor can be
// asked by our own id, a job that is found goes on as if nothing had
// happened, and proven absence lets the same id be sent again. Where it
// cannot be asked, nothing is ever sent twice without an operator.
func (g *generate) resolve(ctx workflow.Context) error {
	if g.lost.attempt != g.story.N {
		return g.noteLoss(ctx)
	}
	if g.story.CanFind {
		return g.lookUp(ctx)
	}
	if g.inbox.retryOrdered() {
		return g.giveUpAttempt(ctx)
	}
	if g.story.OnUnknown != mediagate.OnUnknownFail {
		return g.parkUnknown(ctx)
	}
	if wait := g.story.CallEnds.Sub(g.clock.now(ctx)); wait > 0 {
		g.show(ctx, "the sender was lost, but its call may be under way: its answer still counts")
		_, err := g.pause(ctx, "the submission's end", min(wait, lostSenderLook))
		return err
	}
	left := g.lost.until.Sub(workflow.Now(ctx))
	if g.late(ctx) {
		return g.expire(ctx, providerTooLate)
	}
	if left <= 0 {
		return g.failUnlessKnown(ctx, &mediagate.Failure{
			Code: mediagate.CodeSubmissionUnknown, Message: submissionUnknown, Retryable: true,
		})
	}
	g.show(ctx, "the vendor's answer was lost, and it cannot be asked: failing soon")
	_, err := g.pause(ctx, "the answer was lost", min(left, g.left(ctx)))
	return err
}

// noteLoss notes that the fate of the newest attempt is open. An operator's
// retry that came before was about something else, and must not give this
// attempt up: only what comes from now on counts. Of a loss that a run before
// this one found, a command with a row that nobody has taken was meant.
func (g *generate) noteLoss(ctx workflow.Context) error {
	known := g.story.ParkReason == mediagate.ParkSubmissionUnknown
	g.lost.attempt, g.lost.until = g.story.N, workflow.Now(ctx).Add(unknownSyncPatience)
	g.inbox.retried()
	for range g.inbox.untakenRetries() {
		g.log.Info("a retry from before the loss is ignored", "attempt", g.lost.attempt)
	}
	commands := g.inbox.untaken()
	for i, command := range commands {
		if err := g.inbox.take(ctx, command); err != nil {
			return err
		}
		if g.inbox.failOrdered() { // which no retry that is ignored may undo
			g.inbox.deferred = commands[i+1:]
			break
		}
		if !known || command.ID == "" {
			g.inbox.retried()
		}
	}
	if len(commands) > 0 && !g.fromOldWorker() { // a retry has moved the deadline
		return g.reload(ctx)
	}
	return nil
}

// giveUpAttempt lets a new attempt follow a lost one: an operator has taken
// the risk of a second charge.
func (g *generate) giveUpAttempt(ctx workflow.Context) error {
	if err := g.database(ctx, "give up the lost attempt", acts.GiveUpAttempt, g.attempt()); err != nil {
		return err
	}
	return g.proceed(ctx, g.story)
}

func (g *generate) lookUp(ctx workflow.Context) error {
	g.showWork(ctx, "the vendor's answer was lost: looking the job up by our own id")
	g.inbox.command = ""
	var res activities.Resolution
	err := g.interruptibly(ctx, ask(g.provider(), "look up the lost submission", time.Minute), acts.ResolveSubmission, g.attempt(), &res)
	switch {
	case temporal.IsCanceledError(err):
		return g.reload(ctx)
	case err != nil:
		return g.parkUnknown(ctx)
	}
	switch {
	case res.Story.State != mediagate.AttemptUnknown:
		return g.proceed(ctx, res.Story)
	case res.Absent:
		g.story = res.Story
		return g.send(ctx, g.story.N)
	case !res.AskAt.IsZero():
		g.story = res.Story
		_, err := g.pause(ctx, "before the next lookup", max(res.AskAt.Sub(g.clock.now(ctx)), time.Second))
		return err
	default:
		g.story = res.Story
		return g.parkUnknown(ctx)
	}
}

// parkUnknown parks a lost submission: lookups become rarer, and it is given
// up an hour after the deadline.
func (g *generate) parkUnknown(ctx workflow.Context) error {
	before := g.story
	err := g.database(ctx, "park: "+string(mediagate.ParkSubmissionUnknown), acts.ParkTask,
		activities.ParkArgs{TaskID: g.in.TaskID, Reason: mediagate.ParkSubmissionUnknown})
	if err != nil || g.story.Status.Terminal() || g.story.CancelRequested || g.told(before) {
		return err
	}
	pause := lookupPauses[min(g.lost.lookups, len(lookupPauses)-1)]
	g.lost.lookups++
	return g.parked(ctx, pause, g.story.DeadlineAt.Add(time.Hour))
}
