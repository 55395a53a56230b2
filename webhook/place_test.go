package webhook_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate/webhook"
)

// hall is places, and a clock that is moved.
type hall struct {
	*webhook.Places
	t   *testing.T
	now time.Time
}

func newHall(t *testing.T) *hall {
	t.Helper()
	return &hall{&webhook.Places{}, t, time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}
}

func (h *hall) asks(account, receiver, delivery string) (*webhook.Place, webhook.Wait) {
	return h.Take(webhook.Ask{Account: account, URL: "http://" + receiver, Delivery: delivery, Due: h.now, Now: h.now})
}

// fills takes places until there is none for the account at the receiver.
func (h *hall) fills(account, receiver string) (taken []*webhook.Place) {
	for n := range webhook.AtOnce + 1 {
		place, _ := h.asks(account, receiver, fmt.Sprint(receiver, n))
		if place == nil {
			return taken
		}
		taken = append(taken, place)
	}
	h.t.Fatalf("%s may take all places", account)
	return nil
}

func (h *hall) finds(account, receiver string) *webhook.Place {
	h.t.Helper()
	place, wait := h.asks(account, receiver, "first of "+account)
	if place == nil {
		h.t.Fatalf("%s finds no place at %s: %+v", account, receiver, wait)
	}
	return place
}

// However many callbacks an account has, to one receiver or to many, others find
// places, at the same receiver too.
func TestPlacesLeaveRoom(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		fill func(h *hall) int
		most int
	}{
		"one receiver": {func(h *hall) int { return len(h.fills("busy", "tarpit")) }, webhook.AtOnce/5 + 1},
		"many receivers": {func(h *hall) (taken int) {
			for n := range 200 {
				taken += len(h.fills("busy", fmt.Sprint("tarpit", n)))
			}
			return taken
		}, webhook.AtOnce/3 + 1},
		"twenty accounts": {func(h *hall) (taken int) {
			for n := range 20 {
				taken += len(h.fills(fmt.Sprint("busy", n), fmt.Sprint("tarpit", n)))
			}
			return taken
		}, webhook.AtOnce - 1},
		"twenty accounts at one receiver": {func(h *hall) (taken int) {
			for n := range 20 {
				taken += len(h.fills(fmt.Sprint("busy", n), "tarpit"))
			}
			return taken
		}, webhook.AtOnce/2 + 20},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHall(t)
			if taken := c.fill(h); taken > c.most || taken < c.most/3 {
				t.Errorf("%d places taken, want a share of at most %d", taken, c.most)
			}
			h.finds("other", "elsewhere")
			if name == "one receiver" || name == "many receivers" {
				for range 10 {
					h.finds("another", "tarpit")
				}
			}
		})
	}
}

// An account whose callbacks to one receiver wait has places for another.
func TestPlacesOfAnotherReceiver(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	h.fills("busy", "tarpit")
	for range 10 {
		h.finds("busy", "good")
	}
}

// What is left is there for who comes next, once: a place left twice is one place.
func TestPlaceIsLeftOnce(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	places := h.fills("busy", "tarpit")
	for _, leave := range []func(){
		func() { places[0].Leave(h.now) },
		func() { places[0].Leave(h.now) },
		func() { places[0].Ended(true, h.now) },
	} {
		leave()
	}
	h.now = h.now.Add(time.Minute + time.Hour) // those who wait have gone away
	if got := len(h.fills("busy", "tarpit")); got != 1 {
		t.Errorf("%d places are free, want 1", got)
	}
}

// An account's callbacks to a receiver that only lets them time out go few at a
// time until one is answered. Others' go on, to the same receiver too.
func TestPlacesOfSilentReceiver(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	fell := 0
	for range 20 {
		place := h.finds("busy", "tarpit")
		h.now = h.now.Add(10 * time.Second)
		if place.Ended(true, h.now) {
			fell++
		}
	}
	if fell != 1 {
		t.Errorf("it fell silent %d times, want once", fell)
	}
	probes := h.fills("busy", "tarpit")
	if len(probes) != 4 {
		t.Errorf("%d at once to a silent receiver, want 4", len(probes))
	}
	if _, wait := h.asks("busy", "tarpit", "late"); !wait.Silent || wait.Under != 4 {
		t.Errorf("told %+v, want the silence and 4 under way", wait)
	}
	for range 10 {
		h.finds("other", "tarpit")
		h.finds("busy", "good")
	}
	h.now = h.now.Add(time.Second)
	probes[0].Ended(false, h.now)
	h.now = h.now.Add(time.Hour)
	if got := len(h.fills("busy", "tarpit")); got < 20 {
		t.Errorf("%d places for a receiver that answers again", got)
	}
}

// A line goes by when its deliveries were due: who comes back keeps its turn, also
// in a process that sees it for the first time, and nobody who comes new takes the
// place that it is to have.
func TestPlacesGoInTurns(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	places := h.fills("busy", "tarpit") // its last ask waits
	due := func(delivery string, d time.Duration) (bool, webhook.Wait) {
		place, wait := h.Take(webhook.Ask{Account: "busy", URL: "http://tarpit", Delivery: delivery, Due: h.now.Add(d), Now: h.now})
		return place != nil, wait
	}
	last := fmt.Sprint("tarpit", len(places))
	if _, wait := due("second", time.Second); wait.Ahead != 1 {
		t.Errorf("%d go before the second, want 1", wait.Ahead)
	}
	if _, wait := due("earlier", -time.Second); wait.Ahead != 0 {
		t.Errorf("%d go before the one that was due earlier, want none", wait.Ahead)
	}
	places[0].Ended(false, h.now)
	places[1].Ended(false, h.now)
	var got []string
	for _, delivery := range []string{"second", last, "earlier", "second"} {
		if ok, _ := due(delivery, map[string]time.Duration{"second": time.Second, "earlier": -time.Second}[delivery]); ok {
			got = append(got, delivery)
		}
	}
	if want := []string{last, "earlier"}; !slices.Equal(got, want) {
		t.Errorf("served %v, want %v", got, want)
	}
}

