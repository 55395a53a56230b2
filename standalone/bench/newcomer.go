package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	newcomers     = 8
	newcomerGap   = 500 * time.Millisecond
	newcomerAim   = 2.0
	newcomerSlots = 32
)

// crowding is what a backlog waits for.
type crowding struct {
	name, what string
	slots      int           // of the channel; 0: no limit
	job, poll  time.Duration // how long jobs take, and between two looks at one
}

// measureNewcomer compares the first tasks of accounts beside another account's
// backlog with the same tasks without it: on a channel that takes so many jobs at
// once, where all the others wait in its queue, and on one without a limit, where
// they wait for a worker that does not keep up. That one leaves no moment of the
// machine free, so the ratio has in it what a step takes on a busy machine. Its
// jobs are looked at soon: the moment of the first look is a matter of the task's
// id, and should not decide.
func measureNewcomer(ctx context.Context, m *machine, o options) ([]row, error) {
	backlog := 10_000
	if o.quick {
		backlog = 1000
	}
	var rows []row
	for _, part := range []crowding{
		{name: "worker", what: "a worker that does not keep up", poll: 100 * time.Millisecond},
		{name: "slots", what: fmt.Sprintf("%d slots", newcomerSlots), slots: newcomerSlots, job: 4 * time.Second, poll: time.Second},
	} {
		alone, beside, err := m.newcomers(ctx, o, part, backlog)
		if err != nil {
			return nil, err
		}
		for _, leg := range []struct {
			what string
			pick func(newcomer) time.Duration
		}{
			{"submit to vendor", func(n newcomer) time.Duration { return n.accepted }},
			{"submit to end", func(n newcomer) time.Duration { return n.ended }},
		} {
			if part.slots > 0 && leg.what == "submit to vendor" {
				continue // alone nobody waits for a slot
			}
			floor, subject := quantile(legs(alone, leg.pick), 0.5), quantile(legs(beside, leg.pick), 0.5)
			ratio := float64(subject) / float64(max(floor, 1))
			rows = append(rows, row{
				what:  fmt.Sprintf("newcomer beside %d waiting, %s: %s", backlog, part.what, leg.what),
				floor: fmt.Sprintf("the same alone, p50 %s", floor.Round(time.Millisecond)),
				value: fmt.Sprintf("p50 × %.2f", ratio), aim: fmt.Sprintf("≤ %.2f", newcomerAim), met: ratio <= newcomerAim,
			})
		}
	}
	return rows, nil
}

// newcomer is how long an account's first task took to its job, and to its end.
type newcomer struct{ accepted, ended time.Duration }

func legs(all []newcomer, pick func(newcomer) time.Duration) []time.Duration {
	out := make([]time.Duration, len(all))
	for i, n := range all {
		out[i] = pick(n)
	}
	return out
}

func (m *machine) newcomers(ctx context.Context, o options, c crowding, backlog int) (alone, beside []newcomer, err error) {
	m.vendor.reset(func(int) time.Duration { return c.job })
	channels := m.channels(c.poll, 1000)
	channels[0].Concurrency = c.slots
	g, err := m.install(ctx, "newcomer"+c.name, channels)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	worker, err := startProcess(ctx, o, "worker", g.Config)
	if err != nil {
		return nil, nil, err
	}
	g.closers = append(g.closers, func() error { return worker.stop() })
	for range 2 { // until the worker has started, and knows its way
		if _, err := g.comes(ctx, m.vendor, c.job); err != nil {
			return nil, nil, err
		}
	}
	come := func() (all []newcomer, err error) {
		for range newcomers {
			other, err := g.tenant(ctx)
			if err != nil {
				return nil, err
			}
			n, err := other.comes(ctx, m.vendor, c.job)
			if err != nil {
				return nil, err
			}
			all = append(all, n)
			if err := pause(ctx, newcomerGap); err != nil {
				return nil, err
			}
		}
		return all, nil
	}
	if alone, err = come(); err != nil {
		return nil, nil, err
	}
	if err := worker.stop(); err != nil {
		return nil, nil, err
	}
	if err := times(ctx, 16, backlog, func(ctx context.Context, _ int) error {
		_, err := g.post(ctx, videoPath, []byte(videoBody), nil)
		return err
	}); err != nil {
		return nil, nil, err
	}
	before := m.vendor.taken()
	if worker, err = startProcess(ctx, o, "worker", g.Config); err != nil {
		return nil, nil, err
	}
	if err := until(ctx, "the backlog waits", 30*time.Minute, func(ctx context.Context) (bool, error) {
		taken := m.vendor.taken() - before
		if c.slots == 0 {
			return taken > newcomerSlots, nil // the rest waits for the worker
		}
		queued, err := g.Store.QueuedTasks(ctx, channelKling, backlog)
		if taken+len(queued) >= backlog || err != nil {
			return true, err
		}
		return false, pause(ctx, newcomerGap) // to ask costs the database something
	}); err != nil {
		return nil, nil, err
	}
	if beside, err = come(); err != nil {
		return nil, nil, err
	}
	open, err := g.open(ctx)
	if err == nil && open == 0 {
		err = errors.New("the backlog was over before the newcomers had come")
	}
	_, _ = fmt.Fprintf(o.verbose, "bench:   newcomer, %s: alone %v; beside %v; %d still open\n", c.name, alone, beside, open)
	return alone, beside, err
}

// comes submits a task and follows it to its end.
func (g *gateway) comes(ctx context.Context, v *vendor, job time.Duration) (n newcomer, err error) {
	began := time.Now()
	body, err := g.post(ctx, videoPath, []byte(videoBody), nil)
	if err != nil {
		return n, err
	}
	id, err := acknowledged(body)
	if err != nil {
		return n, err
	}
	const patience = 5 * time.Minute
	if err := until(ctx, "the vendor has the job", patience, func(context.Context) (bool, error) { return !v.end(id).IsZero(), nil }); err != nil {
		return n, err
	}
	n.accepted = v.end(id).Sub(began) - job
	err = until(ctx, "the task ends", patience, func(ctx context.Context) (bool, error) {
		task, err := g.Store.TaskByID(ctx, id)
		return task.Status.Terminal(), err
	})
	n.ended = time.Since(began)
	return n, err
}
