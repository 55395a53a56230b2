package storage_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/storage"
	"github.com/mediagate/mediagate/storage/pgtest"
)

// take asks for a submit of the limits, and tells what each has left.
func (b *bench) take(limits ...mediagate.RateLimit) ([]mediagate.RateLeft, bool) {
	b.Helper()
	left, admitted := must2(b.TakeRates(b.Context(), limits))
	if len(left) != len(limits) {
		b.Fatalf("%d limits, and %d answers", len(limits), len(left))
	}
	return left, admitted
}

// takeAll takes until nothing is left, and tells how many there were.
func (b *bench) takeAll(limits ...mediagate.RateLimit) (n int) {
	b.Helper()
	for ; ; n++ {
		if _, admitted := b.take(limits...); !admitted {
			return n
		}
	}
}

func rate(of string, perMinute int) mediagate.RateLimit {
	return mediagate.RateLimit{Of: of, PerMinute: perMinute}
}

func TestRateFacts(t *testing.T) {
	t.Parallel()
	prove(t, facts{
		"as many as the rate come through at once, and then one a step": func(b *bench) {
			for _, n := range []int{1, 7, 60} {
				l := rate(fmt.Sprint("key_", n), n)
				same(b, "at once", b.takeAll(l), n)
				step := time.Duration(step(n)) * time.Microsecond
				b.pass(step - time.Microsecond)
				left, admitted := b.take(l)
				same(b, "just before the step", []any{left, admitted}, []any{[]mediagate.RateLeft{{Next: time.Microsecond}}, false})
				b.pass(time.Microsecond)
				same(b, "at the step", b.takeAll(l), 1)
				b.pass(3 * step)
				same(b, "after three steps", b.takeAll(l), min(n, 3))
				b.pass(2 * time.Minute)
				same(b, "at rest again", b.takeAll(l), n)
			}
		},
		"the answer says what is left of the limit": func(b *bench) {
			l := rate("key_a", 60)
			left, _ := b.take(l)
			same(b, "after the first", left, []mediagate.RateLeft{{Submits: 59, Next: time.Second}})
			b.pass(300 * time.Millisecond)
			left, _ = b.take(l)
			same(b, "after the second", left, []mediagate.RateLeft{{Submits: 58, Next: 700 * time.Millisecond}})
			b.takeAll(l)
			left, admitted := b.take(l)
			same(b, "when nothing is left", []any{left, admitted}, []any{[]mediagate.RateLeft{{Next: 700 * time.Millisecond}}, false})
		},
		"a rate of millions is no larger for rounding": func(b *bench) {
			for _, n := range []int{7919, 7_000_000, 1<<31 - 1} {
				l := rate(fmt.Sprint("key_", n), n)
				b.take(l)
				full := b.now().UnixMicro() + int64(n)*step(n)
				b.noError(b.database().Exec("UPDATE rates SET tat = ? WHERE id = ?", full-step(n), l.Of).Error)
				same(b, "the last", b.takeAll(l), 1)
			}
		},
		"what one limit refuses does not use up the other": func(b *bench) {
			narrow, wide := rate("key_a", 2), rate("acc_a", 5)
			same(b, "of both", b.takeAll(narrow, wide), 2)
			left, _ := b.take(narrow, wide)
			same(b, "left", left, []mediagate.RateLeft{{Next: 30 * time.Second}, {Submits: 3, Next: 12 * time.Second}})
			other := rate("key_b", 100)
			same(b, "of another key", b.takeAll(wide, other), 3)
			left, _ = b.take(other, wide)
			same(b, "left of another key", left[0].Submits, 97)
			b.pass(12 * time.Second)
			left, admitted := b.take(narrow, wide)
			same(b, "the account is ready, the key is not", []any{left[0].Submits, left[1].Submits, admitted}, []any{0, 1, false})
			untouched, refused := b.take(rate("key_c", 9), narrow)
			same(b, "at rest beside one that refuses", []any{untouched[0], refused}, []any{mediagate.RateLeft{Submits: 9}, false})
		},
		"exactly so many come through of many at once": func(b *bench) {
			var admitted atomic.Int64
			b.race(64, func(i int) {
				_, ok := must2(b.TakeRates(b.Context(), []mediagate.RateLimit{rate(fmt.Sprint("key_", i%2), 20), rate("acc_a", 31)}))
				if ok {
					admitted.Add(1)
				}
			})
			same(b, "admitted", admitted.Load(), 31)
			left := 0
			for i := range 2 {
				left += b.takeAll(rate(fmt.Sprint("key_", i), 20))
			}
			same(b, "left of both keys", left, 40-31)
		},
		"bytes of a day come back evenly": func(b *bench) {
			bytes := func(n int64) mediagate.RateLimit {
				return mediagate.RateLimit{Of: "acc_a/uploads", Bytes: n, PerDay: 24 << 20}
			}
			take := func(n int64) (time.Duration, bool) {
				left, ok := b.take(bytes(n))
				return left[0].Next.Round(time.Second), ok
			}
			for range 2 {
				if _, ok := take(10 << 20); !ok {
					b.Fatal("refused within the day's bytes")
				}
			}
			if wait, ok := take(10 << 20); ok || wait != 6*time.Hour {
				b.Fatalf("20 of 24 MiB are taken: %v, wait %s, want 6 h for 10 MiB", ok, wait)
			}
			if _, ok := take(4 << 20); !ok {
				b.Fatal("the rest is refused")
			}
			if _, ok := take(1); ok {
				b.Fatal("one byte more was let through")
			}
			b.pass(time.Hour)
			if _, ok := take(1 << 20); !ok {
				b.Fatal("an hour later a 24th is refused")
			}
		},
		"files are fetched for an account within a day's bytes, more with more money": func(b *bench) {
			p := b.newPayer(unit(1))
			a := must(b.Account(b.Context(), p.account))
			most := a.FetchesPerDay()
			same(b, "of one unit", most/(1<<20), 64+1023) // rounded down
			take := func(n int64) bool {
				taken, ok := must2(b.TakeFetched(b.Context(), p.account, n))
				same(b, "taken", taken, min(n, most))
				return ok
			}
			switch {
			case !take(most - 10<<20):
				b.Fatal("refused within the day's bytes")
			case take(11 << 20):
				b.Fatal("more than a day's bytes were let through")
			case !take(-20 << 20), !take(29 << 20):
				b.Fatal("what was given back is not there")
			case !take(-2 * most), !take(2 * most):
				b.Fatal("a file larger than all of a day's is never fetched")
			case take(1 << 20):
				b.Fatal("its day's bytes are used up, and more is let through")
			}
			must3(b.Grant(b.Context(), p.account, unit(9), "more"))
			a = must(b.Account(b.Context(), p.account))
			b.pass(time.Hour)
			if more := a.FetchesPerDay() / 25; !take(more) || take(more) {
				b.Fatal("an hour later a 24th of what the money allows is not there, or more")
			}
		},
		"a changed rate keeps the share that is used": func(b *bench) {
			for range 5 {
				b.take(rate("key_a", 10))
			}
			same(b, "of ten times as many", b.takeAll(rate("key_a", 100)), 50)
			b.pass(30 * time.Second)
			same(b, "of fewer", b.takeAll(rate("key_a", 4)), 2)
		},
		"a clock that jumps back neither frees nor locks": func(b *bench) {
			l := rate("key_a", 6)
			same(b, "before", b.takeAll(l), 6)
			b.pass(-time.Hour)
			same(b, "after the jump", b.takeAll(l), 0)
			b.pass(10 * time.Second)
			same(b, "a step later", b.takeAll(l), 1)
			b.pass(10 * time.Hour)
			same(b, "after a jump ahead", b.takeAll(l), 6)
			b.pass(-10 * time.Hour)
			same(b, "and back", b.takeAll(l), 0)
			b.pass(time.Minute)
			same(b, "a minute later", b.takeAll(l), 6)
		},
		"a table that was lost is at rest": func(b *bench) {
			key, account := rate("key_a", 3), rate("acc_a", 3)
			b.takeAll(key, account)
			b.noError(b.database().Exec("DELETE FROM rates WHERE id = ?", key.Of).Error)
			same(b, "without the key's row", b.takeAll(key, account), 0)
			same(b, "the key alone", b.takeAll(key), 3)
			b.noError(b.database().Exec("DELETE FROM rates").Error)
			same(b, "without any row", b.takeAll(key, account), 3)
		},
		"rows at rest are swept away, some at a time": func(b *bench) {
			rows := func() int { return b.count("SELECT COUNT(*) FROM rates") }
			for i := range 40 {
				b.take(rate(fmt.Sprintf("key_%02d", i), 1))
			}
			same(b, "before", rows(), 40)
			b.pass(time.Hour)
			b.take(rate("key_20", 1))
			b.pass(time.Minute + time.Microsecond)
			for i := range 5 {
				before := rows()
				b.take(rate(fmt.Sprint("key_new", i), 1))
				if gone := before + 1 - rows(); gone > 16 {
					b.Fatalf("%d rows at once", gone)
				}
			}
			same(b, "after", rows(), 6)
			same(b, "of one that was in use", b.count("SELECT COUNT(*) FROM rates WHERE id = 'key_20'"), 1)
		},
	})
}

