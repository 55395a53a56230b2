package activities

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/failpoint"
	"github.com/mediagate/mediagate/mediainfo"
	"github.com/mediagate/mediagate/task"
)

// judgeWidth is how many files of one task are fetched at once: a list of
// references in one go, and no flood for the server that has them all.
const judgeWidth = 6

// CheckInputs validates the client's media that the contract bounds, before
// anything is submitted. What it found is on the task's row; what was found good
// is not fetched again. It returns KindTransient while a server of theirs is
// away, to be repeated; after a few times that is a failure of the task, too.
func (a *Activities) CheckInputs(ctx context.Context, in StepArgs) (Answer, error) {
	defer heartbeat(ctx, noDetails)()
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
	after, err := a.judge(ctx, t, before)
	if err != nil {
		return Answer{}, a.fail(ctx, err)
	}
	failpoint.Hit(failpoint.InputsJudged)
	switch {
	case after.Over:
		changed, err := a.persist(ctx, t.ID, task.InputsChecked{Judgement: after}, ended(in), task.Asked{Begun: in.Begun})
		if err != nil {
			return Answer{}, a.fail(ctx, err)
		}
		return a.answer(changed), nil
	case ctx.Err() == nil || len(after.Passed) > len(before.Passed):
		if _, err := a.persist(ctx, t.ID, task.InputsChecked{Judgement: after}); err != nil {
			return Answer{}, a.fail(ctx, err)
		}
	}
	if ctx.Err() != nil {
		return Answer{}, ctx.Err() // the next worker goes on
	}
	return Answer{}, a.fail(ctx, mediagate.Errorf(mediagate.KindTransient, "the server of an input is away"))
}

// judge fetches what was not found good before, several files at once. Of
// several bad ones the first in the order of the request is named: those after
// a bad one are not waited for.
func (a *Activities) judge(ctx context.Context, task mediagate.Task, before mediagate.Judgement) (mediagate.Judgement, error) {
	var due []mediagate.Input
	for _, in := range task.Plan.Inputs {
		if !slices.Contains(before.Passed, in.Field) {
			due = append(due, in)
		}
	}
	request, err := parse(task.Params)
	if err != nil {
		return before, err
	}
	fetchCtx, stop := context.WithTimeoutCause(ctx, a.Settings.JudgeTime, errSlow)
	defer stop()
	verdicts, ctxs, cancels := make([]error, len(due)), make([]context.Context, len(due)), make([]context.CancelFunc, len(due))
	for i := range due {
		ctxs[i], cancels[i] = context.WithCancel(fetchCtx)
		defer cancels[i]()
	}
	var group errgroup.Group
	group.SetLimit(judgeWidth)
	for i, in := range due {
		group.Go(func() error {
			verdicts[i] = a.judgeGuarded(ctxs[i], task, request, in)
			if final(mediagate.KindOf(verdicts[i])) {
				for _, cancel := range cancels[i+1:] {
					cancel()
				}
			}
			return nil
		})
	}
	_ = group.Wait() // the verdicts are the errors
	return a.sum(ctx, before, due, verdicts)
}

// sum is the judgement that follows from the verdicts. An error is a fault of
// ours: of the bucket, say.
func (a *Activities) sum(ctx context.Context, before mediagate.Judgement, due []mediagate.Input, verdicts []error) (mediagate.Judgement, error) {
	after := mediagate.Judgement{Passed: slices.Clone(before.Passed), Tries: before.Tries}
	var away error
	for i, verdict := range verdicts {
		switch kind := mediagate.KindOf(verdict); {
		case verdict == nil:
			after.Passed = append(after.Passed, due[i].Field)
		case final(kind):
			e, _ := errors.AsType[*mediagate.Error](verdict)
			after.Over, after.Failure = true, &mediagate.Failure{Code: mediagate.FailureCode(e.Code), Message: e.Message}
			return after, nil
		case ctx.Err() != nil:
		case kind == mediagate.KindTransient:
			if away == nil {
				away = verdict
			}
		default:
			return after, verdict
		}
	}
	switch {
	case ctx.Err() != nil:
	case away == nil:
		after.Over = true
	default:
		after.Tries++
		if after.Tries >= inputTries {
			after.Over, after.Failure = true, &mediagate.Failure{Code: mediagate.CodeImageProcessing, Message: messageOf(away), Retryable: true}
		}
	}
	return after, nil
}

