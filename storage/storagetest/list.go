package storagetest

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/mediagate/mediagate"
)

// listTests are of what clients read.
var listTests = map[string]func(*bench){
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
		b.settle(failed(old))
		b.pass(time.Hour)
		image := b.draft(p, unit(1))
		image.Task.Model, image.Task.Type, image.Task.Reference = "theta-image-turbo", mediagate.TypeImage, "r1"
		must2(b.Submit(b.Context(), image))
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
			got, more := must2(b.Tasks(b.Context(), test.filter))
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
		ctx := mediagate.WithActor(b.Context(), mediagate.Actor{By: mediagate.ByOperator})
		job := mediagate.TaskJob{ID: "job_1", Filter: mediagate.TaskFilter{Stuck: true}, Action: mediagate.ActionRetry, Reason: "topped up", PerSecond: 10}
		b.noError(b.NoteTaskJob(ctx, job))
		entries, _ := must2(b.Audit(b.Context(), "", "", 1))
		same(b, "entry", []any{entries[0].Action, entries[0].Object, entries[0].Actor.By}, []any{mediagate.AuditTaskJob, "job_1", mediagate.ByOperator})
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
		got := must(b.StuckCounts(b.Context()))
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
	"every list is what a look at all tasks gives": func(b *bench) {
		payers := []payer{b.newPayer(unit(1000)), b.newPayer(unit(1000))}
		rapid.Check(b.T, func(t *rapid.T) {
			tasks := b.population(t, payers)
			for range 10 {
				b.compareLists(t, tasks, payers)
			}
		})
	},
}

// populationSize is how many tasks there are at most: more than a page has by default.
const populationSize = 90

// population adds some tasks to those of earlier rounds and tells of all. Those of
// before may have been created a little before or after the time in their id.
func (b *bench) population(t *rapid.T, payers []payer) []mediagate.Task {
	var ids []string
	b.noError(b.database().Raw("SELECT id FROM tasks").Scan(&ids).Error)
	for range min(rapid.IntRange(0, 12).Draw(t, "new"), populationSize-len(ids)) {
		n := b.draft(rapid.SampledFrom(payers).Draw(t, "payer"), unit(1))
		n.Task.Model = rapid.SampledFrom([]string{"alpha-v3", "theta-image-turbo"}).Draw(t, "model")
		n.Task.Type = rapid.SampledFrom(mediagate.TaskTypes()).Draw(t, "type")
		n.Task.Reference = rapid.SampledFrom([]string{"", "r1", "r2"}).Draw(t, "reference")
		n.Task.CreatedAt = b.now().Add(time.Duration(rapid.IntRange(-9, 9).Draw(t, "apart")) * time.Second)
		must2(b.Submit(b.Context(), n))
		id := n.Task.ID
		ids = append(ids, id)
		switch status := rapid.SampledFrom(mediagate.Statuses()).Draw(t, "status"); status {
		case mediagate.StatusPending:
			if rapid.Bool().Draw(t, "park") {
				b.park(id, mediagate.ParkFunds)
			}
			tries := rapid.SampledFrom([]int{0, mediagate.StuckTries - 1, mediagate.StuckTries}).Draw(t, "tries")
			b.noError(b.database().Exec("UPDATE wakes SET tries = ? WHERE task_id = ? AND kind = 'run'", tries, id).Error)
		case mediagate.StatusProcessing, mediagate.StatusCompleted:
			b.accept(id, b.now())
			if status == mediagate.StatusCompleted {
				b.settle(completed(id, unit(1)))
			}
		case mediagate.StatusFailed:
			b.settle(failed(id))
		case mediagate.StatusCancelled:
			b.settle(cancelled(id))
		}
		if b.task(id).Status.Terminal() {
			state := rapid.SampledFrom(append(mediagate.WebhookStates(), "")).Draw(t, "callback")
			b.noError(b.database().Exec("UPDATE tasks SET webhook_state = ? WHERE id = ?", state, id).Error)
		}
		if rapid.IntRange(0, 5).Draw(t, "erase") == 0 && b.task(id).Status.Terminal() {
			b.eraseTask(payer{account: n.Task.AccountID}, id)
		}
		b.pass(time.Duration(rapid.IntRange(0, 100_000).Draw(t, "pass")) * time.Millisecond)
	}
	tasks := make([]mediagate.Task, len(ids))
	for i, id := range ids {
		tasks[i] = b.task(id)
	}
	slices.SortFunc(tasks, func(a, b mediagate.Task) int { return cmp.Compare(b.ID, a.ID) })
	return tasks
}

