package storagetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/mediagate/mediagate"
)

var (
	success = mediagate.Outcome{Succeeded: true, Media: []mediagate.Media{{URL: "https://cdn.example.com/1.mp4"}}, Seconds: 5.04}
	failure = mediagate.Outcome{Failure: &mediagate.Failure{Code: mediagate.CodeContentPolicy, Message: "refused"}, VendorText: "1301"}
)

var attemptTests = map[string]func(*bench){
	"an intent is stored whole": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.submit(p, unit(1))
		row := b.intent(id, 1)
		want := mediagate.Attempt{
			TaskID: id, N: 1, Channel: channelName, Provider: "kling", Fingerprint: "fp", Route: plan.Routes[0], ExternalID: id + "-1",
			SendBefore: b.now().Add(10 * time.Second), State: mediagate.AttemptIntent, Sends: 1, CreatedAt: b.now(),
		}
		same(b, "opened", row, want)
		same(b, "stored", b.attempt(id, 1), want)
		story := b.story(id)
		same(b, "story", []any{story.N, story.State, story.Channel, story.Provider, story.SendBefore},
			[]any{1, mediagate.AttemptIntent, channelName, "kling", want.SendBefore})
		same(b, "status", b.task(id).Status, mediagate.StatusPending)
	},
	"an attempt is opened once": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.submit(p, unit(1))
		first := b.intent(id, 1)
		again, opened, err := b.OpenAttempt(b.Context(), mediagate.Attempt{TaskID: id, N: 1, Channel: "other", Provider: "other"}, mediagate.Slots{})
		b.noError(err)
		same(b, "opened", opened, false)
		same(b, "found", again, first)
		b.settle(failed(id))
		found, opened, err := b.OpenAttempt(b.Context(), mediagate.Attempt{TaskID: id, N: 1}, mediagate.Slots{})
		b.noError(err)
		same(b, "found after the end", []any{found.State, opened}, []any{mediagate.AttemptEnded, false})
	},
	"of twenty senders at once one opens": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.submit(p, unit(1))
		opened := make([]bool, 20)
		b.race(len(opened), func(i int) {
			var err error
			if _, opened[i], err = b.OpenAttempt(b.Context(), mediagate.Attempt{TaskID: id, N: 1, Channel: channelName, Provider: "kling"}, mediagate.Slots{}); err != nil {
				b.Errorf("open: %v", err)
			}
		})
		n := 0
		for _, o := range opened {
			if o {
				n++
			}
		}
		same(b, "opened", n, 1)
	},
	"no intent for a task that ends, is to be cancelled, or went on (D3)": func(b *bench) {
		p := b.newPayer(unit(10))
		ended, wished, later := b.submit(p, unit(1)), b.submit(p, unit(1)), b.submit(p, unit(1))
		b.settle(failed(ended))
		_, err := b.RequestCancel(b.Context(), p.account, wished)
		b.noError(err)
		b.intent(later, 2)
		for _, id := range []string{ended, wished, later} {
			_, _, err := b.OpenAttempt(b.Context(), mediagate.Attempt{TaskID: id, N: 1}, mediagate.Slots{})
			b.kind(err, mediagate.KindConflict)
			_, err = b.Attempt(b.Context(), id, 1)
			b.kind(err, mediagate.KindNotFound)
		}
		_, _, err = b.OpenAttempt(b.Context(), mediagate.Attempt{TaskID: "task_none", N: 1}, mediagate.Slots{})
		b.kind(err, mediagate.KindNotFound)
	},
	"an acceptance starts the waiting": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.submit(p, unit(1))
		b.intent(id, 1)
		b.pass(time.Second)
		ended, err := b.AcceptAttempt(b.Context(), id, 1, mediagate.Submission{Ref: ref(id)}, b.now().Add(time.Minute))
		b.noError(err)
		same(b, "ended", ended, false)
		a, t := b.attempt(id, 1), b.task(id)
		same(b, "attempt", []any{a.State, a.Ref, a.AcceptedAt}, []any{mediagate.AttemptAccepted, ref(id), b.now()})
		same(b, "task", []any{t.Status, t.StartedAt, t.Version}, []any{mediagate.StatusProcessing, b.now(), int64(2)})
		waiting, next, err := b.AwaitStats(b.Context(), channelName)
		b.noError(err)
		same(b, "waiting", []any{waiting, next}, []any{1, b.now().Add(time.Minute)})

		b.pass(time.Second)
		ended, err = b.AcceptAttempt(b.Context(), id, 1, mediagate.Submission{Ref: mediagate.JobRef{JobID: "another"}}, b.now())
		b.noError(err)
		same(b, "again: ended", ended, false)
		same(b, "again: attempt", b.attempt(id, 1), a)
		same(b, "again: task", b.task(id), t)
	},
	"a task of a synchronous vendor is processing while the call lasts": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.submit(p, unit(1))
		open := func(n int) {
			_, opened, err := b.OpenAttempt(b.Context(), mediagate.Attempt{
				TaskID: id, N: n, Channel: channelName, Provider: "dashscope", Route: mediagate.Route{Provider: "dashscope", Sync: true},
				ExternalID: fmt.Sprintf("%s-%d", id, n), SendBefore: b.now().Add(time.Second),
			}, mediagate.Slots{})
			b.noError(err)
			same(b, "opened", opened, true)
		}
		b.pass(time.Second)
		began := b.now()
		open(1)
		t := b.task(id)
		same(b, "task", []any{t.Status, t.StartedAt, t.Version}, []any{mediagate.StatusProcessing, began, int64(2)})
		b.noError(b.RejectAttempt(b.Context(), id, 1, b.attempt(id, 1).SendBefore, mediagate.Failure{Code: mediagate.CodeProviderAway}, "full"))
		b.pass(time.Second)
		open(2)
		same(b, "with the next attempt", b.task(id).StartedAt, began)
		_, err := b.AcceptAttempt(b.Context(), id, 2, mediagate.Submission{Ref: ref(id), Outcome: &success}, time.Time{})
		b.noError(err)
		t = b.task(id)
		same(b, "accepted", []any{t.Status, t.StartedAt, t.Version}, []any{mediagate.StatusProcessing, began, int64(2)})
	},
	"a synchronous acceptance brings the outcome and waits for nothing": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.submit(p, unit(1))
		b.intent(id, 1)
		_, err := b.AcceptAttempt(b.Context(), id, 1, mediagate.Submission{Ref: ref(id), Outcome: &success}, time.Time{})
		b.noError(err)
		a := b.attempt(id, 1)
		same(b, "attempt", []any{a.State, a.Outcome, a.EndedAt}, []any{mediagate.AttemptEnded, &success, b.now()})
		same(b, "waiting", b.waiting(), 0)
		same(b, "story", b.story(id).Succeeded, true)
		same(b, "status", b.task(id).Status, mediagate.StatusProcessing)
	},
	"an acceptance after the end records the job only (D5)": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.submit(p, unit(1))
		b.intent(id, 1)
		b.settle(cancelled(id))
		before := b.task(id)
		ended, err := b.AcceptAttempt(b.Context(), id, 1, mediagate.Submission{Ref: ref(id)}, b.now())
		b.noError(err)
		same(b, "ended", ended, true)
		a := b.attempt(id, 1)
		same(b, "attempt", []any{a.State, a.Ref}, []any{mediagate.AttemptEnded, ref(id)})
		same(b, "waiting", b.waiting(), 0)
		same(b, "task", b.task(id), before)
	},
	"an acceptance of an attempt given up records the job only": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.submit(p, unit(1))
		b.lost(id)
		b.retry(id)
		b.noError(b.GiveUpAttempt(b.Context(), id, 1, "given up"))
		b.intent(id, 2)
		ended, err := b.AcceptAttempt(b.Context(), id, 1, mediagate.Submission{Ref: ref(id)}, b.now())
		b.noError(err)
		same(b, "ended", ended, true)
		same(b, "waiting", b.waiting(), 0)
		same(b, "ref", b.attempt(id, 1).Ref, ref(id))
		same(b, "status", b.task(id).Status, mediagate.StatusPending)
	},
	"of acceptance and end at once no waiting row is left": func(b *bench) {
		p := b.newPayer(unit(10))
		for range 5 {
			id := b.submit(p, unit(1))
			b.intent(id, 1)
			b.race(2, func(i int) {
				var err error
				if i == 0 {
					_, err = b.AcceptAttempt(b.Context(), id, 1, mediagate.Submission{Ref: ref(id)}, b.now())
				} else {
					_, _, err = b.Settle(b.Context(), cancelled(id))
				}
				if err != nil {
					b.Errorf("%d: %v", i, err)
				}
			})
			same(b, "waiting", b.waiting(), 0)
			same(b, "ref", b.attempt(id, 1).Ref, ref(id))
		}
	},
	"a found job un-parks its task": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.submit(p, unit(1))
		row := b.intent(id, 1)
		deadline := b.task(id).DeadlineAt
		b.noError(b.MarkUnknown(b.Context(), id, 1, row.SendBefore, "timeout"))
		b.noError(b.Park(b.Context(), id, mediagate.ParkSubmissionUnknown))
		b.pass(5 * time.Minute)
		_, err := b.AcceptAttempt(b.Context(), id, 1, mediagate.Submission{Ref: ref(id)}, b.now())
		b.noError(err)
		t := b.task(id)
		same(b, "task", []any{t.ParkedAt, t.ParkReason, t.DeadlineAt}, []any{time.Time{}, mediagate.ParkReason(""), deadline.Add(5 * time.Minute)})
		same(b, "error", b.attempt(id, 1).Error, "")
	},
	"another parking outlasts an acceptance": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.submit(p, unit(1))
		b.intent(id, 1)
		b.noError(b.Park(b.Context(), id, mediagate.ParkInternal))
		_, err := b.AcceptAttempt(b.Context(), id, 1, mediagate.Submission{Ref: ref(id)}, b.now())
		b.noError(err)
		same(b, "reason", b.task(id).ParkReason, mediagate.ParkInternal)
	},
	"a rejection is proven once, and tells why": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.submit(p, unit(1))
		row := b.intent(id, 1)
		why := mediagate.Failure{Code: mediagate.CodeInvalidParameters, Message: "no"}
		b.noError(b.RejectAttempt(b.Context(), id, 1, row.SendBefore, why, "invalid"))
		a := b.attempt(id, 1)
		same(b, "attempt", []any{a.State, a.Error}, []any{mediagate.AttemptRejected, "invalid"})
		story := b.story(id)
		same(b, "story", []any{story.State, story.Failure}, []any{mediagate.AttemptRejected, &why})
		_, err := b.AcceptAttempt(b.Context(), id, 1, mediagate.Submission{Ref: ref(id)}, b.now())
		b.kind(err, mediagate.KindConflict)
		b.noError(b.MarkUnknown(b.Context(), id, 1, row.SendBefore, "late"))
		same(b, "state", b.attempt(id, 1).State, mediagate.AttemptRejected)
	},
	"the story tells a lost sender from one that has spoken": func(b *bench) {
		p := b.newPayer(unit(10))
		for word, want := range map[string]bool{mediagate.SenderLost: true, "timeout": false} {
			id := b.submit(p, unit(1))
			row := b.intent(id, 1)
			same(b, "intent", b.story(id).SenderLost, false)
			b.noError(b.MarkUnknown(b.Context(), id, 1, row.SendBefore, word))
			same(b, word, b.story(id).SenderLost, want)
		}
		id := b.submit(p, unit(1))
		row := b.intent(id, 1)
		b.noError(b.MarkUnknown(b.Context(), id, 1, row.SendBefore, mediagate.SenderLost))
		_, err := b.AcceptAttempt(b.Context(), id, 1, mediagate.Submission{Ref: ref(id)}, b.now())
		b.noError(err)
		same(b, "once its answer came", b.story(id).SenderLost, false)
	},
	"a late sender says nothing of an intent opened again": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.submit(p, unit(1))
		old := b.intent(id, 1)
		b.noError(b.MarkUnknown(b.Context(), id, 1, old.SendBefore, "lost"))
		b.absentTwice(id, old)
		again, err := b.ReopenIntent(b.Context(), id, 1, old.SendBefore, b.now().Add(10*time.Second))
		b.noError(err)
		same(b, "reopened", again, true)
		b.noError(b.MarkUnknown(b.Context(), id, 1, old.SendBefore, "late"))
		b.noError(b.RejectAttempt(b.Context(), id, 1, old.SendBefore, mediagate.Failure{}, "late"))
		a := b.attempt(id, 1)
		same(b, "attempt", []any{a.State, a.SendBefore, a.ExternalID, a.Error},
			[]any{mediagate.AttemptIntent, b.now().Add(10 * time.Second), old.ExternalID, ""})

		// Lost once more: what was learnt of the first sending proves nothing.
		b.noError(b.MarkUnknown(b.Context(), id, 1, a.SendBefore, "lost again"))
		_, _, err = b.NoteAbsent(b.Context(), id, 1, old.SendBefore, b.now(), absentGap)
		b.kind(err, mediagate.KindConflict)
		for _, lost := range []time.Time{old.SendBefore, a.SendBefore} {
			again, err = b.ReopenIntent(b.Context(), id, 1, lost, b.now().Add(time.Hour))
			b.noError(err)
			same(b, "reopened without proof", again, false)
		}
	},
	"two lookups prove absence, the second begun a while after the first (D4)": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.submit(p, unit(1))
		row := b.intent(id, 1)
		_, _, err := b.NoteAbsent(b.Context(), id, 1, row.SendBefore, b.now(), absentGap)
		b.kind(err, mediagate.KindConflict)
		b.noError(b.MarkUnknown(b.Context(), id, 1, row.SendBefore, "timeout"))
		reopen := func() bool {
			again, err := b.ReopenIntent(b.Context(), id, 1, row.SendBefore, b.now().Add(time.Second))
			b.noError(err)
			return again
		}
		note := func(asked time.Time) (time.Time, bool) {
			first, proven, err := b.NoteAbsent(b.Context(), id, 1, row.SendBefore, asked, absentGap)
			b.noError(err)
			return first, proven
		}
		first, proven := note(b.now())
		same(b, "first", []any{first, proven}, []any{b.now(), false})
		b.pass(time.Hour) // an outage, a reset by hand: no second lookup
		same(b, "reopened after one lookup", reopen(), false)
		again, proven := note(first.Add(absentGap - time.Microsecond)) // begun too early, answered late
		same(b, "too early", []any{again, proven}, []any{first, false})
		same(b, "reopened", reopen(), false)
		again, proven = note(first.Add(absentGap))
		same(b, "second", []any{again, proven}, []any{first, true})
		a := b.attempt(id, 1)
		same(b, "attempt", []any{a.AbsentAt, a.AgainAt, a.Sends}, []any{first, b.now(), 1})
		b.pass(time.Hour - time.Minute) // within the task's time still
		again, proven = note(b.now())
		same(b, "third", []any{again, proven, b.attempt(id, 1).AgainAt}, []any{first, true, a.AgainAt})
		same(b, "story", b.story(id).AbsentAt, first)
		reopened, err := b.ReopenIntent(b.Context(), id, 1, row.SendBefore, b.now().Add(time.Second))
		b.noError(err)
		a = b.attempt(id, 1)
		same(b, "reopened", []any{reopened, a.AbsentAt, a.AgainAt, a.Sends}, []any{true, time.Time{}, time.Time{}, 2})
		reopened, err = b.ReopenIntent(b.Context(), id, 1, row.SendBefore, b.now().Add(time.Second))
		b.noError(err)
		same(b, "reopened twice", reopened, false)
		_, _, err = b.NoteAbsent(b.Context(), id, 2, row.SendBefore, b.now(), absentGap)
		b.kind(err, mediagate.KindNotFound)
	},
	"no intent, first or again, once the waiting is over (D3)": func(b *bench) {
		p := b.newPayer(unit(100))
		for name, c := range map[string]struct {
			parked time.Duration // before the end
			past   time.Duration // the end of the waiting
			opened bool
		}{
			"just before":           {0, -time.Microsecond, true},
			"at the deadline":       {0, 0, false},
			"later":                 {0, time.Hour, false},
			"parked, just before":   {30 * time.Minute, -time.Microsecond, true},
			"parked, later":         {30 * time.Minute, 0, true}, // its time stands still
			"parked at the last":    {time.Microsecond, 10 * time.Hour, true},
			"parked after the end":  {-time.Minute, 10 * time.Hour, false},
			"parked at the end too": {0, 10 * time.Hour, false},
		} {
			fresh, lost := b.submit(p, unit(1)), b.submit(p, unit(1))
			row := b.lost(lost)
			b.absentTwice(lost, row)
			deadline := b.task(fresh).DeadlineAt
			parks := strings.HasPrefix(name, "parked")
			if parks {
				b.pass(deadline.Add(-c.parked).Sub(b.now()))
				b.noError(b.Park(b.Context(), fresh, mediagate.ParkFunds))
				b.noError(b.Park(b.Context(), lost, mediagate.ParkFunds))
			}
			b.pass(deadline.Add(c.past).Sub(b.now()))
			_, opened, err := b.OpenAttempt(b.Context(), mediagate.Attempt{TaskID: fresh, N: 1, Channel: channelName, Provider: "kling", SendBefore: b.now()}, mediagate.Slots{})
			if c.opened {
				b.noError(err)
			} else {
				b.kind(err, mediagate.KindConflict)
			}
			reopened, err := b.ReopenIntent(b.Context(), lost, 1, row.SendBefore, b.now())
			b.noError(err)
			same(b, name, []any{opened, reopened}, []any{c.opened, c.opened})
		}
	},
	"a refusal of what was sent again is kept, and forbids sending (D4)": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.submit(p, unit(1))
		row := b.lost(id)
		b.absentTwice(id, row)
		second := b.now().Add(10 * time.Second)
		reopened, err := b.ReopenIntent(b.Context(), id, 1, row.SendBefore, second)
		b.noError(err)
		same(b, "reopened", reopened, true)
		why := mediagate.Failure{Code: mediagate.CodeInvalidParameters, Message: "no"}
		b.noError(b.DoubtRefusal(b.Context(), id, 1, row.SendBefore, why, "late")) // of the first sending
		same(b, "state", b.attempt(id, 1).State, mediagate.AttemptIntent)
		b.noError(b.DoubtRefusal(b.Context(), id, 1, second, why, "invalid"))
		a := b.attempt(id, 1)
		same(b, "attempt", []any{a.State, a.Refusal, a.Error, a.Sends}, []any{mediagate.AttemptUnknown, &why, "invalid", 2})
		same(b, "story", b.story(id).Failure, (*mediagate.Failure)(nil))
		b.absentTwice(id, a)
		reopened, err = b.ReopenIntent(b.Context(), id, 1, second, b.now().Add(time.Second))
		b.noError(err)
		same(b, "reopened", reopened, false)
		b.noError(b.RejectAttempt(b.Context(), id, 1, second, *a.Refusal, a.Error))
		same(b, "rejected", []any{b.attempt(id, 1).State, b.story(id).Failure}, []any{mediagate.AttemptRejected, &why})
	},
	"nothing is sent again for a task that ends": func(b *bench) {
		p := b.newPayer(unit(10))
		for _, end := range []func(id string){
			func(id string) { b.settle(failed(id)) },
			func(id string) {
				_, err := b.RequestCancel(b.Context(), p.account, id)
				b.noError(err)
			},
		} {
			id := b.submit(p, unit(1))
			row := b.lost(id)
			b.absentTwice(id, row)
			end(id)
			reopened, err := b.ReopenIntent(b.Context(), id, 1, row.SendBefore, b.now())
			b.noError(err)
			same(b, "reopened", reopened, false)
		}
	},
	"a lost attempt can be given up, and a late outcome of it is recorded": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.submit(p, unit(1))
		b.lost(id)
		b.retry(id)
		b.noError(b.GiveUpAttempt(b.Context(), id, 1, "given up"))
		a := b.attempt(id, 1)
		same(b, "attempt", []any{a.State, a.Error, a.EndedAt}, []any{mediagate.AttemptEnded, "given up", b.now()})
		b.intent(id, 2)
		won, err := b.RecordOutcome(b.Context(), id, 1, success)
		b.noError(err)
		same(b, "won", won, true)
		same(b, "outcome", b.attempt(id, 1).Outcome, &success)
		story := b.story(id)
		same(b, "story", []any{story.N, story.Succeeded}, []any{2, false})
	},
	"D6: an attempt is given up only at a retry that came after it": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.submit(p, unit(1))
		b.retry(id)
		b.pass(time.Second)
		b.lost(id)
		giveUp := func() mediagate.AttemptState {
			b.noError(b.GiveUpAttempt(b.Context(), id, 1, "given up"))
			return b.attempt(id, 1).State
		}
		same(b, "after a retry from before", giveUp(), mediagate.AttemptUnknown)
		b.pass(time.Microsecond)
		pending, err := b.RecordAction(b.Context(), mediagate.Action{TaskID: id, Action: mediagate.ActionRetry})
		b.noError(err)
		same(b, "before anybody took the next", giveUp(), mediagate.AttemptUnknown)
		_, err = b.TakeAction(b.Context(), pending.ID, "run")
		b.noError(err)
		same(b, "then", giveUp(), mediagate.AttemptEnded)
	},
	"an attempt whose fate is known is not given up": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.accepted(p, unit(1))
		b.retry(id)
		b.noError(b.GiveUpAttempt(b.Context(), id, 1, "given up"))
		same(b, "waiting", b.waiting(), 1)
		same(b, "state", b.attempt(id, 1).State, mediagate.AttemptAccepted)
	},
	"no attempt follows one whose fate is open": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.submit(p, unit(1))
		next := mediagate.Attempt{TaskID: id, N: 2, Channel: channelName, Provider: "kling", Route: plan.Routes[0], SendBefore: b.now()}
		b.lost(id)
		_, _, err := b.OpenAttempt(b.Context(), next, mediagate.Slots{})
		b.kind(err, mediagate.KindConflict)
		_, err = b.AcceptAttempt(b.Context(), id, 1, mediagate.Submission{Ref: ref(id)}, b.now())
		b.noError(err)
		_, _, err = b.OpenAttempt(b.Context(), next, mediagate.Slots{})
		b.kind(err, mediagate.KindConflict)
		all, err := b.Attempts(b.Context(), id)
		b.noError(err)
		same(b, "attempts", len(all), 1)
	},
	"the first outcome stays": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.accepted(p, unit(1))
		won := make([]bool, 2)
		b.race(2, func(i int) {
			var err error
			outcome := success
			if i == 1 {
				outcome = failure
			}
			if won[i], err = b.RecordOutcome(b.Context(), id, 1, outcome); err != nil {
				b.Errorf("record: %v", err)
			}
		})
		want := &success
		if won[1] {
			want = &failure
		}
		same(b, "one won", won[0] != won[1], true)
		same(b, "outcome", b.attempt(id, 1).Outcome, want)
		story := b.story(id)
		same(b, "story", []any{story.Succeeded, story.Failure}, []any{want.Succeeded, want.Failure})
		same(b, "waiting", b.waiting(), 0)
		_, err := b.RecordOutcome(b.Context(), id, 2, success)
		b.kind(err, mediagate.KindNotFound)
	},
	"mirrored files are kept with the attempt": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.accepted(p, unit(1))
		same(b, "before", b.story(id).Mirrored, false)
		files := completed(id, 0).Results
		b.noError(b.StoreMirrored(b.Context(), id, 1, files))
		same(b, "files", b.attempt(id, 1).Results, files)
		same(b, "after", b.story(id).Mirrored, true)
		b.kind(b.StoreMirrored(b.Context(), id, 2, files), mediagate.KindNotFound)
	},
	"an attempt without files is mirrored when it is said to be": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.accepted(p, unit(1))
		same(b, "before", []bool{b.story(id).Mirrored, b.attempt(id, 1).Mirrored()}, []bool{false, false})
		b.noError(b.StoreMirrored(b.Context(), id, 1, nil))
		same(b, "after", []bool{b.story(id).Mirrored, b.attempt(id, 1).Mirrored()}, []bool{true, true})
		same(b, "files", len(b.attempt(id, 1).Results), 0)
	},
	"attempts are listed in their order": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.submit(p, unit(1))
		row := b.intent(id, 1)
		b.noError(b.RejectAttempt(b.Context(), id, 1, row.SendBefore, mediagate.Failure{}, ""))
		b.intent(id, 2)
		got, err := b.Attempts(b.Context(), id)
		b.noError(err)
		same(b, "states", []any{len(got), got[0].N, got[0].State, got[1].N, got[1].State},
			[]any{2, 1, mediagate.AttemptRejected, 2, mediagate.AttemptIntent})
	},
}
