package storagetest

import (
	"sync/atomic"
	"time"

	"github.com/mediagate/mediagate"
)

var settleTests = map[string]func(*bench){
	"a completed task is charged what it cost": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.accepted(p, unit(4))
		b.pass(time.Minute)
		end := completed(id, unit(3))
		end.EndedAt = b.now().Add(-time.Second)
		story := b.settle(end)
		same(b, "story", []any{story.Status, story.WebhookRound, story.WebhookState}, []any{mediagate.StatusCompleted, 1, mediagate.WebhookPending})
		t := b.task(id)
		same(b, "task", []any{t.Status, t.Progress, t.Cost, t.EndedAt, t.Version, t.Results, t.Failure},
			[]any{mediagate.StatusCompleted, 100, unit(3), end.EndedAt, int64(3), end.Results, (*mediagate.Failure)(nil)})
		b.money(p, unit(7), 0, unit(3))
		same(b, "attempt", b.attempt(id, 1).State, mediagate.AttemptEnded)
		same(b, "waiting", b.waiting(), 0)
	},
	"a task may cost all of its hold, but no more": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.accepted(p, unit(4))
		_, _, err := b.Settle(b.Context(), completed(id, unit(4)+1))
		b.kind(err, mediagate.KindInternal)
		same(b, "status", b.task(id).Status, mediagate.StatusProcessing)
		b.money(p, unit(6), unit(4), 0)
		b.settle(completed(id, unit(4)))
		b.money(p, unit(6), 0, unit(4))
	},
	"what was made beside the files stays with a completed task, and who made it": func(b *bench) {
		p := b.newPayer(unit(10))
		id, open, lost := b.accepted(p, unit(4)), b.accepted(p, unit(1)), b.accepted(p, unit(1))
		_, err := b.Producer(b.Context(), id)
		b.kind(err, mediagate.KindNotFound)
		made := &mediagate.Made{
			Clips:   []mediagate.Clip{{ID: "clip-1", Title: "A song", Timing: [][2]float64{{0.5, 1}}, Seconds: 12.5}},
			Buttons: []mediagate.Button{{CustomID: "MJ::1", Label: "U1"}},
		}
		outcome := success
		outcome.Made = made
		_, err = b.RecordOutcome(b.Context(), id, 1, outcome)
		b.noError(err)
		end := completed(id, unit(3))
		b.noError(b.StoreMirrored(b.Context(), id, 1, end.Results))
		_, err = b.Producer(b.Context(), id)
		b.kind(err, mediagate.KindNotFound) // not before the end
		end.Made = made
		b.settle(end)
		same(b, "made", b.task(id).Made, made)
		producer, err := b.Producer(b.Context(), id)
		b.noError(err)
		same(b, "producer", []any{producer.TaskID, producer.N, producer.Outcome.Made}, []any{id, 1, made})

		b.settle(failed(lost))
		for _, other := range []string{open, lost, "task_nobody"} {
			_, err := b.Producer(b.Context(), other)
			b.kind(err, mediagate.KindNotFound)
		}
		same(b, "nothing made", b.task(open).Made, (*mediagate.Made)(nil))
	},
	"a completed task may cost nothing": func(b *bench) {
		p := b.newPayer(unit(10))
		id, free := b.accepted(p, unit(4)), b.accepted(p, 0)
		b.settle(completed(id, 0))
		b.settle(completed(free, 0))
		b.money(p, unit(10), 0, 0)
	},
	"a failed task gets its money back, and says why": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.accepted(p, unit(4))
		end := failed(id)
		b.settle(end)
		t := b.task(id)
		same(b, "task", []any{t.Status, t.Progress, t.Cost, t.Failure, len(t.Results)}, []any{mediagate.StatusFailed, 0, unit(0), end.Failure, 0})
		same(b, "callback", t.Webhook, &mediagate.Webhook{URL: t.Webhook.URL, State: mediagate.WebhookPending, Round: 1})
		b.money(p, unit(10), 0, 0)
	},
	"a cancelled task gets its money back, and calls nobody": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.accepted(p, unit(4))
		b.settle(cancelled(id))
		t := b.task(id)
		same(b, "task", []any{t.Status, t.Failure}, []any{mediagate.StatusCancelled, (*mediagate.Failure)(nil)})
		same(b, "callback", t.Webhook, &mediagate.Webhook{URL: t.Webhook.URL, State: mediagate.WebhookDropped, Reason: "task cancelled"})
		b.money(p, unit(10), 0, 0)
	},
	"a task that never reached a vendor can end": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.submit(p, unit(4))
		end := failed(id)
		end.N = 0
		b.settle(end)
		b.money(p, unit(10), 0, 0)
	},
	"open attempts end with their task, rejected ones stay": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.submit(p, unit(4))
		row := b.intent(id, 1)
		b.noError(b.RejectAttempt(b.Context(), id, 1, row.SendBefore, mediagate.Failure{}, ""))
		row = b.intent(id, 2)
		b.noError(b.MarkUnknown(b.Context(), id, 2, row.SendBefore, ""))
		b.settle(failed(id))
		same(b, "states", []any{b.attempt(id, 1).State, b.attempt(id, 2).State}, []any{mediagate.AttemptRejected, mediagate.AttemptEnded})
	},
	"a promised cancel holds: nothing completes after it (D13)": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.accepted(p, unit(4))
		b.noError(b.StoreMirrored(b.Context(), id, 1, completed(id, 0).Results))
		_, err := b.RequestCancel(b.Context(), p.account, id)
		b.noError(err)
		story := b.settle(completed(id, unit(3)))
		t := b.task(id)
		same(b, "story", []any{story.Status, story.WebhookRound}, []any{mediagate.StatusCancelled, 0})
		same(b, "task", []any{t.Status, t.Progress, t.Cost, len(t.Results), t.Webhook.State}, []any{mediagate.StatusCancelled, 0, unit(0), 0, mediagate.WebhookDropped})
		b.money(p, unit(10), 0, 0)
	},
	"a cancel and an end at once agree (D13)": func(b *bench) {
		p := b.newPayer(unit(100))
		for range 20 {
			id := b.accepted(p, unit(1))
			var promised atomic.Bool
			b.race(2, func(i int) {
				var err error
				if i == 0 {
					_, err = b.RequestCancel(b.Context(), p.account, id)
					promised.Store(err == nil)
				} else {
					_, _, err = b.Settle(b.Context(), completed(id, unit(1)))
				}
				if err != nil && !mediagate.Is(err, mediagate.KindConflict) {
					b.Errorf("%d: %v", i, err)
				}
			})
			want := mediagate.StatusCompleted
			if promised.Load() {
				want = mediagate.StatusCancelled
			}
			same(b, "status", b.task(id).Status, want)
		}
	},
	"nobody is given up whose outcome is on record (D10)": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.accepted(p, unit(4))
		_, err := b.RecordOutcome(b.Context(), id, 1, success)
		b.noError(err)
		end := failed(id)
		end.WithoutOutcome = true
		story, won, err := b.Settle(b.Context(), end)
		b.noError(err)
		same(b, "answer", []any{won, story.Status, story.Succeeded}, []any{false, mediagate.StatusProcessing, true})
		b.money(p, unit(6), unit(4), 0)
		end.WithoutOutcome = false // an operator's word, or a result that nobody can fetch
		b.settle(end)

		other := b.accepted(p, unit(4))
		end = failed(other)
		end.WithoutOutcome = true
		b.settle(end)
	},
	"an order to fail keeps open what was to complete without one": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.accepted(p, unit(4))
		end := completed(id, unit(1))
		end.UnlessOvertaken = true
		for _, action := range []string{mediagate.ActionRetry, mediagate.ActionFail} {
			_, err := b.RecordAction(b.Context(), mediagate.Action{TaskID: id, Action: action, By: "operator"})
			b.noError(err)
		}
		story, won, err := b.Settle(b.Context(), end)
		b.noError(err)
		same(b, "answer", []any{won, story.Status}, []any{false, mediagate.StatusProcessing})
		b.money(p, unit(6), unit(4), 0)

		other := b.accepted(p, unit(4))
		_, err = b.RecordAction(b.Context(), mediagate.Action{TaskID: other, Action: mediagate.ActionRetry, By: "operator"})
		b.noError(err)
		end = completed(other, unit(1))
		end.UnlessOvertaken = true
		b.settle(end)
		b.settle(failed(id))
	},
	"an attempt that followed keeps open what was to complete without it": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.accepted(p, unit(4))
		_, err := b.RecordOutcome(b.Context(), id, 1, failure)
		b.noError(err)
		b.intent(id, 2)
		end := completed(id, unit(1))
		end.UnlessOvertaken = true
		story, won, err := b.Settle(b.Context(), end)
		b.noError(err)
		same(b, "answer", []any{won, story.Status, story.N}, []any{false, mediagate.StatusProcessing, 2})
		b.money(p, unit(6), unit(4), 0)
		b.settle(failed(id))
	},
	"an end that its run does not know of leaves the signal outstanding": func(b *bench) {
		p := b.newPayer(unit(20))
		told, untold, stopped, early := b.accepted(p, unit(4)), b.accepted(p, unit(4)), b.accepted(p, unit(4)), b.accepted(p, unit(4))
		_, err := b.RequestCancel(b.Context(), p.account, stopped)
		b.noError(err)
		epoch, _ := b.claim("c")
		var ends []mediagate.PollResult
		for _, id := range []string{told, untold, stopped} {
			end := b.quiet(id, time.Second)
			end.Outcome = &success
			ends = append(ends, end)
		}
		b.store("c", ends...)
		for _, id := range []string{told, untold, stopped, early} {
			end := completed(id, unit(1))
			end.UnlessOvertaken, end.RunUntold = true, id != told
			b.settle(end)
		}
		same(b, "outstanding", []bool{b.story(told).Outstanding, b.story(untold).Outstanding, b.story(stopped).Outstanding, b.story(early).Outstanding},
			[]bool{false, true, true, false})
		same(b, "ends", []mediagate.Status{b.task(untold).Status, b.task(stopped).Status}, []mediagate.Status{mediagate.StatusCompleted, mediagate.StatusCancelled})
		b.pass(time.Hour)
		rows, err := b.ClaimDue(b.Context(), channelName, epoch, "d", lease, 10)
		b.noError(err)
		same(b, "signalled again", sorted(ids(rows)), sorted([]string{untold, stopped}))
		for _, row := range rows {
			same(b, "nothing is asked for "+row.TaskID, row.Ended, true)
			b.noError(b.DropAwait(b.Context(), row.TaskID, row.N))
		}
		b.pass(time.Hour)
		rows, err = b.ClaimDue(b.Context(), channelName, epoch, "e", lease, 10)
		b.noError(err)
		same(b, "heard", len(rows), 0)
	},
	"an end is final": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.accepted(p, unit(4))
		b.settle(completed(id, unit(1)))
		before := b.task(id)
		for _, end := range []mediagate.Settlement{failed(id), cancelled(id), completed(id, unit(2))} {
			story, won, err := b.Settle(b.Context(), end)
			b.noError(err)
			same(b, "answer", []any{story.Status, won}, []any{mediagate.StatusCompleted, false})
		}
		same(b, "task", b.task(id), before)
		b.money(p, unit(9), 0, unit(1))
	},
	"of many ends at once one counts": func(b *bench) {
		p := b.newPayer(unit(100))
		for range 5 {
			id := b.accepted(p, unit(4))
			ends := []mediagate.Settlement{completed(id, unit(1)), failed(id), cancelled(id), completed(id, unit(2)), failed(id), cancelled(id)}
			var won atomic.Int64
			var status atomic.Value
			b.race(len(ends), func(i int) {
				story, first, err := b.Settle(b.Context(), ends[i])
				if err != nil {
					b.Errorf("settle: %v", err)
				}
				if first {
					won.Add(1)
					status.Store(story.Status)
				}
			})
			same(b, "winners", won.Load(), 1)
			same(b, "status", b.task(id).Status, status.Load().(mediagate.Status))
			if b.office != nil {
				same(b, "resolutions", b.count("SELECT COUNT(*) FROM ledger_transfers WHERE task_id = ? AND kind <> 'hold'", id), 1)
			}
		}
	},
	"ends that cannot be are refused": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.accepted(p, unit(4))
		noReason, charged, negative := failed(id), failed(id), completed(id, -1)
		noReason.Failure, charged.Cost = nil, 1
		odd := completed(id, 0)
		odd.Failure = failed(id).Failure
		for name, end := range map[string]mediagate.Settlement{
			"still open":                 {TaskID: id, Status: mediagate.StatusProcessing},
			"no status":                  {TaskID: id},
			"failed without a reason":    noReason,
			"failed, but charged":        charged,
			"negative cost":              negative,
			"completed with a failure":   odd,
			"cancelled, but with a cost": {TaskID: id, Status: mediagate.StatusCancelled, Cost: 1},
		} {
			if _, _, err := b.Settle(b.Context(), end); !mediagate.Is(err, mediagate.KindInternal) {
				b.Errorf("%s: error %v", name, err)
			}
		}
		same(b, "status", b.task(id).Status, mediagate.StatusProcessing)
	},
	"a row that is gone ends as a story": func(b *bench) {
		story, won, err := b.Settle(b.Context(), failed("task_none"))
		b.noError(err)
		same(b, "answer", []any{story, won}, []any{mediagate.Story{Missing: true}, false})
	},
}

