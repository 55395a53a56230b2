package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/workflows"
)

const (
	videoPath = "/v1/videos/generations"
	imagePath = "/v1/images/generations"

	videoBody = `{"model": "alpha-v3", "prompt": "a red kite over a green hill, slowly turning in the evening wind", "duration": 5}`
	imageBody = `{"model": "theta-image-turbo", "prompt": "a red kite over a green hill"}`
)

// measureSubmits measures bursts of submits while no worker runs: how fast they
// are acknowledged, against the bare transactions of the same rows, and how soon
// their workflows are started, against bare starts. The slowest acknowledgements
// are held against a transaction and a start, one after the other: who waits for
// Temporal waits as long.
func measureSubmits(ctx context.Context, m *machine, o options) (_ []row, err error) {
	g, err := m.install(ctx, "submit", m.channels(time.Second, 1000))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	bare, err := m.temporalClient(g)
	if err != nil {
		return nil, err
	}
	s, err := newStage(g)
	if err != nil {
		return nil, err
	}
	b := &burst{m: m, g: g, stage: s, temporal: bare, tasks: 2000, rounds: 3}
	if o.quick {
		b.tasks, b.rounds = 500, 2
	}
	if _, err := b.run(ctx, 8, false); err != nil { // warm up
		return nil, err
	}
	var rows []row
	for _, part := range []struct {
		what    string
		clients int
		keyed   bool
	}{
		{"8 clients", 8, false},
		{"32 clients", 32, false},
		{"with Idempotency-Key, 8 clients", 8, true},
	} {
		found, err := b.measure(ctx, o, fmt.Sprintf("burst of %d, %s", b.tasks, part.what), part.clients, part.keyed)
		if err != nil {
			return nil, err
		}
		rows = append(rows, found...)
	}
	return rows, nil
}

// burst is so many submits as fast as they are answered.
type burst struct {
	m             *machine
	g             *gateway
	stage         *stage
	temporal      client.Client
	tasks, rounds int
	count         atomic.Int64
}

// took is what one burst found.
type took struct {
	acknowledged float64 // a second
	answers      []time.Duration
}

// measure takes the floors and the burst in turns.
func (b *burst) measure(ctx context.Context, o options, what string, clients int, keyed bool) ([]row, error) {
	acks, starts := make(comparison, b.rounds), make(comparison, b.rounds)
	var answers, both []time.Duration
	for n := range b.rounds {
		for i := range 2 { // floors, burst, burst, floors
			var err error
			floors := func() error {
				if acks[n].floor[i], err = rateOf(ctx, b.each(clients, nil, func(ctx context.Context) error {
					_, err := b.stage.taken(ctx, b.key(keyed), sha256.Sum256([]byte(videoBody)))
					return err
				})); err != nil {
					return err
				}
				if starts[n].floor[i], err = rateOf(ctx, b.each(clients, nil, b.start)); err != nil {
					return err
				}
				_, err = rateOf(ctx, b.each(clients, &both, func(ctx context.Context) error {
					t, err := b.stage.taken(ctx, b.key(keyed), sha256.Sum256([]byte(videoBody)))
					if err != nil {
						return err
					}
					return workflows.Client{Temporal: b.temporal}.Start(ctx, t)
				}))
				return err
			}
			if i == 0 {
				err = floors()
			}
			if err == nil {
				starts[n].subject[i], err = rateOf(ctx, func(ctx context.Context) (float64, error) {
					found, err := b.run(ctx, clients, keyed)
					acks[n].subject[i] = rate{wall: found.acknowledged}
					answers = append(answers, found.answers...)
					return float64(b.tasks), err
				})
			}
			if err == nil && i == 1 {
				err = floors()
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", what, err)
			}
		}
		_, _ = fmt.Fprintf(o.verbose, "bench:   %s: round %d: transactions %v, acknowledged %v; bare starts %v, started %v\n",
			what, n+1, acks[n].floor, acks[n].subject, starts[n].floor, starts[n].subject)
	}
	aim := 0.5
	p50, p99, floor99 := quantile(answers, 0.5), quantile(answers, 0.99), quantile(both, 0.99)
	return []row{
		{ // starts run meanwhile, so that CPU time says nothing
			what: "acknowledged, " + what, floor: "the bare transactions", value: summary(acks.byTime()),
			aim: fmt.Sprintf("≥ %.2f", aim), met: quantile(acks.byTime(), 0.5) >= aim,
		},
		{
			what: "acknowledged, p99, " + what, floor: "transaction and start",
			value: fmt.Sprintf("%.0f ms, p50 %.0f", millis(p99), millis(p50)), aim: fmt.Sprintf("≤ %.0f ms", millis(floor99)), met: p99 <= floor99,
		},
		ratioRow("all started, "+what, "StartWorkflow alone", starts, 0.63),
	}, nil
}