// step is what a submit takes of so many a minute, in microseconds.
func step(perMinute int) int64 {
	step := time.Minute.Microseconds() / int64(perMinute)
	if step*int64(perMinute) < time.Minute.Microseconds() {
		step++
	}
	return step
}

// Two processes count as one, by the database's clock, whatever their own says.
func TestRatesOfTwoProcesses(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	local := &wrongClock{}
	stores := []*storage.Store{openPostgres(t, url, storage.Config{}), openPostgres(t, url, storage.Config{LocalNow: local.now})}
	local.set(time.Hour) // after the process has found out about its clock
	for _, l := range []mediagate.RateLimit{rate("key_a", 1), rate("key_b", 1)} {
		slices.Reverse(stores)
		for i := range 4 {
			if _, admitted, err := stores[i%2].TakeRates(t.Context(), []mediagate.RateLimit{l}); err != nil || admitted != (i == 0) {
				t.Errorf("%s, taken %d times: %t, %v", l.Of, i, admitted, err)
			}
		}
	}
}

// A crash of the server empties the table: nobody is locked out.
func TestRatesAreUnlogged(t *testing.T) {
	t.Parallel()
	var kind string
	row := openRaw(t, pgtest.New(t)).QueryRowContext(t.Context(), "SELECT relpersistence FROM pg_class WHERE relname = 'rates'")
	if err := row.Scan(&kind); err != nil || kind != "u" {
		t.Errorf("the table is of the kind %q (%v), want u", kind, err)
	}
}

// One transaction that holds a row keeps those who need it waiting, and nobody
// else; the sweep goes round it.
func TestRatesWhileARowIsHeld(t *testing.T) {
	t.Parallel()
	m := newMeeting(t, storage.Config{}, "")
	take := func(of string) error {
		_, admitted, err := m.TakeRates(t.Context(), []mediagate.RateLimit{rate(of, 9)})
		if err == nil && !admitted {
			err = mediagate.Errorf(mediagate.KindRateLimited, "refused")
		}
		return err
	}
	m.noError(take("key_a"))
	execute(t, m.db, "UPDATE rates SET tat = 0")
	release := m.keep("SELECT 1 FROM rates WHERE id = 'key_a' FOR UPDATE")
	m.noError(take("key_b"))
	m.noError(take("key_c"))
	m.begin("the held one", func(context.Context) error { return take("key_a") })
	release()
	m.calls.Wait()
}
