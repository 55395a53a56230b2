package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
)

// park makes the task visible as stuck and waits: for an operator, for the
// next try of its own, or for the end of everybody's patience. It returns
// when the step is to be tried again, or when the task has ended.
func (g *generate) park(ctx workflow.Context, reason mediagate.ParkReason) error {
	if err := g.database(ctx, "park: "+string(reason), acts.ParkTask, activities.ParkArgs{TaskID: g.in.TaskID, Reason: reason}); err != nil {
		return err
	}
	if g.story.Status.Terminal() || g.story.CancelRequested {
		return nil
	}
	return g.parked(ctx, g.story.ParkRetry, g.story.ParkedAt.Add(g.story.ParkTimeout))
}

// parked waits up to retry (with jitter) and fails the task once giveUp has
// passed.
func (g *generate) parked(ctx workflow.Context, retry time.Duration, giveUp time.Time) error {
	now := g.now(ctx)
	if !now.Before(giveUp) {
		return g.giveUp(ctx)
	}
	g.showParked(ctx, giveUp)
	g.woken = false
	due, err := g.wait(ctx, "parked: "+string(g.story.ParkReason), min(jitter(now, retry), giveUp.Sub(now)))
	if err == nil && due && !g.now(ctx).Before(giveUp) {
		return g.giveUp(ctx)
	}
	g.again = due || g.woken || g.ordered == mediagate.ActionRetry
	return err
}

// giveUp fails a task that has been parked for too long, unless something has
// become known of it meanwhile that no signal has told yet.
func (g *generate) giveUp(ctx workflow.Context) error {
	before := g.story
	if err := g.reload(ctx); err != nil {
		return err
	}
	now := g.story
	switch {
	case g.moot(), now.N != before.N, now.State != before.State:
		return nil
	case known(now) && !known(before):
		return nil
	case now.State == mediagate.AttemptAccepted && troubles(now.ParkReason) && heard(now) && !known(now):
		g.again = true
		return nil
	}
	return g.lapse(ctx, g.parkFailure())
}

// moot reports that it no longer matters whether the step can be done.
func (g *generate) moot() bool {
	return g.story.Missing || g.story.Status.Terminal() || g.story.CancelRequested
}

// known reports that the story tells how the attempt ended.
func known(st mediagate.Story) bool { return st.Succeeded || st.Failure != nil }

// heard reports that nothing keeps the vendor from telling us of the job.
func heard(st mediagate.Story) bool { return st.Trouble == "" && !st.Unheard }

// jitter spreads the tries of many parked tasks by up to a fifth.
func jitter(now time.Time, d time.Duration) time.Duration {
	return d + d*time.Duration(now.UnixMicro()%200)/1000
}

// parkFailure is how a task ends that nobody mended.
func (g *generate) parkFailure() *mediagate.Failure {
	f := &mediagate.Failure{Code: mediagate.CodeProviderAway, Message: "the provider is not available", Retryable: true}
	switch g.story.ParkReason {
	case mediagate.ParkCredentials:
		f.Code, f.Message = mediagate.CodeProviderRefused, "the provider refused our account"
	case mediagate.ParkSubmissionUnknown:
		f.Code, f.Message = mediagate.CodeSubmissionUnknown, submissionUnknown
	case mediagate.ParkResult, mediagate.ParkStorage:
		f.Code, f.Message = mediagate.CodeResultUnavailable, "the result could not be fetched and stored"
	case mediagate.ParkInternal:
		f.Code, f.Message = mediagate.CodeInternal, "an internal error ended the task"
	case "":
		f.Code, f.Message = mediagate.CodeInternal, "the task was ended by an operator"
	case mediagate.ParkProviderAway, mediagate.ParkFunds, mediagate.ParkChannelMissing, mediagate.ParkJobLost:
	}
	return f
}

const submissionUnknown = "it is not known whether the provider took the request"

// parkTrouble parks an attempt that its channel cannot ask for. Each time
// that the parking's wait is over, the channel may ask again; once it got an
// answer, the task is no longer stuck. After the deadline an answer alone does
// not help: the job must have ended.
func (g *generate) parkTrouble(ctx workflow.Context) error {
	wait := g.story.ParkRetry
	if g.again && g.story.Trouble == "" {
		if err := g.reload(ctx); err != nil { // no signal tells of an answer
			return err
		}
		if g.moot() || known(g.story) {
			g.again, g.ordered = false, ""
			return nil
		}
	}
	switch {
	case !g.again && g.story.Trouble != "":
		return g.park(ctx, g.story.Trouble)
	case g.again && heard(g.story) && g.late(ctx):
		g.again, g.ordered = false, ""
		return g.lastCall(ctx)
	case g.again && heard(g.story):
		return g.did(ctx, g.story)
	case g.again:
		g.again, g.ordered = false, ""
		if err := g.database(ctx, "let the channel ask again", acts.RestoreAwait, g.attempt()); err != nil {
			return err
		}
		wait = max(wait, troubleShows)
	}
	return g.parked(ctx, wait, g.story.ParkedAt.Add(g.story.ParkTimeout))
}

