package storagetest

import (
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
	"github.com/mediagate/mediagate/task/tasktest"
)

// machineTests hold that a task's rows follow package task: what Change stores is
// what the events make of a state in memory.
var machineTests = map[string]func(*bench){
	"rows follow the machine, whatever happens": func(b *bench) {
		rapid.Check(b.T, func(t *rapid.T) {
			w := tasktest.New(t)
			b.setClock(tasktest.Noon)
			p := b.newPayer(unit(1))
			w.State.ID = b.submitTerms(p, w.State)
			w.Heard = func(_ task.State, e task.Event, effects task.Effects, err error) {
				b.followed(t, w, e, effects, err)
			}
			w.Live(rapid.IntRange(1, 25).Draw(t, "length"))
		})
	},
	"an intent takes a slot, or the task queues": func(b *bench) {
		p, slots := b.newPayer(unit(10)), mediagate.Slots{Names: []string{channelName}, Limit: 1}
		first, second := b.submit(p, unit(1)), b.submit(p, unit(1))
		_, err := b.OpenIntent(b.Context(), first, slots, b.nextIntent(first))
		b.noError(err)
		_, err = b.OpenIntent(b.Context(), second, slots, b.nextIntent(second))
		b.kind(err, mediagate.KindCapacity)
		changed, err := b.Change(b.Context(), second, task.Queued{N: 1, Channels: []string{channelName}})
		b.noError(err)
		same(b, "what it sleeps on", changed.Step.Why, task.WhySlot)
		_, err = b.Change(b.Context(), first, task.Refused{N: 1, SendBefore: b.now().Add(10 * time.Second), Failure: mediagate.Failure{Code: mediagate.CodeInvalidParameters}})
		b.noError(err)
		changed, err = b.Change(b.Context(), second, task.SlotGranted{N: 1})
		b.noError(err)
		same(b, "the next step", changed.Step.Kind, task.Submit)
		_, err = b.OpenIntent(b.Context(), second, slots, b.nextIntent(second))
		b.noError(err)
	},
	"events that are refused change nothing, nor do those before them": func(b *bench) {
		p := b.newPayer(unit(1))
		id := b.submit(p, unit(1))
		_, err := b.Change(b.Context(), id, task.CancelRequested{}, b.nextIntent(id))
		b.kind(err, mediagate.KindConflict)
		t, err := b.TaskByID(b.Context(), id)
		b.noError(err)
		same(b, "cancel", t.CancelRequestedAt.IsZero(), true)
		_, err = b.Change(b.Context(), "task_none", task.Asked{})
		b.kind(err, mediagate.KindNotFound)
		_, err = b.Change(b.Context(), "task_none", task.EndDue{})
		b.kind(err, mediagate.KindNotFound)
	},
	"a job of several calls": func(b *bench) {
		p := b.newPayer(unit(1))
		id := b.submit(p, unit(1))
		start, err := b.Change(b.Context(), id)
		b.noError(err)
		memory, before := start.State, b.now().Add(10*time.Second)
		intent := b.nextIntent(id)
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
			effects, err := memory.Apply(e, b.now())
			b.noError(err)
			changed, err := b.Change(b.Context(), id, e)
			b.noError(err)
			same(b, "effects", len(changed.Effects.Charged), len(effects.Charged))
			again, err := b.Change(b.Context(), id)
			b.noError(err)
			if diff := cmp.Diff(memory, again.State, cmpopts.EquateEmpty()); diff != "" {
				b.Fatalf("after %T%+v the rows (+) are not what they should be (-):\n%s", e, e, diff)
			}
		}
		same(b, "status", memory.Status, mediagate.StatusCompleted)
	},
	"an erased task keeps how its job ended": func(b *bench) {
		p := b.newPayer(unit(1))
		id := b.submit(p, unit(1))
		_, err := b.Change(b.Context(), id, b.nextIntent(id))
		b.noError(err)
		_, err = b.Change(b.Context(), id, task.SubmitUnknown{N: 1, SendBefore: b.now().Add(10 * time.Second)}, task.CancelRequested{}, task.EndDue{})
		b.noError(err)
		b.eraseTask(p, id)
		_, err = b.Change(b.Context(), id, task.VendorEnded{N: 1, Outcome: mediagate.Outcome{Succeeded: true, Seconds: 5}})
		b.noError(err)
		first, err := b.Change(b.Context(), id)
		b.noError(err)
		b.setClock(b.now().Add(time.Hour))
		_, err = b.Change(b.Context(), id, task.VendorEnded{N: 1, Outcome: mediagate.Outcome{Succeeded: true, Seconds: 9}})
		b.noError(err)
		again, err := b.Change(b.Context(), id)
		b.noError(err)
		same(b, "the attempt", again.State.Last().EndedAt, first.State.Last().EndedAt)
		same(b, "its outcome is kept", again.State.Last().Outcome != nil, true)
	},
	"a slot that a channel's poller has granted is used at once": func(b *bench) {
		p := b.newPayer(unit(1))
		id := b.submit(p, unit(1))
		_, err := b.Change(b.Context(), id, task.Queued{N: 1, Channels: []string{channelName}})
		b.noError(err)
		epoch, err := b.BeginEpoch(b.Context(), channelName)
		b.noError(err)
		granted, err := b.GrantSlots(b.Context(), mediagate.Granting{Channel: channelName, Epoch: epoch, Slots: mediagate.Slots{Names: []string{channelName}, Limit: 1}, Most: 5, TakeBack: time.Minute, Again: time.Second})
		b.noError(err)
		same(b, "granted", len(granted.Signals), 1)
		changed, err := b.Change(b.Context(), id, task.SlotGranted{N: 1})
		b.noError(err)
		same(b, "next", changed.Step.Kind, task.Submit)
		same(b, "granted", changed.State.Granted, true)
		_, err = b.Change(b.Context(), id, task.Queued{N: 1, Channels: []string{channelName}})
		b.noError(err)
		changed, err = b.Change(b.Context(), id)
		b.noError(err)
		same(b, "granted, after it was given back", changed.State.Granted, false)
	},
	"a signal that comes after its grant was taken back gives no slot": func(b *bench) {
		p, slots := b.newPayer(unit(10)), mediagate.Slots{Names: []string{channelName}, Limit: 1}
		first, second := b.submit(p, unit(1)), b.submit(p, unit(1))
		_, err := b.OpenIntent(b.Context(), first, slots, b.nextIntent(first))
		b.noError(err)
		_, err = b.Change(b.Context(), second, task.Queued{N: 1, Channels: []string{channelName}})
		b.noError(err)
		_, err = b.Change(b.Context(), second, task.SlotGranted{N: 1})
		b.noError(err)
		_, err = b.OpenIntent(b.Context(), second, slots, b.nextIntent(second))
		b.kind(err, mediagate.KindCapacity)
	},
	"a task that cannot be read parks, and ends all the same": func(b *bench) {
		p := b.newPayer(unit(1))
		id := b.submit(p, unit(1))
		b.noError(b.database().Exec("UPDATE tasks SET plan = '{' WHERE id = ?", id).Error)
		changed, err := b.Change(b.Context(), id, task.Asked{})
		b.noError(err)
		same(b, "parked for", changed.State.ParkReason, mediagate.ParkInternal)
		_, err = b.Change(b.Context(), id, task.CancelRequested{})
		b.noError(err)
		changed, err = b.Change(b.Context(), id, task.EndDue{})
		b.noError(err)
		same(b, "status", changed.State.Status, mediagate.StatusCancelled)
		account, err := b.Account(b.Context(), p.account)
		b.noError(err)
		same(b, "available", account.Available, unit(1))
	},
}

