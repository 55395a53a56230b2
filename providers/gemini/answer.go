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

// chargeUnit is the unit in which the vendor charges: the tokens of request and answer.
const chargeUnit = "tokens"

// reply is an answer with HTTP 200. Its Data fields hold placeholders for the bytes of the images.
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
	// textBytes bounds an answer without its images.
	textBytes = 1 << 20
	// storedMark, with the image's number, replaces the bytes of an image that the sink has stored.
	// Drafts come before the final image, and the sink keeps only the last one. brokenMark replaces
	// bytes that are not base64.
	storedMark, brokenMark = "taken", "replaced"
)

// outcome reads the answer and streams each image into the sink while it arrives. HTTP 200 proves
// no success: an answer without an image is a failure.
func (a *Adapter) outcome(
	ctx context.Context, job mediagate.Job, index int, answer *vendorhttp.Stream,
) (mediagate.Submission, error) {
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
			return brokenMark, nil
		}
		media, broken = stored, false
		return storedMark + mark(images), err
	})
	r, whole := new(reply), false
	if err == nil {
		err = json.Unmarshal(text, r)
		if _, odd := errors.AsType[*json.UnmarshalTypeError](err); odd {
			err = nil // a field of another type must not hide the image beside it
		}
		whole = err == nil
		if whole && !r.isVendorAnswer() {
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
	if !broken && r.hasImage(storedMark+mark(images)) {
		media.Index = index
		s.Outcome = &mediagate.Outcome{
			Succeeded: true, Media: []mediagate.Media{media},
			VendorCharge: mediagate.ChargedBy(r.Usage.Total.Decimal(), chargeUnit),
		}
		return s, nil
	}
	s.Outcome = a.failed(r)
	return s, nil
}

// errForeign is the cause for an answer that is not in the vendor's format.
var errForeign = errors.New("the answer holds neither a candidate nor a reason")

// isVendorAnswer reports whether the answer is in the vendor's format: it has a candidate with
// content, or a reason why there is no image.
func (r *reply) isVendorAnswer() bool {
	return r.Feedback.BlockReason != "" || slices.ContainsFunc(r.Candidates, func(c candidate) bool {
		return c.FinishReason != "" || len(c.Content.Parts) > 0
	})
}

func mark(n int) string { return strings.Repeat("+", n) } // JSON needs no escapes for it

// hasImage reports whether the answer holds the image outside of its thoughts.
func (r *reply) hasImage(image string) bool {
	for _, c := range r.Candidates {
		for _, p := range c.Content.Parts {
			if string(p.Inline.Data) == image {
				return !p.Thought
			}
		}
	}
	return false
}

// moderated lists the block and finish reasons that refuse content. The vendor does not explain the
// other reasons, such as OTHER and IMAGE_OTHER.
var moderated = map[vendorhttp.Text]bool{
	"SAFETY": true, "IMAGE_SAFETY": true, "BLOCKLIST": true,
	"PROHIBITED_CONTENT": true, "IMAGE_PROHIBITED_CONTENT": true,
	"RECITATION": true, "IMAGE_RECITATION": true, "SPII": true,
}

// failed returns the outcome of an answer without an image.
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
		Failure: &mediagate.Failure{
			Code: mediagate.CodeGenerationFailed, Message: "the vendor made no image", Retryable: true,
		},
		VendorCharge: mediagate.ChargedBy(r.Usage.Total.Decimal(), chargeUnit),
	}
	if blocked || moderated[reason] { // the vendor blocks a prompt only for its content
		out.Failure = &mediagate.Failure{Code: mediagate.CodeContentPolicy, Message: "the content was refused"}
	}
	out.VendorText = strings.TrimSpace(a.HTTP.Clean(string(reason) + " " + string(words)))
	return out
}
