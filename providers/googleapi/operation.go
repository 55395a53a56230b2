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
// against the vendor's own protocol, and so is one that is done without an
// end: asked again, it may be right.
func (o Operation) State(client *vendorhttp.Client, ref mediagate.JobRef) (mediagate.Report, error) {
	report := mediagate.Report{Ref: ref, State: mediagate.JobRunning, Percent: -1, Named: true}
	if _, id, ok := o.Parts(); !ok || id != ref.JobID {
		return report, mediagate.Errorf(mediagate.KindTransient, "the answer is about no operation, or about another one")
	}
	switch {
	case o.Done == nil, *o.Done == "false":
	case *o.Done != "true":
		report.State, report.Word = mediagate.JobUnknown, firstOf(client.Clean(string(*o.Done)), maxWord)
	case o.Error != nil:
		report.State, report.Word = mediagate.JobFailed, firstOf(client.Clean(o.Error.Word()), maxWord)
		report.Outcome = o.Error.outcome(client)
	case len(o.Response) == 0 || string(o.Response) == "null":
		return report, mediagate.Errorf(mediagate.KindTransient, "the operation is done, and the answer has no end of it")
	default:
		report.State = mediagate.JobSucceeded
	}
	return report, nil
}

// maxWord bounds a status word for logs and metrics.
const maxWord = 32

func firstOf(text string, n int) string {
	runes := []rune(text)
	return string(runes[:min(n, len(runes))])
}

// outcome is the end of an operation that failed. It is the end whatever its
// code: of a server's fault too.
func (s Status) outcome(client *vendorhttp.Client) *mediagate.Outcome {
	f := &mediagate.Failure{Code: mediagate.CodeGenerationFailed, Message: "the generation failed at the vendor", Retryable: true}
	switch {
	case s.Moderated():
		*f = mediagate.Failure{Code: mediagate.CodeContentPolicy, Message: "the content was refused"}
	case s.Word() == "INVALID_ARGUMENT":
		*f = mediagate.Failure{Code: mediagate.CodeInvalidParameters, Message: "the request was refused as invalid"}
	}
	out := &mediagate.Outcome{Failure: f}
	text := client.Clean(string(s.Message))
	if shown := vendorhttp.English(text); shown != "" {
		f.Message = shown
	} else {
		out.VendorText = text
	}
	return out
}

// policy finds the words by which Veo tells a refusal of content from one of
// arguments: the code is the same. They are read at second hand.
var policy = regexp.MustCompile(`(?i)responsible ai|usage guidelines|content polic|safety|sensitive words|support codes?:`)

// Moderated says that the content was refused.
func (s Status) Moderated() bool {
	return s.Word() == "INVALID_ARGUMENT" && policy.MatchString(string(s.Message))
}