// Who does not come back does not keep the others.
func TestPlacesForgetWhoIsGone(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	places := h.fills("busy", "tarpit")
	for n := range 100 {
		h.asks("busy", "tarpit", fmt.Sprint("gone", n))
	}
	places[0].Leave(h.now)
	h.now = h.now.Add(5 * time.Minute)
	h.finds("busy", "tarpit")
}

// Places that were taken when there were more free are not taken back: shares even
// out as attempts end.
func TestPlacesEvenOut(t *testing.T) {
	t.Parallel()
	const accounts = 20
	h := newHall(t)
	taken := make([][]*webhook.Place, accounts)
	fill := func(n int) { taken[n] = append(taken[n], h.fills(fmt.Sprint("busy", n), "tarpit"+fmt.Sprint(n))...) }
	for n := range accounts {
		fill(n)
	}
	all := 0
	for range 60 {
		all = 0
		for n := range accounts {
			h.now = h.now.Add(10 * time.Minute)
			if len(taken[n]) > 1 {
				taken[n][0].Leave(h.now)
				taken[n] = taken[n][1:]
			}
			fill(n)
			all += len(taken[n])
		}
	}
	least, greatest := webhook.AtOnce, 0
	for _, places := range taken {
		least, greatest = min(least, len(places)), max(greatest, len(places))
	}
	if all > webhook.AtOnce*7/8 || greatest > 2*least {
		t.Errorf("%d places taken, from %d to %d of an account", all, least, greatest)
	}
}

// What is kept of lines and of who waits is bounded.
func TestPlacesAreBounded(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	for n := range 400 {
		h.asks(fmt.Sprint("busy", n), "tarpit", "one")
	}
	for n := range 12_000 { // none has a place
		h.asks(fmt.Sprint("busy", n%300), fmt.Sprint("receiver", n%10), fmt.Sprint(n))
		h.now = h.now.Add(time.Millisecond)
	}
	if waiting, _ := h.Kept(); waiting != 10_000 {
		t.Errorf("%d who wait are kept, want as many as may be", waiting)
	}
	for n := range 10_500 {
		h.asks("other", fmt.Sprint("receiver", n), "one")
	}
	waiting, lines := h.Kept()
	if waiting > 10_000 || lines > 10_000 {
		t.Errorf("%d who wait and %d lines are kept", waiting, lines)
	}
	h.now = h.now.Add(time.Hour)
	h.asks("new", "receiver", "one")
	if waiting, lines = h.Kept(); waiting > 1 || lines > 257 {
		t.Errorf("%d who wait and %d lines are kept an hour later", waiting, lines)
	}
}

// A flood at a tarpit, played through: each comes again when it is told to, all
// have their attempt, roughly in their order, few come again for nothing, and
// another account's never waits.
func TestPlacesInATarpit(t *testing.T) {
	t.Parallel()
	const flood = 330
	type event struct {
		at       time.Time
		delivery int
		ends     *webhook.Place
	}
	for name, c := range map[string]struct {
		takes  time.Duration // an attempt
		silent bool
		within time.Duration // all of them
		asks   int           // in a second, at most
	}{
		"never answers":   {10 * time.Second, true, 20 * time.Minute, flood + 100},
		"answers late":    {9 * time.Second, false, 5 * time.Minute, flood + 100},
		"answers at once": {50 * time.Millisecond, false, 10 * time.Second, 2 * flood},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHall(t)
			began := h.now
			var events []event
			for n := range flood {
				events = append(events, event{at: began.Add(time.Duration(n) * time.Millisecond), delivery: n})
			}
			var order []int
			asks := map[int]int{}
			for len(events) > 0 {
				slices.SortStableFunc(events, func(a, b event) int { return a.at.Compare(b.at) })
				e := events[0]
				events, h.now = events[1:], e.at
				if e.ends != nil {
					e.ends.Ended(c.silent, h.now)
					h.finds("other", "good").Ended(false, h.now)
					continue
				}
				asks[int(h.now.Sub(began)/time.Second)]++
				place, wait := h.Take(webhook.Ask{
					Account: "busy", URL: "http://tarpit", Delivery: fmt.Sprint(e.delivery),
					Due: began.Add(time.Duration(e.delivery) * time.Millisecond), Now: h.now,
				})
				if place == nil {
					events = append(events, event{at: h.now.Add(wait.For), delivery: e.delivery})
					continue
				}
				order = append(order, e.delivery)
				events = append(events, event{at: h.now.Add(c.takes), ends: place})
			}
			sorted := slices.Sorted(slices.Values(order))
			if diff := cmp.Diff(count(flood), sorted); diff != "" {
				t.Errorf("attempts (-want +got):\n%s", diff)
			}
			for at, delivery := range order {
				if at-delivery > flood/4 || delivery-at > flood/4 {
					t.Errorf("delivery %d was number %d", delivery, at)
				}
			}
			most := 0
			for _, n := range asks {
				most = max(most, n)
			}
			total := 0
			for _, n := range asks {
				total += n
			}
			t.Logf("over after %v, %d asks, at most %d in a second", h.now.Sub(began), total, most)
			if over := h.now.Sub(began); over > c.within || most > c.asks {
				t.Errorf("over after %v with up to %d asks a second, want %v and %d", over, most, c.within, c.asks)
			}
		})
	}
}

func count(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}
