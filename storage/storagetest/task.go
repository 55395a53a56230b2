package storagetest

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/mediagate/mediagate"
)

func asError(err error, target **mediagate.Error) bool { return errors.As(err, target) }

var taskTests = map[string]func(*bench){
	"a cancel is noted once": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.submit(p, unit(1))
		first, err := b.RequestCancel(b.Context(), p.account, id)
		b.noError(err)
		same(b, "task", []any{first.CancelRequestedAt, first.Version, first.Status}, []any{b.now(), int64(2), mediagate.StatusPending})
		b.pass(time.Minute)
		again, err := b.RequestCancel(b.Context(), p.account, id)
		b.noError(err)
		same(b, "again", again, first)
		same(b, "story", b.story(id).CancelRequested, true)
	},
	"what has ended cannot be cancelled": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.accepted(p, unit(1))
		b.settle(completed(id, unit(1)))
		_, err := b.RequestCancel(b.Context(), p.account, id)
		b.kind(err, mediagate.KindConflict)
		if t := b.task(id); !t.CancelRequestedAt.IsZero() || t.Version != 3 {
			b.Fatalf("the refused cancel left a mark: %+v", t)
		}
	},
	"of cancel and end at once one comes first": func(b *bench) {
		p := b.newPayer(unit(10))
		for range 5 {
			id := b.accepted(p, unit(1))
			var refused atomic.Bool
			b.race(2, func(i int) {
				if i == 0 {
					_, err := b.RequestCancel(b.Context(), p.account, id)
					refused.Store(err != nil)
					if err != nil && !mediagate.Is(err, mediagate.KindConflict) {
						b.Errorf("cancel: %v", err)
					}
					return
				}
				if _, won, err := b.Settle(b.Context(), completed(id, unit(1))); err != nil || !won {
					b.Errorf("settle: won %v, error %v", won, err)
				}
			})
			same(b, "no mark", b.task(id).CancelRequestedAt.IsZero(), refused.Load())
		}
	},
	"parking is noted, and moves the deadline when it ends": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.submit(p, unit(1))
		start, deadline := b.now(), b.task(id).DeadlineAt
		b.noError(b.Unpark(b.Context(), id))
		b.noError(b.Park(b.Context(), id, mediagate.ParkFunds))
		b.pass(time.Minute)
		b.noError(b.Park(b.Context(), id, mediagate.ParkFunds))
		got := b.task(id)
		same(b, "parked", []any{got.ParkedAt, got.ParkReason, got.DeadlineAt, got.Version}, []any{start, mediagate.ParkFunds, deadline, int64(1)})
		story := b.story(id)
		same(b, "story", []any{story.ParkedAt, story.ParkReason}, []any{start, mediagate.ParkFunds})

		b.noError(b.Park(b.Context(), id, mediagate.ParkCredentials))
		got = b.task(id)
		same(b, "parked for another reason", []any{got.ParkedAt, got.ParkReason, got.DeadlineAt},
			[]any{start, mediagate.ParkCredentials, deadline})
		b.pass(time.Hour)
		b.noError(b.Unpark(b.Context(), id))
		b.noError(b.Unpark(b.Context(), id))
		got = b.task(id)
		same(b, "unparked", []any{got.ParkedAt, got.ParkReason, got.DeadlineAt}, []any{time.Time{}, mediagate.ParkReason(""), deadline.Add(time.Minute + time.Hour)})
	},
	"a lost submission is a parking of its own": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.submit(p, unit(1))
		deadline := b.task(id).DeadlineAt
		for _, reason := range []mediagate.ParkReason{mediagate.ParkProviderAway, mediagate.ParkSubmissionUnknown, mediagate.ParkProviderAway} {
			b.noError(b.Park(b.Context(), id, reason))
			got := b.task(id)
			same(b, "parked anew", []any{got.ParkedAt, got.ParkReason, got.DeadlineAt}, []any{b.now(), reason, deadline})
			b.pass(time.Minute)
			deadline = deadline.Add(time.Minute)
		}
	},
	"what has ended is not parked": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.submit(p, unit(1))
		b.noError(b.Park(b.Context(), id, mediagate.ParkFunds))
		b.settle(failed(id))
		b.noError(b.Park(b.Context(), id, mediagate.ParkInternal))
		same(b, "parked", b.task(id).ParkedAt, time.Time{})
		b.kind(b.Park(b.Context(), "task_none", mediagate.ParkFunds), mediagate.KindNotFound)
		b.kind(b.Unpark(b.Context(), "task_none"), mediagate.KindNotFound)
	},
	"a row that is gone is a story": func(b *bench) {
		same(b, "story", b.story("task_none"), mediagate.Story{Missing: true})
	},
	"a fresh task's story has no attempt": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.submit(p, unit(1))
		same(b, "story", b.story(id), mediagate.Story{
			ReadAt: b.now(), Status: mediagate.StatusPending, Model: "alpha-v3", Type: mediagate.TypeVideo,
			DeadlineAt: b.now().Add(2 * time.Hour), Expected: plan.Expected, OnUnknown: plan.OnUnknown, WebhookState: mediagate.WebhookPending,
		})
	},
}
