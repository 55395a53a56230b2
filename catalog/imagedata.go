package catalog

import (
	"encoding/base64"
	"errors"
	"io"
	"strings"

	"github.com/mediagate/mediagate"
)

// MaxImageData bounds a picture in the body of a request, in bytes.
const MaxImageData = 20 << 20

// isData reports whether the text of a media field is a data URI.
func isData(text string) bool {
	const scheme = "data:"
	return len(text) >= len(scheme) && strings.EqualFold(text[:len(scheme)], scheme)
}

// ImageData reads the picture in a data URI that Accept has validated.
func ImageData(uri string) io.Reader {
	_, data, _ := strings.Cut(uri, ",")
	data = strings.TrimRight(data, base64Blanks)
	for range 2 { // the padding
		data = strings.TrimRight(strings.TrimSuffix(data, "="), base64Blanks)
	}
	return base64.NewDecoder(base64.RawStdEncoding, &plainBase64{data})
}

// base64Blanks may occur anywhere in base64.
const base64Blanks = " \t\r\n\f"

// plainBase64 yields base64 without blanks, in the standard alphabet.
type plainBase64 struct{ left string }

// Read implements io.Reader.
func (b *plainBase64) Read(p []byte) (int, error) {
	n, taken := 0, 0
	for taken < len(b.left) && n < len(p) {
		c := b.left[taken]
		taken++
		switch {
		case strings.IndexByte(base64Blanks, c) >= 0:
			continue
		case c == '-':
			c = '+'
		case c == '_':
			c = '/'
		}
		p[n] = c
		n++
	}
	b.left = b.left[taken:]
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// checkImageData checks the form of a data URI: base64 in any usual variant, and not too large.
// It ignores the media type: the picture is checked when it is stored.
func checkImageData(uri string) error {
	head, data, ok := strings.Cut(uri, ",")
	if at := strings.LastIndexByte(head, ';'); !ok || at < 0 ||
		!strings.EqualFold(strings.TrimSpace(head[at+1:]), "base64") || data == "" {
		return mediagate.Invalid(
			"", "must be an http or https URL, or a data URI of an image in base64, such as data:image/png;base64,…",
		)
	}
	switch n, err := io.Copy(io.Discard, io.LimitReader(ImageData(uri), MaxImageData+1)); {
	case err != nil:
		return mediagate.Invalid("", "is not valid base64")
	case n > MaxImageData:
		return mediagate.Invalid("", "must be an image of at most %d bytes", MaxImageData)
	}
	return nil
}

// formatWords returns the problem of a value with a wrong format, in words that follow the
// field's name.
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
