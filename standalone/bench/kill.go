package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	killPoll = 500 * time.Millisecond
	killJob  = time.Second
	killGap  = 50 * time.Millisecond // between two submits
	killMore = 15 * time.Second      // that the last job may take longer than without a kill
)

// measureKill measures how much longer jobs of one second take whose worker is
// killed amid their submits, and started again at once.
func measureKill(ctx context.Context, m *machine, o options) (_ []row, err error) {
	m.vendor.reset(func(int) time.Duration { return killJob })
	g, err := m.install(ctx, "kill", m.channels(killPoll, 1000))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	w, err := startProcess(ctx, o, "worker", g.Config)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	jobs := 100
	if o.quick {
		jobs = 40
	}
	if _, err := g.rest(ctx, jobs, func() (int, error) { return 0, nil }); err != nil { // warm up
		return nil, err
	}
	calm, err := g.rest(ctx, jobs, func() (int, error) { return 0, nil })
	if err != nil {
		return nil, err
	}
	unsent := 0
	struck, err := g.rest(ctx, jobs, func() (int, error) {
		w.kill()
		if unsent, err = m.unsent(ctx, g); err != nil {
			return 0, err
		}
		w, err = startProcess(ctx, o, "worker", g.Config)
		return unsent, err
	})
	if err != nil {
		return nil, err
	}
	_, _ = fmt.Fprintf(o.verbose, "bench:   kill: %s without, %s with, %d submissions not sent\n", calm, struck, unsent)
	more := struck - calm
	return []row{{
		what: fmt.Sprintf("after a kill -9 of the worker, last of %d jobs", jobs), floor: "the same without a kill",
		value: fmt.Sprintf("%+.1fs (%.1fs, else %.1fs)", more.Seconds(), struck.Seconds(), calm.Seconds()),
		aim:   fmt.Sprintf("≤ +%s", killMore), met: more <= killMore,
	}}, nil
}

// rest submits jobs at a steady pace, calls amid when half of them are sent,
// and returns how long after that the last has ended; but for those that amid
// says not to wait for.
func (g *gateway) rest(ctx context.Context, jobs int, amid func() (int, error)) (time.Duration, error) {
	var (
		began  time.Time
		except int
		done   = make(chan error, 1)
	)
	for i := range jobs {
		if i == jobs/2 {
			began = time.Now()
			go func() {
				var err error
				except, err = amid()
				done <- err
			}()
		}
		if _, err := g.post(ctx, videoPath, []byte(videoBody), nil); err != nil {
			return 0, err
		}
		if err := pause(ctx, killGap); err != nil {
			return 0, err
		}
	}
	if err := <-done; err != nil {
		return 0, err
	}
	left := func(most int) error {
		return until(ctx, "the jobs have ended", 5*time.Minute, func(ctx context.Context) (bool, error) {
			open, err := g.open(ctx)
			return open <= most, err
		})
	}
	if err := left(except); err != nil {
		return 0, err
	}
	took := time.Since(began)
	return took, left(0)
}

// unsent counts the submissions that died with their sender before the vendor
// had them. Only time proves that, so nobody may wait for them here.
func (m *machine) unsent(ctx context.Context, g *gateway) (n int, err error) {
	rows, err := g.tables.QueryContext(ctx, "SELECT task_id FROM attempts WHERE state IN ('intent', 'unknown')")
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return 0, err
		}
		if m.vendor.end(id).IsZero() {
			n++
		}
	}
	return n, rows.Err()
}
