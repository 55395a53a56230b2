package dashscope

import (
	"context"
	"net/http"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// PublicURL is the vendor's public address outside mainland China, with its prefix.
const PublicURL = "https://dashscope-intl.aliyuncs.com/api/v1"

const imagePath = "/services/aigc/multimodal-generation/generation"

// Adapter speaks to one account. It is safe for concurrent use.
type Adapter struct {
	http *vendorhttp.Client
	key  string
}

// New makes the adapter of a channel; errors name channel and field.
func New(ch mediagate.Channel, opt vendorhttp.Options) (*Adapter, error) {
	client, key, err := vendorhttp.OpenKeyed(ch, opt, PublicURL)
	if err != nil {
		return nil, err
	}
	return &Adapter{http: client, key: key}, nil
}

// Close drops idle connections.
func (a *Adapter) Close() { a.http.Close() }

// Submit makes one image and returns its outcome; providers.Provider says
// which kinds of errors it returns.
func (a *Adapter) Submit(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
	req, err := write(job)
	if err != nil {
		return mediagate.Submission{}, err
	}
	body, err := vendorhttp.Encode(req)
	if err != nil {
		return mediagate.Submission{}, mediagate.Errorf(mediagate.KindInvalid, "the request cannot be written: %w", err)
	}
	answer, err := a.http.Do(ctx, vendorhttp.Call{
		Effect: vendorhttp.Submits, Path: imagePath, Body: vendorhttp.JSON(body),
		SendBefore: job.SendBefore, Limits: vendorhttp.Limits{Total: submitTimeout},
		Header: http.Header{"Authorization": {"Bearer " + a.key}},
	})
	if err != nil {
		return mediagate.Submission{}, err
	}
	reply := new(reply)
	if answer.Decode(reply) != nil {
		reply = nil
	}
	if err := a.refusal(answer, reply); err != nil {
		return mediagate.Submission{}, err
	}
	// The vendor keeps no job; its request id is what its support asks for.
	return mediagate.Submission{
		Ref: mediagate.JobRef{JobID: a.http.ID(reply.RequestID), ExternalID: job.ExternalID, Operation: job.Operation},
		Outcome: &mediagate.Outcome{
			Succeeded: true,
			Media:     []mediagate.Media{{URL: reply.image(), MimeType: "image/png"}},
		},
	}, nil
}

// Poll finds nothing: a synchronous job ends with its submission.
func (a *Adapter) Poll(context.Context, mediagate.JobRef) (mediagate.Report, error) {
	return mediagate.Report{}, mediagate.Errorf(mediagate.KindNotFound, "the vendor keeps no synchronous jobs")
}
