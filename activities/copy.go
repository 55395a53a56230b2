package activities

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/failpoint"
	"github.com/mediagate/mediagate/limit"
)

const (
	// copyLook is the pause between two looks at the row of a task whose
	// files are being copied.
	copyLook = 5 * time.Second
	// aloneAtMost is at how many looks in a row a brief copy may be alone.
	aloneAtMost = 1
	// copyRest is how long a copy that was stopped may take to clean up.
	copyRest = 15 * time.Second
	// briefRest is how much of that is waited for by who keeps a channel from being
	// polled meanwhile.
	briefRest = time.Second
)

// Why a copy is stopped before its end.
var (
	errCopyUnneeded = errors.New("nobody needs the copy any more")
	errCopyStopped  = errors.New("the worker stops")
	errCopyAlone    = &mediagate.Error{Kind: mediagate.KindTransient, Message: "nobody waited for the copy"} // who joins it at that moment tries again
)

// progress is how far a copy has come, for who looks on.
type progress struct{ index, bytes atomic.Int64 }

// begin turns to the file at the position.
func (p *progress) begin(position int) {
	p.index.Store(int64(position))
	p.bytes.Store(0)
}

// details are those of a heartbeat. turned goes with them to the next try.
func (p *progress) details(turned int32) []any { return []any{p.index.Load(), p.bytes.Load(), turned} }

// copying is one copy under way in this process. It belongs to no activity: a
// Temporal that is away, or that gives an activity up, is no reason to throw
// half a file away. The activity that is tried again here joins it.
type copying struct {
	progress
	stop  context.CancelCauseFunc
	done  chan struct{}
	err   error // once done is closed
	users atomic.Int32
	brief atomic.Bool // it was begun for a task whose step may begin anywhere
	try   int32       // which one this is of those of the step; see media.Dispensable
}

// copyKey names the attempt of which files are copied.
type copyKey struct {
	TaskID string
	N      int
}

// copies are those under way in this process, by attempt.
type copies struct {
	mu    sync.Mutex
	under map[copyKey]*copying
}

// join returns the copy of the attempt that is under way, or the one that begin
// begins, and counts the caller among its users until leave is called. Without begin
// it may find none.
func (c *copies) join(key copyKey, begin func(*copying)) (joined *copying, leave func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one, ok := c.under[key]
	if !ok {
		if begin == nil {
			return nil, nil, false
		}
		one = &copying{done: make(chan struct{})}
		begin(one) // whose end waits for the lock
		if c.under == nil {
			c.under = make(map[copyKey]*copying)
		}
		c.under[key] = one
	}
	one.users.Add(1)
	return one, func() { one.users.Add(-1) }, true
}

// end closes the copy: who comes later begins another.
func (c *copies) end(key copyKey, one *copying, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.under, key)
	one.err = err
	close(one.done)
}

// copyFiles copies the files of an attempt and stores where they are, or
// waits for the copy that does. It ends early with ctx, and the copy with it
// where ctx says that nobody wants it. It returns errNoTurn where there is no permit
// for it within moments.
func (a *Activities) copyFiles(ctx context.Context, task mediagate.Task, row mediagate.Attempt, try int32) error {
	one, leave, err := a.joinCopy(ctx, task, row, a.Settings.TurnWait, func(one *copying) { one.try = try })
	if err != nil {
		return err
	}
	defer leave()
	one.brief.Store(false)
	// A cancel arrives by a heartbeat, which must therefore not wait for bytes;
	// that none come is noticed by the source.
	times := turnedAway(ctx)
	defer heartbeat(ctx, func() []any { return one.details(times) })()
	return one.wait(ctx)
}

// copyBriefly does what copyFiles does, if there is a permit while patience lasts, for
// who is no step of the task's run. Where it takes too long, or Temporal is lost, the copy
// goes on for a while: the step may join it, or have begun another one elsewhere. Where
// ctx ends otherwise it is stopped, unless the step has joined it: what ends the
// channel's polling here says nothing about the task.
func (a *Activities) copyBriefly(ctx context.Context, task mediagate.Task, row mediagate.Attempt, patience time.Duration) error {
	one, leave, err := a.joinCopy(ctx, task, row, patience, func(one *copying) {
		one.try = 1
		one.brief.Store(true)
	})
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, a.Settings.QuickCopy)
	defer cancel()
	select {
	case <-one.done:
		return one.err
	case <-ctx.Done():
	}
	cause := context.Cause(ctx)
	ended := errors.Is(cause, context.Canceled) || errors.Is(cause, worker.ErrWorkerShutdown) || temporal.IsCanceledError(cause)
	if ended && one.users.Load() == 1 {
		one.stop(errCopyAlone)
		select {
		case <-one.done:
		case <-time.After(briefRest):
		}
	}
	return ctx.Err()
}

// joinCopy joins the copy of the attempt, which it begins if none is under way.
func (a *Activities) joinCopy(
	ctx context.Context, task mediagate.Task, row mediagate.Attempt, patience time.Duration, first func(*copying),
) (one *copying, leave func(), err error) {
	key := copyKey{TaskID: task.ID, N: row.N}
	if one, leave, ok := a.copies.join(key, nil); ok {
		return one, leave, nil
	}
	permit, err := inTurn(ctx, patience, func(ctx context.Context) (*limit.Lease, error) {
		return a.Limits.Copies.Acquire(ctx, row.Provider, 1)
	})
	if err != nil {
		return nil, nil, err
	}
	begun := false
	one, leave, _ = a.copies.join(key, func(one *copying) {
		first(one)
		a.beginCopy(ctx, task, row, one, permit)
		begun = true
	})
	if !begun {
		permit.Release()
	}
	return one, leave, nil
}

