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

// mirrorTries is how often a copy is tried. Both a copy that fails and a copy whose worker is lost
// count as tries.
const mirrorTries = 5

// MirrorResult copies the files of attempt N into the bucket. Their keys are made of task,
// attempt and index, so a repetition replaces files and never adds any (D13). The copy ends the
// task. If a link is dead, the vendor is asked once for a new one. An attempt that made something
// other than files needs no copy.
//
// A piece that cannot be had is left out if there is another piece. MirrorResult returns
//
//   - KindInvalid with code result_unavailable if there is no piece;
//   - KindGone with that code for dead links while the vendor cannot be asked for others;
//   - KindUnavailable with code storage_unavailable while the bucket is away;
//   - KindTransient while the vendor's file server is away;
//   - KindUnreached with code channel_missing for a link that only the missing channel could open.
func (a *Activities) MirrorResult(ctx context.Context, in StepArgs) (Answer, error) {
	defer a.stopped(ctx, in.TaskID)
	// A try whose worker was lost returned no error, so no failTry has counted it. It is counted
	// here.
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
	// The step comes late: the task has ended, or the files are copied already.
	if row.Outcome == nil || !row.Outcome.Succeeded || t.Status.Terminal() || row.Mirrored() {
		return a.stepDone(ctx, in)
	}
	// The bucket was away. Ask it first, so as not to fetch the files from the vendor for nothing.
	if t.Wait.Reason == mediagate.ParkStorage {
		if err := a.Bucket.Probe(ctx); err != nil {
			return Answer{}, a.fail(ctx, lastTry{err})
		}
	}
	copied, times := &progress{}, timesRefused(ctx)
	err = func() error {
		// A cancel arrives with a heartbeat, so heartbeats must not wait for bytes. The source
		// notices if no bytes come.
		defer heartbeat(ctx, func() []any { return copied.details(times) }, nil)()
		f := &files{Activities: a, task: t, row: row, copied: copied, try: tryOf(ctx)}
		return f.copyAll(ctx, a.Settings.PermitWait)
	}()
	switch {
	case errors.Is(err, errNoPermit):
		return Answer{}, a.fail(ctx, retryWithoutPermit(ctx, "other files of the provider"))
	case ctx.Err() != nil:
		return Answer{}, ctx.Err() // cancelled, or the worker stops
	case err != nil:
		return Answer{}, a.failTry(ctx, err, mirrorTries)
	}
	return a.stepDone(ctx, in)
}

