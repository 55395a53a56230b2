package acedata

import (
	"net/http"
	"regexp"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// meanings is the vendor's error table, by code.
var meanings = map[string]vendorhttp.Meaning{
	"bad_request": {Kind: mediagate.KindInvalid},

	"no_token":         {Kind: mediagate.KindCredentials},
	"invalid_token":    {Kind: mediagate.KindCredentials},
	"token_expired":    {Kind: mediagate.KindCredentials},
	"token_mismatched": {Kind: mediagate.KindCredentials},
	"disabled":         {Kind: mediagate.KindCredentials}, // the account

	"used_up":   {Kind: mediagate.KindFunds},
	"forbidden": {Kind: mediagate.KindForbidden}, // the message may say more

	"no_api":              {Kind: mediagate.KindNotFound},
	"api_not_implemented": {Kind: mediagate.KindNotFound},
	"not_found":           {Kind: mediagate.KindNotFound}, // a task; not documented

	"too_many_requests": {Kind: mediagate.KindThrottled, Retry: time.Second},
	"busy":              {Kind: mediagate.KindThrottled, Retry: time.Second},

	// These codes do not prove whether there is a job.
	"api_error": {Kind: mediagate.KindAmbiguous},
	"timeout":   {Kind: mediagate.KindAmbiguous},
}

// These patterns find the words of refusals that share their code with other errors.
var (
	refusedContent = regexp.MustCompile(
		`(?i)moderat|inappropriate|copyright|artist name|producer tag|matches existing work|sensitive|prohibited|violat|nsfw`,
	)
	malformed  = regexp.MustCompile(`(?i)malformed`)
	outOfFunds = regexp.MustCompile(`(?i)balance|insufficient|credits`)
)

// meaning returns the meaning of an error, by its code and its message.
func (f fault) meaning() vendorhttp.Meaning {
	v := meanings[string(f.Code)]
	text := string(f.Message)
	switch f.Code {
	case "bad_request":
		if refusedContent.MatchString(text) {
			v = vendorhttp.Meaning{Kind: mediagate.KindModerated}
		}
	case "forbidden":
		switch {
		case refusedContent.MatchString(text):
			v = vendorhttp.Meaning{Kind: mediagate.KindModerated}
		case malformed.MatchString(text):
			v = vendorhttp.Meaning{Kind: mediagate.KindInvalid}
		case outOfFunds.MatchString(text):
			v = vendorhttp.Meaning{Kind: mediagate.KindFunds}
		}
	}
	return v
}

// readError reads the error of an answer.
func (r *reply) readError(answer vendorhttp.Answer) vendorhttp.Reading {
	own := answer.Decode(r) == nil
	return vendorhttp.Reading{
		FromVendor: own, Meaning: r.Error.meaning(),
		Code: string(r.Error.Code), RequestID: string(r.TraceID), Text: string(r.Error.Message),
	}
}

// provesOutcome reports whether m is an error that proves what happened.
func provesOutcome(m vendorhttp.Meaning) bool {
	return m != (vendorhttp.Meaning{}) && m.Kind != mediagate.KindAmbiguous
}

// readSubmission reads the answer to a submission. An answer with an id may also hold an error that
// proves nothing. Such an error belongs to the job, and a poll reports it.
func (r *reply) readSubmission(answer vendorhttp.Answer) vendorhttp.Reading {
	reading := r.readError(answer)
	reading.Done = answer.Status < http.StatusMultipleChoices && r.TaskID.ID() != "" && !provesOutcome(reading.Meaning)
	return reading
}

// readVoice reads the answer to a submission that returns a voice.
func (r *reply) readVoice(answer vendorhttp.Answer) vendorhttp.Reading {
	reading := r.readError(answer)
	named := r.createdIDs().PersonaID.ID() != "" && r.Success != "false"
	reading.Done = answer.Status < http.StatusMultipleChoices && named && !provesOutcome(reading.Meaning)
	return reading
}

// readUpload reads the answer to an upload. An upload starts no job, so every refusal is final.
func (r *reply) readUpload(answer vendorhttp.Answer) vendorhttp.Reading {
	reading := r.readError(answer)
	reading.Done = answer.Status < http.StatusMultipleChoices && r.createdIDs().AudioID.ID() != "" && r.Success != "false"
	if !provesOutcome(reading.Meaning) {
		reading.Meaning = vendorhttp.Meaning{Kind: vendorhttp.RefusalKind(answer.Status)}
	}
	reading.ForAllCalls = provesOutcome(reading.Meaning)
	return reading
}

// readQueryError reads an answer that describes no job. Only the code not_found proves that the
// vendor has no such job.
func (r *reply) readQueryError(answer vendorhttp.Answer) vendorhttp.Reading {
	reading := r.readError(answer)
	reading.ForAllCalls = r.Error.Code == "not_found"
	return reading
}

// failed returns the outcome of a failed job, by its error. A message about refused content counts
// whatever the code is.
func (a *Adapter) failed(t task) *mediagate.Outcome {
	var f fault
	if t.Response != nil {
		f = t.Response.Error
	}
	v := f.meaning()
	if refusedContent.MatchString(string(f.Message)) {
		v = vendorhttp.Meaning{Kind: mediagate.KindModerated}
	}
	return a.HTTP.Failed(vendorhttp.FailureOf(v), string(f.Message))
}
