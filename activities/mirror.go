package activities

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"go.temporal.io/sdk/activity"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/channel"
	"github.com/mediagate/mediagate/failpoint"
	"github.com/mediagate/mediagate/media"
	"github.com/mediagate/mediagate/providers"
)

// mirrorTries is how often a copy is tried that fails, or whose worker is lost.
const mirrorTries = 5

// MirrorResult copies the files of attempt N into the bucket, under keys made
// of task, attempt and index, so that a repetition replaces and never adds
// (D13). The copy ends the task. A link that has died is asked for once more at the
// vendor. An attempt that made something else than files is done without any.
//
// A piece that cannot be had is left out, as long as there is another. Returns
// KindInvalid with code result_unavailable where there is none, KindGone with that
// code for dead links while the vendor cannot be asked for others, KindUnavailable
// with code storage_unavailable while the bucket is away, KindTransient when
// the vendor's file server is, and KindUnreached with code channel_missing for
// a link that only the missing channel could allow.
func (a *Activities) MirrorResult(ctx context.Context, in StepArgs) (Answer, error) {
	defer a.stopped(ctx, in.TaskID)
	if tryOf(ctx) > mirrorTries {
		return Answer{}, a.fail(ctx, lastTry{mediagate.Errorf(mediagate.KindTransient, "the step took too long")})
	}
	row, err := a.Store.Attempt(ctx, in.TaskID, in.Step.N)
	if err != nil {
		return Answer{}, a.fail(ctx, err)
	}
	t, err := a.Store.TaskByID(ctx, in.TaskID)
	if err != nil {
		return Answer{}, a.fail(ctx, err)
	}
	if row.Outcome == nil || !row.Outcome.Succeeded || t.Status.Terminal() || row.Mirrored() {
		return a.stepDone(ctx, in)
	}
	if t.ParkReason == mediagate.ParkStorage {
		if err := a.Bucket.Probe(ctx); err != nil { // the file need not come from the vendor to find that out
			return Answer{}, a.fail(ctx, lastTry{err})
		}
	}
	err = a.copyFiles(ctx, t, row, tryOf(ctx), a.Settings.TurnWait)
	if errors.Is(err, errNoTurn) {
		activity.RecordHeartbeat(ctx, turned(turnedAway(ctx)+1)...)
		return Answer{}, a.fail(ctx, laterInTurn(ctx, "other files of the provider"))
	}
	switch {
	case ctx.Err() != nil:
		return Answer{}, ctx.Err() // cancelled, or the worker stops: nobody is to blame
	case err == nil:
		return a.stepDone(ctx, in)
	case tryOf(ctx) < mirrorTries:
		return Answer{}, a.fail(ctx, err)
	default:
		return Answer{}, a.fail(ctx, lastTry{err})
	}
}

// opener opens what a vendor offers: a link, which the guarded client follows,
// a reference, which only the channel that has the account can open, or what is
// in the bucket already.
func (a *Activities) opener(channel channel.Channel, gone error, row mediagate.Attempt, m mediagate.Media) Opener {
	if m.Stored != nil {
		return func(ctx context.Context) (io.ReadCloser, int64, error) { return a.Bucket.Open(ctx, m.Stored.Key) }
	}
	if m.Ref != "" {
		return func(ctx context.Context) (io.ReadCloser, int64, error) {
			if gone != nil {
				return nil, 0, gone
			}
			vendor, ok := channel.Vendor.(providers.Opener)
			if !ok {
				return nil, 0, mediagate.Errorf(mediagate.KindInternal, "the adapter of %s opens no references", row.Provider)
			}
			body, length, err := vendor.Open(ctx, row.Ref, m)
			return body, length, withCode(err, string(mediagate.CodeResultUnavailable))
		}
	}
	return func(ctx context.Context) (io.ReadCloser, int64, error) {
		body, length, err := a.Fetcher.Fetch(ctx, m.URL, channel.MediaHost)
		if gone != nil && mediagate.Is(err, mediagate.KindInvalid) {
			return nil, 0, gone // the host may be the channel's own, which may be private
		}
		return body, length, withCode(err, string(mediagate.CodeResultUnavailable))
	}
}

// mirrorOne copies the file at the position.
func (f *files) mirrorOne(ctx context.Context, position int, m mediagate.Media) (mediagate.Result, error) {
	f.copied.begin(position)
	fetch := f.opener(f.channel, f.gone, f.row, m)
	fetchCtx, hangUp := context.WithCancel(ctx)
	defer hangUp()
	var file *media.Source
	open := func(context.Context) (io.ReadCloser, int64, error) {
		body, length, err := fetch(fetchCtx)
		if err != nil {
			return nil, 0, err
		}
		file = media.NewSource(body, hangUp)
		file.Half(length, halfRead)
		if media.IsExtra(m.Role) {
			file.Share(&f.patience)
		}
		return file, length, nil
	}
	result, err := f.Bucket.Mirror(ctx, ResultKey(f.task.ID, f.row.N, position), open, Limits{
		MaxBytes: f.task.Plan.MaxBytes, Media: media.ClassOf(m, f.task.Plan.Media), Owner: f.row.Provider, Progress: f.copied.bytes.Store,
	})
	switch {
	case err == nil:
		return result, nil
	case file != nil && file.Err() != nil:
		return result, media.BrokenOff(errors.Join(file.Err(), err))
	default:
		return result, err
	}
}

// halfRead is where tests kill a process amid a copy.
func halfRead() { failpoint.Hit(failpoint.MirrorHalf) }

// manyParts is the size from which a file may have been sent in parts, which a
// killed upload leaves behind.
const manyParts = 5 << 20

// sweepLosers gives up other uploads of the files that were just stored: those
// of workers that died, hang, or do not know that their run was replaced.
func (a *Activities) sweepLosers(ctx context.Context, taskID string, n int, results []mediagate.Result) {
	if !slices.ContainsFunc(results, func(r mediagate.Result) bool { return r.Size >= manyParts }) {
		return
	}
	if _, err := a.Sweeper.AbortStale(ctx, attemptFolder(taskID, n), 0); err != nil {
		a.Logger.WarnContext(ctx, "unfinished uploads not swept", "task", taskID, "error", err)
	}
}

// staleLink reports that new links may help: the old one is dead, or its
// server is.
func staleLink(err error) bool {
	if err == nil {
		return false
	}
	k := mediagate.KindOf(err)
	return k == mediagate.KindGone || k == mediagate.KindTransient
}

// ResultKey is the object key of a result file.
func ResultKey(taskID string, n, index int) string {
	return attemptFolder(taskID, n) + strconv.Itoa(index)
}

// attemptFolder is where the files of an attempt are.
func attemptFolder(taskID string, n int) string {
	return fmt.Sprintf("%s%d/", mediagate.ResultFolder(taskID), n)
}

// freshMedia polls once for new links. answered says that there are no others: those
// of a vendor that keeps no jobs are the only ones.
func (a *Activities) freshMedia(ctx context.Context, channel channel.Channel, row mediagate.Attempt) (media []mediagate.Media, answered bool) {
	switch {
	case row.Route.Sync:
		return nil, !stored(row.Outcome.Media)
	case channel.Vendor == nil:
		return nil, false
	}
	report, err := channel.Vendor.Poll(ctx, row.Ref)
	if err != nil || report.Outcome == nil {
		return nil, mediagate.Is(err, mediagate.KindNotFound)
	}
	return report.Outcome.Media, true
}

func withCode(err error, code string) error {
	var e *mediagate.Error
	if errors.As(err, &e) && e.Code == "" {
		c := *e
		c.Code = code
		return &c
	}
	return err
}
