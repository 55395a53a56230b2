package vidu

import (
	"context"
	"net/url"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// PublicURL is the vendor's host for accounts outside mainland China.
const PublicURL = "https://api.vidu.com/ent/v2"

// opReference makes videos of references.
const opReference = "reference"

const (
	referencePath = "/reference2video"
	tasksPath     = "/tasks/"
)

// submitTimeout bounds a submission.
const submitTimeout = 30 * time.Second

// marked is a reference's state when the marked file is the one that was asked
// for. Stored references have it, so it stays as it is.
const marked = "watermark"

// Description is what the adapter says of itself.
func Description() providers.Description {
	return providers.Description{
		Credentials: []string{"api_key"},
		Operations: map[string]providers.Operation{
			opReference: {
				Fields: []string{
					"prompt", "image_urls", "duration", "resolution", "aspect_ratio", "seed", "audio", "watermark",
				},
				Media: "video", Submit: submitTimeout, Cancel: true, Callback: true,
			},
			opBaseVideo: {Fields: baseFields(), Media: "video", Submit: submitTimeout, Cancel: true, Callback: true, Base: true},
		},
	}
}

// Adapter speaks to one account. It is safe for concurrent use.
type Adapter struct {
	vendorhttp.Keyed
}

// New makes the adapter of a channel; errors name channel and field.
func New(ch mediagate.Channel, opt vendorhttp.Options) (*Adapter, error) {
	account, err := vendorhttp.OpenKeyed(ch, opt, PublicURL, "Authorization", "Token ")
	if err != nil {
		return nil, err
	}
	return &Adapter{account}, nil
}

// Express says why the job's request cannot be written, if so.
func Express(job mediagate.Job, _ map[string]string) error {
	_, err := write(job)
	return err
}

// Submit sends the job once; providers.Provider says which kinds it returns.
func (a *Adapter) Submit(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
	req, err := write(job)
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
	ref := mediagate.JobRef{JobID: created.TaskID.ID(), ExternalID: job.ExternalID, Operation: job.Operation}
	if req.marked {
		ref.State = marked
	}
	return mediagate.Submission{Ref: ref}, nil
}

// Poll asks for a job by the vendor's id.
func (a *Adapter) Poll(ctx context.Context, ref mediagate.JobRef) (mediagate.Report, error) {
	if ref.JobID == "" {
		return mediagate.Report{}, mediagate.Errorf(mediagate.KindNotFound, "the reference names no job")
	}
	var job reply
	if err := a.HTTP.Ask(ctx, vendorhttp.Call{
		Effect: vendorhttp.Reads, Path: tasksPath + url.PathEscape(ref.JobID) + "/creations",
	}, job.found); err != nil {
		return mediagate.Report{}, err
	}
	return a.report(ref, job)
}

// Cancel stops a job that has not begun; the vendor refuses to stop others.
// That the id goes in the body as well as in the path is read at second hand.
func (a *Adapter) Cancel(ctx context.Context, ref mediagate.JobRef) error {
	if ref.JobID == "" {
		return mediagate.Errorf(mediagate.KindNotFound, "the reference names no job")
	}
	return a.HTTP.Ask(ctx, vendorhttp.Call{
		Effect: vendorhttp.Stops, Path: tasksPath + url.PathEscape(ref.JobID) + "/cancel",
		Body: vendorhttp.JSON(map[string]string{"id": ref.JobID}),
	}, new(reply).stopped)
}
