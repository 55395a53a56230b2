package midjourney

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// button is a button that a job shows.
type button struct {
	CustomID string `json:"customId"`
	Emoji    string `json:"emoji"`
	Label    string `json:"label"`
	Type     int    `json:"type"`
	Style    int    `json:"style"`
}

// buttons returns the buttons of a job that has succeeded.
func buttons(j *kernel.Job) []button {
	id, out := j.Detail["uuid"], []button{}
	add := func(customID, label, emoji string) {
		out = append(out, button{CustomID: customID, Emoji: emoji, Label: label, Type: 2, Style: 2})
	}
	switch {
	case j.Detail["action"] == kindDescribe:
		for n := 1; n <= 4; n++ {
			add(fmt.Sprintf("MJ::Job::PicReader::%d", n), "", strconv.Itoa(n)+"\uFE0F\u20E3")
		}
		add("MJ::Picread::Retry", "", "🔄")
		add("MJ::Job::PicReader::all", "Imagine all", "🎉")
	case j.Media.Grid:
		for n := 1; n <= 4; n++ {
			add(fmt.Sprintf("MJ::JOB::upsample::%d::%s", n, id), "U"+strconv.Itoa(n), "")
		}
		add("MJ::JOB::reroll::0::"+id+"::SOLO", "", "🔄")
		for n := 1; n <= 4; n++ {
			add(fmt.Sprintf("MJ::JOB::variation::%d::%s", n, id), "V"+strconv.Itoa(n), "")
		}
	default:
		if j.Detail["action"] == kindUpscale {
			add("MJ::JOB::upsample_v6_2x_subtle::1::"+id+"::SOLO", "Upscale (Subtle)", "upscale_1")
			add("MJ::JOB::upsample_v6_2x_creative::1::"+id+"::SOLO", "Upscale (Creative)", "upscale_1")
		}
		add("MJ::JOB::low_variation::1::"+id+"::SOLO", "Vary (Subtle)", "🪄")
		add("MJ::JOB::high_variation::1::"+id+"::SOLO", "Vary (Strong)", "🪄")
		add("MJ::Inpaint::1::"+id+"::SOLO", "Vary (Region)", "🖌️")
		add("MJ::Outpaint::50::1::"+id+"::SOLO", "Zoom Out 2x", "🔍")
		add("MJ::Outpaint::75::1::"+id+"::SOLO", "Zoom Out 1.5x", "🔍")
		add("MJ::CustomZoom::"+id, "Custom Zoom", "🔍")
		for _, pan := range [][2]string{{"left", "⬅️"}, {"right", "➡️"}, {"up", "⬆️"}, {"down", "⬇️"}} {
			add("MJ::JOB::pan_"+pan[0]+"::1::"+id+"::SOLO", "", pan[1])
		}
		add("MJ::JOB::animate_high::1::"+id+"::SOLO", "Animate (High motion)", "🎞️")
		add("MJ::BOOKMARK::"+id, "", "❤️")
	}
	return out
}

// descriptions is the vendor's description of every picture.
const descriptions = "1️⃣ Colour bars in a [row](https://example.com/row) --ar 1:1\n\n2️⃣ A test card, flat and bright --ar 1:1\n\n" +
	"3️⃣ Stripes of eight colours --ar 1:1\n\n4️⃣ A signal of a station that sleeps --ar 1:1"

// task returns a job as polls and callbacks show it.
func (p *proxy) task(r *http.Request, j *kernel.Job) map[string]any {
	now := p.Now()
	state := j.State(now)
	link := func(file string) string { return kernel.Base(r) + j.LinkUntil(file, now.Add(linkTime)) }
	at := func(t time.Time) int64 { return t.UnixMilli() }
	out := map[string]any{
		"id": j.ID, "action": j.Detail["action"], "status": words[state], "prompt": j.Prompt, "promptEn": j.Prompt,
		"description": strings.TrimSpace("/" + strings.ToLower(j.Detail["action"]) + " " + j.Prompt),
		"state":       j.Detail["state"], "submitTime": at(j.Created), "startTime": nil, "finishTime": nil,
		"progress": "0%", "imageUrl": nil, "failReason": nil,
		"properties": map[string]any{
			"finalPrompt": j.Detail["final"], "messageHash": j.Detail["uuid"], "discordInstanceId": "1180000000000000001",
		},
	}
	if p.dialect == trueai {
		out["buttons"], out["mode"], out["botType"], out["parentId"] =
			[]button{}, j.Detail["mode"], "MID_JOURNEY", j.Detail["parent"]
	}
	switch state {
	case kernel.StateWaiting:
		out["description"] = textWaits
	case kernel.StateRunning:
		out["startTime"], out["progress"] = at(j.StateSince(now)), fmt.Sprintf("%d%%", j.Percent(now))
		if j.Detail["action"] != kindDescribe {
			out["imageUrl"] = link(kernel.FileDraft)
		}
	case kernel.StateSucceeded:
		out["finishTime"], out["progress"], out["imageUrl"] = at(j.StateSince(now)), "100%", link(kernel.FileImage)
		if p.dialect == trueai {
			out["buttons"] = buttons(j)
		}
		if j.Detail["action"] == kindDescribe {
			out["prompt"], out["promptEn"] = descriptions, descriptions
		}
	case kernel.StateFailed:
		out["finishTime"], out["progress"], out["failReason"] =
			at(j.StateSince(now)), "", "[Invalid parameter] the job could not be made"
		if j.Directive.Fail == kernel.FailModeration {
			out["failReason"] = "Banned prompt detected"
		}
	case kernel.StateCancelled:
		out["finishTime"], out["progress"], out["failReason"] = at(j.StateSince(now)), "", textStopped
	default:
	}
	return out
}

// words are the vendor's words for the states. A cancelled job counts as failed.
var words = map[kernel.State]string{
	kernel.StateWaiting:   "MODAL",
	kernel.StateQueued:    "SUBMITTED",
	kernel.StateRunning:   "IN_PROGRESS",
	kernel.StateSucceeded: "SUCCESS",
	kernel.StateFailed:    "FAILURE",
	kernel.StateCancelled: "FAILURE",
}
