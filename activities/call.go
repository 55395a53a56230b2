package activities

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/channel"
	"github.com/mediagate/mediagate/internal/failpoint"
	"github.com/mediagate/mediagate/media"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/task"
)

// LongestSubmit is that of all adapters. It is taken for an operation that none
// of this worker describes: one that another release had.
const LongestSubmit = 150 * time.Second

// operation is what the adapter says of the route's operation.
func (a *Activities) operation(r mediagate.Route) providers.Operation {
	if o, ok := a.Descriptions.Operation(r); ok && o.Submit > 0 {
		return o
	}
	return providers.Operation{Sync: r.Sync, Submit: LongestSubmit}
}

// callResult is what came of one call to a vendor: what it accepted, or a refusal
// which proves that it has no job, or neither.
type callResult struct {
	submission *mediagate.Submission
	refusal    *mediagate.Failure
	err        error // of the call, for logs
	silent     bool  // it tells the channel's breaker nothing
}

// tell lets the channel's breaker know how the call ended.
func (r callResult) tell(ctx context.Context, pass channel.Pass) {
	if r.silent {
		pass.Unused(ctx)
		return
	}
	pass.Ended(ctx, r.err)
}

// detail is what is recorded of a call without an answer.
func (r callResult) detail() string { return mediagate.KindOf(r.err).String() }

// call submits the attempt's job to the vendor. It lasts no longer than the row says (D4).
//
// The client's cancel ends a synchronous call, since closing the connection is
// the only way to stop such a job. An asynchronous submit is let finish: in seconds
// it tells the job's id. Nothing else ends the call: not that Temporal cannot be
// reached, and not that the activity has timed out there.
func (a *Activities) call(ctx context.Context, t mediagate.Task, row task.Attempt, c channel.Channel) callResult {
	longest := a.operation(row.Route).Submit
	timeout := min(longest, row.CallEnds.Add(-a.Settings.ClockSkew).Sub(a.Now()))
	callCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	if row.Route.Sync {
		defer context.AfterFunc(ctx, func() {
			if isCancelled(ctx) {
				cancel()
			}
		})()
	}
	job, own, err := a.job(callCtx, t, row)
	if err != nil {
		a.Logger.WarnContext(ctx, "a job could not be made", "task", t.ID, "attempt", row.N, "error", err)
		return notMade(err)
	}
	opened := &inputs{fetcher: a.Fetcher, bucket: a.Bucket, own: own, params: job.Params}
	files := &sink{activities: a, task: t, row: row}
	job.Inputs, job.Sink = opened, files
	if !a.Now().Before(row.SendBefore) { // D4: it was stored, or reported, so late
		err := mediagate.Errorf(mediagate.KindUnreached, "the time to send is over")
		failure, _ := rejection(err)
		return callResult{err: err, refusal: &failure, silent: true}
	}
	submission, err := c.Vendor.Submit(callCtx, job)
	if err == nil {
		return a.accepted(ctx, row, submission)
	}
	a.Logger.WarnContext(ctx, "vendor refused or lost a submit", "task", t.ID, "attempt", row.N, "channel", c.Name,
		"kind", mediagate.KindOf(err).String(), "error", withoutRequest(err.Error(), t.Params))
	if outcome := files.useless(); outcome != nil {
		useless := mediagate.Submission{Ref: mediagate.JobRef{ExternalID: row.ExternalID}, Outcome: outcome}
		return callResult{err: err, submission: &useless, silent: true}
	}
	if failure, ours := opened.refusal(err, row.N); ours {
		return callResult{err: err, refusal: &failure, silent: true}
	}
	if failure, proven := rejection(err); proven {
		return callResult{err: err, refusal: &failure}
	}
	// A call that its task cut short says nothing of the vendor.
	return callResult{err: err, silent: callCtx.Err() != nil && (isCancelled(ctx) || timeout < longest)}
}

// notMade is the result of a job that could not be made: nothing was sent.
func notMade(err error) callResult {
	failure := mediagate.Failure{Code: mediagate.CodeInternal, Message: "the request could not be made"}
	if mediagate.Is(err, mediagate.KindUnavailable) {
		failure.Code, failure.Retryable = mediagate.CodeProviderAway, true
	}
	return callResult{err: err, refusal: &failure, silent: true}
}

// accepted is the result of a call that the vendor has accepted. This process alone knows
// the answer until it is stored.
func (a *Activities) accepted(ctx context.Context, row task.Attempt, s mediagate.Submission) callResult {
	failpoint.Hit(failpoint.VendorAccepted)
	if s.Ref.ExternalID == "" {
		s.Ref.ExternalID = row.ExternalID
	}
	a.storeManifest(ctx, row, manifest{Submission: s})
	got := callResult{submission: &s}
	if out := s.Outcome; out != nil && out.Failure != nil && out.Failure.Code == mediagate.CodeResultUnavailable {
		got.err = mediagate.Errorf(mediagate.KindVendor, "the answer holds no media")
	}
	return got
}

