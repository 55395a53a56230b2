package activities

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/mediagate/mediagate"
)

// What is past its time is removed by a workflow that a schedule starts. Each kind goes
// in slices, each of which is a transaction or a call of the bucket, and may be cut off
// and repeated. Rows go first, and objects once no row names them: so a crash leaves an
// object for the next run, never a row that names what is gone (D16, D13).

const (
	removeStep   = time.Minute     // of one activity; its run goes on with the next
	sliceTimeout = 5 * time.Minute // of objects that go by their age, as many as are removed in it
	filesGrace   = time.Hour       // longer than a submit takes, which has read that a file is there
	recordLife   = day             // of an idempotency record, from the end of its task
	auditLife    = 400 * day       // a year and a month of it are there
	strayAge     = day             // of an object that no row names: no copy or upload takes as long
	strayPause   = 20 * time.Hour  // between two walks through the results: one a day
	uploadAge    = day             // an unfinished upload this old belongs to nobody
	requestAge   = uploadLink + day
)

// RemoveArgs name what RemoveExpired is to go on with.
type RemoveArgs struct {
	Kind  mediagate.Removal `json:"kind"`
	After string            `json:"after,omitempty"` // where the slice before ended
}

// RemoveExpired removes what is past its time of one kind, slice after slice, for a
// minute. It tells how much went, and whether there is more. A worker that stops ends it
// between two slices.
func (a *Activities) RemoveExpired(ctx context.Context, in RemoveArgs) (mediagate.RemovedSlice, error) {
	out := mediagate.RemovedSlice{Next: in.After, More: true}
	calls, cancel := untilStopped(ctx)
	defer cancel()
	defer heartbeat(ctx, noDetails, nil)()
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

func (a *Activities) removeSlice(
	ctx context.Context, kind mediagate.Removal, after string,
) (mediagate.RemovedSlice, error) {
	keep := a.Settings.Keep
	rows := func(kept, grace time.Duration) (mediagate.RemovedSlice, error) {
		if kept == 0 {
			return mediagate.RemovedSlice{}, nil
		}
		return a.Store.RemoveRows(ctx, kind, a.Now().Add(-kept-grace), after)
	}
	switch kind {
	case mediagate.RemoveDeliveries:
		return rows(keep.Deliveries, 0)
	case mediagate.RemoveEndpointDeliveries: // some are of no task, with which they would go
		return rows(cmp.Or(keep.Deliveries, keep.Tasks), 0)
	case mediagate.RemoveIdempotency:
		return rows(recordLife, 0)
	case mediagate.RemoveResults:
		return rows(keep.Results, filesGrace)
	case mediagate.RemoveTasks, mediagate.RemoveSpeeches:
		return rows(keep.Tasks, 0)
	case mediagate.RemoveAudit:
		return rows(auditLife, 0)
	case mediagate.RemoveSessions:
		return a.swept(ctx, kind, a.Store.RemoveSessions)
	case mediagate.RemoveFiles:
		return a.swept(ctx, kind, a.sweepFiles)
	case mediagate.RemoveUploads:
		return a.swept(ctx, kind, func(ctx context.Context) (int, error) {
			return a.Sweeper.DeleteOlder(ctx, mediagate.UploadFolder, requestAge)
		})
	case mediagate.RemoveUnfinished:
		return a.swept(ctx, kind, func(ctx context.Context) (aborted int, err error) {
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
	case mediagate.RemovalRun:
		return a.swept(ctx, kind, func(context.Context) (int, error) { return 0, nil })
	}
	return mediagate.RemovedSlice{},
		mediagate.Errorf(mediagate.KindInternal, "nothing is known of how %q are removed", kind)
}

// swept removes all of a kind at once, or as many as it takes until the time is over.
func (a *Activities) swept(
	ctx context.Context, kind mediagate.Removal, sweep func(context.Context) (int, error),
) (mediagate.RemovedSlice, error) {
	removed, err := sweep(ctx)
	noting, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	noted := a.Store.NoteRemoval(noting, kind, "", removed, err == nil)
	if ctx.Err() != nil {
		return mediagate.RemovedSlice{Removed: removed, More: true}, noted
	}
	return mediagate.RemovedSlice{Removed: removed}, errors.Join(err, noted)
}

// removeStrays goes on with the walk through the results: objects that are a day old and
// that no row names are removed. A walk that has ended is followed by the next a day
// later.
func (a *Activities) removeStrays(ctx context.Context, after string) (mediagate.RemovedSlice, error) {
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
	if err := a.Sweeper.DeleteAll(ctx, strays); err != nil {
		return mediagate.RemovedSlice{}, err
	}
	slice := mediagate.RemovedSlice{Removed: len(strays), More: more}
	if more {
		slice.Next = last
	}
	return slice, a.Store.NoteRemoval(ctx, mediagate.RemoveObjects, slice.Next, slice.Removed, !more)
}

// fileAge is when uploads are removed: later than their links end by more
// than a submit may take from its check to its row.
const fileAge = mediagate.FileLife + time.Hour

// sweepFiles removes uploads whose links have ended, unless a task is open that
// was submitted while they had not: it may name them. Which task names what is
// on no record, so the oldest one holds back all.
func (a *Activities) sweepFiles(ctx context.Context) (removed int, err error) {
	oldest, err := a.Store.OldestOpen(ctx)
	if err != nil {
		return 0, err
	}
	age := fileAge
	if !oldest.IsZero() {
		age += max(0, a.Now().Sub(oldest))
	}
	return a.Sweeper.DeleteOlder(ctx, mediagate.FileFolder, age)
}
