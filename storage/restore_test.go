package storage_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

// These hold that each open task of a backup is told once that it may lack
// attempts, and that those which wait for a person are listed (D17).
func TestRestoreFacts(t *testing.T) {
	t.Parallel()
	provePooled(t, facts{
		"a restore is noted once": func(b *bench) {
			to := b.now().Add(-time.Hour)
			first := must(b.NoteRestore(b.Context(), to))
			same(b, "first", first.Equal(b.now()), true)
			b.pass(time.Minute)
			again := must(b.NoteRestore(b.Context(), to))
			same(b, "again", again.Equal(first), true)
			other := must(b.NoteRestore(b.Context(), to.Add(time.Second)))
			same(b, "another", other.Equal(b.now()), true)
		},
		"a restore that is noted twice at once is noted once": func(b *bench) {
			const times = 20 // until two do meet
			for i := range times {
				to := b.now().Add(time.Duration(-1-i) * time.Minute)
				var group sync.WaitGroup
				for range 8 {
					group.Go(func() {
						if noted, err := b.NoteRestore(mediagate.WithActor(b.Context(), someone), to); err != nil || !noted.Equal(b.now()) {
							b.Errorf("%s %v", noted, err)
						}
					})
				}
				group.Wait()
			}
			same(b, "rows", b.count("SELECT COUNT(*) FROM restores"), times)
			same(b, "deeds", b.count("SELECT COUNT(*) FROM audit WHERE action = ?", mediagate.AuditRecover), times)
		},
		"tasks are told once, and who waits is listed": func(b *bench) {
			p := b.newPayer(unit(100))
			fresh, sent, ended := b.submit(p, unit(1)), b.submit(p, unit(1)), b.submit(p, unit(1))
			b.change(sent, intentOf(sent, 1, b.now()), task.Accepted{Sending: intentOf(sent, 1, b.now()).Sending, Submission: mediagate.Submission{Ref: ref(sent)}, FirstPollAt: b.now()})
			b.change(ended, task.CancelRequested{}, task.EndDue{})
			b.pass(time.Hour)
			noted := must(b.NoteRestore(b.Context(), b.now().Add(-time.Minute)))
			b.pass(time.Second)
			later := b.submit(p, unit(1))
			b.mark(noted, 1, 1)
			b.mark(noted, 5, 1)
			b.mark(noted, 5, 0)
			for id, want := range map[string]bool{fresh: true, sent: true, ended: false, later: false} {
				same(b, id, !b.state(id).RestoredAt.IsZero(), want)
			}
			b.doubted(fresh)

			b.change(fresh, task.Asked{})
			step := b.change(fresh, task.StepEnded{Step: task.Lookup, N: 1}, task.Asked{}).Step
			same(b, "step", step.Why, task.SleepParked)
			list := b.doubted(fresh)
			same(b, "who", list[0].AccountID, p.account)
			same(b, "how much", list[0].Hold, unit(1))
			same(b, "why", list[0].Reason, mediagate.ParkSubmissionUnknown)

			b.change(fresh, task.RetryRequested{})
			b.doubted()
			b.mark(noted, 5, 0) // an operator's word holds
			same(b, "may lack attempts", b.state(fresh).TailLost, false)
		},
		"ids without a task": func(b *bench) {
			id := b.submit(b.newPayer(unit(1)), unit(1))
			unknown := must(b.Unknown(b.Context(), []string{"task_b", id, "task_a"}))
			same(b, "unknown", slices.Equal(unknown, []string{"task_b", "task_a"}), true)
		},
	})
}

func (b *bench) mark(noted time.Time, limit, want int) {
	b.Helper()
	marked := must(b.MarkRestored(b.Context(), noted, limit))
	same(b, "marked", marked, want)
}

// doubted checks which tasks wait for a person, one a page.
func (b *bench) doubted(want ...string) (list []mediagate.UncertainTask) {
	b.Helper()
	var got []string
	for after, more := "", true; more; {
		page, hasMore := must2(b.UncertainTasks(b.Context(), after, 1))
		for _, d := range page {
			got, list, after = append(got, d.TaskID), append(list, d), d.TaskID
		}
		more = hasMore
	}
	if !slices.Equal(got, want) {
		b.Errorf("waiting for a person: %v, want %v", got, want)
	}
	return list
}
