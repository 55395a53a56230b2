package activities

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/mediagate/mediagate"
)

// The workflow Expire, which a schedule starts, removes rows and objects that are past their time.
// It removes each kind in slices. A slice is one transaction, or one call to the bucket. It may be
// cut off and repeated. Rows are removed first, and objects once no row names them. So a crash
// leaves an object for the next run, and never a row that names a missing object (D16, D13).

const (
	removeStep   = time.Minute     // of one activity; the run continues with the next
	sliceTimeout = 5 * time.Minute // of objects that are removed by age: as many as fit
	filesGrace   = time.Hour       // longer than a submit takes after it has read that a file exists
	recordLife   = day             // of an idempotency record, after the end of its task
	auditLife    = 400 * day       // a little more than a year and a month
	strayAge     = day             // of an object that no row names; no copy or upload takes that long
	strayPause   = 20 * time.Hour  // between two passes over the results: about one a day
	uploadAge    = day             // an unfinished upload of that age is abandoned
	requestAge   = uploadLink + day
)

// RemoveArgs says where RemoveExpired continues. An empty After begins at the mark, which the
// database keeps between runs.
type RemoveArgs struct {
	Kind  mediagate.Removal `json:"kind"`
	After string            `json:"after,omitempty"` // the end of the slice before
}

// RemoveExpired removes what is past its time of one kind, slice after slice, for a minute. It
// returns how many items it removed, and whether there are more. If the worker stops, the slice
// that is under way is cut off, and the next activity repeats it.
func (a *Activities) RemoveExpired(ctx context.Context, in RemoveArgs) (mediagate.RemovedSlice, error) {
	// The end of the last complete slice is also the place where the next activity continues.
	out := mediagate.RemovedSlice{Next: in.After, More: true}
	calls, cancel := untilStopped(ctx)
	defer cancel()
	defer heartbeat(ctx, noDetails, nil)()
	// The activity ends after a minute, so that the run can show what it removed and turn to the
	// next kind.
	for end := a.Now().Add(removeStep); out.More && calls.Err() == nil && a.Now().Before(end); {
		limited, done := context.WithTimeout(calls, sliceTimeout)
		slice, err := a.removeSlice(limited, in.Kind, out.Next)
		done()
		out.Removed += slice.Removed
		if err != nil && calls.Err() == nil {
			return out, a.fail(ctx, err)
		}
		if err == nil {
			out.Next, out.More = slice.Next, slice.More
		}
	}
	return out, ctx.Err()
}

// removeSlice removes one slice of a kind. For rows the database decides in the same transaction
// whether they are due (D16). For objects their age decides.
func (a *Activities) removeSlice(
	ctx context.Context, kind mediagate.Removal, after string,
) (mediagate.RemovedSlice, error) {
	keep := a.Settings.Keep
	rows := func(kept, grace time.Duration) (mediagate.RemovedSlice, error) {
		// Zero means that rows of this kind are kept for ever.
		if kept == 0 {
			return mediagate.RemovedSlice{}, nil
		}
		return a.Store.RemoveRows(ctx, kind, a.Now().Add(-kept-grace), after)
	}
	switch kind {
	case mediagate.RemoveDeliveries:
		return rows(keep.Deliveries, 0)
	case mediagate.RemoveEndpointDeliveries: // some belong to no task, and are not removed with one
		return rows(cmp.Or(keep.Deliveries, keep.Tasks), 0)
	case mediagate.RemoveIdempotency:
		return rows(recordLife, 0)
	case mediagate.RemoveResults:
		// The grace covers a submit that has just read that the file exists.
		return rows(keep.Results, filesGrace)
	case mediagate.RemoveTasks, mediagate.RemoveSpeeches:
		return rows(keep.Tasks, 0)
	case mediagate.RemoveAudit:
		return rows(auditLife, 0)
	case mediagate.RemoveSessions:
		return a.removeAll(ctx, kind, a.Store.RemoveSessions)
	case mediagate.RemoveFiles:
		return a.removeAll(ctx, kind, a.sweepFiles)
	case mediagate.RemoveUploads:
		return a.removeAll(ctx, kind, func(ctx context.Context) (int, error) {
			return a.Sweeper.DeleteOlder(ctx, mediagate.UploadFolder, requestAge)
		})
	case mediagate.RemoveUnfinished:
		return a.removeAll(ctx, kind, func(ctx context.Context) (aborted int, err error) {
			for _, prefix := range []string{mediagate.ResultsFolder, mediagate.UploadFolder, mediagate.FileFolder} {
				n, err := a.Sweeper.AbortStale(ctx, prefix, uploadAge)
				if aborted += n; err != nil {
					return aborted, err
				}
			}
			return aborted, nil
		})
	case mediagate.RemoveObjects:
		return a.removeStrays(ctx, after)
	// This only records that a run has come through all kinds.
	case mediagate.RemovalRun:
		return a.removeAll(ctx, kind, func(context.Context) (int, error) { return 0, nil })
	}
	return mediagate.RemovedSlice{},
		mediagate.Errorf(mediagate.KindInternal, "nothing is known of how %q are removed", kind)
}

