package storage_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
)

// These are of what clients read.
func TestListFacts(t *testing.T) {
	t.Parallel()
	prove(t, facts{
		"a task is its account's only": func(b *bench) {
			p, q := b.newPayer(unit(10)), b.newPayer(unit(10))
			id := b.submit(p, unit(1))
			got := must(b.Task(b.Context(), p.account, id))
			same(b, "id", got.ID, id)
			b.kind(errOf(b.Task(b.Context(), q.account, id)), mediagate.KindNotFound)
			b.kind(errOf(b.Task(b.Context(), p.account, "task_none")), mediagate.KindNotFound)
			b.kind(errOf(b.RequestCancel(b.Context(), q.account, id)), mediagate.KindNotFound)
		},
		"lists are filtered by every field": func(b *bench) {
			p, q := b.newPayer(unit(10)), b.newPayer(unit(10))
			b.submit(q, unit(1))
			old := b.submit(p, unit(1))
			b.accept(old, b.now())
			b.settle(failed(old))
			b.pass(time.Hour)
			image := b.draft(p, unit(1))
			image.Task.Model, image.Task.Type, image.Task.Reference = "theta-image-turbo", mediagate.TypeImage, "r1"
			must2(b.Submit(b.Context(), image))
			b.pass(time.Hour)
			late := b.parked(p, mediagate.ParkFunds)
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
				"channel":        {mediagate.TaskFilter{Channel: channelName}, all[2:]},
				"no channel":     {mediagate.TaskFilter{Channel: "none"}, nil},
				"stuck":          {mediagate.TaskFilter{Stuck: true}, all[:1]},
				"callback":       {mediagate.TaskFilter{Webhook: mediagate.WebhookPending}, all},
				"delivered":      {mediagate.TaskFilter{Webhook: mediagate.WebhookDelivered}, nil},
				"key":            {mediagate.TaskFilter{KeyID: p.key}, all},
				"another's key":  {mediagate.TaskFilter{KeyID: q.key}, nil},
				"key and type":   {mediagate.TaskFilter{KeyID: p.key, Type: mediagate.TypeImage}, all[1:2]},
				"all but one":    {mediagate.TaskFilter{CreatedAfter: noon, CreatedBefore: noon.Add(2 * time.Hour), Type: mediagate.TypeImage}, all[1:2]},
				"together":       {mediagate.TaskFilter{After: late, Type: mediagate.TypeVideo}, all[2:]},
				"oldest first":   {mediagate.TaskFilter{OldestFirst: true}, []string{old, image.Task.ID, late}},
				"oldest of type": {mediagate.TaskFilter{OldestFirst: true, Type: mediagate.TypeVideo}, []string{old, late}},
				"newer":          {mediagate.TaskFilter{OldestFirst: true, After: old}, []string{image.Task.ID, late}},
				"newer of type":  {mediagate.TaskFilter{OldestFirst: true, After: old, Type: mediagate.TypeVideo}, []string{late}},
			} {
				test.filter.AccountID = p.account
				got, more := must2(b.Tasks(b.Context(), test.filter))
				var ids []string
				for _, t := range got {
					ids = append(ids, t.ID)
				}
				same(b, name, ids, test.want)
				same(b, name+": more", more, false)
				if test.filter.After == "" {
					same(b, name+": count", must(b.CountTasks(b.Context(), test.filter)), len(test.want))
				}
			}
		},
		"operators search by ids of tasks and jobs, and by names of accounts": func(b *bench) {
			var ps [3]payer
			var tasks [3]string
			for i, name := range []string{"Acme", "acme two", "other"} {
				ps[i] = b.newPayer(unit(10))
				b.changeAccount(ps[i], func(a *mediagate.Account) { a.Name = name })
				tasks[i] = b.submit(ps[i], unit(1))
			}
			late := b.submit(ps[0], unit(1))
			b.accept(tasks[2], b.now())
			job := ""
			b.noError(b.database().Raw("SELECT job_id FROM attempts WHERE task_id = ?", tasks[2]).Scan(&job).Error)
			stuck := b.parked(ps[1], mediagate.ParkFunds)
			for name, test := range map[string]struct {
				filter mediagate.TaskFilter
				want   []string
			}{
				"task":             {mediagate.TaskFilter{Search: tasks[0]}, tasks[:1]},
				"job":              {mediagate.TaskFilter{Search: job}, tasks[2:]},
				"account":          {mediagate.TaskFilter{Search: ps[2].account}, tasks[2:]},
				"one name":         {mediagate.TaskFilter{Search: "TWO"}, []string{stuck, tasks[1]}},
				"several names":    {mediagate.TaskFilter{Search: "acme"}, []string{stuck, late, tasks[1], tasks[0]}},
				"after":            {mediagate.TaskFilter{Search: "acme", After: late}, []string{tasks[1], tasks[0]}},
				"oldest first":     {mediagate.TaskFilter{Search: "acme", OldestFirst: true}, []string{tasks[0], tasks[1], late, stuck}},
				"a name and stuck": {mediagate.TaskFilter{Search: "acme", Stuck: true}, []string{stuck}},
				"name of others":   {mediagate.TaskFilter{Search: "acme", AccountID: ps[2].account}, nil},
				"name and account": {mediagate.TaskFilter{Search: "acme", AccountID: ps[1].account}, []string{stuck, tasks[1]}},
				"task and state":   {mediagate.TaskFilter{Search: tasks[0], Status: mediagate.StatusFailed}, nil},
				"names and state":  {mediagate.TaskFilter{Search: "acme", Status: mediagate.StatusFailed}, nil},
				"none":             {mediagate.TaskFilter{Search: "none"}, nil},
			} {
				got, _ := must2(b.Tasks(b.Context(), test.filter))
				var ids []string
				for _, t := range got {
					ids = append(ids, t.ID)
				}
				same(b, name, ids, test.want)
				if test.filter.After == "" {
					same(b, name+": count", must(b.CountTasks(b.Context(), test.filter)), len(test.want))
				}
			}
			labels := must(b.Labels(b.Context(), tasks[0], tasks[2]))
			same(b, "labels", labels, map[string]mediagate.TaskLabel{
				tasks[0]: {AccountName: "Acme"}, tasks[2]: {Channel: channelName, AccountName: "other"},
			})
			for range 21 {
				must(b.CreateAccount(b.Context(), mediagate.Account{Name: "many"}))
			}
			same(b, "too many", b.kind(errOf(b.Tasks(b.Context(), mediagate.TaskFilter{Search: "many"})), mediagate.KindInvalid).Param, "q")
		},
		"lists are paged": func(b *bench) {
			p := b.newPayer(unit(100))
			var ids []string
			for range 22 {
				ids = append([]string{b.submit(p, unit(1))}, ids...)
			}
			got, more := must2(b.Tasks(b.Context(), mediagate.TaskFilter{AccountID: p.account}))
			same(b, "default page", []any{len(got), got[0].ID, more}, []any{20, ids[0], true})
			got, more = must2(b.Tasks(b.Context(), mediagate.TaskFilter{AccountID: p.account, After: ids[19], Limit: 2}))
			same(b, "last page", []any{len(got), got[1].ID, more}, []any{2, ids[21], false})
		},
		"after must name a task of the account": func(b *bench) {
			p, q := b.newPayer(unit(10)), b.newPayer(unit(10))
			for _, after := range []string{b.submit(q, unit(1)), "task_none"} {
				same(b, "param", b.kind(errOf(b.Tasks(b.Context(), mediagate.TaskFilter{AccountID: p.account, After: after})), mediagate.KindInvalid).Param, "after")
			}
		},
		"a selection goes on after a task that is gone": func(b *bench) {
			p := b.newPayer(unit(10))
			ids := []string{b.submit(p, unit(1)), b.submit(p, unit(1)), b.submit(p, unit(1))}
			got, more := must2(b.SelectTasks(b.Context(), mediagate.TaskFilter{AccountID: p.account, After: ids[2] + "0", Limit: 2}))
			same(b, "first", []any{got[0].ID, got[1].ID, more}, []any{ids[2], ids[1], true})
			b.settle(failed(ids[1]))
			b.eraseTask(p, ids[1])
			got, more = must2(b.SelectTasks(b.Context(), mediagate.TaskFilter{AccountID: p.account, After: ids[1], Limit: 2}))
			same(b, "second", []any{len(got), got[0].ID, more}, []any{1, ids[0], false})
		},
		"a job is in the audit": func(b *bench) {
			ctx := mediagate.WithActor(b.Context(), mediagate.Actor{By: mediagate.AdminOperator})
			job := mediagate.TaskJob{ID: "job_1", Filter: mediagate.TaskFilter{Stuck: true}, Action: mediagate.ActionRetry, Reason: "topped up", PerSecond: 10}
			b.noError(b.NoteTaskJob(ctx, job))
			entries, _ := must2(b.Audit(b.Context(), mediagate.AuditFilter{Limit: 1}))
			same(b, "entry", []any{entries[0].Action, entries[0].Object, entries[0].Actor.By}, []any{mediagate.AuditTaskJob, "job_1", mediagate.AdminOperator})
			if !strings.Contains(string(entries[0].After), `"stuck":true`) {
				b.Errorf("%s", entries[0].After)
			}
		},
		"stuck tasks are counted by reason": func(b *bench) {
			p := b.newPayer(unit(10))
			b.parked(p, mediagate.ParkFunds)
			both := b.parked(p, mediagate.ParkFunds)
			late, early, ended := b.submit(p, unit(1)), b.submit(p, unit(1)), b.submit(p, unit(1))
			b.settle(failed(ended))
			for id, tries := range map[string]int{both: 5, late: mediagate.StuckTries, early: mediagate.StuckTries - 1, ended: 9} {
				b.noError(b.database().Exec("UPDATE wakes SET tries = ? WHERE task_id = ?", tries, id).Error)
			}
			got := must(b.StuckCounts(b.Context(), mediagate.TaskFilter{}))
			same(b, "counts", got, map[string]int{string(mediagate.ParkFunds): 2, mediagate.ReasonRunOverdue: 1})
			tasks, _ := must2(b.Tasks(b.Context(), mediagate.TaskFilter{Stuck: true}))
			same(b, "stuck", len(tasks), 3)
		},
		"versions are read in one go": func(b *bench) {
			p := b.newPayer(unit(10))
			one, two := b.submit(p, unit(1)), b.accepted(p, unit(1))
			got := must(b.Versions(b.Context(), []string{one, two, "task_none"}))
			same(b, "versions", got, map[string]int64{one: 1, two: 2})
			got = must(b.Versions(b.Context(), nil))
			same(b, "versions of none", len(got), 0)
		},
	})
}
