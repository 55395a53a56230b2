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

// LongestSubmit is the longest time that a submit of any adapter takes. It bounds an operation
// that no adapter of this worker describes, for example one of another release.
const LongestSubmit = 150 * time.Second

// operation returns what the adapter says about the route's operation. An unknown operation gets
// the longest time: callEnds is computed from it, and a lookup must not come while a call may be
// under way (D4).
func (a *Activities) operation(r mediagate.Route) providers.Operation {
	if o, ok := a.Descriptions.Operation(r); ok && o.Submit > 0 {
		return o
	}
	return providers.Operation{Submit: LongestSubmit}
}

// callResult is the result of one call to a vendor. It has a submission if the vendor accepted the
// job, and a refusal if it is proven that the vendor has no job. It has neither if the vendor may
// have a job.
type callResult struct {
	submission *mediagate.Submission
	refusal    *mediagate.Failure
	err        error // of the call, for logs
	silent     bool  // the call says nothing to the channel's breaker
}

// report reports to the channel's breaker how the call ended. If the job was the probe, a silent
// call releases the probe.
func (r callResult) report(ctx context.Context, pass channel.Pass) {
	if r.silent {
		pass.Unused(ctx)
		return
	}
	pass.Ended(ctx, r.err)
}

// detail returns what is recorded of a call without an answer.
func (r callResult) detail() string { return mediagate.KindOf(r.err).String() }

// call submits the attempt's job to the vendor. It lasts no longer than the row says (D4).
//
// The client's cancel ends a synchronous call, since such a job can only be stopped by closing the
// connection. An asynchronous call is left to finish: within seconds it returns the job's id.
// Nothing else ends the call. It goes on if Temporal cannot be reached, and after a timeout of the
// activity.
func (a *Activities) call(ctx context.Context, t mediagate.Task, row task.Attempt, c channel.Channel) callResult {
	longest := a.operation(row.Route).Submit
	// The row's end of the call includes ClockSkew, since clocks may differ. The call itself does
	// not get that time. For example, the deadline of a task is 12:01:00, so its synchronous call
	// has call_ends at 12:01:05, with a skew of 5 s. A call that begins at 12:00:00 gets 60 s, even
	// if its operation may take 150 s.
	timeout := min(longest, row.CallEnds.Add(-a.Settings.ClockSkew).Sub(a.Now()))
	callCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	if row.Route.Sync {
		// A worker that stops lets the call go on, within the grace time (D6).
		defer context.AfterFunc(ctx, func() {
			if isCancelled(ctx) {
				cancel()
			}
		})()
	}
	job, own, err := a.job(callCtx, t, row)
	if err != nil {
		a.Logger.WarnContext(ctx, "a job could not be made", "task", t.ID, "attempt", row.N, "error", err)
		return jobNotMade(err)
	}
	// The adapter opens the client's media while it sends them, and hands over files while they
	// arrive. Both objects remember their own errors, which show below whose fault a failed call
	// is.
	opened := &inputs{fetcher: a.Fetcher, bucket: a.Bucket, own: own, params: job.Params}
	files := &sink{activities: a, task: t, row: row}
	job.Inputs, job.Sink = opened, files
	if !a.Now().Before(row.SendBefore) { // D4: storing and reporting the intent took too long
		// Nothing was sent, so this is a proven rejection, and no fault of the vendor.
		err := mediagate.Errorf(mediagate.KindUnreached, "the time to send is over")
		failure, _ := rejection(err)
		return callResult{err: err, refusal: &failure, silent: true}
	}
	// After a panic of the adapter the vendor may have the job, as after a lost answer. The
	// activity must not end by it: an error carries no heartbeat, and a run would not hear of the
	// sending if the database has lost the intent (D5).
	var submission mediagate.Submission
	err = mediagate.Guarded(func() (err error) {
		submission, err = c.Vendor.Submit(callCtx, job)
		return err
	})
	if err == nil {
		return a.accepted(ctx, row, submission)
	}
	a.Logger.WarnContext(ctx, "vendor refused or lost a submit", "task", t.ID, "attempt", row.N, "channel", c.Name,
		"kind", mediagate.KindOf(err).String(), "error", withoutRequest(err.Error(), t.Params))
	// The vendor made the job, and its files cannot be used: that is an outcome, not a refusal.
	if outcome := files.useless(); outcome != nil {
		useless := mediagate.Submission{Ref: mediagate.JobRef{ExternalID: row.ExternalID}, Outcome: outcome}
		return callResult{err: err, submission: &useless, silent: true}
	}
	// The client's media could not be opened, so the vendor got no request.
	if failure, ours := opened.refusal(err, row.N); ours {
		return callResult{err: err, refusal: &failure, silent: true}
	}
	if failure, proven := rejection(err); proven {
		return callResult{err: err, refusal: &failure}
	}
	// A call that its task cut short says nothing about the vendor.
	return callResult{err: err, silent: callCtx.Err() != nil && (isCancelled(ctx) || timeout < longest)}
}

