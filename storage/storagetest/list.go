package storagetest

import (
	"time"

	"github.com/mediagate/mediagate"
)

// listTests are of what clients read.
var listTests = map[string]func(*bench){
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
}
