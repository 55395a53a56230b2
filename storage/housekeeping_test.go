package storage_test

import (
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

// dueSweeps compares which tasks are to be swept.
func (b *bench) dueSweeps(what string, limit int, want ...string) {
	b.Helper()
	due := must(b.DueSweeps(b.Context(), limit))
	ids := make([]string, 0, len(due))
	for _, sweep := range due {
		ids = append(ids, sweep.TaskID)
	}
	same(b, what, ids, append([]string{}, want...))
}

// sweep is the one of the task that is due.
func (b *bench) sweep(id string) mediagate.Sweep {
	b.Helper()
	due := must(b.DueSweeps(b.Context(), 100))
	for _, sweep := range due {
		if sweep.TaskID == id {
			return sweep
		}
	}
	b.Fatalf("no sweep of %s is due", id)
	return mediagate.Sweep{}
}

// These are about what housekeeping and operators find, and command.
func TestHousekeepingFacts(t *testing.T) {
	t.Parallel()
	prove(t, facts{
		"D13 files that an ended task does not show are looked for": func(b *bench) {
			p := b.newPayer(unit(30))
			wished, lost, shown := b.accepted(p, unit(1)), b.accepted(p, unit(1)), b.accepted(p, unit(1))
			b.accepted(p, unit(1)) // still open
			b.settle(cancelled(wished))
			b.pass(time.Second)
			b.change(lost, task.VendorEnded{N: 1, Outcome: success(1)})
			b.settle(failed(lost))
			b.settle(completed(shown, unit(1)))
			b.pass(2 * mediagate.CopyLimit)
			b.dueSweeps("while copies of the second may be under way", 10, wished)
			b.pass(time.Microsecond)
			b.dueSweeps("due", 10, wished, lost)
			b.dueSweeps("the first", 1, wished)
			old := b.sweep(wished)
			b.noError(b.SetSweep(b.Context(), old, b.now().Add(-time.Minute)))
			b.noError(b.SetSweep(b.Context(), old, time.Time{})) // of one that was due before
			b.dueSweeps("made due meanwhile", 10, wished, lost)
			b.noError(b.SetSweep(b.Context(), b.sweep(wished), time.Time{}))
			b.noError(b.SetSweep(b.Context(), b.sweep(lost), b.now().Add(time.Minute)))
			b.noError(b.SetSweep(b.Context(), mediagate.Sweep{TaskID: shown}, b.now().Add(-time.Minute)))
			b.dueSweeps("one is done, one put off", 10)
			b.pass(time.Minute + time.Microsecond)
			b.dueSweeps("again", 10, lost)
		},
		"the oldest open task is known": func(b *bench) {
			p := b.newPayer(unit(10))
			open := func(what string, oldest time.Time) {
				b.Helper()
				at := must(b.OldestOpen(b.Context()))
				same(b, what, at, oldest)
			}
			open("none", time.Time{})
			first, at := b.submit(p, unit(1)), b.now()
			b.pass(time.Hour)
			second, later := b.accepted(p, unit(1)), b.now()
			b.pass(time.Hour)
			open("both open", at)
			b.settle(failed(first))
			open("one open", later)
			b.settle(failed(second))
			open("none open", time.Time{})
		},
		"it is known when a channel was last seen": func(b *bench) {
			seen := func() (at []time.Time) {
				states := must(b.ChannelStates(b.Context()))
				for _, s := range states {
					at = append(at, s.LastSeenAt)
				}
				return at
			}
			same(b, "seen", len(seen()), 0)
			epoch := b.epoch("a")
			same(b, "seen, of one that was begun", seen(), []time.Time{{}})
			b.noError(b.SeenChannel(b.Context(), []string{"a", "b"}))
			b.pass(time.Minute)
			b.noError(b.SeenChannel(b.Context(), []string{"b"}))
			same(b, "seen, of two", seen(), []time.Time{b.now().Add(-time.Minute), b.now()})
			same(b, "epoch", b.epoch("a"), epoch+1)
		},
		"what made a completed task's files is known": func(b *bench) {
			p := b.newPayer(unit(10))
			id, open, lost := b.accepted(p, unit(4)), b.accepted(p, unit(1)), b.accepted(p, unit(1))
			none := func(id string) {
				b.Helper()
				b.kind(errOf(b.Producer(b.Context(), id)), mediagate.KindNotFound)
			}
			o := success(unit(3))
			o.Made = &mediagate.Made{
				Clips:   []mediagate.Clip{{ID: "clip-1", Title: "A song", Timing: [][2]float64{{0.5, 1}}, Seconds: 12.5}},
				Buttons: []mediagate.Button{{CustomID: "MJ::1", Label: "U1"}},
			}
			b.change(id, task.VendorEnded{N: 1, Outcome: o}, task.Mirrored{N: 1, Results: files(id), Keep: true})
			none(id) // not before the end
			b.change(id, task.EndDue{})
			producer := must(b.Producer(b.Context(), id))
			same(b, "producer", []any{producer.TaskID, producer.N, producer.Outcome, producer.Ref, producer.Results}, []any{id, 1, &o, ref(id), files(id)})
			same(b, "made", []any{b.task(id).Made, b.task(open).Made}, []any{o.Made, (*mediagate.Made)(nil)})
			b.settle(failed(lost))
			for _, other := range []string{open, lost, "task_nobody"} {
				none(other)
			}
		},
		"refusals are counted by channel": func(b *bench) {
			id := b.submit(b.newPayer(unit(10)), unit(1))
			for i, channel := range []string{"kling-a", "kling-b", "kling-a"} {
				intent := intentOf(id, i+1, b.now())
				intent.Channel = channel
				b.change(id, intent, task.Refused{Sending: intent.Sending, Failure: mediagate.Failure{Code: mediagate.CodeProviderAway, Retryable: true}})
			}
			b.change(id, intentOf(id, 4, b.now()))
			got := must(b.Refusals(b.Context(), id))
			same(b, "refusals", got, map[string]int{"kling-a": 2, "kling-b": 1})
			attempts := must(b.Attempts(b.Context(), id))
			one := must(b.Attempt(b.Context(), id, 4))
			same(b, "attempts", []any{len(attempts), attempts[3]}, []any{4, one})
			sent := intentOf(id, 4, b.now()).Sending
			sent.Sends = 1
			same(b, "attempt", one, task.Attempt{
				TaskID: id, State: mediagate.AttemptIntent, CreatedAt: b.now(), Sending: sent,
			})
			b.kind(errOf(b.Attempt(b.Context(), id, 5)), mediagate.KindNotFound)
		},
	})
}
