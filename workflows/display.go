package workflows

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/mediagate/mediagate"
)

// display is what operators see of a run in Temporal's UI.
type display struct {
	shown attributes
}

// attributes are what the search attributes say.
type attributes struct {
	status   mediagate.Status
	provider string
	stuck    bool
	reason   mediagate.ParkReason
}

func (g *generate) show(ctx workflow.Context, doing string) {
	if err := g.display.update(ctx, g.story, doing); err != nil {
		g.log.Warn("search attributes not updated", "error", err)
	}
}

func (g *generate) showParked(ctx workflow.Context, giveUp time.Time) {
	g.show(ctx, fmt.Sprintf("parked: %s. Tried again by itself; fails and refunds at %s", g.story.ParkReason, giveUp.UTC().Format(time.RFC3339)))
}

// update says what the run is at, and keeps the search attributes true.
func (d *display) update(ctx workflow.Context, st mediagate.Story, doing string) error {
	workflow.SetCurrentDetails(ctx, details(st, doing))
	if workflow.GetInfo(ctx).ContinuedExecutionRunID != "" && d.shown == (attributes{}) {
		d.shown.stuck, d.shown.reason = true, "as the run before" // attributes carry over
	}
	now := attributes{status: st.Status, provider: st.Provider, stuck: st.ParkReason != "", reason: st.ParkReason}
	if now == d.shown || (d.shown == attributes{} && now.provider == "" && !now.stuck && now.status == mediagate.StatusPending) {
		return nil // as it was started with
	}
	updates := []temporal.SearchAttributeUpdate{AttrStatus.ValueSet(string(now.status))}
	if now.provider != d.shown.provider && now.provider != "" {
		updates = append(updates, AttrProvider.ValueSet(now.provider))
	}
	switch {
	case now.stuck == d.shown.stuck && now.reason == d.shown.reason:
	case now.stuck:
		updates = append(updates, AttrStuck.ValueSet(true), AttrReason.ValueSet(string(now.reason)))
	default:
		updates = append(updates, AttrStuck.ValueSet(false), AttrReason.ValueUnset())
	}
	d.shown = now
	return workflow.UpsertTypedSearchAttributes(ctx, updates...)
}

// details are the lines that explain the run to a person.
func details(st mediagate.Story, doing string) string {
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
	return strings.Join(lines, "\n")
}
