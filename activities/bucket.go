package activities

import (
	"context"
	"time"

	"github.com/mediagate/mediagate"
)

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
	for *away {
		retried, err := a.Store.RetryParked(ctx, mediagate.Parked{Reasons: []mediagate.ParkReason{mediagate.ParkStorage}}, retryBatch)
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
