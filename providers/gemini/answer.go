package gemini

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// chargeUnit is what jobs are charged in: the tokens of request and answer.
const chargeUnit = "tokens"

// reply is an answer with HTTP 200. Data is what stands for an image's bytes.
type reply struct {
	Candidates []candidate `json:"candidates"`
	Feedback   struct {
		BlockReason vendorhttp.Text `json:"blockReason"`
	} `json:"promptFeedback"`
	Usage struct {
		Total vendorhttp.Text `json:"totalTokenCount"`
	} `json:"usageMetadata"`
	ResponseID vendorhttp.Text `json:"responseId"`
}

type candidate struct {
	Content struct {
		Parts []struct {
			Text    vendorhttp.Text `json:"text"`
			Thought bool            `json:"thought"`
			Inline  struct {
				Data vendorhttp.Text `json:"data"`
			} `json:"inlineData"`
		} `json:"parts"`
	} `json:"content"`
	FinishReason  vendorhttp.Text `json:"finishReason"`
	FinishMessage vendorhttp.Text `json:"finishMessage"`
}

const (
	// textBytes bounds an answer beside its images.
	textBytes = 1 << 20
	// taken stands for the bytes of the image that the sink has: the last one
	// that came. Drafts come before it, and are replaced.
	taken, replaced = "taken", "replaced"
)

// outcome reads the answer and hands its image to the sink while it arrives.
// HTTP 200 says nothing: an answer without an image is a failure.
func (a *Adapter) outcome(ctx context.Context, job mediagate.Job, index int, answer *vendorhttp.Stream) (mediagate.Submission, error) {
	var (
		media  mediagate.Media
		images int
		broken bool
	)
	text, err := vendorhttp.Extract(answer.Body, "data", textBytes, func(data io.Reader) (string, error) {
		images++
		stored, err := job.Sink.Store(ctx, index, base64.NewDecoder(base64.StdEncoding, data))
		if _, corrupt := errors.AsType[base64.CorruptInputError](err); corrupt {
			broken = true
			return replaced, nil
		}
		media, broken = stored, false
		return taken + number(images), err
	})
	r, whole := new(reply), false
	if err == nil {
		err = json.Unmarshal(text, r)
		if _, odd := errors.AsType[*json.UnmarshalTypeError](err); odd {
			err = nil // an odd field must not hide the image beside it
		}
		whole = err == nil
		if whole && !r.own() {
			err = errForeign
		}
	}
	if err != nil {
		if _, ours := errors.AsType[*mediagate.Error](err); ours && !whole {
			return mediagate.Submission{}, err
		}
		return mediagate.Submission{}, a.HTTP.Refuse(
			vendorhttp.Meaning{Kind: mediagate.KindAmbiguous}, vendorhttp.Answer{Status: answer.Status}, "", "", "")
	}
	s := mediagate.Submission{Ref: mediagate.JobRef{
		JobID: a.HTTP.ID(r.ResponseID), ExternalID: job.ExternalID, Operation: job.Operation,
	}}
	if !broken && r.shows(taken+number(images)) {
		media.Index = index
		s.Outcome = &mediagate.Outcome{Succeeded: true, Media: []mediagate.Media{media}, VendorCharge: mediagate.ChargedBy(r.Usage.Total.Decimal(), chargeUnit)}
		return s, nil
	}
	s.Outcome = a.failed(r)
	return s, nil
}

// errForeign says that an answer is not in the vendor's own words.
var errForeign = errors.New("the answer holds neither a candidate nor a reason")

// own says that the answer speaks of an image, or of why there is none.
func (r *reply) own() bool {
	return r.Feedback.BlockReason != "" || slices.ContainsFunc(r.Candidates, func(c candidate) bool {
		return c.FinishReason != "" || len(c.Content.Parts) > 0
	})
}

func number(n int) string { return strings.Repeat("+", n) } // needs no escapes

// shows says that the image is one of the answer's, and no thought.
func (r *reply) shows(image string) bool {
	for _, c := range r.Candidates {
		for _, p := range c.Content.Parts {
			if string(p.Inline.Data) == image {
				return !p.Thought
			}
		}
	}
	return false
}

// moderated are the reasons, of a block or a finish, that speak of content.
// Of the others, OTHER and IMAGE_OTHER among them, nobody knows.
var moderated = map[vendorhttp.Text]bool{
	"SAFETY": true, "IMAGE_SAFETY": true, "BLOCKLIST": true, "PROHIBITED_CONTENT": true, "IMAGE_PROHIBITED_CONTENT": true,
	"RECITATION": true, "IMAGE_RECITATION": true, "SPII": true,
}

// failed is the outcome of an answer without an image.
func (a *Adapter) failed(r *reply) *mediagate.Outcome {
	reason, words := r.Feedback.BlockReason, vendorhttp.Text("")
	blocked := reason != ""
	for _, c := range r.Candidates {
		reason = cmp.Or(reason, c.FinishReason)
		words = cmp.Or(words, c.FinishMessage)
		for _, p := range c.Content.Parts {
			if !p.Thought {
				words = cmp.Or(words, p.Text)
			}
		}
	}
	out := &mediagate.Outcome{
		Failure:      &mediagate.Failure{Code: mediagate.CodeGenerationFailed, Message: "the vendor made no image", Retryable: true},
		VendorCharge: mediagate.ChargedBy(r.Usage.Total.Decimal(), chargeUnit),
	}
	if blocked || moderated[reason] { // a prompt is blocked for what it says
		out.Failure = &mediagate.Failure{Code: mediagate.CodeContentPolicy, Message: "the content was refused"}
	}
	out.VendorText = strings.TrimSpace(a.HTTP.Clean(string(reason) + " " + string(words)))
	return out
}
