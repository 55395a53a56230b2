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
	account, err := vendorhttp.OpenKeyed(ch, opt, "https://toy.example.com")
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
var meanings = map[string]mediagate.Kind{
	"bad_key": mediagate.KindCredentials, "bad_request": mediagate.KindInvalid, "forbidden_content": mediagate.KindModerated,
	"busy": mediagate.KindThrottled, "no_drawing": mediagate.KindNotFound,
}

// meaning judges an answer that is no drawing. A server's fault proves nothing,
// and a read only what is said of the account or the drawing.
func meaning(effect vendorhttp.Effect, status int, r reply) mediagate.Kind {
	known, ok := meanings[string(r.Error)]
	proven := known != mediagate.KindInvalid && known != mediagate.KindModerated
	switch {
	case effect != vendorhttp.Submits && (status >= http.StatusInternalServerError || !ok || !proven):
		return mediagate.KindTransient
	case status < http.StatusInternalServerError && ok:
		return known
	default:
		return vendorhttp.RefusalKind(status)
	}
}

func (a *Adapter) do(ctx context.Context, call vendorhttp.Call) (reply, error) {
	call.Header = http.Header{"Authorization": {"Bearer " + a.Key.Reveal()}}
	answer, err := a.HTTP.Do(ctx, call)
	if err != nil {
		return reply{}, err
	}
	var r reply
	if err := answer.Decode(&r); err != nil || answer.Status != http.StatusOK || r.ID.ID() == "" {
		v := vendorhttp.Meaning{Kind: meaning(call.Effect, answer.Status, r)}
		return reply{}, a.HTTP.Refuse(v, answer, string(r.Error), "", "")
	}
	return r, nil
}

// Submit sends the job once; providers.Provider says which kinds it returns.
func (a *Adapter) Submit(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
	req, err := write(job)
	if err != nil {
		return mediagate.Submission{}, err
	}
	body, err := vendorhttp.Encode(req)
	if err != nil {
		return mediagate.Submission{}, mediagate.Errorf(mediagate.KindInvalid, "the request cannot be written: %w", err)
	}
	r, err := a.do(ctx, vendorhttp.Call{
		Effect: vendorhttp.Submits, Path: "/drawings", Body: vendorhttp.JSON(body),
		SendBefore: job.SendBefore, Limits: vendorhttp.Limits{Total: submitTimeout},
	})
	if err != nil {
		return mediagate.Submission{}, err
	}
	return mediagate.Submission{Ref: mediagate.JobRef{JobID: r.ID.ID(), ExternalID: job.ExternalID, Operation: job.Operation}}, nil
}

// Poll asks for a job by the vendor's id.
func (a *Adapter) Poll(ctx context.Context, ref mediagate.JobRef) (mediagate.Report, error) {
	r, err := a.do(ctx, vendorhttp.Call{Effect: vendorhttp.Reads, Path: "/drawings/" + url.PathEscape(ref.JobID)})
	if err != nil {
		return mediagate.Report{}, err
	}
	if r.ID.ID() != ref.JobID {
		return mediagate.Report{}, mediagate.Errorf(mediagate.KindTransient, "the answer is about another drawing")
	}
	report := mediagate.Report{Ref: ref, Percent: -1, Named: true}
	switch report.State, report.Word = a.HTTP.State(states, r.State); report.State {
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
