package activities

import (
	"context"
	"encoding/json"
	"io"
	"sync"
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

// call submits the attempt's job to the vendor.
//
// The client's cancel ends a synchronous call, since closing the connection is
// the only way to stop such a job. An asynchronous submit is let finish: in seconds
// it tells the job's id. Nothing else ends the call: not that Temporal cannot be
// reached, and not that the activity has timed out there.
func (a *Activities) call(
	ctx context.Context, task mediagate.Task, row task.Attempt, channel channel.Channel,
) callResult {
	longest := a.operation(row.Route).Submit
	timeout := longest
	if row.Route.Sync { // nobody will ask for its result once the waiting is over
		now := a.Now()
		timeout = min(timeout, task.WaitsUntil(now).Sub(now))
	}
	callCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	if row.Route.Sync {
		defer context.AfterFunc(ctx, func() {
			if isCancelled(ctx) {
				cancel()
			}
		})()
	}
	job, own, err := a.job(callCtx, task, row)
	if err != nil { // nothing was sent
		a.Logger.WarnContext(ctx, "a job could not be made", "task", task.ID, "attempt", row.N, "error", err)
		failure := mediagate.Failure{Code: mediagate.CodeInternal, Message: "the request could not be made"}
		if mediagate.Is(err, mediagate.KindUnavailable) {
			failure.Code, failure.Retryable = mediagate.CodeProviderAway, true
		}
		return callResult{err: err, refusal: &failure, silent: true}
	}
	media := &inputs{fetcher: a.Fetcher, bucket: a.Bucket, own: own, params: job.Params}
	files := &sink{activities: a, task: task, row: row}
	job.Inputs, job.Sink = media, files
	if !a.Now().Before(row.SendBefore) { // D4: it was stored, or reported, so late
		err := mediagate.Errorf(mediagate.KindUnreached, "the time to send is over")
		failure, _ := rejection(err)
		return callResult{err: err, refusal: &failure, silent: true}
	}
	submission, err := channel.Vendor.Submit(callCtx, job)

	// The answer is known to this process alone until it is stored.
	if err == nil {
		failpoint.Hit(failpoint.VendorAccepted)
		if submission.Ref.ExternalID == "" {
			submission.Ref.ExternalID = row.ExternalID
		}
		a.storeManifest(ctx, row, manifest{Submission: submission})
		got := callResult{submission: &submission}
		if out := submission.Outcome; out != nil && out.Failure != nil && out.Failure.Code == mediagate.CodeResultUnavailable {
			got.err = mediagate.Errorf(mediagate.KindVendor, "the answer holds no media")
		}
		return got
	}
	a.Logger.WarnContext(ctx, "vendor refused or lost a submit", "task", task.ID, "attempt", row.N,
		"channel", channel.Name, "kind", mediagate.KindOf(err).String(), "error", withoutRequest(err.Error(), task.Params))
	if outcome := files.useless(); outcome != nil {
		return callResult{err: err, submission: &mediagate.Submission{Ref: mediagate.JobRef{ExternalID: row.ExternalID}, Outcome: outcome}, silent: true}
	}
	if failure, ours := media.refusal(err, row.N); ours {
		return callResult{err: err, refusal: &failure, silent: true}
	}
	if failure, proven := rejection(err); proven {
		return callResult{err: err, refusal: &failure}
	}
	// A call that its task cut short says nothing of the vendor.
	return callResult{err: err, silent: callCtx.Err() != nil && (isCancelled(ctx) || timeout < longest)}
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
func (a *Activities) job(ctx context.Context, task mediagate.Task, row task.Attempt) (job mediagate.Job, own map[string]string, err error) {
	own = map[string]string{}
	if task.Modal.Resumes(row.N) { // with what the client told instead of its request
		task.Params, task.Plan.Uploads = task.Modal.Input, nil
	}
	if task.Params, err = a.withFiles(ctx, task, own); err != nil {
		return mediagate.Job{}, nil, err
	}
	params, err := a.withUploads(ctx, task, own)
	if err != nil {
		return mediagate.Job{}, nil, err
	}
	source, err := a.source(ctx, task, row)
	if err != nil {
		return mediagate.Job{}, nil, err
	}
	callback := ""
	if a.CallbackURL != nil && a.operation(row.Route).Callback {
		callback = a.CallbackURL(row)
	}
	return mediagate.Job{
		TaskID: task.ID, CallbackURL: callback, Source: source, ExternalID: row.ExternalID, Upstream: row.Route.Upstream, Operation: row.Route.Operation,
		Params: params, SendBefore: time.Now().Add(row.SendBefore.Sub(a.Now())),
	}, own, nil
}

// source is what the job works on, as the attempt's account is told of it.
func (a *Activities) source(ctx context.Context, task mediagate.Task, row task.Attempt) (*mediagate.Source, error) {
	if task.Modal.Resumes(row.N) {
		return a.waitingJob(ctx, task)
	}
	s := task.Plan.Source
	if s == nil || s.Key == "" {
		return s.As(a.Channels.Made(s, row.Channel), ""), nil
	}
	link, err := a.Bucket.Sign(ctx, mediagate.Result{Key: s.Key}, uploadLink)
	return s.As(a.Channels.Made(s, row.Channel), link.URL), err
}

// withUploads is the task's request with a link in each field whose media came
// within it. Links are stored nowhere; their objects are noted in own.
func (a *Activities) withUploads(ctx context.Context, task mediagate.Task, own map[string]string) (json.RawMessage, error) {
	return withLinks(task, func(key string) (string, error) {
		link, err := a.Bucket.Sign(ctx, mediagate.Result{Key: key}, uploadLink)
		own[link.URL] = key
		return link.URL, err
	})
}

// askable is the task's request as adapters are asked about it.
func askable(task mediagate.Task) mediagate.Job {
	params, err := withLinks(task, func(string) (string, error) { return mediagate.UploadComing, nil })
	if err != nil {
		params = task.Params // the job cannot be made either, and says why
	}
	return mediagate.Job{Params: params, Source: task.Plan.Source}
}

// withLinks puts a link into each field whose media came within the request.
func withLinks(task mediagate.Task, link func(key string) (string, error)) (json.RawMessage, error) {
	if len(task.Plan.Uploads) == 0 {
		return task.Params, nil
	}
	params, err := media.Decode(task.Params)
	if err != nil {
		return nil, err
	}
	links := make(map[string]string, len(task.Plan.Uploads))
	for field, key := range task.Plan.Uploads {
		if links[field], err = link(key); err != nil {
			return nil, err
		}
	}
	if params, err = media.SetFields(params, links); err != nil {
		return nil, err
	}
	return media.Encode(params)
}

// sink stores the files of a submission while they arrive (mediagate.Sink), with
// the checks and the memory of a mirrored file, under the keys that the mirror
// would use. It is how the result of a vendor without links passes through.
type sink struct {
	activities *Activities
	task       mediagate.Task
	row        task.Attempt

	mu      sync.Mutex
	refused error // a file that the task cannot use
}

// Store streams one file into the bucket. What breaks leaves nothing behind. A
// file that is no such media, or too large, is KindInvalid with code
// result_unavailable; KindUnavailable says that the bucket is away.
func (s *sink) Store(ctx context.Context, index int, file io.Reader) (mediagate.Media, error) {
	from := &media.Incoming{Reader: file}
	open := func(context.Context) (io.ReadCloser, int64, error) { return from, -1, nil }
	result, err := s.activities.Bucket.Mirror(ctx, ResultKey(s.task.ID, s.row.N, index), open, Limits{
		MaxBytes: s.task.Plan.MaxBytes, Media: s.task.Plan.Media, Owner: s.row.Provider,
	})
	switch {
	case err == nil:
		return mediagate.Media{Stored: &result, MimeType: result.MimeType, Duration: result.Duration}, nil
	case from.Err != nil:
		return mediagate.Media{}, from.Err
	case mediagate.Is(err, mediagate.KindInvalid), mediagate.Is(err, mediagate.KindTooLarge):
		s.mu.Lock()
		defer s.mu.Unlock()
		s.refused = err
	}
	return mediagate.Media{}, err
}

// Record leaves a manifest of the files that came so far. It counts from the end of the
// call on: until then its sender may still report them all.
func (s *sink) Record(ctx context.Context, soFar mediagate.Submission) {
	s.activities.storeManifest(ctx, s.row, manifest{Submission: soFar, CallEnds: s.row.CallEnds})
}

// useless is the outcome of a submission whose files the task cannot use: the vendor
// has done its work, and another submission would be another job.
func (s *sink) useless() *mediagate.Outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused == nil {
		return nil
	}
	return &mediagate.Outcome{Failure: &mediagate.Failure{
		Code: mediagate.CodeResultUnavailable, Message: messageOf(s.refused),
	}}
}
