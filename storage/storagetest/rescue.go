package storagetest

import (
	"slices"
	"sync"
	"time"

	"github.com/mediagate/mediagate"
)

// overdue is when the suite's tasks should have ended: two hours after the
// submit is their deadline.
var overdue = mediagate.Overdue{
	Grace: 30 * time.Minute, ParkTimeout: 24 * time.Hour, UnknownTimeout: time.Hour, Again: 10 * time.Minute,
}

// rescued claims and compares who is offered, and for which time.
func (b *bench) rescued(what string, want ...mediagate.Rescue) {
	b.Helper()
	got, err := b.ClaimOverdue(b.Context(), overdue, 10)
	b.noError(err)
	slices.SortFunc(got, func(x, y mediagate.Rescue) int { return slices.Compare([]string{x.TaskID}, []string{y.TaskID}) })
	same(b, what, got, append([]mediagate.Rescue{}, want...))
}

// D2: whatever is overdue is found, parked or not.
var rescueTests = map[string]func(*bench){
	"D2 overdue tasks are found by what they wait for": func(b *bench) {
		p := b.newPayer(unit(10))
		waiting, parked, lost, ended := b.submit(p, unit(1)), b.submit(p, unit(1)), b.submit(p, unit(1)), b.submit(p, unit(1))
		b.noError(b.Park(b.Context(), parked, mediagate.ParkFunds))
		b.noError(b.Park(b.Context(), lost, mediagate.ParkSubmissionUnknown))
		b.settle(cancelled(ended))
		step := func(d time.Duration, what string, found ...string) {
			b.Helper()
			b.pass(d)
			b.rescued(what + ", not yet")
			b.pass(time.Microsecond)
			b.rescued(what, mediagate.Rescue{TaskID: found[0], Times: 1})
			b.settle(failed(found[0]))
		}
		step(2*time.Hour+30*time.Minute, "the deadline", waiting)
		step(time.Hour-time.Microsecond, "a lost submission's patience", lost)
		step(24*time.Hour+30*time.Minute-3*time.Hour-30*time.Minute-time.Microsecond, "a parked task's patience", parked)
	},
	"D2 rescues become rarer": func(b *bench) {
		id := b.submit(b.newPayer(unit(10)), unit(1))
		b.pass(2*time.Hour + 30*time.Minute + time.Microsecond)
		b.rescued("first", mediagate.Rescue{TaskID: id, Times: 1})
		for i, gap := range []time.Duration{1, 1, 2, 4, 8, 16, 24, 24, 24} {
			b.pass(gap*10*time.Minute - time.Microsecond)
			b.rescued("too early")
			b.pass(time.Microsecond)
			b.rescued("again", mediagate.Rescue{TaskID: id, Times: i + 2})
		}
		b.pass(48*10*time.Minute + time.Microsecond)
		b.rescued("long after the last", mediagate.Rescue{TaskID: id, Times: 1})
	},
	"D2 a rescue falls to one": func(b *bench) {
		p := b.newPayer(unit(100))
		for range 20 {
			b.submit(p, unit(1))
		}
		b.pass(3 * time.Hour)
		var (
			mu    sync.Mutex
			found = map[string]int{}
		)
		b.race(8, func(int) {
			for range 3 {
				got, err := b.ClaimOverdue(b.Context(), overdue, 5)
				if err != nil {
					b.Errorf("claim: %v", err)
				}
				mu.Lock()
				for _, r := range got {
					found[r.TaskID]++
				}
				mu.Unlock()
			}
		})
		for id, n := range found {
			if n != 1 {
				b.Errorf("%s was offered %d times", id, n)
			}
		}
		same(b, "found", len(found), 20)
	},
	"D2 a delivery round that hangs is stuck after ten minutes": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.accepted(p, unit(1))
		b.pass(2*time.Hour + 31*time.Minute)
		b.rescued("the task was overdue", mediagate.Rescue{TaskID: id, Times: 1})
		b.settle(failed(id))
		stuck := func(what string, want ...mediagate.WebhookRound) {
			b.Helper()
			got, err := b.StuckWebhooks(b.Context(), 10*time.Minute, 10)
			b.noError(err)
			same(b, what, got, append([]mediagate.WebhookRound{}, want...))
		}
		round := mediagate.WebhookRound{TaskID: id, AccountID: p.account, Round: 1}
		b.pass(time.Minute + time.Microsecond)
		stuck("nobody was to deliver it so far")
		_, err := b.PendingWebhooks(b.Context(), time.Minute, 10*time.Minute, 10)
		b.noError(err)
		b.pass(9*time.Minute - time.Microsecond)
		_, err = b.PendingWebhooks(b.Context(), time.Minute, 10*time.Minute, 10)
		b.noError(err)
		stuck("not yet")
		b.pass(time.Microsecond)
		stuck("stuck", round)
		stuck("offered to one only")
		b.pass(10 * time.Minute)
		stuck("again", round)
		b.pass(10*time.Minute - time.Microsecond)
		stuck("too early")
		b.pass(time.Microsecond)
		stuck("once more", round)
		b.noError(b.RecordDelivery(b.Context(), mediagate.Delivery{TaskID: id, Round: 1, Attempt: 1, At: b.now()}, mediagate.WebhookDelivered, ""))
		b.pass(24 * time.Hour)
		stuck("delivered")
	},
}
