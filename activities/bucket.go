package activities

import (
	"context"
	"time"

	"github.com/mediagate/mediagate"
)

const (
	probeTimeout = 10 * time.Second
	lateEvery    = time.Minute      // between two looks for files that came late
	lateBatch    = 100              // tasks a look
	lateTimeout  = 10 * time.Second // of a look; what is left comes up in the next
	lateAgain    = 10 * time.Minute // after files could not be removed
)

// tendBucket looks after what depends on the bucket until ctx ends: tasks that
// are parked for it, and files that nobody will see. It is the reconciler's,
// beside its passes, which must not wait for a bucket that hangs.
func (a *Activities) tendBucket(ctx context.Context) {
	var (
		w      bucketWatch
		looked time.Time
	)
	for ctx.Err() == nil {
		if err := mediagate.Guarded(func() error { return a.wakeForBucket(ctx, &w) }); err != nil && ctx.Err() == nil {
			a.Logger.WarnContext(ctx, "tasks parked for the bucket not woken", "error", err)
		}
		if now := a.Now(); now.Sub(looked) >= lateEvery {
			looked = now
			if err := mediagate.Guarded(func() error { return a.sweepLate(ctx) }); err != nil && ctx.Err() == nil {
				a.Logger.WarnContext(ctx, "late files not removed", "error", err)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(a.Settings.PassInterval):
		}
	}
}

// bucketWatch remembers which parked tasks were told that the bucket works. A
// bucket that takes the probe and not the file would make them try for ever:
// they are told again only after the probe has failed in between.
type bucketWatch struct{ told map[string]bool }

// wakeForBucket lets the tasks go on that are parked since the bucket was
// away, once it takes a write again. Nothing is asked of it while there are
// none.
func (a *Activities) wakeForBucket(ctx context.Context, w *bucketWatch) error {
	parked, err := a.parkedFor(ctx, mediagate.ParkStorage)
	if err != nil {
		return err
	}
	if len(parked) == 0 {
		w.told = nil
		return nil
	}
	probe, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if err := a.Bucket.Probe(probe); err != nil {
		w.told = nil
		return nil //nolint:nilerr // that it is away is why they are parked, and was logged
	}
	told, fresh := make(map[string]bool, len(parked)), parked[:0]
	for _, id := range parked {
		if told[id] = w.told[id]; !told[id] {
			fresh = append(fresh, id)
		}
	}
	w.told = told
	if len(fresh) == 0 {
		return nil
	}
	a.Logger.InfoContext(ctx, "the bucket works: waking what is parked for it", "tasks", len(fresh))
	woken := make(chan string, len(fresh))
	err = each(ctx, fresh, signalWidth, func(id string) error {
		err := a.Engine.SignalWake(ctx, id)
		if err == nil {
			woken <- id
		}
		return err
	})
	close(woken)
	for id := range woken {
		told[id] = true
	}
	return err
}

// parkedFor names all tasks that are parked for the reason.
func (a *Activities) parkedFor(ctx context.Context, reason mediagate.ParkReason) ([]string, error) {
	var all []string
	for after := ""; ; after = all[len(all)-1] {
		page, err := a.Store.ParkedFor(ctx, reason, after, passBatch)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if len(page) < passBatch {
			return all, nil
		}
	}
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
