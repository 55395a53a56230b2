package googleapi

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// Operation is a long-running one, as a submission and a poll answer it.
type Operation struct {
	Name     vendorhttp.Text  `json:"name"`
	Done     *vendorhttp.Text `json:"done"` // absent: not yet
	Error    *Status          `json:"error"`
	Response json.RawMessage  `json:"response"`
}

// resource is what an operation belongs to, such as models/NAME.
var resource = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]*(/[A-Za-z0-9][A-Za-z0-9._:-]*)*$`)

// Parts splits the operation's name into what it belongs to, and its id there.
// ok is false for what is no name of one.
func (o Operation) Parts() (owner, id string, ok bool) {
	owner, id, _ = strings.Cut(o.Name.ID(), "/operations/")
	return owner, id, resource.MatchString(owner) && resource.MatchString(id) && !strings.Contains(id, "/")
}

// NameOf is the name of an operation.
func NameOf(owner, id string) string { return owner + "/operations/" + id }

// State is how far the operation has come. An answer about another one is
// against the vendor's own protocol: asked again, it may be right.
func (o Operation) State(client *vendorhttp.Client, ref mediagate.JobRef) (mediagate.Report, error) {
	report := mediagate.Report{Ref: ref, State: mediagate.JobRunning, Percent: -1, Named: true}
	if _, id, ok := o.Parts(); !ok || id != ref.JobID {
		return report, mediagate.Errorf(mediagate.KindTransient, "the answer is about no operation, or about another one")
	}
	switch {
	case o.Done == nil, *o.Done == "false":
	case *o.Done != "true":
		report.State, report.Word = mediagate.JobUnknown, client.Word(string(*o.Done))
	case o.Error != nil:
		report.State, report.Word = mediagate.JobFailed, client.Word(o.Error.Word())
		report.Outcome = o.Error.outcome(client)
	default:
		report.State = mediagate.JobSucceeded
	}
	return report, nil
}

// outcome is the end of an operation that failed. It is the end whatever its
// code: of a server's fault too.
func (s Status) outcome(client *vendorhttp.Client) *mediagate.Outcome {
	var v vendorhttp.Meaning
	switch {
	case s.Moderated():
		v.Kind = mediagate.KindModerated
	case s.Word() == "INVALID_ARGUMENT":
		v.Kind = mediagate.KindInvalid
	}
	return client.Failed(vendorhttp.FailureOf(v), string(s.Message))
}

// policy finds the words by which Veo tells a refusal of content from one of
// arguments: the code is the same. They are read at second hand.
var policy = regexp.MustCompile(`(?i)responsible ai|usage guidelines|content polic|safety|sensitive words|support codes?:`)

// Moderated says that the content was refused.
func (s Status) Moderated() bool {
	return s.Word() == "INVALID_ARGUMENT" && policy.MatchString(string(s.Message))
}
