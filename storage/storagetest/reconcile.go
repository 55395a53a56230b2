package storagetest

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/mediagate/mediagate"
)

var reconcileTests = map[string]func(*bench){
	"tasks without a run are found": func(b *bench) {
		p := b.newPayer(unit(10))
		unseen, seen, ended := b.submit(p, unit(1)), b.submit(p, unit(1)), b.submit(p, unit(1))
		b.intent(seen, 1)
		b.settle(failed(ended))
		b.finds("at the bound", nil, func() ([]string, error) { return b.unseen(0, 10) })
		b.pass(10 * time.Second)
		b.finds("not yet", nil, func() ([]string, error) { return b.unseen(10*time.Second, 10) })
		b.pass(time.Microsecond)
		b.finds("unseen", []string{unseen}, func() ([]string, error) { return b.unseen(10*time.Second, 10) })
		b.noError(b.MarkChecked(b.Context(), []string{unseen}, false))
		b.finds("looked at just now", nil, func() ([]string, error) { return b.unseen(10*time.Second, 10) })
		b.pass(10*time.Second + time.Microsecond)
		b.finds("looked for", []string{unseen}, func() ([]string, error) { return b.unseen(10*time.Second, 10) })
		b.noError(b.MarkChecked(b.Context(), []string{unseen}, true))
		b.finds("has a run", nil, func() ([]string, error) { return b.unseen(10*time.Second, 10) })
	},
	"accounts take turns at what is found": func(b *bench) {
		busy, late := b.newPayer(unit(10)), b.newPayer(unit(10))
		var many []string
		for range 4 {
			many = append(many, b.submit(busy, unit(1)))
			b.pass(time.Second)
		}
		one := b.submit(late, unit(1))
		// Each has the same number of turns in what is read at once.
		find := func(what string, list func(limit int) ([]string, error)) {
			b.Helper()
			for limit, want := range map[int][]string{10: {many[0], one, many[1], many[2], many[3]}, 4: {many[0], one, many[1]}, 2: {many[0], one}} {
				b.finds(what, want, func() ([]string, error) { return list(limit) })
			}
		}
		b.pass(11 * time.Second)
		find("unseen", func(limit int) ([]string, error) { return b.unseen(10*time.Second, limit) })
		for i, id := range append(slices.Clone(many), one) {
			p := busy
			if i == len(many) {
				p = late
			}
			_, err := b.RequestCancel(b.Context(), p.account, id)
			b.noError(err)
			b.pass(time.Second)
		}
		b.pass(11 * time.Second)
		find("stale cancels", func(limit int) ([]string, error) { return b.staleCancels(limit) })
	},
	"pages of accounts follow each other": func(b *bench) {
		ids := map[string]string{} // by account
		for range 3 {
			p := b.newPayer(unit(10))
			ids[p.account] = b.submit(p, unit(1))
			b.submit(p, unit(1))
		}
		accounts := slices.Sorted(maps.Keys(ids))
		b.pass(11 * time.Second)
		for what, page := range map[string]func(after string) ([]mediagate.Task, string, error){
			"unseen": func(after string) ([]mediagate.Task, string, error) {
				return b.UnseenTasks(b.Context(), 10*time.Second, after, 2)
			},
		} {
			tasks, next, err := page("")
			b.noError(err)
			same(b, what+": the first two, one of each", idsOf(tasks), []string{ids[accounts[0]], ids[accounts[1]]})
			same(b, what+": next", next, accounts[1])
			tasks, next, err = page(next)
			b.noError(err)
			same(b, what+": the last, alone", len(tasks), 2)
			same(b, what+": of the last", tasks[0].AccountID, accounts[2])
			same(b, what+": next", next, "")
			tasks, next, err = page(accounts[2])
			b.noError(err)
			same(b, what+": none", []any{len(tasks), next}, []any{0, ""})
		}
	},
	"a task is read as the start of its run goes by it": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.submit(p, unit(1))
		whole := b.task(id)
		b.pass(11 * time.Second)
		tasks, _, err := b.UnseenTasks(b.Context(), 10*time.Second, "", 10)
		b.noError(err)
		same(b, "task", tasks, []mediagate.Task{{
			ID: id, AccountID: p.account, KeyID: whole.KeyID, Model: whole.Model, Type: whole.Type, Status: whole.Status, Hold: whole.Hold,
			Plan: whole.Plan, CreatedAt: whole.CreatedAt,
		}})
	},
	"a task whose plan cannot be read keeps no other from its start, or its cancel": func(b *bench) {
		if b.office == nil {
			return // the activities' double has no columns
		}
		p, q := b.newPayer(unit(10)), b.newPayer(unit(10))
		broken, own, other := b.submit(p, unit(1)), b.submit(p, unit(1)), b.submit(q, unit(1))
		b.noError(b.database().Exec("UPDATE tasks SET plan = '{\"routes\":7}' WHERE id = ?", broken).Error)
		b.pass(11 * time.Second)
		all := sorted([]string{broken, own, other}) // that one without a route
		b.finds("unseen", all, func() ([]string, error) { found, err := b.unseen(10*time.Second, 10); return sorted(found), err })
		b.noError(b.database().Exec("UPDATE tasks SET cancel_requested_at = created_at").Error)
		b.finds("stale cancels", all, func() ([]string, error) { found, err := b.staleCancels(10); return sorted(found), err })
	},
	"open tasks come up in turn": func(b *bench) {
		p := b.newPayer(unit(10))
		one := b.accepted(p, unit(1)) // its deadline is the first
		b.pass(time.Second)
		two, ended := b.accepted(p, unit(1)), b.accepted(p, unit(1))
		b.settle(failed(ended))
		b.submit(p, unit(1)) // never seen to run: see UnseenTasks
		b.pass(time.Minute)
		open := func(after mediagate.Look, limit int) (ids []string, last mediagate.Look) {
			b.Helper()
			looks, err := b.OpenTasks(b.Context(), b.now(), after, limit)
			b.noError(err)
			for _, look := range looks {
				ids, last = append(ids, look.TaskID), look
			}
			return ids, last
		}
		all, _ := open(mediagate.Look{}, 10)
		same(b, "both", all, []string{one, two})
		first, at := open(mediagate.Look{}, 1)
		same(b, "the first", []any{first, at.TaskID, at.DeadlineAt}, []any{[]string{one}, one, b.task(one).DeadlineAt})
		second, at := open(at, 1)
		same(b, "the second", second, []string{two})
		none, _ := open(at, 1)
		same(b, "no third", len(none), 0)
		b.noError(b.MarkChecked(b.Context(), []string{one, ended}, false))
		b.noError(b.MarkChecked(b.Context(), nil, true))
		all, _ = open(mediagate.Look{}, 10)
		same(b, "unchecked", all, []string{two})
		checked := b.now()
		b.pass(time.Microsecond)
		all, _ = open(mediagate.Look{}, 10)
		same(b, "again", all, []string{one, two})
		_, at = open(mediagate.Look{}, 1)
		same(b, "when it was looked for", at.CheckedAt, checked)
		if b.office != nil {
			n, err := b.CountOpen(b.Context())
			b.noError(err)
			same(b, "count", n, 3)
		}
	},
	"D2 tasks whose attempt ended without an end are found": func(b *bench) {
		p := b.newPayer(unit(20))
		heard, unheard, parked, tried, settled := b.accepted(p, unit(1)), b.accepted(p, unit(1)), b.accepted(p, unit(1)), b.accepted(p, unit(1)), b.accepted(p, unit(1))
		b.accepted(p, unit(1)) // still at the vendor
		b.claim("c")
		var ends []mediagate.PollResult
		for _, id := range []string{heard, unheard, parked, tried, settled} {
			end := b.quiet(id, time.Second)
			end.Outcome = &failure
			ends = append(ends, end)
		}
		b.store("c", ends...)
		for _, id := range []string{heard, parked, tried, settled} {
			b.noError(b.DropAwait(b.Context(), id, 1))
		}
		b.noError(b.Park(b.Context(), parked, mediagate.ParkStorage))
		b.intent(tried, 2)
		b.settle(failed(settled))
		found := func(what, after string, want ...string) {
			b.Helper()
			got, err := b.UnsettledTasks(b.Context(), 10*time.Minute, after, 10)
			b.noError(err)
			same(b, what, append([]string{}, got...), append([]string{}, want...))
		}
		b.pass(10 * time.Minute)
		found("not yet", "")
		b.pass(time.Microsecond)
		found("ten minutes after", "", heard)
		found("beyond it", heard)
		b.noError(b.Unpark(b.Context(), parked))
		both := sorted([]string{heard, parked})
		found("not parked any more", "", both...)
		found("the next", both[0], both[1])
		first, err := b.UnsettledTasks(b.Context(), 10*time.Minute, "", 1)
		b.noError(err)
		same(b, "as many as asked for", first, both[:1])
	},
	"D2 ends that no run has heard of are found": func(b *bench) {
		p := b.newPayer(unit(20))
		heard, untold, open := b.accepted(p, unit(1)), b.accepted(p, unit(1)), b.accepted(p, unit(1))
		b.claim("c")
		var ends []mediagate.PollResult
		for _, id := range []string{heard, untold, open} {
			end := b.quiet(id, time.Second)
			end.Outcome = &success
			ends = append(ends, end)
		}
		b.store("c", ends...)
		for _, id := range []string{heard, untold} {
			end := completed(id, unit(1))
			end.RunUntold = true
			b.settle(end)
		}
		b.noError(b.DropAwait(b.Context(), heard, 1))
		found := func(what, after string, want ...string) {
			b.Helper()
			got, err := b.UntoldEnds(b.Context(), 10*time.Minute, after, 10)
			b.noError(err)
			same(b, what, append([]string{}, got...), append([]string{}, want...))
		}
		b.pass(10 * time.Minute)
		found("not yet", "")
		b.pass(time.Microsecond)
		found("ten minutes after", "", untold)
		found("beyond it", untold)
		b.noError(b.DropAwait(b.Context(), untold, 1))
		found("heard", "")
	},
	"the oldest open task is known": func(b *bench) {
		p := b.newPayer(unit(10))
		oldest := func(what string, want time.Time) {
			b.Helper()
			got, err := b.OldestOpen(b.Context())
			b.noError(err)
			same(b, what, got, want)
		}
		oldest("none", time.Time{})
		first, at := b.submit(p, unit(1)), b.now()
		b.pass(time.Hour)
		second, later := b.accepted(p, unit(1)), b.now()
		b.pass(time.Hour)
		oldest("both open", at)
		b.settle(failed(first))
		oldest("one open", later)
		b.settle(failed(second))
		oldest("none open", time.Time{})
	},
	"wishes that nobody heard are found": func(b *bench) {
		p := b.newPayer(unit(10))
		wished, ended := b.submit(p, unit(1)), b.submit(p, unit(1))
		b.submit(p, unit(1))
		for _, id := range []string{wished, ended} {
			_, err := b.RequestCancel(b.Context(), p.account, id)
			b.noError(err)
		}
		b.settle(cancelled(ended))
		stale := func() ([]string, error) { return b.staleCancels(10) }
		b.pass(10 * time.Second)
		b.finds("not yet", nil, stale)
		b.pass(time.Microsecond)
		b.finds("stale", []string{wished}, stale)
		b.noError(b.MarkChecked(b.Context(), []string{wished}, true))
		b.finds("repeated just now", nil, stale)
		open, err := b.OpenTasks(b.Context(), b.now().Add(time.Hour), mediagate.Look{}, 10)
		b.noError(err)
		same(b, "looked for by the cancel alone", len(open), 0)
		b.pass(10*time.Second + time.Microsecond)
		b.finds("stale again", []string{wished}, stale)
	},
	"callback rounds that hang are offered once a while": func(b *bench) {
		p := b.newPayer(unit(10))
		id, delivered, gone := b.accepted(p, unit(1)), b.accepted(p, unit(1)), b.accepted(p, unit(1))
		b.submit(p, unit(1)) // pending, but no round yet
		b.settle(failed(id))
		b.settle(failed(delivered))
		b.settle(cancelled(gone))
		b.noError(b.RecordDelivery(b.Context(), mediagate.Delivery{TaskID: delivered, Round: 1, Attempt: 1, At: b.now()}, mediagate.WebhookDelivered, ""))
		offer := func(what string, want int) {
			b.Helper()
			got, err := b.PendingWebhooks(b.Context(), time.Minute, 10*time.Minute, 10)
			b.noError(err)
			same(b, what, len(got), want)
			if want > 0 {
				same(b, what, got[0], mediagate.WebhookRound{TaskID: id, AccountID: p.account, Round: 1})
			}
		}
		b.pass(time.Minute)
		offer("not yet", 0)
		b.pass(time.Microsecond)
		offer("offered", 1)
		offer("offered to one only", 0)
		b.pass(time.Minute + time.Microsecond)
		offer("offered again", 1)
	},
	"a channel's parked tasks are found": func(b *bench) {
		p := b.newPayer(unit(10))
		one := b.accepted(p, unit(1))
		b.noError(b.Park(b.Context(), one, mediagate.ParkResult))
		b.pass(time.Second)
		two, ended := b.accepted(p, unit(1)), b.accepted(p, unit(1))
		for _, id := range []string{two, ended} {
			b.noError(b.Park(b.Context(), id, mediagate.ParkResult))
		}
		b.settle(failed(ended))
		b.accepted(p, unit(1))
		b.noError(b.Park(b.Context(), b.accepted(p, unit(1)), mediagate.ParkFunds))
		b.finds("parked", []string{one, two}, func() ([]string, error) {
			return b.ParkedTasks(b.Context(), channelName, mediagate.ParkResult, 10)
		})
		b.finds("another channel's", nil, func() ([]string, error) { return b.ParkedTasks(b.Context(), "other", mediagate.ParkResult, 10) })
	},
	"tasks of all channels that are parked for a reason are found": func(b *bench) {
		p := b.newPayer(unit(10))
		var parked []string
		for range 3 {
			id := b.accepted(p, unit(1))
			b.noError(b.Park(b.Context(), id, mediagate.ParkStorage))
			parked = append(parked, id)
		}
		b.noError(b.Park(b.Context(), b.accepted(p, unit(1)), mediagate.ParkResult))
		b.accepted(p, unit(1))
		b.settle(failed(parked[1]))
		page := func(after string, limit int) func() ([]string, error) {
			return func() ([]string, error) { return b.ParkedFor(b.Context(), mediagate.ParkStorage, after, limit) }
		}
		b.finds("all", []string{parked[0], parked[2]}, page("", 10))
		b.finds("the first page", []string{parked[0]}, page("", 1))
		b.finds("the second page", []string{parked[2]}, page(parked[0], 1))
		b.finds("the end", nil, page(parked[2], 1))
	},
	"D13 files that an ended task does not show are looked for": func(b *bench) {
		p := b.newPayer(unit(30))
		succeeded := func(id string, n int) {
			b.Helper()
			_, err := b.RecordOutcome(b.Context(), id, n, mediagate.Outcome{Succeeded: true, Media: []mediagate.Media{{URL: "https://v.example.com/a"}}})
			b.noError(err)
		}
		wished, lost := b.accepted(p, unit(1)), b.accepted(p, unit(1))
		shown, second := b.accepted(p, unit(1)), b.accepted(p, unit(1))
		unheard, broken, open := b.accepted(p, unit(1)), b.accepted(p, unit(1)), b.accepted(p, unit(1))
		for _, id := range []string{wished, lost, shown, second, open} {
			succeeded(id, 1)
		}
		b.intent(second, 2)
		_, err := b.AcceptAttempt(b.Context(), second, 2, mediagate.Submission{Ref: ref(second)}, b.now())
		b.noError(err)
		succeeded(second, 2)
		_, err = b.RecordOutcome(b.Context(), broken, 1, mediagate.Outcome{Failure: &mediagate.Failure{Code: mediagate.CodeGenerationFailed}})
		b.noError(err)

		due := func() ([]string, error) { return b.dueSweeps(10) }
		b.settle(cancelled(wished))
		b.pass(time.Second)
		b.settle(failed(lost))
		b.pass(time.Second)
		b.settle(completed(shown, unit(1)))
		end := completed(second, unit(1))
		end.N = 2
		b.settle(end)
		b.settle(cancelled(unheard))
		b.settle(failed(broken))
		b.pass(mediagate.CopyLimit)
		b.finds("while copies may be under way", nil, due)
		b.pass(mediagate.CopyLimit + time.Microsecond)
		b.finds("due", []string{wished, lost, second}, due)
		b.finds("the first", []string{wished}, func() ([]string, error) { return b.dueSweeps(1) })
		old := b.sweep(wished)
		b.noError(b.SetSweep(b.Context(), old, b.now().Add(-time.Minute)))
		b.noError(b.SetSweep(b.Context(), old, time.Time{})) // of one that was due before
		b.finds("made due meanwhile", []string{wished, lost, second}, due)
		b.noError(b.SetSweep(b.Context(), b.sweep(wished), time.Time{}))
		b.noError(b.SetSweep(b.Context(), b.sweep(lost), b.now().Add(time.Minute)))
		b.noError(b.SetSweep(b.Context(), mediagate.Sweep{TaskID: shown}, b.now().Add(-time.Minute)))
		b.finds("one is done, one put off", []string{second}, due)
		b.pass(time.Minute + time.Microsecond)
		b.finds("again", []string{second, lost}, due)
	},
	"it is known when a channel was last seen": func(b *bench) {
		_, err := b.ChannelLastSeen(b.Context(), "a")
		b.kind(err, mediagate.KindNotFound)
		epoch, err := b.BeginEpoch(b.Context(), "a")
		b.noError(err)
		_, err = b.ChannelLastSeen(b.Context(), "a")
		b.kind(err, mediagate.KindNotFound)
		b.noError(b.SeenChannel(b.Context(), []string{"a", "b"}))
		b.pass(time.Minute)
		b.noError(b.SeenChannel(b.Context(), []string{"b"}))
		seen, err := b.ChannelLastSeen(b.Context(), "a")
		b.noError(err)
		same(b, "seen", seen, b.now().Add(-time.Minute))
		next, err := b.BeginEpoch(b.Context(), "a")
		b.noError(err)
		same(b, "epoch", next, epoch+1)
	},
	"a command is a row, taken once": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.submit(p, unit(1))
		made, err := b.RecordAction(b.Context(), mediagate.Action{
			TaskID: id, Action: mediagate.ActionReroute, Channel: "kling-b", By: "ops", Reason: "stuck",
		})
		b.noError(err)
		same(b, "action", made, mediagate.Action{
			ID: made.ID, TaskID: id, Action: mediagate.ActionReroute, Channel: "kling-b", By: "ops", Reason: "stuck", State: "pending", At: b.now(),
		})
		again, err := b.RecordAction(b.Context(), mediagate.Action{ID: made.ID, TaskID: id, Action: mediagate.ActionFail})
		b.noError(err)
		same(b, "again", again, made)

		b.pass(10 * time.Second)
		untaken := func(what string, want ...mediagate.Action) {
			b.Helper()
			got, err := b.UntakenActions(b.Context(), 10*time.Second, mediagate.Action{}, 10)
			b.noError(err)
			same(b, what, got, append([]mediagate.Action{}, want...))
		}
		untaken("not yet")
		b.pass(time.Microsecond)
		untaken("untaken", made)
		after, err := b.UntakenActions(b.Context(), 10*time.Second, made, 10)
		b.noError(err)
		same(b, "after it", len(after), 0)
		taken := make([]bool, 8)
		b.race(len(taken), func(i int) {
			var err error
			if taken[i], err = b.TakeAction(b.Context(), made.ID, strconv.Itoa(i)); err != nil {
				b.Errorf("take: %v", err)
			}
		})
		n := 0
		for _, t := range taken {
			if t {
				n++
			}
		}
		same(b, "takers", n, 1)
		repeated, err := b.TakeAction(b.Context(), made.ID, strconv.Itoa(slices.Index(taken, true)))
		b.noError(err)
		same(b, "the taker asks again", repeated, true)
		untaken("taken")
		_, err = b.RecordAction(b.Context(), mediagate.Action{TaskID: "task_none", Action: mediagate.ActionFail})
		b.kind(err, mediagate.KindNotFound)
	},
	"a retry gives a task the time of a new one, once (D10)": func(b *bench) {
		p := b.newPayer(unit(10))
		for name, c := range map[string]struct {
			action       string
			past, parked time.Duration // the deadline; until the command is taken
			want         time.Duration // from the taking to the end of the waiting
		}{
			"late":             {mediagate.ActionRetry, time.Hour, 0, 2 * time.Hour},
			"late and parked":  {mediagate.ActionRetry, time.Hour, 30 * time.Minute, 2 * time.Hour},
			"early":            {mediagate.ActionRetry, -2 * time.Hour, 0, 2 * time.Hour},
			"another command":  {mediagate.ActionPollNow, time.Hour, 0, -time.Hour},
			"early and parked": {mediagate.ActionRetry, -90 * time.Minute, time.Hour, 2 * time.Hour},
		} {
			id := b.submit(p, unit(1))
			b.pass(2*time.Hour + c.past)
			if c.parked > 0 {
				b.noError(b.Park(b.Context(), id, mediagate.ParkFunds))
				b.pass(c.parked)
			}
			made, err := b.RecordAction(b.Context(), mediagate.Action{TaskID: id, Action: c.action})
			b.noError(err)
			taken := b.now()
			for range 2 {
				ok, err := b.TakeAction(b.Context(), made.ID, "me")
				b.noError(err)
				same(b, "taken", ok, true)
				t := b.task(id)
				same(b, name, t.WaitsUntil(taken).Sub(taken), c.want)
				b.pass(time.Minute)
			}
			b.settle(failed(id))
		}
		none, err := b.TakeAction(b.Context(), "act_none", "me")
		b.noError(err)
		same(b, "unknown", none, false)
	},
	"a retry has a lost submission looked for as long as that of a new task (D6, D10)": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.submit(p, unit(1))
		b.noError(b.Park(b.Context(), id, mediagate.ParkSubmissionUnknown))
		b.pass(2*time.Hour + 55*time.Minute)
		made, err := b.RecordAction(b.Context(), mediagate.Action{TaskID: id, Action: mediagate.ActionRetry})
		b.noError(err)
		ok, err := b.TakeAction(b.Context(), made.ID, "me")
		b.noError(err)
		same(b, "taken", ok, true)
		same(b, "the deadline, whose hour after ends the parking", b.task(id).DeadlineAt.Sub(b.now()), 2*time.Hour)
	},
	"commands on ended tasks are not repeated": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.submit(p, unit(1))
		_, err := b.RecordAction(b.Context(), mediagate.Action{TaskID: id, Action: mediagate.ActionRetry})
		b.noError(err)
		b.settle(failed(id))
		b.pass(time.Minute)
		got, err := b.UntakenActions(b.Context(), time.Second, mediagate.Action{}, 10)
		b.noError(err)
		same(b, "untaken", len(got), 0)
	},
}

