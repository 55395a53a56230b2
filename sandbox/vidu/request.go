package vidu

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// The vendor's bounds.
const (
	promptMax  = 5000
	payloadMax = 1 << 20

	imagesMax  = 7
	imageSide  = 128
	imageRatio = 4 // 1:4 to 4:1

	secondsMax = 16
)

var imageTypes = []string{"image/png", "image/jpeg", "image/jpg", "image/webp"}

// model is what differs between models.
type model struct {
	endpoints   []string
	seconds     int64 // at least
	resolutions []string
	credits     map[string]int64 // a second, by resolution
}

var models = map[string]model{
	"viduq3-mix":   {references, 1, []string{"720p", "1080p"}, map[string]int64{"720p": 25, "1080p": 30}},
	"viduq3":       {references, 3, []string{"540p", "720p", "1080p"}, map[string]int64{"540p": 10, "720p": 20, "1080p": 25}},
	"viduq3-pro":   {frames, 1, []string{"540p", "720p", "1080p"}, map[string]int64{"540p": 10, "720p": 25, "1080p": 30}},
	"viduq3-turbo": {frames, 1, []string{"540p", "720p", "1080p"}, map[string]int64{"540p": 8, "720p": 12, "1080p": 16}},
}

// The endpoints, and how many images each takes.
const (
	fromReferences = "reference2video"
	fromText       = "text2video"
	fromFrame      = "img2video"
	fromFrames     = "start-end2video"
)

var (
	references = []string{fromReferences}
	frames     = []string{fromText, fromFrame, fromFrames}

	imagesOf = map[string][2]int{fromReferences: {1, imagesMax}, fromText: {0, 0}, fromFrame: {1, 1}, fromFrames: {2, 2}}
)

var shortSides = map[string]int{"540p": 540, "720p": 720, "1080p": 1080}

// request is what a well-formed body asks for.
type request struct {
	in       *kernel.Object
	endpoint string
	name     string // of the first error; empty: of a wrong value
	first    kernel.Picture
	images   []any

	model, prompt, ratio, resolution, payload string

	duration, seed, credits int64

	audio, watermark, bgm, offPeak bool
}

// fail records a broken rule by the name that the vendor has for it.
func (q *request) fail(name, field, format string, args ...any) {
	if q.in.Err() == nil {
		q.name = name
	}
	q.in.Fail(field, format, args...)
}

// broken is the name of the first error.
func (q *request) broken() string { return cmp.Or(q.name, fieldInvalid) }

// fields are those that an endpoint takes: a video that follows a frame has no
// ratio of its own.
func fields(endpoint string) []string {
	names := []string{
		"model", "prompt", "duration", "seed", "resolution", "audio", "bgm", "off_peak",
		"watermark", "wm_position", "wm_url", "meta_data", "movement_amplitude", "payload", "callback_url",
	}
	switch endpoint {
	case fromReferences:
		return append(names, "images", "subjects", "aspect_ratio")
	case fromText:
		return append(names, "style", "aspect_ratio")
	default:
		return append(names, "images", "is_rec")
	}
}

// read reads a body. A prompt is optional where there are frames.
func read(in *kernel.Object, endpoint string) *request {
	q := &request{in: in, endpoint: endpoint}
	in.Only(fields(endpoint)...)
	if in.Err() != nil {
		q.name = fieldUnwanted
	}
	needed := []string{"model", "prompt"}
	if endpoint == fromFrame || endpoint == fromFrames {
		needed = needed[:1]
	}
	for _, name := range needed {
		if !in.Has(name) || strings.TrimSpace(in.Text(name)) == "" {
			q.fail(fieldLacking, name, "is required")
		}
	}
	q.model = in.Text("model")
	m, ok := models[q.model]
	if !ok || !slices.Contains(m.endpoints, endpoint) {
		q.fail(modelUnavailable, "model", "is not one of this endpoint")
		return q
	}
	if in.Has("subjects") {
		q.fail(fieldUnwanted, "subjects", "subject mode is not played here")
	}
	q.readImages()
	q.prompt = in.TextMax("prompt", promptMax)
	q.duration = 5
	if in.Has("duration") {
		q.duration = in.Integer("duration", m.seconds, secondsMax)
	}
	if in.Has("seed") {
		q.seed = in.Integer("seed", 0, math.MaxUint32)
	}
	q.ratio = q.readRatio()
	q.resolution = in.Word("resolution", "720p", m.resolutions...)
	q.credits = q.duration * m.credits[q.resolution]
	q.audio = !in.Has("audio") || in.Flag("audio")
	q.watermark, q.bgm, q.offPeak = in.Flag("watermark"), in.Flag("bgm"), in.Flag("off_peak")
	q.readRest()
	return q
}

