package storage_test

import (
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

// These are of what metrics tell of the database.
func TestFigureFacts(t *testing.T) {
	t.Parallel()
	provePooled(t, facts{
		"open tasks are counted by what they wait for, and the oldest has the age": func(b *bench) {
			p := b.newPayer(unit(100))
			want := map[mediagate.WaitStep]time.Time{}
			for step, make := range map[mediagate.WaitStep]func() string{
				mediagate.WaitSource: func() string {
					source := b.accepted(p, unit(1))
					id := b.user(p, source)
					b.settle(completed(source, unit(1))) // and is counted no more
					return id
				},
				mediagate.WaitStart: func() string { return b.submit(p, unit(1)) },
				mediagate.WaitSubmit: func() string {
					id := b.submit(p, unit(1))
					b.intent(id)
					return id
				},
				mediagate.WaitLookup: func() string {
					id := b.submit(p, unit(1))
					intent := intentOf(id, 1, b.now())
					intent.Route.Find = true // otherwise it parks at once
					b.change(id, intent, task.SubmitUnknown{Sending: intent.Sending})
					return id
				},
				mediagate.WaitVendor: func() string { return b.accepted(p, unit(1)) },
				mediagate.WaitModal:  func() string { return b.modal(p) },
				mediagate.WaitEnd: func() string {
					id := b.accepted(p, unit(1))
					b.change(id, task.VendorEnded{N: 1, Outcome: success(1)})
					return id
				},
				mediagate.WaitQueue:  func() string { return b.queued(p) },
				mediagate.WaitParked: func() string { return b.parked(p, mediagate.ParkFunds) },
			} {
				b.pass(time.Second)
				make()
				want[step] = b.now()
				b.pass(time.Second)
				make()
			}
			b.settle(failed(b.submit(p, unit(1)))) // what has ended is not there
			f := must(b.Figures(b.Context()))
			same(b, "now", f.At, b.now())
			got := map[mediagate.WaitStep]time.Time{}
			for _, o := range f.Open {
				if o.Count != 2 || (o.Type == mediagate.TypeArt) != (o.Step == mediagate.WaitModal) {
					b.Errorf("%+v", o)
				}
				got[o.Step] = o.Since
			}
			same(b, "since", got, want)
			same(b, "stuck", f.Stuck, map[string]int{"provider_out_of_funds": 2})
		},
		"wakes are counted, and those that are due and were tried": func(b *bench) {
			p := b.newPayer(unit(10))
			b.submit(p, unit(1))
			b.parked(p, mediagate.ParkChannelMissing)
			for try := range 2 {
				b.pass(time.Hour)
				f := must(b.Figures(b.Context()))
				same(b, "overdue since", f.Wakes[0].Overdue.IsZero(), false)
				same(b, "wakes", [3]int{f.Wakes[0].Count, f.Wakes[0].Due, f.Wakes[0].Tried}, [3]int{2, 2, 2 * try})
				b.noError(b.PutOff(b.Context(), must(b.DueWakes(b.Context(), 10)), true))
			}
		},
		"new tasks are overdue only while nobody starts others": func(b *bench) {
			p := b.newPayer(unit(10))
			first := b.submit(p, unit(1))
			b.pass(time.Minute)
			overdue := func(what string, want bool) {
				b.Helper()
				same(b, what, !must(b.Figures(b.Context())).Wakes[0].Overdue.IsZero(), want)
			}
			overdue("nobody has started it", true)
			b.noError(b.PutOff(b.Context(), must(b.DueWakes(b.Context(), 10)), true))
			b.submit(p, unit(1))
			b.pass(30 * time.Second)
			overdue("a start is unanswered", false)
			b.change(first, task.Asked{})
			overdue("it was answered", true)
		},
		"jobs are counted by channel": func(b *bench) {
			p := b.newPayer(unit(10))
			b.accepted(p, unit(1))
			b.pass(time.Minute)
			b.accepted(p, unit(1))
			b.queued(p, "kling-a", "kling-b")
			f := must(b.Figures(b.Context()))
			got := map[string]mediagate.ChannelFigures{}
			for _, c := range f.Channels {
				got[c.Channel] = c
			}
			same(b, "kling-a", got["kling-a"].Queued+got["kling-b"].Queued, 2)
			jobs := 0
			for _, c := range f.Channels {
				jobs += c.Jobs
				if c.Awaited > 0 {
					same(b, "awaited", c.Awaited, 2)
					same(b, "due", c.DueAt.Before(b.now()), true)
				}
			}
			same(b, "jobs", jobs, 2)
		},
	})
}
