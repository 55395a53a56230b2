// Package toy adapts Toy, a vendor that draws pictures and exists in the
// sandbox only.
package toy

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

const (
	opDraw        = "draw"
	submitTimeout = 30 * time.Second
)

// Description is what the adapter says of itself.
func Description() providers.Description {
	return providers.Description{
		Credentials: []string{"api_key"},
		Operations:  map[string]providers.Operation{opDraw: {Fields: drawFields(), Media: "image", Submit: submitTimeout}},
	}
}

func drawFields() []string { return []string{"prompt", "style"} }

// Adapter speaks to one account. It is safe for concurrent use.
type Adapter struct {
	vendorhttp.Keyed
}

// New makes the adapter of a channel; errors name channel and field.
func New(ch mediagate.Channel, opt vendorhttp.Options) (*Adapter, error) {
	account, err := vendorhttp.OpenKeyed(ch, opt, "https://toy.example.com", "Authorization", "Bearer ")
	if err != nil {
		return nil, err
	}
	return &Adapter{account}, nil
}

type request struct {
	Model string `json:"model"`
	Text  string `json:"text"`
	Style string `json:"style"`
}

// Express says whether the vendor can be told the job's request.
func Express(job mediagate.Job, _ map[string]string) error {
	_, err := write(job)
	return err
}

// write puts the job in the vendor's words, which has no word for "noir".
func write(job mediagate.Job) (*request, error) {
	if job.Operation != opDraw {
		return nil, mediagate.Errorf(mediagate.KindNotFound, "operation %q is unknown here", job.Operation)
	}
	var p struct {
		Prompt string `json:"prompt"`
		Style  string `json:"style"`
	}
	if err := vendorhttp.DecodeParams(job.Params, &p, drawFields()...); err != nil {
		return nil, err
	}
	if p.Style == "noir" {
		return nil, mediagate.Invalid("style", "style must be plain here")
	}
	return &request{Model: job.Upstream, Text: p.Prompt, Style: p.Style}, nil
}

// reply is every answer of the vendor.
type reply struct {
	ID      vendorhttp.Text `json:"id"`
	State   vendorhttp.Text `json:"state"`
	Picture vendorhttp.Text `json:"picture"`
	Error   vendorhttp.Text `json:"error"`
}

// states are the vendor's words for jobs.
var states = map[string]mediagate.JobState{
	"waiting": mediagate.JobQueued, "drawing": mediagate.JobRunning, "drawn": mediagate.JobSucceeded, "spoilt": mediagate.JobFailed,
}

// meanings is the vendor's error table.
var meanings = map[string]vendorhttp.Meaning{
	"bad_key": {Kind: mediagate.KindCredentials}, "bad_request": {Kind: mediagate.KindInvalid},
	"forbidden_content": {Kind: mediagate.KindModerated}, "busy": {Kind: mediagate.KindThrottled}, noDrawing: {Kind: mediagate.KindNotFound},
}

// noDrawing is the vendor's word that there is no such job.
const noDrawing = "no_drawing"

// said reads an answer, which holds a drawing or an error.
func (r *reply) said(answer vendorhttp.Answer) vendorhttp.Said {
	own := answer.Decode(r) == nil
	return vendorhttp.Said{
		Own: own, Done: answer.Status == http.StatusOK && r.ID.ID() != "",
		Meaning: meanings[string(r.Error)], Sure: r.Error == noDrawing, Code: string(r.Error),
	}
}

// Submit sends the job once; providers.Provider says which kinds it returns.
func (a *Adapter) Submit(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
	req, err := write(job)
	if err != nil {
		return mediagate.Submission{}, err
	}
	var made reply
	if err := a.HTTP.Ask(ctx, vendorhttp.Call{
		Effect: vendorhttp.Submits, Path: "/drawings", Body: vendorhttp.JSON(req),
		SendBefore: job.SendBefore, Limits: vendorhttp.Limits{Total: submitTimeout},
	}, made.said); err != nil {
		return mediagate.Submission{}, err
	}
	return mediagate.Submission{Ref: mediagate.JobRef{JobID: made.ID.ID(), ExternalID: job.ExternalID, Operation: job.Operation}}, nil
}

// Poll asks for a job by the vendor's id.
func (a *Adapter) Poll(ctx context.Context, ref mediagate.JobRef) (mediagate.Report, error) {
	var r reply
	if err := a.HTTP.Ask(ctx, vendorhttp.Call{Effect: vendorhttp.Reads, Path: "/drawings/" + url.PathEscape(ref.JobID)}, r.said); err != nil {
		return mediagate.Report{}, err
	}
	report, err := a.HTTP.Report(ref, r.ID, states, r.State)
	if err != nil {
		return report, err
	}
	switch report.State {
	case mediagate.JobSucceeded:
		out := &mediagate.Outcome{}
		if link := r.Picture.Link(); link != "" {
			out.Media = []mediagate.Media{{URL: link, MimeType: "image/png"}}
		}
		report.Offer(out, true)
	case mediagate.JobFailed:
		report.Outcome = a.HTTP.Failed(vendorhttp.FailureOf(vendorhttp.Meaning{}), "the picture was spoilt")
	default: // still under way
	}
	return report, nil
}
