package midjourney

import (
	"regexp"
	"strings"

	"github.com/mediagate/mediagate/providers/vendorhttp"
)

const (
	// textMost bounds a text that the vendor wrote, in characters.
	textMost = 4000
	// descriptionsMost bounds how many there are: the vendor writes four.
	descriptionsMost = 8
)

var (
	// numbered begins a description: a digit as a keycap, or with a stop.
	numbered = regexp.MustCompile(`^\s*[0-9](?:\x{FE0F}?\x{20E3}|[.)])\s*`)
	// linked is a word with a link behind it.
	linked = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// descriptions are the texts of a job that describes a picture. They stand
// numbered in its prompt, the English one where it was translated. What is
// numbered nowhere is one text.
func descriptions(t task) []string {
	for _, text := range []string{string(t.PromptEn), string(t.Prompt), string(t.Properties.FinalPrompt)} {
		if out := split(text); len(out) > 0 {
			return out
		}
	}
	return nil
}

func split(text string) []string {
	var out []string
	begun := false
	for line := range strings.Lines(linked.ReplaceAllString(text, "$1")) {
		mark := numbered.FindString(line)
		words := strings.TrimSpace(strings.TrimPrefix(line, mark))
		switch {
		case words == "":
		case mark != "" && !begun: // what stands before is a heading
			out, begun = []string{words}, true
		case mark != "" || len(out) == 0:
			out = append(out, words)
		default:
			out[len(out)-1] += " " + words
		}
	}
	for i, words := range out {
		out[i] = bounded(words)
	}
	return out[:min(len(out), descriptionsMost)]
}

// bounded is a text without control characters, cut to a length that can be
// kept.
func bounded(text string) string {
	text = vendorhttp.Text(text).Prose()
	if runes := []rune(text); len(runes) > textMost {
		return string(runes[:textMost])
	}
	return text
}
