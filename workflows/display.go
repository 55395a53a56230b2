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

// attributes are the values of a run's search attributes.
type attributes struct {
	status   mediagate.Status
	provider string
	reason   mediagate.ParkReason // why the task is stuck; empty if it is not
}

// startedWith returns the search attributes that the run was started with.
func startedWith(ctx workflow.Context) attributes {
	// They are in the first event of the history, so a replay reads the same values.
	at := workflow.GetTypedSearchAttributes(ctx)
	status, _ := at.GetKeyword(AttrStatus)
	provider, _ := at.GetKeyword(AttrProvider)
	reason, _ := at.GetKeyword(AttrReason)
	return attributes{status: mediagate.Status(status), provider: provider, reason: mediagate.ParkReason(reason)}
}

// show says on the run's page what the run does or waits for, and in lists how far the task has
// come. Each change of search attributes costs Temporal two writes. So lists show a task as
// processing from its start until it has to wait, and the end is written together with the run's
// own end (ADR 5).
func (r *run) show(ctx workflow.Context, answer activities.Answer) {
	workflow.SetCurrentDetails(ctx, details(answer))
	// While the run works, a pending task stays listed as it is. Most tasks are listed as
	// processing from their start on: see startAttributes.
	works := answer.Step.Kind != task.Sleep && answer.Behind == ""
	if works && answer.Status == mediagate.StatusPending {
		answer.Status = r.shown.status
	}
	if answer.Step.Kind != task.Done {
		r.list(ctx, answer)
	}
}

// list writes the search attributes that have changed. A failure to write them is only logged:
// lists are for operators, and the task goes on.
func (r *run) list(ctx workflow.Context, answer activities.Answer) {
	now := attributes{status: answer.Status, provider: answer.Provider, reason: answer.ParkReason}
	// An answer without a provider, such as the end of a task that was never sent, does not clear
	// the attribute.
	if now.provider == "" {
		now.provider = r.shown.provider
	}
	// Most answers change nothing in lists.
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

// activitySummary says in a few words what the run does or waits for. It is also the summary of
// its activity or timer, for which Temporal allows 400 bytes.
func activitySummary(a activities.Answer) string {
	switch {
	case a.Behind != "":
		return a.Doing() + ", once fewer calls of its channel are under way"
	case a.Step.Kind == task.Sleep:
		return a.Doing() + ", at the latest until " + a.Step.Until.UTC().Format(time.RFC3339)
	default:
		return a.Doing()
	}
}

// details returns the lines that explain the run to a person. Temporal's UI shows them as Markdown.
// They name channels, states and commands, and nothing that a client wrote.
func details(a activities.Answer) string {
	lines := []string{"**" + activitySummary(a) + "**", ""}
	if a.N > 0 {
		lines = append(lines, fmt.Sprintf("- attempt %d on channel `%s`: %s", a.N, a.Channel, a.State))
	}
	if len(a.QueuedFor) > 0 {
		lines = append(lines, "- waits for a slot of "+quoted(a.QueuedFor))
	}
	if a.Step.Why == task.SleepVendor {
		lines = append(lines, "- polled by workflow `"+IDChannel(a.Channel)+"`")
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

// quoted lists words in Markdown, each as code.
func quoted(words []string) string { return "`" + strings.Join(words, "`, `") + "`" }
