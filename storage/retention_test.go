package storage_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/storage"
	"github.com/mediagate/mediagate/storage/pgtest"
	"github.com/mediagate/mediagate/task"
)

const aDay = 24 * time.Hour

// remove removes all of a kind that is due after so long, and returns how much that was.
func (b *bench) remove(kind mediagate.Removal, kept time.Duration) (removed int) {
	b.Helper()
	for slice := (mediagate.RemovedSlice{More: true}); slice.More; {
		slice = must(b.RemoveRows(b.Context(), kind, b.now().Add(-kept), slice.Next))
		removed += slice.Removed
	}
	return removed
}

// resting is a task that nothing holds, once it is old enough: its run has found it ended,
// its callback is delivered, and what it does not show is swept.
func (b *bench) resting(e end) string {
	b.Helper()
	b.settle(e)
	b.change(e.id, task.Asked{Seen: task.Seen{Sending: task.Sending{N: 1}}})
	b.deliver(mediagate.Delivery{TaskID: e.id, Round: 1, Attempt: 1, At: b.now(), Status: 200}, mediagate.WebhookDelivered)
	b.sweepAway()
	return e.id
}

// sweepAway notes that all files are swept that tasks do not show.
func (b *bench) sweepAway() {
	b.Helper()
	b.spoilAny("UPDATE tasks SET sweep_at = NULL WHERE sweep_at > ended_at")
}

func (b *bench) has(id string) bool {
	b.Helper()
	return b.count("SELECT COUNT(*) FROM tasks WHERE id = ?", id) == 1
}

// rowsOf counts what is stored of a task, but for its ledger.
func (b *bench) rowsOf(id string) (n int) {
	b.Helper()
	for _, table := range []string{"attempts", "awaits", "actions", "deliveries", "wakes", "queue", "assets", "idempotency"} {
		n += b.count("SELECT COUNT(*) FROM "+table+" WHERE task_id = ?", id)
	}
	return n + b.count("SELECT COUNT(*) FROM tasks WHERE id = ?", id)
}

func (b *bench) removals() map[mediagate.Removal]mediagate.RemovalState {
	b.Helper()
	states := must(b.RemovalStates(b.Context()))
	return states
}

// reasons are what keeps a task that has ended long ago (D16). Each is made of one that
// nothing keeps, or of one that is open.
var reasons = []struct {
	name string
	make func(b *bench, p payer) string
}{
	{"it is open", func(b *bench, p payer) string { return b.accepted(p, unit(1)) }},
	{"its callback is open", func(b *bench, p payer) string {
		id := b.accepted(p, unit(1))
		b.settle(completed(id, unit(1)))
		b.change(id, task.Asked{Seen: task.Seen{Sending: task.Sending{N: 1}}})
		return id
	}},
	{"its callback is delivered anew", func(b *bench, p payer) string {
		id := b.resting(completed(b.accepted(p, unit(1)), unit(1)))
		b.spoil("INSERT INTO wakes (task_id, kind, account_id, wake_at) SELECT id, 'round', account_id, ended_at FROM tasks WHERE id = ?", id)
		return id
	}},
	{"its run has not asked since", func(b *bench, p payer) string {
		id := b.accepted(p, unit(1))
		b.settle(completed(id, unit(1)))
		b.deliver(mediagate.Delivery{TaskID: id, Round: 1, Attempt: 1, At: b.now(), Status: 200}, mediagate.WebhookDelivered)
		return id
	}},
	{"an open task works on it", func(b *bench, p payer) string {
		id := b.resting(completed(b.accepted(p, unit(1)), unit(1)))
		must(b.followUp(p, id))
		return id
	}},
	{"its idempotency record is live", func(b *bench, p payer) string {
		n := b.draft(p, unit(1))
		n.IdempotencyKey = "once " + n.Task.ID
		must2(b.Submit(b.Context(), n))
		id := b.resting(failed(n.Task.ID))
		b.spoil("UPDATE idempotency SET expires_at = NULL WHERE task_id = ?", id)
		return id
	}},
	{"its job may run on", func(b *bench, p payer) string { return b.resting(cancelled(b.accepted(p, unit(1)))) }},
	{"its files are to be swept", func(b *bench, p payer) string {
		id := b.resting(completed(b.accepted(p, unit(1)), unit(1)))
		b.spoil("UPDATE tasks SET sweep_at = ended_at WHERE id = ?", id)
		return id
	}},
	{"its files are kept for ever", func(b *bench, p payer) string {
		n := b.draft(p, unit(1))
		n.Task.Plan.KeepForever = true
		must2(b.Submit(b.Context(), n))
		b.accept(n.Task.ID, b.now())
		return b.resting(completed(n.Task.ID, unit(1)))
	}},
	{"what its vendor charged is not counted", func(b *bench, p payer) string {
		id := b.accepted(p, unit(1))
		o := success(unit(1))
		o.VendorCharge = mediagate.ChargedBy("0.25", "USD")
		return b.resting(completedBy(id, 1, o, files(id)))
	}},
}

