package activities

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/failpoint"
	"github.com/mediagate/mediagate/limit"
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

// copyFiles copies the files of an attempt and stores where they are, which ends the
// task. try is which one this is of the step's; see media.Dispensable. Returns errNoTurn
// where there is no permit for it while patience lasts.
//
// The copy ends with ctx: a cancel, a worker that stops, or a Temporal that was lost.
// The next try begins anew under the same keys (D13).
func (a *Activities) copyFiles(ctx context.Context, task mediagate.Task, row mediagate.Attempt, try int32, patience time.Duration) error {
	permit, err := inTurn(ctx, patience, func(ctx context.Context) (*limit.Permit, error) {
		return a.Limits.Copies.Acquire(ctx, row.Provider, 1)
	})
	if err != nil {
		return err
	}
	defer permit.Release()
	copied, times := &progress{}, turnedAway(ctx)
	// A cancel arrives by a heartbeat, which must therefore not wait for bytes; that
	// none come is noticed by the source.
	defer heartbeat(ctx, func() []any { return copied.details(times) })()
	return mediagate.Guarded(func() error {
		results, err := a.mirrorAll(ctx, task, row, copied, try)
		if err != nil {
			return err
		}
		a.sweepLosers(ctx, task.ID, row.N, results)
		if stored(row.Outcome.Media) { // before the record: who finds that does nothing more
			a.dropManifests(ctx, task.ID, row.N, results)
		}
		failpoint.Hit(failpoint.Mirrored)
		return a.mirrored(ctx, task, row, results)
	})
}

// dropManifests removes what nobody has to find any more, since the outcome of
// the attempt is on record.
func (a *Activities) dropManifests(ctx context.Context, taskID string, n int, results []mediagate.Result) {
	if _, err := a.Sweeper.DeletePrefix(ctx, attemptFolder(taskID, n), keysOf(results)...); err != nil {
		a.Logger.WarnContext(ctx, "manifests not removed", "task", taskID, "attempt", n, "error", err)
	}
}
