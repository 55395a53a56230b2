package vendorhttp

import (
	"cmp"

	"github.com/mediagate/mediagate"
)

// maxWord bounds a status word in logs and metrics, in characters.
const maxWord = 32

// State returns the state that the table has for a vendor's status word, and the word. If the table
// lacks the word, the state is JobUnknown, neither a success nor a failure.
func (c *Client) State(states map[string]mediagate.JobState, word Text) (mediagate.JobState, string) {
	if state, known := states[string(word)]; known {
		return state, string(word)
	}
	return mediagate.JobUnknown, c.CleanWord(string(word))
}

// Report returns a report with the state of a job, from the id and the status word of an answer. If
// the answer names no job or another job, the vendor breaks its own protocol. A repeated call may
// get a correct answer, so the error is KindTransient.
func (c *Client) Report(
	ref mediagate.JobRef, id Text, states map[string]mediagate.JobState, word Text,
) (mediagate.Report, error) {
	switch id.ID() {
	case "":
		return mediagate.Report{}, ProtocolError("the answer names no job")
	case ref.JobID:
	default:
		return mediagate.Report{}, ProtocolError("the answer is about another job")
	}
	report := mediagate.Report{Ref: ref, Percent: -1, Named: true}
	report.State, report.Word = c.State(states, word)
	return report, nil
}

// ProtocolError returns the error of an answer that breaks the vendor's own protocol. It is for
// calls that make no job.
func ProtocolError(what string) error { return mediagate.Errorf(mediagate.KindTransient, "%s", what) }

// CleanWord returns a vendor's word in a form that may be logged and counted.
func (c *Client) CleanWord(text string) string {
	runes := []rune(c.Clean(text))
	return string(runes[:min(maxWord, len(runes))])
}

// FailureOf returns the failure of a job that ended with an error of this meaning. If the error is
// not about the request, the vendor is at fault, and a retry may succeed.
func FailureOf(m Meaning) mediagate.Failure {
	switch m.Kind {
	case mediagate.KindModerated:
		return mediagate.Failure{Code: mediagate.CodeContentPolicy, Message: kindTexts[m.Kind]}
	case mediagate.KindInvalid:
		code := cmp.Or(mediagate.FailureCode(m.Code), mediagate.CodeInvalidParameters)
		return mediagate.Failure{Code: code, Message: kindTexts[m.Kind]}
	default:
		return mediagate.Failure{
			Code: mediagate.CodeGenerationFailed, Message: "the generation failed at the vendor", Retryable: true,
		}
	}
}

// Failed returns the outcome of a failed job. The vendor's text becomes the message if it is in
// English. Otherwise it goes to VendorText.
func (c *Client) Failed(f mediagate.Failure, text string) *mediagate.Outcome {
	out := &mediagate.Outcome{Failure: &f}
	text = c.Clean(text)
	if shown := EnglishOrEmpty(text); shown != "" {
		f.Message = shown
	} else {
		out.VendorText = text
	}
	return out
}
