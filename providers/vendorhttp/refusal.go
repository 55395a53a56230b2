package vendorhttp

import (
	"fmt"
	"net/http"
	"time"

	"github.com/mediagate/mediagate"
)

// Refusal holds what a vendor's error answer stated. It is the cause of the errors that Refuse
// makes, for logs.
type Refusal struct {
	Status    int
	Code      string
	RequestID string
}

// Error names status, code and request id. The vendor's text is in the error that wraps the
// Refusal.
func (r *Refusal) Error() string {
	s := fmt.Sprintf("vendor answered HTTP %d", r.Status)
	if r.Code != "" {
		s += ", code " + r.Code
	}
	if r.RequestID != "" {
		s += ", request " + r.RequestID
	}
	return s
}

// Meaning is the meaning of a vendor's error: a row of an adapter's table. The zero value is the
// meaning of an error that the table lacks.
type Meaning struct {
	Kind  mediagate.Kind
	Code  string        // the failure code of a task that this error ends
	Retry time.Duration // the least pause before a retry
}

// Refuse returns the error for a refusal of this meaning. Clients see the vendor's cleaned text
// only if the text is about their request and in English. In all other cases the text goes to the
// logs.
func (c *Client) Refuse(m Meaning, a Answer, code, requestID, text string) *mediagate.Error {
	refusal := &Refusal{Status: a.Status, Code: c.Clean(code), RequestID: c.ID(Text(requestID))}
	e := &mediagate.Error{Kind: m.Kind, Code: m.Code, Err: refusal}
	text = c.Clean(text)
	switch m.Kind {
	case mediagate.KindInvalid, mediagate.KindModerated:
		if e.Message = EnglishOrEmpty(text); e.Message != text {
			e.Err = withText(refusal, text)
		}
	case mediagate.KindThrottled, mediagate.KindCapacity:
		e.RetryAfter = max(a.RetryAfter(), m.Retry)
		e.Err = withText(refusal, text)
	default:
		e.Err = withText(refusal, text)
	}
	if e.Code == "" {
		e.Code = string(failureCodes[m.Kind])
	}
	if e.Message == "" {
		e.Message = kindTexts[m.Kind]
	}
	return e
}

func withText(refusal *Refusal, text string) error {
	if text == "" {
		return refusal
	}
	return fmt.Errorf("%w: %s", refusal, text)
}

// failureCodes holds the failure code of a task that an error of this kind ends.
var failureCodes = map[mediagate.Kind]mediagate.FailureCode{
	mediagate.KindInvalid:     mediagate.CodeInvalidParameters,
	mediagate.KindModerated:   mediagate.CodeContentPolicy,
	mediagate.KindCredentials: mediagate.CodeProviderRefused,
	mediagate.KindForbidden:   mediagate.CodeProviderRefused,
	mediagate.KindAmbiguous:   mediagate.CodeSubmissionUnknown,
	mediagate.KindFunds:       mediagate.CodeProviderAway,
	mediagate.KindThrottled:   mediagate.CodeProviderAway,
	mediagate.KindCapacity:    mediagate.CodeProviderAway,
	mediagate.KindNotFound:    mediagate.CodeProviderAway,
	mediagate.KindNoModel:     mediagate.CodeModelRetired,
	mediagate.KindUnreached:   mediagate.CodeProviderAway,
	mediagate.KindTransient:   mediagate.CodeProviderAway,
}

var kindTexts = map[mediagate.Kind]string{
	mediagate.KindInvalid:     "the request was refused as invalid",
	mediagate.KindModerated:   "the content was refused",
	mediagate.KindCredentials: "the vendor refused our credentials",
	mediagate.KindForbidden:   "the vendor does not allow us this",
	mediagate.KindFunds:       "our account with the vendor is out of money",
	mediagate.KindThrottled:   "the vendor asks for fewer calls",
	mediagate.KindCapacity:    "the vendor has no free slot",
	mediagate.KindNotFound:    "the vendor does not know what was asked for",
	mediagate.KindNoModel:     "the vendor has no such model",
	mediagate.KindAmbiguous:   "the vendor's answer does not tell whether it has the job",
	mediagate.KindTransient:   "the vendor could not answer",
}

// RefusalKind returns what the HTTP status alone says about a submission that got an error answer.
// Only the statuses listed here prove a refusal. After all others, such as 408, 409 and 500, the
// vendor may have a job.
func RefusalKind(status int) mediagate.Kind {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return mediagate.KindCredentials
	case http.StatusPaymentRequired:
		return mediagate.KindFunds
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return mediagate.KindNotFound
	case http.StatusTooManyRequests:
		return mediagate.KindThrottled
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge,
		http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return mediagate.KindInvalid
	default:
		return mediagate.KindAmbiguous
	}
}
