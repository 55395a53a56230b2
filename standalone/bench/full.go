package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

const (
	fullClients = 32
	bareQueue   = "bare"
)

// bareWorkflow is the least that is durable at all: one activity.
func bareWorkflow(ctx workflow.Context, task string) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	return workflow.ExecuteActivity(ctx, "nothing", task).Get(ctx, nil)
}

func nothing(context.Context, string) error { return nil }

// measureFullTasks compares tasks from submit to the end of their workflows,
// with a vendor that takes no time, with workflows of one empty activity.
func measureFullTasks(ctx context.Context, m *machine, o options) (_ []row, err error) {
	m.vendor.reset(func(int) time.Duration { return 0 })
	g, err := m.install(ctx, "full", m.channels(250*time.Millisecond, 5000))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	stop := g.work(ctx)
	bare, err := m.temporalClient(g)
	if err != nil {
		return nil, err
	}
	w := worker.New(bare, bareQueue, worker.Options{StickyScheduleToStartTimeout: time.Minute})
	w.RegisterWorkflowWithOptions(bareWorkflow, workflow.RegisterOptions{Name: "bare"})
	w.RegisterActivityWithOptions(nothing, activity.RegisterOptions{Name: "nothing"})
	if err := w.Start(); err != nil {
		return nil, err
	}
	defer w.Stop()

	rounds, batch := 2, 150
	if o.quick {
		rounds, batch = 1, 60
	}
	started := 0
	floor := func(ctx context.Context) (float64, error) {
		first := started
		started += batch
		return m.drain(ctx, "bare-", batch, func(ctx context.Context, i int) error {
			_, err := bare.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: fmt.Sprintf("bare-full-%d", first+i), TaskQueue: bareQueue}, "bare", "task")
			return err
		})
	}
	var rows []row
	for _, part := range []struct {
		what, path, body string
		aim              float64
	}{
		{"full tasks, image in one call", imagePath, imageBody, 0.50},
		{"full tasks, video polled for", videoPath, videoBody, 0.40},
	} {
		subject := func(ctx context.Context) (float64, error) {
			return m.drain(ctx, "task_", batch, func(ctx context.Context, _ int) error {
				_, err := g.post(ctx, part.path, []byte(part.body), nil)
				return err
			})
		}
		if _, err := m.drain(ctx, "task_", fullClients, func(ctx context.Context, _ int) error { // warm up
			_, err := g.post(ctx, part.path, []byte(part.body), nil)
			return err
		}); err != nil {
			return nil, err
		}
		if err := m.countWrites(ctx, o, part.what, batch, floor, subject); err != nil {
			return nil, err
		}
		c, err := compare(ctx, rounds, o, part.what, floor, subject)
		if err != nil {
			return nil, err
		}
		rows = append(rows, ratioRow(part.what, "workflow of one activity", c, part.aim))
		if r, ok := costRow(part.what, c, part.aim); ok {
			rows = append(rows, r)
		}
	}
	report, err := g.Store.CheckLedger(ctx)
	if err == nil && !report.OK {
		err = fmt.Errorf("the ledger does not add up: %v", report.Problems)
	}
	if err != nil {
		return nil, err
	}
	return rows, stop()
}

// costRow is the row of what one task costs: CPU time of all processes that take
// part, the floor's beside it. It has to do with that of so many floors; where CPU
// time is not known there is none.
func costRow(what string, c comparison, ratio float64) (row, bool) {
	byCPU := c.byCPU()
	if byCPU == nil {
		return row{}, false
	}
	var floor, subject []float64
	for _, r := range c {
		for i := range r.floor {
			floor, subject = append(floor, 1000/r.floor[i].cpu), append(subject, 1000/r.subject[i].cpu)
		}
	}
	met := quantile(byCPU, 0.5) >= ratio
	return row{
		what: "CPU time of each, " + what, floor: fmt.Sprintf("the same, %.0f ms", quantile(floor, 0.5)),
		byCPU: fmt.Sprintf("%.0f ms", quantile(subject, 0.5)), aim: fmt.Sprintf("≤ %.1f×", 1/ratio), met: met, metByCPU: met, compared: true,
	}, true
}

// countWrites tells, for -v, the transactions that a task costs in each
// database: a figure that no busy machine blurs.
func (m *machine) countWrites(ctx context.Context, o options, what string, batch int, floor, subject slice) error {
	if o.verbose == io.Discard {
		return nil
	}
	for _, part := range []struct {
		name string
		run  slice
	}{{"floor", floor}, {"subject", subject}} {
		before, err := m.transactions(ctx)
		if err != nil {
			return err
		}
		if _, err := part.run(ctx); err != nil {
			return err
		}
		after, err := m.transactions(ctx)
		if err != nil {
			return err
		}
		for _, database := range slices.Sorted(maps.Keys(after)) {
			if each := float64(after[database]-before[database]) / float64(batch); each >= 1 {
				_, _ = fmt.Fprintf(o.verbose, "bench:   %s: %s: %.1f transactions each in %s\n", what, part.name, each, database)
			}
		}
	}
	return nil
}

// transactions counts those of each database. PostgreSQL tells them with a
// delay of up to a second.
func (m *machine) transactions(ctx context.Context) (map[string]int64, error) {
	if err := pause(ctx, 2*time.Second); err != nil {
		return nil, err
	}
	rows, err := m.admin.QueryContext(ctx, "SELECT datname, xact_commit FROM pg_stat_database WHERE datname LIKE 'temporal%' OR datname LIKE 'bench%'")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := map[string]int64{}
	for rows.Next() {
		var name string
		var n int64
		if err := rows.Scan(&name, &n); err != nil {
			return nil, err
		}
		all[name] = n
	}
	return all, rows.Err()
}

// drain starts n workflows and returns when all have ended.
func (m *machine) drain(ctx context.Context, prefix string, n int, start func(ctx context.Context, i int) error) (float64, error) {
	before, err := m.ended(ctx, prefix)
	if err != nil {
		return 0, err
	}
	if err := times(ctx, fullClients, n, start); err != nil {
		return 0, err
	}
	// Temporal's table is gone through each time: who asked more often would weigh on the slower of the two.
	err = untilEvery(ctx, 100*time.Millisecond, fmt.Sprintf("%d workflows have ended", n), 2*time.Minute, func(ctx context.Context) (bool, error) {
		now, err := m.ended(ctx, prefix)
		return now-before >= n, err
	})
	return float64(n), err
}
