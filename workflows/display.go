package workflows

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/task"
)

// attributes are what the search attributes of a run say.
type attributes struct {
	status   mediagate.Status
	provider string
	reason   mediagate.ParkReason // why it is stuck; empty: it is not
}

// asStarted returns the search attributes that the run was started with.
func asStarted(ctx workflow.Context) attributes {
	at := workflow.GetTypedSearchAttributes(ctx)
	status, _ := at.GetKeyword(AttrStatus)
	provider, _ := at.GetKeyword(AttrProvider)
	reason, _ := at.GetKeyword(AttrReason)
	return attributes{status: mediagate.Status(status), provider: provider, reason: mediagate.ParkReason(reason)}
}

// show says on the run's page what it does or waits for, and in lists what became of
// the task. Each change of a list costs two writes. So a list shows a task as
// processing from its start until it waits, and its end is written with the run's own
// (ADR 5).
func (r *run) show(ctx workflow.Context, answer activities.Answer) {
	workflow.SetCurrentDetails(ctx, details(answer))
	works := answer.Step.Kind != task.Sleep && answer.Behind == ""
	if works && answer.Status == mediagate.StatusPending {
		answer.Status = r.shown.status
	}
	if answer.Step.Kind != task.Done {
		r.list(ctx, answer)
	}
}

// list writes the search attributes that have changed.
func (r *run) list(ctx workflow.Context, answer activities.Answer) {
	now := attributes{status: answer.Status, provider: answer.Provider, reason: answer.ParkReason}
	if now.provider == "" {
		now.provider = r.shown.provider
	}
	if now == r.shown {
		return
	}
	updates := []temporal.SearchAttributeUpdate{AttrStatus.ValueSet(string(now.status))}
	if now.provider != r.shown.provider {
		updates = append(updates, AttrProvider.ValueSet(now.provider))
	}
	switch {
	case now.reason == r.shown.reason:
	case now.reason != "":
		updates = append(updates, AttrStuck.ValueSet(true), AttrReason.ValueSet(string(now.reason)))
	default:
		updates = append(updates, AttrStuck.ValueSet(false), AttrReason.ValueUnset())
	}
	r.shown = now
	if err := workflow.UpsertTypedSearchAttributes(ctx, updates...); err != nil {
		workflow.GetLogger(ctx).Warn("search attributes not updated", "error", err)
	}
}

// doing says in a few words what the run does, or waits for. It is also the summary of
// its activity or timer, which Temporal bounds to 400 bytes.
func doing(a activities.Answer) string {
	switch {
	case a.Behind != "":
		return a.Doing() + ", once fewer calls of its channel are under way"
	case a.Step.Kind == task.Sleep:
		return a.Doing() + ", at the latest until " + a.Step.Until.UTC().Format(time.RFC3339)
	default:
		return a.Doing()
	}
}

// details are the lines that explain the run to a person.
func details(a activities.Answer) string {
	lines := []string{"**" + doing(a) + "**", ""}
	if a.N > 0 {
		lines = append(lines, fmt.Sprintf("- attempt %d on channel `%s`: %s", a.N, a.Channel, a.State))
	}
	if len(a.QueuedFor) > 0 {
		lines = append(lines, "- slots that it may get: of "+quoted(a.QueuedFor))
	}
	if a.Step.Why == task.SleepVendor {
		lines = append(lines, "- who polls: workflow `"+IDChannel(a.Channel)+"`")
	}
	if a.ParkReason != "" {
		lines = append(lines, fmt.Sprintf("- parked since %s: %s", a.ParkedAt.UTC().Format(time.RFC3339), a.ParkReason))
	}
	if then := a.Then(); then != "" {
		lines = append(lines, "- then "+then)
	}
	switch {
	case a.Step.Kind == task.Done:
	case len(a.Actions) > 0 && a.Step.Why == task.SleepUnknown:
		lines = append(lines,
			"- signals: "+quoted(a.Actions)+". `retry` makes a new attempt, and the vendor may charge for both")
	case len(a.Actions) > 0:
		lines = append(lines, "- signals: "+quoted(a.Actions))
	}
	if a.Cancelled {
		lines = append(lines, "- the client asked to cancel")
	}
	return strings.Join(lines, "\n")
}

func quoted(words []string) string { return "`" + strings.Join(words, "`, `") + "`" }
