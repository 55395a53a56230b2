package sunoapi

import (
	"cmp"
	"encoding/json"
	"math"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// nowhere is the address for callbacks of a job that has none: the vendor demands
// one, and its name can belong to nobody (RFC 2606).
const nowhere = "https://callback.invalid/"

// blank stands in a text that the vendor demands and nobody has given.
const blank = " "

// body is a job in the vendor's words.
type body struct {
	TaskID       string      `json:"taskId,omitempty"`
	AudioID      string      `json:"audioId,omitempty"`
	Type         string      `json:"type,omitempty"`
	Model        string      `json:"model,omitempty"`
	CustomMode   *bool       `json:"customMode,omitempty"`
	Instrumental *bool       `json:"instrumental,omitempty"`
	Prompt       string      `json:"prompt,omitempty"`
	FullLyrics   string      `json:"fullLyrics,omitempty"`
	Style        string      `json:"style,omitempty"`
	Tags         string      `json:"tags,omitempty"`
	Title        string      `json:"title,omitempty"`
	NegativeTags string      `json:"negativeTags,omitempty"`
	VocalGender  string      `json:"vocalGender,omitempty"`
	StyleWeight  json.Number `json:"styleWeight,omitempty"`
	Weirdness    json.Number `json:"weirdnessConstraint,omitempty"`
	AudioWeight  json.Number `json:"audioWeight,omitempty"`
	PersonaID    string      `json:"personaId,omitempty"`
	Start        json.Number `json:"infillStartS,omitempty"`
	End          json.Number `json:"infillEndS,omitempty"`
	Callback     string      `json:"callBackUrl"`
}

// wire is a job in the vendor's words: where it is sent, and what is sent.
type wire struct {
	path  string
	body  body
	state string // of the reference
}

// write writes the job. Its errors are of KindInvalid and name the field, or of
// KindNotFound for an operation that is none.
func write(job mediagate.Job) (*wire, error) {
	var w *wire
	var err error
	switch job.Operation {
	case opSong:
		w, err = newSong(job)
	case opReplace:
		w, err = newReplace(job)
	case opStems:
		w, err = newStems(job)
	default:
		err = mediagate.Errorf(mediagate.KindNotFound, "operation %q is unknown here", job.Operation)
	}
	if err != nil {
		return nil, err
	}
	w.body.Callback = cmp.Or(job.CallbackURL, nowhere)
	return w, nil
}

// model is one of the vendor's, with its bounds in characters (read at second
// hand).
type model struct {
	name                 string
	lyrics, style, title int
}

// models are the vendor's by the contract's versions. It has no v5.5.
var models = map[string]model{
	"v4":    {"V4", 3000, 200, 80},
	"v4.5":  {"V4_5", 5000, 1000, 100},
	"v4.5+": {"V4_5PLUS", 5000, 1000, 100},
	"v5":    {"V5", 5000, 1000, 100},
}

// descriptionMax bounds the prompt of a song that is not custom.
const descriptionMax = 500

var songFields = []string{
	"custom", "instrumental", "prompt", "title", "tags", "negative_tags", "gpt_description", "auto_lyrics", "vocal_gender",
	"style_weight", "weirdness_constraint", "audio_weight", "version",
}

// newSong makes a song. A custom one needs style and title, and lyrics to be
// sung.
func newSong(job mediagate.Job) (*wire, error) {
	var p struct {
		Custom         bool        `json:"custom"`
		Instrumental   bool        `json:"instrumental"`
		Prompt         string      `json:"prompt"`
		Title          string      `json:"title"`
		Tags           string      `json:"tags"`
		NegativeTags   string      `json:"negative_tags"`
		GPTDescription string      `json:"gpt_description"`
		AutoLyrics     bool        `json:"auto_lyrics"`
		VocalGender    string      `json:"vocal_gender"`
		StyleWeight    json.Number `json:"style_weight"`
		Weirdness      json.Number `json:"weirdness_constraint"`
		AudioWeight    json.Number `json:"audio_weight"`
		Version        string      `json:"version"`
	}
	if err := vendorhttp.DecodeParams(job.Params, &p, songFields...); err != nil {
		return nil, err
	}
	m, ok := models[p.Version]
	if !ok {
		return nil, mediagate.Invalid("version", "version must be one of v4, v4.5, v4.5+ and v5 here")
	}
	w := &wire{path: songPath, body: body{
		Model: m.name, CustomMode: &p.Custom, Instrumental: &p.Instrumental, VocalGender: p.VocalGender,
	}}
	if voice := job.Source; voice != nil {
		if !voice.Own || voice.VendorID == "" {
			return nil, mediagate.Invalid("voice_id", "voice_id names a voice of another account with the vendor, which only that one can use")
		}
		w.body.PersonaID = voice.VendorID
	}
	if !p.Custom {
		w.body.Prompt = p.GPTDescription
		return w, vendorhttp.AtMost("gpt_description", p.GPTDescription, descriptionMax)
	}
	if p.AutoLyrics {
		return nil, mediagate.Invalid("auto_lyrics", "auto_lyrics is not supported here")
	}
	b := &w.body
	b.Style, b.Title, b.NegativeTags = cmp.Or(p.Tags, blank), cmp.Or(p.Title, blank), p.NegativeTags
	b.StyleWeight, b.Weirdness, b.AudioWeight = vendorhttp.Hundredth(p.StyleWeight), vendorhttp.Hundredth(p.Weirdness), vendorhttp.Hundredth(p.AudioWeight)
	if b.Prompt = p.Prompt; !p.Instrumental {
		b.Prompt = cmp.Or(p.Prompt, blank)
	}
	return w, cmp.Or(vendorhttp.AtMost("prompt", p.Prompt, m.lyrics), vendorhttp.AtMost("tags", p.Tags, m.style), vendorhttp.AtMost("title", p.Title, m.title))
}

// on lets the job work on a song of the account's.
func (w *wire) on(source *mediagate.Source) error {
	switch {
	case source == nil:
		return mediagate.Invalid("task_id", "task_id is required")
	case !source.Own:
		return mediagate.Invalid("task_id", "task_id names a song of another account with the vendor, which cannot be worked on here")
	case source.VendorID == "" || source.Ref.JobID == "":
		return mediagate.Invalid("task_id", "task_id names a song whose ids are not known any more")
	}
	w.body.TaskID, w.body.AudioID = source.Ref.JobID, source.VendorID
	return nil
}

// newStems separates a song. The reference keeps the id by which clients know
// it.
func newStems(job mediagate.Job) (*wire, error) {
	if err := vendorhttp.DecodeParams(job.Params, &struct{}{}); err != nil {
		return nil, err
	}
	w := &wire{path: stemsPath, body: body{Type: "split_stem"}}
	if err := w.on(job.Source); err != nil {
		return nil, err
	}
	w.state = job.Source.VendorID
	return w, nil
}

// The spans that the vendor replaces: in seconds, and of the song.
const (
	spanMin  = 6.0
	spanMax  = 60.0
	spanPart = 0.5
)

var replaceFields = []string{"start_s", "end_s", "infill_lyrics", "prompt", "title", "tags", "negative_tags"}

// newReplace replaces a section. What the vendor demands and the request lacks
// stays as it is in the song.
func newReplace(job mediagate.Job) (*wire, error) {
	var p struct {
		Start        json.Number `json:"start_s"`
		End          json.Number `json:"end_s"`
		InfillLyrics string      `json:"infill_lyrics"`
		Prompt       string      `json:"prompt"` // the lyrics of the whole song
		Title        string      `json:"title"`
		Tags         string      `json:"tags"`
		NegativeTags string      `json:"negative_tags"`
	}
	if err := vendorhttp.DecodeParams(job.Params, &p, replaceFields...); err != nil {
		return nil, err
	}
	var song mediagate.Clip
	if job.Source != nil && job.Source.Clip != nil {
		song = *job.Source.Clip
	}
	if err := span(vendorhttp.Hundredth(p.Start), vendorhttp.Hundredth(p.End), song.Seconds); err != nil {
		return nil, err
	}
	w := &wire{path: replacePath, body: body{
		Prompt: cmp.Or(p.InfillLyrics, song.Lyrics, blank), FullLyrics: p.Prompt,
		Tags: cmp.Or(p.Tags, song.Tags, blank), Title: cmp.Or(p.Title, song.Title, blank), NegativeTags: p.NegativeTags,
		Start: vendorhttp.Hundredth(p.Start), End: vendorhttp.Hundredth(p.End),
	}}
	return w, w.on(job.Source)
}

// span holds a section to the vendor's bounds; a song of unknown length bounds
// nothing.
func span(from, to json.Number, song float64) error {
	start, errStart := from.Float64()
	end, errEnd := to.Float64()
	length := math.Round((end-start)*100) / 100
	switch {
	case errStart != nil:
		return mediagate.Invalid("start_s", "start_s must be a number")
	case errEnd != nil:
		return mediagate.Invalid("end_s", "end_s must be a number")
	case length < spanMin || length > spanMax:
		return mediagate.Invalid("end_s", "end_s must be %g to %g seconds after start_s here", spanMin, spanMax)
	case song > 0 && length > spanPart*song:
		return mediagate.Invalid("end_s", "end_s must be after start_s by half of the song at most here")
	}
	return nil
}
