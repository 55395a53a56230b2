package storage_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

const modalTime = 30 * time.Minute

// modal is a task whose vendor waits for modal parameters since this moment.
func (b *bench) modal(p payer) (id string) {
	b.Helper()
	n := b.draft(p, unit(1))
	n.Task.Type, n.Task.Plan.Modal = mediagate.TypeArt, modalTime
	id, _ = must2(b.Submit(b.Context(), n))
	b.accept(id, b.now())
	b.change(id, task.Claimed{N: 1, Claim: "c"}, task.VendorWaits{N: 1, Claim: "c", NextAt: b.now()})
	same(b, "modal", b.task(id).Modal.State, mediagate.ModalWaiting)
	return id
}

func call(id string, p payer) mediagate.ModalCall {
	return mediagate.ModalCall{AccountID: p.account, TaskID: id, Input: []byte(`{"prompt":"a hat"}`), Path: "/modal"}
}

// These are about calls of clients that change a task, and are repeated.
func TestRepeatFacts(t *testing.T) {
	t.Parallel()
	prove(t, facts{
		"a cancel is noted once": func(b *bench) {
			p := b.newPayer(unit(10))
			id := b.submit(p, unit(1))
			first := must(b.RequestCancel(b.Context(), p.account, id))
			same(b, "task", []any{first.CancelRequestedAt, first.Version, first.Status}, []any{b.now(), int64(2), mediagate.StatusPending})
			b.pass(time.Minute)
			again := must(b.RequestCancel(b.Context(), p.account, id))
			same(b, "again", again, first)
			b.change(id, task.EndDue{})
			b.kind(errOf(b.RequestCancel(b.Context(), p.account, id)), mediagate.KindConflict)
		},
		"D15 a modal call is its account's, and of a task that waits": func(b *bench) {
			p, stranger := b.newPayer(unit(10)), b.newPayer(unit(1))
			id := b.modal(p)
			for _, c := range []mediagate.ModalCall{call(id, stranger), call("task_none", p)} {
				b.kind(errOf(b.SubmitModal(b.Context(), c)), mediagate.KindNotFound)
			}
			replayed := must(b.SubmitModal(b.Context(), call(id, p)))
			same(b, "replayed, input", []any{replayed, string(b.task(id).Modal.Input)}, []any{false, `{"prompt":"a hat"}`})
			b.kind(errOf(b.SubmitModal(b.Context(), call(id, p))), mediagate.KindConflict)
		},
		"D15 of several calls and the expiry one counts": func(b *bench) {
			p := b.newPayer(unit(20))
			for _, over := range []bool{false, true} {
				id := b.modal(p)
				if over {
					b.pass(modalTime)
				}
				var taken atomic.Int64
				b.race(6, func(i int) {
					if i%3 == 2 {
						must(b.Change(b.Context(), id, task.EndDue{}))
						return
					}
					switch _, err := b.SubmitModal(b.Context(), call(id, p)); {
					case err == nil:
						taken.Add(1)
					case !mediagate.Is(err, mediagate.KindConflict):
						b.Errorf("modal: %v", err)
					}
				})
				want := []any{int64(1), mediagate.ModalSubmitted, mediagate.StatusPending}
				if over {
					want = []any{int64(0), mediagate.ModalExpired, mediagate.StatusFailed}
				}
				same(b, "taken", []any{taken.Load(), b.task(id).Modal.State, b.task(id).Status}, want)
			}
		},
		"a modal call may be repeated": func(b *bench) {
			p := b.newPayer(unit(10))
			id := b.modal(p)
			first := call(id, p)
			first.IdempotencyKey, first.BodySHA256 = "k", [32]byte{1}
			var fresh atomic.Int64
			b.race(4, func(int) {
				replayed := must(b.SubmitModal(b.Context(), first))
				if !replayed {
					fresh.Add(1)
				}
			})
			same(b, "taken", fresh.Load(), 1)
			found, ok := must2(b.Replay(b.Context(), p.account, "k", "/modal", first.BodySHA256))
			same(b, "replay", []any{found, ok}, []any{id, true})
			other := first
			other.BodySHA256 = [32]byte{2}
			_, err := b.SubmitModal(b.Context(), other)
			b.idempotencyConflict(err)
			late := b.accepted(p, unit(1)) // which waits for nothing: nothing is remembered
			refused := call(late, p)
			refused.IdempotencyKey = "r"
			b.kind(errOf(b.SubmitModal(b.Context(), refused)), mediagate.KindConflict)
			_, ok = must2(b.Replay(b.Context(), p.account, "r", "/modal", refused.BodySHA256))
			same(b, "remembered", ok, false)
		},
		"a key whose record has expired serves a modal call": func(b *bench) {
			p := b.newPayer(unit(10))
			id := b.modal(p)
			first := call(id, p)
			first.IdempotencyKey, first.BodySHA256 = "k", [32]byte{1}
			must(b.SubmitModal(b.Context(), first))
			b.settle(cancelled(id))
			b.pass(24*time.Hour + time.Second)
			b.kind(errOf(b.SubmitModal(b.Context(), first)), mediagate.KindConflict)
			next := b.modal(p)
			reused := call(next, p)
			reused.IdempotencyKey, reused.BodySHA256 = "k", [32]byte{2}
			replayed := must(b.SubmitModal(b.Context(), reused))
			same(b, "replayed", replayed, false)
			found, ok := must2(b.Replay(b.Context(), p.account, "k", "/modal", reused.BodySHA256))
			same(b, "replay", []any{found, ok}, []any{next, true})
		},
	})
}
