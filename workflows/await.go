package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
)

// lastCallPatience is how long a vendor that is out of reach is asked again
// at the deadline (D10).
const lastCallPatience = 10 * time.Minute

// await waits until the channel signals the end of the attempt, the deadline
// passes, or somebody intervenes. No activity runs meanwhile.
func (g *generate) await(ctx workflow.Context) error {
	if g.story.ParkReason != "" {
		// The run before this one died between a success and its unparking.
		return g.proceed(ctx, g.story)
	}
	left := g.story.DeadlineAt.Sub(g.clock.now(ctx))
	g.show(ctx, fmt.Sprintf("waiting for %s (attempt %d), until %s at the latest",
		g.story.Provider, g.story.N, g.story.DeadlineAt.UTC().Format(time.RFC3339)))
	if left > 0 {
		due, err := g.wait(ctx, "deadline", left)
		if err != nil || !due {
			return err
		}
	}
	return g.lastCall(ctx)
}

// lastCall asks the vendor once more when the deadline has passed, and fails
// the task when the job has not ended. A job that we are not let see may have
// ended well: a person can find out.
func (g *generate) lastCall(ctx workflow.Context) error {
	// Buffered signals need no draining: the step reads the outcome itself.
	g.showWork(ctx, "deadline: asking the vendor a last time")
	var st mediagate.Story
	err := g.interruptibly(ctx, ask(g.provider(), "last question at the deadline", lastCallPatience), acts.PollJob, g.attempt(), &st)
	switch {
	case temporal.IsCanceledError(err):
		return g.reload(ctx)
	case activities.FromTemporal(err).Kind == mediagate.KindUnavailable:
		return g.reload(ctx) // nobody was asked: once our own database is back, somebody is
	case err != nil:
		if trouble := mediagate.TroubleOf(activities.FromTemporal(err)); trouble != "" {
			return g.database(ctx, "trouble: "+string(trouble), acts.NoteTrouble,
				activities.TroubleArgs{TaskID: g.in.TaskID, N: g.story.N, Trouble: trouble})
		}
		g.log.Warn("vendor out of reach at the deadline", "error", err)
		if err := g.reload(ctx); err != nil {
			return err
		}
		st = g.story
	}
	g.story = st
	if st.Status.Terminal() || st.CancelRequested || st.Succeeded || st.Failure != nil || st.Trouble != "" || asksForMore(st) || g.inbox.runCancelled() || g.inbox.failOrdered() {
		return nil
	}
	return g.expire(ctx, providerTooLate)
}
