package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/channel"
	"github.com/mediagate/mediagate/failpoint"
	"github.com/mediagate/mediagate/providers"
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

// answer is what came of one call to a vendor: what it accepted, or a refusal
// which proves that it has no job, or neither.
type answer struct {
	submission *mediagate.Submission
	refusal    *mediagate.Failure
	err        error // of the call, for logs
	silent     bool  // it says nothing of the channel
}

// tell lets the channel's breaker know how the call ended.
func (a answer) tell(ctx context.Context, entry channel.Entry) {
	if a.silent {
		entry.Unused(ctx)
		return
	}
	entry.Ended(ctx, a.err)
}

// detail is what is recorded of a call without an answer.
func (a answer) detail() string { return mediagate.KindOf(a.err).String() }

// call asks the vendor for one job: all that the attempt is about, or the part
// of it.
//
// The client's cancel ends a synchronous call, since closing the connection is
// the only way to stop such a job; an asynchronous submit is seconds from
// telling us the job's id, so it is let finish. That Temporal cannot be
// reached, or was told to forget this activity, is no reason to throw a result
// away.
func (a *Activities) call(ctx context.Context, task mediagate.Task, row mediagate.Attempt, part int, channel channel.Channel) answer {
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
		return answer{err: err, refusal: &failure, silent: true}
	}
	media := &inputs{fetcher: a.Fetcher, bucket: a.Bucket, own: own, params: job.Params}
	files := &sink{bucket: a.Bucket, owner: row.Provider, task: task, n: row.N, part: part, parts: row.Route.Parts}
	job.Part, job.Inputs, job.Sink = part, media, files
	submission, err := channel.Vendor.Submit(callCtx, job)

	// The answer is known to this process alone until it is stored.
	if err == nil {
		failpoint.Hit(failpoint.VendorAccepted)
		if submission.Ref.ExternalID == "" {
			submission.Ref.ExternalID = row.ExternalID
		}
		a.storeManifest(ctx, task.ID, row, part, submission)
		got := answer{submission: &submission}
		if out := submission.Outcome; out != nil && out.Failure != nil && out.Failure.Code == mediagate.CodeResultUnavailable {
			got.err = mediagate.Errorf(mediagate.KindVendor, "the answer holds no media")
		}
		return got
	}
	a.Logger.WarnContext(ctx, "vendor refused or lost a submit", "task", task.ID, "attempt", row.N, "part", part,
		"channel", channel.Name, "kind", mediagate.KindOf(err).String(), "error", withoutRequest(err.Error(), task.Params))
	if outcome := files.useless(); outcome != nil {
		return answer{err: err, submission: &mediagate.Submission{Ref: mediagate.JobRef{ExternalID: row.ExternalID}, Outcome: outcome}, silent: true}
	}
	if failure, ours := media.refusal(err, row.N); ours {
		return answer{err: err, refusal: &failure, silent: true}
	}
	if failure, proven := rejection(err); proven {
		return answer{err: err, refusal: &failure}
	}
	// A call that its task cut short says nothing of the vendor.
	return answer{err: err, silent: callCtx.Err() != nil && (isCancelled(ctx) || timeout < longest)}
}

// isCancelled reports that the run has no use for the activity any more, unlike one
// whose worker stops, or that lost Temporal.
func isCancelled(ctx context.Context) bool { return temporal.IsCanceledError(context.Cause(ctx)) }
