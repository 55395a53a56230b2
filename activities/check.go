package activities

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/internal/failpoint"
	"github.com/mediagate/mediagate/internal/limit"
	"github.com/mediagate/mediagate/media"
	"github.com/mediagate/mediagate/task"
)

// checkWidth is how many files of one task are fetched at the same time. That is enough for the
// usual list of references, and does not flood a server that has all of them.
const checkWidth = 6

// checkTries is how often the check is tried if it fails for a fault of ours, or its worker is
// lost.
const checkTries = 12

// CheckInputs checks the client's media against the contract before anything is submitted. It
// stores the result on the task's row, and does not fetch again what it found good. While a server
// of the client's media is away, it returns KindTransient, and is repeated. After inputTries the
// task fails.
//
// For example, a request names three files. The first try finds two of them good, and the server of
// the third one does not answer. The row then has two passed fields and one try. The next try
// fetches the third file only.
func (a *Activities) CheckInputs(ctx context.Context, in StepArgs) (Answer, error) {
	defer a.stopped(ctx, in.TaskID)
	times := timesRefused(ctx)
	defer heartbeat(ctx, func() []any { return refusedDetails(times) }, nil)()
	// A try whose worker was lost returned no error, so no failTry has counted it. It is counted
	// here.
	if tryOf(ctx) > checkTries {
		return Answer{}, a.failTry(ctx, errStepLost, checkTries)
	}
	t, err := a.Store.TaskByID(ctx, in.TaskID)
	switch {
	case mediagate.Is(err, mediagate.KindNotFound):
		return Answer{Missing: true}, nil
	case err != nil:
		return Answer{}, a.fail(ctx, err)
	}
	st, err := a.Store.State(ctx, t.ID, 0)
	if err != nil {
		return Answer{}, a.fail(ctx, err)
	}
	// The check of an earlier try is on the row. Only files that it did not find good are
	// fetched.
	before := st.Inputs
	if before.Over || t.Status.Terminal() || !t.CancelRequestedAt.IsZero() {
		return a.stepDone(ctx, in)
	}
	// One permit covers all files of the task: checkWidth bounds them.
	permit, err := waitForPermit(ctx, a.Settings.PermitWait, func(ctx context.Context) (*limit.Permit, error) {
		return a.Limits.Inputs.Acquire(ctx, t.AccountID, 1)
	})
	switch {
	case errors.Is(err, errNoPermit):
		return Answer{}, a.fail(ctx, retryWithoutPermit(ctx, "other files of the account"))
	case err != nil:
		return Answer{}, err
	}
	defer permit.Release()
	return a.checkAndStore(ctx, in, t, before)
}

// checkAndStore checks the files that were not found good before, and stores the result. If nothing
// is left to check, it also ends the step. Both are one transaction, whose answer is the next step.
func (a *Activities) checkAndStore(
	ctx context.Context, in StepArgs, t mediagate.Task, before mediagate.InputCheck,
) (Answer, error) {
	// An error here is a fault of ours, such as a bucket that is away. It counts as a try of the
	// step.
	after, waits, err := a.checkInputs(ctx, t, before)
	if err != nil {
		return Answer{}, a.failTry(ctx, err, checkTries)
	}
	failpoint.Hit(failpoint.InputsChecked)
	// A check that was cut short is stored only if it found something new.
	if ctx.Err() == nil || after.Over || len(after.Passed) > len(before.Passed) {
		events := []task.Event{task.InputsChecked{Check: after}}
		if after.Over {
			events = append(events, stepEnded(in), task.Asked{Seen: in.Seen})
		}
		changed, err := a.persist(ctx, t.ID, events...)
		if err != nil {
			return Answer{}, a.fail(ctx, err)
		}
		if after.Over {
			return answerTo(changed), nil
		}
	}
	switch {
	case ctx.Err() != nil:
		return Answer{}, ctx.Err() // the next worker continues
	// The account has used up what may be fetched for it today. That is no failure, and no try.
	case waits:
		return Answer{}, a.fail(ctx, retryWithoutPermit(ctx, "what was fetched for the account today"))
	}
	return Answer{}, a.fail(ctx, mediagate.Errorf(mediagate.KindTransient, "the server of an input is away"))
}

