package storagetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mediagate/mediagate"
)

// queueTests are about who waits for a slot, and whose turn it is (D7).
var queueTests = map[string]func(*bench){
	"who queues waits, and is granted a slot": func(b *bench) {
		p := b.newPayer(unit(10))
		runs := b.submit(p, unit(1))
		same(b, "opened", b.try(runs, limited(1)), true)
		id := b.queued(p)
		since := b.now()
		story := b.story(id)
		same(b, "story", []any{story.QueuedAt, story.Granted, story.N, story.Status}, []any{since, false, 0, mediagate.StatusPending})
		same(b, "task", b.task(id).QueuedAt, since)
		epoch := b.epoch(channelName)
		same(b, "full", b.grant(epoch, 1), mediagate.Granted{InFlight: 1, Waiting: 1})
		b.settle(failed(runs))
		b.pass(time.Hour)
		same(b, "free", b.grant(epoch, 1), mediagate.Granted{Signals: first(id), InFlight: 1})
		same(b, "granted", b.story(id).Granted, true)
		same(b, "a grant is a slot", b.try(b.submit(p, unit(1)), limited(1)), false)
		deadline := b.task(id).DeadlineAt
		same(b, "used", b.try(id, limited(1)), true)
		task := b.task(id)
		same(b, "out of the queue", []any{task.QueuedAt, task.DeadlineAt}, []any{time.Time{}, deadline.Add(time.Hour)})
		same(b, "granted", b.story(id).Granted, false)
		same(b, "nothing is left", b.grant(epoch, 1), mediagate.Granted{InFlight: 1})
	},
	"nobody overtakes who waits": func(b *bench) {
		p := b.newPayer(unit(10))
		waits := b.queued(p)
		newcomer := b.submit(p, unit(1))
		same(b, "a newcomer, with a slot free", b.try(newcomer, limited(1)), false)
		same(b, "who waits, and nobody else does", b.try(waits, limited(1)), true)
	},
	"accounts have their turns": func(b *bench) {
		epoch := b.epoch(channelName)
		busy, other, late := b.newPayer(unit(100)), b.newPayer(unit(10)), b.newPayer(unit(10))
		var queue []string
		for range 5 {
			queue = append(queue, b.queued(busy))
		}
		one := b.queued(other)
		var order []string
		serve := func() {
			got := b.grant(epoch, 1)
			same(b, "granted", len(got.Signals), 1)
			id := got.Signals[0].TaskID
			same(b, "used", b.try(id, limited(1)), true)
			b.settle(failed(id))
			order = append(order, id)
		}
		serve()
		serve()
		serve()
		newcomer, again := b.queued(late), b.queued(other)
		for range 5 {
			serve()
		}
		same(b, "order", order, []string{queue[0], one, queue[1], newcomer, again, queue[2], queue[3], queue[4]})
	},
	"slots that were free count as turns": func(b *bench) {
		epoch := b.epoch(channelName)
		p, q := b.newPayer(unit(10)), b.newPayer(unit(10))
		b.settle(func() mediagate.Settlement {
			id := b.queued(q)
			same(b, "q", b.try(id, limited(1)), true)
			return failed(id)
		}())
		runs := b.submit(p, unit(1))
		same(b, "p", b.try(runs, limited(1)), true)
		ofP, ofQ := b.queued(p), b.queued(q)
		b.settle(failed(runs))
		same(b, "next", b.grant(epoch, 1).Signals, first(ofQ))
		same(b, "then", b.grant(epoch, 2).Signals, first(ofP))
	},
	"whichever channel frees first grants, and one only": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.queued(p, "kling-b", channelName)
		same(b, "order", b.task(id).QueuedAt, b.now())
		names, err := b.AwaitChannels(b.Context())
		b.noError(err)
		same(b, "channels", names, []string{channelName, "kling-b"})
		other := mediagate.Slots{Names: []string{"kling-b"}, Limit: 1}
		same(b, "granted", b.grantAt("kling-b", b.epoch("kling-b"), other), mediagate.Granted{Signals: first(id), InFlight: 1})
		same(b, "not twice", b.grant(b.epoch(channelName), 1), mediagate.Granted{Waiting: 1})
		same(b, "used elsewhere", b.try(id, limited(1)), true)
		names, err = b.AwaitChannels(b.Context())
		b.noError(err)
		same(b, "gone everywhere", names, []string(nil))
		same(b, "the other is free", b.tryAt(b.submit(p, unit(1)), "kling-b", other), true)
	},
	"a channel without a limit grants what waits for it": func(b *bench) {
		p := b.newPayer(unit(10))
		one, two := b.queued(p), b.queued(p)
		free := mediagate.Slots{Names: []string{channelName}}
		same(b, "granted", b.grantAt(channelName, b.epoch(channelName), free), mediagate.Granted{Signals: first(one, two), InFlight: 2})
		same(b, "used", b.try(one, free), true)
	},
	"a grant is signalled until it is used, and taken back": func(b *bench) {
		p := b.newPayer(unit(10))
		one, two := b.queued(p), b.queued(p)
		epoch := b.epoch(channelName)
		same(b, "granted", b.grant(epoch, 1), mediagate.Granted{Signals: first(one), InFlight: 1, Waiting: 1})
		same(b, "signalled", b.grant(epoch, 1), mediagate.Granted{InFlight: 1, Waiting: 1})
		b.pass(again)
		same(b, "again", b.grant(epoch, 1).Signals, first(one))
		epoch = b.epoch(channelName) // whoever granted may have died before its signal
		same(b, "a new run's", b.grant(epoch, 1).Signals, first(one))
		b.pass(takeBack - again)
		same(b, "taken back", b.grant(epoch, 1), mediagate.Granted{Signals: first(two), InFlight: 1, Waiting: 1})
		same(b, "granted", []bool{b.story(one).Granted, b.story(two).Granted}, []bool{false, true})
		same(b, "too late", b.try(one, limited(1)), false)
		same(b, "in time", b.try(two, limited(1)), true)
	},
	"an old epoch grants nothing": func(b *bench) {
		p := b.newPayer(unit(10))
		b.queued(p)
		old := b.epoch(channelName)
		b.epoch(channelName)
		_, err := b.GrantSlots(b.Context(), mediagate.Granting{Channel: channelName, Epoch: old, Slots: limited(1), Most: 1, TakeBack: takeBack, Again: again})
		b.kind(err, mediagate.KindConflict)
	},
	"who stands in under a former name grants slots of the account": func(b *bench) {
		p := b.newPayer(unit(10))
		runs, waits := b.submit(p, unit(1)), b.queued(p, "kling-former")
		same(b, "opened", b.try(runs, mediagate.Slots{Names: []string{channelName}, Limit: 1}), true)
		epoch := b.epoch("kling-former")
		same(b, "full", b.grantAt("kling-former", epoch, limited(1)), mediagate.Granted{InFlight: 1, Waiting: 1})
		b.settle(failed(runs))
		same(b, "free", b.grantAt("kling-former", epoch, limited(1)).Signals, first(waits))
		same(b, "used under the new name", b.try(waits, limited(1)), true)
	},
	"who queues again keeps its place, and gives back its grant": func(b *bench) {
		p := b.newPayer(unit(10))
		one, two := b.queued(p), b.queued(p)
		epoch := b.epoch(channelName)
		same(b, "granted", b.grant(epoch, 1).Signals, first(one))
		since := b.task(one).QueuedAt
		b.pass(time.Second)
		b.noError(b.Queue(b.Context(), one, 1, []string{channelName, "kling-b"}))
		same(b, "since", []any{b.task(one).QueuedAt, b.story(one).Granted}, []any{since, false})
		same(b, "its place", b.grant(epoch, 2).Signals, first(one, two))
		b.noError(b.Queue(b.Context(), one, 1, []string{"kling-b"}))
		rows, err := b.QueuedTasks(b.Context(), channelName, 10)
		b.noError(err)
		same(b, "who is left", rows, first(two))
	},
	"only who may be sent queues": func(b *bench) {
		p := b.newPayer(unit(10))
		ended, wished, opened, late := b.submit(p, unit(1)), b.submit(p, unit(1)), b.submit(p, unit(1)), b.submit(p, unit(1))
		b.settle(failed(ended))
		_, err := b.RequestCancel(b.Context(), p.account, wished)
		b.noError(err)
		b.intent(opened, 1)
		for _, id := range []string{ended, wished, opened} {
			b.kind(b.Queue(b.Context(), id, 1, []string{channelName}), mediagate.KindConflict)
		}
		b.kind(b.Queue(b.Context(), opened, 2, []string{channelName}), mediagate.KindConflict)
		b.pass(2 * time.Hour)
		b.kind(b.Queue(b.Context(), late, 1, []string{channelName}), mediagate.KindConflict)
		b.kind(b.Queue(b.Context(), "task_none", 1, []string{channelName}), mediagate.KindNotFound)
		rows, err := b.QueuedTasks(b.Context(), channelName, 10)
		b.noError(err)
		same(b, "queued", len(rows), 0)
	},
	"the end, and a parking, leave the queue": func(b *bench) {
		p := b.newPayer(unit(10))
		ends, parks := b.queued(p), b.queued(p)
		epoch := b.epoch(channelName)
		same(b, "granted", len(b.grant(epoch, 2).Signals), 2)
		deadline := b.task(parks).DeadlineAt
		b.pass(time.Minute)
		b.settle(cancelled(ends))
		b.noError(b.Park(b.Context(), parks, mediagate.ParkChannelMissing))
		same(b, "free", b.grant(epoch, 2), mediagate.Granted{})
		task := b.task(parks)
		same(b, "parked", []any{task.QueuedAt, task.ParkedAt, task.DeadlineAt.Sub(deadline).Round(time.Second)}, []any{time.Time{}, b.now(), time.Minute})
		parkedAt := task.ParkedAt
		b.pass(time.Minute)
		b.noError(b.Queue(b.Context(), parks, 1, []string{channelName}))
		task = b.task(parks)
		same(b, "queued", []any{task.QueuedAt, task.ParkedAt, task.ParkReason}, []any{b.now(), parkedAt, mediagate.ParkChannelMissing})
		same(b, "ended", b.story(ends).QueuedAt, time.Time{})
	},
	"queueing ends no parking, and the time of both counts once": func(b *bench) {
		p := b.newPayer(unit(10))
		epoch := b.epoch(channelName)
		for _, end := range []func(id string){
			func(id string) { // a slot, and a vendor that takes the job
				b.grant(epoch, 1)
				same(b, "opened", b.try(id, limited(1)), true)
				b.noError(b.Unpark(b.Context(), id))
			},
			func(id string) { // a channel that is well, and full
				b.noError(b.Unpark(b.Context(), id))
				b.noError(b.Queue(b.Context(), id, 1, []string{channelName}))
				same(b, "opened", b.try(id, limited(1)), true)
			},
			func(id string) { // the channel has no slots any more, and is shut
				b.noError(b.Park(b.Context(), id, mediagate.ParkFunds))
				same(b, "queued", b.task(id).QueuedAt, time.Time{})
				b.noError(b.Unpark(b.Context(), id))
			},
			func(id string) { // for another reason
				b.noError(b.Park(b.Context(), id, mediagate.ParkChannelMissing))
				same(b, "queued", b.task(id).QueuedAt, time.Time{})
				b.noError(b.Unpark(b.Context(), id))
			},
		} {
			id := b.submit(p, unit(1))
			deadline := b.task(id).DeadlineAt
			b.noError(b.Park(b.Context(), id, mediagate.ParkFunds))
			since := b.now()
			b.pass(time.Hour)
			b.noError(b.Queue(b.Context(), id, 1, []string{channelName}))
			b.pass(time.Hour)
			task := b.task(id)
			same(b, "both", []any{task.ParkedAt, task.ParkReason, task.WaitsUntil(b.now())}, []any{since, mediagate.ParkFunds, deadline.Add(2 * time.Hour)})
			end(id)
			task = b.task(id)
			same(b, "neither", []any{task.ParkedAt, task.QueuedAt, task.DeadlineAt}, []any{time.Time{}, time.Time{}, deadline.Add(2 * time.Hour)})
			b.settle(failed(id))
		}
	},
	"queued time does not count": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.queued(p)
		b.pass(24 * time.Hour)
		same(b, "opened", b.try(id, limited(1)), true)
		overdue := mediagate.Overdue{Grace: time.Hour, QueueTimeout: 24 * time.Hour, Again: time.Hour}
		waits := b.queued(p)
		b.settle(failed(id))
		b.pass(25 * time.Hour)
		found, err := b.ClaimOverdue(b.Context(), overdue, 10)
		b.noError(err)
		same(b, "in time", len(found), 0)
		b.pass(time.Second)
		found, err = b.ClaimOverdue(b.Context(), overdue, 10)
		b.noError(err)
		same(b, "overdue", found, []mediagate.Rescue{{TaskID: waits, Times: 1}})
	},
	"the load of a channel": func(b *bench) {
		p := b.newPayer(unit(10))
		inFlight, queued, oldest, err := b.ChannelLoad(b.Context(), channelName)
		b.noError(err)
		same(b, "none", []any{inFlight, queued, oldest}, []any{0, 0, time.Time{}})
		runs := b.submit(p, unit(1))
		same(b, "opened", b.try(runs, limited(5)), true)
		since := b.now()
		b.pass(time.Minute)
		b.queued(p)
		b.queued(p)
		waits := b.now()
		inFlight, queued, oldest, err = b.ChannelLoad(b.Context(), channelName)
		b.noError(err)
		same(b, "load", []any{inFlight, queued, oldest}, []any{1, 2, since})
		b.settle(failed(runs))
		same(b, "granted", len(b.grant(b.epoch(channelName), 1).Signals), 1)
		inFlight, queued, oldest, err = b.ChannelLoad(b.Context(), channelName)
		b.noError(err)
		same(b, "later", []any{inFlight, queued, oldest}, []any{1, 1, waits.Add(-time.Microsecond)})
	},
	"of many at once no more than the slots": func(b *bench) {
		var tasks []string
		for range 5 {
			p := b.newPayer(unit(50))
			for range 10 {
				tasks = append(tasks, b.submit(p, unit(1)))
			}
		}
		epoch := b.epoch(channelName)
		b.race(8, func(i int) {
			for _, id := range tasks {
				_, _, err := b.OpenAttempt(b.Context(), mediagate.Attempt{
					TaskID: id, N: 1, Channel: channelName, Provider: "kling", Route: plan.Routes[0], SendBefore: b.now().Add(time.Second),
				}, limited(5))
				if mediagate.Is(err, mediagate.KindCapacity) {
					err = b.Queue(b.Context(), id, 1, []string{channelName})
				}
				if err != nil && !mediagate.Is(err, mediagate.KindConflict) {
					b.Errorf("open: %v", err)
				}
				if i%4 > 0 {
					continue
				}
				got, err := b.GrantSlots(b.Context(), mediagate.Granting{
					Channel: channelName, Epoch: epoch, Slots: limited(5), Most: 10, TakeBack: takeBack, Again: again,
				})
				if err != nil || got.InFlight > 5 {
					b.Errorf("%d in flight, error %v", got.InFlight, err)
				}
			}
		})
		inFlight, queued, _, err := b.ChannelLoad(b.Context(), channelName)
		b.noError(err)
		same(b, "in flight, queued", []int{inFlight, queued}, []int{5, 45})
	},
	"a newcomer beside ten thousand is served within two turns": func(b *bench) {
		busy, late := b.newPayer(unit(100)), b.newPayer(unit(10))
		id := b.queued(busy)
		epoch := b.epoch(channelName)
		for range 5 {
			b.queued(busy)
		}
		if b.office != nil {
			b.flood(id, 10_000)
		}
		same(b, "of the busy one", len(b.grant(epoch, 1).Signals), 1)
		newcomer := b.queued(late)
		began := time.Now()
		got := b.grant(epoch, 3)
		took := time.Since(began)
		same(b, "granted", got.InFlight, 3)
		if !slices.Contains(got.Signals, mediagate.Queued{TaskID: newcomer, N: 1}) {
			b.Errorf("the newcomer %s is not among %v", newcomer, got.Signals)
		}
		b.Logf("two grants took %s", took)
	},
}

// flood queues so many more tasks like this one, past the store.
func (b *bench) flood(like string, n int) {
	b.Helper()
	b.corrupt = true // nobody holds money for them
	const columns = "account_id, key_id, model, type, status, params, plan, charges, hold, created_at, deadline_at, checked_at, queued_at"
	for from := 0; from < n; from += 250 {
		var made []string
		for i := from; i < from+250; i++ {
			made = append(made, fmt.Sprintf("SELECT 'flood_%06d' AS id", i))
		}
		names := strings.Join(made, " UNION ALL ")
		b.noError(b.database().Exec("INSERT INTO tasks (id, "+columns+") SELECT f.id, t."+strings.ReplaceAll(columns, ", ", ", t.")+
			" FROM tasks t, ("+names+") f WHERE t.id = ?", like).Error)
		b.noError(b.database().Exec("INSERT INTO queue (task_id, channel, n, account_id, since) SELECT f.id, q.channel, q.n, q.account_id, q.since"+
			" FROM queue q, ("+names+") f WHERE q.task_id = ?", like).Error)
	}
}
