package acedata

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// The actions that are played. The vendor has more.
const (
	generate = "generate"
	artist   = "artist_consistency"
	remaster = "remaster"
	allStems = "all_stems"
	stems    = "stems"
	replace  = "replace_section"
)

var actions = map[string][]string{
	suno:     {generate, artist, remaster, allStems, stems, replace},
	producer: {generate, stems, replace},
}

// bounds are those of a model's texts, in characters.
type bounds struct{ lyric, style, title int }

var models = map[string]map[string]bounds{
	suno: {
		"chirp-v3-5": {3000, 200, 80}, "chirp-v4": {3000, 200, 80}, "chirp-v4-5": {5000, 1000, 100},
		"chirp-v4-5-plus": {5000, 1000, 100}, "chirp-v5": {5000, 1000, 100}, "chirp-v5-5": {5000, 1000, 100},
	},
	producer: {
		"FUZZ-2.0 Pro": {}, "FUZZ-2.0": {}, "FUZZ-2.0 Raw": {}, "FUZZ-1.1 Pro": {}, "FUZZ-1.0 Pro": {}, "FUZZ-1.0": {}, "FUZZ-1.1": {}, "FUZZ-0.8": {},
	},
}

var defaults = map[string]string{suno: "chirp-v4", producer: "FUZZ-2.0"}

const promptMax = 500 // of a song that is not custom

var fields = map[string][]string{
	suno: {
		"action", "model", "custom", "instrumental", "prompt", "lyric", "lyric_prompt", "title", "style", "style_negative", "vocal_gender",
		"style_influence", "weirdness", "audio_weight", "audio_id", "persona_id", "continue_at", "replace_section_start",
		"replace_section_end", "callback_url", "async",
	},
	producer: {
		"action", "model", "custom", "instrumental", "prompt", "lyric", "title", "seed", "audio_id", "continue_at", "replace_section_start",
		"replace_section_end", "sound_strength", "lyrics_strength", "weirdness", "callback_url", "async",
	},
}

const unknownSong = "The song id does not exist or has been taken offline."

// request is what a well-formed body asks for.
type request struct {
	in     *kernel.Object
	api    string
	songs  func(id string) (song, bool)
	voices func(id string) bool

	action, model                      string
	prompt, lyric, about, title, style string
	seed                               string
	source                             song
}

func (q *request) read() {
	in := q.in
	in.Only(fields[q.api]...)
	q.action = in.Word("action", generate, actions[q.api]...)
	q.model = cmp.Or(in.Text("model"), defaults[q.api])
	bound, ok := models[q.api][q.model]
	if !ok {
		in.Fail("model", "is invalid")
	}
	q.readTexts(bound)
	q.readNumbers()
	if !in.Flag("async") {
		in.Fail("async", "a call that blocks is not played here")
	}
	if in.Has("callback_url") {
		in.Link("callback_url")
	}
	if in.Has("persona_id") && !q.voices(in.Text("persona_id")) {
		in.Fail("persona_id", "does not exist")
	}
	if q.action != generate {
		if q.source, ok = q.songs(in.Text("audio_id")); !ok {
			in.Fail("audio_id", unknownSong)
		}
	}
	switch q.action {
	case generate, artist:
		q.readSong()
	case replace:
		q.readSpan()
	}
}

func (q *request) readTexts(bound bounds) {
	text := func(name string, limit int) string {
		if limit == 0 {
			return q.in.Text(name)
		}
		return q.in.TextMax(name, limit)
	}
	q.prompt, q.about, q.seed = q.in.Text("prompt"), q.in.Text("lyric_prompt"), q.in.Text("seed")
	q.lyric, q.style, q.title = text("lyric", bound.lyric), text("style", bound.style), text("title", bound.title)
	q.in.Text("style_negative")
	if q.in.Has("vocal_gender") {
		q.in.Word("vocal_gender", "", "m", "f")
	}
	if q.in.Has("seed") && (q.seed == "" || strings.Trim(q.seed, "0123456789") != "") {
		q.in.Fail("seed", "must be digits")
	}
}

func (q *request) readNumbers() {
	for _, name := range []string{"style_influence", "weirdness", "audio_weight", "sound_strength", "lyrics_strength"} {
		q.in.Share(name)
	}
}

// readSong reads a new song: a custom one is of its lyrics.
func (q *request) readSong() {
	custom, instrumental := q.in.Flag("custom"), q.in.Flag("instrumental")
	switch {
	case q.action == artist && q.in.Text("persona_id") == "":
		q.in.Fail("persona_id", "is required")
	case custom && !instrumental && q.lyric == "" && q.about == "":
		q.in.Fail("lyric", "is required when generate custom audio")
	case !custom && q.prompt == "":
		q.in.Fail("prompt", "is required when generate audio")
	case !custom && q.api == suno:
		q.in.TextMax("prompt", promptMax)
	}
}

func (q *request) readSpan() {
	from, okFrom := q.in.Number("replace_section_start")
	to, okTo := q.in.Number("replace_section_end")
	switch {
	case !okFrom:
		q.in.Fail("replace_section_start", "is required")
	case !okTo:
		q.in.Fail("replace_section_end", "is required")
	case from < 0 || to <= from:
		q.in.Fail("replace_section_end", "must be after the start")
	case q.source.seconds > 0 && to > q.source.seconds+1:
		q.in.Fail("replace_section_end", "is beyond the end of the song")
	}
}

// job is the job that the request makes.
func (q *request) job() *kernel.Job {
	title := cmp.Or(q.title, q.source.title, "Untitled")
	clips, seconds := 1, float64(songSeconds)
	switch q.action {
	case generate, artist:
		if q.api == suno {
			clips = 2
		}
	case remaster:
		title += " (Remastered)"
	}
	if q.source.seconds > 0 {
		seconds = q.source.seconds
	}
	lyric := cmp.Or(q.lyric, q.source.lyric)
	if lyric == "" && q.about != "" {
		lyric = "[Verse]\n" + q.about
	}
	return &kernel.Job{
		Model: q.model, Prompt: kernel.Saying(q.prompt, q.lyric, q.about, q.style, q.title), Media: kernel.Media{Kind: "audio", Width: 512, Height: 512, Seconds: int(seconds)},
		Detail: map[string]string{
			"action": q.action, "title": title, "lyric": lyric, "style": cmp.Or(q.style, q.source.style), "prompt": q.prompt,
			"clips": strconv.Itoa(clips), "seed": cmp.Or(q.seed, "2450882164"),
		},
	}
}

// marks are those of lyrics, in even steps.
func marks(lyric string, seconds int) [][2]float64 {
	lines := strings.Split(lyric, "\n")
	out := make([][2]float64, len(lines))
	for i := range lines {
		step := float64(seconds) / float64(len(lines))
		out[i] = [2]float64{float64(i) * step, float64(i+1) * step}
	}
	return out
}

// shown is the length of a song as each API writes it.
func shown(api string, seconds float64) any {
	if api == producer {
		return fmt.Sprintf("%.10f", seconds)
	}
	return seconds
}