// removeAll removes all items of a kind at once, or as many as fit into the time. It keeps no mark:
// each run goes through all items of the kind again.
func (a *Activities) removeAll(
	ctx context.Context, kind mediagate.Removal, sweep func(context.Context) (int, error),
) (mediagate.RemovedSlice, error) {
	removed, err := sweep(ctx)
	noting, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	// The removals are recorded even if the time ran out.
	noted := a.Store.NoteRemoval(noting, kind, "", removed, err == nil)
	if ctx.Err() != nil {
		return mediagate.RemovedSlice{Removed: removed, More: true}, noted
	}
	return mediagate.RemovedSlice{Removed: removed}, errors.Join(err, noted)
}

// removeStrays continues the pass over the results: it removes objects that are a day old and that
// no row names. The next pass begins 20 hours after the end of this one (strayPause).
//
// The order is: list the old objects, ask the database which of them no row names, delete those. An
// object of a copy that is under way is younger than a day, so it is never listed.
func (a *Activities) removeStrays(ctx context.Context, after string) (mediagate.RemovedSlice, error) {
	// A new pass, or one that a crash cut off: the mark says where to continue.
	if after == "" {
		states, err := a.Store.RemovalStates(ctx)
		if err != nil {
			return mediagate.RemovedSlice{}, err
		}
		state := states[mediagate.RemoveObjects]
		if after = state.Mark; after == "" && a.Now().Before(state.EndedAt.Add(strayPause)) {
			return mediagate.RemovedSlice{}, nil
		}
	}
	keys, last, more, err := a.Sweeper.Older(ctx, mediagate.ResultsFolder, after, strayAge)
	if err != nil {
		return mediagate.RemovedSlice{}, err
	}
	strays, err := a.Store.Unnamed(ctx, keys)
	if err != nil {
		return mediagate.RemovedSlice{}, err
	}
	// The mark moves only after the removal. A crash in between repeats the slice, which does no
	// harm.
	if err := a.Sweeper.DeleteAll(ctx, strays); err != nil {
		return mediagate.RemovedSlice{}, err
	}
	// Without more objects the mark becomes empty, and the next pass begins at the first key.
	slice := mediagate.RemovedSlice{Removed: len(strays), More: more}
	if more {
		slice.Next = last
	}
	return slice, a.Store.NoteRemoval(ctx, mediagate.RemoveObjects, slice.Next, slice.Removed, !more)
}

// fileAge is the age at which uploads are removed. It is longer than the life of their links, by
// more than a submit takes from its check to its row.
const fileAge = mediagate.FileLife + time.Hour

// sweepFiles removes uploads whose links have ended. It keeps them while a task is open that was
// submitted before they ended, since that task may name them. No record says which task names which
// upload, so the oldest open task holds back all of them. For example, if the oldest open task is
// ten days old, uploads are kept until they are 13 days and an hour old.
func (a *Activities) sweepFiles(ctx context.Context) (removed int, err error) {
	oldest, err := a.Store.OldestOpen(ctx)
	if err != nil {
		return 0, err
	}
	// An upload may have been named by the oldest open task if its link worked when that task was
	// submitted.
	age := fileAge
	if !oldest.IsZero() {
		age += max(0, a.Now().Sub(oldest))
	}
	return a.Sweeper.DeleteOlder(ctx, mediagate.FileFolder, age)
}