// jobNotMade returns the result for a job that could not be made, so that nothing was sent.
func jobNotMade(err error) callResult {
	failure := mediagate.Failure{Code: mediagate.CodeInternal, Message: "the request could not be made"}
	if mediagate.Is(err, mediagate.KindUnavailable) {
		failure.Code, failure.Retryable = mediagate.CodeProviderAway, true
	}
	return callResult{err: err, refusal: &failure, silent: true}
}

// accepted returns the result of a call that the vendor has accepted. Until the answer is stored,
// only this process knows it. If the process dies, the attempt stays an intent, and a lookup
// searches for the files by the manifest, or for the job by our id.
func (a *Activities) accepted(ctx context.Context, row task.Attempt, s mediagate.Submission) callResult {
	failpoint.Hit(failpoint.VendorAccepted)
	if s.Ref.ExternalID == "" {
		s.Ref.ExternalID = row.ExternalID
	}
	// The manifest is stored first: if this process dies before the database has the outcome, the
	// next sender finds the files by it (D6).
	a.storeManifest(ctx, row, manifest{Submission: s})
	got := callResult{submission: &s}
	// The vendor accepted the job and delivered nothing usable. That counts against the channel.
	if out := s.Outcome; out != nil && out.Failure != nil && out.Failure.Code == mediagate.CodeResultUnavailable {
		got.err = mediagate.Errorf(mediagate.KindVendor, "the answer holds no media")
	}
	return got
}

// rejection translates the error of a submit that provably made no job. ok is false if the vendor
// may have one.
//
// Kinds that are not listed, such as KindAmbiguous, KindTransient and KindVendor, prove nothing:
// the request may have arrived. Such an attempt becomes unknown and is looked up (D4).
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
		mediagate.KindNotFound: // the model or the method does not exist there
		f = mediagate.Failure{Code: mediagate.CodeProviderAway, Message: away, Retryable: true}
	default:
		return f, false
	}
	return f, true
}

// isCancelled reports whether the run has cancelled the activity. It is false if the worker
// stops, or has lost Temporal.
func isCancelled(ctx context.Context) bool { return temporal.IsCanceledError(context.Cause(ctx)) }

// uploadLink is how long a vendor may fetch media that came within a request. Some vendors queue
// jobs for days.
const uploadLink = 72 * time.Hour

// job returns what the adapter sends, or looks up, for an attempt. The row's times are the
// database's, so they are translated to the clock of this process. Media that came within the
// request, and files of other tasks, become links, which are signed now. own maps those links, and
// the links of uploads that the request names, to the keys of their objects.
func (a *Activities) job(
	ctx context.Context, t mediagate.Task, row task.Attempt,
) (job mediagate.Job, own map[string]string, err error) {
	own = map[string]string{}
	if t.Modal.Resumes(row.N) { // the client's parameters take the place of its request
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

// source returns what the job works on, as the attempt's account knows it.
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

// draftJob returns the task's request in the form in which adapters are asked whether they support
// it. It signs no link and reads nothing.
func draftJob(t mediagate.Task) mediagate.Job {
	params, err := withLinks(t, func(string) (string, error) { return mediagate.UploadComing, nil })
	if err != nil {
		params = t.Params // the job cannot be made either, and its error says why
	}
	return mediagate.Job{Params: params, Source: t.Plan.Source}
}

// withLinks puts a link into each field whose media came within the request, and replaces each
// address of another task's file by a link.
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
