package sunoapi

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// bounds are those of a model's texts, in characters.
type bounds struct{ lyrics, style, title int }

var models = map[string]bounds{
	"V4": {3000, 200, 80}, "V4_5": {5000, 1000, 100}, "V4_5PLUS": {5000, 1000, 100}, "V4_5ALL": {5000, 1000, 100}, "V5": {5000, 1000, 100},
}

const descriptionMax = 500

// The spans that can be replaced: in seconds, and of the song.
const (
	spanMin  = 6.0
	spanMax  = 60.0
	spanPart = 0.5
)

// request is what a well-formed body asks for.
type request struct {
	in   *kernel.Object
	code int // of the first broken rule
	find func(task, id string) (*kernel.Job, int)

	model, prompt, lyrics, title, tags string

	count, seconds int
	source         string
}

// required reads a text that must be there; a blank is there.
func (q *request) required(name string) string {
	if q.in.Text(name) == "" {
		q.in.Fail(name, "is required")
	}
	return q.in.Text(name)
}

// atMost bounds a text.
func (q *request) atMost(name string, limit int) {
	if utf8.RuneCountInString(q.in.Text(name)) > limit && q.in.Err() == nil {
		q.code = tooLong
		q.in.Fail(name, "is too long")
	}
}

// number reads a number of at most two decimals.
func (q *request) number(name string) (v float64, ok bool) {
	v, ok = q.in.Number(name)
	n, _ := q.in.Value(name).(json.Number)
	if _, decimals, _ := strings.Cut(n.String(), "."); len(decimals) > 2 {
		q.in.Fail(name, "must be a number of at most two decimals")
		return 0, false
	}
	return v, ok
}

func (q *request) readSong() {
	in := q.in
	in.Only("prompt", "customMode", "instrumental", "model", "style", "title", "negativeTags", "vocalGender", "styleWeight",
		"weirdnessConstraint", "audioWeight", "personaId", "callBackUrl")
	q.model = q.required("model")
	bound, ok := models[q.model]
	if !ok {
		in.Fail("model", "is not one of ours")
	}
	for _, name := range []string{"customMode", "instrumental"} {
		if !in.Has(name) {
			in.Fail(name, "is required")
		}
	}
	for _, name := range []string{"styleWeight", "weirdnessConstraint", "audioWeight"} {
		q.number(name)
		in.Share(name)
	}
	if in.Has("vocalGender") {
		in.Word("vocalGender", "", "m", "f")
	}
	if in.Has("personaId") {
		in.Fail("personaId", "does not exist") // personas are not played
	}
	in.Text("negativeTags")
	q.prompt, q.count, q.seconds = in.Text("prompt"), 2, songSeconds
	if !in.Flag("customMode") {
		q.required("prompt")
		q.atMost("prompt", descriptionMax)
		q.lyrics, q.title = "[Verse]\n"+q.prompt, "Untitled"
		return
	}
	q.tags, q.title, q.lyrics = q.required("style"), q.required("title"), q.prompt
	if !in.Flag("instrumental") {
		q.required("prompt")
	}
	q.atMost("prompt", bound.lyrics)
	q.atMost("style", bound.style)
	q.atMost("title", bound.title)
}

// readSource finds the song that is worked on.
func (q *request) readSource() {
	j, i := q.find(q.required("taskId"), q.required("audioId"))
	if j == nil {
		q.in.Fail("audioId", "there is no such song of that task")
		return
	}
	q.source, q.seconds = q.in.Text("audioId"), int(length(j, i))
	q.model, q.lyrics, q.title = j.Model, j.Detail["lyrics"], j.Detail["title"]
}

func (q *request) readSection() {
	in := q.in
	in.Only("taskId", "audioId", "prompt", "tags", "title", "negativeTags", "infillStartS", "infillEndS", "fullLyrics", "callBackUrl")
	q.readSource()
	q.prompt, q.tags, q.title = q.required("prompt"), q.required("tags"), q.required("title")
	in.Text("negativeTags")
	if in.Text("fullLyrics") != "" {
		q.lyrics = in.Text("fullLyrics")
	}
	q.count = 1
	from, okFrom := q.number("infillStartS")
	to, okTo := q.number("infillEndS")
	switch span := to - from; {
	case !okFrom:
		in.Fail("infillStartS", "is required")
	case !okTo:
		in.Fail("infillEndS", "is required")
	case from < 0 || span <= 0 || to > float64(q.seconds):
		in.Fail("infillEndS", "must be after the start, within the song")
	case span < spanMin-0.001 || span > spanMax+0.001:
		in.Fail("infillEndS", "must be %g to %g seconds after the start", spanMin, spanMax)
	case span > spanPart*float64(q.seconds)+0.001:
		in.Fail("infillEndS", "the section must be half of the song at most")
	}
}

func (q *request) readSeparation() {
	q.in.Only("taskId", "audioId", "type", "callBackUrl")
	q.readSource()
	if q.required("type") != "split_stem" {
		q.in.Fail("type", "only split_stem is played here")
	}
}

// job is the job that the request makes.
func (q *request) job() *kernel.Job {
	return &kernel.Job{
		Model: q.model, Prompt: kernel.Saying(q.prompt, q.tags, q.title), Media: kernel.Media{Kind: "audio", Width: 512, Height: 512, Seconds: q.seconds},
		Detail: map[string]string{
			"songs": strconv.Itoa(q.count), "lyrics": q.lyrics, "title": q.title, "tags": q.tags, "source": q.source,
		},
	}
}
