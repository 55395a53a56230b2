package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/mediagate/mediagate"
)

// parkTrouble parks an attempt that its channel cannot ask for. Each time
// that the parking's wait is over, the channel may ask again; once it got an
// answer, the task is no longer stuck. After the deadline an answer alone does
// not help: the job must have ended.
func (g *generate) parkTrouble(ctx workflow.Context) error {
	wait := g.story.ParkRetry
	if g.retryDue && g.story.Trouble == "" {
		if err := g.reload(ctx); err != nil { // no signal tells of an answer
			return err
		}
		if g.ending() || outcomeKnown(g.story) || asksForMore(g.story) {
			g.retryDue, g.inbox.command = false, ""
			return nil
		}
	}
	switch {
	case !g.retryDue && g.story.Trouble != "":
		return g.park(ctx, g.story.Trouble)
	case g.retryDue && pollable(g.story) && g.late(ctx):
		g.retryDue, g.inbox.command = false, ""
		return g.lastCall(ctx)
	case g.retryDue && pollable(g.story):
		return g.proceed(ctx, g.story)
	case g.retryDue:
		g.retryDue, g.inbox.command = false, ""
		before := g.story
		if err := g.database(ctx, "let the channel ask again", acts.RestoreAwait, g.attempt()); err != nil {
			return err
		}
		if g.told(before) {
			return nil
		}
		wait = max(wait, troubleShows)
	}
	return g.parked(ctx, wait, g.story.ParkedAt.Add(g.story.ParkTimeout))
}

// troubleShows is how long it takes a channel that asks again to find that the
// trouble is still there: a few refusals, far apart.
const troubleShows = 2 * time.Minute

// troubles reports that an accepted attempt is parked since its channel could
// not ask for it.
func troubles(parkReason mediagate.ParkReason) bool {
	switch parkReason {
	case mediagate.ParkJobLost, mediagate.ParkChannelMissing, mediagate.ParkCredentials, mediagate.ParkFunds:
		return true
	default:
		return false
	}
}