// judgeGuarded is judgeOne in a goroutine of its own, where a panic would end the
// process, and with each repetition the next: the file is a stranger's.
func (a *Activities) judgeGuarded(ctx context.Context, task mediagate.Task, request any, in mediagate.Input) (verdict error) {
	defer func() {
		if p := recover(); p != nil {
			a.Logger.ErrorContext(ctx, "judging a file panicked", "task", task.ID, "field", in.Field, "error", mediagate.Panicked(p))
			verdict = mediagate.Errorf(mediagate.KindInternal, "judging a file panicked")
		}
	}()
	return a.judgeOne(ctx, task, request, in)
}

// judgeOne fetches one file as far as it takes to judge it. Errors are
// KindInvalid, with the code of the failure, for one that is no good,
// KindTransient while its server is away, and those of the bucket.
func (a *Activities) judgeOne(ctx context.Context, task mediagate.Task, request any, in mediagate.Input) error {
	ctx, cancel := context.WithTimeoutCause(ctx, a.Settings.InputTime, errSlow)
	defer cancel()
	ctx, hangUp := context.WithCancelCause(ctx)
	defer hangUp(nil)
	paced := a.pace(hangUp)
	defer paced.stop()

	body, length, err := a.openInput(ctx, task, request, in.Field)
	if err != nil {
		return paced.blame(ctx, in.Field, err)
	}
	defer body.Close()
	paced.r = body
	if in.MaxBytes > 0 && length > in.MaxBytes {
		return wrong(in.Field, tooManyBytes(in.MaxBytes))
	}
	counted := &counter{r: paced, max: in.MaxBytes}
	facts, err := mediainfo.Inspect(counted)
	if words, ok := errors.AsType[mediainfo.Unreadable](err); ok {
		return wrong(in.Field, flaw{unusable: true, words: words.Error()})
	}
	if err == nil {
		if f, ok := sane(in.Kind, facts); !ok {
			return wrong(in.Field, f)
		}
		if f, ok := within(in, facts); !ok {
			return wrong(in.Field, f)
		}
		if in.MaxBytes > 0 && length < 0 { // its end alone tells its size
			_, err = io.Copy(io.Discard, counted)
		}
	}
	if counted.over {
		return wrong(in.Field, tooManyBytes(in.MaxBytes))
	}
	return paced.blame(ctx, in.Field, err)
}

// openInput opens what a field of the request names: what came within it, or
// was uploaded before, is in the bucket, all else behind its address.
func (a *Activities) openInput(ctx context.Context, task mediagate.Task, request any, field string) (io.ReadCloser, int64, error) {
	if key, ok := task.Plan.Uploads[field]; ok {
		return a.openOwn(ctx, key, field)
	}
	url, ok := fieldAt(request, field).(string)
	if !ok {
		return nil, 0, mediagate.Errorf(mediagate.KindInternal, "no address in the request at %s", field)
	}
	if f, ok := a.file(url); ok {
		return a.openOwn(ctx, f.Key(), field)
	}
	body, length, err := a.Fetcher.Fetch(ctx, url, "")
	if err != nil {
		return nil, 0, inputError(field, err)
	}
	return body, length, nil
}

func (a *Activities) openOwn(ctx context.Context, key, field string) (io.ReadCloser, int64, error) {
	body, length, err := a.Bucket.Open(ctx, key)
	switch {
	case mediagate.Is(err, mediagate.KindGone):
		err = wrong(field, flaw{unusable: true, words: "is not there any more"})
	case err != nil:
		err = withCode(err, string(mediagate.ParkStorage))
	}
	return body, length, err
}

