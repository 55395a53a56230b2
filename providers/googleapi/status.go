package googleapi

import (
	"net/http"
	"strings"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// Status is a google.rpc.Status, of an answer or of an operation that failed.
type Status struct {
	Code    vendorhttp.Text `json:"code"` // of an answer its HTTP status, of an operation the code of google.rpc
	Name    vendorhttp.Text `json:"status"`
	Message vendorhttp.Text `json:"message"`
	Details []struct {
		Reason vendorhttp.Text `json:"reason"`
	} `json:"details"`
}

// names are the codes of google.rpc.
var names = map[vendorhttp.Text]string{
	"1": "CANCELLED", "2": "UNKNOWN", "3": "INVALID_ARGUMENT", "4": "DEADLINE_EXCEEDED", "5": "NOT_FOUND",
	"6": "ALREADY_EXISTS", "7": "PERMISSION_DENIED", "8": "RESOURCE_EXHAUSTED", "9": "FAILED_PRECONDITION", "10": "ABORTED",
	"11": "OUT_OF_RANGE", "12": "UNIMPLEMENTED", "13": "INTERNAL", "14": "UNAVAILABLE", "15": "DATA_LOSS", "16": "UNAUTHENTICATED",
}

// Word is the name of its code, by which the tables go.
func (s Status) Word() string {
	if s.Name != "" {
		return string(s.Name)
	}
	return names[s.Code]
}

// meanings is the vendor's error table.
var meanings = map[string]vendorhttp.Meaning{
	"INVALID_ARGUMENT":    {Kind: mediagate.KindInvalid},
	"FAILED_PRECONDITION": {Kind: mediagate.KindFunds}, // billing is not enabled, or not in this region
	"UNAUTHENTICATED":     {Kind: mediagate.KindCredentials},
	"PERMISSION_DENIED":   {Kind: mediagate.KindCredentials},
	"NOT_FOUND":           {Kind: mediagate.KindNotFound}, // the model, or the operation
	"RESOURCE_EXHAUSTED":  {Kind: mediagate.KindThrottled, Retry: time.Second},
	// The vendor gave up in the middle: what was asked for may be under way, or
	// made and charged.
	"INTERNAL":          {Kind: mediagate.KindAmbiguous},
	"UNKNOWN":           {Kind: mediagate.KindAmbiguous},
	"UNAVAILABLE":       {Kind: mediagate.KindAmbiguous},
	"DEADLINE_EXCEEDED": {Kind: mediagate.KindAmbiguous},
	"CANCELLED":         {Kind: mediagate.KindAmbiguous},
}

// badKey is the reason by which a key that is none differs from a bad argument.
const badKey = "API_KEY_INVALID"

// meaning is what the answer's status says by the table.
func (s Status) meaning() vendorhttp.Meaning {
	m := meanings[s.Word()]
	for _, d := range s.Details {
		if d.Reason == badKey && m.Kind == mediagate.KindInvalid {
			m.Kind = mediagate.KindCredentials
		}
	}
	return m
}

// read finds the status of an answer; own is false for one that is not the
// vendor's.
func read(answer vendorhttp.Answer) (s Status, own bool) {
	var body struct {
		Error Status `json:"error"`
	}
	own = answer.Decode(&body) == nil
	return body.Error, own
}

// said is what an answer says of errors.
func said(answer vendorhttp.Answer) (Status, vendorhttp.Said) {
	status, own := read(answer)
	return status, vendorhttp.Said{Own: own, Meaning: status.meaning(), Code: status.Word(), Text: string(status.Message)}
}

// SubmitError is the error of an answer to a submission to the model that is no
// acceptance. Only a 4xx refuses.
func SubmitError(client *vendorhttp.Client, answer vendorhttp.Answer, model string) error {
	_, says := said(answer)
	return submitError(client, answer, model, says)
}

// submitError is SubmitError for an answer that was read. A 404 that does not name the model
// may come from a front end, or of a wrong base_url. So may one that repeats the path of the call, in
// which the method follows the model.
func submitError(client *vendorhttp.Client, answer vendorhttp.Answer, model string, says vendorhttp.Said) error {
	notFound := answer.Status == http.StatusNotFound && says.Meaning.Kind == mediagate.KindNotFound
	if notFound && strings.Contains(says.Text, model) && !strings.Contains(says.Text, model+":") {
		says.Meaning.Kind = mediagate.KindNoModel
	}
	if answer.Status < http.StatusMultipleChoices {
		says.Meaning = vendorhttp.Meaning{Kind: mediagate.KindAmbiguous}
	}
	return client.ErrorOf(vendorhttp.Submits, answer, says)
}

// ReadError is the error of an answer to a call that changes nothing; nil means
// HTTP 200. Only the vendor's own word proves anything.
func ReadError(client *vendorhttp.Client, answer vendorhttp.Answer) error {
	if answer.Status == http.StatusOK {
		return nil
	}
	_, says := said(answer)
	says.Sure = says.Meaning.Kind == mediagate.KindNotFound
	return client.ErrorOf(vendorhttp.Reads, answer, says)
}

// MissingFile says that an answer speaks of a file which is deleted, or never
// was the caller's: the vendor does not tell which.
func MissingFile(answer vendorhttp.Answer) bool {
	status, own := read(answer)
	return own && answer.Status == http.StatusForbidden && strings.Contains(string(status.Message), "may not exist")
}
