package storage_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

func (b *bench) deliver(d mediagate.Delivery, state mediagate.WebhookState) {
	b.Helper()
	b.noError(b.RecordDelivery(b.Context(), d, state, ""))
}

func TestWebhookFacts(t *testing.T) {
	t.Parallel()
	prove(t, facts{
		"a round sends the body that was stored first (D14)": func(b *bench) {
			p := b.newPayer(unit(10))
			id := b.accepted(p, unit(1))
			missing := func() {
				b.Helper()
				b.kind(errOf(b.StoreWebhookBody(b.Context(), id, []byte("early"))), mediagate.KindNotFound)
				b.kind(errOf(b.WebhookTarget(b.Context(), id, 1)), mediagate.KindNotFound)
			}
			missing()
			b.settle(completed(id, unit(1)))
			secrets := must(b.WebhookSecrets(b.Context(), p.account))
			want := mediagate.WebhookTarget{
				AccountID: p.account, URL: "https://receiver.example.com/hook", Secrets: secrets, State: mediagate.WebhookPending, Round: 1,
			}
			target := func(what string) {
				b.Helper()
				got := must(b.WebhookTarget(b.Context(), id, 1))
				same(b, what, got, want)
			}
			target("without a body")
			var mu sync.Mutex
			bodies := map[string]bool{}
			b.race(6, func(i int) {
				body := must(b.StoreWebhookBody(b.Context(), id, []byte{'0' + byte(i)}))
				mu.Lock()
				defer mu.Unlock()
				bodies[string(body)] = true
			})
			same(b, "bodies", len(bodies), 1)
			for body := range bodies {
				want.Body = []byte(body)
			}
			b.pass(time.Hour)
			body := must(b.StoreWebhookBody(b.Context(), id, []byte("late")))
			same(b, "body", string(body), string(want.Body))
			target("with the first body")
			b.change(id, task.RedeliverRequested{})
			want.Round = 2
			target("of the next round")
			b.eraseTask(p, id)
			missing()
		},
		"a redelivery of old links has a body of its own (D14)": func(b *bench) {
			id := b.accepted(b.newPayer(unit(10)), unit(1))
			b.settle(completed(id, unit(1)))
			body := func(made, want string) {
				b.Helper()
				got := must(b.StoreWebhookBody(b.Context(), id, []byte(made)))
				same(b, "body", string(got), want)
			}
			body("first", "first")
			b.pass(24 * time.Hour)
			b.change(id, task.RedeliverRequested{})
			body("second", "first")
			b.pass(time.Microsecond)
			b.change(id, task.RedeliverRequested{})
			target := must(b.WebhookTarget(b.Context(), id, 3))
			same(b, "body of the third round", len(target.Body), 0)
			body("third", "third")
			b.pass(time.Hour)
			b.change(id, task.RedeliverRequested{})
			body("fourth", "third")
		},
		"a command is its account's, and on record once": func(b *bench) {
			p, q := b.newPayer(unit(10)), b.newPayer(unit(10))
			id := b.accepted(p, unit(1))
			b.settle(completed(id, unit(1)))
			a := mediagate.Action{
				ID: "act_1", TaskID: id, AccountID: q.account, Action: mediagate.ActionRedeliver, Channel: channelName, By: "x", Reason: "y",
			}
			b.kind(errOf(b.Command(b.Context(), a, task.RedeliverRequested{})), mediagate.KindNotFound)
			a.AccountID = p.account
			b.race(4, func(int) {
				must(b.Command(b.Context(), a, task.RedeliverRequested{}))
			})
			same(b, "rounds", b.state(id).Webhook.Round, 2)
			refused := mediagate.Action{ID: "act_2", TaskID: id, Action: mediagate.ActionRetry, By: "x", Reason: "it does not apply"}
			b.kind(errOf(b.Command(b.Context(), refused, task.RetryRequested{})), mediagate.KindConflict)
			b.pass(time.Millisecond)
			was := b.state(id)
			must(b.Command(b.Context(), refused)) // without an event it is on record, and does nothing
			must(b.Command(b.Context(), refused, task.RedeliverRequested{}))
			same(b, "the task", b.state(id), was)
			story := must(b.Story(b.Context(), id))
			a.AccountID, a.At, refused.At = "", b.now().Add(-time.Millisecond), b.now()
			same(b, "commands", story.Commands, []mediagate.Action{a, refused})
		},
		"the newest of many commands and deliveries": func(b *bench) {
			id := b.accepted(b.newPayer(unit(10)), unit(1))
			b.settle(completed(id, unit(1)))
			const rounds = 201
			for round := 1; round <= rounds; round++ {
				b.pass(time.Millisecond)
				at := b.stored(b.now())
				b.spoil("INSERT INTO deliveries (task_id, round, attempt, at) VALUES (?, ?, 1, ?)", id, round, at)
				b.spoil("INSERT INTO actions (id, task_id, action, at) VALUES (?, ?, 'redeliver', ?)", fmt.Sprint("act_", round), id, at)
			}
			story := must(b.Story(b.Context(), id))
			same(b, "commands, deliveries", []int{len(story.Commands), len(story.Deliveries)}, []int{200, 200})
			same(b, "the oldest and the newest round", []int{story.Deliveries[0].Round, story.Deliveries[199].Round}, []int{2, rounds})
			same(b, "the newest command is the last", story.Commands[199].At.Equal(b.now()) && story.Commands[0].At.Before(story.Commands[199].At), true)
		},
		"the story of a task that cannot be read": func(b *bench) {
			id := b.accepted(b.newPayer(unit(10)), unit(1))
			b.noError(b.database().Exec("UPDATE tasks SET document = '{' WHERE id = ?", id).Error)
			b.noError(b.database().Exec("UPDATE attempts SET document = '{' WHERE task_id = ?", id).Error)
			b.change(id, task.Asked{})
			story := must(b.Story(b.Context(), id))
			same(b, "unreadable, attempts, entries", []any{story.State.Unreadable, len(story.State.Attempts), len(story.Ledger)}, []any{true, 1, 1})
			same(b, "reason", story.Stuck().Reason, string(mediagate.ParkInternal))
			outlook := must(b.Outlook(b.Context(), id))
			same(b, "reason in a list", outlook.Stuck().Reason, string(mediagate.ParkInternal))
			b.kind(errOf(b.Story(b.Context(), "task_none")), mediagate.KindNotFound)
		},
		"a list has what a task with two attempts waits for": func(b *bench) {
			id := b.accepted(b.newPayer(unit(10)), unit(1))
			b.change(id, task.RerouteRequested{})
			b.change(id, intentOf(id, 2, b.now()))
			outlook := must(b.Outlook(b.Context(), id))
			same(b, "the last attempt", outlook.State.Last().N, 2)
		},
		"a task without a callback has no target": func(b *bench) {
			n := b.draft(b.newPayer(unit(10)), unit(1))
			n.Task.Webhook = mediagate.Webhook{}
			must2(b.Submit(b.Context(), n))
			b.settle(failed(n.Task.ID))
			for _, id := range []string{n.Task.ID, "task_none"} {
				b.kind(errOf(b.WebhookTarget(b.Context(), id, 1)), mediagate.KindNotFound)
			}
		},
		"deliveries are kept, a repeated one once": func(b *bench) {
			id := b.accepted(b.newPayer(unit(10)), unit(1))
			b.settle(failed(id))
			first := mediagate.Delivery{
				TaskID: id, Round: 1, Attempt: 1, At: b.now(), Status: 503, Duration: 1500 * time.Microsecond, NextAttemptAt: b.now().Add(10 * time.Second),
			}
			second := mediagate.Delivery{TaskID: id, Round: 1, Attempt: 2, At: b.now().Add(10 * time.Second), Error: "timeout", Duration: 10 * time.Second}
			for _, d := range []mediagate.Delivery{second, first, second} {
				b.deliver(d, "")
			}
			second.Status, second.Error, second.Duration = 200, "", time.Millisecond
			b.deliver(second, "")
			got := must(b.Deliveries(b.Context(), id))
			same(b, "deliveries", got, []mediagate.Delivery{first, second})
			same(b, "callback", b.task(id).Webhook.State, mediagate.WebhookPending)
			b.deliver(second, mediagate.WebhookDelivered)
			same(b, "callback", b.task(id).Webhook.State, mediagate.WebhookDelivered)
			none := mediagate.Delivery{TaskID: "task_none", Round: 1, Attempt: 1, At: b.now()}
			b.kind(b.RecordDelivery(b.Context(), none, mediagate.WebhookDelivered, ""), mediagate.KindNotFound)
		},
	})
}
