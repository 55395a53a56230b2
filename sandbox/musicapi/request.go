package musicapi

import (
	"cmp"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// bounds are those of a model's texts, in characters.
type bounds struct{ prompt, tags int }

var models = map[string]bounds{
	"sonic-v3-5": {3000, 200}, "sonic-v4": {3000, 200}, "sonic-v4-5": {5000, 1000}, "sonic-v4-5-plus": {5000, 1000}, "sonic-v5": {5000, 1000},
	"sonic-v5-5": {5000, 1000},
}

// The bounds of all models.
const (
	titleMax       = 80
	descriptionMax = 400
)

// request is what a well-formed body asks for.
type request struct {
	in    *kernel.Object
	songs func(id string) (seconds float64, ok bool)

	prompt, description, title, tags string
}

func (q *request) read() {
	in := q.in
	in.Only("sample_clip_id", "url", "chop_sample_start_s", "chop_sample_end_s", "custom_mode", "mv", "make_instrumental", "prompt",
		"auto_lyrics", "gpt_description_prompt", "title", "tags", "negative_tags", "vocal_gender", "style_weight", "weirdness_constraint",
		"audio_weight", "webhook_url", "webhook_secret")
	bound, ok := models[in.Text("mv")]
	if !ok {
		in.Fail("mv", "is invalid")
	}
	if !in.Has("custom_mode") {
		in.Fail("custom_mode", "is required")
	}
	q.prompt, q.tags = in.TextMax("prompt", bound.prompt), in.TextMax("tags", bound.tags)
	q.title, q.description = in.TextMax("title", titleMax), in.TextMax("gpt_description_prompt", descriptionMax)
	in.Text("negative_tags")
	for _, name := range []string{"style_weight", "weirdness_constraint", "audio_weight"} {
		in.Share(name)
	}
	if in.Has("vocal_gender") {
		in.Word("vocal_gender", "", "m", "f")
	}
	if in.Has("webhook_url") {
		in.Link("webhook_url")
	}
	in.Flag("make_instrumental")
	switch auto, custom := in.Flag("auto_lyrics"), in.Flag("custom_mode"); {
	case auto && !custom:
		in.Fail("auto_lyrics", "needs custom_mode")
	case custom && q.prompt == "":
		in.Fail("prompt", "is required")
	case !custom && q.description == "":
		in.Fail("gpt_description_prompt", "is required")
	}
	q.readSample()
}

// slack is how much longer a file may play than its song is said to be: it is
// made of whole frames.
const slack = 0.05

// readSample reads the song that is sampled, and which part of it.
func (q *request) readSample() {
	in := q.in
	seconds := 0.0 // unknown
	switch id, link := in.Text("sample_clip_id"), in.Has("url"); {
	case id != "" && link:
		in.Fail("url", "is given beside sample_clip_id")
	case link:
		in.Link("url")
	default:
		var ok bool
		if seconds, ok = q.songs(id); !ok {
			in.Fail("sample_clip_id", "there is no such clip")
		}
	}
	from, _ := in.Number("chop_sample_start_s")
	to, ends := in.Number("chop_sample_end_s")
	switch {
	case from < 0:
		in.Fail("chop_sample_start_s", "must not be negative")
	case ends && to <= from:
		in.Fail("chop_sample_end_s", "must be after the start")
	case seconds > 0 && max(from, to) > seconds+slack:
		in.Fail("chop_sample_end_s", "is beyond the end of the clip")
	}
}

// job is the job that the request makes.
func (q *request) job() *kernel.Job {
	lyrics := q.prompt
	switch {
	case q.in.Flag("make_instrumental"):
		lyrics = "[Instrumental]"
	case !q.in.Flag("custom_mode") || q.in.Flag("auto_lyrics"):
		lyrics = "[Verse]\n" + cmp.Or(q.description, q.prompt)
	}
	return &kernel.Job{
		ID: kernel.UUID(), Model: q.in.Text("mv"), Prompt: kernel.Saying(q.prompt, q.description, q.tags, q.title),
		Media:  kernel.Media{Kind: "audio", Width: 512, Height: 512, Seconds: songSeconds},
		Detail: map[string]string{"lyrics": lyrics, "title": cmp.Or(q.title, "Untitled"), "tags": q.tags},
	}
}
