package workflows

import (
	"fmt"
	"iter"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/mediagate/mediagate"
)

// shown is what the search attributes say.
type shown struct {
	status   mediagate.Status
	provider string
	stuck    bool
	reason   string
}

// show tells an operator what the run is at, and keeps the search attributes
// true.
func (g *generate) show(ctx workflow.Context, doing string) {
	st := g.story
	lines := []string{"**" + doing + "**", ""}
	if st.N > 0 {
		lines = append(lines,
			fmt.Sprintf("- attempt %d on channel `%s`: %s", st.N, st.Channel, st.State),
			"- who polls: workflow `"+IDChannel(st.Channel)+"`")
	}
	if st.ParkReason != "" {
		lines = append(lines,
			"- parked since "+st.ParkedAt.UTC().Format(time.RFC3339)+": "+string(st.ParkReason),
			"- signals: `retry`, `fail`")
	} else if st.State == mediagate.AttemptAccepted && !st.Succeeded {
		lines = append(lines, "- signals: `fail`, `poll_now`")
	}
	if st.CancelRequested {
		lines = append(lines, "- the client asked to cancel")
	}
	workflow.SetCurrentDetails(ctx, strings.Join(lines, "\n"))

	if workflow.GetInfo(ctx).ContinuedExecutionRunID != "" && g.shown == (shown{}) {
		g.shown.stuck, g.shown.reason = true, "as the run before" // attributes carry over
	}
	now := shown{status: st.Status, provider: st.Provider, stuck: st.ParkReason != "", reason: string(st.ParkReason)}
	if now == g.shown || (g.shown == shown{} && now.provider == "" && !now.stuck && now.status == mediagate.StatusPending) {
		return // as it was started with
	}
	updates := []temporal.SearchAttributeUpdate{AttrStatus.ValueSet(string(now.status))}
	if now.provider != g.shown.provider && now.provider != "" {
		updates = append(updates, AttrProvider.ValueSet(now.provider))
	}
	if now.stuck != g.shown.stuck || now.reason != g.shown.reason {
		updates = append(updates, AttrStuck.ValueSet(now.stuck), AttrReason.ValueSet(now.reason))
		if !now.stuck {
			updates[len(updates)-1] = AttrReason.ValueUnset()
		}
	}
	g.shown = now
	if err := workflow.UpsertTypedSearchAttributes(ctx, updates...); err != nil {
		g.log.Warn("search attributes not updated", "error", err)
	}
}

func (g *generate) showParked(ctx workflow.Context, giveUp time.Time) {
	g.show(ctx, fmt.Sprintf("parked: %s. Tried again by itself; fails and refunds at %s", g.story.ParkReason, giveUp.UTC().Format(time.RFC3339)))
}

// byHand are the signals that an operator may send without input, in a fixed
// order.
func (g *generate) byHand() iter.Seq2[string, workflow.ReceiveChannel] {
	return func(yield func(string, workflow.ReceiveChannel) bool) {
		_ = yield(mediagate.ActionRetry, g.retry) &&
			yield(mediagate.ActionFail, g.fail) &&
			yield(mediagate.ActionPollNow, g.pollNow)
	}
}
