package storage_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

// wakes are all that are stored, of runs and of callbacks.
func (b *bench) wakes() (run, round map[string]mediagate.Wake) {
	b.Helper()
	now := b.now()
	b.setClock(now.AddDate(100, 0, 0))
	all, err := b.DueWakes(b.Context(), 100_000)
	b.setClock(now)
	b.noError(err)
	run, round = map[string]mediagate.Wake{}, map[string]mediagate.Wake{}
	for _, w := range all {
		if w.Kind == mediagate.WakeRun {
			run[w.TaskID] = w
		} else {
			round[w.TaskID] = w
		}
	}
	return run, round
}

// wakesIn compares when the run of a task is woken, from now on; never for a negative
// time.
func (b *bench) wakesIn(what, id string, want time.Duration) mediagate.Wake {
	b.Helper()
	run, _ := b.wakes()
	b.in(what, run, id, want)
	return run[id]
}

func (b *bench) roundWakesIn(what, id string, want time.Duration) mediagate.Wake {
	b.Helper()
	_, round := b.wakes()
	b.in(what, round, id, want)
	return round[id]
}

func (b *bench) in(what string, wakes map[string]mediagate.Wake, id string, want time.Duration) {
	b.Helper()
	got := -time.Second
	if w, ok := wakes[id]; ok {
		got = w.At.Sub(b.now())
	}
	same(b, what, got, want)
}

const never = -time.Second

// woken lists the tasks whose wakes are due.
func (b *bench) woken(limit int) (ids []string) {
	b.Helper()
	due := must(b.DueWakes(b.Context(), limit))
	for _, w := range due {
		ids = append(ids, w.TaskID)
	}
	return ids
}

