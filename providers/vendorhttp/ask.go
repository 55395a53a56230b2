package vendorhttp

import (
	"context"
	"net/http"

	"github.com/mediagate/mediagate"
)

// Reading is what an adapter has read in an answer. The zero value is an answer that does not come
// from the vendor itself, such as the error page of a proxy.
type Reading struct {
	FromVendor bool // the vendor itself answered
	Done       bool // the answer holds the result, and no error

	// The fields below describe an error.
	Meaning Meaning // from the adapter's table
	// ForAllCalls is set if the meaning also holds for calls that make no job, for example if the
	// vendor says that the job does not exist. Without it, the answer to such a call proves only that
	// the vendor refuses our credentials, that our account is empty, or that we call too often.
	ForAllCalls bool
	Code        string // the vendor's code, for the logs
	RequestID   string // the id that the vendor's support asks for
	Text        string // the vendor's own words
	Param       string // the field that an error of KindInvalid names
}

// Ask makes a call, and read reads its answer. It returns nil if the answer is Done. Its errors are
// those of Do and of ErrorOf.
func (c *Client) Ask(ctx context.Context, call Call, read func(Answer) Reading) error {
	answer, err := c.Do(ctx, call)
	if err != nil {
		return err
	}
	return c.ErrorOf(call.Effect, answer, read(answer))
}

// ErrorOf returns the error that an answer means for a call of this effect, or nil if the answer is
// Done. An answer with status 5xx is never Done. An answer proves nothing if its status is 5xx, if it
// does not come from the vendor itself, or if the adapter's table lacks its error. After such an
// answer, a submission fails with the kind that RefusalKind has for the status. Any other call fails
// with KindTransient, so that the caller repeats it. For example, if a proxy sends an error page with
// status 429, a submission fails with KindThrottled, and a poll with KindTransient.
func (c *Client) ErrorOf(effect Effect, a Answer, r Reading) error {
	proves := r.FromVendor && a.Status < http.StatusInternalServerError
	if proves && r.Done {
		return nil
	}
	m := r.Meaning
	switch known := m.Kind != mediagate.KindInternal; {
	case effect == Submits && proves && known:
	case effect == Submits:
		m = Meaning{Kind: RefusalKind(a.Status)}
	case !proves || !known:
		m = Meaning{Kind: mediagate.KindTransient}
	case r.ForAllCalls,
		m.Kind == mediagate.KindCredentials, m.Kind == mediagate.KindFunds, m.Kind == mediagate.KindThrottled:
	case m.Kind == mediagate.KindCapacity:
		m = Meaning{Kind: mediagate.KindThrottled, Retry: m.Retry}
	default:
		m = Meaning{Kind: mediagate.KindTransient}
	}
	e := c.Refuse(m, a, r.Code, r.RequestID, r.Text)
	if m.Kind == mediagate.KindInvalid {
		e.Param = r.Param
	}
	return e
}
