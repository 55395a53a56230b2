package storage_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

// using is a draft that uses the first file of each source.
func (b *bench) using(p payer, sources ...string) mediagate.NewTask {
	n := b.draft(p, unit(1))
	for i, id := range sources {
		n.Task.Sources = append(n.Task.Sources, mediagate.TaskFile{Field: fmt.Sprintf("image_urls[%d]", i), TaskID: id, N: 1})
	}
	return n
}

// user is a task that uses the first file of each source.
func (b *bench) user(p payer, sources ...string) string {
	b.Helper()
	id, _ := must2(b.Submit(b.Context(), b.using(p, sources...)))
	return id
}

// asks is the question of a run.
func (b *bench) asks(id string) task.Step {
	b.Helper()
	return b.change(id, task.Asked{}).Step
}

// usable completes a source, which has the file.
func (b *bench) usable(p payer) string {
	b.Helper()
	id := b.accepted(p, unit(1))
	b.settle(completed(id, unit(1)))
	return id
}

// goesOn holds that a task with one source goes on with its file once its run asks, and that
// the run is to ask now, unless it has.
func (b *bench) goesOn(id, source string) {
	b.Helper()
	if b.state(id).Wait.Why == mediagate.WhySource {
		same(b, "woken", slices.Contains(b.woken(1000), id), true)
	}
	same(b, "next", b.asks(id).Kind, task.Submit)
	same(b, "the file", b.task(id).Sources[0].Key, files(source)[0].Key)
}

