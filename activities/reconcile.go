package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"
	"golang.org/x/sync/errgroup"

	"github.com/mediagate/mediagate"
)

const (
	unseenAfter   = 10 * time.Second // an acknowledged task without a run
	staleAfter    = 10 * time.Second // a command or cancel that its workflow has not taken
	roundAfter    = 60 * time.Second // a callback round that is still pending
	recheckAfter  = 60 * time.Second // between two looks at the same open task
	overdueAfter  = 30 * time.Minute // past the deadline
	passBatch     = 500
	reconcileWide = 8
	sweepEvery    = time.Hour
	uploadAge     = 24 * time.Hour // an unfinished upload this old belongs to nobody
)

// PassReport counts what one pass of the reconciler mended.
type PassReport struct {
	Started   int    `json:"started"`
	Cancels   int    `json:"cancels"`
	Actions   int    `json:"actions"`
	Webhooks  int    `json:"webhooks"`
	Overdue   int    `json:"overdue"`
	LastError string `json:"last_error,omitempty"`
}

// Reconcile looks, pass after pass until the worker stops, for rows that
// nothing drives: tasks without a run, commands that nobody took, callbacks
// that nobody delivers (D2).
func (a *Activities) Reconcile(ctx context.Context) error {
	stop := activity.GetWorkerStopChannel(ctx)
	var swept time.Time
	for {
		report := a.pass(ctx)
		if now := a.Now(); now.Sub(swept) >= sweepEvery {
			swept = now
			a.sweepUploads(ctx)
		}
		activity.RecordHeartbeat(ctx, report)
		if report.Started+report.Cancels+report.Actions+report.Webhooks+report.Overdue > 0 || report.LastError != "" {
			a.Logger.InfoContext(ctx, "reconciled", "report", report)
		}
		select {
		case <-stop:
			return nil
		case <-ctx.Done():
			return nil
		case <-time.After(a.Settings.PassInterval):
		}
	}
}

// sweepUploads gives up what crashed uploads have left in the bucket.
func (a *Activities) sweepUploads(ctx context.Context) {
	aborted, err := a.Sweeper.AbortStale(ctx, "results/", uploadAge)
	if err != nil {
		a.Logger.WarnContext(ctx, "unfinished uploads not swept", "error", err)
		return
	}
	if aborted > 0 {
		a.Logger.InfoContext(ctx, "swept unfinished uploads", "uploads", aborted)
	}
}

// pass makes one pass. One failing concern does not keep the others.
func (a *Activities) pass(ctx context.Context) PassReport {
	var r PassReport
	note := func(err error) {
		if err != nil {
			r.LastError = mediagate.KindOf(err).String()
			a.Logger.WarnContext(ctx, "reconciler", "error", err)
		}
	}
	unseen, err := a.Store.UnseenTasks(ctx, unseenAfter, passBatch)
	note(err)
	open, err := a.Store.OpenTasks(ctx, a.Now().Add(-recheckAfter), passBatch)
	note(err)
	started, err := a.ensureRuns(ctx, append(unseen, open...))
	r.Started = started
	note(err)
	note(a.Store.MarkChecked(ctx, append(unseen, open...)))

	cancels, err := a.Store.StaleCancels(ctx, staleAfter, passBatch)
	note(err)
	r.Cancels = len(cancels)
	note(each(cancels, func(id string) error { return a.Engine.SignalCancel(ctx, id) }))

	actions, err := a.Store.UntakenActions(ctx, staleAfter, passBatch)
	note(err)
	r.Actions = len(actions)
	note(each(actions, func(action mediagate.Action) error { return a.Engine.SignalAction(ctx, action) }))

	rounds, err := a.Store.PendingWebhooks(ctx, roundAfter, passBatch)
	note(err)
	r.Webhooks = len(rounds)
	note(each(rounds, func(w mediagate.WebhookRound) error { return a.Engine.EnsureWebhook(ctx, w.TaskID, w.Round) }))

	overdue, err := a.Store.OverdueTasks(ctx, overdueAfter, passBatch)
	note(err)
	r.Overdue = len(overdue)
	note(each(overdue, func(id string) error { return a.Engine.SignalWake(ctx, id) }))

	channels, err := a.Store.AwaitChannels(ctx)
	note(err)
	note(each(channels, func(name string) error { return a.Engine.EnsureChannel(ctx, name) }))
	return r
}

// ensureRuns starts a workflow for each task that has none running.
func (a *Activities) ensureRuns(ctx context.Context, ids []string) (started int, err error) {
	results := make([]bool, len(ids))
	var group errgroup.Group
	group.SetLimit(reconcileWide)
	for i, id := range ids {
		group.Go(func() error {
			task, err := a.Store.TaskByID(ctx, id)
			if err != nil || task.Status.Terminal() {
				return err
			}
			results[i], err = a.Engine.Ensure(ctx, task)
			return err
		})
	}
	err = group.Wait()
	for _, s := range results {
		if s {
			started++
		}
	}
	return started, err
}

// each calls f for all items and returns the first error.
func each[T any](items []T, f func(T) error) error {
	var first error
	for _, item := range items {
		if err := f(item); err != nil && first == nil {
			first = err
		}
	}
	return first
}
