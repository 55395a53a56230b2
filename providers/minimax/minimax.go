package minimax

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// chargeUnit is what jobs are charged in: the seconds that are paid for.
const chargeUnit = "seconds"

// PublicURL is the vendor's host for accounts outside mainland China.
const PublicURL = "https://api.minimax.io"

// The operations.
const (
	opVideo  = "video"
	opSecond = "video_v2"
)

const (
	firstPath  = "/v1/video_generation"
	firstQuery = "/v1/query/video_generation"
	filePath   = "/v1/files/retrieve"
	secondPath = "/v2/video_generation"
	secondRead = "/v2/query/video_generation/"
)

// submitTimeout bounds a submission, of either generation.
const submitTimeout = 30 * time.Second

// Description is what the adapter says of itself.
func Description() providers.Description {
	return providers.Description{
		Credentials: []string{"api_key"},
		Operations: map[string]providers.Operation{
			opVideo: {
				Fields: []string{
					"prompt", "duration", "resolution", "prompt_optimizer", "fast_pretreatment", "watermark",
					"first_frame_image", "last_frame_image",
				},
				Media: "video", Submit: submitTimeout, Callback: true,
			},
			opBaseVideo: {Fields: baseFields(), Media: "video", Submit: submitTimeout, Callback: true, Base: true},
			opSecond: {
				Fields: []string{
					"prompt", "duration", "resolution", "aspect_ratio", "image_urls", "video_urls", "audio_urls",
					"first_frame_image", "last_frame_image",
				},
				Media: "video", Submit: submitTimeout, Cancel: true, Callback: true,
			},
		},
	}
}

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

// Express says why the job's request cannot be written, if so.
func Express(job mediagate.Job, _ map[string]string) error {
	_, err := newRequest(job)
	return err
}

// Submit sends the job once; providers.Provider says which kinds it returns.
func (a *Adapter) Submit(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
	req, err := newRequest(job)
	if err != nil {
		return mediagate.Submission{}, err
	}
	var created reply
	if err := a.HTTP.Ask(ctx, vendorhttp.Call{
		Effect: vendorhttp.Submits, Path: req.path, Body: vendorhttp.JSON(req.body),
		SendBefore: job.SendBefore, Limits: vendorhttp.Limits{Total: submitTimeout},
	}, created.made); err != nil {
		return mediagate.Submission{}, err
	}
	return mediagate.Submission{Ref: mediagate.JobRef{
		JobID: created.TaskID.ID(), ExternalID: job.ExternalID, Operation: job.Operation,
	}}, nil
}

// Poll asks for a job by the vendor's id, and for the link of its file where
// that takes another call.
func (a *Adapter) Poll(ctx context.Context, ref mediagate.JobRef) (mediagate.Report, error) {
	if ref.JobID == "" {
		return mediagate.Report{}, mediagate.Errorf(mediagate.KindNotFound, "the reference names no job")
	}
	switch ref.Operation {
	case opVideo, opBaseVideo:
		return a.pollFirst(ctx, ref)
	case opSecond:
		return a.pollSecond(ctx, ref)
	default:
		// Not KindNotFound, which would prove that there is no job.
		return mediagate.Report{}, mediagate.Errorf(mediagate.KindTransient, "operation %q is unknown here", ref.Operation)
	}
}

func (a *Adapter) pollFirst(ctx context.Context, ref mediagate.JobRef) (mediagate.Report, error) {
	var job reply
	if err := a.read(ctx, firstQuery+"?task_id="+url.QueryEscape(ref.JobID), job.found); err != nil {
		return mediagate.Report{}, err
	}
	report, err := a.HTTP.Report(ref, job.TaskID, firstStates, job.Status)
	if err != nil {
		return mediagate.Report{}, err
	}
	switch report.State {
	case mediagate.JobSucceeded:
		var out *mediagate.Outcome
		if out, err = a.file(ctx, job.FileID.ID()); err == nil {
			report.Offer(out, true)
		}
	case mediagate.JobFailed:
		report.Outcome = a.failed(string(job.Base.Code), string(job.Base.Text))
	default: // still under way
	}
	return report, err
}

// file is the outcome of a finished job by its file, for whose link it asks. The
// link works for an hour or for nine, by different pages of the vendor's; a poll
// gives a new one.
func (a *Adapter) file(ctx context.Context, id string) (*mediagate.Outcome, error) {
	out := &mediagate.Outcome{}
	if id == "" {
		return out, nil
	}
	var found reply
	if err := a.read(ctx, filePath+"?file_id="+url.QueryEscape(id), found.told); err != nil {
		return nil, err
	}
	if found.File.ID.ID() != id {
		return nil, vendorhttp.Strange("the answer is about another file")
	}
	if link := found.File.URL.Link(); link != "" {
		out.Media = []mediagate.Media{{URL: link, MimeType: "video/mp4"}}
	}
	return out, nil
}

func (a *Adapter) pollSecond(ctx context.Context, ref mediagate.JobRef) (mediagate.Report, error) {
	var found reply
	if err := a.read(ctx, secondRead+url.PathEscape(ref.JobID), found.found); err != nil {
		return mediagate.Report{}, err
	}
	job := found.Task
	report, err := a.HTTP.Report(ref, job.ID, secondStates, job.Status)
	if err != nil {
		return mediagate.Report{}, err
	}
	switch report.State {
	case mediagate.JobSucceeded:
		seconds := job.Usage.Output.Seconds()
		out := &mediagate.Outcome{Seconds: seconds, VendorCharge: mediagate.ChargedBy(job.Usage.Total.Decimal(), chargeUnit)}
		if link := job.Content.URL.Link(); link != "" {
			out.Media = []mediagate.Media{{URL: link, MimeType: "video/mp4", Duration: seconds}}
		}
		report.Offer(out, true)
	case mediagate.JobFailed:
		report.Outcome = a.failed(codeOf(job.Error.Code, job.Error.Message), string(job.Error.Message))
	default: // still under way
	}
	return report, nil
}

// Cancel stops a queued job. What has begun goes on; what has ended is taken
// off the vendor's list, which nobody reads any more.
func (a *Adapter) Cancel(ctx context.Context, ref mediagate.JobRef) error {
	if ref.Operation != opSecond {
		return mediagate.Errorf(mediagate.KindInvalid, "jobs of operation %q cannot be stopped", ref.Operation)
	}
	if ref.JobID == "" {
		return mediagate.Errorf(mediagate.KindNotFound, "the reference names no job")
	}
	return a.HTTP.Ask(ctx, vendorhttp.Call{
		Effect: vendorhttp.Stops, Method: http.MethodDelete, Path: secondPath + "/" + url.PathEscape(ref.JobID),
	}, new(reply).stopped)
}

func (a *Adapter) read(ctx context.Context, path string, read func(vendorhttp.Answer) vendorhttp.Said) error {
	return a.HTTP.Ask(ctx, vendorhttp.Call{Effect: vendorhttp.Reads, Path: path}, read)
}
