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

// said reads the error of an answer.
func (r *reply) said(answer vendorhttp.Answer) vendorhttp.Said {
	own := answer.Decode(r) == nil
	return vendorhttp.Said{
		Own: own, Meaning: r.Error.meaning(),
		Code: string(r.Error.Code), RequestID: string(r.TraceID), Text: string(r.Error.Message),
	}
}

// proven reports whether m is an error that proves something.
func proven(m vendorhttp.Meaning) bool {
	return m != (vendorhttp.Meaning{}) && m.Kind != mediagate.KindAmbiguous
}

// made reads the answer to a submission. An answer with an id may also hold an error that proves
// nothing. Such an error belongs to the job, and a poll reports it.
func (r *reply) made(answer vendorhttp.Answer) vendorhttp.Said {
	said := r.said(answer)
	said.Done = answer.Status < http.StatusMultipleChoices && r.TaskID.ID() != "" && !proven(said.Meaning)
	return said
}

// madeVoice reads the answer to a submission that returns a voice.
func (r *reply) madeVoice(answer vendorhttp.Answer) vendorhttp.Said {
	said := r.said(answer)
	named := r.object().PersonaID.ID() != "" && r.Success != "false"
	said.Done = answer.Status < http.StatusMultipleChoices && named && !proven(said.Meaning)
	return said
}

// uploaded reads the answer to an upload. An upload starts no job, so every refusal is final.
func (r *reply) uploaded(answer vendorhttp.Answer) vendorhttp.Said {
	said := r.said(answer)
	said.Done = answer.Status < http.StatusMultipleChoices && r.object().AudioID.ID() != "" && r.Success != "false"
	if !proven(said.Meaning) {
		said.Meaning = vendorhttp.Meaning{Kind: vendorhttp.RefusalKind(answer.Status)}
	}
	said.Sure = proven(said.Meaning)
	return said
}

// unknown reads an answer that describes no job. Only the code not_found proves that the vendor has
// no such job.
func (r *reply) unknown(answer vendorhttp.Answer) vendorhttp.Said {
	said := r.said(answer)
	said.Sure = r.Error.Code == "not_found"
	return said
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
