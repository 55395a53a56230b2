package storagetest

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/mediagate/mediagate"
)

func asError(err error, target **mediagate.Error) bool { return errors.As(err, target) }

var taskTests = map[string]func(*bench){
	"a task is its account's only": func(b *bench) {
		p, q := b.newPayer(unit(10)), b.newPayer(unit(10))
		id := b.submit(p, unit(1))
		got, err := b.Task(b.Context(), p.account, id)
		b.noError(err)
		same(b, "id", got.ID, id)
		_, err = b.Task(b.Context(), q.account, id)
		b.kind(err, mediagate.KindNotFound)
		_, err = b.Task(b.Context(), p.account, "task_none")
		b.kind(err, mediagate.KindNotFound)
		_, err = b.RequestCancel(b.Context(), q.account, id)
		b.kind(err, mediagate.KindNotFound)
	},
	"lists are filtered by every field": func(b *bench) {
		p, q := b.newPayer(unit(10)), b.newPayer(unit(10))
		b.submit(q, unit(1))
		old := b.submit(p, unit(1))
		b.settle(failed(old))
		b.pass(time.Hour)
		image := b.draft(p, unit(1))
		image.Task.Model, image.Task.Type, image.Task.Reference = "theta-image-turbo", mediagate.TypeImage, "r1"
		_, _, err := b.Submit(b.Context(), image)
		b.noError(err)
		b.pass(time.Hour)
		late := b.submit(p, unit(1))
		noon, all := b.now().Add(-2*time.Hour), []string{late, image.Task.ID, old}
		for name, test := range map[string]struct {
			filter mediagate.TaskFilter
			want   []string
		}{
			"none":           {mediagate.TaskFilter{}, all},
			"status":         {mediagate.TaskFilter{Status: mediagate.StatusFailed}, all[2:]},
			"model":          {mediagate.TaskFilter{Model: "theta-image-turbo"}, all[1:2]},
			"type":           {mediagate.TaskFilter{Type: mediagate.TypeVideo}, []string{late, old}},
			"reference":      {mediagate.TaskFilter{Reference: "r1"}, all[1:2]},
			"no such":        {mediagate.TaskFilter{Reference: "r"}, nil},
			"created after":  {mediagate.TaskFilter{CreatedAfter: noon}, all[:2]},
			"created before": {mediagate.TaskFilter{CreatedBefore: noon.Add(time.Hour)}, all[2:]},
			"after":          {mediagate.TaskFilter{After: late}, all[1:]},
			"together":       {mediagate.TaskFilter{After: late, Type: mediagate.TypeVideo}, all[2:]},
		} {
			test.filter.AccountID = p.account
			got, more, err := b.Tasks(b.Context(), test.filter)
			b.noError(err)
			var ids []string
			for _, t := range got {
				ids = append(ids, t.ID)
			}
			same(b, name, ids, test.want)
			same(b, name+": more", more, false)
		}
	},
	"lists are paged": func(b *bench) {
		p := b.newPayer(unit(100))
		var ids []string
		for range 22 {
			ids = append([]string{b.submit(p, unit(1))}, ids...)
		}
		got, more, err := b.Tasks(b.Context(), mediagate.TaskFilter{AccountID: p.account})
		b.noError(err)
		same(b, "default page", []any{len(got), got[0].ID, more}, []any{20, ids[0], true})
		got, more, err = b.Tasks(b.Context(), mediagate.TaskFilter{AccountID: p.account, After: ids[19], Limit: 2})
		b.noError(err)
		same(b, "last page", []any{len(got), got[1].ID, more}, []any{2, ids[21], false})
	},
	"after must name a task of the account": func(b *bench) {
		p, q := b.newPayer(unit(10)), b.newPayer(unit(10))
		for _, after := range []string{b.submit(q, unit(1)), "task_none"} {
			_, _, err := b.Tasks(b.Context(), mediagate.TaskFilter{AccountID: p.account, After: after})
			b.kind(err, mediagate.KindInvalid)
			var e *mediagate.Error
			if !asError(err, &e) || e.Param != "after" {
				b.Fatalf("error %v names no param", err)
			}
		}
	},
	"versions are read in one go": func(b *bench) {
		p := b.newPayer(unit(10))
		one, two := b.submit(p, unit(1)), b.accepted(p, unit(1))
		got, err := b.Versions(b.Context(), []string{one, two, "task_none"})
		b.noError(err)
		same(b, "versions", got, map[string]int64{one: 1, two: 2})
		got, err = b.Versions(b.Context(), nil)
		b.noError(err)
		same(b, "versions of none", len(got), 0)
	},
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
			ReadAt: b.now(), Status: mediagate.StatusPending, Model: "alpha-v3", Type: mediagate.TypeVideo, AccountID: p.account,
			DeadlineAt: b.now().Add(2 * time.Hour), Expected: plan.Expected, OnUnknown: plan.OnUnknown, WebhookState: mediagate.WebhookPending,
		})
	},
}
