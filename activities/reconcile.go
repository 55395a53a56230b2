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
	overdueEvery  = time.Minute      // between two looks for what is overdue, at most
	unknownAfter  = time.Hour        // a lost submission is given up so long after the deadline (D6)
	storeTimeout  = 15 * time.Second // of one call to the database
	passBatch     = 500
	reconcileWide = 8
	sweepEvery    = time.Hour
	sweepTimeout  = 5 * time.Minute           // of each concern of a sweep; what is left goes in the next one
	batchLimit    = 2 * time.Minute           // of a batch; what is left comes up in the next one
	uploadAge     = 24 * time.Hour            // an unfinished upload this old belongs to nobody
	requestAge    = uploadLink + 24*time.Hour // media of a request this old are of no job
)

// PassReport counts what the reconciler mended since the report before.
type PassReport struct {
	Started  int `json:"started"`
	Cancels  int `json:"cancels"`
	Actions  int `json:"actions"`
	Webhooks int `json:"webhooks"`
	Overdue  int `json:"overdue"`
	Replaced int `json:"replaced"` // runs that were terminated, or gone, and are started anew
	// Looked counts open tasks whose run was looked for, LookSeconds is the longest
	// that one of them had gone without a look, or any other sign of it.
	Looked      int    `json:"looked"`
	LookSeconds int    `json:"look_seconds,omitempty"`
	LastError   string `json:"last_error,omitempty"`
}

func (r PassReport) mended() bool {
	return r.Started+r.Cancels+r.Actions+r.Webhooks+r.Overdue+r.Replaced > 0
}

// tally is the report that is being made.
type tally struct {
	mu     sync.Mutex
	report PassReport
}

func (t *tally) add(what func(*PassReport)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	what(&t.report)
}

// take begins the next report.
func (t *tally) take() PassReport {
	t.mu.Lock()
	defer t.mu.Unlock()
	report := t.report
	t.report = PassReport{}
	return report
}

// concern is one kind of what the reconciler looks for.
type concern struct {
	every time.Duration // between two looks, of which the first is at once
	look  func(context.Context) error
}

// Reconcile looks, until the worker stops, for rows that nothing drives: tasks
// without a run, commands that nobody took, callbacks that nobody delivers (D2).
// Its concerns go beside each other: one that has much to do, or whose calls
// hang, keeps none of the others.
func (a *Activities) Reconcile(ctx context.Context) error {
	stop := activity.GetWorkerStopChannel(ctx)
	var (
		last    atomic.Pointer[PassReport]
		counted tally
		beside  sync.WaitGroup
	)
	last.Store(&PassReport{})
	calls, cancel := untilStopped(ctx, stop)
	defer heartbeat(ctx, func() []any { return []any{*last.Load()} })()
	beside.Go(func() { a.tendBucket(calls) })
	beside.Go(func() { a.proveLedger(calls) })
	beside.Go(func() {
		repeat(calls, sweepEvery, a.sweepUploads, func(err error) { a.Logger.WarnContext(ctx, "the bucket was not swept", "error", err) })
	})
	for _, c := range a.concerns(&counted) {
		beside.Go(func() {
			repeat(calls, c.every, c.look, func(err error) {
				counted.add(func(r *PassReport) { r.LastError = mediagate.KindOf(err).String() })
				a.Logger.WarnContext(ctx, "reconciler could not look", "error", err)
			})
		})
	}
	report := func() {
		r := counted.take()
		last.Store(&r)
		activity.RecordHeartbeat(ctx, r)
		if r.mended() { // errors have lines of their own
			a.Logger.InfoContext(ctx, "reconciled", "report", r)
		}
	}
	defer report()
	defer beside.Wait()
	defer cancel()
	tick := time.NewTicker(a.Settings.PassInterval)
	defer tick.Stop()
	for {
		select {
		case <-calls.Done():
			return nil
		case <-tick.C:
			report()
		}
	}
}

