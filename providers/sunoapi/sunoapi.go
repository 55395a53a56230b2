package sunoapi

import (
	"context"
	"net/url"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// PublicURL is the vendor's host.
const PublicURL = "https://api.sunoapi.org"

// The operations.
const (
	opSong    = "song"
	opReplace = "replace"
	opStems   = "stems"
)

const (
	songPath    = "/api/v1/generate"
	replacePath = "/api/v1/generate/replace-section"
	stemsPath   = "/api/v1/vocal-removal/generate"

	songRecord  = "/api/v1/generate/record-info"
	stemsRecord = "/api/v1/vocal-removal/record-info"
)

// submitTimeout bounds a submission.
const submitTimeout = 30 * time.Second

// Description is what the adapter says of itself.
func Description() providers.Description {
	op := func(fields ...string) providers.Operation {
		return providers.Operation{Fields: fields, Media: "audio", Submit: submitTimeout, Source: true, Callback: true}
	}
	return providers.Description{
		Credentials: []string{"api_key"},
		Operations: map[string]providers.Operation{
			opSong:    op(songFields...),
			opReplace: op(replaceFields...),
			opStems:   op(),
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
	w, err := write(job)
	if err != nil {
		return mediagate.Submission{}, err
	}
	var created reply
	if err := a.HTTP.Ask(ctx, vendorhttp.Call{
		Effect: vendorhttp.Submits, Path: w.path, Body: vendorhttp.JSON(w.body),
		SendBefore: job.SendBefore, Limits: vendorhttp.Limits{Total: submitTimeout},
	}, created.made); err != nil {
		return mediagate.Submission{}, err
	}
	return mediagate.Submission{Ref: mediagate.JobRef{
		JobID: created.Data.TaskID.ID(), ExternalID: job.ExternalID, Operation: job.Operation, State: w.state,
	}}, nil
}

// Poll asks for a job by the vendor's id.
func (a *Adapter) Poll(ctx context.Context, ref mediagate.JobRef) (mediagate.Report, error) {
	if ref.JobID == "" {
		return mediagate.Report{}, mediagate.Errorf(mediagate.KindNotFound, "the reference names no job")
	}
	path := songRecord
	if ref.Operation == opStems {
		path = stemsRecord
	}
	var r reply
	if err := a.HTTP.Ask(ctx, vendorhttp.Call{
		Effect: vendorhttp.Reads, Path: path + "?taskId=" + url.QueryEscape(ref.JobID),
	}, r.found); err != nil {
		return mediagate.Report{}, err
	}
	return a.report(ref, r.Data)
}
