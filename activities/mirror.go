package activities

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/failpoint"
)

// MirrorResult copies the files of attempt n into the bucket, under keys made
// of task, attempt and index, so that a repetition replaces and never adds
// (D13). A link that has died is asked for once more at the vendor.
//
// Returns KindGone with code result_unavailable for links that stay dead,
// KindInvalid for files that are no such media or too large, KindUnavailable
// with code storage_unavailable while the bucket is away, KindTransient when
// the vendor's file server is, and KindUnreached with code channel_missing for
// a link that only the missing channel could allow.
func (a *Activities) MirrorResult(ctx context.Context, in AttemptArgs) (mediagate.Story, error) {
	row, err := a.Store.Attempt(ctx, in.TaskID, in.N)
	if err != nil {
		return mediagate.Story{}, a.fail(ctx, err)
	}
	if row.Outcome == nil || !row.Outcome.Succeeded || len(row.Results) > 0 {
		return a.story(ctx, in.TaskID)
	}
	task, err := a.Store.TaskByID(ctx, in.TaskID)
	if err != nil {
		return mediagate.Story{}, a.fail(ctx, err)
	}
	if task.Status.Terminal() {
		return a.story(ctx, in.TaskID)
	}
	// The outcome has reached the workflow: its signal is no longer owed.
	if err := a.Store.DropAwait(ctx, in.TaskID, in.N); err != nil {
		return mediagate.Story{}, a.fail(ctx, err)
	}
	// A cancel arrives by a heartbeat, which must therefore not wait for bytes;
	// that none come is noticed by the source.
	var copied progress
	defer heartbeat(ctx, copied.details)()
	results, err := a.mirrorAll(ctx, task, row, &copied)
	if err != nil && ctx.Err() != nil {
		return mediagate.Story{}, ctx.Err() // cancelled, or the worker stops: nobody is to blame
	}
	if err != nil {
		return mediagate.Story{}, a.fail(ctx, err)
	}
	a.sweepLosers(ctx, in, results)
	failpoint.Hit(failpoint.Mirrored)
	err = a.Store.StoreMirrored(ctx, in.TaskID, in.N, results)
	if ctx.Err() != nil {
		return mediagate.Story{}, ctx.Err()
	}
	if err != nil {
		return mediagate.Story{}, a.fail(ctx, err)
	}
	return a.story(ctx, in.TaskID)
}

// progress is how far a copy has come, for who looks on.
type progress struct{ index, bytes atomic.Int64 }

func (p *progress) details() []any { return []any{p.index.Load(), p.bytes.Load()} }

// fetchFunc opens one of the vendor's files; a length of -1 is unknown.
type fetchFunc func(context.Context) (io.ReadCloser, int64, error)

func (a *Activities) mirrorAll(ctx context.Context, task mediagate.Task, row mediagate.Attempt, copied *progress) ([]mediagate.Result, error) {
	channel, gone := a.provenChannel(ctx, row) // without it, only public hosts can be fetched from
	fetch := func(url string) fetchFunc {
		return func(ctx context.Context) (io.ReadCloser, int64, error) {
			body, length, err := a.Fetcher.Fetch(ctx, url, channel.MediaHost)
			if err != nil && gone != nil && mediagate.KindOf(err) == mediagate.KindInvalid {
				return nil, 0, gone // the host may be the channel's own, which may be private
			}
			return body, length, withCode(err, mediagate.CodeResultUnavailable)
		}
	}
	media := row.Outcome.Media
	if len(media) == 0 {
		return nil, &mediagate.Error{
			Kind: mediagate.KindInvalid, Code: mediagate.CodeResultUnavailable, Message: "the provider returned no file",
		}
	}
	results := make([]mediagate.Result, len(media))
	refreshed := false
	for i := 0; i < len(media); i++ {
		result, err := a.mirrorOne(ctx, task, row.N, i, fetch(media[i].URL), copied)
		if staleLink(err) && !refreshed {
			refreshed = true
			if fresh := a.freshMedia(ctx, channel, row); len(fresh) == len(media) {
				media = fresh
				i--
				continue
			}
		}
		if err != nil {
			return nil, err
		}
		if result.Duration == 0 {
			result.Duration = media[i].Duration
		}
		results[i] = result
	}
	return results, nil
}

