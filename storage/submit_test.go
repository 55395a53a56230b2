package storage_test

import (
	"crypto/sha256"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/storage"
)

func TestSubmitFacts(t *testing.T) {
	t.Parallel()
	provePooled(t, facts{
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
		"a callback dropped at submit stays dropped": func(b *bench) {
			n := b.draft(b.newPayer(unit(10)), unit(4))
			n.Task.Webhook = mediagate.Webhook{URL: "ftp://x", State: mediagate.WebhookDropped, Reason: "scheme"}
			must2(b.Submit(b.Context(), n))
			b.settle(failed(n.Task.ID))
			same(b, "callback", b.task(n.Task.ID).Webhook, n.Task.Webhook)
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
		"a task id is taken once": func(b *bench) {
			p := b.newPayer(unit(10))
			n := b.draft(p, unit(1))
			must2(b.Submit(b.Context(), n))
			b.kind(errOf(b.Submit(b.Context(), n)), mediagate.KindConflict)
			b.money(p, unit(9), unit(1), 0)
		},
		"a repeated submit is replayed, also where the first has taken the last of the money": func(b *bench) {
			p := b.newPayer(unit(1))
			first := b.keyed(p, "k", "body")
			_, replayed := must2(b.Submit(b.Context(), first))
			same(b, "replayed", replayed, false)
			again := b.keyed(p, "k", "body")
			id, replayed := must2(b.Submit(b.Context(), again))
			same(b, "answer", []any{id, replayed}, []any{first.Task.ID, true})
			id, found := must2(b.Replay(b.Context(), p.account, "k", again.Path, again.BodySHA256))
			same(b, "replay", []any{id, found}, []any{first.Task.ID, true})
			b.nothingOf(again.Task.ID)
			b.money(p, 0, unit(1), 0)
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
		// It is either a repetition or a new submit, but nothing to be refused.
		"a record may end while its repetition is on its way": func(b *bench) {
			var step atomic.Int64 // between any two looks at the clock
			s := b.backend.open(b.T, storage.Config{Now: func() time.Time {
				b.pass(time.Duration(step.Load()))
				return b.now()
			}})
			first := b.keyed(b.newPayer(unit(10)), "once", "body")
			must2(b.Submit(b.Context(), first))
			b.settle(cancelled(first.Task.ID)) // from now on it stands for a day
			b.pass(24*time.Hour - 1500*time.Microsecond)
			again := b.keyed(payer{first.Task.AccountID, first.Task.KeyID}, "once", "body")
			step.Store(int64(time.Millisecond))
			id, replayed := must2(s.Submit(b.Context(), again))
			same(b, "replayed", replayed, id == first.Task.ID)
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
				id, replayed := must2(b.Submit(b.Context(), drafts[i]))
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
	})
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
