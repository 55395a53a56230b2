package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/limit"
	"github.com/mediagate/mediagate/workflows"
)

const (
	drainTasks      = 20_000
	quickDrainTasks = 2_000
	drainRounds     = 2
	drainClients    = 16 // of the bare starts: as many as the wake scan has under way
	drainAim        = 0.8
)

// starter counts the runs that the wake scan starts.
type starter struct {
	workflows.Client
	started atomic.Int64
}

func (s *starter) Start(ctx context.Context, t mediagate.Task) error {
	err := s.Client.Start(ctx, t)
	if err == nil {
		s.started.Add(1)
	}
	return err
}

// measureDrain compares how fast the wake scan starts what an outage of Temporal
// has left with bare starts of as many workflows. No worker runs: what is measured
// is the one, not what follows.
func measureDrain(ctx context.Context, m *machine, o options) (_ []row, err error) {
	g, err := m.install(ctx, "drain", m.channels(time.Second, 1000))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	bare, err := m.temporalClient(g)
	if err != nil {
		return nil, err
	}
	tasks := drainTasks
	if o.quick {
		tasks = quickDrainTasks
	}
	if err := g.leaveUnstarted(ctx, tasks); err != nil {
		return nil, err
	}
	const slices = 2 * drainRounds
	each := tasks / slices
	var started atomic.Int64
	floor := func(ctx context.Context) (float64, error) {
		return float64(each), times(ctx, drainClients, each, func(ctx context.Context, _ int) error {
			_, err := bare.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: fmt.Sprintf("bare-%d", started.Add(1)), TaskQueue: "nobody"}, "Bare", "task")
			return err
		})
	}
	subject := func(ctx context.Context) (float64, error) { return float64(each), m.startDue(ctx, g, each) }
	c, err := compare(ctx, drainRounds, o, "drain", floor, subject)
	if err != nil {
		return nil, err
	}
	return []row{ratioRow(fmt.Sprintf("drain of %d tasks without a run", tasks), fmt.Sprintf("StartWorkflow alone, %d clients", drainClients), c, drainAim)}, nil
}

// leaveUnstarted fills the database with tasks that have no run. None is due yet.
func (g *gateway) leaveUnstarted(ctx context.Context, n int) error {
	s, err := newStage(g)
	if err != nil {
		return err
	}
	t, err := s.pending(ctx)
	if err != nil {
		return err
	}
	for _, statement := range []string{
		fmt.Sprintf(`INSERT INTO tasks (id, account_id, key_id, model, type, status, params, plan, charges, hold, created_at, deadline_at)
			SELECT 'task_' || lpad(i::text, 26, '0'), account_id, key_id, model, type, status, params, plan, charges, hold,
				created_at - interval '1 hour' + i * interval '1 millisecond', deadline_at
			FROM tasks, generate_series(1, %d) AS i WHERE id = '%s'`, n, t.ID),
		"INSERT INTO wakes (task_id, kind, account_id, wake_at) SELECT id, 'run', account_id, now() FROM tasks ON CONFLICT DO NOTHING",
		"UPDATE wakes SET wake_at = now() + interval '1 day'",
		"VACUUM ANALYZE tasks, wakes",
	} {
		if _, err := g.tables.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("leave tasks without a run: %w", err)
		}
	}
	return nil
}

// startDue makes so many of them due, and lets the wake scan start them. Those that it
// has started are not looked for again.
func (m *machine) startDue(ctx context.Context, g *gateway, n int) error {
	if _, err := g.tables.ExecContext(ctx, "DELETE FROM wakes WHERE tries > 0"); err != nil {
		return err
	}
	if _, err := g.tables.ExecContext(ctx, `UPDATE wakes SET wake_at = now() - interval '1 minute'
		WHERE task_id IN (SELECT task_id FROM wakes WHERE starts_with(task_id, 'task_0000') ORDER BY task_id LIMIT $1)`, n); err != nil {
		return err
	}
	engine := &starter{Client: workflows.Client{Temporal: g.Temporal}}
	settings := activities.DefaultSettings()
	acts := &activities.Activities{
		Store: g.Store, Engine: engine, Sweeper: g.Bucket, Limits: &limit.Process{}, Settings: settings, Now: g.Store.Now, Logger: m.log, StartedAt: g.Store.Now(), NewID: func(prefix string) string { return prefix + ulid.Make().String() },
	}
	stop, done := make(chan struct{}), make(chan error, 1)
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(sdklog.NewStructuredLogger(m.log))
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(acts)
	env.SetWorkerStopChannel(stop)
	env.SetTestTimeout(10 * time.Minute)
	go func() {
		_, err := env.ExecuteActivity(acts.TendWakes)
		done <- err
	}()
	err := until(ctx, "all are started", 10*time.Minute, func(context.Context) (bool, error) { return engine.started.Load() >= int64(n), nil })
	close(stop)
	return errors.Join(err, <-done)
}