// These are about the one lease of a task's run, and that of its callback (D2).
func TestWakeFacts(t *testing.T) {
	t.Parallel()
	provePooled(t, facts{
		"a task that was taken in is started by others in five seconds": func(b *bench) {
			p := b.newPayer(unit(10))
			id := b.submit(p, unit(1))
			same(b, "wake", b.wakesIn("submitted", id, 5*time.Second), mediagate.Wake{
				TaskID: id, AccountID: p.account, Kind: mediagate.WakeRun, At: b.now().Add(5 * time.Second),
			})
			b.pass(5*time.Second - time.Microsecond)
			same(b, "early", len(b.woken(10)), 0)
			b.pass(time.Microsecond)
			same(b, "due", b.woken(10), []string{id})
			refused := b.draft(b.newPayer(0), unit(1))
			b.kind(errOf(b.Submit(b.Context(), refused)), mediagate.KindPayment)
			b.wakesIn("of a task that was not taken in", refused.Task.ID, never)
		},
		"a step that was stopped has a run ask, and never puts that off": func(b *bench) {
			id := b.submit(b.newPayer(unit(10)), unit(1))
			b.change(id, task.Asked{})
			b.wakesIn("asked", id, 10*time.Minute)
			was := b.state(id)
			b.change(id, task.StepStopped{})
			b.wakesIn("stopped", id, 2*time.Second)
			same(b, "task", b.state(id), was)
			b.pass(time.Second)
			b.change(id, task.StepStopped{})
			b.wakesIn("stopped again", id, time.Second)
			b.change(id, task.Asked{})
			b.wakesIn("asked again", id, 10*time.Minute)
			b.settle(cancelled(id))
			b.change(id, task.Asked{})
			b.change(id, task.StepStopped{})
			b.wakesIn("stopped after the end", id, never)
		},
		"a question writes nothing while the lease reaches": func(b *bench) {
			id := b.submit(b.newPayer(unit(10)), unit(1))
			b.change(id, task.Asked{})
			first := b.wakesIn("asked", id, 10*time.Minute)
			b.pass(5 * time.Minute)
			b.change(id, task.Asked{})
			same(b, "asked again", b.wakesIn("asked again", id, 5*time.Minute), first)
			b.pass(time.Microsecond)
			b.change(id, task.Asked{})
			b.wakesIn("asked once more", id, 10*time.Minute)
			b.change(id, intentOf(id, 1, b.now()), task.StepEnded{Step: task.Submit, N: 1}, task.Asked{})
			b.wakesIn("a sleep of other length", id, 15*time.Second+30*time.Second)
		},
		"the intent of the step that a start carried is the run's question": func(b *bench) {
			p := b.newPayer(unit(10))
			id, asked := b.submit(p, unit(1)), b.submit(p, unit(1))
			b.change(asked, task.Asked{})
			b.pass(time.Second)
			b.change(id, intentOf(id, 1, b.now()))
			same(b, "asked", b.wakesIn("begun", id, 10*time.Minute).Asked, true)
			b.change(asked, intentOf(asked, 1, b.now()))
			b.wakesIn("of a run that asks", asked, 10*time.Minute-time.Second)
		},
		"a question counts for the tries of others": func(b *bench) {
			id := b.submit(b.newPayer(unit(10)), unit(1))
			b.change(id, task.Asked{})
			b.pass(10 * time.Minute)
			for tries, again := range []time.Duration{1, 2, 4, 8} {
				due := must(b.DueWakes(b.Context(), 1))
				b.noError(b.PutOff(b.Context(), due, true))
				same(b, "tries", b.wakesIn("put off", id, again*time.Minute).Tries, tries+1)
				if again < 8 { // which would do for the step
					b.pass(again * time.Minute)
				}
			}
			b.change(id, task.StepStopped{}) // for which a run that hangs is replaced all the same
			same(b, "tries", b.wakesIn("brought forward", id, 2*time.Second).Tries, 4)
			b.change(id, task.Asked{})
			same(b, "tries", b.wakesIn("asked", id, 10*time.Minute).Tries, 0)
		},
		"a change of the next step wakes a run that was taken for done": func(b *bench) {
			p := b.newPayer(unit(10))
			id := b.accepted(p, unit(1))
			b.noError(b.database().Exec("DELETE FROM wakes WHERE task_id = ?", id).Error)
			must(b.RequestCancel(b.Context(), p.account, id))
			same(b, "asked", b.wakesIn("cancelled", id, 2*time.Second).Asked, true)
		},
		"a round of the callback is due until it has ended": func(b *bench) {
			p := b.newPayer(unit(20))
			id, gone, quiet := b.accepted(p, unit(1)), b.accepted(p, unit(1)), b.draft(p, unit(1))
			quiet.Task.Webhook = mediagate.Webhook{}
			must2(b.Submit(b.Context(), quiet))
			b.roundWakesIn("before the end", id, never)
			b.settle(completed(id, unit(1)))
			b.settle(cancelled(gone))
			b.settle(failed(quiet.Task.ID))
			same(b, "wake", b.roundWakesIn("ended", id, time.Minute), mediagate.Wake{
				TaskID: id, AccountID: p.account, Kind: mediagate.WakeRound, Round: 1, At: b.now().Add(time.Minute), Asked: true,
			})
			b.roundWakesIn("cancelled", gone, never)
			b.roundWakesIn("without a callback", quiet.Task.ID, never)
			b.change(id, task.Asked{})
			b.roundWakesIn("the run is done", id, time.Minute)
			attempt := func(round, n int, next time.Duration, state mediagate.WebhookState) {
				b.Helper()
				b.deliver(mediagate.Delivery{TaskID: id, Round: round, Attempt: n, At: b.now(), NextAttemptAt: b.now().Add(next)}, state)
			}
			attempt(1, 1, 10*time.Second, "")
			b.roundWakesIn("another attempt follows", id, 70*time.Second)
			due := must(b.DueWakes(b.Context(), 10))
			same(b, "due", len(due), 0)
			b.pass(70 * time.Second)
			due = must(b.DueWakes(b.Context(), 10))
			b.noError(b.PutOff(b.Context(), due, true))
			attempt(1, 2, 30*time.Second, "")
			same(b, "tries", b.roundWakesIn("and another", id, 90*time.Second).Tries, 0)
			attempt(1, 3, 0, mediagate.WebhookAbandoned)
			b.roundWakesIn("it has ended", id, never)
			b.change(id, task.RedeliverRequested{})
			same(b, "round", b.roundWakesIn("again", id, 2*time.Second).Round, 2)
			attempt(1, 4, time.Hour, "")
			b.roundWakesIn("an attempt of the former round", id, 2*time.Second)
			attempt(2, 1, 0, mediagate.WebhookDelivered)
			b.roundWakesIn("delivered", id, never)
			b.change(id, task.RedeliverRequested{})
			b.eraseTask(p, id)
			b.roundWakesIn("erased", id, never)
			attempt(3, 1, time.Hour, "")
			b.roundWakesIn("after that", id, never)
		},
		"the trace of a task comes with its wakes, until it is erased": func(b *bench) {
			p := b.newPayer(unit(10))
			const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
			n := b.draft(p, unit(1))
			n.Task.TraceParent = trace
			must2(b.Submit(b.Context(), n))
			same(b, "task", b.task(n.Task.ID).TraceParent, trace)
			b.pass(5 * time.Second)
			due := func(kind mediagate.WakeKind) {
				b.Helper()
				wakes := must(b.DueWakes(b.Context(), 10))
				same(b, "due", len(wakes), 1)
				same(b, "wake", []any{wakes[0].Kind, wakes[0].TraceParent}, []any{kind, trace})
			}
			due(mediagate.WakeRun)
			b.settle(failed(n.Task.ID))
			b.change(n.Task.ID, task.Asked{})
			b.pass(time.Hour)
			due(mediagate.WakeRound)
			b.eraseTask(p, n.Task.ID)
			same(b, "erased", b.task(n.Task.ID).TraceParent, "")
		},
		"accounts take turns, the longest due first": func(b *bench) {
			busy, late := b.newPayer(unit(10)), b.newPayer(unit(10))
			var many []string
			for range 4 {
				many = append(many, b.submit(busy, unit(1)))
				b.pass(time.Second)
			}
			one, two := b.submit(late, unit(1)), b.submit(late, unit(1))
			b.pass(5 * time.Second)
			b.submit(late, unit(1)) // not due yet
			for limit, want := range map[int][]string{10: {many[0], one, many[1], two, many[2], many[3]}, 3: {many[0], one, many[1]}, 1: {many[0]}} {
				same(b, fmt.Sprint(limit), b.woken(limit), want)
			}
			b.settle(failed(one))
			b.change(one, task.Asked{})
			same(b, "done, but for its callback", b.woken(2), []string{many[0], two})
			b.pass(time.Minute)
			same(b, "with the callback", len(b.woken(100)), 7)
		},
		"what can go on comes before what is new, for which a quarter is kept": func(b *bench) {
			p := b.newPayer(unit(100))
			var fresh, old []string
			for range 4 {
				fresh = append(fresh, b.submit(p, unit(1)))
			}
			b.pass(time.Minute)
			for range 8 {
				id := b.submit(p, unit(1))
				b.change(id, task.Asked{})
				b.change(id, task.StepStopped{})
				old = append(old, id)
			}
			b.pass(time.Minute)
			for limit, want := range map[int][]string{
				8: append(old[:6:6], fresh[:2]...), 1: old[:1], 100: append(old[:8:8], fresh...),
			} {
				same(b, fmt.Sprint(limit), b.woken(limit), want)
			}
		},
		"no more starts are unanswered than 128, and an account leaves others as many as it has": func(b *bench) {
			crowd, other := b.newPayer(unit(1000)), b.newPayer(unit(10))
			for range 70 {
				b.submit(crowd, unit(1))
			}
			b.pass(5 * time.Second)
			starts := func(what string, want int) {
				b.Helper()
				due := must(b.DueWakes(b.Context(), 256))
				same(b, what, len(due), want)
				b.noError(b.PutOff(b.Context(), due, true))
			}
			starts("of one account", 64)
			starts("while none is answered", 0)
			one := b.submit(other, unit(1))
			b.pass(5 * time.Second)
			starts("beside it", 1)
			b.change(one, task.Asked{})
			b.pass(time.Minute)
			starts("a minute later they are described", 64)
			starts("and do not count", 6)
		},
		"a process starts runs itself while few tasks are new": func(b *bench) {
			p := b.newPayer(unit(1000))
			var ids []string
			may := func(what, id string, want bool, wake time.Duration) {
				b.Helper()
				same(b, what, must(b.MayStart(b.Context(), id)), want)
				b.wakesIn(what, id, wake)
			}
			for range 63 {
				ids = append(ids, b.submit(p, unit(1)))
			}
			may("the 63rd", ids[62], true, 5*time.Second)
			last := b.submit(p, unit(1))
			may("the 64th", last, false, 0)
			may("it is due, and would be started twice at most", last, true, 0)
			b.change(ids[0], task.Asked{})
			may("one has asked", ids[1], true, 5*time.Second)
			may("what has asked", ids[0], true, 10*time.Minute)
		},
		"each try puts the next one off further": func(b *bench) {
			id := b.submit(b.newPayer(unit(10)), unit(1))
			b.pass(5 * time.Second)
			try := func(tried bool, again time.Duration, tries int) {
				b.Helper()
				due := must(b.DueWakes(b.Context(), 10))
				same(b, "due", len(due), 1)
				b.noError(b.PutOff(b.Context(), due, tried))
				same(b, "tries", b.wakesIn("put off", id, again).Tries, tries)
				b.noError(b.PutOff(b.Context(), due, tried)) // what was put off already stays
				same(b, "tries", b.wakesIn("put off", id, again).Tries, tries)
				b.pass(again)
			}
			try(false, 5*time.Second, 0) // nobody could be asked
			for i, minutes := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
				try(true, minutes*time.Minute, i+1)
				if i == 3 {
					try(false, 5*time.Second, i+1)
				}
			}
			b.noError(b.PutOff(b.Context(), nil, true))
		},
		"what was set meanwhile is not put off": func(b *bench) {
			p := b.newPayer(unit(20))
			asked, changed, done, other := b.submit(p, unit(1)), b.accepted(p, unit(1)), b.submit(p, unit(1)), b.submit(p, unit(1))
			b.settle(cancelled(done))
			b.change(changed, task.StepStopped{})
			b.pass(time.Minute)
			due := must(b.DueWakes(b.Context(), 10))
			same(b, "due", len(due), 4)
			b.change(asked, task.Asked{})
			b.change(changed, task.Asked{})
			b.change(changed, task.CancelRequested{})
			b.change(done, task.Asked{})
			b.noError(b.PutOff(b.Context(), due, true))
			b.wakesIn("asked", asked, 10*time.Minute)
			b.wakesIn("changed", changed, 2*time.Second)
			b.wakesIn("done", done, never)
			b.wakesIn("put off", other, time.Minute)
		},
		"parked tasks are retried, the longest parked first, and woken one after the other (D12)": func(b *bench) {
			p := b.newPayer(unit(30))
			var all []string
			for range 4 {
				all = append(all, b.parked(p, mediagate.ParkFunds))
				b.pass(time.Second)
			}
			lost, other := b.submit(p, unit(1)), b.parked(p, mediagate.ParkProviderAway)
			intent := intentOf(lost, 1, b.now())
			intent.Route.Find = true
			b.change(lost, intent, task.SubmitUnknown{Sending: intent.Sending}, task.StepEnded{Step: task.Lookup, N: 1})
			same(b, "lost", b.state(lost).Wait.Reason, mediagate.ParkSubmissionUnknown)
			for _, id := range append(all, other) {
				b.change(id, task.Asked{})
			}
			reasons := []mediagate.ParkReason{mediagate.ParkFunds, mediagate.ParkSubmissionUnknown}
			retry := func(what string, which mediagate.Parked, limit, want int) {
				b.Helper()
				n := must(b.RetryParked(b.Context(), which, limit))
				same(b, what, n, want)
			}
			retry("of another provider", mediagate.Parked{Reasons: reasons, Provider: "vidu"}, 10, 0)
			retry("of a channel, as none was sent to any", mediagate.Parked{Reasons: reasons, Channel: channelName}, 10, 0)
			retry("of no reason", mediagate.Parked{}, 10, 0)
			retry("of a lost submission", mediagate.Parked{Reasons: reasons[1:]}, 10, 0)
			retry("the first two", mediagate.Parked{Reasons: reasons, Provider: "kling"}, 2, 2)
			same(b, "the next step", []task.Kind{b.change(all[0]).Step.Kind, b.change(all[1]).Step.Kind, b.change(all[2]).Step.Kind},
				[]task.Kind{task.Submit, task.Submit, task.Sleep})
			b.wakesIn("the first", all[0], 0)
			b.wakesIn("the second", all[1], 10*time.Millisecond)
			same(b, "still parked", b.state(all[0]).Wait.Reason, mediagate.ParkFunds)
			retry("the others", mediagate.Parked{Reasons: reasons}, 10, 2)
			retry("those that are tried now anyway", mediagate.Parked{Reasons: reasons}, 10, 0)
		},
		"a task that is parked tries again for the vendors that it may go to, not for others that its plan names": func(b *bench) {
			n := b.draft(b.newPayer(unit(10)), unit(1))
			n.Task.Plan.Skipped = []mediagate.SkippedRoute{{Provider: "vidu", Upstream: "vidu-q1", Reason: "no sound"}}
			n.Task.Plan.Source = &mediagate.Source{TaskID: b.submit(b.newPayer(unit(1)), unit(1)), Provider: "suno"}
			must2(b.Submit(b.Context(), n))
			b.park(n.Task.ID, mediagate.ParkFunds)
			for provider, want := range map[string]int{"vidu": 0, "suno": 0, "kling": 1} {
				got := must(b.RetryParked(b.Context(), mediagate.Parked{Reasons: []mediagate.ParkReason{mediagate.ParkFunds}, Provider: provider}, 10))
				same(b, provider, got, want)
			}
		},
	})
}
