package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
)

// modal waits for parameters that the vendor wants and the client has yet to
// give (D15). Nothing runs meanwhile, and no deadline passes. The client's call
// has ended the attempt in the row when its signal comes, and the next attempt
// takes the parameters to the vendor; or the wait expires there.
func (g *generate) modal(ctx workflow.Context) error {
	st := g.story
	if st.ParkReason != "" { // for trouble with an attempt that has told of itself since
		return g.proceed(ctx, st)
	}
	if g.modalOf != st.N {
		g.modalOf = st.N
		return g.database(ctx, "the client is to give modal parameters", acts.NoteModal, g.attempt())
	}
	g.inbox.retried() // there is nothing to try again
	if left := st.ModalUntil.Sub(g.clock.now(ctx)); left > 0 {
		g.show(ctx, "waiting for the client's modal parameters, until "+st.ModalUntil.UTC().Format(time.RFC3339))
		_, err := g.pause(ctx, "modal parameters", left)
		return err
	}
	if err := g.database(ctx, "no modal parameters came", acts.ExpireModal, activities.TaskArgs{TaskID: g.in.TaskID}); err != nil {
		return err
	}
	if early := g.story.ModalUntil.Sub(g.story.ReadAt); early > 0 {
		_, err := g.pause(ctx, "the clocks disagree", min(max(early, time.Second), clockJump))
		return err
	}
	return nil
}

// asksForMore reports that the task waits for modal parameters, or has waited
// for too long.
func asksForMore(st mediagate.Story) bool { return !st.ModalUntil.IsZero() || st.ModalExpired }
