package veo

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/googleapi"
	"github.com/mediagate/mediagate/providers/inline"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// PublicURL is the vendor's public address.
const PublicURL = "https://generativelanguage.googleapis.com"

const (
	opVideo     = "video"
	opBaseVideo = "base_video" // for requests of the base contract

	prefix = "/v1beta/"
)

// submitTimeout bounds a submission. Most of it is for sending the frames, because the answer comes
// at once.
const submitTimeout = 60 * time.Second

// Description states what the adapter supports.
func Description() providers.Description {
	return providers.Description{
		Credentials: []string{"api_key"},
		Operations: map[string]providers.Operation{
			opVideo: {
				Fields: googleapi.VideoFields(), Idle: []string{"generate_audio"},
				Media: "video", Inputs: true, Submit: submitTimeout,
			},
			opBaseVideo: {Fields: googleapi.BaseFields(), Media: "video", Inputs: true, Submit: submitTimeout, Base: true},
		},
	}
}

// Adapter talks to one vendor account. It is safe for concurrent use.
type Adapter struct {
	vendorhttp.Keyed
	base   *url.URL
	images *inline.Images
	follow func(ctx context.Context, link string, redirects int) (io.ReadCloser, int64, error)
}

// New returns the adapter of a channel. Its errors name channel and field.
func New(ch mediagate.Channel, opt vendorhttp.Options) (*Adapter, error) {
	account, err := vendorhttp.OpenKeyed(ch, opt, PublicURL, "X-Goog-Api-Key", "")
	if err != nil {
		return nil, err
	}
	base, err := url.Parse(vendorhttp.Check(ch).BaseURL(PublicURL))
	if err != nil {
		// OpenKeyed has checked the URL, so this does not happen.
		return nil, mediagate.Invalid("base_url", "channel %q: base_url must be a URL", ch.Name)
	}
	return &Adapter{Keyed: account, base: base, images: inline.NewImages(account.HTTP.Now), follow: opt.Follow}, nil
}

// decode reads the job's request. It returns an error if the API cannot express the request.
func decode(job mediagate.Job) (*googleapi.Video, error) {
	switch job.Operation {
	case opVideo:
	case opBaseVideo:
		return googleapi.DecodeBase(job, googleapi.BaseFields())
	default:
		return nil, mediagate.Errorf(mediagate.KindNotFound, "operation %q is unknown here", job.Operation)
	}
	v, err := googleapi.DecodeVideo(job)
	switch {
	case err != nil:
		return nil, err
	case v.Seed != "":
		return nil, mediagate.Invalid("seed", "seed is not supported here")
	case v.ResizeMode != "" && v.ResizeMode != "pad": // the vendor always pads
		return nil, mediagate.Invalid("resize_mode", "resize_mode must be pad here")
	}
	return v, nil
}

// Supports returns nil if the vendor's API can express the request, or an error that says why not.
func Supports(job mediagate.Job, _ map[string]string) error {
	_, err := decode(job)
	return err
}

// Submit sends the job once. providers.Provider lists the kinds of its errors.
func (a *Adapter) Submit(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
	v, err := decode(job)
	if err != nil {
		return mediagate.Submission{}, err
	}
	req, err := a.images.Request(ctx, job, v.Images(), func(frames []inline.Blob) any {
		return v.Document(v.Parameters(), frames)
	})
	if err != nil {
		return mediagate.Submission{}, err
	}
	defer req.Release()
	answer, err := a.HTTP.Do(ctx, vendorhttp.Call{
		Effect: vendorhttp.Submits, Path: prefix + "models/" + url.PathEscape(job.Upstream) + ":predictLongRunning",
		Body: req.Body(nil), SendBefore: job.SendBefore, Limits: vendorhttp.Limits{Total: submitTimeout},
	})
	if err != nil {
		return mediagate.Submission{}, err
	}
	var op googleapi.Operation
	if answer.Status == http.StatusOK && answer.Decode(&op) == nil {
		if owner, id, ok := op.Parts(); ok {
			return mediagate.Submission{Ref: mediagate.JobRef{
				JobID: id, ExternalID: job.ExternalID, Operation: job.Operation, State: owner,
			}}, nil
		}
	}
	return mediagate.Submission{}, googleapi.RefuseVideo(a.HTTP, answer, job.Upstream)
}

// result is the result of an operation.
type result struct {
	Response struct {
		Samples []struct {
			Video struct {
				URI vendorhttp.Text `json:"uri"`
			} `json:"video"`
		} `json:"generatedSamples"`
		googleapi.Filtered
	} `json:"generateVideoResponse"`
}

// Poll asks for a job by the vendor's id.
func (a *Adapter) Poll(ctx context.Context, ref mediagate.JobRef) (mediagate.Report, error) {
	if ref.JobID == "" {
		return mediagate.Report{}, mediagate.Errorf(mediagate.KindNotFound, "the reference names no job")
	}
	name := googleapi.OperationName(ref.State, ref.JobID)
	known := ref.Operation == opVideo || ref.Operation == opBaseVideo
	if _, _, ok := (googleapi.Operation{Name: vendorhttp.Text(name)}).Parts(); !ok || !known {
		// The error is not KindNotFound, which would prove that there is no job.
		return mediagate.Report{}, mediagate.Errorf(mediagate.KindTransient, "the reference is none of this adapter's")
	}
	answer, err := a.HTTP.Do(ctx, vendorhttp.Call{Effect: vendorhttp.Reads, Path: prefix + name})
	if err != nil {
		return mediagate.Report{}, err
	}
	if err := googleapi.ReadError(a.HTTP, answer); err != nil {
		return mediagate.Report{}, err
	}
	var op googleapi.Operation
	if err := answer.Decode(&op); err != nil {
		return mediagate.Report{}, &mediagate.Error{
			Kind: mediagate.KindTransient, Message: "the vendor's answer cannot be read", Err: err,
		}
	}
	report, err := op.State(a.HTTP, ref)
	if err != nil || report.State != mediagate.JobSucceeded {
		return report, err
	}
	var made result
	if err := (vendorhttp.Answer{Body: op.Response}).Decode(&made); err != nil {
		made = result{}
	}
	var media []mediagate.Media
	whole := true
	for i, s := range made.Response.Samples {
		m, ok := a.media(s.Video.URI)
		if whole = whole && ok; ok {
			m.Index = i
			media = append(media, m)
		}
	}
	googleapi.OfferVideos(a.HTTP, &report, media, whole, made.Response.Filtered)
	return report, nil
}
