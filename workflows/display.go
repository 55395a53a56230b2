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
// (ADR 39).
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
	switch step := a.Step; step.Kind {
	case task.CheckInputs:
		return "check the media of the request"
	case task.Submit:
		if a.Behind != "" {
			return fmt.Sprintf("submit attempt %d, once fewer calls of its channel are under way", step.N)
		}
		return fmt.Sprintf("submit attempt %d to %s", step.N, step.Provider)
	case task.Lookup:
		return fmt.Sprintf("look up attempt %d by our own id, since the vendor's answer was lost", step.N)
	case task.Poll:
		return "ask the vendor a last time, since the deadline has passed"
	case task.Mirror:
		return "copy the result into the bucket and end the task"
	case task.CancelJob:
		return "ask the vendor to stop its job"
	case task.Settle:
		return "end the task"
	case task.Sleep:
		return waitingFor(a) + step.Until.UTC().Format(time.RFC3339)
	case task.Done:
	}
	if a.Failure != "" {
		return fmt.Sprintf("ended: %s, %s", a.Status, a.Failure)
	}
	return "ended: " + string(a.Status)
}

// waitingFor says what a sleep is for. Its time follows.
func waitingFor(a activities.Answer) string {
	switch a.Step.Why {
	case task.WhyVendor:
		return fmt.Sprintf("waiting for %s (attempt %d), at the latest until ", a.Provider, a.Step.N)
	case task.WhyCall:
		return "waiting for the answer to a submission that may be under way, at the latest until "
	case task.WhyUnknown:
		return "the vendor's answer was lost, and it cannot be asked: find out, then decide. The task fails at "
	case task.WhyLookup:
		return "the vendor's answer was lost: the next lookup is at "
	case task.WhySlot:
		return "queued for a slot. The task looks for one by itself at "
	case task.WhyParked:
		return fmt.Sprintf("parked: %s. The next try, or the end, is at ", a.ParkReason)
	case task.WhyModal:
		return "waiting for the client's modal parameters, at the latest until "
	case task.WhyPause:
	}
	return "before the next try, at "
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
	if a.Step.Why == task.WhyVendor {
		lines = append(lines, "- who polls: workflow `"+IDChannel(a.Channel)+"`")
	}
	if a.ParkReason != "" {
		lines = append(lines, fmt.Sprintf("- parked since %s: %s", a.ParkedAt.UTC().Format(time.RFC3339), a.ParkReason))
	}
	if !a.FailsAt.IsZero() && (a.ParkReason != "" || len(a.QueuedFor) > 0) {
		lines = append(lines, "- fails and refunds at "+a.FailsAt.UTC().Format(time.RFC3339)+", if nothing happens")
	}
	switch {
	case a.Step.Kind == task.Done:
	case len(a.Actions) > 0 && a.Step.Why == task.WhyUnknown:
		lines = append(lines, "- signals: "+quoted(a.Actions)+". `retry` makes a new attempt, and the vendor may charge for both")
	case len(a.Actions) > 0:
		lines = append(lines, "- signals: "+quoted(a.Actions))
	}
	if a.Cancelled {
		lines = append(lines, "- the client asked to cancel")
	}
	return strings.Join(lines, "\n")
}

func quoted(words []string) string { return "`" + strings.Join(words, "`, `") + "`" }
