package workflows

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/mediagate/mediagate"
)

// queueLook is how often a queued task asks for a slot by itself: channels may
// have been added since.
const queueLook = time.Hour

// queued waits until a channel grants a slot for the next attempt (D7). Nothing
// runs meanwhile. A task that no channel has one for in time fails: its patience
// is its own, since the deadline is of the time that a vendor takes. One that is
// parked as well does not outlast its parking (D12).
func (g *generate) queued(ctx workflow.Context) error {
	st, now := g.story, g.clock.now(ctx)
	next, giveUp := st.N+1, st.QueuedAt.Add(st.QueueTimeout)
	if end := st.ParkedAt.Add(st.ParkTimeout); !st.ParkedAt.IsZero() && end.Before(giveUp) {
		giveUp = end
	}
	switch {
	case st.Granted:
		return g.send(ctx, next)
	case !now.Before(giveUp):
		return g.leaveQueue(ctx)
	}
	g.show(ctx, fmt.Sprintf("queued since %s for a slot at %s, until %s at the latest",
		st.QueuedAt.UTC().Format(time.RFC3339), channelNames(st.QueuedFor), giveUp.UTC().Format(time.RFC3339)))
	g.inbox.woken = false
	due, err := g.pause(ctx, "queued for a slot", min(jitter(now, queueLook), giveUp.Sub(now)))
	if err != nil || g.ending() || g.story.QueuedAt.IsZero() || !g.clock.now(ctx).Before(giveUp) {
		return err
	}
	if due || g.inbox.woken || g.inbox.retryOrdered() {
		g.inbox.retried()
		return g.send(ctx, next)
	}
	return nil
}

// channelNames are the channels as operators read them. What is wrong with them,
// if anything, changes without the run: the list of channels tells it.
func channelNames(names []string) string {
	if len(names) == 0 {
		return "a provider" // in histories of before stories told them
	}
	return "`" + strings.Join(names, "`, `") + "`"
}

// leaveQueue fails a task that has waited for a slot for too long, unless one
// was granted at the last moment.
func (g *generate) leaveQueue(ctx workflow.Context) error {
	if err := g.reload(ctx); err != nil {
		return err
	}
	if g.ending() || g.story.QueuedAt.IsZero() || g.story.Granted {
		return nil
	}
	if !g.story.ParkedAt.IsZero() {
		return g.failUnlessKnown(ctx, g.parkFailure())
	}
	return g.failUnlessKnown(ctx, &mediagate.Failure{
		Code: mediagate.CodeProviderAway, Message: "no provider had room for the task in time", Retryable: true,
	})
}
