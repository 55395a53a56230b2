package activities

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"
	"golang.org/x/sync/errgroup"

	"github.com/mediagate/mediagate"
)

const unseenAfter = mediagate.StartLease // an acknowledged task without a run

const (
	staleAfter    = 10 * time.Second // a command or cancel that its workflow has not taken
	roundAfter    = 60 * time.Second // a callback round that is still pending
	recheckAfter  = 60 * time.Second // between two looks at the same open task
	overdueEvery  = time.Minute      // between two looks for what is overdue, at most
	unknownAfter  = time.Hour        // a lost submission is given up so long after the deadline (D6)
	storeTimeout  = 15 * time.Second // of one call to the database
	passBatch     = 500
	reconcileWide = 8
	sweepEvery    = time.Hour
	sweepTimeout  = 5 * time.Minute           // of each concern of a sweep; what is left goes in the next one
	concernLimit  = 2 * time.Minute           // of each concern of a pass; what is left comes up in the next one
	uploadAge     = 24 * time.Hour            // an unfinished upload this old belongs to nobody
	requestAge    = uploadLink + 24*time.Hour // media of a request this old are of no job
)

// PassReport counts what one pass of the reconciler mended.
type PassReport struct {
	Started   int    `json:"started"`
	Cancels   int    `json:"cancels"`
	Actions   int    `json:"actions"`
	Webhooks  int    `json:"webhooks"`
	Overdue   int    `json:"overdue"`
	Replaced  int    `json:"replaced"` // runs that were terminated, or gone, and are started anew
	LastError string `json:"last_error,omitempty"`
}

