package activities

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/channel"
	"github.com/mediagate/mediagate/internal/failpoint"
	"github.com/mediagate/mediagate/internal/limit"
	"github.com/mediagate/mediagate/media"
	"github.com/mediagate/mediagate/media/mediainfo"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/task"
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
		return Answer{}, a.failTry(ctx, errStepLost, mirrorTries)
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
	if t.Wait.Reason == mediagate.ParkStorage {
		if err := a.Bucket.Probe(ctx); err != nil { // the file need not come from the vendor to find that out
			return Answer{}, a.fail(ctx, lastTry{err})
		}
	}
	copied, times := &progress{}, timesRefused(ctx)
	err = func() error {
		// A cancel arrives by a heartbeat, which must therefore not wait for bytes; that
		// none come is noticed by the source.
		defer heartbeat(ctx, func() []any { return copied.details(times) }, nil)()
		f := &files{Activities: a, task: t, row: row, copied: copied, try: tryOf(ctx)}
		return f.copyAll(ctx, a.Settings.PermitWait)
	}()
	switch {
	case errors.Is(err, errNoPermit):
		return Answer{}, a.fail(ctx, refused(ctx, "other files of the provider"))
	case ctx.Err() != nil:
		return Answer{}, ctx.Err() // cancelled, or the worker stops: nobody is to blame
	case err != nil:
		return Answer{}, a.failTry(ctx, err, mirrorTries)
	}
	return a.stepDone(ctx, in)
}

// mirrorOne copies the file at the position.
func (f *files) mirrorOne(ctx context.Context, position int, m mediagate.Media) (mediagate.Result, error) {
	f.copied.begin(position)
	fetch := f.opener(m)
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
	result, err := f.mirror(ctx, position, media.ClassOf(m, f.task.Plan.Media), open)
	switch {
	case err == nil:
		return result, nil
	case file != nil && file.Err() != nil:
		return result, media.BrokenOff(errors.Join(file.Err(), err))
	default:
		return result, err
	}
}

// mirror streams a file of the class into the bucket, under the key of the position.
func (f *files) mirror(ctx context.Context, position int, class string, open Opener) (mediagate.Result, error) {
	return f.Bucket.Mirror(ctx, ResultKey(f.task.ID, f.row.N, position), open, Limits{
		MaxBytes: f.task.Plan.MaxBytes, Media: class, Owner: f.row.Provider, Progress: f.copied.bytes.Store,
	})
}

