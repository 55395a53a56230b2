package activities

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
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
	for _, words := range textsOf(request, nil) {
		if len(words) < leastWords {
			continue
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
				break
			}
			kept.WriteString(omitted)
			text = after[repeated(after, words[len(start):]):]
		}
		text = kept.String()
	}
	return text
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

// textsOf are the texts in a JSON value.
func textsOf(value any, texts []string) []string {
	switch v := value.(type) {
	case string:
		return append(texts, v)
	case []any:
		for _, item := range v {
			texts = textsOf(item, texts)
		}
	case map[string]any:
		for _, item := range v {
			texts = textsOf(item, texts)
		}
	}
	return texts
}
