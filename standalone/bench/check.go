package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// How large the ledger is that is checked, and the one that it is compared with.
const (
	checkedTasks      = 1_000_000
	quickCheckedTasks = 100_000
	littleChecked     = 20_000
	snapshotLimit     = time.Second // for which a check may keep the past from being vacuumed
)

// measureCheck compares whole checks of a large ledger with those of a small one,
// by how many tasks they go through in a second: a slice must not take longer the
// more slices there are.
func measureCheck(ctx context.Context, m *machine, o options) (_ []row, err error) {
	tasks := int64(checkedTasks)
	if o.quick {
		tasks = quickCheckedTasks
	}
	full, err := m.install(ctx, "ledger", m.channels(time.Second, 1000))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, full.close()) }()
	little, err := m.install(ctx, "ledgerling", m.channels(time.Second, 1000))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, little.close()) }()
	if err := errors.Join(full.fillPast(ctx, tasks), little.fillPast(ctx, littleChecked)); err != nil {
		return nil, err
	}
	whole := func(g *gateway) slice {
		return func(ctx context.Context) (float64, error) {
			report, err := g.Store.CheckLedger(ctx)
			if err == nil && !report.OK {
				err = errors.New("the ledger does not hold: " + report.Problems[0])
			}
			return float64(report.Checked), err
		}
	}
	c, err := compare(ctx, 1, o, "ledger check, a task", whole(little), whole(full))
	if err != nil {
		return nil, err
	}
	rows := []row{ratioRow("whole ledger check, a slice", fmt.Sprintf("%d of %d tasks", littleChecked, tasks), c, 1/1.5)}
	held, err := m.longestSnapshot(ctx, "bench_ledger", whole(full))
	if err != nil {
		return nil, err
	}
	rows = append(rows, row{
		what: "longest that a check holds a snapshot", floor: "—", value: held.Round(time.Millisecond).String(),
		aim: "≤ " + snapshotLimit.String(), met: held <= snapshotLimit,
	})
	for _, g := range []*gateway{little, full} { // the first one goes through everything
		if _, err := g.Store.CheckLedgerSince(ctx); err != nil {
			return nil, err
		}
	}
	since := func(g *gateway) slice {
		return func(ctx context.Context) (float64, error) {
			return repeat(ctx, 1, 300*time.Millisecond, func(ctx context.Context) error {
				_, err := g.Store.CheckLedgerSince(ctx)
				return err
			})
		}
	}
	c, err = compare(ctx, 6, o, "ledger check of nothing new", since(little), since(full))
	if err != nil {
		return nil, err
	}
	return append(rows, ratioRow("ledger check of nothing new", fmt.Sprintf("%d of %d tasks", littleChecked, tasks), c, 1/1.5)), nil
}

// longestSnapshot is for how long something that runs holds a snapshot of the
// database at most.
func (m *machine) longestSnapshot(ctx context.Context, database string, run slice) (longest time.Duration, err error) {
	watched, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		const query = `SELECT COALESCE(MAX(EXTRACT(EPOCH FROM clock_timestamp() - query_start) * 1000000), 0)::bigint
			FROM pg_stat_activity WHERE datname = $1 AND backend_xmin IS NOT NULL AND query_start <= clock_timestamp()`
		for watched.Err() == nil {
			var held int64
			if err := m.admin.QueryRowContext(ctx, query, database).Scan(&held); err != nil {
				done <- err
				return
			}
			longest = max(longest, time.Duration(held)*time.Microsecond)
			_ = pause(watched, 2*time.Millisecond)
		}
		done <- nil
	}()
	_, err = run(ctx)
	stop()
	return longest, errors.Join(err, <-done)
}
