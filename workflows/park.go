package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
)

// park makes the task visible as stuck and waits: for an operator, for the
// next try of its own, or for the end of everybody's patience. It returns
// when the step is to be tried again, or when the task has ended.
func (g *generate) park(ctx workflow.Context, reason mediagate.ParkReason) error {
	before := g.story
	if err := g.database(ctx, "park: "+string(reason), acts.ParkTask, activities.ParkArgs{TaskID: g.in.TaskID, Reason: reason}); err != nil {
		return err
	}
	if g.story.Status.Terminal() || g.story.CancelRequested || g.told(before) {
		return nil
	}
	return g.parked(ctx, g.story.ParkRetry, g.story.ParkedAt.Add(g.story.ParkTimeout))
}

// told reports that the step with which a wait was to begin told how the attempt
// ended, or what it waits for. Nobody need signal that any more; and a task that
// waited for its parking's end all the same would be given up with it.
func (g *generate) told(before mediagate.Story) bool {
	now := g.story
	ended := outcomeKnown(now) && (!outcomeKnown(before) || now.N != before.N)
	asks := asksForMore(now) && !asksForMore(before)
	if g.began <= activities.BeforeTold || !ended && !asks {
		return false
	}
	g.retryDue = false
	g.inbox.retried()
	return true
}

// parked waits up to retry (with jitter) and fails the task once giveUp has
// passed.
func (g *generate) parked(ctx workflow.Context, retry time.Duration, giveUp time.Time) error {
	now := g.clock.now(ctx)
	if !now.Before(giveUp) {
		return g.giveUp(ctx)
	}
	g.showParked(ctx, giveUp)
	g.inbox.woken = false
	due, err := g.wait(ctx, "parked: "+string(g.story.ParkReason), min(jitter(now, retry), giveUp.Sub(now)))
	if err == nil && due && !g.clock.now(ctx).Before(giveUp) {
		return g.giveUp(ctx)
	}
	g.retryDue = due || g.inbox.woken || g.inbox.retryOrdered()
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
	case g.ending(), now.N != before.N, now.State != before.State:
		return nil
	case outcomeKnown(now) && !outcomeKnown(before), asksForMore(now) && !asksForMore(before):
		return nil
	case now.State == mediagate.AttemptAccepted && troubles(now.ParkReason) && pollable(now) && !outcomeKnown(now):
		g.retryDue = true
		return nil
	}
	return g.failUnlessKnown(ctx, g.parkFailure())
}

// ending reports that it no longer matters whether the step can be done.
func (g *generate) ending() bool {
	return g.story.Missing || g.story.Status.Terminal() || g.story.CancelRequested
}

// outcomeKnown reports that the story tells how the attempt ended.
func outcomeKnown(st mediagate.Story) bool { return st.Succeeded || st.Failure != nil }

// pollable reports that nothing keeps the vendor from telling us of the job.
func pollable(st mediagate.Story) bool { return st.Trouble == "" && !st.Unanswered }

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
