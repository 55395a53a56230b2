package googleapi

import (
	"net/http"
	"strings"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// Status is a google.rpc.Status: the error of an answer, or of an operation that failed.
type Status struct {
	Code    vendorhttp.Text `json:"code"` // the HTTP status in an answer, the google.rpc code in an operation
	Name    vendorhttp.Text `json:"status"`
	Message vendorhttp.Text `json:"message"`
	Details []struct {
		Reason vendorhttp.Text `json:"reason"`
	} `json:"details"`
}

// names maps the codes of google.rpc to their names.
var names = map[vendorhttp.Text]string{
	"1": "CANCELLED", "2": "UNKNOWN", "3": "INVALID_ARGUMENT", "4": "DEADLINE_EXCEEDED", "5": "NOT_FOUND",
	"6": "ALREADY_EXISTS", "7": "PERMISSION_DENIED", "8": "RESOURCE_EXHAUSTED", "9": "FAILED_PRECONDITION",
	"10": "ABORTED",
	"11": "OUT_OF_RANGE", "12": "UNIMPLEMENTED", "13": "INTERNAL", "14": "UNAVAILABLE", "15": "DATA_LOSS",
	"16": "UNAUTHENTICATED",
}

// CodeName returns the name of the status code, which is the key of the tables.
func (s Status) CodeName() string {
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
	// The vendor gave up in the middle. The job may be under way, or finished and charged.
	"INTERNAL":          {Kind: mediagate.KindAmbiguous},
	"UNKNOWN":           {Kind: mediagate.KindAmbiguous},
	"UNAVAILABLE":       {Kind: mediagate.KindAmbiguous},
	"DEADLINE_EXCEEDED": {Kind: mediagate.KindAmbiguous},
	"CANCELLED":         {Kind: mediagate.KindAmbiguous},
}

// badKey is the reason that distinguishes an invalid API key from a bad argument.
const badKey = "API_KEY_INVALID"

// meaning returns the meaning of the status, by the table and the reasons in its details.
func (s Status) meaning() vendorhttp.Meaning {
	m := meanings[s.CodeName()]
	for _, d := range s.Details {
		if d.Reason == badKey && m.Kind == mediagate.KindInvalid {
			m.Kind = mediagate.KindCredentials
		}
	}
	return m
}

// read returns the status in an answer. own is false if the answer is not the vendor's own.
func read(answer vendorhttp.Answer) (s Status, own bool) {
	var body struct {
		Error Status `json:"error"`
	}
	own = answer.Decode(&body) == nil
	return body.Error, own
}

// readError reads the error of an answer.
func readError(answer vendorhttp.Answer) (Status, vendorhttp.Reading) {
	status, own := read(answer)
	return status, vendorhttp.Reading{
		FromVendor: own, Meaning: status.meaning(), Code: status.CodeName(), Text: string(status.Message),
	}
}

// SubmitError returns the error for an answer to a submission that did not accept the job. Only a
// 4xx proves a refusal.
func SubmitError(client *vendorhttp.Client, answer vendorhttp.Answer, model string) error {
	_, reading := readError(answer)
	return submitError(client, answer, model, reading)
}

// submitError is SubmitError for an answer that has been read. A 404 is KindNoModel only if it
// names the model. Any other 404 may come from a front end, or from a wrong base_url. A text with
// the model and a method, as in "m:generateContent", only repeats the path of the call, so it does not
// prove that the model is missing.
func submitError(client *vendorhttp.Client, answer vendorhttp.Answer, model string, reading vendorhttp.Reading) error {
	notFound := answer.Status == http.StatusNotFound && reading.Meaning.Kind == mediagate.KindNotFound
	if notFound && strings.Contains(reading.Text, model) && !strings.Contains(reading.Text, model+":") {
		reading.Meaning.Kind = mediagate.KindNoModel
	}
	if answer.Status < http.StatusMultipleChoices {
		reading.Meaning = vendorhttp.Meaning{Kind: mediagate.KindAmbiguous}
	}
	return client.ErrorOf(vendorhttp.Submits, answer, reading)
}

// ReadError returns the error for an answer to a call that changes nothing, or nil for HTTP 200.
// Only a code of the vendor proves that something does not exist.
func ReadError(client *vendorhttp.Client, answer vendorhttp.Answer) error {
	if answer.Status == http.StatusOK {
		return nil
	}
	_, reading := readError(answer)
	reading.ForAllCalls = reading.Meaning.Kind == mediagate.KindNotFound
	return client.ErrorOf(vendorhttp.Reads, answer, reading)
}

// IsMissingFile reports whether the answer says that a file is deleted or never belonged to the
// caller. The vendor does not distinguish the two.
func IsMissingFile(answer vendorhttp.Answer) bool {
	status, own := read(answer)
	return own && answer.Status == http.StatusForbidden && strings.Contains(string(status.Message), "may not exist")
}
