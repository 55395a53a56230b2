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
	batchLimit = 2 * time.Minute // of a batch; the next one does the rest
)

// TendWakes works through due wakes, and does the housekeeping, until the worker stops. Its
// chores run at the same time, so a chore that has much to do, or whose calls hang, delays no
// other.
//
// The workflow Wake keeps one of these activities running. Two may run for a moment, for example if
// a worker hangs and its heartbeats are lost. That is no harm: each chore may run twice at the same
// time, and a repeated signal or start changes nothing.
func (a *Activities) TendWakes(ctx context.Context) error {
	var (
		last    atomic.Pointer[WakeReport]
		counted tally
		running sync.WaitGroup
	)
	// Each heartbeat shows the report of the last interval.
	last.Store(&WakeReport{})
	calls, cancel := untilStopped(ctx)
	defer heartbeat(ctx, func() []any { return []any{*last.Load()} }, nil)()
	for _, c := range a.chores(&counted) {
		running.Go(func() {
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
			a.Logger.InfoContext(ctx, "the wake scan replaced runs", "report", r)
		}
	}
	// Deferred calls run in reverse: the chores get the signal to stop, they end, and the last report
	// counts what they did.
	defer report()
	defer running.Wait()
	defer cancel()
	// Each tick ends a report. The heartbeats until the next tick show it.
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

// chore is done once at the start, and then again after each pause. It has a goroutine of its own.
type chore struct {
	every  time.Duration
	do     func(context.Context) error
	failed string // for the log
}

// chores returns all chores.
func (a *Activities) chores(t *tally) []chore {
	often := a.Settings.PassInterval
	// The process before may have died after it saw the bucket fail, and before it retried the
	// tasks.
	bucketAway := true // as far as this process knows
	wakes := func(ctx context.Context) error { return a.wakeDue(ctx, t) }
	bucket := func(ctx context.Context) error { return a.retryForBucket(ctx, &bucketAway) }
	all := []chore{
		{min(often, wakeEvery), withinBatch(wakes), "wakes not worked off"},
		{often, withinBatch(a.ensureChannels), "channels not ensured"},
		{often, withinBatch(a.countUsage), "usage not counted"},
		{slotsEvery, withinBatch(a.Store.ExpireSlots), "slots of abandoned jobs not freed"},
		{min(2*often, probeEvery), bucket, "tasks parked for the bucket not tried again"},
		// The next two are not bounded by the time of a batch: sweepLate has a limit of its own,
		// and sendEvents goes on until the worker stops.
		{lateEvery, a.sweepLate, "late files not removed"},
		{eventsEvery, a.sendEvents, "events not sent to endpoints"},
		{often, withinBatch(a.Store.FailDisabled), "deliveries of disabled endpoints not ended"},
		{often, withinBatch(a.Store.NoteCrossings), "low balances and used quotas not noted"},
	}
	if a.Ledger != nil {
		all = append(all, chore{ledgerEvery, a.checkLedger, "the ledger was not checked"})
	}
	return all
}

// ensureChannels keeps a poller running for each channel that tasks wait for. An error of one
// channel does not keep the others from theirs.
func (a *Activities) ensureChannels(ctx context.Context) error {
	// A worker starts the workflows of its own channels. This chore also starts the workflows of
	// former names, and of channels that no worker has (D11).
	channels, err := a.Store.AwaitChannels(ctx)
	return errors.Join(err, forEach(ctx, channels, ensureWide, func(name string) error {
		return a.Engine.EnsureChannel(ctx, name)
	}))
}

// countUsage counts what vendors have charged. A job's charge is stored with its end, and added to
// the sums here.
func (a *Activities) countUsage(ctx context.Context) error {
	for { // after a full batch the next one follows at once
		counted, err := a.Store.CountVendorCharges(ctx, usageBatch)
		if err != nil || counted < usageBatch {
			return err
		}
	}
}

// repeat calls do now, and again after each pause. A panic is an error of that call alone: it ends
// neither the process nor the other chores. The pause begins when the call has ended, so calls of
// one chore never overlap.
func repeat(ctx context.Context, pause time.Duration, do func(context.Context) error, failed func(error)) {
	for ctx.Err() == nil {
		err := mediagate.Guarded(func() error { return do(ctx) })
		if err != nil && ctx.Err() == nil { // errors of a worker that stops mean nothing
			failed(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// withinBatch bounds a call by the time of a batch. Without that, a call that hangs would end the
// chore for as long as this worker lives.
func withinBatch(call func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, batchLimit)
		defer cancel()
		return call(ctx)
	}
}

// maxFailures is the number of errors in a row after which forEach stops. By then the service that
// it calls is probably away.
const maxFailures = 32

// forEach calls f for all items, wide of them at the same time. It returns the first error; a panic
// is an error, too. It stops early if the context ends, or after maxFailures. The items that are
// left stay due, and come with the next call. A success sets the count of failures back to zero.
func forEach[T any](ctx context.Context, items []T, wide int, f func(T) error) error {
	var group errgroup.Group
	group.SetLimit(wide)
	var failures atomic.Int64
	for _, item := range items {
		if ctx.Err() != nil || failures.Load() >= maxFailures {
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
	lateEvery    = time.Minute      // between two checks for late files
	lateBatch    = 100              // tasks of one check
	lateTimeout  = 10 * time.Second // of one check; the next one does the rest
	lateAgain    = 10 * time.Minute // the pause if files could not be removed
)

// retryForBucket retries the tasks that are parked because the bucket was away, once the bucket
// takes a write again. It does so only once after each failed probe. Otherwise a bucket that takes
// the probe but not the files would make the tasks try all the time.
//
// away stays true while a batch is full, so an error in the middle leaves the rest to the next
// call.
func (a *Activities) retryForBucket(ctx context.Context, away *bool) error {
	probe, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if err := a.Bucket.Probe(probe); err != nil {
		*away = true
		return nil //nolint:nilerr // each step that needs the bucket reports it
	}
	parked := mediagate.Parked{Reasons: []mediagate.ParkReason{mediagate.ParkStorage}}
	// Batch after batch, until one is not full.
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

// sweepLate removes files that no task shows, for example of a copy that lost a race against a
// cancel. It does so when no copy can be under way any more (D13). It also removes the files of
// erased tasks, at once, and again later. While the bucket is away, the sweeps stay due. If another
// sweep of the task has become due meanwhile, SetSweep changes nothing, and that sweep is made as
// well.
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
			// Again is zero, or the time of another sweep, for a copy that may still be under way.
			case err == nil || mediagate.Is(err, mediagate.KindNotFound):
				err = a.Store.SetSweep(ctx, sweep, sweep.Again)
			case !mediagate.Is(err, mediagate.KindUnavailable): // this task's own problem
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
	ledgerLogged  = 20               // the most problems in one log line
)

// Ledger checks the ledger for housekeeping.
type Ledger interface {
	CheckLedger(ctx context.Context) (mediagate.LedgerReport, error)
}

// checkLedger checks the ledger. It logs what is broken at each check, until a person has mended
// it. The log line names the runbook, and only the first problems: a broken ledger may have
// thousands.
func (a *Activities) checkLedger(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ledgerTimeout)
	defer cancel()
	report, err := a.Ledger.CheckLedger(ctx)
	// A broken ledger is not an error of the check itself.
	if err == nil && !report.OK {
		a.Logger.ErrorContext(ctx, "the ledger does not hold", "runbook", "LedgerBroken",
			"problems", len(report.Problems), "first", report.Problems[:min(len(report.Problems), ledgerLogged)])
	}
	return err
}

// sweepTask removes the files of an ended task that the task does not show. Of a completed task
// these are the files of other attempts, and of abandoned calls of the attempt that completed it.
// Of any other task, and of an erased one, it removes all files.
//
// A task that has not ended keeps everything. A sweep may be repeated, since removing an object
// that is gone is no error.
func (a *Activities) sweepTask(ctx context.Context, taskID string) error {
	t, err := a.Store.TaskByID(ctx, taskID)
	if err != nil || !t.Status.Terminal() {
		return err
	}
	// The task's inputs were erased at the account's wish. They include media that came within the
	// request.
	if !t.InputsErasedAt.IsZero() {
		for _, key := range t.Plan.Uploads {
			if err := a.Sweeper.Delete(ctx, key); err != nil {
				return err
			}
		}
	}
	folder := mediagate.ResultFolder(taskID)
	var shown []string
	// A completed task keeps the files that it shows.
	if t.Status == mediagate.StatusCompleted && t.ErasedAt.IsZero() {
		own := len(t.Results) == 0 && t.Made.StandsAlone()
		for _, r := range t.Results {
			shown = append(shown, r.Key)
			own = own || strings.HasPrefix(r.Key, folder)
		}
		if !own {
			return nil // the task's own files are not known, so nothing is removed
		}
	}
	// First the unfinished uploads: one that ended later would leave a file behind.
	if _, err := a.Sweeper.AbortStale(ctx, folder, 0); err != nil {
		return err
	}
	removed, err := a.Sweeper.DeletePrefix(ctx, folder, shown...)
	if removed > 0 {
		a.Logger.InfoContext(ctx, "swept results that no task shows", "task", taskID, "objects", removed)
	}
	return err
}
