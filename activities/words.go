package activities

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/mediagate/mediagate/media"
)

const (
	// leastWords is the shortest text of a request, in bytes, that is looked for:
	// shorter ones are words that vendors use themselves.
	leastWords = 16
	omitted    = "…"
)

// withoutRequest is a vendor's text without what it repeats of the request: whole
// texts, and the beginnings of such, since vendors cut what they repeat. It is for
// logs, where words of clients are nobody's business.
func withoutRequest(text string, params json.RawMessage) string {
	var request any
	if json.Unmarshal(params, &request) != nil {
		return text
	}
	_, _ = media.EachText(request, func(words string) (string, error) { // never fails
		text = withoutWords(text, words)
		return words, nil
	})
	return text
}

func withoutWords(text, words string) string {
	if len(words) < leastWords {
		return text
	}
	start := words[:leastWords]
	for !utf8.ValidString(start) { // a cut within a character
		start = start[:len(start)-1]
	}
	var kept strings.Builder
	for {
		before, after, found := strings.Cut(text, start)
		kept.WriteString(before)
		if !found {
			return kept.String()
		}
		kept.WriteString(omitted)
		text = after[repeated(after, words[len(start):]):]
	}
}

// repeated is how many bytes the two begin with alike.
func repeated(a, b string) int {
	n := 0
	for i, r := range b {
		if !strings.HasPrefix(a[i:], string(r)) {
			break
		}
		n = i + utf8.RuneLen(r)
	}
	return n
}