// repeat does it now, and again each time that the pause is over. A panic is an error
// of that time: it ends neither the process nor what is done beside it.
func repeat(ctx context.Context, pause time.Duration, do func(context.Context) error, failed func(error)) {
	for ctx.Err() == nil {
		if err := mediagate.Guarded(func() error { return do(ctx) }); err != nil && ctx.Err() == nil { // a worker that stops blames nobody
			failed(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// concerns are all that the reconciler looks for.
func (a *Activities) concerns(t *tally) []concern {
	often, rarely := a.Settings.PassInterval, min(overdueEvery, a.Settings.RescueEvery)
	looks := newLooks(a, t)
	return []concern{
		{often, func(ctx context.Context) error { return a.beginUnseen(ctx, t) }},
		{often, looks.round},
		{often, func(ctx context.Context) error {
			return inTurns(ctx, func(ctx context.Context, after string) ([]mediagate.Task, string, error) {
				return a.Store.StaleCancels(ctx, staleAfter, after, passBatch)
			}, func(ctx context.Context, tasks []mediagate.Task) (bool, error) {
				t.add(func(r *PassReport) { r.Cancels += len(tasks) })
				return a.marked(ctx, tasks, reconcileWide, func(ctx context.Context, task mediagate.Task) error {
					return a.repeatCancel(ctx, task, t)
				})
			})
		}},
		{max(often, staleAfter), func(ctx context.Context) error { // a round: none is sent more often
			var after mediagate.Action
			return batches(ctx, func(ctx context.Context) ([]mediagate.Action, error) {
				found, err := a.Store.UntakenActions(ctx, staleAfter, after, passBatch)
				if len(found) > 0 {
					after = found[len(found)-1]
				}
				t.add(func(r *PassReport) { r.Actions += len(found) })
				return found, err
			}, a.Engine.SignalAction)
		}},
		{rarely, func(ctx context.Context) error { return a.rescueRounds(ctx, t) }},
		{rarely, func(ctx context.Context) error { return a.rescueTasks(ctx, t) }},
		{a.Settings.RescueEvery, a.wakeUnsettled},
		{rarely, func(ctx context.Context) error { return a.rescueUntold(ctx, t) }},
		{rarely, limited(a.Store.EndSlots)},
		{often, func(ctx context.Context) error {
			return batches(ctx, func(ctx context.Context) ([]mediagate.WebhookRound, error) {
				found, err := a.Store.PendingWebhooks(ctx, min(roundAfter, a.Settings.RoundAfter), a.Settings.RoundAfter, passBatch)
				t.add(func(r *PassReport) { r.Webhooks += len(found) })
				return found, err
			}, a.Engine.EnsureWebhook)
		}},
		{often, func(ctx context.Context) error {
			for { // a full batch is followed by the next at once
				counted := 0
				err := limited(func(ctx context.Context) (err error) { counted, err = a.Store.CountUsage(ctx, passBatch); return err })(ctx)
				if err != nil || counted < passBatch {
					return err
				}
			}
		}},
		{often, limited(func(ctx context.Context) error {
			channels, err := a.Store.AwaitChannels(ctx)
			return errors.Join(err, each(ctx, channels, reconcileWide, func(name string) error { return a.Engine.EnsureChannel(ctx, name) }))
		})},
	}
}

// limited bounds a call by the time of a batch.
func limited(call func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, batchLimit)
		defer cancel()
		return call(ctx)
	}
}

// batches claims and works until a batch is not full, or was given up: what is left
// then comes up in the next look. It returns the first error. One that fails, each
// time, keeps none of those behind it.
func batches[T any](ctx context.Context, claim func(context.Context) ([]T, error), work func(context.Context, T) error) (first error) {
	for {
		var claimed int
		var tried atomic.Int64
		err := limited(func(ctx context.Context) error {
			items, err := claim(ctx)
			if err != nil {
				return err
			}
			claimed = len(items)
			return each(ctx, items, reconcileWide, func(item T) error {
				tried.Add(1)
				return work(ctx, item)
			})
		})(ctx)
		first = cmp.Or(first, err)
		if claimed < passBatch || int(tried.Load()) < claimed || ctx.Err() != nil {
			return first
		}
	}
}

// sweepUploads gives up what crashed uploads have left in the bucket, and media
// that came within requests, or were uploaded before, once no link to them works
// any more. What there is much of does not keep the others.
func (a *Activities) sweepUploads(ctx context.Context) (err error) {
	concern := func(sweep func(context.Context) (int, error)) (n int) {
		limited, cancel := context.WithTimeout(ctx, sweepTimeout)
		defer cancel()
		err = errors.Join(err, mediagate.Guarded(func() (failed error) { n, failed = sweep(limited); return failed }))
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
	if aborted+removed+files > 0 {
		a.Logger.InfoContext(ctx, "swept the bucket", "unfinished uploads", aborted, "media of requests", removed, "uploaded files", files)
	}
	return err
}

// fruitless is after how many errors in a row each gives up: what it calls is
// away.
const fruitless = 32

// each calls f for all items, wide at once, and returns the first error, which a
// panic is as well. It
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
			err := mediagate.Guarded(func() error { return f(item) })
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