// nextIntent is one for the task's first attempt.
func (b *bench) nextIntent(id string) task.IntentStored {
	return task.IntentStored{
		N: 1, Channel: channelName, Provider: "kling", Route: plan.Routes[0], ExternalID: id,
		SendBefore: b.now().Add(10 * time.Second), CallEnds: b.now().Add(45 * time.Second),
	}
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
	id, _, err := b.Submit(b.Context(), n)
	b.noError(err)
	return id
}

// followed applies an event to the rows that was applied in memory, and compares.
func (b *bench) followed(t *rapid.T, w *tasktest.World, e task.Event, effects task.Effects, refused error) {
	t.Helper()
	b.setClock(w.Now)
	changed, err := b.Change(b.Context(), w.State.ID, e)
	if (err == nil) != (refused == nil) || err != nil && !mediagate.Is(err, mediagate.KindConflict) {
		t.Fatalf("%T%+v: in memory %v, in the rows %v", e, e, refused, err)
	}
	if err != nil {
		return
	}
	again, err := b.Change(b.Context(), w.State.ID) // what is stored, and not what was made in memory
	if err != nil {
		t.Fatal(err)
	}
	want := w.State
	want.Attempts = slices.DeleteFunc(slices.Clone(want.Attempts), func(a task.Attempt) bool { return again.State.Attempt(a.N) == nil })
	if diff := cmp.Diff(want, again.State, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("after %T%+v the rows (+) are not what they should be (-):\n%s", e, e, diff)
	}
	for _, a := range changed.State.Attempts {
		if diff := cmp.Diff(*w.State.Attempt(a.N), a, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("after %T%+v attempt %d (+) is not what it should be (-):\n%s", e, e, a.N, diff)
		}
	}
	if diff := cmp.Diff(effects, changed.Effects, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("effects of %T%+v:\n%s", e, e, diff)
	}
}