var webhookTests = map[string]func(*bench){
	"the first round has the body of the end": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.accepted(p, unit(1))
		_, err := b.WebhookTarget(b.Context(), id, 1)
		b.kind(err, mediagate.KindNotFound)
		end := completed(id, unit(1))
		b.settle(end)
		target, err := b.WebhookTarget(b.Context(), id, 1)
		b.noError(err)
		secrets := target.Secrets
		if b.office != nil {
			secrets, err = b.WebhookSecrets(b.Context(), p.account)
			b.noError(err)
		}
		same(b, "target", target, mediagate.WebhookTarget{
			AccountID: p.account, URL: "https://receiver.example.com/hook", Body: end.WebhookBody, BodyAt: b.now(), Secrets: secrets,
			State: mediagate.WebhookPending, Round: 1,
		})
	},
	"a task without a callback has no target": func(b *bench) {
		p := b.newPayer(unit(10))
		n := b.draft(p, unit(1))
		n.Task.Webhook = nil
		_, _, err := b.Submit(b.Context(), n)
		b.noError(err)
		b.settle(failed(n.Task.ID))
		_, err = b.WebhookTarget(b.Context(), n.Task.ID, 1)
		b.kind(err, mediagate.KindNotFound)
		_, err = b.WebhookTarget(b.Context(), "task_none", 1)
		b.kind(err, mediagate.KindNotFound)
		same(b, "round", b.story(n.Task.ID).WebhookRound, 0)
	},
	"an end without a body calls nobody": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.accepted(p, unit(1))
		end := failed(id)
		end.WebhookBody = nil
		b.settle(end)
		same(b, "state", b.task(id).Webhook.State, mediagate.WebhookDropped)
	},
	"deliveries are kept, a repeated one once": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.accepted(p, unit(1))
		b.settle(failed(id))
		first := mediagate.Delivery{
			TaskID: id, Round: 1, Attempt: 1, At: b.now(), Status: 503, Duration: 1500 * time.Microsecond, NextAttemptAt: b.now().Add(10 * time.Second),
		}
		second := mediagate.Delivery{TaskID: id, Round: 1, Attempt: 2, At: b.now().Add(10 * time.Second), Error: "timeout", Duration: 10 * time.Second}
		for _, d := range []mediagate.Delivery{second, first, second} {
			b.noError(b.RecordDelivery(b.Context(), d, "", ""))
		}
		second.Status, second.Error, second.Duration = 200, "", time.Millisecond
		b.noError(b.RecordDelivery(b.Context(), second, "", ""))
		got, err := b.Deliveries(b.Context(), id)
		b.noError(err)
		same(b, "deliveries", got, []mediagate.Delivery{first, second})
		none := mediagate.Delivery{TaskID: "task_none", Round: 1, Attempt: 1, At: b.now()}
		b.kind(b.RecordDelivery(b.Context(), none, mediagate.WebhookDelivered, ""), mediagate.KindNotFound)
		same(b, "callback", b.task(id).Webhook.State, mediagate.WebhookPending)
	},
	"only the newest round says how it ended, and delivered stays (D14)": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.accepted(p, unit(1))
		b.settle(failed(id))
		version := b.task(id).Version
		check := func(what string, round int, state mediagate.WebhookState, reason string, want mediagate.WebhookState, bumps int64) {
			b.Helper()
			b.noError(b.RecordDelivery(b.Context(), mediagate.Delivery{TaskID: id, Round: round, Attempt: 1, At: b.now()}, state, reason))
			t := b.task(id)
			version += bumps
			same(b, what, []any{t.Webhook.State, t.Version}, []any{want, version})
		}
		check("a round that is not", 2, mediagate.WebhookDelivered, "", mediagate.WebhookPending, 0)
		check("abandoned", 1, mediagate.WebhookAbandoned, "no attempt succeeded", mediagate.WebhookAbandoned, 1)
		check("again", 1, mediagate.WebhookAbandoned, "no attempt succeeded", mediagate.WebhookAbandoned, 0)
		check("delivered after all", 1, mediagate.WebhookDelivered, "", mediagate.WebhookDelivered, 1)
		check("too late", 1, mediagate.WebhookAbandoned, "x", mediagate.WebhookDelivered, 0)
		same(b, "reason", b.task(id).Webhook.Reason, "")
	},
}