// finds compares a list of task ids.
func (b *bench) finds(what string, want []string, list func() ([]string, error)) {
	b.Helper()
	got, err := list()
	b.noError(err)
	if len(got) == 0 && len(want) == 0 {
		return
	}
	same(b, what, got, want)
}

func (b *bench) unseen(olderThan time.Duration, limit int) ([]string, error) {
	tasks, _, err := b.UnseenTasks(b.Context(), olderThan, "", limit)
	return idsOf(tasks), err
}

func (b *bench) staleCancels(limit int) ([]string, error) {
	tasks, _, err := b.StaleCancels(b.Context(), 10*time.Second, "", limit)
	return idsOf(tasks), err
}

func idsOf(tasks []mediagate.Task) []string {
	ids := make([]string, len(tasks))
	for i, t := range tasks {
		ids[i] = t.ID
	}
	return ids
}

// dueSweeps names the tasks that are to be swept.
func (b *bench) dueSweeps(limit int) ([]string, error) {
	due, err := b.DueSweeps(b.Context(), limit)
	var ids []string
	for _, sweep := range due {
		ids = append(ids, sweep.TaskID)
	}
	return ids, err
}

// sweep is the one of the task that is due.
func (b *bench) sweep(id string) mediagate.Sweep {
	b.Helper()
	due, err := b.DueSweeps(b.Context(), 100)
	b.noError(err)
	for _, sweep := range due {
		if sweep.TaskID == id {
			return sweep
		}
	}
	b.Fatalf("no sweep of %s is due", id)
	return mediagate.Sweep{}
}
