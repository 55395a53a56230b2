package activities

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
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
	times := turnedAway(ctx)
	defer heartbeat(ctx, func() []any { return turned(times) }, nil)()
	if tryOf(ctx) > checkTries {
		return Answer{}, a.fail(ctx, lastTry{mediagate.Errorf(mediagate.KindTransient, "the step took too long")})
	}
	t, err := a.Store.TaskByID(ctx, in.TaskID)
	if mediagate.Is(err, mediagate.KindNotFound) {
		return Answer{Missing: true}, nil
	}
	if err != nil {
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
	permit, err := inTurn(ctx, a.Settings.TurnWait, func(ctx context.Context) (*limit.Permit, error) {
		return a.Limits.Inputs.Acquire(ctx, t.AccountID, 1)
	})
	switch {
	case errors.Is(err, errNoTurn):
		activity.RecordHeartbeat(ctx, turned(times+1)...)
		return Answer{}, a.fail(ctx, laterInTurn(ctx, "other files of the account"))
	case err != nil:
		return Answer{}, err
	}
	defer permit.Release()
	after, waits, err := a.checkInputs(ctx, t, before)
	switch {
	case err != nil && tryOf(ctx) >= checkTries:
		return Answer{}, a.fail(ctx, lastTry{err})
	case err != nil:
		return Answer{}, a.fail(ctx, err)
	}
	failpoint.Hit(failpoint.InputsChecked)
	switch {
	case after.Over:
		changed, err := a.persist(ctx, t.ID, task.InputsChecked{Check: after}, ended(in), task.Asked{Seen: in.Seen})
		if err != nil {
			return Answer{}, a.fail(ctx, err)
		}
		return a.answer(changed), nil
	case ctx.Err() == nil || len(after.Passed) > len(before.Passed):
		if _, err := a.persist(ctx, t.ID, task.InputsChecked{Check: after}); err != nil {
			return Answer{}, a.fail(ctx, err)
		}
	}
	switch {
	case ctx.Err() != nil:
		return Answer{}, ctx.Err() // the next worker goes on
	case waits:
		activity.RecordHeartbeat(ctx, turned(times+1)...)
		return Answer{}, a.fail(ctx, laterInTurn(ctx, "what was fetched for the account today"))
	}
	return Answer{}, a.fail(ctx, mediagate.Errorf(mediagate.KindTransient, "the server of an input is away"))
}

