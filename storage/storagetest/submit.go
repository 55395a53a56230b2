package storagetest

import (
	"crypto/sha256"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mediagate/mediagate"
)

var submitTests = map[string]func(*bench){
	"a task is stored as it was submitted, and its hold taken": func(b *bench) {
		p := b.newPayer(unit(10))
		n := b.draft(p, unit(4))
		n.Task.Reference = "order 7"
		must2(b.Submit(b.Context(), n))
		want := n.Task
		want.Status, want.Version = mediagate.StatusPending, 1
		same(b, "task", b.task(n.Task.ID), want)
		b.money(p, unit(6), unit(4), 0)
	},
	"a group has no more in flight than it may": func(b *bench) {
		p, other := b.newPayer(unit(100)), b.newPayer(unit(100))
		draft := func(p payer, group string, capacity int) mediagate.NewTask {
			n := b.draft(p, unit(1))
			n.Group, n.Capacity = group, capacity
			return n
		}
		refused := func(n mediagate.NewTask) {
			b.Helper()
			b.kind(errOf(b.Submit(b.Context(), n)), mediagate.KindRateLimited)
			b.nothingOf(n.Task.ID)
		}
		first := draft(p, "songs", 2)
		first.IdempotencyKey, first.Path = "one", "/v1/music/generations"
		for _, n := range []mediagate.NewTask{first, draft(other, "songs", 2), draft(p, "films", 1), draft(p, "free", 0)} {
			must2(b.Submit(b.Context(), n))
		}
		refused(draft(p, "songs", 2)) // of all accounts of the group together
		refused(draft(other, "films", 1))
		id, replayed := must2(b.Submit(b.Context(), first))
		same(b, "replay", []any{id, replayed}, []any{first.Task.ID, true})
		poor := draft(b.newPayer(0), "songs", 2)
		b.kind(errOf(b.Submit(b.Context(), poor)), mediagate.KindPayment) // which is looked at before
		b.settle(failed(first.Task.ID))
		must2(b.Submit(b.Context(), draft(p, "songs", 2)))
		b.money(p, unit(97), unit(3), 0)
	},
	"a group has no more in flight than it may, whoever comes at once": func(b *bench) {
		const most, at = 5, 20
		var taken atomic.Int32
		drafts := make([]mediagate.NewTask, at)
		for i := range drafts {
			drafts[i] = b.draft(b.newPayer(unit(1)), unit(1))
			drafts[i].Group, drafts[i].Capacity = "crowd", most
		}
		b.race(at, func(i int) {
			switch _, _, err := b.Submit(b.Context(), drafts[i]); {
			case err == nil:
				taken.Add(1)
			case !mediagate.Is(err, mediagate.KindRateLimited):
				b.Errorf("%d: %v", i, err)
			}
		})
		same(b, "taken", taken.Load(), int32(most))
	},
	"an account has no more of a group's capacity than is free beside all": func(b *bench) {
		for _, p := range []struct {
			payer
			want int
		}{{b.newPayer(unit(100)), 4}, {b.newPayer(unit(100)), 2}, {b.newPayer(unit(100)), 1}, {b.newPayer(unit(100)), 1}, {b.newPayer(unit(100)), 0}} {
			got := 0
			for {
				n := b.draft(p.payer, unit(1))
				n.Group, n.Capacity = "shared", 8
				_, _, err := b.Submit(b.Context(), n)
				if err != nil {
					b.kind(err, mediagate.KindRateLimited)
					b.nothingOf(n.Task.ID)
					break
				}
				got++
			}
			same(b, "taken", got, p.want)
		}
	},
	"a task without a callback has none": func(b *bench) {
		p := b.newPayer(unit(10))
		n := b.draft(p, unit(4))
		n.Task.Webhook = nil
		must2(b.Submit(b.Context(), n))
		if w := b.task(n.Task.ID).Webhook; w != nil {
			b.Fatalf("callback %+v", w)
		}
	},
	"a callback dropped at submit stays dropped": func(b *bench) {
		p := b.newPayer(unit(10))
		n := b.draft(p, unit(4))
		n.Task.Webhook = &mediagate.Webhook{URL: "ftp://x", State: mediagate.WebhookDropped, Reason: "scheme"}
		must2(b.Submit(b.Context(), n))
		b.settle(failed(n.Task.ID))
		same(b, "callback", b.task(n.Task.ID).Webhook, n.Task.Webhook)
	},
	"the balance may be used up exactly": func(b *bench) {
		p := b.newPayer(unit(4))
		b.submit(p, unit(4))
		b.money(p, 0, unit(4), 0)
		n := b.draft(p, 1)
		b.kind(errOf(b.Submit(b.Context(), n)), mediagate.KindPayment)
		b.nothingOf(n.Task.ID)
		b.submit(p, 0)
	},
	"a limited key's quota may be used up exactly": func(b *bench) {
		p := b.newPayerKey(unit(100), mediagate.Key{Quota: unit(5)})
		one := b.accepted(p, unit(3))
		b.settle(completed(one, unit(2)))
		b.submit(p, unit(3))
		n := b.draft(p, 1)
		b.kind(errOf(b.Submit(b.Context(), n)), mediagate.KindPayment)
		b.nothingOf(n.Task.ID)
		b.money(p, unit(95), unit(3), unit(2))
	},
	"an unlimited key is bound by its account": func(b *bench) {
		p := b.newPayer(unit(1))
		b.kind(errOf(b.Submit(b.Context(), b.draft(p, unit(1)+1))), mediagate.KindPayment)
	},
	"a key that is deleted, expired or another account's submits nothing": func(b *bench) {
		p, q := b.newPayer(unit(10)), b.newPayer(unit(10))
		n := b.draft(p, unit(1))
		n.Task.KeyID = q.key
		b.kind(errOf(b.Submit(b.Context(), n)), mediagate.KindUnauthenticated)
		b.nothingOf(n.Task.ID)

		n = b.draft(payer{"acc_gone", p.key}, unit(1))
		b.kind(errOf(b.Submit(b.Context(), n)), mediagate.KindUnauthenticated)

		b.noError(b.DeleteKey(b.Context(), p.key))
		n = b.draft(p, unit(1))
		n.IdempotencyKey = "k"
		b.kind(errOf(b.Submit(b.Context(), n)), mediagate.KindUnauthenticated)
		b.nothingOf(n.Task.ID)

		r := b.newPayerKey(unit(10), mediagate.Key{Unlimited: true, ExpiresAt: b.now().Add(time.Minute)})
		b.submit(r, unit(1))
		b.pass(time.Minute)
		b.kind(errOf(b.Submit(b.Context(), b.draft(r, unit(1)))), mediagate.KindUnauthenticated)
	},
	"tasks of a key deleted later still settle": func(b *bench) {
		p := b.newPayer(unit(10))
		one, two := b.accepted(p, unit(2)), b.accepted(p, unit(3))
		b.noError(b.DeleteKey(b.Context(), p.key))
		b.settle(completed(one, unit(2)))
		b.settle(failed(two))
		b.money(p, unit(8), 0, unit(2))
	},
	"a task id is taken once": func(b *bench) {
		p := b.newPayer(unit(10))
		n := b.draft(p, unit(1))
		must2(b.Submit(b.Context(), n))
		b.kind(errOf(b.Submit(b.Context(), n)), mediagate.KindConflict)
		b.money(p, unit(9), unit(1), 0)
	},
	"a repeated submit is replayed": func(b *bench) {
		p := b.newPayer(unit(10))
		first := b.keyed(p, "k", "body")
		_, replayed := must2(b.Submit(b.Context(), first))
		same(b, "replayed", replayed, false)
		again := b.keyed(p, "k", "body")
		id, replayed := must2(b.Submit(b.Context(), again))
		same(b, "answer", []any{id, replayed}, []any{first.Task.ID, true})
		id, found := must2(b.Replay(b.Context(), p.account, "k", again.Path, again.BodySHA256))
		same(b, "replay", []any{id, found}, []any{first.Task.ID, true})
		b.nothingOf(again.Task.ID)
		b.money(p, unit(9), unit(1), 0)
	},
	"an idempotency key belongs to one request": func(b *bench) {
		p := b.newPayer(unit(10))
		must2(b.Submit(b.Context(), b.keyed(p, "k", "body")))
		otherBody, otherPath := b.keyed(p, "k", "another"), b.keyed(p, "k", "body")
		otherPath.Path = "/v1/images/generations"
		for _, n := range []mediagate.NewTask{otherBody, otherPath} {
			_, _, err := b.Submit(b.Context(), n)
			b.idempotencyConflict(err)
			_, _, err = b.Replay(b.Context(), p.account, "k", n.Path, n.BodySHA256)
			b.idempotencyConflict(err)
			b.nothingOf(n.Task.ID)
		}
		q := b.newPayer(unit(10))
		_, replayed := must2(b.Submit(b.Context(), b.keyed(q, "k", "another")))
		same(b, "another account's key", replayed, false)
	},
	"only acknowledged submits are remembered": func(b *bench) {
		p := b.newPayer(0)
		n := b.keyed(p, "k", "body")
		b.kind(errOf(b.Submit(b.Context(), n)), mediagate.KindPayment)
		_, found := must2(b.Replay(b.Context(), p.account, "k", n.Path, n.BodySHA256))
		same(b, "found", found, false)
		must3(b.Grant(b.Context(), p.account, unit(1), "r"))
		_, replayed := must2(b.Submit(b.Context(), b.keyed(p, "k", "another")))
		same(b, "replayed", replayed, false)
	},
	"a record lives until 24 hours after the task's end": func(b *bench) {
		p := b.newPayer(unit(10))
		first := b.keyed(p, "k", "body")
		must2(b.Submit(b.Context(), first))
		b.pass(100 * time.Hour)
		_, replayed := must2(b.Submit(b.Context(), b.keyed(p, "k", "body")))
		same(b, "replayed while the task is open", replayed, true)

		b.settle(failed(first.Task.ID))
		b.pass(24*time.Hour - time.Microsecond)
		_, replayed = must2(b.Submit(b.Context(), b.keyed(p, "k", "body")))
		same(b, "replayed before the record's end", replayed, true)
		b.pass(time.Microsecond)
		n := b.keyed(p, "k", "another")
		_, found := must2(b.Replay(b.Context(), p.account, "k", n.Path, n.BodySHA256))
		same(b, "found after its end", found, false)
		id, replayed := must2(b.Submit(b.Context(), n))
		same(b, "submitted after its end", []any{id, replayed}, []any{n.Task.ID, false})
		id, _ = must2(b.Submit(b.Context(), b.keyed(p, "k", "another")))
		same(b, "the new record", id, n.Task.ID)
	},
	"of twenty equal submits at once one counts": func(b *bench) {
		p := b.newPayer(unit(100))
		drafts := make([]mediagate.NewTask, 20)
		for i := range drafts {
			drafts[i] = b.keyed(p, "k", "body")
		}
		var first atomic.Int64
		var mu sync.Mutex
		ids := map[string]bool{}
		b.race(len(drafts), func(i int) {
			id, replayed, err := b.Submit(b.Context(), drafts[i])
			if err != nil {
				b.Errorf("submit: %v", err)
				return
			}
			if !replayed {
				first.Add(1)
			}
			mu.Lock()
			defer mu.Unlock()
			ids[id] = true
		})
		same(b, "new and distinct", []any{first.Load(), len(ids)}, []any{int64(1), 1})
		same(b, "tasks", b.count("SELECT COUNT(*) FROM tasks"), 1)
		same(b, "holds", b.count("SELECT COUNT(*) FROM ledger_transfers WHERE kind = 'hold'"), 1)
		b.money(p, unit(99), unit(1), 0)
	},
	"of twenty submits at once as many count as the balance covers": func(b *bench) {
		p := b.newPayerKey(unit(7), mediagate.Key{Unlimited: true})
		b.same20(p, 7)
		b.money(p, 0, unit(7), 0)
	},
	"of twenty submits at once as many count as the key's quota covers": func(b *bench) {
		p := b.newPayerKey(unit(100), mediagate.Key{Quota: unit(5)})
		b.same20(p, 5)
		b.money(p, unit(95), unit(5), 0)
	},
	"a key deleted while submits arrive leaves no half": func(b *bench) {
		p := b.newPayer(unit(100))
		drafts := make([]mediagate.NewTask, 10)
		for i := range drafts {
			drafts[i] = b.draft(p, unit(1))
		}
		var stored atomic.Int64
		b.race(len(drafts)+1, func(i int) {
			if i == len(drafts) {
				if err := b.DeleteKey(b.Context(), p.key); err != nil {
					b.Errorf("delete: %v", err)
				}
				return
			}
			switch _, _, err := b.Submit(b.Context(), drafts[i]); {
			case err == nil:
				stored.Add(1)
			case !mediagate.Is(err, mediagate.KindUnauthenticated):
				b.Errorf("submit: %v", err)
			}
		})
		same(b, "tasks", b.count("SELECT COUNT(*) FROM tasks"), int(stored.Load()))
		_, held, _ := b.balance(p.account)
		same(b, "held", held, unit(stored.Load()))
	},
	"settles and submits of one account do not lock each other up": func(b *bench) {
		p := b.newPayer(unit(1000))
		var open []string
		for range 10 {
			open = append(open, b.accepted(p, unit(1)))
		}
		drafts := make([]mediagate.NewTask, 10)
		for i := range drafts {
			drafts[i] = b.draft(p, unit(1))
		}
		b.race(30, func(i int) {
			var err error
			switch i % 3 {
			case 0:
				_, err = b.Change(b.Context(), open[i/3], completed(open[i/3], unit(1)).events...)
			case 1:
				_, _, err = b.Submit(b.Context(), drafts[i/3])
			case 2:
				_, _, _, err = b.Grant(b.Context(), p.account, unit(1), open[i/3])
			}
			if err != nil {
				b.Errorf("%d: %v", i, err)
			}
		})
		b.money(p, unit(990), unit(10), unit(10))
	},
}

