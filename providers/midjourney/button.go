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

// The words of the buttons that every dialect has.
const (
	rerollEmoji = "🔄"

	upsample  = "upsample"
	variation = "variation"
	reroll    = "reroll"
)

// button is one as the vendor shows it.
type button struct {
	CustomID vendorhttp.Text `json:"customId"`
	Label    vendorhttp.Text `json:"label"`
	Emoji    vendorhttp.Text `json:"emoji"`
}

// foreign are the beginnings of buttons that make no pictures: a film, several
// jobs at once, or nothing but a mark on the parent, whose own id is then the
// answer.
var foreign = []string{
	"MJ::JOB::animate_", "MJ::JOB::video", "MJ::BOOKMARK", "MJ::Job::PicReader::all",
}

// pressable reports whether a button can be pressed here.
func pressable(customID string) bool {
	return customID != "" && !slices.ContainsFunc(foreign, func(p string) bool { return strings.HasPrefix(customID, p) })
}

// buttons are those that clients see: with a label, and none that could not be
// pressed.
func (t task) buttons() []mediagate.Button {
	var out []mediagate.Button
	for _, b := range t.Buttons {
		if id := b.CustomID.ID(); pressable(id) {
			out = append(out, mediagate.Button{CustomID: id, Label: cmp.Or(b.Label.Prose(), b.Emoji.Prose())})
		}
	}
	return out
}

var classicPattern = regexp.MustCompile(`^MJ::JOB::(upsample|variation|reroll)::([0-9])::`)

// classic reads a button that every dialect has: what it does, and to which of
// the four pictures.
func classic(customID string) (action string, index int, ok bool) {
	m := classicPattern.FindStringSubmatch(customID)
	if m == nil {
		return "", 0, false
	}
	index, _ = strconv.Atoi(m[2]) // a digit
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

// classicButtons are those of four pictures, for the dialect that shows none.
// Nobody reads the end of them.
func classicButtons(id string) []mediagate.Button {
	var out []mediagate.Button
	for _, kind := range []string{upsample, variation} {
		for i := 1; i <= 4; i++ {
			out = append(out, mediagate.Button{
				CustomID: fmt.Sprintf("MJ::JOB::%s::%d::%s", kind, i, id), Label: strings.ToUpper(kind[:1]) + strconv.Itoa(i),
			})
		}
	}
	return append(out, mediagate.Button{CustomID: "MJ::JOB::reroll::0::" + id + "::SOLO", Label: rerollEmoji})
}

// four reports whether the job's picture is a grid: whoever can upscale four
// has them. Without buttons the kind of job says so.
func (t task) four() bool {
	if len(t.Buttons) == 0 {
		return slices.Contains([]string{"IMAGINE", "VARIATION", "REROLL", "BLEND"}, string(t.Action))
	}
	seen := 0
	for i := 1; i <= 4; i++ {
		if slices.ContainsFunc(t.Buttons, func(b button) bool {
			action, index, ok := classic(string(b.CustomID))
			return ok && action == "UPSCALE" && index == i
		}) {
			seen++
		}
	}
	return seen == 4
}
