package minimax

import (
	"cmp"
	"net/http"
	"regexp"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// reply is any answer of the vendor's: each has the fields of its own call.
type reply struct {
	// The first generation.
	TaskID vendorhttp.Text `json:"task_id"` // of a submission to the second one too
	Status vendorhttp.Text `json:"status"`
	FileID vendorhttp.Text `json:"file_id"`
	File   struct {
		ID  vendorhttp.Text `json:"file_id"`
		URL vendorhttp.Text `json:"download_url"`
	} `json:"file"`
	Base struct {
		Code vendorhttp.Text `json:"status_code"`
		Text vendorhttp.Text `json:"status_msg"`
	} `json:"base_resp"`

	// The second generation.
	Task  secondJob `json:"task"`
	Error struct {
		Type    vendorhttp.Text `json:"type"`
		Message vendorhttp.Text `json:"message"`
	} `json:"error"`
	RequestID vendorhttp.Text `json:"request_id"`
}

type secondJob struct {
	ID      vendorhttp.Text `json:"id"`
	Status  vendorhttp.Text `json:"status"`
	Content struct {
		URL vendorhttp.Text `json:"url"`
	} `json:"content"`
	Usage struct {
		Total  vendorhttp.Text `json:"total_seconds"`
		Output vendorhttp.Text `json:"output_seconds"`
	} `json:"usage"`
	Error struct {
		Code    vendorhttp.Text `json:"code"`
		Message vendorhttp.Text `json:"message"`
	} `json:"error"`
}

// decode reads an answer; ok is false for one that is not the vendor's own.
func decode[T any](answer vendorhttp.Answer) (v T, ok bool) {
	err := answer.Decode(&v)
	return v, err == nil
}

// success is the code of the first generation when nothing is wrong.
const success = "0"

// meanings is the vendor's error table: base_resp.status_code of the first
// generation, which the second one writes in parentheses behind its message.
var meanings = map[string]vendorhttp.Meaning{
	"1002": {Kind: mediagate.KindThrottled, Retry: time.Second}, // rate limit
	"1004": {Kind: mediagate.KindCredentials},                   // key and host do not belong together
	"1008": {Kind: mediagate.KindFunds},                         // insufficient balance
	"1026": {Kind: mediagate.KindModerated},                     // the input
	"1027": {Kind: mediagate.KindModerated},                     // the output
	"1039": {Kind: mediagate.KindThrottled, Retry: time.Second}, // token limit
	"1041": {Kind: mediagate.KindCapacity, Retry: time.Second},  // connection limit
	"1042": {Kind: mediagate.KindInvalid},                       // invalid characters
	"2013": {Kind: mediagate.KindInvalid},                       // parameters
	"2038": {Kind: mediagate.KindCredentials},                   // the account needs to be verified
	"2049": {Kind: mediagate.KindCredentials},                   // invalid key
	"2056": {Kind: mediagate.KindFunds},                         // the plan is used up
	// A server's fault proves nothing.
	"1000": {Kind: mediagate.KindAmbiguous}, // unknown
	"1001": {Kind: mediagate.KindAmbiguous}, // timeout
	"1024": {Kind: mediagate.KindAmbiguous}, // internal
	"1033": {Kind: mediagate.KindAmbiguous}, // downstream
}

// types is the error table of the second generation, for answers without a
// code that we know.
var types = map[vendorhttp.Text]vendorhttp.Meaning{
	"bad_request_error":          {Kind: mediagate.KindInvalid},
	"authorized_error":           {Kind: mediagate.KindCredentials},
	"insufficient_balance_error": {Kind: mediagate.KindFunds},
	"unprocessable_entity_error": {Kind: mediagate.KindModerated},
	"rate_limit_error":           {Kind: mediagate.KindThrottled, Retry: time.Second},
	"server_error":               {Kind: mediagate.KindAmbiguous},
}

// written finds the code that a message of the second generation ends with.
var written = regexp.MustCompile(`[(（](\d{4})[)）]\s*$`)

// codeOf is the numeric code of an error of the second generation.
func codeOf(code, message vendorhttp.Text) string {
	if _, known := meanings[string(code)]; known {
		return string(code)
	}
	if m := written.FindStringSubmatch(string(message)); m != nil {
		return m[1]
	}
	return string(code)
}

// refusal is what an answer states: its code, its text, and the meaning of
// the tables. known is false where neither has it.
func (r reply) refusal() (code, text string, v vendorhttp.Meaning, known bool) {
	if r.Error.Type != "" || r.Error.Message != "" {
		code = codeOf("", r.Error.Message)
		v, known = meanings[code]
		if !known {
			v, known = types[r.Error.Type]
		}
		return cmp.Or(code, string(r.Error.Type)), string(r.Error.Message), v, known
	}
	code = string(r.Base.Code)
	v, known = meanings[code]
	return code, string(r.Base.Text), v, known
}

// fine says that the answer states no error.
func (r reply) fine() bool {
	return r.Error.Type == "" && r.Error.Message == "" && (r.Base.Code == "" || r.Base.Code == success)
}

// submitError judges the answer to a submission; nil means that it names a job.
func (a *Adapter) submitError(answer vendorhttp.Answer, r reply, own bool) error {
	v := vendorhttp.Meaning{Kind: mediagate.KindAmbiguous}
	code, text, known, ok := r.refusal()
	switch {
	case !own:
		v.Kind = vendorhttp.RefusalKind(answer.Status)
	case answer.Status >= http.StatusInternalServerError:
	case r.fine() && answer.Status < http.StatusMultipleChoices:
		if r.TaskID.ID() != "" {
			return nil
		}
	case r.fine():
		v.Kind = vendorhttp.RefusalKind(answer.Status)
	case ok:
		v = known
	case answer.Status >= http.StatusBadRequest:
		v.Kind = vendorhttp.RefusalKind(answer.Status)
	}
	return a.HTTP.Refuse(v, answer, code, a.trace(answer, r), text)
}

// pollError judges the answer to a query; nil means that it has a job. A
// query has one parameter, so what the vendor says of parameters is about the
// id: the first generation calls an unknown one invalid, the second one too
// once it is older than seven days (read at second hand).
func (a *Adapter) pollError(answer vendorhttp.Answer, r reply, own bool) error {
	if own && answer.Status == http.StatusOK && r.TaskID.ID() != "" && r.Status != "" {
		return nil // the code beside a failed job is the job's
	}
	if own && answer.Status < http.StatusInternalServerError {
		switch _, _, v, _ := r.refusal(); {
		case v.Kind == mediagate.KindInvalid, r.Error.Type != "" && answer.Status == http.StatusNotFound:
			return a.refuse(vendorhttp.Meaning{Kind: mediagate.KindNotFound}, answer, r)
		}
	}
	return a.readError(answer, r, own)
}

// readError judges the answer to a call that changes nothing; nil means that
// it states no error.
func (a *Adapter) readError(answer vendorhttp.Answer, r reply, own bool) error {
	v := vendorhttp.Meaning{Kind: mediagate.KindTransient}
	_, _, known, _ := r.refusal()
	switch {
	case !own, answer.Status >= http.StatusInternalServerError:
	case r.fine() && answer.Status == http.StatusOK:
		return nil
	case known.Kind == mediagate.KindCredentials, known.Kind == mediagate.KindFunds, known.Kind == mediagate.KindThrottled:
		v = known
	case known.Kind == mediagate.KindCapacity:
		v = vendorhttp.Meaning{Kind: mediagate.KindThrottled, Retry: known.Retry}
	}
	return a.refuse(v, answer, r)
}

func (a *Adapter) refuse(v vendorhttp.Meaning, answer vendorhttp.Answer, r reply) error {
	code, text, _, _ := r.refusal()
	return a.HTTP.Refuse(v, answer, code, a.trace(answer, r), text)
}

// trace is what the vendor's support asks for.
func (a *Adapter) trace(answer vendorhttp.Answer, r reply) string {
	return cmp.Or(answer.Header.Get("Trace-Id"), string(r.RequestID))
}

// The vocabularies. The first generation's is the one of its queries; its
// callbacks spell the words otherwise.
var (
	firstStates = map[string]mediagate.JobState{
		"Preparing":  mediagate.JobQueued,
		"Queueing":   mediagate.JobQueued,
		"Processing": mediagate.JobRunning,
		"Success":    mediagate.JobSucceeded,
		"Fail":       mediagate.JobFailed,
	}
	secondStates = map[string]mediagate.JobState{
		"queued":    mediagate.JobQueued,
		"running":   mediagate.JobRunning,
		"succeeded": mediagate.JobSucceeded,
		"failed":    mediagate.JobFailed,
		"cancelled": mediagate.JobFailed,
		"expired":   mediagate.JobFailed, // in the Chinese pages only
	}
)

// report translates a job's state. An answer about another job is against the
// vendor's own protocol: asked again, it may be right.
func (a *Adapter) report(ref mediagate.JobRef, id, word vendorhttp.Text, states map[string]mediagate.JobState) (mediagate.Report, error) {
	switch id.ID() {
	case "":
		return mediagate.Report{}, strange("the answer names no job")
	case ref.JobID:
	default:
		return mediagate.Report{}, strange("the answer is about another job")
	}
	state, text := a.HTTP.State(states, word)
	return mediagate.Report{Ref: ref, State: state, Word: text, Percent: -1, Named: true}, nil
}

// failed is the outcome of a failed job, by the vendor's code and text.
func (a *Adapter) failed(code, text string) *mediagate.Outcome {
	if code == success { // "success" is what the call was
		text = ""
	}
	return a.HTTP.Failed(vendorhttp.FailureOf(meanings[code]), text)
}

func strange(what string) error { return mediagate.Errorf(mediagate.KindTransient, "%s", what) }
