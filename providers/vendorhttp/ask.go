package vendorhttp

import (
	"context"
	"net/http"

	"github.com/mediagate/mediagate"
)

// Said is what an answer says, as its adapter has read it. The zero value is an
// answer that is not the vendor's own, but of something before it.
type Said struct {
	Own  bool // the answer is the vendor's own
	Done bool // it holds what was asked for, and no error

	// Of an error:
	Meaning Meaning // by the adapter's table
	// Sure: the meaning holds for a call that makes no job, too, such as that
	// there is no such job. Without it such a call proves no more than what is
	// said of the account or of the pace.
	Sure      bool
	Code      string // the vendor's, for the logs
	RequestID string // what its support asks for
	Text      string // in the vendor's words
	Param     string // the field that an error of KindInvalid names
}

// Ask makes a call and classifies its answer by what it says, which read tells; nil
// means that the answer is Done. The errors are those of Do and of ErrorOf.
func (c *Client) Ask(ctx context.Context, call Call, read func(Answer) Said) error {
	answer, err := c.Do(ctx, call)
	if err != nil {
		return err
	}
	return c.ErrorOf(call.Effect, answer, read(answer))
}

// ErrorOf is the error of an answer to a call of this effect; nil means that it is
// Done. A 5xx proves nothing, nor does what is not the vendor's own: a submission
// is refused only by a 4xx then, and any other call is asked again.
func (c *Client) ErrorOf(effect Effect, a Answer, s Said) error {
	proves := s.Own && a.Status < http.StatusInternalServerError
	if proves && s.Done {
		return nil
	}
	m := s.Meaning
	switch known := m.Kind != mediagate.KindInternal; {
	case effect == Submits && proves && known:
	case effect == Submits:
		m = Meaning{Kind: RefusalKind(a.Status)}
	case !proves || !known:
		m = Meaning{Kind: mediagate.KindTransient}
	case s.Sure, m.Kind == mediagate.KindCredentials, m.Kind == mediagate.KindFunds, m.Kind == mediagate.KindThrottled:
	case m.Kind == mediagate.KindCapacity:
		m = Meaning{Kind: mediagate.KindThrottled, Retry: m.Retry}
	default:
		m = Meaning{Kind: mediagate.KindTransient}
	}
	e := c.Refuse(m, a, s.Code, s.RequestID, s.Text)
	if m.Kind == mediagate.KindInvalid {
		e.Param = s.Param
	}
	return e
}