func (a *Activities) mirrorOne(ctx context.Context, task mediagate.Task, n, index int, fetch fetchFunc, copied *progress) (mediagate.Result, error) {
	copied.index.Store(int64(index))
	copied.bytes.Store(0)
	fetchCtx, hangUp := context.WithCancel(ctx)
	defer hangUp()
	body, length, err := fetch(fetchCtx)
	if err != nil {
		return mediagate.Result{}, err
	}
	defer body.Close()
	source := newSource(body, length/2, hangUp)
	result, err := a.Bucket.Mirror(ctx, ResultKey(task.ID, n, index), source, Limits{
		MaxBytes: task.Plan.MaxBytes, Media: task.Plan.Media, Progress: copied.bytes.Store,
	})
	switch {
	case err == nil:
		return result, nil
	case source.err != nil:
		return result, &mediagate.Error{
			Kind: mediagate.KindTransient, Code: mediagate.CodeResultUnavailable,
			Message: "the provider's file broke off", Err: errors.Join(source.err, err),
		}
	default:
		return result, err
	}
}

// manyParts is the size from which a file may have been sent in parts, which a
// killed upload leaves behind.
const manyParts = 5 << 20

// sweepLosers gives up other uploads of the files that were just stored: those
// of workers that died, hang, or do not know that their run was replaced.
func (a *Activities) sweepLosers(ctx context.Context, in AttemptArgs, results []mediagate.Result) {
	if !slices.ContainsFunc(results, func(r mediagate.Result) bool { return r.Size >= manyParts }) {
		return
	}
	if _, err := a.Sweeper.AbortStale(ctx, fmt.Sprintf("results/%s/%d/", in.TaskID, in.N), 0); err != nil {
		a.Logger.WarnContext(ctx, "unfinished uploads not swept", "task", in.TaskID, "error", err)
	}
}

// SweepResults removes the files of a task that ended without showing them:
// cancelled, or failed, after they were copied (D13).
func (a *Activities) SweepResults(ctx context.Context, in TaskArgs) error {
	task, err := a.Store.TaskByID(ctx, in.TaskID)
	if err != nil {
		return a.fail(ctx, err)
	}
	if !task.Status.Terminal() || task.Status == mediagate.StatusCompleted {
		return nil
	}
	defer heartbeat(ctx, noDetails)()
	prefix := "results/" + in.TaskID + "/"
	if _, err := a.Sweeper.AbortStale(ctx, prefix, 0); err != nil {
		return a.fail(ctx, err)
	}
	removed, err := a.Sweeper.DeletePrefix(ctx, prefix)
	if removed > 0 {
		a.Logger.InfoContext(ctx, "swept results that nobody will see", "task", in.TaskID, "objects", removed)
	}
	return a.fail(ctx, err)
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
	return fmt.Sprintf("results/%s/%d/%d", taskID, n, index)
}

// freshMedia polls once for new links; nil when there are none.
func (a *Activities) freshMedia(ctx context.Context, channel BoundChannel, row mediagate.Attempt) []mediagate.Media {
	if channel.Vendor == nil || row.Route.Sync {
		return nil
	}
	report, err := channel.Vendor.Poll(ctx, row.Ref)
	if err != nil || report.Outcome == nil || !report.Outcome.Succeeded {
		return nil
	}
	return report.Outcome.Media
}

// stallLimit is how long the vendor's file server may keep silent.
const stallLimit = 30 * time.Second

// source remembers whether reading failed, so that the blame for a broken
// copy is known, gives up on a server that keeps silent, and passes the
// half-way failpoint.
type source struct {
	r     io.Reader
	read  int64
	half  int64
	stall *time.Timer // runs while a read does
	err   error
}

func newSource(r io.Reader, half int64, giveUp func()) *source {
	s := &source{r: r, half: half, stall: time.AfterFunc(stallLimit, giveUp)}
	s.stall.Stop()
	return s
}

func (s *source) Read(p []byte) (int, error) {
	s.stall.Reset(stallLimit)
	n, err := s.r.Read(p)
	s.stall.Stop()
	s.read += int64(n)
	if s.read > s.half {
		failpoint.Hit(failpoint.MirrorHalf)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
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
