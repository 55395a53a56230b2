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