// Reconcile looks, pass after pass until the worker stops, for rows that
// nothing drives: tasks without a run, commands that nobody took, callbacks
// that nobody delivers (D2).
func (a *Activities) Reconcile(ctx context.Context) error {
	stop := activity.GetWorkerStopChannel(ctx)
	var (
		last           atomic.Pointer[PassReport]
		swept, overdue time.Time
		sweeping       sync.WaitGroup
	)
	last.Store(&PassReport{})
	calls, cancel := untilStopped(ctx, stop)
	defer sweeping.Wait()
	defer cancel()
	defer heartbeat(ctx, func() []any { return []any{*last.Load()} })()
	sweeping.Go(func() { a.tendBucket(calls) })
	for {
		now := a.Now()
		overdueToo := now.Sub(overdue) >= min(overdueEvery, a.Settings.RescueEvery)
		if overdueToo {
			overdue = now
		}
		report := a.pass(calls, overdueToo)
		last.Store(&report)
		activity.RecordHeartbeat(ctx, report)
		if now.Sub(swept) >= sweepEvery {
			swept = now
			sweeping.Go(func() { a.sweepUploads(calls) })
		}
		if report.Started+report.Cancels+report.Actions+report.Webhooks+report.Overdue+report.Replaced > 0 { // errors have lines of their own
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

// sweepUploads gives up what crashed uploads have left in the bucket, and media
// that came within requests, or were uploaded before, once no link to them works
// any more. What there is much of does not keep the others.
func (a *Activities) sweepUploads(ctx context.Context) {
	var err error
	concern := func(sweep func(context.Context) (int, error)) int {
		limited, cancel := context.WithTimeout(ctx, sweepTimeout)
		defer cancel()
		n, failed := sweep(limited)
		err = errors.Join(err, failed)
		return n
	}
	aborted := 0
	for _, prefix := range []string{mediagate.ResultsFolder, mediagate.UploadFolder, mediagate.FileFolder} {
		aborted += concern(func(ctx context.Context) (int, error) { return a.Sweeper.AbortStale(ctx, prefix, uploadAge) })
	}
	removed := concern(func(ctx context.Context) (int, error) {
		return a.Sweeper.DeleteOlder(ctx, mediagate.UploadFolder, requestAge)
	})
	files := concern(a.sweepFiles)
	if err != nil {
		a.Logger.WarnContext(ctx, "the bucket was not swept", "error", err)
	}
	if aborted+removed+files > 0 {
		a.Logger.InfoContext(ctx, "swept the bucket", "unfinished uploads", aborted, "media of requests", removed, "uploaded files", files)
	}
}

// pass makes one pass. One concern that fails, or takes its time, does not keep
// the others.
func (a *Activities) pass(ctx context.Context, overdueToo bool) PassReport {
	var r PassReport
	concern := func(look func(context.Context) error) {
		limited, cancel := context.WithTimeout(ctx, concernLimit)
		defer cancel()
		if err := look(limited); err != nil && ctx.Err() == nil { // a worker that stops blames nobody
			r.LastError = mediagate.KindOf(err).String()
			a.Logger.WarnContext(ctx, "reconciler could not look", "error", err)
		}
	}
	runs := func(find func(context.Context) ([]string, error)) func(context.Context) error {
		return func(ctx context.Context) error {
			for { // a full batch is followed by the next at once
				ids, err := find(ctx)
				if err != nil {
					return err
				}
				started, err := a.ensureRuns(ctx, ids)
				r.Started += started
				if err != nil || len(ids) < passBatch {
					return err
				}
			}
		}
	}
	concern(runs(func(ctx context.Context) ([]string, error) { return a.Store.UnseenTasks(ctx, unseenAfter, passBatch) }))
	concern(runs(func(ctx context.Context) ([]string, error) {
		return a.Store.OpenTasks(ctx, a.Now().Add(-recheckAfter), passBatch)
	}))
	concern(func(ctx context.Context) error {
		var replaced atomic.Int64
		defer func() { r.Replaced += int(replaced.Load()) }()
		cancels, err := a.Store.StaleCancels(ctx, staleAfter, passBatch)
		r.Cancels = len(cancels)
		return cmp.Or(err, each(ctx, cancels, reconcileWide, func(id string) error { return a.repeatCancel(ctx, id, &replaced) }))
	})
	concern(func(ctx context.Context) error {
		actions, err := a.Store.UntakenActions(ctx, staleAfter, passBatch)
		r.Actions = len(actions)
		return cmp.Or(err, each(ctx, actions, reconcileWide, func(action mediagate.Action) error { return a.Engine.SignalAction(ctx, action) }))
	})
	if overdueToo {
		concern(func(ctx context.Context) error { return a.rescueRounds(ctx, &r) })
		concern(func(ctx context.Context) error { return a.rescueTasks(ctx, &r) })
		concern(a.Store.EndSlots)
	}
	concern(func(ctx context.Context) error {
		rounds, err := a.Store.PendingWebhooks(ctx, min(roundAfter, a.Settings.RoundAfter), a.Settings.RoundAfter, passBatch)
		r.Webhooks = len(rounds)
		return cmp.Or(err, each(ctx, rounds, reconcileWide, func(w mediagate.WebhookRound) error {
			return a.Engine.EnsureWebhook(ctx, w)
		}))
	})
	concern(func(ctx context.Context) error {
		for { // a full batch is followed by the next at once
			counted, err := a.Store.CountUsage(ctx, passBatch)
			if err != nil || counted < passBatch {
				return err
			}
		}
	})
	concern(func(ctx context.Context) error {
		channels, err := a.Store.AwaitChannels(ctx)
		return cmp.Or(err, each(ctx, channels, reconcileWide, func(name string) error { return a.Engine.EnsureChannel(ctx, name) }))
	})
	return r
}

// ensureRuns starts a workflow for each task that has none running, and notes
// which tasks were looked at: those that it did not come to come up in the next
// pass.
func (a *Activities) ensureRuns(ctx context.Context, ids []string) (started int, err error) {
	var (
		mu             sync.Mutex
		looked, driven []string
	)
	note := func(list *[]string, id string) {
		mu.Lock()
		defer mu.Unlock()
		*list = append(*list, id)
	}
	err = each(ctx, ids, reconcileWide, func(id string) error {
		note(&looked, id)
		task, err := a.Store.TaskByID(ctx, id)
		if err != nil || task.Status.Terminal() {
			return err
		}
		begun, err := a.Engine.Ensure(ctx, task)
		if err != nil {
			return err
		}
		note(&driven, id)
		if begun {
			mu.Lock()
			defer mu.Unlock()
			started++
		}
		return nil
	})
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout) // its own time may be up
	defer cancel()
	return started, errors.Join(err, a.Store.MarkChecked(ctx, looked, false), a.Store.MarkChecked(ctx, driven, true))
}

// fruitless is after how many errors in a row each gives up: what it calls is
// away.
const fruitless = 32

// each calls f for all items, wide at once, and returns the first error. It
// stops early when the context ends or nothing succeeds any more: what is left
// comes up again.
func each[T any](ctx context.Context, items []T, wide int, f func(T) error) error {
	var group errgroup.Group
	group.SetLimit(wide)
	var failures atomic.Int64
	for _, item := range items {
		if ctx.Err() != nil || failures.Load() >= fruitless {
			break
		}
		group.Go(func() error {
			err := f(item)
			if err != nil {
				failures.Add(1)
			} else {
				failures.Store(0)
			}
			return err
		})
	}
	return group.Wait()
}