// rejection translates the error of a submit that provably made no job; ok is
// false when the vendor may have one.
func rejection(err error) (f mediagate.Failure, ok bool) {
	e, ok := errors.AsType[*mediagate.Error](err)
	if !ok {
		return f, false
	}
	const away = "the provider is not available"
	switch e.Kind {
	case mediagate.KindInvalid:
		code := cmp.Or(mediagate.FailureCode(e.Code), mediagate.CodeInvalidParameters)
		f = mediagate.Failure{Code: code, Message: e.Message}
	case mediagate.KindModerated:
		f = mediagate.Failure{Code: mediagate.CodeContentPolicy, Message: e.Message}
	case mediagate.KindCredentials, mediagate.KindForbidden:
		f = mediagate.Failure{Code: mediagate.CodeProviderRefused, Message: "the provider refused our account"}
	case mediagate.KindFunds:
		f = mediagate.Failure{Code: mediagate.CodeFunds, Message: away}
	case mediagate.KindNoModel:
		f = *mediagate.ModelRetired()
	case mediagate.KindThrottled, mediagate.KindCapacity, mediagate.KindUnreached,
		mediagate.KindNotFound: // of the model or method
		f = mediagate.Failure{Code: mediagate.CodeProviderAway, Message: away, Retryable: true}
	default:
		return f, false
	}
	return f, true
}

// isCancelled reports that the run has no use for the activity any more, unlike one
// whose worker stops, or that lost Temporal.
func isCancelled(ctx context.Context) bool { return temporal.IsCanceledError(context.Cause(ctx)) }

// uploadLink is how long a vendor may fetch what came within a request: some
// queue for days.
const uploadLink = 72 * time.Hour

// job is what the adapter sends, or looks up, for an attempt. The row's times
// are the database's; the call is made by this process's clock. Media that came
// within the request become links, signed now; own tells their objects, and those
// of uploads that the request names.
func (a *Activities) job(
	ctx context.Context, t mediagate.Task, row task.Attempt,
) (job mediagate.Job, own map[string]string, err error) {
	own = map[string]string{}
	if t.Modal.Resumes(row.N) { // with what the client told instead of its request
		t.Params, t.Plan.Uploads, t.Sources = t.Modal.Input, nil, nil
	}
	if t.Params, err = a.withFiles(ctx, t, own); err != nil {
		return mediagate.Job{}, nil, err
	}
	params, err := withLinks(t, func(key string) (string, error) {
		link, err := a.Bucket.Sign(ctx, mediagate.Result{Key: key}, uploadLink)
		own[link.URL] = key
		return link.URL, err
	})
	if err != nil {
		return mediagate.Job{}, nil, err
	}
	source, err := a.source(ctx, t, row)
	if err != nil {
		return mediagate.Job{}, nil, err
	}
	callback := ""
	if a.CallbackURL != nil && a.operation(row.Route).Callback {
		callback = a.CallbackURL(row)
	}
	return mediagate.Job{
		TaskID: t.ID, ExternalID: row.ExternalID, Upstream: row.Route.Upstream, Operation: row.Route.Operation,
		Params: params, Source: source, CallbackURL: callback, SendBefore: time.Now().Add(row.SendBefore.Sub(a.Now())),
	}, own, nil
}

// source is what the job works on, as the attempt's account is told of it.
func (a *Activities) source(
	ctx context.Context, t mediagate.Task, row task.Attempt,
) (*mediagate.Source, error) {
	if t.Modal.Resumes(row.N) {
		return a.waitingJob(ctx, t)
	}
	s := t.Plan.Source
	if s == nil || s.Key == "" {
		return s.As(a.Channels.Made(s, row.Channel), ""), nil
	}
	link, err := a.Bucket.Sign(ctx, mediagate.Result{Key: s.Key}, uploadLink)
	return s.As(a.Channels.Made(s, row.Channel), link.URL), err
}

// askable is the task's request as adapters are asked about it.
func askable(t mediagate.Task) mediagate.Job {
	params, err := withLinks(t, func(string) (string, error) { return mediagate.UploadComing, nil })
	if err != nil {
		params = t.Params // the job cannot be made either, and says why
	}
	return mediagate.Job{Params: params, Source: t.Plan.Source}
}

// withLinks puts a link into each field whose media came within the request, and in place of
// each address of another task's file.
func withLinks(t mediagate.Task, link func(key string) (string, error)) (json.RawMessage, error) {
	if len(t.Plan.Uploads)+len(t.Sources) == 0 {
		return t.Params, nil
	}
	params, err := media.Decode(t.Params)
	if err != nil {
		return nil, err
	}
	keys := make(map[string]string, len(t.Plan.Uploads)+len(t.Sources))
	maps.Copy(keys, t.Plan.Uploads)
	for _, f := range t.Sources {
		keys[f.Field] = f.Key
	}
	links := make(map[string]string, len(keys))
	for field, key := range keys {
		if links[field], err = link(key); err != nil {
			return nil, err
		}
	}
	if params, err = media.SetFields(params, links); err != nil {
		return nil, err
	}
	return media.Encode(params)
}
