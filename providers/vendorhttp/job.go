package vendorhttp

import (
	"cmp"

	"github.com/mediagate/mediagate"
)

// maxWord bounds a status word for logs and metrics.
const maxWord = 32

// State looks a vendor's word for a job up. One that the table lacks is
// unknown: neither a success nor a failure.
func (c *Client) State(states map[string]mediagate.JobState, word Text) (mediagate.JobState, string) {
	if state, known := states[string(word)]; known {
		return state, string(word)
	}
	return mediagate.JobUnknown, c.Word(string(word))
}

// Report begins the report on a job with the id and the word that the answer has
// for it. An answer about another job is against the vendor's own protocol: asked
// again, it may be right, so that is KindTransient.
func (c *Client) Report(ref mediagate.JobRef, id Text, states map[string]mediagate.JobState, word Text) (mediagate.Report, error) {
	switch id.ID() {
	case "":
		return mediagate.Report{}, Strange("the answer names no job")
	case ref.JobID:
	default:
		return mediagate.Report{}, Strange("the answer is about another job")
	}
	report := mediagate.Report{Ref: ref, Percent: -1, Named: true}
	report.State, report.Word = c.State(states, word)
	return report, nil
}

// Strange is the error of an answer to a question that is against the vendor's own
// protocol.
func Strange(what string) error { return mediagate.Errorf(mediagate.KindTransient, "%s", what) }

// Word is a vendor's word as it may be logged and counted.
func (c *Client) Word(text string) string {
	runes := []rune(c.Clean(text))
	return string(runes[:min(maxWord, len(runes))])
}

// FailureOf is the failure of a job that failed by an error of this meaning.
// Whatever is no fault of the request's is the vendor's.
func FailureOf(m Meaning) mediagate.Failure {
	switch m.Kind {
	case mediagate.KindModerated:
		return mediagate.Failure{Code: mediagate.CodeContentPolicy, Message: kindTexts[m.Kind]}
	case mediagate.KindInvalid:
		code := cmp.Or(mediagate.FailureCode(m.Code), mediagate.CodeInvalidParameters)
		return mediagate.Failure{Code: code, Message: kindTexts[m.Kind]}
	default:
		return mediagate.Failure{Code: mediagate.CodeGenerationFailed, Message: "the generation failed at the vendor", Retryable: true}
	}
}

// Failed is the outcome of a failed job. The vendor's text is told where
// clients can read it, else kept beside.
func (c *Client) Failed(f mediagate.Failure, text string) *mediagate.Outcome {
	out := &mediagate.Outcome{Failure: &f}
	text = c.Clean(text)
	if shown := English(text); shown != "" {
		f.Message = shown
	} else {
		out.VendorText = text
	}
	return out
}