// same20 submits twenty tasks of 1 at once; only want of them are covered.
func (b *bench) same20(p payer, want int64) {
	b.Helper()
	drafts := make([]mediagate.NewTask, 20)
	for i := range drafts {
		drafts[i] = b.draft(p, unit(1))
	}
	var stored atomic.Int64
	b.race(len(drafts), func(i int) {
		switch _, _, err := b.Submit(b.Context(), drafts[i]); {
		case err == nil:
			stored.Add(1)
		case !mediagate.Is(err, mediagate.KindPayment):
			b.Errorf("submit: %v", err)
		}
	})
	same(b, "stored", stored.Load(), want)
	same(b, "tasks", b.count("SELECT COUNT(*) FROM tasks"), int(want))
}

func (b *bench) keyed(p payer, idemKey, body string) mediagate.NewTask {
	n := b.draft(p, unit(1))
	n.IdempotencyKey, n.BodySHA256 = idemKey, sha256.Sum256([]byte(body))
	return n
}

func (b *bench) idempotencyConflict(err error) {
	b.Helper()
	e := b.kind(err, mediagate.KindConflict)
	same(b, "error", []string{e.Code, e.Message}, []string{"idempotency_conflict", "idempotency key reused with a different request"})
}

// nothingOf proves that a refused submit left nothing behind.
func (b *bench) nothingOf(taskID string) {
	b.Helper()
	b.kind(errOf(b.TaskByID(b.Context(), taskID)), mediagate.KindNotFound)
	same(b, "transfers", b.count("SELECT COUNT(*) FROM ledger_transfers WHERE task_id = ?", taskID), 0)
	same(b, "records", b.count("SELECT COUNT(*) FROM idempotency WHERE task_id = ?", taskID), 0)
}
