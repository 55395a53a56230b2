package activities

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mediagate/mediagate"
)

const (
	usageBatch = 500
	ensureWide = 8
	slotsEvery = time.Minute
	batchLimit = 2 * time.Minute // of a batch; what is left comes up in the next one
)

// TendWakes works off wakes, and does the housekeeping, until the worker stops. Its
// chores run beside each other: one that has much to do, or whose calls hang, keeps
// none of the others.
func (a *Activities) TendWakes(ctx context.Context) error {
	var (
		last    atomic.Pointer[WakeReport]
		counted tally
		beside  sync.WaitGroup
	)
	last.Store(&WakeReport{})
	calls, cancel := untilStopped(ctx)
	defer heartbeat(ctx, func() []any { return []any{*last.Load()} }, nil)()
	for _, c := range a.chores(&counted) {
		beside.Go(func() {
			repeat(calls, c.every, c.do, func(err error) {
				counted.add(func(r *WakeReport) { r.LastError = mediagate.KindOf(err).String() })
				a.Logger.WarnContext(ctx, c.failed, "error", err)
			})
		})
	}
	report := func() {
		r := counted.take()
		last.Store(&r)
		if r.Replaced > 0 {
			a.Logger.InfoContext(ctx, "wakes worked off", "report", r)
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

// chore is done once at the start, and then again after each pause.
type chore struct {
	every  time.Duration
	do     func(context.Context) error
	failed string // for the log
}

func (a *Activities) chores(t *tally) []chore {
	often := a.Settings.PassInterval
	bucketAway := true // as far as this process knows
	wakes := func(ctx context.Context) error { return a.wakeDue(ctx, t) }
	bucket := func(ctx context.Context) error { return a.retryForBucket(ctx, &bucketAway) }
	all := []chore{
		{min(often, wakeEvery), limited(wakes), "wakes not worked off"},
		{often, limited(a.ensureChannels), "channels not ensured"},
		{often, limited(a.countUsage), "usage not counted"},
		{slotsEvery, limited(a.Store.ExpireSlots), "slots of abandoned jobs not freed"},
		{min(2*often, probeEvery), bucket, "tasks parked for the bucket not tried again"},
		{lateEvery, a.sweepLate, "late files not removed"},
		{eventsEvery, a.sendEvents, "events not sent to endpoints"},
		{often, limited(a.Store.FailDisabled), "deliveries of disabled endpoints not ended"},
		{often, limited(a.Store.NoteCrossings), "low balances and used quotas not noted"},
	}
	if a.Ledger != nil {
		all = append(all, chore{ledgerEvery, a.proveLedger, "the ledger was not checked"})
	}
	return all
}

// ensureChannels keeps the pollers running of all channels with rows.
func (a *Activities) ensureChannels(ctx context.Context) error {
	channels, err := a.Store.AwaitChannels(ctx)
	return errors.Join(err, each(ctx, channels, ensureWide, func(name string) error {
		return a.Engine.EnsureChannel(ctx, name)
	}))
}

func (a *Activities) countUsage(ctx context.Context) error {
	for { // a full batch is followed by the next at once
		counted, err := a.Store.CountVendorCharges(ctx, usageBatch)
		if err != nil || counted < usageBatch {
			return err
		}
	}
}

// repeat does it now, and again each time that the pause is over. A panic is an error
// of that time: it ends neither the process nor what is done beside it.
func repeat(ctx context.Context, pause time.Duration, do func(context.Context) error, failed func(error)) {
	for ctx.Err() == nil {
		err := mediagate.Guarded(func() error { return do(ctx) })
		if err != nil && ctx.Err() == nil { // a worker that stops blames nobody
			failed(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
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

const (
	probeTimeout = 10 * time.Second
	probeEvery   = 10 * time.Second
	retryBatch   = 500
	lateEvery    = time.Minute      // between two looks for files that came late
	lateBatch    = 100              // tasks a look
	lateTimeout  = 10 * time.Second // of a look; what is left comes up in the next
	lateAgain    = 10 * time.Minute // after files could not be removed
)

// retryForBucket has the tasks try again that are parked since the bucket was away, once
// it takes a write again: after each failed probe once. A bucket that takes the probe
// and not the files would make them try for ever.
func (a *Activities) retryForBucket(ctx context.Context, away *bool) error {
	probe, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if err := a.Bucket.Probe(probe); err != nil {
		*away = true
		return nil //nolint:nilerr // each step that needs it says so
	}
	parked := mediagate.Parked{Reasons: []mediagate.ParkReason{mediagate.ParkStorage}}
	for *away {
		retried, err := a.Store.RetryParked(ctx, parked, retryBatch)
		if err != nil {
			return err
		}
		*away = retried == retryBatch
		if retried > 0 {
			a.Logger.InfoContext(ctx, "the bucket works: tasks parked for it try again", "tasks", retried)
		}
	}
	return nil
}

// sweepLate removes files that were copied for ends that did not come, when no
// copy can be under way any more (D13), and those of erased tasks, at once and
// then again. While the bucket is away they stay due.
func (a *Activities) sweepLate(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lateTimeout)
	defer cancel()
	for ctx.Err() == nil {
		due, err := a.Store.DueSweeps(ctx, lateBatch)
		if err != nil || len(due) == 0 {
			return err
		}
		for _, sweep := range due {
			err := mediagate.Guarded(func() error { return a.sweepTask(ctx, sweep.TaskID) })
			switch {
			case err == nil || mediagate.Is(err, mediagate.KindNotFound):
				err = a.Store.SetSweep(ctx, sweep, sweep.Again)
			case !mediagate.Is(err, mediagate.KindUnavailable): // this task's own trouble
				a.Logger.WarnContext(ctx, "late files not removed", "task", sweep.TaskID, "error", err)
				err = a.Store.SetSweep(ctx, sweep, a.Now().Add(lateAgain))
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

const (
	ledgerEvery   = 6 * time.Hour    // between two checks of the ledger
	ledgerTimeout = 30 * time.Minute // of one
	ledgerTold    = 20               // problems in a line of the log
)

// Ledger is the money, as far as housekeeping proves it.
type Ledger interface {
	CheckLedger(ctx context.Context) (mediagate.LedgerReport, error)
}

// proveLedger checks the ledger. What is broken is logged each time: somebody has to look.
func (a *Activities) proveLedger(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ledgerTimeout)
	defer cancel()
	report, err := a.Ledger.CheckLedger(ctx)
	if err == nil && !report.OK {
		a.Logger.ErrorContext(ctx, "the ledger does not hold", "runbook", "LedgerBroken",
			"problems", len(report.Problems), "first", report.Problems[:min(len(report.Problems), ledgerTold)])
	}
	return err
}

// sweepTask removes what was stored for a task that has ended and that it does
// not show: all of it, or what other attempts than the one that completed it
// left, and calls of that one which were given up. Of one that is erased it
// leaves nothing.
func (a *Activities) sweepTask(ctx context.Context, taskID string) error {
	t, err := a.Store.TaskByID(ctx, taskID)
	if err != nil || !t.Status.Terminal() {
		return err
	}
	if !t.InputsErasedAt.IsZero() {
		for _, key := range t.Plan.Uploads {
			if err := a.Sweeper.Delete(ctx, key); err != nil {
				return err
			}
		}
	}
	folder := mediagate.ResultFolder(taskID)
	var shown []string
	if t.Status == mediagate.StatusCompleted && t.ErasedAt.IsZero() {
		own := len(t.Results) == 0 && t.Made.StandsAlone()
		for _, r := range t.Results {
			shown = append(shown, r.Key)
			own = own || strings.HasPrefix(r.Key, folder)
		}
		if !own {
			return nil // where its own files are is not known: nothing is touched
		}
	}
	if _, err := a.Sweeper.AbortStale(ctx, folder, 0); err != nil {
		return err
	}
	removed, err := a.Sweeper.DeletePrefix(ctx, folder, shown...)
	if removed > 0 {
		a.Logger.InfoContext(ctx, "swept results that nobody will see", "task", taskID, "objects", removed)
	}
	return err
}
