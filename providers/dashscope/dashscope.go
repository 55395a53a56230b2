package dashscope

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// PublicURL is the vendor's public address outside mainland China, with the path prefix of its API.
const PublicURL = "https://dashscope-intl.aliyuncs.com/api/v1"

const tasksPath = "/tasks/"

// Adapter calls one vendor account. It is safe for concurrent use.
type Adapter struct {
	vendorhttp.Keyed
}

// New returns the adapter of a channel. Its errors name the channel and the field.
func New(ch mediagate.Channel, opt vendorhttp.Options) (*Adapter, error) {
	account, err := vendorhttp.OpenKeyed(ch, opt, PublicURL, "Authorization", "Bearer ")
	if err != nil {
		return nil, err
	}
	return &Adapter{account}, nil
}

// Submit makes one image and returns its outcome, or starts the job of a video. providers.Provider
// lists the kinds of its errors.
func (a *Adapter) Submit(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
	req, err := write(job)
	if err != nil {
		return mediagate.Submission{}, err
	}
	var made reply
	if isSynchronous(job.Operation) {
		if err := a.send(ctx, job, req, imageTimeout, nil, made.readImage); err != nil {
			return mediagate.Submission{}, err
		}
		return imageSubmission(job, a.HTTP.ID(made.RequestID), made), nil
	}
	// Without this header the vendor runs the call synchronously or refuses it.
	async := http.Header{"X-Dashscope-Async": {"enable"}}
	if err := a.send(ctx, job, req, videoTimeout, async, made.readJob); err != nil {
		return mediagate.Submission{}, err
	}
	ref := mediagate.JobRef{JobID: made.Output.TaskID.ID(), ExternalID: job.ExternalID, Operation: job.Operation}
	if req.wantsWatermark {
		ref.State = stateWatermark
	}
	return mediagate.Submission{Ref: ref}, nil
}

// imageSubmission returns the submission for an answer with choices: the first image in them, or a
// failure. The vendor keeps no job, so the reference holds the request id, which the vendor's
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

// send submits the job.
func (a *Adapter) send(
	ctx context.Context, job mediagate.Job, req *request, timeout time.Duration, header http.Header,
	read func(vendorhttp.Answer) vendorhttp.Reading,
) error {
	return a.HTTP.Ask(ctx, vendorhttp.Call{
		Effect: vendorhttp.Submits, Path: req.path, Header: header, Body: vendorhttp.JSON(req),
		SendBefore: job.SendBefore, Limits: vendorhttp.Limits{Total: timeout},
	}, read)
}

// Poll asks for a job by the vendor's id. Images have no job, because they end with the submission.
func (a *Adapter) Poll(ctx context.Context, ref mediagate.JobRef) (mediagate.Report, error) {
	switch _, known := writers[ref.Operation]; {
	case isSynchronous(ref.Operation), ref.Operation == "": // rows of images once had no operation
		return mediagate.Report{}, mediagate.Errorf(mediagate.KindNotFound, "the vendor keeps no synchronous jobs")
	case !known:
		// KindNotFound would prove that the vendor has no such job.
		return mediagate.Report{}, mediagate.Errorf(
			mediagate.KindTransient, "operation %q is unknown here", ref.Operation)
	case ref.JobID == "":
		return mediagate.Report{}, mediagate.Errorf(mediagate.KindNotFound, "the reference names no job")
	}
	var r reply
	if err := a.HTTP.Ask(ctx, vendorhttp.Call{
		Effect: vendorhttp.Reads, Path: tasksPath + url.PathEscape(ref.JobID),
	}, r.readQuery); err != nil {
		return mediagate.Report{}, err
	}
	return a.report(ref, r)
}

// Cancel stops a job that is still queued. The vendor does not stop a job that has begun.
func (a *Adapter) Cancel(ctx context.Context, ref mediagate.JobRef) error {
	if _, known := writers[ref.Operation]; !known || isSynchronous(ref.Operation) {
		return mediagate.Errorf(mediagate.KindInvalid, "jobs of operation %q cannot be stopped", ref.Operation)
	}
	if ref.JobID == "" {
		return mediagate.Errorf(mediagate.KindNotFound, "the reference names no job")
	}
	return a.HTTP.Ask(ctx, vendorhttp.Call{
		Effect: vendorhttp.Stops, Method: http.MethodPost, Path: tasksPath + url.PathEscape(ref.JobID) + "/cancel",
	}, new(reply).readError)
}