// checkInputs fetches the files that were not found good before, several at the same time. If
// several are bad, the failure names the first one in the order of the request, and the fetches of
// the files after it are cut off. waits says that files wait because the account may fetch no more
// for now.
//
// For example, if the second of three files is bad, the fetch of the third one ends at once. The
// fetch of the first one goes on: if that file is bad, too, the failure names it instead.
func (a *Activities) checkInputs(
	ctx context.Context, t mediagate.Task, before mediagate.InputCheck,
) (after mediagate.InputCheck, waits bool, err error) {
	var due []mediagate.Input
	for _, in := range t.Plan.Inputs {
		if !slices.Contains(before.Passed, in.Field) {
			due = append(due, in)
		}
	}
	request, err := media.Decode(t.Params)
	if err != nil {
		return before, false, err
	}
	// All files together have CheckTime. A file that has not arrived by then is too slow, which
	// fails the task. A file whose fetch has not begun by then is left to the next try.
	fetchCtx, stop := context.WithTimeoutCause(ctx, a.Settings.CheckTime, media.ErrSlow)
	defer stop()
	// Each file has its own context, so that a bad file ends the fetches of the files after it,
	// and of no others.
	found := make([]error, len(due))
	ctxs := make([]context.Context, len(due))
	cancels := make([]context.CancelFunc, len(due))
	for i := range due {
		ctxs[i], cancels[i] = context.WithCancel(fetchCtx)
		defer cancels[i]()
	}
	var group errgroup.Group
	group.SetLimit(checkWidth)
	for i, in := range due {
		// Each goroutine writes its own element of found, so no lock is needed.
		group.Go(func() error {
			if fetchCtx.Err() != nil {
				found[i] = mediagate.Errorf(mediagate.KindTransient, "there was no time left to fetch %s", in.Field)
				return nil
			}
			found[i] = a.checkInput(ctxs[i], t, request, in)
			// A file after this one cannot change the result: the first bad file is the one that
			// is named.
			if isFinal(mediagate.KindOf(found[i])) {
				for _, cancel := range cancels[i+1:] {
					cancel()
				}
			}
			return nil
		})
	}
	_ = group.Wait() // the errors are in found
	return a.conclude(ctx, before, due, found)
}

// conclude returns the result of the check. found holds the error of each file in due, in the order
// of the request, and nil for a good file. conclude returns an error only for a fault of ours, for
// example of the bucket. A check that was cut short, or that waits for the account's allowance, is
// not over and counts no try. Otherwise a server that was away counts one try for the whole check,
// however many of its files were missing.
func (a *Activities) conclude(
	ctx context.Context, before mediagate.InputCheck, due []mediagate.Input, found []error,
) (after mediagate.InputCheck, waits bool, err error) {
	after = mediagate.InputCheck{Passed: slices.Clone(before.Passed), Tries: before.Tries}
	var away error
	for i, err := range found {
		switch kind := mediagate.KindOf(err); {
		case err == nil:
			after.Passed = append(after.Passed, due[i].Field)
		case isFinal(kind):
			// The files after this one do not matter: a bad file ends the task.
			e, _ := errors.AsType[*mediagate.Error](err)
			after.Over = true
			after.Failure = &mediagate.Failure{Code: mediagate.FailureCode(e.Code), Message: e.Message}
			return after, false, nil
		// The check was cut short. Nothing is known of this file.
		case ctx.Err() != nil:
		case errors.Is(err, errNoPermit):
			waits = true
		case kind == mediagate.KindTransient:
			away = cmp.Or(away, err)
		default:
			return after, false, err
		}
	}
	switch {
	// Not all files were checked: the check goes on later, and this is no try.
	case ctx.Err() != nil:
	case away == nil && waits:
	case away == nil:
		after.Over = true
	default:
		after.Tries++
		if after.Tries >= inputTries {
			after.Over = true
			after.Failure = &mediagate.Failure{
				Code: mediagate.CodeImageProcessing, Message: messageOf(away), Retryable: true,
			}
		}
	}
	return after, waits && away == nil, nil
}

