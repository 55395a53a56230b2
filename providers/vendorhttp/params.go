package vendorhttp

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mediagate/mediagate"
)

// DecodeParams reads a job's request into v. fields are the names that the adapter's description
// lists for the operation; without any, all fields of v are permitted. If the request has another
// field, the error names it: otherwise the client would believe that the field has an effect. Errors
// are of KindInvalid.
func DecodeParams(params json.RawMessage, v any, fields ...string) error {
	if len(fields) > 0 {
		var given map[string]json.RawMessage
		if json.Unmarshal(params, &given) == nil { // the decoder below reports an error
			for _, name := range slices.Sorted(maps.Keys(given)) {
				if !slices.Contains(fields, name) {
					return unknownField(name)
				}
			}
		}
	}
	d := json.NewDecoder(bytes.NewReader(params))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil {
		if _, more := d.Token(); errors.Is(more, io.EOF) {
			return nil
		}
		err = errors.New("there is more than one document")
	}
	if field, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return unknownField(strings.Trim(field, `"`))
	}
	// The decoder's text may name a field. It goes to the logs only.
	return &mediagate.Error{
		Kind: mediagate.KindInvalid, Code: string(mediagate.CodeInvalidParameters),
		Message: "the stored request cannot be read", Err: err,
	}
}

// CheckLength returns an error if a text of the request has more than limit characters.
func CheckLength(field, text string, limit int) error {
	if utf8.RuneCountInString(text) > limit {
		return mediagate.Invalid(field, "%s must be a string of at most %d characters here", field, limit)
	}
	return nil
}

// RoundToHundredth rounds a number to two decimals.
func RoundToHundredth(n json.Number) json.Number {
	v, err := n.Float64()
	if err != nil {
		return n
	}
	return json.Number(strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64))
}

func unknownField(field string) error {
	return mediagate.Invalid(field, "%s is not supported here", field)
}