// checkInputs fetches what was not found good before, several files at once. Of
// several bad ones the first in the order of the request is named: those after
// a bad one are not waited for. waits tells that others wait until the account may have
// as much fetched.
func (a *Activities) checkInputs(ctx context.Context, task mediagate.Task, before mediagate.InputCheck) (after mediagate.InputCheck, waits bool, err error) {
	var due []mediagate.Input
	for _, in := range task.Plan.Inputs {
		if !slices.Contains(before.Passed, in.Field) {
			due = append(due, in)
		}
	}
	request, err := media.Decode(task.Params)
	if err != nil {
		return before, false, err
	}
	fetchCtx, stop := context.WithTimeoutCause(ctx, a.Settings.CheckTime, media.ErrSlow)
	defer stop()
	found, ctxs, cancels := make([]error, len(due)), make([]context.Context, len(due)), make([]context.CancelFunc, len(due))
	for i := range due {
		ctxs[i], cancels[i] = context.WithCancel(fetchCtx)
		defer cancels[i]()
	}
	var group errgroup.Group
	group.SetLimit(checkWidth)
	for i, in := range due {
		group.Go(func() error {
			found[i] = a.checkGuarded(ctxs[i], task, request, in)
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
func (a *Activities) conclude(ctx context.Context, before mediagate.InputCheck, due []mediagate.Input, found []error) (after mediagate.InputCheck, waits bool, err error) {
	after = mediagate.InputCheck{Passed: slices.Clone(before.Passed), Tries: before.Tries}
	var away error
	for i, err := range found {
		switch kind := mediagate.KindOf(err); {
		case err == nil:
			after.Passed = append(after.Passed, due[i].Field)
		case final(kind):
			e, _ := errors.AsType[*mediagate.Error](err)
			after.Over, after.Failure = true, &mediagate.Failure{Code: mediagate.FailureCode(e.Code), Message: e.Message}
			return after, false, nil
		case ctx.Err() != nil:
		case errors.Is(err, errNoTurn):
			waits = true
		case kind == mediagate.KindTransient:
			if away == nil {
				away = err
			}
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
			after.Over, after.Failure = true, &mediagate.Failure{Code: mediagate.CodeImageProcessing, Message: messageOf(away), Retryable: true}
		}
	}
	return after, waits && away == nil, nil
}

// checkGuarded is checkInput in a goroutine of its own, where a panic would end the
// process, and with each repetition the next: the file is a stranger's.
func (a *Activities) checkGuarded(ctx context.Context, task mediagate.Task, request any, in mediagate.Input) (err error) {
	defer func() {
		if p := recover(); p != nil {
			a.Logger.ErrorContext(ctx, "checking a file panicked", "task", task.ID, "field", in.Field, "error", mediagate.Panicked(p))
			err = mediagate.Errorf(mediagate.KindInternal, "checking a file panicked")
		}
	}()
	return a.checkInput(ctx, task, request, in)
}

// checkInput fetches one file as far as it takes to check it. Errors are
// KindInvalid, with the code of the failure, for one that is no good,
// KindTransient while its server is away, and those of the bucket.
func (a *Activities) checkInput(ctx context.Context, task mediagate.Task, request any, in mediagate.Input) error {
	return a.Settings.InputPace.Check(ctx, in, func(ctx context.Context) (io.ReadCloser, int64, error) {
		return a.openInput(ctx, task, request, in)
	})
}

// openInput opens what a field of the request names: what came within it, or
// was uploaded before, is in the bucket, all else behind its address. Returns errNoTurn
// while no more may be fetched for the account.
func (a *Activities) openInput(ctx context.Context, task mediagate.Task, request any, in mediagate.Input) (io.ReadCloser, int64, error) {
	field := in.Field
	if key, ok := task.Plan.Uploads[field]; ok {
		return a.openOwn(ctx, key, field)
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
	counted, err := a.countFetched(ctx, task.AccountID, body, media.MostRead(in, length))
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
func (a *Activities) countFetched(ctx context.Context, accountID string, body io.ReadCloser, bytes int64) (*fetched, error) {
	taken, ok, err := a.Store.TakeFetched(ctx, accountID, bytes)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return nil, errNoTurn
	}
	return &fetched{ReadCloser: body, taken: taken, giveBack: func(unread int64) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
		defer cancel()
		if _, _, err := a.Store.TakeFetched(ctx, accountID, -unread); err != nil {
			a.Logger.WarnContext(ctx, "the account lacks bytes that were not fetched", "account", accountID, "bytes", unread, "error", err)
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

// inputTries is how many attempts a task makes while the server of its media is
// away. The workflow's pauses between them add up to half a minute.
const inputTries = 5

// inputs opens the media of a client for one call (mediagate.Inputs).
type inputs struct {
	fetcher Fetcher
	bucket  Bucket
	own     map[string]string // our links, to what came within the request and to uploads → object key
	params  json.RawMessage   // of the job, where the links have their places

	mu     sync.Mutex
	failed error // the first
}

// Open fetches through the guarded client; what is our own is read from the
// bucket itself, which may be where that client may not go. A file that
// is no media is refused by its first bytes. A picture is read as an upload is:
// without what does not show, and up to the end of it.
func (in *inputs) Open(ctx context.Context, url string, limit int64) (io.ReadCloser, int64, error) {
	var (
		body   io.ReadCloser
		length int64
		err    error
	)
	if key, ok := in.own[url]; ok {
		body, length, err = in.bucket.Open(ctx, key)
	} else {
		body, length, err = in.fetcher.FetchMedia(ctx, url)
	}
	field := in.field(url)
	if err != nil {
		return nil, 0, in.note(media.NotOpened(field, err))
	}
	return media.Clean(field, body, length, limit, in.note)
}

// field is where the request has the link; the first place of several.
func (in *inputs) field(url string) string {
	if request, err := media.Decode(in.params); err == nil {
		if path, ok := media.PathOf(request, url); ok {
			return path
		}
	}
	return "an input"
}

// note remembers an error, so that what the adapter makes of it is known for
// what it is.
func (in *inputs) note(err error) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.failed == nil {
		in.failed = err
	}
	return err
}

// refusal is how an attempt ends that made no job for want of the client's
// media. ok is false where the call failed for another reason, or may have had
// its effect.
func (in *inputs) refusal(callErr error, n int) (f mediagate.Failure, ok bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	switch kind := mediagate.KindOf(callErr); {
	case in.failed == nil:
		return f, false
	case kind == mediagate.KindUnreached: // broken off while it was sent on
	case !errors.Is(callErr, in.failed), kind != mediagate.KindInvalid && kind != mediagate.KindTransient:
		return f, false
	}
	return mediagate.Failure{
		Code: mediagate.CodeImageProcessing, Message: messageOf(in.failed),
		Retryable: mediagate.Is(in.failed, mediagate.KindTransient) && n < inputTries,
	}, true
}

const (
	// fileMargin is how much longer than the waiting for the vendor the link of
	// a client's upload must work to be handed on.
	fileMargin = time.Hour
	// fileAge is when uploads are removed: later than their links end by more
	// than a submit may take from its check to its row.
	fileAge = mediagate.FileLife + time.Hour
)

// file is the upload behind a link of ours.
func (a *Activities) file(url string) (f mediagate.File, ok bool) {
	if a.FileOf == nil {
		return mediagate.File{}, false
	}
	return a.FileOf(url)
}

// withFiles finds the links of uploads in a request and notes their objects in
// own. A link goes to the vendor as it is; where it would end before the waiting
// for the vendor does, a signed one takes its place.
func (a *Activities) withFiles(ctx context.Context, task mediagate.Task, own map[string]string) (json.RawMessage, error) {
	if a.FileOf == nil || !bytes.Contains(task.Params, []byte(mediagate.FileFolder)) {
		return task.Params, nil
	}
	request, err := media.Decode(task.Params)
	if err != nil {
		return nil, err
	}
	now, replaced := a.Now(), false
	request, err = media.EachText(request, func(text string) (string, error) {
		f, ok := a.file(text)
		if !ok {
			return text, nil
		}
		own[text] = f.Key()
		if !f.ExpiresAt().Before(task.WaitsUntil(now).Add(fileMargin)) {
			return text, nil
		}
		link, err := a.Bucket.Sign(ctx, mediagate.Result{Key: f.Key()}, uploadLink)
		own[link.URL], replaced = f.Key(), true
		return link.URL, err
	})
	if err != nil || !replaced {
		return task.Params, err
	}
	return media.Encode(request)
}

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