// wait waits for the copy's end, or that of ctx, and stops the copy where ctx says
// that nobody wants it.
func (c *copying) wait(ctx context.Context) error {
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
	}
	cause := context.Cause(ctx)
	switch {
	case temporal.IsCanceledError(cause):
		c.stop(errCopyUnneeded)
	case errors.Is(cause, worker.ErrWorkerShutdown), errors.Is(cause, context.Canceled):
		c.stop(errCopyStopped)
	default:
		return &mediagate.Error{Kind: mediagate.KindTransient, Message: "Temporal was lost while a file was copied", Err: cause}
	}
	<-c.done
	return ctx.Err()
}

// beginCopy starts the copy, which ends with its own context. The permit is the
// copy's, which may outlive the activity.
func (a *Activities) beginCopy(ctx context.Context, task mediagate.Task, row mediagate.Attempt, one *copying, permit *limit.Lease) {
	stopping := activity.GetWorkerStopChannel(ctx)
	ctx, expire := context.WithTimeout(context.WithoutCancel(ctx), mediagate.CopyLimit)
	ctx, one.stop = context.WithCancelCause(ctx)
	key := copyKey{TaskID: task.ID, N: row.N}
	go func() {
		defer expire()
		defer permit.Release()
		var err error
		defer func() {
			if p := recover(); p != nil {
				a.Logger.ErrorContext(ctx, "copy panicked", "task", task.ID, "attempt", row.N, "error", mediagate.Panicked(p))
				err = errors.New("the copy panicked")
			}
			one.stop(nil)
			a.copies.end(key, one, err)
		}()
		var watching sync.WaitGroup
		watching.Go(func() { a.watchCopy(ctx, stopping, key, one) })
		err = a.copyAndStore(ctx, task, row, one)
		cause := context.Cause(ctx)
		one.stop(nil)
		watching.Wait()
		if errors.Is(cause, errCopyUnneeded) || errors.Is(cause, errCopyStopped) || errors.Is(cause, errCopyAlone) {
			err = cause
		}
		if errors.Is(cause, errCopyUnneeded) {
			a.dropUnwanted(ctx, task.ID)
		}
	}()
}

func (a *Activities) copyAndStore(ctx context.Context, task mediagate.Task, row mediagate.Attempt, one *copying) error {
	results, err := a.mirrorAll(ctx, task, row, one)
	if err != nil {
		return err
	}
	a.sweepLosers(ctx, task.ID, row.N, results)
	if stored(row.Outcome.Media) { // before the record: who finds that does nothing more
		a.dropManifests(ctx, task.ID, row.N, results)
	}
	failpoint.Hit(failpoint.Mirrored)
	return a.mirrored(ctx, task, row, results)
}

// dropManifests removes what nobody has to find any more, since the outcome of
// the attempt is on record.
func (a *Activities) dropManifests(ctx context.Context, taskID string, n int, results []mediagate.Result) {
	if _, err := a.Sweeper.DeletePrefix(ctx, attemptFolder(taskID, n), keysOf(results)...); err != nil {
		a.Logger.WarnContext(ctx, "manifests not removed", "task", taskID, "attempt", n, "error", err)
	}
}

// watchCopy stops a copy that the rows have no use for: its task has ended or
// is to be cancelled, or somebody else has stored the files. So one that no
// activity waits for any more hears of it as well. Where the worker stops, it
// gets no grace time either. A brief one that no step has joined at two looks in a
// row, although one of the run's steps is at work, is taken to be made elsewhere.
func (a *Activities) watchCopy(ctx context.Context, stopping <-chan struct{}, key copyKey, one *copying) {
	tick := time.NewTicker(copyLook)
	defer tick.Stop()
	alone := 0
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			return
		case <-stopping:
			if one.users.Load() == 0 {
				one.stop(errCopyStopped)
				return
			}
			stopping = nil
		case <-tick.C:
			if a.copyUnwanted(ctx, key) {
				one.stop(errCopyUnneeded)
				return
			}
			if alone++; one.users.Load() > 0 || !one.brief.Load() || !a.stepAtWork(ctx, key) {
				alone = 0
			}
			if alone > aloneAtMost {
				one.stop(errCopyAlone)
				return
			}
		}
	}
}

// stepAtWork reports that a step of the task's run gives signs of life.
func (a *Activities) stepAtWork(ctx context.Context, key copyKey) bool {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	state, err := a.Engine.Look(ctx, key.TaskID)
	return err == nil && state == RunBusy
}

func (a *Activities) copyUnwanted(ctx context.Context, key copyKey) bool {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	task, err := a.Store.TaskByID(ctx, key.TaskID)
	if err != nil {
		return mediagate.Is(err, mediagate.KindNotFound)
	}
	row, err := a.Store.Attempt(ctx, key.TaskID, key.N)
	return task.Status.Terminal() || !task.CancelRequestedAt.IsZero() || err == nil && row.Mirrored()
}

// dropUnwanted removes what was copied for a task that has ended without it. What
// is missed here housekeeping finds.
func (a *Activities) dropUnwanted(ctx context.Context, taskID string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), copyRest)
	defer cancel()
	if err := a.sweepTask(ctx, taskID); err != nil {
		a.Logger.WarnContext(ctx, "files of a stopped copy not removed", "task", taskID, "error", err)
	}
}
