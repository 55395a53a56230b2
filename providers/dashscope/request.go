package dashscope

import (
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// request is the envelope of all requests.
type request struct {
	Model      string `json:"model"`
	Input      any    `json:"input"`
	Parameters any    `json:"parameters"`

	path           string
	wantsWatermark bool // the client wants the file with a watermark
}

// Supports returns an error that says why the vendor's API cannot express the request, or nil.
// It writes the request as Submit does. Channels have no options.
func Supports(job mediagate.Job, _ map[string]string) error {
	_, err := write(job)
	return err
}

// write translates the job into a request and makes no call. Its errors are of KindInvalid and name
// the field and the rule, or of KindNotFound for an unknown operation.
func write(job mediagate.Job) (*request, error) {
	writer, ok := writers[job.Operation]
	if !ok {
		return nil, mediagate.Errorf(mediagate.KindNotFound, "operation %q is unknown here", job.Operation)
	}
	return writer(job)
}

// media is one file of an input, and its purpose.
type media struct {
	Type string `json:"type"`
	URL  string `json:"url"`
}

// decode reads a job's request into the fields of its operation.
func decode[T any](job mediagate.Job) (*T, error) {
	p := new(T)
	return p, vendorhttp.DecodeParams(job.Params, p)
}

// invalid returns the error about a field. rule follows the name of the field in the message.
func invalid(field, rule string) error { return mediagate.Invalid(field, "%s %s", field, rule) }

// checkLength returns an error if the text has more characters than the vendor takes.
func checkLength(field, text string, limit int) error {
	if utf8.RuneCountInString(text) > limit {
		return invalid(field, fmt.Sprintf("must be a string of at most %d characters here", limit))
	}
	return nil
}

// parseInteger reads an integer.
func parseInteger(field string, n json.Number) (int64, error) {
	v, err := strconv.ParseInt(n.String(), 10, 64)
	if err != nil {
		return 0, invalid(field, "must be an integer")
	}
	return v, nil
}

// maxSeed is the largest seed that the vendor takes.
const maxSeed = 1<<31 - 1

// parseSeed reads a seed. nil lets the vendor choose one.
func parseSeed(n json.Number) (*int64, error) {
	if n == "" {
		return nil, nil
	}
	v, err := parseInteger("seed", n)
	if err != nil {
		return nil, err
	}
	if v < 0 || v > maxSeed {
		return nil, invalid("seed", fmt.Sprintf("must be an integer between 0 and %d here", maxSeed))
	}
	return &v, nil
}
