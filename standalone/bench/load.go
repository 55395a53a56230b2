package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// breath is the pause between two slices: what one has left to the servers'
// background work (task queues, visibility) should not weigh on the next.
// Slices are short and many, and the median counts: whatever else the machine
// does strikes single rounds.
const breath = 400 * time.Millisecond

// slice does some work once and returns how much it was.
type slice func(ctx context.Context) (work float64, err error)

// rate is work a second and work a second of CPU time, of all processes that
// the work ran in.
type rate struct{ wall, cpu float64 }

// round is the rates of floor, subject, subject, floor: what goes first has
// an advantage on some machines, and so each does once.
type round struct{ floor, subject [2]rate }

// comparison is what the rounds of one measurement found.
type comparison []round

// compare takes floor and subject in turns, so that a machine that gets
// slower or faster meanwhile does so for both.
func compare(ctx context.Context, rounds int, o options, what string, floor, subject slice) (comparison, error) {
	c := make(comparison, rounds)
	for n := range c {
		r := &c[n]
		for _, part := range []struct {
			name string
			run  slice
			rate *rate
		}{
			{"floor", floor, &r.floor[0]},
			{"subject", subject, &r.subject[0]},
			{"subject", subject, &r.subject[1]},
			{"floor", floor, &r.floor[1]},
		} {
			var err error
			if *part.rate, err = rateOf(ctx, part.run); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", what, part.name, err)
			}
		}
		_, _ = fmt.Fprintf(o.verbose, "bench:   %s: round %d: floor %v, subject %v\n", what, n+1, r.floor, r.subject)
	}
	return c, nil
}

// String is for -v.
func (r rate) String() string { return fmt.Sprintf("%.1f/s %.1f/CPU s", r.wall, r.cpu) }

// rateOf runs a slice. What it leaves to the servers' background work is
// CPU time of its own.
func rateOf(ctx context.Context, run slice) (rate, error) {
	cpu, began := cpuTime(), time.Now()
	work, err := run(ctx)
	if err != nil {
		return rate{}, err
	}
	r := rate{wall: work / time.Since(began).Seconds()}
	if err := pause(ctx, breath); err != nil {
		return rate{}, err
	}
	if used := cpuTime() - cpu; used > 0 {
		r.cpu = work / used.Seconds()
	}
	return r, nil
}

// byTime is the rounds' ratios of work a second.
func (c comparison) byTime() []float64 {
	return c.ratios(func(r rate) float64 { return r.wall })
}

// byCPU is the rounds' ratios of work a second of CPU time; nil where that is
// not known.
func (c comparison) byCPU() []float64 {
	return c.ratios(func(r rate) float64 { return r.cpu })
}

// ratios are the geometric means of each round's two, in which an advantage of
// the first cancels out.
func (c comparison) ratios(of func(rate) float64) []float64 {
	ratios := make([]float64, len(c))
	for i, r := range c {
		floor, subject := of(r.floor[0])*of(r.floor[1]), of(r.subject[0])*of(r.subject[1])
		if floor == 0 || subject == 0 {
			return nil
		}
		ratios[i] = math.Sqrt(subject / floor)
	}
	return ratios
}

// quantile is the value that the share q of the values does not exceed; of an
// even number of values the median is the mean of the middle ones.
func quantile[T int64 | float64 | time.Duration](values []T, q float64) T {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	if n := len(sorted); q == 0.5 && n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// repeat calls do from that many clients for a time and returns the number of
// calls. The first error ends it.
func repeat(ctx context.Context, clients int, d time.Duration, do func(context.Context) error) (float64, error) {
	var done atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	began := time.Now()
	for range clients {
		group.Go(func() error {
			for time.Since(began) < d {
				if err := do(ctx); err != nil {
					return err
				}
				done.Add(1)
			}
			return nil
		})
	}
	err := group.Wait()
	return float64(done.Load()), err
}

// times calls do n times from that many clients.
func times(ctx context.Context, clients, n int, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(clients)
	for i := range n {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}

// pause waits, or returns why it could not.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// until asks every moment until the answer is yes.
func until(ctx context.Context, what string, patience time.Duration, ask func(context.Context) (bool, error)) error {
	return untilEvery(ctx, 20*time.Millisecond, what, patience, ask)
}

// untilEvery is until for a question that costs something.
func untilEvery(ctx context.Context, every time.Duration, what string, patience time.Duration, ask func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		yes, err := ask(ctx)
		if err != nil || yes {
			return err
		}
		if err := pause(ctx, every); err != nil {
			return fmt.Errorf("waiting until %s: %w", what, err)
		}
	}
}
