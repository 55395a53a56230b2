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

// said reads an answer for what it says of errors.
func (r *reply) said(answer vendorhttp.Answer) vendorhttp.Said {
	own := answer.Decode(r) == nil
	s := vendorhttp.Said{
		Own: own, Code: string(r.Base.Code), Text: string(r.Base.Text),
		RequestID: cmp.Or(answer.Header.Get("Trace-Id"), string(r.RequestID)),
	}
	if r.Error.Type != "" || r.Error.Message != "" {
		s.Code, s.Text = codeOf("", r.Error.Message), string(r.Error.Message)
	}
	s.Meaning = meanings[s.Code]
	if s.Meaning == (vendorhttp.Meaning{}) {
		s.Meaning = types[r.Error.Type]
	}
	s.Code = cmp.Or(s.Code, string(r.Error.Type))
	return s
}

// fine says that the answer states no error.
func (r *reply) fine() bool {
	return r.Error.Type == "" && r.Error.Message == "" && (r.Base.Code == "" || r.Base.Code == success)
}

// made reads the answer to a submission.
func (r *reply) made(answer vendorhttp.Answer) vendorhttp.Said {
	said := r.said(answer)
	said.Done = r.fine() && answer.Status < http.StatusMultipleChoices && r.TaskID.ID() != ""
	return said
}

// told reads the answer to a call that changes nothing.
func (r *reply) told(answer vendorhttp.Answer) vendorhttp.Said {
	said := r.said(answer)
	said.Done = r.fine() && answer.Status == http.StatusOK
	return said
}

// found reads the answer to a query. The code beside a failed job is the job's.
// A query has one parameter, so what the vendor says of parameters is about the
// id: the first generation calls an unknown one invalid, the second one too once
// it is older than seven days (read at second hand).
func (r *reply) found(answer vendorhttp.Answer) vendorhttp.Said {
	said := r.told(answer)
	said.Done = said.Done || answer.Status == http.StatusOK && r.TaskID.ID() != "" && r.Status != ""
	if said.Meaning.Kind == mediagate.KindInvalid || r.Error.Type != "" && answer.Status == http.StatusNotFound {
		said.Meaning, said.Sure = vendorhttp.Meaning{Kind: mediagate.KindNotFound}, true
	}
	return said
}

// stopped reads the answer to a cancel: a 2xx is a yes whatever is in it.
func (r *reply) stopped(answer vendorhttp.Answer) vendorhttp.Said {
	if answer.Status < http.StatusMultipleChoices {
		return vendorhttp.Said{Own: true, Done: true}
	}
	return r.said(answer)
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

// failed is the outcome of a failed job, by the vendor's code and text.
func (a *Adapter) failed(code, text string) *mediagate.Outcome {
	if code == success { // "success" is what the call was
		text = ""
	}
	return a.HTTP.Failed(vendorhttp.FailureOf(meanings[code]), text)
}