// These are about tasks that use files of other tasks (D21).
func TestSourceFacts(t *testing.T) {
	t.Parallel()
	prove(t, facts{
		"a task waits for its sources, and the end of each brings its wake forward": func(b *bench) {
			p := b.newPayer(unit(10))
			one, two := b.accepted(p, unit(1)), b.accepted(p, unit(1))
			id := b.user(p, one, two)
			same(b, "in flight", b.inFlight(p), [2]int{3, 3})
			same(b, "sleeps for", b.asks(id).Why, task.SleepSource)
			same(b, "no end of its own", b.state(id).FailsAt().IsZero(), true)
			b.pass(10 * time.Minute)
			for i, source := range []string{one, two} {
				same(b, "due before", slices.Contains(b.woken(100), id), false)
				b.settle(completed(source, unit(1)))
				same(b, "due after", slices.Contains(b.woken(100), id), true)
				step := b.asks(id)
				same(b, "next", step.Kind == task.Submit, i == 1)
			}
			t := b.task(id)
			same(b, "the files", []string{t.Sources[0].Key, t.Sources[1].Key}, []string{files(one)[0].Key, files(two)[0].Key})
			same(b, "their states", []mediagate.Status{t.Sources[0].Status, t.Sources[1].Status}, []mediagate.Status{"completed", "completed"})
			same(b, "the deadline begins now", t.DeadlineAt, b.now().Add(2*time.Hour))
		},
		"a task whose sources have ended does not wait": func(b *bench) {
			p := b.newPayer(unit(10))
			source := b.usable(p)
			b.goesOn(b.user(p, source, source), source)
		},
		"a source that has ended without the file refuses the submit, by its field": func(b *bench) {
			p, stranger := b.newPayer(unit(20)), b.newPayer(unit(10))
			fine, foreign, failure, cancel, erased := b.usable(p), b.accepted(stranger, unit(1)), b.accepted(p, unit(1)), b.accepted(p, unit(1)), b.usable(p)
			b.settle(failed(failure))
			b.settle(cancelled(cancel))
			b.eraseTask(p, erased)
			n := b.using(p, fine)
			n.Task.Sources[0].N = 2
			for what, n := range map[string]mediagate.NewTask{
				"another's": b.using(p, foreign, fine), "failed": b.using(p, failure), "cancelled": b.using(p, cancel), "erased": b.using(p, erased),
				"unknown": b.using(p, "task_none"), "no such file": n,
			} {
				_, _, err := b.Submit(b.Context(), n)
				same(b, what, b.kind(err, mediagate.KindInvalid).Param, "image_urls[0]")
				b.nothingOf(n.Task.ID)
			}
			_, _, err := b.Submit(b.Context(), b.using(p, fine, failure))
			same(b, "the second", b.kind(err, mediagate.KindInvalid).Param, "image_urls[1]")
		},
		"a source that fails takes those with it that wait": func(b *bench) {
			p := b.newPayer(unit(10))
			source := b.accepted(p, unit(1))
			id := b.user(p, source)
			last := b.user(p, id)
			b.asks(id)
			b.asks(last)
			b.settle(failed(source))
			for _, waiting := range []string{id, last} {
				same(b, "woken", slices.Contains(b.woken(100), waiting), true)
				same(b, "next", b.asks(waiting).Kind, task.Settle)
				changed := b.change(waiting, task.EndDue{}, task.Asked{})
				same(b, "failure", changed.State.Failure.Code, mediagate.CodeSourceFailed)
			}
			same(b, "names the source", strings.Contains(b.task(id).Failure.Message, source), true)
			b.money(p, unit(10), 0, 0)
		},
		"an end and a submit at once: the new task is woken, or does not wait": func(b *bench) {
			p := b.newPayer(unit(1000))
			for range 12 {
				source := b.accepted(p, unit(1))
				n := b.using(p, source)
				b.race(2, func(i int) {
					if i == 0 {
						b.alter(source, nil, append(completed(source, unit(1)).events, task.Asked{})...)
					} else if _, _, err := b.Submit(b.Context(), n); err != nil {
						b.Errorf("submit: %v", err)
					}
				})
				b.goesOn(n.Task.ID, source)
			}
		},
		"a question and the end of the source at once lose no wake": func(b *bench) {
			p := b.newPayer(unit(1000))
			for range 12 {
				source := b.accepted(p, unit(1))
				id := b.user(p, source)
				b.race(2, func(i int) {
					if i == 0 {
						b.alter(source, nil, completed(source, unit(1)).events...)
					} else {
						b.alter(id, nil, task.Asked{})
					}
				})
				b.goesOn(id, source)
			}
		},
		"a hundred tasks that wait for one source are woken by its end": func(b *bench) {
			p := b.newPayer(unit(1000))
			source := b.accepted(p, unit(1))
			ids := make([]string, 100)
			for i := range ids {
				ids[i] = b.user(p, source)
				b.asks(ids[i])
			}
			b.settle(completed(source, unit(1)))
			woken := b.woken(1000)
			for _, id := range ids {
				same(b, "woken", slices.Contains(woken, id), true)
			}
			b.race(len(ids)/10, func(i int) {
				for _, id := range ids[i*10 : i*10+10] {
					b.alter(id, nil, task.Asked{}, task.CancelRequested{}, task.EndDue{})
				}
			})
		},
		"tasks that wait for each other's sources end beside each other": func(b *bench) {
			p := b.newPayer(unit(1000))
			for range 6 {
				one, two := b.accepted(p, unit(1)), b.accepted(p, unit(1))
				users := []string{b.user(p, two, one), b.user(p, one, two), b.user(p, one)}
				b.race(6, func(i int) {
					switch i {
					case 0:
						b.alter(one, nil, append(completed(one, unit(1)).events, task.Asked{})...)
					case 1:
						b.alter(two, nil, append(cancelled(two).events, task.Asked{})...)
					case 2:
						if _, _, err := b.Submit(b.Context(), b.using(p, two, one)); err != nil && !mediagate.Is(err, mediagate.KindInvalid) {
							b.Errorf("submit: %v", err)
						}
					default:
						b.alter(users[i-3], nil, task.Asked{}, task.CancelRequested{}, task.EndDue{}, task.Asked{})
					}
				})
				for _, id := range users {
					same(b, "status", b.task(id).Status, mediagate.StatusCancelled)
				}
			}
		},
		"an erasure and a submit at once agree": func(b *bench) {
			p := b.newPayer(unit(1000))
			for range 12 {
				source := b.usable(p)
				var refused, conflicts atomic.Int64
				b.race(2, func(i int) {
					if i == 0 {
						if _, err := b.EraseTask(b.Context(), p.account, source); mediagate.Is(err, mediagate.KindConflict) {
							conflicts.Add(1)
						} else if err != nil {
							b.Errorf("erase: %v", err)
						}
					} else if _, _, err := b.Submit(b.Context(), b.using(p, source)); mediagate.Is(err, mediagate.KindInvalid) {
						refused.Add(1)
					} else if err != nil {
						b.Errorf("submit: %v", err)
					}
				})
				same(b, "refused", refused.Load()+conflicts.Load(), 1)
			}
		},
		"a source is kept while a task waits for it, or works on it": func(b *bench) {
			p := b.newPayer(unit(10))
			kept, open := b.accepted(p, unit(1)), b.accepted(p, unit(1))
			b.resting(completed(kept, unit(1)))
			id := b.user(p, kept, open)
			b.pass(100 * aDay)
			refused := func(what string) {
				b.Helper()
				b.kind(errOf(b.EraseTask(b.Context(), p.account, kept)), mediagate.KindConflict)
				same(b, what+": results removed", b.remove(mediagate.RemoveResults, aDay), 0)
				same(b, what+": tasks removed", b.remove(mediagate.RemoveTasks, aDay), 0)
				same(b, what+": objects", must(b.Unnamed(b.Context(), []string{mediagate.ResultFolder(kept) + "1/1"})), []string{})
			}
			refused("waiting")
			b.settle(completed(open, unit(1)))
			b.asks(id)
			b.accept(id, b.now())
			refused("working")
			b.settle(cancelled(id))
			same(b, "results removed", b.remove(mediagate.RemoveResults, aDay), 1)
			same(b, "tasks removed", b.remove(mediagate.RemoveTasks, aDay), 1)
			same(b, "its state", b.task(id).Sources[0].Status, mediagate.Status(""))
			b.eraseTask(p, open)
			b.eraseTask(p, id)
			same(b, "rows", b.count("SELECT COUNT(*) FROM sources"), 0)
		},
		"nothing tells of the sources of a task whose inputs are erased": func(b *bench) {
			p := b.newPayer(unit(10))
			b.changeAccount(p, func(a *mediagate.Account) { a.EraseInputs = true })
			source := b.usable(p)
			id := b.user(p, source)
			b.settle(cancelled(id))
			same(b, "sources", b.task(id).Sources, nil)
			same(b, "rows", b.count("SELECT COUNT(*) FROM sources"), 0)
		},
		"tasks are listed by a source": func(b *bench) {
			p, stranger := b.newPayer(unit(20)), b.newPayer(unit(10))
			source := b.usable(p)
			var users []string
			for range 3 {
				b.pass(time.Second)
				users = append(users, b.user(p, source))
			}
			b.settle(cancelled(users[1]))
			b.user(p, users[2]) // uses it, but not directly
			list := func(what string, f mediagate.TaskFilter, want ...string) {
				b.Helper()
				tasks, _ := must2(b.Tasks(b.Context(), f))
				ids := make([]string, len(tasks))
				for i, t := range tasks {
					ids[i] = t.ID
					same(b, what+": state", t.Sources[0].Status, mediagate.StatusCompleted)
				}
				same(b, what, strings.Join(ids, " "), strings.Join(want, " "))
			}
			list("all", mediagate.TaskFilter{AccountID: p.account, Source: source}, users[2], users[1], users[0])
			list("after", mediagate.TaskFilter{AccountID: p.account, Source: source, After: users[2], Limit: 1}, users[1])
			list("open", mediagate.TaskFilter{Source: source, Status: mediagate.StatusPending}, users[2], users[0])
			list("another's", mediagate.TaskFilter{AccountID: stranger.account, Source: source})
			list("unknown", mediagate.TaskFilter{AccountID: p.account, Source: "task_none"})
			same(b, "counted", must(b.CountTasks(b.Context(), mediagate.TaskFilter{Source: source})), 3)
		},
	})
}
