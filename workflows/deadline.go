package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/mediagate/mediagate"
)

// late reports that the waiting for the vendor is over: as time goes, or as
// the database saw it, which then refuses to have anything sent.
func (g *generate) late(ctx workflow.Context) bool {
	st := g.story
	over := func(now time.Time) bool {
		return !now.Before(st.WaitsUntil(now))
	}
	return over(g.clock.now(ctx)) || !st.ReadAt.IsZero() && over(st.ReadAt)
}

// left is how long a step that needs a vendor may take, its queueing and its
// repetitions included: until the waiting ends, or the parking. On a queue that
// nobody serves it is what ends the step (D3).
func (g *generate) left(ctx workflow.Context) time.Duration {
	now := g.clock.now(ctx)
	left := g.story.WaitsUntil(now).Sub(now)
	if !g.story.ParkedAt.IsZero() {
		left = min(left, g.story.ParkedAt.Add(g.story.ParkTimeout).Sub(now))
	}
	return max(left, time.Second)
}

// expire fails a task whose time is up. A command that came while its last step
// ran is taken before: a retry gives it more time (D10). So does a database
// that says, as it was read last, that there is some left.
func (g *generate) expire(ctx workflow.Context, message string) error {
	commands := append(g.inbox.untaken(), g.inbox.untakenRetries()...)
	for _, command := range commands {
		if err := g.inbox.take(ctx, command); err != nil {
			return err
		}
		if g.inbox.failOrdered() {
			return nil
		}
	}
	if len(commands) > 0 {
		if err := g.reload(ctx); err != nil {
			return err
		}
		if g.ending() || outcomeKnown(g.story) || asksForMore(g.story) || !g.late(ctx) {
			return nil
		}
	}
	if st := g.story; !st.ReadAt.IsZero() {
		if early := st.WaitsUntil(st.ReadAt).Sub(st.ReadAt); early > 0 {
			_, err := g.pause(ctx, "the clocks disagree", min(max(early, time.Second), clockJump))
			return err
		}
	}
	return g.failUnlessKnown(ctx, &mediagate.Failure{Code: mediagate.CodeGenerationTimeout, Message: message, Retryable: true})
}

const providerTooLate = "the provider did not finish in time"