// mirrorOne copies the file at the position. An error of the file's server becomes KindTransient
// with code result_unavailable, so that it is not taken for one of the bucket.
func (f *files) mirrorOne(ctx context.Context, position int, m mediagate.Media) (mediagate.Result, error) {
	f.copied.begin(position)
	fetch := f.opener(m)
	// The source hangs up by this context if the file's server falls silent or is too slow.
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
		if m.Role.IsExtra() {
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

// opener returns how to open a file. The guarded client fetches a link. A reference can be opened
// only by the channel that has the account. A file that is in the bucket already is read from
// there.
func (f *files) opener(m mediagate.Media) Opener {
	return func(ctx context.Context) (body io.ReadCloser, length int64, err error) {
		switch {
		case m.Stored != nil:
			return f.Bucket.Open(ctx, m.Stored.Key)
		case m.Ref == "":
			body, length, err = f.Fetcher.FetchResult(ctx, m.URL, f.channel.Name)
			if f.gone != nil && mediagate.Is(err, mediagate.KindInvalid) {
				return nil, 0, f.gone // the channel may have been allowed to reach a private host
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
		// A large file is left to the step Mirror.
		if err == nil && f.quick && length > quickMost {
			_ = body.Close()
			return nil, 0, mediagate.Errorf(mediagate.KindInternal, "%d bytes are no quick copy", length)
		}
		return body, length, withCode(err, string(mediagate.CodeResultUnavailable))
	}
}

// halfRead is the failpoint in the middle of a copy.
func halfRead() { failpoint.Hit(failpoint.MirrorHalf) }

// manyParts is the size from which on a file may have been sent in parts. A killed upload leaves
// such parts behind. For smaller files the call to the bucket is saved.
const manyParts = 5 << 20

// abortOthers aborts other uploads of the files that were just stored: uploads of workers that
// died, that hang, or that do not know that their run was replaced.
func (f *files) abortOthers(ctx context.Context, results []mediagate.Result) {
	if !slices.ContainsFunc(results, func(r mediagate.Result) bool { return r.Size >= manyParts }) {
		return
	}
	if _, err := f.Sweeper.AbortStale(ctx, attemptFolder(f.task.ID, f.row.N), 0); err != nil {
		f.warn(ctx, "unfinished uploads not swept", "error", err)
	}
}

// mayBeStale reports whether a new link may help: the old one is dead, or its server is. Other
// errors would be the same with a new link.
func mayBeStale(err error) bool {
	return mediagate.Is(err, mediagate.KindGone) || mediagate.Is(err, mediagate.KindTransient)
}

// ResultKey returns the object key of a result file. For example, the second file of attempt 1 has
// the key that ends in "1/1".
func ResultKey(taskID string, n, index int) string {
	return attemptFolder(taskID, n) + strconv.Itoa(index)
}

// attemptFolder returns the folder of an attempt's files.
func attemptFolder(taskID string, n int) string {
	return fmt.Sprintf("%s%d/", mediagate.ResultFolder(taskID), n)
}

// withCode adds the code to an error that has none. It changes a copy of the error.
func withCode(err error, code string) error {
	if e, ok := errors.AsType[*mediagate.Error](err); ok && e.Code == "" {
		c := *e
		c.Code = code
		return &c
	}
	return err
}

// progress is how far a copy has come. Heartbeats show it. The copy writes it, and the goroutine of
// the heartbeats reads it.
type progress struct{ index, bytes atomic.Int64 }

// begin turns to the file at the position.
func (p *progress) begin(position int) {
	p.index.Store(int64(position))
	p.bytes.Store(0)
}

// details returns the details of a heartbeat. refused is the number of tries without a permit,
// which the next try needs to know.
func (p *progress) details(refused int32) []any {
	return []any{p.index.Load(), p.bytes.Load(), refused}
}

// copyAll copies the files and stores where they are, which ends the task. It returns errNoPermit
// if it gets no permit within patience.
//
// The copy ends with ctx: on a cancel, when the worker stops, or when Temporal is lost. The next
// try begins again, under the same keys (D13). The caller sends the heartbeats, in the activity's
// own context, since the context of the copy may end before.
func (f *files) copyAll(ctx context.Context, patience time.Duration) error {
	// Providers share the permits in turn, so that one with many large files leaves room to
	// others.
	permit, err := waitForPermit(ctx, patience, func(ctx context.Context) (*limit.Permit, error) {
		return f.Limits.Copies.Acquire(ctx, f.row.Provider, 1)
	})
	if err != nil {
		return err
	}
	defer permit.Release()
	// A file may make a decoder panic. That must cost one copy, and not the worker.
	return mediagate.Guarded(func() error {
		results, err := f.mirrorAll(ctx)
		if err != nil {
			return err
		}
		f.abortOthers(ctx, results)
		failpoint.Hit(failpoint.Mirrored)
		return f.storeMirrored(ctx, results)
	})
}

const (
	// quickWait is how long a quick copy waits for a permit.
	quickWait = 50 * time.Millisecond
	// quickMost is the size of the largest file that is copied quickly.
	quickMost = 64 << 20
)

// copyQuickly copies the files of a job that has just ended, which ends the task. A submit calls
// copyQuickly if the vendor's answer has the result, and a poller calls it at the end of a job: a step
// of its own would cost more than most of these copies. A copy that gets no permit at once, is large,
// takes long or fails is left to such a step.
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

// finish copies the files of a job that ended with its submit, and returns the next step. If the
// copy failed, the answer still names the step Mirror, which copies the files again under the same
// keys.
func (a *Activities) finish(ctx context.Context, changed task.Changed) (Answer, error) {
	err := a.copyQuickly(ctx, changed)
	if isCancelled(ctx) {
		return Answer{}, ctx.Err() // the next step may not be Mirror any more
	}
	if err != nil {
		return answerTo(changed), nil //nolint:nilerr // the step finds out
	}
	return a.Ask(ctx, Question{TaskID: changed.State.ID, Seen: changed.State.Seen()})
}

// maxFiles is how many files of one attempt are copied, far more than any request can ask for.
// Each file may be as large as the model allows, so their number is not left to the vendor.
const maxFiles = 32

// extraTries is the try of the step from which on the task goes on without an extra file whose
// server is away. Extra files come along with the result: a cover, a WAV version, a film.
const extraTries = 3

// extraPatience is how long the servers of all extra files together may delay an attempt's copy.
// Otherwise a server that sends one byte at a time would use up the time of the main files, at
// each try.
const extraPatience = 5 * time.Minute

// files are the files of one attempt on their way into the bucket. One goroutine copies them, one
// after another, so the fields need no lock.
type files struct {
	*Activities
	task      mediagate.Task
	row       task.Attempt
	channel   channel.Channel // if it is missing, only public hosts can be reached
	gone      error           // why the channel is missing
	media     []mediagate.Media
	refreshed bool // the vendor was asked for new links
	answered  bool // the vendor answered, or has nothing but the first links
	copied    *progress
	try       int32         // the number of the step's try, see media.Dispensable
	quick     bool          // large files are left to the step Mirror
	patience  time.Duration // what is left of extraPatience
}

// mirrorAll copies the main files first, which includes cutting a grid and packing stems, and then
// the extra files. The order of the results is that of the vendor's list, whatever the order of the
// copies. The main files are copied first, so that slow extra files do not take their time.
func (f *files) mirrorAll(ctx context.Context) ([]mediagate.Result, error) {
	row := f.row
	f.media, f.patience = row.Outcome.Media, extraPatience
	f.channel, f.gone = f.accounts().ConfirmedOwner(ctx, row)
	if len(f.media) > maxFiles {
		f.warn(ctx, "a vendor offers more files than any job makes", "files", len(f.media))
		f.media = f.media[:maxFiles]
	}
	if len(f.media) == 0 {
		// Some jobs make text or a voice, and no file.
		if row.Outcome.Made.StandsAlone() {
			return []mediagate.Result{}, nil
		}
		return nil, media.Useless("the provider returned no file")
	}
	found := make([][]mediagate.Result, len(f.media))
	var lost []error // errors of pieces that are left out
	// First the main files, then the extra files. The stems are copied as one archive, at the
	// position of the first.
	for _, extra := range []bool{false, true} {
		for i, m := range f.media {
			if m.Role.IsExtra() != extra || m.Role == mediagate.RoleStem && i != f.firstStem() {
				continue
			}
			results, err := f.copy(ctx, i)
			switch {
			case err == nil:
				found[i] = results
			// An extra file that can be spared is left out by copy, and is no error here.
			case extra || ctx.Err() != nil || !f.isLost(err):
				return nil, f.retryError(err)
			default:
				f.warn(ctx, "a piece is left out", "role", m.Role, "index", m.Index, "error", err)
				lost = append(lost, err)
			}
		}
		// No main file is there. The result is lost, or its servers are only away.
		if len(lost) > 0 && !slices.ContainsFunc(found, func(r []mediagate.Result) bool { return len(r) > 0 }) {
			return nil, nothingLeft(lost)
		}
	}
	return slices.Concat(found...), nil
}

// warn logs a problem with the files of the attempt.
func (f *files) warn(ctx context.Context, what string, details ...any) {
	f.Logger.WarnContext(ctx, what, append([]any{"task", f.task.ID, "attempt", f.row.N}, details...)...)
}

const (
	// goneAgain is the pause between two tries to get a file whose links are dead.
	goneAgain = 10 * time.Second
	// piecePatience is how long after the job's end the task waits for a piece whose server is
	// away, while other pieces are there.
	piecePatience = 30 * time.Minute
)

// isLost reports whether a piece of the result cannot be had: it is no media of its kind, or too
// large; or its fresh links are dead, too, at the step's last try; or its server has been away for
// long.
//
// For example, a song has two versions, and the server of one does not answer. From 30 minutes
// after the job's end on the task goes on with the other version.
func (f *files) isLost(err error) bool {
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

// retryError returns the error of a copy. Dead links that the vendor has just given may begin to
// work, so the copy is tried again.
func (f *files) retryError(err error) error {
	if !f.answered || !mediagate.Is(err, mediagate.KindGone) {
		return err
	}
	return &mediagate.Error{
		Kind: mediagate.KindTransient, Code: string(mediagate.CodeResultUnavailable), Message: messageOf(err),
		RetryAfter: goneAgain, Err: err,
	}
}

// nothingLeft returns the error of a result whose pieces are all lost. The error is final, unless
// the server of some piece is only away.
func nothingLeft(lost []error) error {
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

// copy copies the file at the position. If its link or its server is dead, copy asks for a new
// link. An extra file that is gone or unusable is left out at once, and one whose server is away
// from the try extraTries on, or at once if the patience for extra files is used up.
func (f *files) copy(ctx context.Context, position int) ([]mediagate.Result, error) {
	results, err := f.obtain(ctx, position)
	if mayBeStale(err) && ctx.Err() == nil && f.refresh(ctx) {
		results, err = f.obtain(ctx, position)
	}
	m := f.media[position]
	tooLong := f.try >= extraTries || f.patience <= 0
	if err == nil || ctx.Err() != nil || !media.Dispensable(m.Role, mediagate.KindOf(err), tooLong) {
		return results, err
	}
	f.warn(ctx, "a file that comes along is left out", "role", m.Role, "index", m.Index, "error", err)
	return nil, nil
}

// obtain brings a file into the bucket. A file that was stored while it arrived is there already,
// and obtain only checks that.
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
	// The file itself does not say how long it is, but the vendor may.
	if result.Duration == 0 {
		result.Duration = m.Duration
	}
	result.Role, result.Index = m.Role, m.Index
	if m.Role != mediagate.RoleGrid || f.hasMain() {
		return []mediagate.Result{result}, nil
	}
	// The vendor offers the four images only as one grid.
	quarters, err := f.cut(ctx, position, result)
	return append([]mediagate.Result{result}, quarters...), err
}

// inBucket returns the file at the position once it is in the bucket.
func (f *files) inBucket(ctx context.Context, position int, m mediagate.Media) (mediagate.Result, error) {
	if m.Stored != nil {
		return *m.Stored, f.Bucket.Exists(ctx, *m.Stored)
	}
	return f.mirrorOne(ctx, position, m)
}

// hasMain reports whether the vendor itself offers the pictures of a grid.
func (f *files) hasMain() bool {
	return slices.ContainsFunc(f.media, func(m mediagate.Media) bool { return m.Role == mediagate.RoleMain })
}

// refresh asks the vendor once for new links to the same files, and reports whether there are any.
// The media are replaced in a copy of the list, since the attempt's outcome shares the old one.
func (f *files) refresh(ctx context.Context) bool {
	// One question for all files: each further one would cost the account's budget.
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
		// A vendor usually lists its files in the same order. If not, role and index identify a
		// file.
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

// freshMedia polls once for new links. answered says that the vendor can give no newer links than
// fresh, or than the first ones if fresh is empty. A vendor that keeps no jobs has only its first
// links.
func (f *files) freshMedia(ctx context.Context) (fresh []mediagate.Media, answered bool) {
	switch {
	case f.row.Route.Sync:
		// Files that were stored while they arrived are in our bucket. If one is missing there,
		// the vendor's links say nothing about it.
		return nil, !anyStored(f.row.Outcome.Media)
	case f.channel.Vendor == nil:
		return nil, false
	}
	report, err := f.channel.Vendor.Poll(ctx, f.row.Ref)
	if err != nil || report.Outcome == nil {
		return nil, mediagate.Is(err, mediagate.KindNotFound)
	}
	return report.Outcome.Media, true
}

// cut cuts the four images out of a grid that is in the bucket. They become main files, with
// keys of their own. If the grid cannot be cut, although it may be complete, it stays as it is,
// and cut returns no pictures.
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

// QuarterKey returns the object key of a picture that was cut out of the grid at the position. No
// file of a vendor has such a key.
func QuarterKey(taskID string, n, position, quarter int) string {
	return fmt.Sprintf("%s-%d", ResultKey(taskID, n, position), quarter+1)
}

// firstStem returns the position of the first stem, or -1.
func (f *files) firstStem() int {
	return slices.IndexFunc(f.media, func(m mediagate.Media) bool { return m.Role == mediagate.RoleStem })
}

// archive stores the stems as one main file, at the position of the first. If a stem turns out to
// be lost, the archive is made again without it, as long as another stem is left. The files in the
// archive carry the time of the task's creation, so that a repeated copy makes the same archive.
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
			err = fault // the bucket only saw the archive end
		}
		if err == nil || fault == nil || ctx.Err() != nil || !f.isLost(err) || !archive.LeaveOut() {
			result.Role, result.Index = mediagate.RoleMain, index
			return result, err
		}
		f.warn(ctx, "a stem is left out", "index", stem.Index, "error", err)
	}
}
