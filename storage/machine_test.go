package storage_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

// These hold that a task's rows follow package task: what Change and the
// statements that move rows in bulk store is what the events make of a state in memory.
func TestMachineFacts(t *testing.T) {
	t.Parallel()
	prove(t, facts{
		"rows follow the machine, whatever happens": func(b *bench) {
			rapid.Check(b.T, func(t *rapid.T) { newLife(b, t).live() })
		},
		"events that are refused change nothing, nor do those before them": func(b *bench) {
			id := b.submit(b.newPayer(unit(1)), unit(1))
			b.kind(errOf(b.Change(b.Context(), id, task.CancelRequested{}, intentOf(id, 1, b.now()))), mediagate.KindConflict)
			t := must(b.TaskByID(b.Context(), id))
			same(b, "cancel", t.CancelRequestedAt.IsZero(), true)
			b.kind(errOf(b.Change(b.Context(), "task_none", task.Asked{})), mediagate.KindNotFound)
			b.kind(errOf(b.Change(b.Context(), "task_none", task.EndDue{})), mediagate.KindNotFound)
		},
		"an erased task keeps how its job ended": func(b *bench) {
			p := b.newPayer(unit(1))
			id := b.submit(p, unit(1))
			must(b.Change(b.Context(), id, intentOf(id, 1, b.now())))
			must(b.Change(b.Context(), id, task.SubmitUnknown{Sending: b.sending(id)}, task.CancelRequested{}, task.EndDue{}))
			b.eraseTask(p, id)
			must(b.Change(b.Context(), id, task.VendorEnded{N: 1, Outcome: mediagate.Outcome{Succeeded: true, Seconds: 5}}))
			first := must(b.Change(b.Context(), id))
			b.setClock(b.now().Add(time.Hour))
			must(b.Change(b.Context(), id, task.VendorEnded{N: 1, Outcome: mediagate.Outcome{Succeeded: true, Seconds: 9}}))
			again := must(b.Change(b.Context(), id))
			same(b, "the attempt", again.State.Last().EndedAt, first.State.Last().EndedAt)
			same(b, "its outcome is kept", again.State.Last().Outcome != nil, true)
		},
		"what cannot be read goes with the inputs, at the end of a task whose account wishes that": func(b *bench) {
			p := b.newPayer(unit(1))
			b.changeAccount(p, func(a *mediagate.Account) { a.EraseInputs = true })
			id := b.submit(p, unit(1))
			must(b.Change(b.Context(), id, task.Refused{Sending: b.intent(id).Sending, Failure: mediagate.Failure{Code: mediagate.CodeProviderAway, Retryable: true}}))
			b.noError(b.database().Exec("UPDATE tasks SET document = '{words' WHERE id = ?", id).Error)
			b.noError(b.database().Exec("UPDATE attempts SET document = '{words' WHERE task_id = ?", id).Error)
			changed := must(b.Change(b.Context(), id, task.CancelRequested{}, task.EndDue{}))
			same(b, "status", changed.State.Status, mediagate.StatusCancelled)
			var left int
			b.noError(b.database().Raw("SELECT COUNT(*) FROM tasks t JOIN attempts a ON a.task_id = t.id WHERE t.id = ? AND (t.document LIKE '%words%' OR a.document LIKE '%words%')", id).Scan(&left).Error)
			same(b, "rows with words", left, 0)
		},
	})
}

// submitState submits a task as the state has it.
func (b *bench) submitState(p payer, s task.State) string {
	b.Helper()
	n := b.draft(p, s.Hold)
	n.Task.Plan, n.Task.Charges, n.Task.DeadlineAt = s.Plan, s.Charges, s.DeadlineAt
	n.Task.Webhook = mediagate.Webhook{State: s.Webhook.State}
	if s.Webhook.State != "" {
		n.Task.Webhook.URL = "https://receiver.example.com/hook"
	}
	id, _ := must2(b.Submit(b.Context(), n))
	return id
}
