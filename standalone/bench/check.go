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
)

// measureCheck compares checks of a large ledger with those of a small one, by how many
// tasks they go through in a second, and says how long the large one takes, for which it
// keeps a snapshot.
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
	var took time.Duration // of the last one
	check := func(g *gateway) slice {
		return func(ctx context.Context) (float64, error) {
			began := time.Now()
			report, err := g.Store.CheckLedger(ctx)
			if took = time.Since(began); err == nil && !report.OK {
				err = errors.New("the ledger does not hold: " + report.Problems[0])
			}
			return float64(report.Checked), err
		}
	}
	c, err := compare(ctx, 1, o, "ledger check, a task", check(little), check(full))
	if err != nil {
		return nil, err
	}
	if _, err := check(full)(ctx); err != nil {
		return nil, err
	}
	return []row{
		ratioRow("ledger check", fmt.Sprintf("%d of %d tasks", littleChecked, tasks), c, 1/1.5),
		{what: "how long a check keeps a snapshot", floor: "—", value: took.Round(time.Millisecond).String(), aim: "—", met: true},
	}, nil
}