// checkInput fetches one file as far as needed to check it. It returns KindInvalid, with the code
// of the failure, for a bad file; KindTransient while the file's server is away; and the errors of
// the bucket. The file comes from a stranger, and may make the check panic. Without the guard, such
// a file would end this process, and at each repetition another one. A panic is an error of
// KindInternal, so the task parks after the last try.
func (a *Activities) checkInput(ctx context.Context, t mediagate.Task, request any, in mediagate.Input) error {
	return mediagate.Guarded(func() error {
		return a.Settings.InputPace.Check(ctx, in, func(ctx context.Context) (io.ReadCloser, int64, error) {
			return a.openInput(ctx, t, request, in)
		})
	})
}

// openInput opens what a field of the request names. Media that came within the request, or were
// uploaded before, are in the bucket; all others are fetched from their address. openInput returns
// errNoPermit while no more may be fetched for the account. Only files that are fetched count
// against the account's allowance.
func (a *Activities) openInput(
	ctx context.Context, t mediagate.Task, request any, in mediagate.Input,
) (io.ReadCloser, int64, error) {
	field := in.Field
	if key, ok := t.Plan.Uploads[field]; ok {
		return a.openStored(ctx, key, field)
	}
	for _, source := range t.Sources {
		if source.Field == field {
			return a.openStored(ctx, source.Key, field)
		}
	}
	url, ok := media.FieldAt(request, field).(string)
	if !ok {
		return nil, 0, mediagate.Errorf(mediagate.KindInternal, "no address in the request at %s", field)
	}
	if a.FileOf != nil {
		if f, ok := a.FileOf(url); ok {
			return a.openStored(ctx, f.Key(), field)
		}
	}
	body, length, err := a.Fetcher.FetchMedia(ctx, url)
	if err != nil {
		return nil, 0, media.NotOpened(field, err)
	}
	counted, err := a.countFetched(ctx, t.AccountID, body, media.MostRead(in, length))
	if err != nil {
		_ = body.Close()
		return nil, 0, err
	}
	return counted, length, nil
}

// fetched is a file whose bytes are counted for its account. The check reads and closes it in one
// goroutine.
type fetched struct {
	io.ReadCloser
	// Bytes that were read so far.
	read     int64
	giveBack func(unread int64)
	// Bytes that were taken from the account's allowance when the file was opened.
	taken int64
}

// countFetched takes from the account's allowance as many bytes as may be read of the file. The
// bytes that were not read are given back when the file is closed; if the process dies before, they
// stay taken. For example, a check may read up to 20 MB of a file, so 20 MB are taken. It needs only
// 300 kB, and gives back the rest. Since the most is taken first, many files that are fetched at the
// same time cannot exceed the allowance together.
func (a *Activities) countFetched(
	ctx context.Context, accountID string, body io.ReadCloser, most int64,
) (*fetched, error) {
	taken, ok, err := a.Store.TakeFetched(ctx, accountID, most)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return nil, errNoPermit
	}
	return &fetched{ReadCloser: body, taken: taken, giveBack: func(unread int64) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
		defer cancel()
		if _, _, err := a.Store.TakeFetched(ctx, accountID, -unread); err != nil {
			a.Logger.WarnContext(ctx, "the account lacks bytes that were not fetched",
				"account", accountID, "bytes", unread, "error", err)
		}
	}}, nil
}

// Read reads from the file, and counts the bytes.
func (f *fetched) Read(b []byte) (int, error) {
	n, err := f.ReadCloser.Read(b)
	f.read += int64(n)
	return n, err
}

// Close gives back the bytes that were not read, and closes the connection.
func (f *fetched) Close() error {
	if f.read < f.taken {
		f.giveBack(f.taken - f.read)
	}
	return f.ReadCloser.Close()
}

// openStored opens an object of our own for a field of the request. A missing object is an error of
// the request. Any other error is the bucket's, so the task parks as storage_unavailable.
func (a *Activities) openStored(ctx context.Context, key, field string) (io.ReadCloser, int64, error) {
	body, length, err := a.Bucket.Open(ctx, key)
	switch {
	case mediagate.Is(err, mediagate.KindGone):
		err = media.Unusable(field, "is not there any more")
	case err != nil:
		err = withCode(err, string(mediagate.ParkStorage))
	}
	return body, length, err
}