// opener opens what a vendor offers: a link, which the guarded client follows,
// a reference, which only the channel that has the account can open, or what is
// in the bucket already.
func (f *files) opener(m mediagate.Media) Opener {
	return func(ctx context.Context) (body io.ReadCloser, length int64, err error) {
		switch {
		case m.Stored != nil:
			return f.Bucket.Open(ctx, m.Stored.Key)
		case m.Ref == "":
			body, length, err = f.Fetcher.FetchResult(ctx, m.URL, f.channel.Name)
			if f.gone != nil && mediagate.Is(err, mediagate.KindInvalid) {
				return nil, 0, f.gone // the host may be the channel's own, which may be private
			}
		case f.gone != nil:
			return nil, 0, f.gone
		default:
			vendor, ok := f.channel.Vendor.(providers.Opener)
			if !ok {
				return nil, 0, mediagate.Errorf(mediagate.KindInternal,
					"the adapter of %s opens no references", f.row.Provider)
			}
			body, length, err = vendor.Open(ctx, f.row.Ref, m)
		}
		if err == nil && f.quick && length > quickMost {
			_ = body.Close()
			return nil, 0, mediagate.Errorf(mediagate.KindInternal, "%d bytes are no quick copy", length)
		}
		return body, length, withCode(err, string(mediagate.CodeResultUnavailable))
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

func withCode(err error, code string) error {
	if e, ok := errors.AsType[*mediagate.Error](err); ok && e.Code == "" {
		c := *e
		c.Code = code
		return &c
	}
	return err
}

// progress is how far a copy has come, for who looks on.
type progress struct{ index, bytes atomic.Int64 }

// begin turns to the file at the position.
func (p *progress) begin(position int) {
	p.index.Store(int64(position))
	p.bytes.Store(0)
}

// details are those of a heartbeat. refused goes with them to the next try.
func (p *progress) details(refused int32) []any {
	return []any{p.index.Load(), p.bytes.Load(), refused}
}

// copyAll copies the files and stores where they are, which ends the task. Returns
// errNoPermit where there is no permit for it while patience lasts.
//
// The copy ends with ctx: a cancel, a worker that stops, or a Temporal that was lost.
// The next try begins anew under the same keys (D13). The caller sends the heartbeats, in
// the activity's own context: that of the copy may end before.
func (f *files) copyAll(ctx context.Context, patience time.Duration) error {
	permit, err := waitForPermit(ctx, patience, func(ctx context.Context) (*limit.Permit, error) {
		return f.Limits.Copies.Acquire(ctx, f.row.Provider, 1)
	})
	if err != nil {
		return err
	}
	defer permit.Release()
	return mediagate.Guarded(func() error {
		results, err := f.mirrorAll(ctx)
		if err != nil {
			return err
		}
		f.sweepLosers(ctx, f.task.ID, f.row.N, results)
		failpoint.Hit(failpoint.Mirrored)
		return f.mirrored(ctx, f.task, f.row, results)
	})
}

const (
	// quickWait is how long a quick copy waits for a permit.
	quickWait = 50 * time.Millisecond
	// quickMost is the size of the largest file that is copied quickly.
	quickMost = 64 << 20
)

// copyQuickly copies the files of a job that has just ended, which ends the task. A submit
// whose answer has the result calls it, and so does a poller that sees the end: a step of
// its own would cost more than most of such copies. A copy that gets no permit at once, is
// large, takes long or fails is left to that step.
func (a *Activities) copyQuickly(ctx context.Context, changed task.Changed) error {
	st := changed.State
	brief, cancel := context.WithTimeout(ctx, a.Settings.QuickCopy)
	defer cancel()
	f := &files{Activities: a, task: st.Task, row: *st.Last(), copied: &progress{}, try: 1, quick: true}
	err := f.copyAll(brief, quickWait)
	if err != nil {
		a.Logger.DebugContext(ctx, "the copy is left to a step of its own",
			"task", st.ID, "attempt", f.row.N, "error", err)
	}
	return err
}

// finish copies the files of a job that ended with its submit, and returns the next step.
func (a *Activities) finish(ctx context.Context, changed task.Changed) (Answer, error) {
	err := a.copyQuickly(ctx, changed)
	if isCancelled(ctx) {
		return Answer{}, ctx.Err() // the step may not be Mirror any more
	}
	if err != nil {
		return answerTo(changed), nil //nolint:nilerr // the step finds out
	}
	return a.Ask(ctx, Question{TaskID: changed.State.ID, Seen: changed.State.Seen()})
}

// mostFiles is how many files of one attempt are copied, which is far more than
// a request can ask for. Each may be as large as the model allows, so how many
// there are is not left to the vendor.
const mostFiles = 32

// extraTries is how many activities in a row are failed for a file that is not
// what the task is about, before it goes on without.
const extraTries = 3

// extraPatience is how long the servers of all that comes along may keep an
// attempt's copy waiting: some that send a drop at a time would use up the time
// of what the task is about, again at each try.
const extraPatience = 5 * time.Minute

// files are those of one attempt on their way into the bucket.
type files struct {
	*Activities
	task      mediagate.Task
	row       task.Attempt
	channel   channel.Channel // without it, only public hosts can be fetched from
	gone      error
	media     []mediagate.Media
	refreshed bool // the links were asked for once more
	answered  bool // and the vendor has said what there is, or cannot be asked
	copied    *progress
	try       int32         // of the step, see media.Dispensable
	quick     bool          // large files are left to the step
	patience  time.Duration // left of extraPatience
}

// mirrorAll copies what the task is about, and makes of it what is to be made,
// before what comes along.
func (f *files) mirrorAll(ctx context.Context) ([]mediagate.Result, error) {
	row := f.row
	f.media, f.patience = row.Outcome.Media, extraPatience
	f.channel, f.gone = f.accounts().Shown(ctx, row)
	if len(f.media) > mostFiles {
		f.warn(ctx, "a vendor offers more files than any job makes", "files", len(f.media))
		f.media = f.media[:mostFiles]
	}
	if len(f.media) == 0 {
		if row.Outcome.Made.StandsAlone() {
			return []mediagate.Result{}, nil
		}
		return nil, media.Useless("the provider returned no file")
	}
	found := make([][]mediagate.Result, len(f.media))
	var lost []error // of pieces that the task goes on without
	for _, extra := range []bool{false, true} {
		for i, m := range f.media {
			if media.IsExtra(m.Role) != extra || m.Role == mediagate.RoleStem && i != f.firstStem() {
				continue
			}
			results, err := f.copy(ctx, i)
			switch {
			case err == nil:
				found[i] = results
			case extra || ctx.Err() != nil || !f.lost(err):
				return nil, f.tryAgain(err)
			default:
				f.warn(ctx, "a piece is left out", "role", m.Role, "index", m.Index, "error", err)
				lost = append(lost, err)
			}
		}
		if len(lost) > 0 && !slices.ContainsFunc(found, func(r []mediagate.Result) bool { return len(r) > 0 }) {
			return nil, nothing(lost)
		}
	}
	return slices.Concat(found...), nil
}

// warn logs what happens to the files of the attempt.
func (f *files) warn(ctx context.Context, what string, details ...any) {
	f.Logger.WarnContext(ctx, what, append([]any{"task", f.task.ID, "attempt", f.row.N}, details...)...)
}

const (
	// goneAgain is the pause between two tries to get a file whose links are dead.
	goneAgain = 10 * time.Second
	// piecePatience is how long after the job's end a piece is waited for whose server
	// is away, while others are there.
	piecePatience = 30 * time.Minute
)

// lost reports that a piece of the result cannot be had: it is no such media, its
// fresh links are dead too at the step's last try, or its server is away for long.
func (f *files) lost(err error) bool {
	switch mediagate.KindOf(err) {
	case mediagate.KindInvalid, mediagate.KindTooLarge:
		return true
	case mediagate.KindGone:
		return f.answered && f.try >= mirrorTries
	case mediagate.KindTransient:
		return !f.row.EndedAt.IsZero() && f.Now().Sub(f.row.EndedAt) >= piecePatience
	default:
		return false
	}
}

// tryAgain is the error of a copy. Dead links that the vendor has just given may
// begin to work.
func (f *files) tryAgain(err error) error {
	if !f.answered || !mediagate.Is(err, mediagate.KindGone) {
		return err
	}
	return &mediagate.Error{
		Kind: mediagate.KindTransient, Code: string(mediagate.CodeResultUnavailable), Message: messageOf(err),
		RetryAfter: goneAgain, Err: err,
	}
}

// nothing is the error of a result of which no piece can be had. It is final, unless
// the server of one is only away.
func nothing(lost []error) error {
	for _, err := range lost {
		if mediagate.Is(err, mediagate.KindTransient) {
			return err
		}
	}
	if !mediagate.Is(lost[0], mediagate.KindGone) {
		return lost[0]
	}
	return media.Useless("%s", messageOf(lost[0]))
}

// copy copies the file at the position, from a fresh link where the old one is
// dead. What comes along is left out in the end.
func (f *files) copy(ctx context.Context, position int) ([]mediagate.Result, error) {
	results, err := f.obtain(ctx, position)
	if staleLink(err) && ctx.Err() == nil && f.refresh(ctx) {
		results, err = f.obtain(ctx, position)
	}
	m, try := f.media[position], f.try
	if f.patience <= 0 {
		try = extraTries
	}
	if err == nil || ctx.Err() != nil || !media.Dispensable(m.Role, mediagate.KindOf(err), try >= extraTries) {
		return results, err
	}
	f.warn(ctx, "a file that comes along is left out", "role", m.Role, "index", m.Index, "error", err)
	return nil, nil
}

// obtain is how a file comes into the bucket: it is copied, or it was stored
// while it arrived. That it still is there is all that is asked then.
func (f *files) obtain(ctx context.Context, position int) ([]mediagate.Result, error) {
	m := f.media[position]
	if m.Role == mediagate.RoleStem {
		archive, err := f.archive(ctx, position)
		return []mediagate.Result{archive}, err
	}
	result, err := f.inBucket(ctx, position, m)
	if err != nil {
		return nil, err
	}
	if result.Duration == 0 {
		result.Duration = m.Duration
	}
	result.Role, result.Index = m.Role, m.Index
	if m.Role != mediagate.RoleGrid || f.hasMain() {
		return []mediagate.Result{result}, nil
	}
	quarters, err := f.cut(ctx, position, result)
	return append([]mediagate.Result{result}, quarters...), err
}

// inBucket is the file at the position, once it is in the bucket.
func (f *files) inBucket(ctx context.Context, position int, m mediagate.Media) (mediagate.Result, error) {
	if m.Stored != nil {
		return *m.Stored, f.Bucket.Exists(ctx, *m.Stored)
	}
	return f.mirrorOne(ctx, position, m)
}

// hasMain reports that the vendor itself offers what a grid holds.
func (f *files) hasMain() bool {
	return slices.ContainsFunc(f.media, func(m mediagate.Media) bool { return m.Role == mediagate.RoleMain })
}

// refresh asks the vendor once for other links to the same files, and reports
// whether there are any.
func (f *files) refresh(ctx context.Context) bool {
	if f.refreshed {
		return false
	}
	f.refreshed = true
	var fresh []mediagate.Media
	fresh, f.answered = f.freshMedia(ctx)
	found := false
	renewed := slices.Clone(f.media)
	for i, m := range renewed {
		same := func(other mediagate.Media) bool { return other.Role == m.Role && other.Index == m.Index }
		at := i
		if at >= len(fresh) || !same(fresh[at]) {
			at = slices.IndexFunc(fresh, same)
		}
		if at >= 0 {
			renewed[i], found = fresh[at], true
		}
	}
	f.media = renewed
	return found
}

// freshMedia polls once for new links. answered says that there are no others: those
// of a vendor that keeps no jobs are the only ones.
func (f *files) freshMedia(ctx context.Context) (fresh []mediagate.Media, answered bool) {
	switch {
	case f.row.Route.Sync:
		return nil, !stored(f.row.Outcome.Media)
	case f.channel.Vendor == nil:
		return nil, false
	}
	report, err := f.channel.Vendor.Poll(ctx, f.row.Ref)
	if err != nil || report.Outcome == nil {
		return nil, mediagate.Is(err, mediagate.KindNotFound)
	}
	return report.Outcome.Media, true
}

// cut makes the four pictures of a grid that is in the bucket: main files under
// keys of their own beside that of the grid. A grid that cannot be cut, though it
// may be whole, is left as it is: then there are none.
func (f *files) cut(ctx context.Context, position int, grid mediagate.Result) ([]mediagate.Result, error) {
	var quarters []mediagate.Result
	open := func(ctx context.Context) (io.ReadCloser, int64, error) { return f.Bucket.Open(ctx, grid.Key) }
	err := f.cuts.Cut(ctx, grid, open, func(i int, open media.Open, mostBytes int64) error {
		f.copied.begin(position)
		quarter, err := f.Bucket.Mirror(ctx, QuarterKey(f.task.ID, f.row.N, position, i), open, Limits{
			MaxBytes: mostBytes, Media: string(mediainfo.ClassImage), Progress: f.copied.bytes.Store,
		})
		quarter.Role, quarter.Index = mediagate.RoleMain, grid.Index*media.Quarters+i
		quarters = append(quarters, quarter)
		return err
	})
	switch {
	case err == nil:
		return quarters, nil
	case errors.Is(err, media.ErrUncut):
		f.warn(ctx, "a grid is delivered uncut", "mime_type", grid.MimeType, "error", err)
		return nil, nil
	default:
		return nil, err
	}
}

// QuarterKey is the object key of a picture that was cut out of the grid at the
// position. No file of a vendor's has such a one.
func QuarterKey(taskID string, n, position, quarter int) string {
	return fmt.Sprintf("%s-%d", ResultKey(taskID, n, position), quarter+1)
}

func (f *files) firstStem() int {
	return slices.IndexFunc(f.media, func(m mediagate.Media) bool { return m.Role == mediagate.RoleStem })
}

// archive stores the stems as one main file, at the position of the first. It is
// made anew without a stem that turns out to be lost, as long as there is another.
func (f *files) archive(ctx context.Context, position int) (mediagate.Result, error) {
	archive := &media.Archive{Modified: f.task.CreatedAt.UTC(), Half: halfRead}
	index := f.media[position].Index
	for _, m := range f.media {
		if m.Role == mediagate.RoleStem {
			stem := media.Stem{Name: m.Name, Index: len(archive.Stems), Open: f.opener(m)}
			archive.Stems = append(archive.Stems, stem)
			index = min(index, m.Index)
		}
	}
	for {
		f.copied.begin(position)
		result, err := f.mirror(ctx, position, string(mediainfo.ClassArchive), archive.Open)
		stem, fault := archive.Fault()
		if err != nil && fault != nil {
			err = fault // the bucket only saw it end
		}
		if err == nil || fault == nil || ctx.Err() != nil || !f.lost(err) || !archive.LeaveOut() {
			result.Role, result.Index = mediagate.RoleMain, index
			return result, err
		}
		f.warn(ctx, "a stem is left out", "index", stem.Index, "error", err)
	}
}
