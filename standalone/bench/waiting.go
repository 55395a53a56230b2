package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/mediagate/mediagate/workflows"
)

const (
	waitingPoll  = 10 * time.Second
	waitingFirst = 100 // tasks before the baseline: connections and buffers are there
)

// measureWaiting fills an installation with tasks that wait for the vendor
// and measures, in a worker process of its own, what each costs in memory,
// and at the vendor, how late their polls come.
func measureWaiting(ctx context.Context, m *machine, o options) (_ []row, err error) {
	m.vendor.reset(func(int) time.Duration { return never })
	g, err := m.install(ctx, "waiting", m.channels(waitingPoll, 10_000))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	s, err := newStage(g)
	if err != nil {
		return nil, err
	}
	w, err := startProcess(ctx, o, "worker", g.Config)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.stop()) }()

	if err := s.fill(ctx, waitingFirst, waitingFirst, m.timers); err != nil {
		return nil, err
	}
	before, err := w.memory()
	if err != nil {
		return nil, err
	}
	tasks, window := 10_000, 3*waitingPoll
	if o.quick {
		tasks, window = 1000, 2*waitingPoll
	}
	began := time.Now()
	if err := s.fill(ctx, tasks, waitingFirst+tasks, m.timers); err != nil {
		return nil, err
	}
	_, _ = fmt.Fprintf(o.verbose, "bench:   waiting: %d filled in %s\n", tasks, time.Since(began).Round(time.Second))
	m.vendor.observe(true)
	if err := pause(ctx, window); err != nil {
		return nil, err
	}
	gaps := m.vendor.observe(false)
	after, err := w.memory()
	if err != nil {
		return nil, err
	}
	if expected := int(0.8 * float64(tasks) * float64(window) / float64(waitingPoll)); len(gaps) < expected {
		return nil, fmt.Errorf("only %d polls in %s of %d waiting tasks", len(gaps), window, tasks)
	}
	for i := range gaps {
		gaps[i] -= waitingPoll
	}
	each := float64(after.bytes()-before.bytes()) / float64(tasks) / 1000
	late := quantile(gaps, 0.99)
	aim := "≤ 5 kB"
	if o.quick {
		aim += " at 10000" // what a worker keeps anyway, its cache of 500 workflows, weighs more on few
	}
	_, _ = fmt.Fprintf(o.verbose, "bench:   waiting: worker before %+v, after %+v; %d polls\n", before, after, len(gaps))
	what := fmt.Sprintf("at %d waiting", tasks)
	return []row{
		{
			what: "worker's memory a task, " + what, floor: "heap and stacks, before and after",
			value: fmt.Sprintf("%.1f kB (%d goroutines more)", each, after.Goroutines-before.Goroutines), aim: aim, met: each <= 5 || o.quick,
		},
		{
			what: "lateness of polls, p99, " + what, floor: fmt.Sprintf("due every %s", waitingPoll),
			value: fmt.Sprintf("%s (p50 %s)", late.Round(time.Millisecond), quantile(gaps, 0.5).Round(time.Millisecond)), aim: "≤ 1s", met: late <= time.Second,
		},
	}, nil
}

// fill makes n tasks wait, their polls spread over the interval, and returns
// when the workflows of all tasks so far are waiting.
func (s *stage) fill(ctx context.Context, n, total int, timers func(context.Context) (int, error)) error {
	engine := workflows.Client{Temporal: s.g.Temporal}
	if err := times(ctx, 32, n, func(ctx context.Context, _ int) error {
		first := rand.Int64N(int64(waitingPoll)) //nolint:gosec // spreading needs no secret numbers
		task, err := s.accepted(ctx, time.Duration(first))
		if err != nil {
			return err
		}
		return engine.Start(ctx, task)
	}); err != nil {
		return err
	}
	// A workflow that waits has a timer, of its deadline.
	return until(ctx, fmt.Sprintf("%d workflows wait", total), 3*time.Minute, func(ctx context.Context) (bool, error) {
		waiting, err := timers(ctx)
		return waiting >= total, err
	})
}
