package operator

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
)

// Customers choose their names. A name must not move an operator's cursor, add rows or reverse the
// text.

// Printable escapes the unprintable characters of a text, as Go does.
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

// PrintableJSON escapes the unprintable characters of a JSON text. The encoder escapes only the
// control characters before DEL.
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