// troubleShows is how long it takes a channel that asks again to find that the
// trouble is still there: a few refusals, far apart.
const troubleShows = 2 * time.Minute

// unknownSyncPatience is how long a lost synchronous submit is left alone
// before the task fails (D6).
const unknownSyncPatience = 60 * time.Second

// lookupPauses are the pauses between lookups of a parked, lost submission (D6).
var lookupPauses = []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour}

// resolve decides on a submission whose fate is open. Where the vendor can be
// asked by our own id, a job that is found goes on as if nothing had
// happened, and proven absence lets the same id be sent again. Where it
// cannot be asked, nothing is ever sent twice without an operator.
func (g *generate) resolve(ctx workflow.Context) error {
	if g.lost != g.story.N {
		return g.lose(ctx)
	}
	if g.story.CanFind {
		return g.lookUp(ctx)
	}
	if g.ordered == mediagate.ActionRetry {
		return g.giveUpAttempt(ctx)
	}
	if g.story.OnUnknown != mediagate.OnUnknownFail {
		return g.parkUnknown(ctx)
	}
	left := g.lostTill.Sub(workflow.Now(ctx))
	if g.late(ctx) {
		return g.expire(ctx, providerTooLate)
	}
	if left <= 0 {
		return g.lapse(ctx, &mediagate.Failure{
			Code: mediagate.CodeSubmissionUnknown, Message: submissionUnknown, Retryable: true,
		})
	}
	g.show(ctx, "the vendor's answer was lost, and it cannot be asked: failing soon")
	_, err := g.pause(ctx, "the answer was lost", min(left, g.left(ctx)))
	return err
}

// lose notes that the fate of the newest attempt is open. An operator's retry
// that came before was about something else, and must not give this attempt
// up: only what comes from now on counts. Of a loss that a run before this one
// found, a command with a row that nobody has taken was meant.
func (g *generate) lose(ctx workflow.Context) error {
	known := g.story.ParkReason == mediagate.ParkSubmissionUnknown
	g.lost, g.lostTill = g.story.N, workflow.Now(ctx).Add(unknownSyncPatience)
	if g.ordered == mediagate.ActionRetry {
		g.ordered = ""
	}
	for g.retry.ReceiveAsync(nil) {
		g.log.Info("a retry from before the loss is ignored", "attempt", g.lost)
	}
	commands := g.untaken()
	for i, command := range commands {
		if err := g.obey(ctx, command); err != nil {
			return err
		}
		if g.ordered == mediagate.ActionFail { // which no retry that is ignored may undo
			g.held = commands[i+1:]
			break
		}
		if g.ordered == mediagate.ActionRetry && (!known || command.ID == "") {
			g.ordered = ""
		}
	}
	if len(commands) > 0 && !g.undated() { // a retry has moved the deadline
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
	return g.did(ctx, g.story)
}

func (g *generate) lookUp(ctx workflow.Context) error {
	g.show(ctx, "the vendor's answer was lost: looking the job up by our own id")
	g.ordered = ""
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
		return g.did(ctx, res.Story)
	case res.Absent:
		g.story = res.Story
		return g.send(ctx, g.story.N)
	case !res.AskAt.IsZero():
		g.story = res.Story
		_, err := g.pause(ctx, "before the next lookup", max(res.AskAt.Sub(g.now(ctx)), time.Second))
		return err
	default:
		g.story = res.Story
		return g.parkUnknown(ctx)
	}
}

// parkUnknown parks a lost submission: lookups become rarer, and it is given
// up an hour after the deadline.
func (g *generate) parkUnknown(ctx workflow.Context) error {
	err := g.database(ctx, string("park: "+mediagate.ParkSubmissionUnknown), acts.ParkTask,
		activities.ParkArgs{TaskID: g.in.TaskID, Reason: mediagate.ParkSubmissionUnknown})
	if err != nil || g.story.Status.Terminal() || g.story.CancelRequested {
		return err
	}
	pause := lookupPauses[min(g.lookups, len(lookupPauses)-1)]
	g.lookups++
	return g.parked(ctx, pause, g.story.DeadlineAt.Add(time.Hour))
}
