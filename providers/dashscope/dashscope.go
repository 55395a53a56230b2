package dashscope

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// PublicURL is the vendor's public address outside mainland China, with its prefix.
const PublicURL = "https://dashscope-intl.aliyuncs.com/api/v1"

const tasksPath = "/tasks/"

// Adapter speaks to one account. It is safe for concurrent use.
type Adapter struct {
	vendorhttp.Keyed
}

// New makes the adapter of a channel; errors name channel and field.
func New(ch mediagate.Channel, opt vendorhttp.Options) (*Adapter, error) {
	account, err := vendorhttp.OpenKeyed(ch, opt, PublicURL, "Authorization", "Bearer ")
	if err != nil {
		return nil, err
	}
	return &Adapter{account}, nil
}

// Submit makes one image and returns its outcome, or has a video made;
// providers.Provider says which kinds of errors it returns.
func (a *Adapter) Submit(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
	req, err := write(job)
	if err != nil {
		return mediagate.Submission{}, err
	}
	var made reply
	if synchronous(job.Operation) {
		if err := a.send(ctx, job, req, imageTimeout, nil, made.madeImage); err != nil {
			return mediagate.Submission{}, err
		}
		return imageSubmission(job, a.HTTP.ID(made.RequestID), made), nil
	}
	// Without the header the vendor would make the caller wait, or refuse to.
	async := http.Header{"X-Dashscope-Async": {"enable"}}
	if err := a.send(ctx, job, req, videoTimeout, async, made.madeJob); err != nil {
		return mediagate.Submission{}, err
	}
	ref := mediagate.JobRef{JobID: made.Output.TaskID.ID(), ExternalID: job.ExternalID, Operation: job.Operation}
	if req.marked {
		ref.State = stateMarked
	}
	return mediagate.Submission{Ref: ref}, nil
}

// imageSubmission is the outcome of a submission that was answered with choices:
// the image in them, or none. The vendor keeps no job; its request id is what its
// support asks for.
func imageSubmission(job mediagate.Job, requestID string, r reply) mediagate.Submission {
	s := mediagate.Submission{
		Ref:     mediagate.JobRef{JobID: requestID, ExternalID: job.ExternalID, Operation: job.Operation},
		Outcome: &mediagate.Outcome{Failure: mediagate.NoMedia()},
	}
	if link := r.image(); link != "" {
		s.Outcome = &mediagate.Outcome{Succeeded: true, Media: []mediagate.Media{{URL: link, MimeType: "image/png"}}}
	}
	return s
}

// send makes the call that submits.
func (a *Adapter) send(
	ctx context.Context, job mediagate.Job, req *request, most time.Duration, header http.Header, read func(vendorhttp.Answer) vendorhttp.Said,
) error {
	return a.HTTP.Ask(ctx, vendorhttp.Call{
		Effect: vendorhttp.Submits, Path: req.path, Header: header, Body: vendorhttp.JSON(req),
		SendBefore: job.SendBefore, Limits: vendorhttp.Limits{Total: most},
	}, read)
}

// Poll asks for a job by the vendor's id. There is none of an image, which
// ends with its submission.
func (a *Adapter) Poll(ctx context.Context, ref mediagate.JobRef) (mediagate.Report, error) {
	switch _, known := writers[ref.Operation]; {
	case synchronous(ref.Operation), ref.Operation == "": // as images were stored once
		return mediagate.Report{}, mediagate.Errorf(mediagate.KindNotFound, "the vendor keeps no synchronous jobs")
	case !known:
		// Not KindNotFound, which would prove that there is no job.
		return mediagate.Report{}, mediagate.Errorf(mediagate.KindTransient, "operation %q is unknown here", ref.Operation)
	case ref.JobID == "":
		return mediagate.Report{}, mediagate.Errorf(mediagate.KindNotFound, "the reference names no job")
	}
	var r reply
	if err := a.HTTP.Ask(ctx, vendorhttp.Call{Effect: vendorhttp.Reads, Path: tasksPath + url.PathEscape(ref.JobID)}, r.found); err != nil {
		return mediagate.Report{}, err
	}
	return a.report(ref, r)
}

// Cancel stops a job that is still queued. One that has begun goes on.
func (a *Adapter) Cancel(ctx context.Context, ref mediagate.JobRef) error {
	if _, known := writers[ref.Operation]; !known || synchronous(ref.Operation) {
		return mediagate.Errorf(mediagate.KindInvalid, "jobs of operation %q cannot be stopped", ref.Operation)
	}
	if ref.JobID == "" {
		return mediagate.Errorf(mediagate.KindNotFound, "the reference names no job")
	}
	return a.HTTP.Ask(ctx, vendorhttp.Call{
		Effect: vendorhttp.Stops, Method: http.MethodPost, Path: tasksPath + url.PathEscape(ref.JobID) + "/cancel",
	}, new(reply).said)
}
