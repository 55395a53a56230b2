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

// DecodeParams reads a job's request into the fields that an adapter knows: of
// those of v the given ones, as its description lists them for the operation,
// or all. Any other field is refused by its name: whoever sent it would believe
// that it was heeded. Errors are of KindInvalid.
func DecodeParams(params json.RawMessage, v any, fields ...string) error {
	if len(fields) > 0 {
		var given map[string]json.RawMessage
		if json.Unmarshal(params, &given) == nil { // else the decoder says what is wrong
			for _, name := range slices.Sorted(maps.Keys(given)) {
				if !slices.Contains(fields, name) {
					return unknown(name)
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
		return unknown(strings.Trim(field, `"`))
	}
	// The decoder's text names a field at most; it is for the logs anyway.
	return &mediagate.Error{
		Kind: mediagate.KindInvalid, Code: string(mediagate.CodeInvalidParameters),
		Message: "the stored request cannot be read", Err: err,
	}
}

// AtMost bounds a text of the request in characters.
func AtMost(field, text string, limit int) error {
	if utf8.RuneCountInString(text) > limit {
		return mediagate.Invalid(field, "%s must be a string of at most %d characters here", field, limit)
	}
	return nil
}

// Hundredth writes a number to two decimals.
func Hundredth(n json.Number) json.Number {
	v, err := n.Float64()
	if err != nil {
		return n
	}
	return json.Number(strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64))
}

func unknown(field string) error {
	return mediagate.Invalid(field, "%s is not supported here", field)
}