func millis(d time.Duration) float64 { return d.Seconds() * 1000 }

// each does something once for each task.
func (b *burst) each(clients int, answers *[]time.Duration, do func(context.Context) error) slice {
	return func(ctx context.Context) (float64, error) {
		took := make([]time.Duration, b.tasks)
		err := times(ctx, clients, b.tasks, func(ctx context.Context, i int) error {
			began := time.Now()
			err := do(ctx)
			took[i] = time.Since(began)
			return err
		})
		if answers != nil {
			*answers = append(*answers, took...)
		}
		return float64(b.tasks), err
	}
}

// run is a burst until the last workflow is started.
func (b *burst) run(ctx context.Context, clients int, keyed bool) (f took, err error) {
	err = b.m.untilStarted(ctx, b.g, func() (int, error) {
		began := time.Now()
		if _, err := b.each(clients, &f.answers, func(ctx context.Context) error {
			header := http.Header{}
			if keyed {
				header.Set("Idempotency-Key", b.key(keyed))
			}
			_, err := b.g.post(ctx, videoPath, []byte(videoBody), header)
			return err
		})(ctx); err != nil {
			return 0, err
		}
		f.acknowledged = float64(b.tasks) / time.Since(began).Seconds()
		return b.tasks, nil
	})
	return f, err
}

func (b *burst) key(keyed bool) string {
	if !keyed {
		return ""
	}
	return fmt.Sprintf("key-%d", b.count.Add(1))
}

func (b *burst) start(ctx context.Context) error {
	_, err := b.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: fmt.Sprintf("bare-%d", b.count.Add(1)), TaskQueue: "nobody",
	}, "Bare", "task")
	return err
}

const (
	startPatience = 5 * time.Minute // how long starts that wait may take
	startsStall   = 5 * time.Second // starts that none follows for so long have failed
)

// untilStarted submits, and returns when as many workflows of tasks are started as
// were acknowledged. Nothing else may submit meanwhile. On a crowded machine starts
// fail: nothing more comes of them here, where no worker runs, and after a while
// they are repeated as it would.
func (m *machine) untilStarted(ctx context.Context, g *gateway, submit func() (int, error)) error {
	began := time.Now()
	before, err := m.startedTasks(ctx)
	if err != nil {
		return err
	}
	n, err := submit()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	last, moved := before, time.Now()
	for {
		now, err := m.startedTasks(ctx)
		if err != nil || now >= before+n {
			return err
		}
		if now > last {
			last, moved = now, time.Now()
		}
		if time.Since(moved) > startsStall {
			if err := g.startAgain(ctx, began); err != nil {
				return err
			}
			moved = time.Now()
		}
		if err := pause(ctx, untilNextCount(time.Since(began), now-before, n)); err != nil {
			return fmt.Errorf("%d of %d workflows started: %w", now-before, n, err)
		}
	}
}

// untilNextCount is the time until half of what is left is started, at the pace so
// far. A count reads all that was ever started: many would be what is measured.
func untilNextCount(elapsed time.Duration, started, of int) time.Duration {
	half := elapsed / time.Duration(max(started, 1)) * time.Duration(of-started) / 2
	return max(50*time.Millisecond, min(half, elapsed/4))
}

// startAgain starts all that was submitted since then, as often as it may be.
func (g *gateway) startAgain(ctx context.Context, since time.Time) error {
	for after := ""; ; {
		tasks, more, err := g.Store.Tasks(ctx, mediagate.TaskFilter{AccountID: g.key.AccountID, CreatedAfter: since, After: after, Limit: 100})
		if err != nil {
			return err
		}
		for _, t := range tasks {
			after = t.ID
			if err := (workflows.Client{Temporal: g.Temporal}).Start(ctx, t); err != nil && !mediagate.Is(err, mediagate.KindConflict) {
				return err
			}
		}
		if !more {
			return nil
		}
	}
}

// startedTasks counts the tasks' workflows in Temporal's own table.
func (m *machine) startedTasks(ctx context.Context) (n int, err error) {
	err = m.history.QueryRowContext(ctx, "SELECT count(*) FROM current_executions WHERE starts_with(workflow_id, 'task_')").Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("count started workflows: %w", err)
	}
	return n, nil
}
