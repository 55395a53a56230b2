package storage_test

import (
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

func TestUnreadableFacts(t *testing.T) {
	t.Parallel()
	prove(t, facts{
		"what of an open task cannot be read stays until somebody mends it": func(b *bench) {
			for name, happen := range map[string]func(id string) []task.Event{
				"its inputs are checked": func(string) []task.Event {
					return []task.Event{task.InputsChecked{Check: mediagate.InputCheck{Passed: []string{"a"}, Over: true}}}
				},
				"its vendor is away": func(id string) []task.Event {
					return []task.Event{task.Refused{Sending: b.sending(id), Failure: mediagate.Failure{Code: mediagate.CodeProviderAway, Retryable: true}}}
				},
				"its vendor takes it": func(id string) []task.Event {
					return []task.Event{task.Accepted{Sending: b.sending(id), Submission: mediagate.Submission{Ref: ref(id)}, FirstPollAt: b.now()}}
				},
				"the database was restored": func(string) []task.Event { return []task.Event{task.Restored{At: b.now()}} },
			} {
				p := b.newPayer(unit(10))
				id := b.submit(p, unit(4))
				if name != "its inputs are checked" {
					intent := intentOf(id, 1, b.now())
					b.change(id, intent, task.Refused{Sending: intent.Sending, Failure: mediagate.Failure{Code: mediagate.CodeProviderAway, Retryable: true}})
					b.pass(time.Minute)
					b.change(id, intentOf(id, 2, b.now()))
				}
				b.spoil("UPDATE tasks SET document = replace(document, '\"charges\":[', '\"charges\":[7,') WHERE id = ?", id)
				b.change(id, happen(id)...)
				same(b, name+": unreadable", b.state(id).Unreadable, true)
				b.spoil("UPDATE tasks SET document = replace(document, '\"charges\":[7,', '\"charges\":[') WHERE id = ?", id)
				same(b, name+": charges", b.task(id).Charges, b.draft(p, unit(4)).Task.Charges)
				b.change(id, task.CancelRequested{})
				b.pass(time.Minute)
				b.change(id, task.EndDue{})
			}
		},
		"an open task that cannot be read stands in lists next to the others": func(b *bench) {
			p := b.newPayer(unit(10))
			other, id := b.submit(p, unit(4)), b.submit(p, unit(4))
			b.spoil("UPDATE tasks SET document = '{' WHERE id = ?", id)
			b.change(id, task.Asked{})
			for _, f := range []mediagate.TaskFilter{{AccountID: p.account}, {AccountID: p.account, Stuck: true}} {
				tasks, _, err := b.SelectTasks(b.Context(), f)
				var ids []string
				for _, t := range tasks {
					ids = append(ids, t.ID)
				}
				want := []string{id}
				if !f.Stuck {
					want = append(want, other)
				}
				same(b, "tasks, error", []any{ids, err}, []any{want, nil})
			}
			b.settle(failed(id))
			b.settle(cancelled(other))
		},
		"D5 a report finds its attempt though the attempt's name cannot be read": func(b *bench) {
			id := b.submit(b.newPayer(unit(1)), unit(1))
			b.change(id, intentOf(id, 1, b.now()))
			sent := b.sending(id)
			b.spoil("UPDATE attempts SET document = '{' WHERE task_id = ?", id)
			changed := must(b.Change(b.Context(), id, task.Accepted{Sending: sent, Submission: mediagate.Submission{Ref: ref(id)}, FirstPollAt: b.now()}))
			same(b, "job, strays", []any{changed.State.Last().Ref.JobID, len(changed.Effects.Stray)}, []any{ref(id).JobID, 0})
			b.settle(cancelled(id))
		},
		"an attempt that cannot be read keeps its job where the vendor cannot be asked for it": func(b *bench) {
			id := b.accepted(b.newPayer(unit(10)), unit(1))
			b.spoil("UPDATE attempts SET document = document || 'x' WHERE task_id = ?", id)
			b.claim("c")
			b.change(id, task.Troubled{N: 1, Claim: "c", Reason: mediagate.ParkJobLost})
			same(b, "unreadable", b.state(id).Unreadable, true)
			b.spoil("UPDATE attempts SET document = substr(document, 1, length(document) - 1) WHERE task_id = ?", id)
			b.pass(2 * time.Minute)
			b.change(id, task.Asked{})
			same(b, "the job", b.attempt(id).Ref, ref(id))
			same(b, "polled for", b.claim("d")[0].Ref, ref(id))
		},
		"a task that cannot be read ends, and is refunded": func(b *bench) {
			for name, document := range map[string]string{"no JSON": "{", "another type": `{"plan":7,"charges":7}`, "null": "null", "a list": "[]"} {
				for how, end := range map[string]func(id string){
					"cancel": func(id string) { b.settle(cancelled(id)) },
					"fail":   func(id string) { b.settle(failed(id)) },
					"parking's end": func(id string) {
						b.change(id, task.Asked{})
						same(b, name+": reason", b.state(id).Wait.Reason, mediagate.ParkInternal)
						b.pass(24 * time.Hour)
						b.settle(end{id, mediagate.StatusFailed, []task.Event{task.EndDue{}}})
					},
				} {
					if name == "null" && how == "parking's end" {
						continue
					}
					p := b.newPayer(unit(10))
					id := b.accepted(p, unit(4))
					b.spoil("UPDATE tasks SET document = ? WHERE id = ?", document, id)
					b.spoil("UPDATE attempts SET document = ? WHERE task_id = ?", document, id)
					end(id)
					b.money(p, unit(10), 0, 0)
					if how != "cancel" {
						same(b, name+", "+how+": has a failure", b.task(id).Failure != nil, true)
					}
				}
			}
		},
		"a source is erased also where what worked on it cannot be read": func(b *bench) {
			p := b.newPayer(unit(10))
			id := b.rich(p)
			b.settle(richEnd(id))
			follow := must(b.followUp(p, id))
			b.settle(failed(follow))
			b.spoil("UPDATE tasks SET document = document || 'x' WHERE id = ?", follow)
			b.eraseTask(p, id)
			same(b, "left", b.holds(secretWord), nil)
			same(b, "referrers", b.count("SELECT COUNT(*) FROM tasks WHERE source_id <> ''"), 0)
		},
	})
}
