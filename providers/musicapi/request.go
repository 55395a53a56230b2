package musicapi

import (
	"cmp"
	"encoding/json"
	"math"
	"strconv"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// body is a job in the vendor's words.
type body struct {
	SampleClipID     string      `json:"sample_clip_id,omitempty"`
	URL              string      `json:"url,omitempty"`
	Start            json.Number `json:"chop_sample_start_s"`
	End              json.Number `json:"chop_sample_end_s,omitempty"`
	CustomMode       bool        `json:"custom_mode"`
	Model            string      `json:"mv"`
	MakeInstrumental bool        `json:"make_instrumental"`
	Prompt           string      `json:"prompt,omitempty"`
	AutoLyrics       bool        `json:"auto_lyrics,omitempty"`
	Description      string      `json:"gpt_description_prompt,omitempty"`
	Title            string      `json:"title,omitempty"`
	Tags             string      `json:"tags,omitempty"`
	NegativeTags     string      `json:"negative_tags,omitempty"`
	VocalGender      string      `json:"vocal_gender,omitempty"`
	StyleWeight      json.Number `json:"style_weight,omitempty"`
	Weirdness        json.Number `json:"weirdness_constraint,omitempty"`
	AudioWeight      json.Number `json:"audio_weight,omitempty"`
}

// model is one of the vendor's, with its bounds in characters.
type model struct {
	name         string
	lyrics, tags int
}

// models are the vendor's by the contract's versions. Its guide of this operation
// has no v5.5, which clients in use send all the same (M).
var models = map[string]model{
	"v4":    {"sonic-v4", 3000, 200},
	"v4.5":  {"sonic-v4-5", 5000, 1000},
	"v4.5+": {"sonic-v4-5-plus", 5000, 1000},
	"v5":    {"sonic-v5", 5000, 1000},
	"v5.5":  {"sonic-v5-5", 5000, 1000},
}

// usual is the version where the request has none, the contract's default.
const usual = "v5"

// The bounds of all models. An older page has 200 for the description, which the
// vendor does not enforce.
const (
	titleMax       = 80
	descriptionMax = 400
)

// blank stands in lyrics that the vendor demands and nobody has given.
const blank = " "

var sampleFields = []string{
	"start_s", "end_s", "instrumental", "version", "tags", "custom", "prompt", "title", "negative_tags", "auto_lyrics",
	"style_weight", "weirdness_constraint", "audio_weight", "gpt_description", "vocal_gender",
}

// write writes the job. Its errors are of KindInvalid and name the field, or of
// KindNotFound for an operation that is none.
func write(job mediagate.Job) (*body, error) {
	if job.Operation != opSample {
		return nil, mediagate.Errorf(mediagate.KindNotFound, "operation %q is unknown here", job.Operation)
	}
	var p struct {
		Start          json.Number `json:"start_s"`
		End            json.Number `json:"end_s"`
		Instrumental   bool        `json:"instrumental"`
		Version        string      `json:"version"`
		Tags           string      `json:"tags"`
		Custom         bool        `json:"custom"`
		Prompt         string      `json:"prompt"` // the lyrics
		Title          string      `json:"title"`
		NegativeTags   string      `json:"negative_tags"`
		AutoLyrics     bool        `json:"auto_lyrics"`
		StyleWeight    json.Number `json:"style_weight"`
		Weirdness      json.Number `json:"weirdness_constraint"`
		AudioWeight    json.Number `json:"audio_weight"`
		GPTDescription string      `json:"gpt_description"`
		VocalGender    string      `json:"vocal_gender"`
	}
	if err := vendorhttp.DecodeParams(job.Params, &p, sampleFields...); err != nil {
		return nil, err
	}
	m, ok := models[cmp.Or(p.Version, usual)]
	if !ok {
		return nil, mediagate.Invalid("version", "version must be one of v4, v4.5, v4.5+, v5 and v5.5")
	}
	b := &body{
		CustomMode: p.Custom, Model: m.name, MakeInstrumental: p.Instrumental, VocalGender: p.VocalGender,
		Start: cmp.Or(vendorhttp.Hundredth(p.Start), "0"), End: vendorhttp.Hundredth(p.End),
	}
	if err := b.sample(job.Source); err != nil {
		return nil, err
	}
	if !p.Custom {
		b.Description = p.GPTDescription
		return b, vendorhttp.AtMost("gpt_description", p.GPTDescription, descriptionMax)
	}
	b.Title, b.Tags, b.NegativeTags = p.Title, p.Tags, p.NegativeTags
	b.StyleWeight, b.Weirdness, b.AudioWeight = p.StyleWeight, p.Weirdness, p.AudioWeight
	if b.AutoLyrics = p.AutoLyrics; p.AutoLyrics {
		// The vendor writes the lyrics of what they are to be about.
		b.Prompt = cmp.Or(p.Prompt, p.Title, p.Tags, blank)
	} else {
		b.Prompt = cmp.Or(p.Prompt, blank)
	}
	return b, cmp.Or(
		vendorhttp.AtMost("prompt", p.Prompt, m.lyrics), vendorhttp.AtMost("tags", p.Tags, m.tags), vendorhttp.AtMost("title", p.Title, titleMax))
}

// sample names the song that is sampled: by the vendor's id where the account
// made it, else by its link. Without an end the sample is the rest of it to the
// last full second, where its length is known: a file plays some hundredths
// longer than the vendor says. Else the vendor decides.
func (b *body) sample(source *mediagate.Source) error {
	switch {
	case source == nil:
		return mediagate.Invalid("task_id", "task_id is required")
	case source.Own && source.VendorID != "":
		b.SampleClipID = source.VendorID
	case source.URL != "":
		b.URL = source.URL
	case source.Own:
		return mediagate.Invalid("task_id", "task_id names a song whose id is not known any more, and that has no file")
	default:
		return mediagate.Invalid("task_id", "task_id names a song of another account with the vendor that has no file to go by")
	}
	if b.End == "" && source.Clip != nil {
		end := math.Floor(source.Clip.Seconds)
		if start, err := b.Start.Float64(); err == nil && end > start {
			b.End = json.Number(strconv.FormatFloat(end, 'f', -1, 64))
		}
	}
	return nil
}
