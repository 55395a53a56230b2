package midjourney

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// The words in the ids of the buttons that both dialects have.
const (
	rerollEmoji = "🔄"

	upsample  = "upsample"
	variation = "variation"
	reroll    = "reroll"
)

// button is a button in an answer of the proxy.
type button struct {
	CustomID vendorhttp.Text `json:"customId"`
	Label    vendorhttp.Text `json:"label"`
	Emoji    vendorhttp.Text `json:"emoji"`
}

// unsupportedPrefixes holds the prefixes of buttons that do not make pictures of one job: they make
// a video or several jobs at once, or only mark the earlier job, whose own id is then the answer.
var unsupportedPrefixes = []string{
	"MJ::JOB::animate_", "MJ::JOB::video", "MJ::BOOKMARK", "MJ::Job::PicReader::all",
}

// isPressable reports whether the adapter can press the button.
func isPressable(customID string) bool {
	return customID != "" &&
		!slices.ContainsFunc(unsupportedPrefixes, func(p string) bool { return strings.HasPrefix(customID, p) })
}

// buttons returns the buttons that clients see: those that can be pressed, each with a label.
func (t task) buttons() []mediagate.Button {
	var out []mediagate.Button
	for _, b := range t.Buttons {
		if id := b.CustomID.ID(); isPressable(id) {
			out = append(out, mediagate.Button{CustomID: id, Label: cmp.Or(b.Label.Prose(), b.Emoji.Prose())})
		}
	}
	return out
}

var classicPattern = regexp.MustCompile(`^MJ::JOB::(upsample|variation|reroll)::([0-9])::`)

// parseClassicButton reads a button that both dialects have. It returns the action and the number
// of the picture, from 1 to 4, or 0 for a reroll, which concerns all four.
func parseClassicButton(customID string) (action string, index int, ok bool) {
	m := classicPattern.FindStringSubmatch(customID)
	if m == nil {
		return "", 0, false
	}
	index, _ = strconv.Atoi(m[2]) // the pattern matches a digit
	switch m[1] {
	case reroll:
		return "REROLL", 0, true
	case upsample:
		action = "UPSCALE"
	default:
		action = "VARIATION"
	}
	return action, index, index >= 1 && index <= 4
}

// classicButtons returns the buttons of a grid, for the dialect that shows none. The ids end like
// those of the proxy, but no code reads their ends.
func classicButtons(id string) []mediagate.Button {
	var out []mediagate.Button
	for _, kind := range []string{upsample, variation} {
		for i := 1; i <= 4; i++ {
			out = append(out, mediagate.Button{
				CustomID: fmt.Sprintf("MJ::JOB::%s::%d::%s", kind, i, id),
				Label:    strings.ToUpper(kind[:1]) + strconv.Itoa(i),
			})
		}
	}
	return append(out, mediagate.Button{CustomID: "MJ::JOB::reroll::0::" + id + "::SOLO", Label: rerollEmoji})
}

// isGrid reports whether the job's picture is a grid of four. A grid has a button to upscale each
// of the four. If the job has no buttons, its action decides.
func (t task) isGrid() bool {
	if len(t.Buttons) == 0 {
		return slices.Contains([]string{"IMAGINE", "VARIATION", "REROLL", "BLEND"}, string(t.Action))
	}
	seen := 0
	for i := 1; i <= 4; i++ {
		if slices.ContainsFunc(t.Buttons, func(b button) bool {
			action, index, ok := parseClassicButton(string(b.CustomID))
			return ok && action == "UPSCALE" && index == i
		}) {
			seen++
		}
	}
	return seen == 4
}
