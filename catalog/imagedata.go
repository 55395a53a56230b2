package catalog

import (
	"encoding/base64"
	"errors"
	"io"
	"strings"

	"github.com/mediagate/mediagate"
)

// MaxImageData is the largest picture that may come within a request, in bytes.
const MaxImageData = 20 << 20

// isData reports whether the text of a media field is the file itself.
func isData(text string) bool {
	const scheme = "data:"
	return len(text) >= len(scheme) && strings.EqualFold(text[:len(scheme)], scheme)
}

// ImageData reads the picture out of a data URI that Accept let through.
func ImageData(uri string) io.Reader {
	_, data, _ := strings.Cut(uri, ",")
	return base64.NewDecoder(base64.StdEncoding, strings.NewReader(data))
}

// checkImageData judges the form of a data URI: an image in base64, not too
// large. What it holds is judged by whoever stores it.
func checkImageData(uri string) error {
	head, data, ok := strings.Cut(uri, ",")
	kind, base64Too := strings.CutSuffix(strings.ToLower(head), ";base64")
	if _, isImage := strings.CutPrefix(kind, "data:image/"); !ok || !base64Too || !isImage || data == "" {
		return mediagate.Invalid("", "must be an http or https URL, or a data URI of an image in base64, as data:image/png;base64,…")
	}
	if base64.StdEncoding.DecodedLen(len(data)) > MaxImageData+2 { // with the padding
		return errTooMuchData
	}
	n, err := io.Copy(io.Discard, ImageData(uri))
	switch {
	case err != nil:
		return mediagate.Invalid("", "is not valid base64")
	case n > MaxImageData:
		return errTooMuchData
	}
	return nil
}

var errTooMuchData = mediagate.Invalid("", "must be an image of at most %d bytes", MaxImageData)

// formatWords is what the check of a format says of the value that it refuses,
// in words that follow the field's name.
func formatWords(format string, err error) string {
	var e *mediagate.Error
	known := errors.As(err, &e) && e.Message != ""
	switch {
	case known && format == formatMediaURL:
		return "is refused: " + e.Message
	case known:
		return e.Message
	default:
		return "must be an absolute http or https URL"
	}
}
