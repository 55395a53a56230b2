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

// checkWidth is how many files of one task are fetched at once: a list of
// references in one go, and no flood for the server that has them all.
const checkWidth = 6

// checkTries is how often the check is tried that a fault of ours ends, or whose worker
// is lost.
const checkTries = 12

// CheckInputs validates the client's media that the contract bounds, before
// anything is submitted. What it found is on the task's row; what was found good
// is not fetched again. It returns KindTransient while a server of theirs is
// away, to be repeated; after a few times that is a failure of the task, too.
func (a *Activities) CheckInputs(ctx context.Context, in StepArgs) (Answer, error) {
	defer a.stopped(ctx, in.TaskID)
	times := timesRefused(ctx)
	defer heartbeat(ctx, func() []any { return refusedDetails(times) }, nil)()
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
	before := st.Inputs
	if before.Over || t.Status.Terminal() || !t.CancelRequestedAt.IsZero() {
		return a.stepDone(ctx, in)
	}
	permit, err := waitForPermit(ctx, a.Settings.PermitWait, func(ctx context.Context) (*limit.Permit, error) {
		return a.Limits.Inputs.Acquire(ctx, t.AccountID, 1)
	})
	switch {
	case errors.Is(err, errNoPermit):
		return Answer{}, a.fail(ctx, refused(ctx, "other files of the account"))
	case err != nil:
		return Answer{}, err
	}
	defer permit.Release()
	return a.checkAndStore(ctx, in, t, before)
}

// checkAndStore checks what was not found good before, and stores what it found: with the
// end of the step, once there is nothing left to find.
func (a *Activities) checkAndStore(
	ctx context.Context, in StepArgs, t mediagate.Task, before mediagate.InputCheck,
) (Answer, error) {
	after, waits, err := a.checkInputs(ctx, t, before)
	if err != nil {
		return Answer{}, a.failTry(ctx, err, checkTries)
	}
	failpoint.Hit(failpoint.InputsChecked)
	if ctx.Err() == nil || after.Over || len(after.Passed) > len(before.Passed) {
		events := []task.Event{task.InputsChecked{Check: after}}
		if after.Over {
			events = append(events, ended(in), task.Asked{Seen: in.Seen})
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
		return Answer{}, ctx.Err() // the next worker goes on
	case waits:
		return Answer{}, a.fail(ctx, refused(ctx, "what was fetched for the account today"))
	}
	return Answer{}, a.fail(ctx, mediagate.Errorf(mediagate.KindTransient, "the server of an input is away"))
}

// checkInputs fetches what was not found good before, several files at once. Of
// several bad ones the first in the order of the request is named: those after
// a bad one are not waited for. waits tells that others wait until the account may have
// as much fetched.
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
	fetchCtx, stop := context.WithTimeoutCause(ctx, a.Settings.CheckTime, media.ErrSlow)
	defer stop()
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
		group.Go(func() error {
			found[i] = a.checkInput(ctxs[i], t, request, in)
			if final(mediagate.KindOf(found[i])) {
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

// conclude is what follows from what was found wrong with each file. An error is a fault of
// ours: of the bucket, say.
func (a *Activities) conclude(
	ctx context.Context, before mediagate.InputCheck, due []mediagate.Input, found []error,
) (after mediagate.InputCheck, waits bool, err error) {
	after = mediagate.InputCheck{Passed: slices.Clone(before.Passed), Tries: before.Tries}
	var away error
	for i, err := range found {
		switch kind := mediagate.KindOf(err); {
		case err == nil:
			after.Passed = append(after.Passed, due[i].Field)
		case final(kind):
			e, _ := errors.AsType[*mediagate.Error](err)
			after.Over = true
			after.Failure = &mediagate.Failure{Code: mediagate.FailureCode(e.Code), Message: e.Message}
			return after, false, nil
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

// checkInput fetches one file as far as it takes to check it. Errors are
// KindInvalid, with the code of the failure, for one that is no good,
// KindTransient while its server is away, and those of the bucket. The file is a
// stranger's: without the guard a panic would end the process, and with each repetition
// the next.
func (a *Activities) checkInput(ctx context.Context, t mediagate.Task, request any, in mediagate.Input) error {
	return mediagate.Guarded(func() error {
		return a.Settings.InputPace.Check(ctx, in, func(ctx context.Context) (io.ReadCloser, int64, error) {
			return a.openInput(ctx, t, request, in)
		})
	})
}

// openInput opens what a field of the request names: what came within it, or
// was uploaded before, is in the bucket, all else behind its address. Returns errNoPermit
// while no more may be fetched for the account.
func (a *Activities) openInput(
	ctx context.Context, t mediagate.Task, request any, in mediagate.Input,
) (io.ReadCloser, int64, error) {
	field := in.Field
	if key, ok := t.Plan.Uploads[field]; ok {
		return a.openOwn(ctx, key, field)
	}
	for _, source := range t.Sources {
		if source.Field == field {
			return a.openOwn(ctx, source.Key, field)
		}
	}
	url, ok := media.FieldAt(request, field).(string)
	if !ok {
		return nil, 0, mediagate.Errorf(mediagate.KindInternal, "no address in the request at %s", field)
	}
	if f, ok := a.file(url); ok {
		return a.openOwn(ctx, f.Key(), field)
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

// fetched is a file that is counted for its account.
type fetched struct {
	io.ReadCloser
	read     int64
	giveBack func(unread int64)
	taken    int64
}

// countFetched takes as many bytes for the account as may be read of the file. Those that
// were not are given back once it is closed; by a process that dies they are not.
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

func (f *fetched) Read(b []byte) (int, error) {
	n, err := f.ReadCloser.Read(b)
	f.read += int64(n)
	return n, err
}

func (f *fetched) Close() error {
	if f.read < f.taken {
		f.giveBack(f.taken - f.read)
	}
	return f.ReadCloser.Close()
}

func (a *Activities) openOwn(ctx context.Context, key, field string) (io.ReadCloser, int64, error) {
	body, length, err := a.Bucket.Open(ctx, key)
	switch {
	case mediagate.Is(err, mediagate.KindGone):
		err = media.Unusable(field, "is not there any more")
	case err != nil:
		err = withCode(err, string(mediagate.ParkStorage))
	}
	return body, length, err
}
