package midjourney

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/inline"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// The names of the operations.
const (
	opImagine  = "imagine"
	opAction   = "action"
	opModal    = "modal"
	opBlend    = "blend"
	opDescribe = "describe"
)

// The dialects, as a channel's option names them.
const (
	dialectTrueai   = "trueai"
	dialectNovicezk = "novicezk"
)

const (
	// submitTimeout bounds a submission with its images.
	submitTimeout = 60 * time.Second
	// batch is the most jobs that one call asks for. The proxies document no limit. The answer has
	// some kilobytes for each job.
	batch      = 20
	batchBytes = 4 << 20
)

// fields holds the fields of the canonical request that each operation takes.
var fields = map[string][]string{
	opImagine: {
		"prompt", "image_urls", "speed", "size", "version", "seed", "negative_prompt",
		"stylize", "chaos", "weird", "tile",
	},
	opAction:   {"speed"},
	opModal:    {"prompt", "mask_url", "speed"},
	opBlend:    {"image_urls", "dimensions", "speed"},
	opDescribe: {"image_urls", "speed"},
}

// Description describes the adapter: its credentials, options and operations.
func Description() providers.Description {
	d := providers.Description{
		Credentials: []string{apiSecret}, Options: []string{"dialect"}, Operations: map[string]providers.Operation{},
	}
	for name, fields := range fields {
		d.Operations[name] = providers.Operation{
			Fields: fields, Media: "image", Submit: submitTimeout, Cancel: true, Batch: batch, Callback: true,
			Source: name == opAction || name == opModal,
			Inputs: name != opAction,
		}
	}
	return d
}

const apiSecret = "api_secret"

// Adapter calls one proxy. It is safe for concurrent use.
type Adapter struct {
	http    *vendorhttp.Client
	dialect string
	images  *inline.Images
}

// cancellable is an adapter for a proxy that can stop jobs.
type cancellable struct{ *Adapter }

// New returns the adapter of a channel. Its errors name the channel and the field.
func New(ch mediagate.Channel, opt vendorhttp.Options) (providers.Provider, error) {
	check := vendorhttp.Check(ch)
	about := Description()
	check.CheckNames(about.Credentials, about.Options)
	base, secret := check.BaseURL(""), check.Credential(apiSecret) // there is no public proxy
	dialect := dialectOf(ch.Options)
	if dialect != dialectTrueai && dialect != dialectNovicezk {
		check.AddProblem("options.dialect", "must be trueai or novicezk")
	}
	if err := check.Err(); err != nil {
		return nil, err
	}
	client := vendorhttp.New(vendorhttp.Config{
		BaseURL: base, Header: http.Header{"Mj-Api-Secret": {secret.Reveal()}}, Secrets: []mediagate.Secret{secret},
	}, opt)
	a := &Adapter{http: client, dialect: dialect, images: inline.NewImages(client.Now)}
	if dialect == dialectTrueai {
		return &cancellable{a}, nil
	}
	return a, nil
}

func dialectOf(options map[string]string) string { return cmp.Or(options["dialect"], dialectTrueai) }

// Account returns the name of the vendor account behind a channel. The secret names it, because a
// channel has nothing else.
func Account(ch mediagate.Channel) string { return ch.Credentials[apiSecret].Reveal() }

// Close drops idle connections.
func (a *Adapter) Close() { a.http.Close() }

// Supports returns an error that says why the vendor's API cannot express the request, or nil.
func Supports(job mediagate.Job, options map[string]string) error {
	_, err := write(job, dialectOf(options))
	return err
}

// Submit sends the job once. providers.Provider lists the kinds of its errors.
func (a *Adapter) Submit(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
	w, err := write(job, a.dialect)
	if err != nil {
		return mediagate.Submission{}, err
	}
	req, err := a.images.Request(ctx, job, w.images, w.document)
	if err != nil {
		return mediagate.Submission{}, err
	}
	defer req.Release()
	answer, err := a.http.Do(ctx, vendorhttp.Call{
		Effect: vendorhttp.Submits, Path: w.path, Body: req.Body(req.Release),
		SendBefore: job.SendBefore, Limits: vendorhttp.Limits{Total: submitTimeout},
	})
	if err != nil {
		return mediagate.Submission{}, err
	}
	id, err := a.readSubmission(job, answer)
	if err != nil {
		return mediagate.Submission{}, err
	}
	return mediagate.Submission{
		Ref: mediagate.JobRef{JobID: id, ExternalID: job.ExternalID, Operation: job.Operation},
	}, nil
}

// Poll asks for a job by the vendor's id.
func (a *Adapter) Poll(ctx context.Context, ref mediagate.JobRef) (mediagate.Report, error) {
	if ref.JobID == "" {
		return mediagate.Report{}, mediagate.Errorf(mediagate.KindNotFound, "the reference names no job")
	}
	answer, err := a.http.Do(ctx, vendorhttp.Call{
		Effect: vendorhttp.Reads, Path: "/mj/task/" + url.PathEscape(ref.JobID) + "/fetch",
	})
	if err != nil {
		return mediagate.Report{}, err
	}
	job, err := a.readTask(answer)
	if err != nil {
		return mediagate.Report{}, err
	}
	return a.report(ref, job)
}

// Batches reports whether PollAll takes the job.
func (a *Adapter) Batches(ref mediagate.JobRef) bool { return ref.JobID != "" }

// PollAll asks for the jobs in one call.
func (a *Adapter) PollAll(ctx context.Context, refs []mediagate.JobRef) ([]providers.Answer, error) {
	ids := make([]string, len(refs))
	for i, ref := range refs {
		ids[i] = ref.JobID
	}
	answer, err := a.http.Do(ctx, vendorhttp.Call{
		Effect: vendorhttp.Reads, Path: "/mj/task/list-by-condition",
		Body:   vendorhttp.JSON(map[string][]string{"ids": ids}),
		Limits: vendorhttp.Limits{Bytes: batchBytes},
	})
	if err != nil {
		return nil, err
	}
	jobs, err := a.readTasks(answer)
	if err != nil {
		return nil, err
	}
	answers, found := make([]providers.Answer, len(refs)), false
	for i, ref := range refs {
		answers[i].Err = mediagate.Errorf(mediagate.KindNotFound, "the answer leaves the job out")
		for _, job := range jobs {
			if job.ID.ID() == ref.JobID {
				answers[i].Report, answers[i].Err = a.report(ref, job)
				found = true
			}
		}
	}
	if !found {
		// KindNotFound makes the caller poll each job alone before it takes all of them for lost.
		return nil, mediagate.Errorf(mediagate.KindNotFound, "the answer names none of the jobs")
	}
	return answers, nil
}

// Cancel stops a job that has not ended. The proxy accepts every such call, and a poll shows the
// result.
func (s *cancellable) Cancel(ctx context.Context, ref mediagate.JobRef) error {
	if ref.JobID == "" {
		return mediagate.Errorf(mediagate.KindNotFound, "the reference names no job")
	}
	answer, err := s.http.Do(ctx, vendorhttp.Call{
		Effect: vendorhttp.Stops, Method: http.MethodPost, Path: "/mj/task/" + url.PathEscape(ref.JobID) + "/cancel",
	})
	if err != nil {
		return err
	}
	if answer.Status < http.StatusMultipleChoices {
		return nil // whatever the body says
	}
	return s.readError(answer)
}
