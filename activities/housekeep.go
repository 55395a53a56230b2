package activities

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"
	"golang.org/x/sync/errgroup"

	"github.com/mediagate/mediagate"
)

const (
	storeTimeout = 15 * time.Second // of one call to the database
	usageBatch   = 500
	ensureWide   = 8
	slotsEvery   = time.Minute
	batchLimit   = 2 * time.Minute // of a batch; what is left comes up in the next one
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
	calls, cancel := untilStopped(ctx, activity.GetWorkerStopChannel(ctx))
	defer heartbeat(ctx, func() []any { return []any{*last.Load()} })()
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
		activity.RecordHeartbeat(ctx, r)
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
	all := []chore{
		{min(often, wakeEvery), limited(func(ctx context.Context) error { return a.wakeDue(ctx, t) }), "wakes not worked off"},
		{often, limited(a.ensureChannels), "channels not ensured"},
		{often, limited(a.countUsage), "usage not counted"},
		{slotsEvery, limited(a.Store.ExpireSlots), "slots of abandoned jobs not freed"},
		{min(2*often, probeEvery), func(ctx context.Context) error { return a.retryForBucket(ctx, &bucketAway) }, "tasks parked for the bucket not tried again"},
		{lateEvery, a.sweepLate, "late files not removed"},
	}
	if a.Ledger != nil {
		all = append(all, chore{ledgerEvery, a.proveLedger, "the ledger was not checked"})
	}
	return all
}

// ensureChannels keeps the pollers running of all channels with rows.
func (a *Activities) ensureChannels(ctx context.Context) error {
	channels, err := a.Store.AwaitChannels(ctx)
	return errors.Join(err, each(ctx, channels, ensureWide, func(name string) error { return a.Engine.EnsureChannel(ctx, name) }))
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
		if err := mediagate.Guarded(func() error { return do(ctx) }); err != nil && ctx.Err() == nil { // a worker that stops blames nobody
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