func wrong(field string, f flaw) error {
	return &mediagate.Error{Kind: mediagate.KindInvalid, Code: string(f.code()), Param: field, Message: field + " " + f.words}
}

func tooManyBytes(most int64) flaw {
	return flaw{words: "has more than " + strconv.FormatInt(most, 10) + " bytes, the most that are allowed"}
}

// counter ends a file that is longer than it may be, whatever it said of
// itself. A max of 0 is none of the contract's.
type counter struct {
	r    io.Reader
	read int64
	max  int64
	over bool
}

// mostBytes is what is read of a file whose size no contract bounds, for the
// headers that may stand at its end.
const mostBytes = 512 << 20

var errOver = errors.New("the file is too long")

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.read += int64(n)
	switch {
	case c.max > 0 && c.read > c.max:
		c.over = true
		return 0, errOver
	case c.read > mostBytes:
		return 0, errSlow
	}
	return n, err
}

// errSlow is why a file is not waited for any longer though it arrives.
var errSlow = errors.New("the file does not arrive in time")

// errStalled is why a server is hung up on that does not answer.
var errStalled = errors.New("the server does not answer")

// pace watches over a file on its way: in each interval something has to
// arrive, and enough of it once it does.
type pace struct {
	r     io.Reader
	read  atomic.Int64
	quit  chan struct{}
	ended sync.WaitGroup
}

func (a *Activities) pace(hangUp context.CancelCauseFunc) *pace {
	p := &pace{quit: make(chan struct{})}
	p.ended.Go(func() {
		tick := time.NewTicker(a.Settings.InputLook)
		defer tick.Stop()
		var before int64
		for {
			select {
			case <-p.quit:
				return
			case <-tick.C:
			}
			now := p.read.Load()
			switch {
			case now == before:
				hangUp(errStalled)
			case before > 0 && now-before < a.Settings.InputPace:
				hangUp(errSlow)
			}
			before = now
		}
	})
	return p
}

func (p *pace) stop() {
	close(p.quit)
	p.ended.Wait()
}

func (p *pace) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	p.read.Add(int64(n))
	return n, err
}

// blame says what an error on the way means: a file that crawls is no good, a
// server that fell silent may come back.
func (p *pace) blame(ctx context.Context, field string, err error) error {
	_, ours := errors.AsType[*mediagate.Error](err)
	switch cause := context.Cause(ctx); {
	case err == nil:
		return nil
	case errors.Is(cause, errSlow), errors.Is(err, errSlow):
		return wrong(field, flaw{unusable: true, words: "arrives too slowly, or does not end"})
	case errors.Is(cause, errStalled):
		return serverAway(field, err)
	case ours:
		return err
	default:
		return brokeOff(field, err)
	}
}

// parse reads a stored request.
func parse(params json.RawMessage) (any, error) {
	var request any
	if err := json.Unmarshal(params, &request); err != nil {
		return nil, &mediagate.Error{Kind: mediagate.KindInternal, Message: "the stored request cannot be read", Err: err}
	}
	return request, nil
}

// fieldAt is what a path like subjects[1].image_urls[0] leads to; nil where
// nothing is there.
func fieldAt(in any, path string) any {
	for path != "" {
		if rest, ok := strings.CutPrefix(path, "["); ok {
			digits, rest, _ := strings.Cut(rest, "]")
			list, _ := in.([]any)
			i, err := strconv.Atoi(digits)
			if err != nil || i < 0 || i >= len(list) {
				return nil
			}
			in, path = list[i], strings.TrimPrefix(rest, ".")
			continue
		}
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			end = len(path)
		}
		fields, _ := in.(map[string]any)
		in, path = fields[path[:end]], strings.TrimPrefix(path[end:], ".")
	}
	return in
}
