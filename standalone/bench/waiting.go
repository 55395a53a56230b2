package main

import (
	"context"
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
func measureWaiting(ctx context.Context, m *machine) ([]row, error) {
	m.vendor.reset(func() time.Duration { return never }, false)
	g, err := m.install(ctx, "waiting", m.channels(waitingPoll))
	if err != nil {
		return nil, err
	}
	s, err := newStage(g)
	if err != nil {
		return nil, err
	}
	w, err := m.start(ctx, "worker", g.Config)
	if err != nil {
		return nil, err
	}
	if err := s.fill(ctx, waitingFirst, waitingFirst); err != nil {
		return nil, err
	}
	before, err := w.usage()
	if err != nil {
		return nil, err
	}
	tasks, intervals := m.size(10_000, 1000), m.size(3, 2)
	if err := s.fill(ctx, tasks, waitingFirst+tasks); err != nil {
		return nil, err
	}
	m.vendor.takeGaps()
	if err := pause(ctx, time.Duration(intervals)*waitingPoll); err != nil {
		return nil, err
	}
	late := m.vendor.takeGaps()
	after, err := w.usage()
	if err != nil {
		return nil, err
	}
	if len(late) < tasks*intervals*8/10 {
		return nil, fmt.Errorf("only %d polls in %d intervals of %d waiting tasks", len(late), intervals, tasks)
	}
	for i := range late {
		late[i] -= waitingPoll
	}
	const most = 5.0
	each := float64(int64(after)-int64(before)) / float64(tasks) / 1000
	memory := row{
		what: fmt.Sprintf("worker's memory a task, at %d waiting", tasks), measured: fmt.Sprintf("%.1f kB", each), floor: fmt.Sprintf("at %d waiting", waitingFirst),
		aim: fmt.Sprintf("≤ %.0f kB", most), met: each <= most,
	}
	if m.quick { // what a worker keeps anyway, its cache of 500 workflows, weighs more on few
		memory.aim = ""
	}
	p99 := quantile(late, 0.99)
	return []row{memory, {
		what: "lateness of polls, p99", measured: short(p99), floor: fmt.Sprintf("due every %s", waitingPoll),
		aim: "≤ 1 s", met: p99 <= time.Second,
	}}, nil
}

// fill makes n tasks wait, their polls spread over the interval, and returns
// when the workflows of all tasks so far are waiting.
func (s *stage) fill(ctx context.Context, n, total int) error {
	engine := workflows.Client{Temporal: s.g.Temporal}
	if _, err := times(32, n, func(ctx context.Context) error {
		first := rand.Int64N(int64(waitingPoll)) //nolint:gosec // spreading needs no secret numbers
		task, err := s.accepted(ctx, time.Duration(first))
		if err != nil {
			return err
		}
		return engine.Start(ctx, task)
	})(ctx); err != nil {
		return err
	}
	// A workflow that waits has a timer, of its deadline.
	return until(ctx, fmt.Sprintf("%d workflows wait", total), breath, 3*time.Minute, func(ctx context.Context) (bool, error) {
		waiting, err := count(ctx, s.g.m.history, "timer_info_maps")
		return waiting >= total, err
	})
}
