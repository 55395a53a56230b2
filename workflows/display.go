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
	shown   attributes
	started bool // shown began as what the run was started with
}

// attributes are what the search attributes say.
type attributes struct {
	status   mediagate.Status
	provider string
	stuck    bool
	reason   mediagate.ParkReason
}

// asStarted is what a list shows of a run that has written nothing yet.
func asStarted(ctx workflow.Context) attributes {
	at := workflow.GetTypedSearchAttributes(ctx)
	status, _ := at.GetKeyword(AttrStatus)
	provider, _ := at.GetKeyword(AttrProvider)
	stuck, _ := at.GetBool(AttrStuck)
	reason, _ := at.GetKeyword(AttrReason)
	return attributes{status: mediagate.Status(status), provider: provider, stuck: stuck, reason: mediagate.ParkReason(reason)}
}

// show says what the run waits for, and what its task is at.
func (g *generate) show(ctx workflow.Context, doing string) {
	g.display.explain(ctx, g.story, doing)
	g.list(ctx, g.story.Status)
}

// showWork says what the run does. In lists a task that a vendor has yet to take
// stays what it is there: a run is started as one at work, and each change costs
// two writes, of the history and of the list.
func (g *generate) showWork(ctx workflow.Context, doing string) {
	g.display.explain(ctx, g.story, doing)
	status := g.story.Status
	if shown := g.display.shown.status; g.display.started && status == mediagate.StatusPending && !shown.Terminal() {
		status = shown
	}
	g.list(ctx, status)
}

// list keeps the search attributes true.
func (g *generate) list(ctx workflow.Context, status mediagate.Status) {
	if err := g.display.update(ctx, g.story, status); err != nil {
		g.log.Warn("search attributes not updated", "error", err)
	}
}

func (g *generate) showParked(ctx workflow.Context, giveUp time.Time) {
	next := "Tried again by itself"
	if undecidable(g.story) {
		next = "The vendor cannot be asked: find out, then decide"
	}
	g.show(ctx, fmt.Sprintf("parked: %s. %s; fails and refunds at %s", g.story.ParkReason, next, giveUp.UTC().Format(time.RFC3339)))
}

// explainEnd says why a task failed, in operators' words. A run that found it ended
// does not know.
func (g *generate) explainEnd(ctx workflow.Context) {
	doing := "ended: " + string(g.story.Status)
	if g.story.Status == mediagate.StatusFailed && g.failure != "" {
		doing += ", " + string(g.failure)
	}
	g.display.explain(ctx, g.story, doing)
}

// undecidable reports a lost submission that nothing but a person's word can
// end: its vendor finds no jobs by our own id.
func undecidable(st mediagate.Story) bool {
	return st.ParkReason == mediagate.ParkSubmissionUnknown && !st.CanFind
}

// explain says what the run is at, on its page.
func (d *display) explain(ctx workflow.Context, st mediagate.Story, doing string) {
	workflow.SetCurrentDetails(ctx, details(st, doing))
}

// update writes the search attributes that are not as they are shown. Runs that
// began before they looked what they were started with know nothing of that.
func (d *display) update(ctx workflow.Context, st mediagate.Story, status mediagate.Status) error {
	if !d.started && workflow.GetInfo(ctx).ContinuedExecutionRunID != "" && d.shown == (attributes{}) {
		d.shown.stuck, d.shown.reason = true, "as the run before" // attributes carry over
	}
	now := attributes{status: status, provider: st.Provider, stuck: st.ParkReason != "", reason: st.ParkReason}
	if d.started && now.provider == "" {
		now.provider = d.shown.provider // of the first route, until there is an attempt
	}
	if now == d.shown || (!d.started && d.shown == attributes{} && now.provider == "" && !now.stuck && now.status == mediagate.StatusPending) {
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
		lines = append(lines, fmt.Sprintf("- attempt %d on channel `%s`: %s", st.N, st.Channel, st.State))
	}
	modal := !st.ModalUntil.IsZero() // nobody polls for a job whose client is to speak first
	if st.State == mediagate.AttemptAccepted && !modal {
		lines = append(lines, "- who polls: workflow `"+IDChannel(st.Channel)+"`")
	}
	if st.ParkReason != "" {
		signals := "- signals: `retry`, `fail`"
		if undecidable(st) {
			signals = "- signals: `retry` (a new attempt, and the vendor may charge for both), `fail`"
		}
		lines = append(lines, "- parked since "+st.ParkedAt.UTC().Format(time.RFC3339)+": "+string(st.ParkReason), signals)
	} else if modal {
		lines = append(lines, "- signals: `fail`")
	} else if st.State == mediagate.AttemptAccepted && !st.Succeeded {
		lines = append(lines, "- signals: `fail`, `poll_now`")
	}
	if st.CancelRequested {
		lines = append(lines, "- the client asked to cancel")
	}
	return strings.Join(lines, "\n")
}