func TestRetentionFacts(t *testing.T) {
	t.Parallel()
	provePooled(t, facts{
		"a task goes with its rows, and the books stay": func(b *bench) {
			p := b.newPayer(unit(50))
			id := b.rich(p)
			b.settle(richEnd(id))
			b.change(id, task.Asked{Seen: task.Seen{Sending: task.Sending{N: 2}}})
			b.deliver(mediagate.Delivery{TaskID: id, Round: 1, Attempt: 1, At: b.now(), Status: 200}, mediagate.WebhookDelivered)
			b.sweepAway()
			kept := b.resting(failed(b.accepted(p, unit(1))))
			b.pass(4 * aDay) // the job of what failed is over
			must(b.CountVendorCharges(b.Context(), 100))
			b.noError(b.ExpireSlots(b.Context()))
			b.checkLedger()
			all := mediagate.StatementFilter{AccountID: p.account, Limit: 100}
			statement, usage := b.stated(all), b.usage(mediagate.UsageFilter{AccountID: p.account, By: []mediagate.UsageBy{mediagate.ByDay, mediagate.ByModel}})
			same(b, "too young", b.remove(mediagate.RemoveTasks, 5*aDay), 0)
			same(b, "removed", b.remove(mediagate.RemoveTasks, 3*aDay), 2)
			same(b, "rows", []int{b.rowsOf(id), b.rowsOf(kept)}, []int{0, 0})
			same(b, "left", b.holds("zebrafish"), nil)
			b.checkLedger()
			same(b, "the statement", b.stated(all), statement)
			same(b, "usage", b.usage(mediagate.UsageFilter{AccountID: p.account, By: []mediagate.UsageBy{mediagate.ByDay, mediagate.ByModel}}), usage)
			for _, gone := range []string{id, kept} {
				b.kind(errOf(b.Task(b.Context(), p.account, gone)), mediagate.KindNotFound)
				b.kind(errOf(b.Tasks(b.Context(), mediagate.TaskFilter{AccountID: p.account, After: gone})), mediagate.KindInvalid)
				b.kind(errOf(b.Change(b.Context(), gone, task.CancelRequested{})), mediagate.KindNotFound)
			}
		},
		"what stays is what has a reason to (D16)": func(b *bench) {
			p, names, began := b.newPayer(unit(1000)), map[string]string{}, b.now()
			for _, reason := range reasons {
				b.pass(time.Minute)
				names[b.resting(completed(b.accepted(p, unit(1)), unit(1)))] = ""
				b.pass(time.Minute)
				names[reason.make(b, p)] = reason.name
			}
			b.pass(90*aDay - b.now().Sub(began))
			same(b, "too young", b.remove(mediagate.RemoveTasks, 90*aDay), 0)
			b.pass(aDay)
			b.remove(mediagate.RemoveTasks, 90*aDay)
			for id, reason := range names {
				same(b, "stays because "+reason, b.has(id), reason != "")
			}
		},
		"files go from the row, and what is known of them stays": func(b *bench) {
			p := b.newPayer(unit(20))
			old := b.resting(completed(b.accepted(p, unit(1)), unit(1)))
			forever := reasonNamed("its files are kept for ever")(b, p)
			voice := b.accepted(p, unit(1))
			o := success(unit(1))
			o.Media, o.Made = nil, &mediagate.Made{Voices: []string{"v1"}}
			b.resting(completedBy(voice, 1, o, nil))
			b.pass(aDay)
			young := b.resting(completed(b.accepted(p, unit(1)), unit(1)))
			before := b.task(old)
			b.pass(aDay)
			same(b, "removed", b.remove(mediagate.RemoveResults, 3*aDay/2), 1)
			same(b, "removed again", b.remove(mediagate.RemoveResults, 3*aDay/2), 0)
			want := before
			want.Results, want.Version = slices.Clone(before.Results), before.Version+1
			want.Results[0].Key = ""
			same(b, "the task", b.task(old), want)
			for _, id := range []string{forever, young} {
				same(b, "files", b.task(id).Results, files(id))
			}
			same(b, "mark", b.removals()[mediagate.RemoveResults], mediagate.RemovalState{Mark: voice, Removed: 1})
		},
		"objects that no row names": func(b *bench) {
			p := b.newPayer(unit(20))
			key := func(id, rest string) string { return mediagate.ResultFolder(id) + rest }
			finish := func(id string) string {
				return b.resting(completedBy(id, 1, success(unit(1)), []mediagate.Result{{Key: key(id, "1/0.mp4"), MimeType: "video/mp4"}}))
			}
			ended, source, open := finish(b.accepted(p, unit(1))), finish(b.accepted(p, unit(1))), b.accepted(p, unit(1))
			must(b.followUp(p, source))
			b.pass(40 * aDay)
			expired := finish(b.accepted(p, unit(1)))
			b.spoil("UPDATE tasks SET results = ? WHERE id = ?", `[{"key":"","mime_type":"video/mp4"}]`, expired)
			torn := finish(b.accepted(p, unit(1)))
			b.spoil("UPDATE tasks SET results = '{' WHERE id = ?", torn)
			keys := []string{
				key(ended, "1/0.mp4"), key(ended, "1/manifest.json"), key(ended, "2/0.mp4"), key(source, "2/0.mp4"), key(open, "1/0.mp4"),
				key(expired, "1/0.mp4"), key(torn, "1/0.mp4"), key("task_gone", "1/0.mp4"), "results/stray", "uploads/acc/1",
			}
			got := must(b.Unnamed(b.Context(), keys))
			same(b, "unnamed", got, []string{
				key(ended, "1/manifest.json"), key(ended, "2/0.mp4"), key(expired, "1/0.mp4"), key("task_gone", "1/0.mp4"),
			})
			b.spoil("UPDATE tasks SET results = NULL WHERE id = ?", torn)
		},
		"deliveries, records, speeches and the audit": func(b *bench) {
			p := b.newPayer(unit(20))
			n := b.draft(p, unit(1))
			n.IdempotencyKey = "once"
			must2(b.Submit(b.Context(), n))
			id := b.resting(failed(n.Task.ID))
			round := reasonNamed("its callback is delivered anew")(b, p)
			open := b.keyed(p, "open", "body")
			must2(b.Submit(b.Context(), open))
			speech, running := b.speak(p, unit(1)), b.speak(p, unit(1))
			b.endSpeech(speech, mediagate.SpeechPosted)
			actor := mediagate.WithActor(b.Context(), mediagate.Actor{By: "admin"})
			must(b.CreateAccount(actor, mediagate.Account{Name: "audited"}))
			table := func() []int {
				return []int{
					b.count("SELECT COUNT(*) FROM deliveries WHERE task_id = ?", id), b.count("SELECT COUNT(*) FROM deliveries WHERE task_id = ?", round),
					b.count("SELECT COUNT(*) FROM idempotency"), b.count("SELECT COUNT(*) FROM speeches"), b.count("SELECT COUNT(*) FROM audit"),
				}
			}
			all := func(kept time.Duration) {
				for _, kind := range mediagate.Removals()[:7] {
					if kind != mediagate.RemoveResults && kind != mediagate.RemoveTasks {
						b.remove(kind, kept)
					}
				}
			}
			b.pass(aDay - time.Second)
			all(aDay)
			same(b, "a second too early", table(), []int{1, 1, 2, 2, 1})
			b.pass(2 * time.Second)
			all(aDay)
			same(b, "a day later", table(), []int{0, 1, 1, 1, 0})
			same(b, "the open one's", b.count("SELECT COUNT(*) FROM speeches WHERE id = ?", running), 1)
			taken, replayed := must2(b.Submit(b.Context(), func() mediagate.NewTask { again := b.keyed(p, "open", "body"); return again }()))
			same(b, "replayed", []any{taken, replayed}, []any{open.Task.ID, true})
			b.checkLedger()
		},
		"a run begins where nothing is left before, and looks at what stayed again": func(b *bench) {
			p := b.newPayer(unit(2000))
			first := b.resting(completed(b.accepted(p, unit(1)), unit(1)))
			b.pass(time.Minute)
			stays := b.accepted(p, unit(1))
			b.pass(time.Minute)
			last := b.resting(completed(b.accepted(p, unit(1)), unit(1)))
			b.pass(2 * aDay)
			same(b, "removed", b.remove(mediagate.RemoveTasks, aDay), 2)
			same(b, "state", b.removals()[mediagate.RemoveTasks], mediagate.RemovalState{Mark: first, Removed: 2})
			b.resting(failed(stays))
			b.pass(2 * aDay)
			b.noError(b.ExpireSlots(b.Context()))
			same(b, "removed then", b.remove(mediagate.RemoveTasks, aDay), 1)
			same(b, "the mark", b.removals()[mediagate.RemoveTasks], mediagate.RemovalState{Mark: stays, Removed: 3})
			same(b, "left", []bool{b.has(first), b.has(stays), b.has(last)}, []bool{false, false, false})
		},
		"several slices": func(b *bench) {
			n := b.draft(b.newPayer(unit(1)), 1)
			n.Task.Webhook = mediagate.Webhook{}
			must2(b.Submit(b.Context(), n))
			b.settle(cancelled(n.Task.ID))
			b.spoil("DELETE FROM wakes")
			b.spoil(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
				INSERT INTO tasks (id, account_id, key_id, model, type, status, params, document, hold, created_at, ended_at, deadline_at)
				SELECT id || i, account_id, key_id, model, type, status, params, document, hold, created_at, ended_at, deadline_at FROM tasks, n`)
			b.pass(2 * aDay)
			slice := must(b.RemoveRows(b.Context(), mediagate.RemoveTasks, b.now().Add(-aDay), ""))
			same(b, "the first", []any{slice.Removed, slice.More}, []any{500, true})
			slice = must(b.RemoveRows(b.Context(), mediagate.RemoveTasks, b.now().Add(-aDay), slice.Next))
			same(b, "the second", []any{slice.Removed, slice.More}, []any{1, false})
			same(b, "left", b.count("SELECT COUNT(*) FROM tasks"), 0)
		},
		"a task that goes while another is submitted that works on it": func(b *bench) {
			p := b.newPayer(unit(1000))
			for range 20 {
				source := b.resting(completed(b.accepted(p, unit(1)), unit(1)))
				b.pass(2 * aDay)
				var followed atomic.Value
				b.race(3, func(i int) {
					if i > 0 {
						must(b.RemoveRows(context.WithoutCancel(b.Context()), mediagate.RemoveTasks, b.now().Add(-aDay), ""))
						return
					}
					id, err := b.followUp(p, source)
					if err != nil && !mediagate.Is(err, mediagate.KindNotFound) {
						b.Errorf("follow up: %v", err)
					}
					if err == nil {
						followed.Store(id)
					}
				})
				id, stored := followed.Load().(string)
				same(b, "source and follow-up", b.has(source), stored)
				if stored {
					b.resting(failed(id))
				}
			}
		},
		"runs at once": func(b *bench) {
			p := b.newPayer(unit(100))
			for range 30 {
				b.resting(completed(b.accepted(p, unit(1)), unit(1)))
			}
			b.pass(2 * aDay)
			var removed atomic.Int64
			b.race(6, func(int) {
				slice := must(b.RemoveRows(b.Context(), mediagate.RemoveTasks, b.now().Add(-aDay), ""))
				removed.Add(int64(slice.Removed))
			})
			same(b, "removed", []int64{removed.Load(), b.removals()[mediagate.RemoveTasks].Removed}, []int64{30, 30})
		},
	})
}

func reasonNamed(name string) func(*bench, payer) string {
	return reasons[slices.IndexFunc(reasons, func(r struct {
		name string
		make func(b *bench, p payer) string
	},
	) bool {
		return r.name == name
	})].make
}

// spoilAny is spoil where there may be nothing.
func (b *bench) spoilAny(statement string) {
	b.Helper()
	b.noError(b.database().Exec(statement).Error)
}

// A slice of retention reads what it looks at, however much there is, and whatever is
// asked of it: rows that stay, and rows that go.
func TestRetentionReadsSlices(t *testing.T) {
	t.Parallel()
	const (
		slices = 8 // the planner tries five times before it may keep a plan
		ids    = 500
	)
	now := time.Now().UTC().Truncate(time.Microsecond)
	url := pgtest.New(t)
	fillHistory(t, url, now)
	fillAttempts(t, url)
	db := openRaw(t, url)
	db.SetMaxOpenConns(1)
	execute(t, db,
		`INSERT INTO deliveries (task_id, round, attempt, at) SELECT id, 1, 1, created_at FROM tasks`,
		`INSERT INTO idempotency (account_id, key, path, body_sha256, task_id, created_at, expires_at) SELECT account_id, id, '/', '', id, created_at, created_at FROM tasks`,
		`UPDATE tasks SET results = '[{"key":"results/1"}]' WHERE status = 'completed'`,
		`VACUUM ANALYZE tasks, deliveries, idempotency`)
	slice := func(kind mediagate.Removal, most int64, removes int) {
		t.Helper()
		before, after := rowsRead(t, db), ""
		s := openPostgres(t, url, storage.Config{})
		for range slices {
			got, err := s.RemoveRows(t.Context(), kind, now.Add(-time.Hour), after)
			if err != nil {
				t.Fatal(err)
			}
			if got.Removed < removes-20 || got.Removed > removes || !got.More {
				t.Errorf("%s: %+v, want %d or some less", kind, got, removes)
			}
			after = got.Next
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if read := (rowsRead(t, db) - before) / slices; read > most*ids {
			t.Errorf("%s: %d rows and entries read a slice, want at most %d for each id", kind, read, most)
		}
	}
	slice(mediagate.RemoveDeliveries, 40, ids)
	slice(mediagate.RemoveIdempotency, 40, ids)
	slice(mediagate.RemoveResults, 40, ids)
	slice(mediagate.RemoveTasks, 40, ids)
}