// readRatio reads the ratio; auto is that of the first image.
func (q *request) readRatio() string {
	words := []string{"16:9", "9:16", "4:3", "3:4", "1:1"}
	switch q.endpoint {
	case fromText:
		return q.in.Word("aspect_ratio", "16:9", words...)
	case fromReferences:
		return q.in.Word("aspect_ratio", "16:9", append(words, "auto")...)
	default:
		return "auto"
	}
}

// readImages reads the images. What a URL leads to is not looked at; so
// the 50 MB that an image may have are never seen, as a body holds 20.
func (q *request) readImages() {
	count := imagesOf[q.endpoint]
	if count[1] == 0 {
		return
	}
	if !q.in.Has("images") {
		q.fail(fieldLacking, "images", "is required")
		return
	}
	items, ok := q.in.Value("images").([]any)
	if !ok {
		q.fail(fieldInvalid, "images", "must be an array")
		return
	}
	if len(items) < count[0] || len(items) > count[1] {
		q.fail(itemCount, "images", "has %d items, %d to %d are allowed", len(items), count[0], count[1])
		return
	}
	for i, item := range items {
		name := fmt.Sprintf("images[%d]", i)
		text, ok := item.(string)
		switch {
		case !ok:
			q.fail(fieldInvalid, name, "must be a string")
		case !kernel.IsLink(text):
			q.readImage(name, text)
		}
	}
	q.images = items
}

func (q *request) readImage(field, uri string) {
	raw, _, err := kernel.ReadData(uri, imageTypes)
	if err != nil {
		q.fail(imageFormat, field, "%s", err)
		return
	}
	p, ok := kernel.ReadPicture(raw)
	switch {
	case !ok:
		q.fail(imageFormat, field, "must be a PNG, JPEG or WebP picture")
	case min(p.Width, p.Height) < imageSide:
		q.fail(imageSize, field, "must have at least %d pixels a side", imageSide)
	case p.Width > imageRatio*p.Height || p.Height > imageRatio*p.Width:
		q.fail(imageSize, field, "must have a ratio from 1:4 to 4:1")
	case q.first.Width == 0:
		q.first = p
	}
}

// readRest reads what does not change the file here.
func (q *request) readRest() {
	in := q.in
	in.Word("style", "general", "general", "anime")
	in.Flag("is_rec")
	in.Word("movement_amplitude", "auto", "auto", "small", "medium", "large")
	if in.Has("wm_position") {
		in.Integer("wm_position", 1, 4)
	}
	for _, name := range []string{"wm_url", "callback_url"} {
		if in.Has(name) {
			in.Link(name)
		}
	}
	if in.Has("meta_data") && !json.Valid([]byte(in.Text("meta_data"))) {
		in.Fail("meta_data", "must be JSON as a string")
	}
	q.payload = in.Text("payload")
	if utf8.RuneCountInString(q.payload) > payloadMax {
		in.Fail("payload", "has more than %d characters", payloadMax)
	}
}

// job is the job that the request makes.
func (q *request) job() *kernel.Job {
	width, height := kernel.Ratio(q.ratio)
	if q.ratio == "auto" {
		width, height = 16, 9
		if q.first.Width > 0 {
			width, height = q.first.Width, q.first.Height
		}
	}
	w, h := kernel.Pixels(shortSides[q.resolution], width, height)
	return &kernel.Job{
		Model: q.model, Prompt: q.prompt,
		Media: kernel.Media{Kind: "video", Width: w, Height: h, Seconds: int(q.duration), Sound: q.audio, Watermark: true},
		Detail: map[string]string{
			"credits": strconv.FormatInt(q.credits, 10), "payload": q.payload,
			"bgm": strconv.FormatBool(q.bgm), "off_peak": strconv.FormatBool(q.offPeak),
		},
	}
}

// created is the answer to an accepted request.
func (q *request) created(j *kernel.Job) map[string]any {
	return map[string]any{
		"task_id": j.ID, "state": "created", "model": q.model, "prompt": q.prompt, "images": q.images, "duration": q.duration, "seed": q.seed,
		"aspect_ratio": q.ratio, "resolution": q.resolution, "audio": q.audio, "bgm": q.bgm, "watermark": q.watermark,
		"off_peak": q.offPeak, "payload": q.payload, "credits": q.credits, "created_at": j.Created.Format(time.RFC3339Nano),
	}
}

// number is a count as a job keeps it.
func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}
