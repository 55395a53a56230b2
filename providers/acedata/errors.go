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
	"forbidden": {Kind: mediagate.KindForbidden}, // unless its words say more

	"no_api":              {Kind: mediagate.KindNotFound},
	"api_not_implemented": {Kind: mediagate.KindNotFound},
	"not_found":           {Kind: mediagate.KindNotFound}, // of a task: not documented

	"too_many_requests": {Kind: mediagate.KindThrottled, Retry: time.Second},
	"busy":              {Kind: mediagate.KindThrottled, Retry: time.Second},

	// These prove nothing.
	"api_error": {Kind: mediagate.KindAmbiguous},
	"timeout":   {Kind: mediagate.KindAmbiguous},
}

// The words of refusals, which share their codes with others.
var (
	refusedContent = regexp.MustCompile(`(?i)moderat|inappropriate|copyright|artist name|producer tag|matches existing work|sensitive|prohibited|violat|nsfw`)
	malformed      = regexp.MustCompile(`(?i)malformed`)
	outOfFunds     = regexp.MustCompile(`(?i)balance|insufficient|credits`)
)

// meaning is what an error says. known is false for a code that the table lacks.
func (f fault) meaning() (v vendorhttp.Meaning, known bool) {
	v, known = meanings[string(f.Code)]
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
	return v, known
}

// submitError judges the answer to a submission; nil means that it names a job.
func (a *Adapter) submitError(answer vendorhttp.Answer, r reply, own bool) error {
	return a.answered(answer, r, own, r.TaskID.ID() != "")
}

// answered judges the answer to a submission, where made says that it names
// what it is to name. An error beside it that proves nothing is the job's, and a
// poll tells it.
func (a *Adapter) answered(answer vendorhttp.Answer, r reply, own, made bool) error {
	v := vendorhttp.Meaning{Kind: mediagate.KindAmbiguous}
	known, ok := r.Error.meaning()
	switch {
	case !own:
		v.Kind = vendorhttp.RefusalKind(answer.Status)
	case answer.Status >= http.StatusInternalServerError:
	case answer.Status < http.StatusMultipleChoices && made && (!ok || known.Kind == mediagate.KindAmbiguous):
		return nil
	case ok:
		v = known
	case answer.Status >= http.StatusBadRequest:
		v.Kind = vendorhttp.RefusalKind(answer.Status)
	}
	return a.refuse(v, answer, r)
}

// uploadError judges the answer to an upload; nil means that it names the file.
// It names the field where the file is at fault.
func (a *Adapter) uploadError(answer vendorhttp.Answer, r reply, own, made bool, field string) error {
	v := vendorhttp.Meaning{Kind: mediagate.KindTransient}
	known, ok := r.Error.meaning()
	switch {
	case !own, answer.Status >= http.StatusInternalServerError:
	case answer.Status < http.StatusMultipleChoices && made && r.Success != "false":
		return nil
	case ok && known.Kind != mediagate.KindAmbiguous:
		v = known
	case answer.Status >= http.StatusBadRequest && answer.Status != http.StatusConflict && answer.Status != http.StatusRequestTimeout:
		v.Kind = vendorhttp.RefusalKind(answer.Status)
	}
	if v.Kind == mediagate.KindAmbiguous {
		v.Kind = mediagate.KindTransient // nothing is made by it
	}
	err := a.refuse(v, answer, r)
	if v.Kind == mediagate.KindInvalid {
		err.Param = field
	}
	return err
}

// readError judges the answer to a question that tells of no job.
func (a *Adapter) readError(answer vendorhttp.Answer, r reply, own bool) error {
	v := vendorhttp.Meaning{Kind: mediagate.KindTransient}
	known, ok := r.Error.meaning()
	switch {
	case !own, answer.Status >= http.StatusInternalServerError, !ok:
	case known.Kind == mediagate.KindCredentials, known.Kind == mediagate.KindFunds, known.Kind == mediagate.KindThrottled,
		r.Error.Code == "not_found":
		v = known
	}
	return a.refuse(v, answer, r)
}

func (a *Adapter) refuse(v vendorhttp.Meaning, answer vendorhttp.Answer, r reply) *mediagate.Error {
	return a.HTTP.Refuse(v, answer, string(r.Error.Code), string(r.TraceID), string(r.Error.Message))
}

// failed is the outcome of a failed job, by its error. The words of a content
// check count whatever the code.
func (a *Adapter) failed(t task) *mediagate.Outcome {
	var f fault
	if t.Response != nil {
		f = t.Response.Error
	}
	v, _ := f.meaning()
	if refusedContent.MatchString(string(f.Message)) {
		v = vendorhttp.Meaning{Kind: mediagate.KindModerated}
	}
	return a.HTTP.Failed(vendorhttp.FailureOf(v), string(f.Message))
}
