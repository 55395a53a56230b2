package musicapi

import (
	"context"
	"net/url"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// PublicURL is the vendor's host.
const PublicURL = "https://api.musicapi.ai"

const opSample = "sample"

const (
	samplePath = "/api/v1/sonic/sample"
	taskPath   = "/api/v1/sonic/task/"
)

// submitTimeout bounds a submission, in which the vendor may fetch a song: that
// takes some twenty seconds.
const submitTimeout = time.Minute

// Description is what the adapter says of itself.
func Description() providers.Description {
	return providers.Description{
		Credentials: []string{"api_key"},
		Operations: map[string]providers.Operation{
			opSample: {Fields: sampleFields, Media: "audio", Submit: submitTimeout, Source: true},
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
	_, err := write(job)
	return err
}

// Submit sends the job once; providers.Provider says which kinds it returns.
func (a *Adapter) Submit(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
	b, err := write(job)
	if err != nil {
		return mediagate.Submission{}, err
	}
	var created reply
	if err := a.HTTP.Ask(ctx, vendorhttp.Call{
		Effect: vendorhttp.Submits, Path: samplePath, Body: vendorhttp.JSON(b),
		SendBefore: job.SendBefore, Limits: vendorhttp.Limits{Total: submitTimeout},
	}, created.made); err != nil {
		return mediagate.Submission{}, err
	}
	return mediagate.Submission{Ref: mediagate.JobRef{
		JobID: created.TaskID.ID(), ExternalID: job.ExternalID, Operation: job.Operation,
	}}, nil
}

// Poll asks for a job by the vendor's id.
func (a *Adapter) Poll(ctx context.Context, ref mediagate.JobRef) (mediagate.Report, error) {
	if ref.JobID == "" {
		return mediagate.Report{}, mediagate.Errorf(mediagate.KindNotFound, "the reference names no job")
	}
	answer, err := a.HTTP.Do(ctx, vendorhttp.Call{Effect: vendorhttp.Reads, Path: taskPath + url.PathEscape(ref.JobID)})
	if err != nil {
		return mediagate.Report{}, err
	}
	var r reply
	said := r.found(answer)
	if said.Own && r.overdue(answer) { // which comes with HTTP 504, and still is the job's end
		return a.lost(ref, r), nil
	}
	if err := a.HTTP.ErrorOf(vendorhttp.Reads, answer, said); err != nil {
		return mediagate.Report{}, err
	}
	return a.report(ref, r), nil
}
