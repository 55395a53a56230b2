package midjourney

import (
	"regexp"
	"strings"

	"github.com/mediagate/mediagate/providers/vendorhttp"
)

const (
	// maxText bounds a text of the vendor, in characters.
	maxText = 4000
	// maxDescriptions bounds the descriptions of one picture. The vendor writes four.
	maxDescriptions = 8
)

var (
	// numbered matches the number before a description: "1️⃣", "1." or "1)".
	numbered = regexp.MustCompile(`^\s*[0-9](?:\x{FE0F}?\x{20E3}|[.)])\s*`)
	// linked matches a Markdown link.
	linked = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// descriptions returns the texts of a job that describes a picture. They are numbered in the job's
// prompt, or in the English prompt if the proxy translated it. A prompt without numbers is one
// text.
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
		case mark != "" && !begun: // earlier lines are a heading
			out, begun = []string{words}, true
		case mark != "" || len(out) == 0:
			out = append(out, words)
		default:
			out[len(out)-1] += " " + words
		}
	}
	for i, words := range out {
		out[i] = cleanText(words)
	}
	return out[:min(len(out), maxDescriptions)]
}

// cleanText returns the text without control characters, cut to maxText characters.
func cleanText(text string) string {
	text = vendorhttp.Text(text).Prose()
	if runes := []rune(text); len(runes) > maxText {
		return string(runes[:maxText])
	}
	return text
}
