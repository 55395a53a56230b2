package storage_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
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
		"a job of several calls": func(b *bench) {
			id := b.submit(b.newPayer(unit(1)), unit(1))
			start := must(b.Change(b.Context(), id))
			memory, before := start.State, b.now().Add(10*time.Second)
			intent := intentOf(id, 1, b.now())
			intent.Route.Sync, intent.Route.Parts = true, 3
			file := func() *mediagate.Submission {
				return &mediagate.Submission{Outcome: &mediagate.Outcome{Succeeded: true, Seconds: 1, VendorCharge: mediagate.ChargedBy("2", "credits"), Media: []mediagate.Media{{Ref: "file"}}}}
			}
			for _, e := range []task.Event{
				intent,
				task.PartIntent{N: 1, Part: 2, SendBefore: before, CallEnds: before.Add(time.Minute)},
				task.PartIntent{N: 1, Part: 0, SendBefore: before, CallEnds: before.Add(time.Minute)},
				task.PartIntent{N: 1, Part: 1, SendBefore: before, CallEnds: before.Add(time.Minute)},
				task.PartEnded{N: 1, Part: task.Part{Part: 0, SendBefore: before, State: mediagate.PartRefused, Failure: &mediagate.Failure{Code: mediagate.CodeProviderAway, Retryable: true}, Error: "full"}},
				task.PartEnded{N: 1, Part: task.Part{Part: 1, SendBefore: before, State: mediagate.PartUnknown, Error: "lost"}},
				task.PartIntent{N: 1, Part: 0, Sends: 1, SendBefore: before.Add(time.Second), CallEnds: before.Add(time.Minute)},
				task.PartEnded{N: 1, Part: task.Part{Part: 0, SendBefore: before.Add(time.Second), State: mediagate.PartDone, Submission: file()}},
				task.PartEnded{N: 1, Part: task.Part{Part: 2, SendBefore: before, State: mediagate.PartDone, Submission: file()}},
				task.PartsOver{N: 1},
				task.Mirrored{N: 1, Results: []mediagate.Result{{Key: "a"}, {Key: "b", Index: 2}}},
			} {
				effects := must(memory.Apply(e, b.now()))
				changed := must(b.Change(b.Context(), id, e))
				same(b, "effects", len(changed.Effects.Charged), len(effects.Charged))
				again := must(b.Change(b.Context(), id))
				if diff := cmp.Diff(memory, again.State, cmpopts.EquateEmpty()); diff != "" {
					b.Fatalf("after %T%+v the rows (+) are not what they should be (-):\n%s", e, e, diff)
				}
			}
			same(b, "status", memory.Status, mediagate.StatusCompleted)
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
		"a task that cannot be read parks, and ends all the same": func(b *bench) {
			p := b.newPayer(unit(1))
			id := b.submit(p, unit(1))
			b.noError(b.database().Exec("UPDATE tasks SET plan = '{' WHERE id = ?", id).Error)
			changed := must(b.Change(b.Context(), id, task.Asked{}))
			same(b, "parked for", changed.State.ParkReason, mediagate.ParkInternal)
			must(b.Change(b.Context(), id, task.CancelRequested{}))
			changed = must(b.Change(b.Context(), id, task.EndDue{}))
			same(b, "status", changed.State.Status, mediagate.StatusCancelled)
			account := must(b.Account(b.Context(), p.account))
			same(b, "available", account.Available, unit(1))
		},
		"a task whose events panic parks as one that cannot be read, and ends": func(b *bench) {
			p := b.newPayer(unit(1))
			id := b.submit(p, unit(1))
			intent := intentOf(id, 1, b.now())
			intent.Route.Sync, intent.Route.Parts = true, 2
			must(b.OpenIntent(b.Context(), id, mediagate.Slots{}, intent))
			must(b.Change(b.Context(), id, task.PartIntent{N: 1, SendBefore: intent.SendBefore, CallEnds: intent.CallEnds}))
			b.noError(b.database().Exec("UPDATE attempt_parts SET state = 'done', submission = NULL WHERE task_id = ?", id).Error)
			changed := must(b.Change(b.Context(), id, task.PartsOver{N: 1, FirstPollAt: b.now()}, task.StepEnded{Step: task.Submit, N: 1}, task.Asked{Seen: task.Seen{Sending: task.Sending{N: 1}}}))
			same(b, "parked for", changed.State.ParkReason, mediagate.ParkInternal)
			same(b, "what it sleeps on", changed.Step.Why, task.WhyParked)
			b.setClock(b.now().Add(changed.State.Terms.ParkTimeout + time.Minute))
			changed = must(b.Change(b.Context(), id, task.EndDue{}))
			same(b, "status", changed.State.Status, mediagate.StatusFailed)
			account := must(b.Account(b.Context(), p.account))
			same(b, "available", account.Available, unit(1))
		},
		"what cannot be read goes with the inputs, at the end of a task whose account wishes that": func(b *bench) {
			p := b.newPayer(unit(1))
			b.changeAccount(p, func(a *mediagate.Account) { a.EraseInputs = true })
			id := b.submit(p, unit(1))
			must(b.Change(b.Context(), id, task.Refused{Sending: b.intent(id).Sending, Failure: mediagate.Failure{Code: mediagate.CodeProviderAway, Retryable: true}}))
			b.noError(b.database().Exec("UPDATE tasks SET plan = '{words' WHERE id = ?", id).Error)
			b.noError(b.database().Exec("UPDATE attempts SET failure = '{words' WHERE task_id = ?", id).Error)
			changed := must(b.Change(b.Context(), id, task.CancelRequested{}, task.EndDue{}))
			same(b, "status", changed.State.Status, mediagate.StatusCancelled)
			var left int
			b.noError(b.database().Raw("SELECT COUNT(*) FROM tasks t JOIN attempts a ON a.task_id = t.id WHERE t.id = ? AND (t.plan LIKE '%words%' OR a.failure LIKE '%words%')", id).Scan(&left).Error)
			same(b, "rows with words", left, 0)
		},
	})
}

// submitTerms submits a task as the state has it.
func (b *bench) submitTerms(p payer, s task.State) string {
	b.Helper()
	n := b.draft(p, s.Terms.Hold)
	n.Task.Plan = mediagate.Plan{
		Routes: []mediagate.Route{{Provider: s.Terms.Provider}}, Expected: s.Terms.Expected, Timeout: s.Terms.Timeout, OnUnknown: s.Terms.OnUnknown,
		Modal: s.Terms.ModalTimeout, ParkTimeout: s.Terms.ParkTimeout, ParkRetry: s.Terms.ParkRetry, QueueTimeout: s.Terms.QueueTimeout,
	}
	if s.Terms.CheckInputs {
		n.Task.Plan.Inputs = []mediagate.Input{{Field: "image_urls[0]"}}
	}
	n.Task.Charges, n.Task.DeadlineAt, n.Task.Webhook = s.Terms.Charges, s.DeadlineAt, nil
	if s.WebhookState != "" {
		n.Task.Webhook = &mediagate.Webhook{URL: "https://receiver.example.com/hook", State: s.WebhookState}
	}
	id, _ := must2(b.Submit(b.Context(), n))
	return id
}
