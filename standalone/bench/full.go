package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

const bareQueue = "bare"

// bareWorkflow is the least that is durable at all: one activity.
func bareWorkflow(ctx workflow.Context, task string) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	return workflow.ExecuteActivity(ctx, "nothing", task).Get(ctx, nil)
}

func nothing(context.Context, string) error { return nil }

// measureFullTasks compares tasks from submit to the end of their workflows,
// with a vendor that takes no time, with workflows of one empty activity.
func measureFullTasks(ctx context.Context, m *machine) ([]row, error) {
	m.vendor.reset(func() time.Duration { return 0 }, false)
	g, err := m.install(ctx, "full", m.channels(250*time.Millisecond))
	if err != nil {
		return nil, err
	}
	m.run(ctx, g.RunWorker)
	bare, err := g.temporalClient()
	if err != nil {
		return nil, err
	}
	w := worker.New(bare, bareQueue, worker.Options{StickyScheduleToStartTimeout: time.Minute})
	w.RegisterWorkflowWithOptions(bareWorkflow, workflow.RegisterOptions{Name: "bare"})
	w.RegisterActivityWithOptions(nothing, activity.RegisterOptions{Name: "nothing"})
	if err := w.Start(); err != nil {
		return nil, err
	}
	m.later(w.Stop)

	batch := m.size(150, 60)
	var started atomic.Int64
	floor := m.drain("bare-", batch, func(ctx context.Context) error {
		_, err := bare.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: fmt.Sprintf("bare-%d", started.Add(1)), TaskQueue: bareQueue}, "bare", "task")
		return err
	})
	var rows []row
	for _, part := range []struct {
		what, path, body string
		aim              float64
	}{
		{"an image, in one call", imagePath, imageBody, 0.50},
		{"a video, polled for", videoPath, videoBody, 0.40},
	} {
		subject := m.drain("task_", batch, func(ctx context.Context) error {
			_, err := g.submit(ctx, part.path, part.body)
			return err
		})
		c, err := compare(ctx, m.size(2, 1), breathe, floor, subject)
		if err != nil {
			return nil, err
		}
		c.byCPU = c.knowsCPU()
		rows = append(rows, rateRow(part.what, "workflow of one activity", c, part.aim))
	}
	report, err := g.Store.CheckLedger(ctx)
	if err == nil && !report.OK {
		err = fmt.Errorf("the ledger does not add up: %v", report.Problems)
	}
	return rows, err
}

// drain is a slice that starts n workflows and lasts until all have ended.
func (m *machine) drain(prefix string, n int, start func(context.Context) error) slice {
	ended := func(ctx context.Context) (int, error) {
		const completed = 3
		return m.workflows(ctx, "starts_with(workflow_id, $1) AND state = $2", prefix, completed)
	}
	return func(ctx context.Context) ([]time.Duration, error) {
		before, err := ended(ctx)
		if err != nil {
			return nil, err
		}
		took, err := times(32, n, start)(ctx)
		if err != nil {
			return nil, err
		}
		// Temporal's table is gone through each time: who asked more often would weigh on the slower of the two.
		return took, until(ctx, fmt.Sprintf("%d workflows have ended", n), 100*time.Millisecond, 2*time.Minute, func(ctx context.Context) (bool, error) {
			now, err := ended(ctx)
			return now-before >= n, err
		})
	}
}
