package operator

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
)

// Names are their customers': none may move an operator's cursor, write rows of
// its own or turn the text around.

// Printable is a text with what does not print written out, as in Go.
func Printable(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
	}
	return b.String()
}

// PrintableJSON is the same JSON with what does not print escaped. Of control
// characters the encoder has left those from DEL on, which stand in strings.
func PrintableJSON(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r < 0x7f || unicode.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			_, _ = fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			_, _ = fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
