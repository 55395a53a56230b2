package googleapi

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// Operation is a long-running operation, in the answers to a submission and to a poll.
type Operation struct {
	Name     vendorhttp.Text  `json:"name"`
	Done     *vendorhttp.Text `json:"done"` // absent until the operation ends
	Error    *Status          `json:"error"`
	Response json.RawMessage  `json:"response"`
}

// resource matches the name of an operation's owner, such as models/NAME.
var resource = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]*(/[A-Za-z0-9][A-Za-z0-9._:-]*)*$`)

// Parts splits the operation's name into its owner and its id: models/m/operations/1 gives models/m
// and 1. ok is false if the name is malformed.
func (o Operation) Parts() (owner, id string, ok bool) {
	owner, id, _ = strings.Cut(o.Name.ID(), "/operations/")
	return owner, id, resource.MatchString(owner) && resource.MatchString(id) && !strings.Contains(id, "/")
}

// OperationName returns the name of an operation.
func OperationName(owner, id string) string { return owner + "/operations/" + id }

// State returns a report with the operation's progress. An answer about another operation violates
// the vendor's protocol. The error is KindTransient, since a second call may return the right one.
func (o Operation) State(client *vendorhttp.Client, ref mediagate.JobRef) (mediagate.Report, error) {
	report := mediagate.Report{Ref: ref, State: mediagate.JobRunning, Percent: -1, Named: true}
	if _, id, ok := o.Parts(); !ok || id != ref.JobID {
		return report, mediagate.Errorf(
			mediagate.KindTransient, "the answer is about no operation, or about another one")
	}
	switch {
	case o.Done == nil, *o.Done == "false":
	case *o.Done != "true":
		report.State, report.Word = mediagate.JobUnknown, client.CleanWord(string(*o.Done))
	case o.Error != nil:
		report.State, report.Word = mediagate.JobFailed, client.CleanWord(o.Error.CodeName())
		report.Outcome = o.Error.outcome(client)
	default:
		report.State = mediagate.JobSucceeded
	}
	return report, nil
}

// outcome returns the outcome of an operation that failed with this status. Every code ends the
// operation, even one for a fault of the vendor's server.
func (s Status) outcome(client *vendorhttp.Client) *mediagate.Outcome {
	var v vendorhttp.Meaning
	switch {
	case s.IsModerated():
		v.Kind = mediagate.KindModerated
	case s.CodeName() == "INVALID_ARGUMENT":
		v.Kind = mediagate.KindInvalid
	}
	return client.Failed(vendorhttp.FailureOf(v), string(s.Message))
}

// policy matches the words of a refusal of content. Veo gives it the same code as a bad argument.
// The words come from secondary sources.
var policy = regexp.MustCompile(
	`(?i)responsible ai|usage guidelines|content polic|safety|sensitive words|support codes?:`,
)

// IsModerated reports whether the vendor refused the content.
func (s Status) IsModerated() bool {
	return s.CodeName() == "INVALID_ARGUMENT" && policy.MatchString(string(s.Message))
}
