package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// breath is the pause between two slices: what one has left to the servers'
// background work (task queues, visibility) should not weigh on the next.
// Slices are short and many, and the median counts: whatever else the machine
// does strikes single rounds.
const breath = 400 * time.Millisecond

// crowded is the share of the machine that others may have before the clock
// says more about them than about us.
const crowded = 0.1

// slice does some pieces of work once and returns how long each took.
type slice func(ctx context.Context) (took []time.Duration, err error)

// rate is pieces of work a second, and a second of CPU time of all processes
// that they ran in; that is 0 where it is not known.
type rate struct{ wall, cpu float64 }

// round is the rates of floor, subject, subject, floor: what goes first has
// an advantage on some machines, and so each does once.
type round struct{ floor, subject [2]rate }

// comparison is what the rounds of one measurement found.
type comparison struct {
	rounds         []round
	floor, subject []time.Duration // how long each piece of work took
	byCPU          bool            // CPU time is compared, and not the clock
}

// compare takes floor and subject in turns, so that a machine that gets slower
// or faster meanwhile does so for both. Before the first round each runs once
// to warm up. Between two slices it rests. It goes by CPU time when others had
// too much of the machine.
func compare(ctx context.Context, rounds int, rest func(context.Context) error, floor, subject slice) (comparison, error) {
	var c comparison
	for _, warm := range []slice{floor, subject} {
		if _, _, err := rateOf(ctx, warm, rest); err != nil {
			return c, fmt.Errorf("warm up: %w", err)
		}
	}
	shared := startShare()
	for range rounds {
		var r round
		for _, part := range []struct {
			run  slice
			rate *rate
			took *[]time.Duration
		}{
			{floor, &r.floor[0], &c.floor},
			{subject, &r.subject[0], &c.subject},
			{subject, &r.subject[1], &c.subject},
			{floor, &r.floor[1], &c.floor},
		} {
			found, took, err := rateOf(ctx, part.run, rest)
			if err != nil {
				return c, err
			}
			*part.rate, *part.took = found, append(*part.took, took...)
		}
		c.rounds = append(c.rounds, r)
	}
	c.byCPU = shared.others() > crowded && c.knowsCPU()
	return c, nil
}

// rateOf runs a slice and rests. What the slice leaves to the servers'
// background work is CPU time of its own.
func rateOf(ctx context.Context, run slice, rest func(context.Context) error) (rate, []time.Duration, error) {
	cpu, began := cpuTime(), time.Now()
	took, err := run(ctx)
	if err != nil {
		return rate{}, nil, err
	}
	work := float64(len(took))
	r := rate{wall: work / time.Since(began).Seconds()}
	if err := rest(ctx); err != nil {
		return rate{}, nil, err
	}
	if used := cpuTime() - cpu; used > 0 {
		r.cpu = work / used.Seconds()
	}
	return r, took, nil
}

func breathe(ctx context.Context) error { return pause(ctx, breath) }

// knowsCPU says whether the system tells CPU time.
func (c comparison) knowsCPU() bool { return c.rounds[0].floor[0].cpu > 0 }

// of is the rate that is compared.
func (c comparison) of(r rate) float64 {
	if c.byCPU {
		return r.cpu
	}
	return r.wall
}

// ratios are the geometric means of each round's two, in which an advantage of
// the first cancels out.
func (c comparison) ratios() []float64 {
	ratios := make([]float64, len(c.rounds))
	for i, r := range c.rounds {
		floor, subject := c.of(r.floor[0])*c.of(r.floor[1]), c.of(r.subject[0])*c.of(r.subject[1])
		if floor > 0 {
			ratios[i] = math.Sqrt(subject / floor)
		}
	}
	return ratios
}

// figures are the medians of subject and floor: pieces of work a second, or how
// long one takes.
func (c comparison) figures() (subject, floor string) {
	var subjects, floors []float64
	for _, r := range c.rounds {
		for i := range r.floor {
			subjects, floors = append(subjects, c.of(r.subject[i])), append(floors, c.of(r.floor[i]))
		}
	}
	figure := func(rates []float64) string {
		median := quantile(rates, 0.5)
		each := short(time.Duration(float64(time.Second) / max(median, 1e-9)))
		switch {
		case c.byCPU:
			return each + " CPU"
		case median < 1:
			return each
		default:
			return digits(median) + "/s"
		}
	}
	return figure(subjects), figure(floors)
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

// timed returns how long do takes.
func timed(ctx context.Context, do func(context.Context) error) (time.Duration, error) {
	began := time.Now()
	err := do(ctx)
	return time.Since(began), err
}

// once is a slice of one piece of work.
func once(do func(context.Context) error) slice {
	return func(ctx context.Context) ([]time.Duration, error) {
		took, err := timed(ctx, do)
		return []time.Duration{took}, err
	}
}

// repeat is a slice in which that many clients call do for a time.
func repeat(clients int, length time.Duration, do func(context.Context) error) slice {
	return func(ctx context.Context) (all []time.Duration, err error) {
		var mu sync.Mutex
		group, ctx := errgroup.WithContext(ctx)
		began := time.Now()
		for range clients {
			group.Go(func() error {
				for time.Since(began) < length {
					took, err := timed(ctx, do)
					if err != nil {
						return err
					}
					mu.Lock()
					all = append(all, took)
					mu.Unlock()
				}
				return nil
			})
		}
		err = group.Wait()
		return all, err
	}
}

// times is a slice in which that many clients call do n times in all.
func times(clients, n int, do func(context.Context) error) slice {
	return func(ctx context.Context) ([]time.Duration, error) {
		took := make([]time.Duration, n)
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(clients)
		for i := range n {
			group.Go(func() (err error) {
				if err := ctx.Err(); err != nil {
					return err
				}
				took[i], err = timed(ctx, do)
				return err
			})
		}
		return took, group.Wait()
	}
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

// until asks every so often until the answer is yes.
func until(ctx context.Context, what string, every, patience time.Duration, ask func(context.Context) (bool, error)) error {
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
