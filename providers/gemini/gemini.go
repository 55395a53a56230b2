package gemini

import (
	"context"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/googleapi"
	"github.com/mediagate/mediagate/providers/inline"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// PublicURL is the vendor's public address.
const PublicURL = "https://generativelanguage.googleapis.com"

const opImage = "image"

const (
	// submitTimeout bounds a submission, which lasts as long as the generation: up to two minutes
	// for 4K, and some time for the reference images. The calls for several images run side by
	// side. By default a stopping worker waits equally long.
	submitTimeout = 150 * time.Second
	// answerBytes bounds an answer. It has room for the largest image as base64 twice, since a
	// draft may precede the image.
	answerBytes = 192 << 20
)

// Description describes the adapter: its credentials and its operations.
func Description() providers.Description {
	return providers.Description{
		Credentials: []string{"api_key"},
		Operations: map[string]providers.Operation{
			opImage: {
				Fields: []string{"prompt", "image_urls", "size", "resolution", "n"},
				Media:  "image", Sync: true, Inputs: true, Submit: submitTimeout,
			},
			opBaseImage: {
				Fields: baseFields(), Media: "image", Sync: true, Inputs: true, Submit: submitTimeout, Base: true,
			},
		},
	}
}

// Adapter calls one vendor account. It is safe for concurrent use.
type Adapter struct {
	vendorhttp.Keyed
	images *inline.Images // fetches the reference images
}

// New returns the adapter of a channel. Its errors name the channel and the field.
func New(ch mediagate.Channel, opt vendorhttp.Options) (*Adapter, error) {
	account, err := vendorhttp.OpenKeyed(ch, opt, PublicURL, "X-Goog-Api-Key", "")
	if err != nil {
		return nil, err
	}
	return &Adapter{Keyed: account, images: inline.NewImages(account.HTTP.Now)}, nil
}

// Supports returns an error that says why the vendor's API cannot express the request, or nil.
func Supports(job mediagate.Job, _ map[string]string) error {
	_, err := decode(job)
	return err
}

// Submit makes one call for each image that the request asks for, all at the same time, and streams
// the images into the job's sink. It returns the images that arrived. If none did, the calls' results
// decide whether the job has failed, is lost, or was refused; see results.submission.
// providers.Provider lists the kinds of its errors.
func (a *Adapter) Submit(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
	p, err := decode(job)
	if err != nil {
		return mediagate.Submission{}, err
	}
	req, err := a.images.Request(ctx, job, p.images(), p.document)
	if err != nil {
		return mediagate.Submission{}, err
	}
	defer req.Release()
	n := p.count()
	var unsent atomic.Int64 // calls whose request has not been sent
	unsent.Store(int64(n))
	sent := func() {
		if unsent.Add(-1) == 0 {
			req.Release() // the answers may take minutes, and they need no images
		}
	}
	made := &results{job: job, callsLeft: n}
	var calls sync.WaitGroup
	for i := range n {
		body := req.Body(sent)
		calls.Go(func() {
			var one mediagate.Submission
			err := mediagate.Guarded(func() (err error) {
				one, err = a.generate(ctx, job, i, body)
				return err
			})
			made.add(ctx, one, err)
		})
	}
	calls.Wait()
	return made.submission()
}

// generate makes one call, for the image with this index.
func (a *Adapter) generate(
	ctx context.Context, job mediagate.Job, index int, body vendorhttp.Body,
) (mediagate.Submission, error) {
	answer, err := a.HTTP.Stream(ctx, vendorhttp.Call{
		Effect: vendorhttp.Submits, Path: "/v1beta/models/" + url.PathEscape(job.Upstream) + ":generateContent",
		Body:       body,
		SendBefore: job.SendBefore, Limits: vendorhttp.Limits{Total: submitTimeout, Bytes: answerBytes},
	})
	if err != nil {
		return mediagate.Submission{}, err
	}
	defer answer.Body.Close()
	if answer.Status != http.StatusOK {
		whole, err := answer.Whole(textBytes)
		if err != nil {
			return mediagate.Submission{}, err
		}
		return mediagate.Submission{}, googleapi.SubmitError(a.HTTP, whole, job.Upstream)
	}
	return a.outcome(ctx, job, index, answer)
}

// Poll always returns KindNotFound, because the vendor keeps no jobs.
func (a *Adapter) Poll(context.Context, mediagate.JobRef) (mediagate.Report, error) {
	return mediagate.Report{}, mediagate.Errorf(mediagate.KindNotFound, "the vendor keeps no jobs")
}