// compareLists asks for a list and looks for the same among all tasks.
func (b *bench) compareLists(t *rapid.T, tasks []mediagate.Task, payers []payer) {
	f := mediagate.TaskFilter{Limit: rapid.SampledFrom([]int{0, 1, 5, 100, 300}).Draw(t, "limit")}
	if rapid.Bool().Draw(t, "of one account") {
		f.AccountID = rapid.SampledFrom(payers).Draw(t, "whose").account
	}
	some := func(what string) bool { return rapid.Bool().Draw(t, what) }
	if some("by model") {
		f.Model = rapid.SampledFrom([]string{"alpha-v3", "theta-image-turbo", "none"}).Draw(t, "of model")
	}
	if some("by type") {
		f.Type = rapid.SampledFrom(mediagate.TaskTypes()).Draw(t, "of type")
	}
	if some("by status") {
		f.Status = rapid.SampledFrom(mediagate.Statuses()).Draw(t, "of status")
	}
	if rapid.IntRange(0, 3).Draw(t, "by reference") == 0 {
		f.Reference = rapid.SampledFrom([]string{"r1", "r2", "r3"}).Draw(t, "of reference")
	}
	if some("by channel") {
		f.Channel = rapid.SampledFrom([]string{channelName, "none"}).Draw(t, "of channel")
	}
	f.Stuck = rapid.IntRange(0, 3).Draw(t, "stuck") == 0
	if rapid.IntRange(0, 3).Draw(t, "by callback") == 0 {
		f.Webhook = rapid.SampledFrom(mediagate.WebhookStates()).Draw(t, "of callback")
	}
	overdue, channels := b.overdue(), map[string]string{}
	for _, r := range b.rowsOfTasks() {
		channels[r.ID] = r.Channel
	}
	stuck := func(t mediagate.Task) bool { return !t.Status.Terminal() && (!t.ParkedAt.IsZero() || overdue[t.ID]) }
	moment := func(what string) time.Time { // often that of a task, as the edges are where lists go wrong
		if len(tasks) > 0 && some(what+" at a task") {
			fine := time.Duration(rapid.IntRange(-1, 1).Draw(t, what+" but for")) * time.Nanosecond
			return rapid.SampledFrom(tasks).Draw(t, what).CreatedAt.Add(fine)
		}
		return b.now().Add(-time.Duration(rapid.IntRange(-120, 5400).Draw(t, what)) * time.Second)
	}
	if some("by beginning") {
		f.CreatedAfter = moment("after")
	}
	if some("by end") {
		f.CreatedBefore = moment("before")
	}
	var own []mediagate.Task
	for _, task := range tasks {
		if (f.AccountID == "" || task.AccountID == f.AccountID) && task.ErasedAt.IsZero() {
			own = append(own, task)
		}
	}
	if len(own) > 0 && some("by cursor") {
		f.After = rapid.SampledFrom(own).Draw(t, "cursor").ID
	}
	var want []string
	for _, task := range own {
		if (f.Model == "" || task.Model == f.Model) && (f.Type == "" || task.Type == f.Type) && (f.Status == "" || task.Status == f.Status) &&
			(f.Reference == "" || task.Reference == f.Reference) && (f.Channel == "" || channels[task.ID] == f.Channel) && (!f.Stuck || stuck(task)) &&
			(f.Webhook == "" || task.Webhook != nil && task.Webhook.State == f.Webhook) && (f.After == "" || task.ID < f.After) &&
			(f.CreatedAfter.IsZero() || task.CreatedAt.After(f.CreatedAfter)) && (f.CreatedBefore.IsZero() || task.CreatedAt.Before(f.CreatedBefore)) {
			want = append(want, task.ID)
		}
	}
	count := must(b.CountTasks(b.Context(), f))
	same(b, "count", count, len(want))
	limit := cmp.Or(f.Limit, 20)
	wantMore := len(want) > limit
	want = want[:min(limit, len(want))]
	got, more, err := b.Tasks(b.Context(), f)
	if err != nil {
		t.Fatalf("%+v: %v", f, err)
	}
	var ids []string
	for _, task := range got {
		ids = append(ids, task.ID)
	}
	if !slices.Equal(ids, want) || more != wantMore {
		t.Fatalf("%+v: got %v, more %v, want %v, more %v", f, ids, more, want, wantMore)
	}
}

// overdue are the tasks whose runs the wake scan has tried in vain.
func (b *bench) overdue() map[string]bool {
	b.Helper()
	var ids []string
	b.noError(b.database().Raw("SELECT task_id FROM wakes WHERE kind = 'run' AND tries >= ?", mediagate.StuckTries).Scan(&ids).Error)
	overdue := map[string]bool{}
	for _, id := range ids {
		overdue[id] = true
	}
	return overdue
}

// rowsOfTasks have what an operator's list filters by and a client's task lacks.
func (b *bench) rowsOfTasks() (rows []struct{ ID, Channel string }) {
	b.Helper()
	b.noError(b.database().Raw("SELECT id, channel FROM tasks").Scan(&rows).Error)
	return rows
}
