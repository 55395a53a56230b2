package storage_test

import (
	"crypto/sha256"
	"sync"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
)

// waitTime is how long the requests of these tests wait.
const waitTime = time.Minute

func waiter(id, request string) mediagate.Waiter {
	return mediagate.Waiter{ID: id, Request: sha256.Sum256([]byte(request)), Wait: waitTime}
}

// waited submits a task for whose end the waiter waits.
func (b *bench) waited(p payer, w mediagate.Waiter) (taskID string) {
	b.Helper()
	n := b.draft(p, unit(1))
	n.Waiter = &w
	id, replayed := must2(b.Submit(b.Context(), n))
	same(b, "replayed", replayed, false)
	return id
}

// adopts expects the task that a waiter adopts; "" for none.
func (b *bench) adopts(what, accountID string, w mediagate.Waiter, want string) {
	b.Helper()
	id, found := must2(b.Adopt(b.Context(), accountID, w))
	same(b, what, []any{id, found}, []any{want, want != ""})
}

// These are about requests whose clients did not get the answer.
func TestAdoptionFacts(t *testing.T) {
	t.Parallel()
	provePooled(t, facts{
		"an unanswered task is adopted once, by the same request of the same account": func(b *bench) {
			p, stranger := b.newPayer(unit(10)), b.newPayer(unit(10))
			id := b.waited(p, waiter("req_1", "a boat"))
			b.adopts("side by side", p.account, waiter("req_2", "a boat"), "")
			b.noError(b.Unanswered(b.Context(), p.account, "req_1"))
			b.adopts("another request", p.account, waiter("req_3", "a car"), "")
			b.adopts("another account", stranger.account, waiter("req_4", "a boat"), "")
			b.adopts("the same", p.account, waiter("req_5", "a boat"), id)
			b.adopts("the same beside it", p.account, waiter("req_6", "a boat"), "")
			b.noError(b.Unanswered(b.Context(), p.account, "req_1")) // it waits no longer, and opens nothing
			b.adopts("after the first one's end", p.account, waiter("req_7", "a boat"), "")
			b.noError(b.Unanswered(b.Context(), p.account, "req_5"))
			b.adopts("after the second one's", p.account, waiter("req_8", "a boat"), id)
			b.noError(b.Answered(b.Context(), p.account, "req_8"))
			b.adopts("after an answer", p.account, waiter("req_9", "a boat"), "")
			same(b, "records", b.count("SELECT COUNT(*) FROM idempotency"), 0)
		},
		"it is adopted within ten minutes, whatever becomes of the task": func(b *bench) {
			p := b.newPayer(unit(10))
			id := b.waited(p, waiter("req_1", "a boat"))
			b.noError(b.Unanswered(b.Context(), p.account, "req_1"))
			b.settle(failed(id))
			b.pass(10*time.Minute - time.Microsecond)
			b.adopts("before the end", p.account, waiter("req_2", "a boat"), id)
			b.noError(b.Unanswered(b.Context(), p.account, "req_2"))
			b.pass(10 * time.Minute)
			b.adopts("at the end", p.account, waiter("req_3", "a boat"), "")
		},
		"a process that dies leaves its tasks for adoption once their waits are over": func(b *bench) {
			p := b.newPayer(unit(10))
			id := b.waited(p, waiter("req_1", "a boat"))
			b.pass(waitTime - time.Microsecond)
			b.adopts("within the wait", p.account, waiter("req_2", "a boat"), "")
			b.pass(time.Microsecond)
			b.adopts("after it", p.account, waiter("req_3", "a boat"), id)
			b.pass(waitTime)
			b.adopts("after the adopter's", p.account, waiter("req_4", "a boat"), id)
		},
		"of tasks side by side each is adopted by another request": func(b *bench) {
			p := b.newPayer(unit(10))
			want := map[string]int{}
			for _, r := range []string{"req_1", "req_2", "req_3"} {
				want[b.waited(p, waiter(r, "a boat"))] = 1
				b.noError(b.Unanswered(b.Context(), p.account, r))
			}
			var mu sync.Mutex
			adopted := map[string]int{}
			b.race(8, func(i int) {
				id, found := must2(b.Adopt(b.Context(), p.account, waiter("req_"+string(rune('a'+i)), "a boat")))
				mu.Lock()
				defer mu.Unlock()
				if found {
					adopted[id]++
				}
			})
			same(b, "adoptions", adopted, want)
		},
		"an adoption is found again by the idempotency key of its request": func(b *bench) {
			p := b.newPayer(unit(10))
			keyed := func(id, key string) mediagate.Waiter {
				w := waiter(id, "a boat")
				w.Key, w.Path, w.BodySHA256 = key, "/v1/videos/generations", sha256.Sum256([]byte("body"))
				return w
			}
			replays := func(what, key, want string) {
				b.Helper()
				w := keyed("", key)
				id, found := must2(b.Replay(b.Context(), p.account, key, w.Path, w.BodySHA256))
				same(b, what, []any{id, found}, []any{want, want != ""})
			}
			first, second := b.waited(p, waiter("req_1", "a boat")), b.waited(p, waiter("req_2", "a boat"))
			b.noError(b.Unanswered(b.Context(), p.account, "req_1"))
			b.pass(time.Second)
			b.noError(b.Unanswered(b.Context(), p.account, "req_2"))
			b.adopts("by a key", p.account, keyed("req_3", "k"), first)
			replays("its task", "k", first)
			b.adopts("by the same key at once", p.account, keyed("req_4", "k"), "") // the second one stays for others
			only := keyed("req_5", "k")
			only.TaskID = first
			b.adopts("its own task, which is waited for", p.account, only, "")
			b.noError(b.Unanswered(b.Context(), p.account, "req_3"))
			b.adopts("its own task", p.account, only, first)
			b.adopts("by another key", p.account, keyed("req_6", "l"), second)
			b.settle(failed(first))
			b.pass(24*time.Hour - time.Second)
			replays("within a day", "k", first)
			b.pass(2 * time.Second)
			replays("after a day", "k", "")
		},
		"an erased task is not adopted": func(b *bench) {
			p := b.newPayer(unit(10))
			id := b.waited(p, waiter("req_1", "a boat"))
			b.noError(b.Unanswered(b.Context(), p.account, "req_1"))
			b.settle(failed(id))
			must(b.EraseTask(b.Context(), p.account, id))
			b.adopts("the same", p.account, waiter("req_2", "a boat"), "")
		},
		"no idempotency key of a client is a waiter's": func(b *bench) {
			p := b.newPayer(unit(10))
			w := waiter("req_1", "a boat")
			n := b.keyed(p, "req_1", "body")
			n.Waiter = &w
			must2(b.Submit(b.Context(), n))
			b.noError(b.Answered(b.Context(), p.account, "req_1"))
			id, found := must2(b.Replay(b.Context(), p.account, "req_1", n.Path, n.BodySHA256))
			same(b, "replay", []any{id, found}, []any{n.Task.ID, true})
		},
	})
}
