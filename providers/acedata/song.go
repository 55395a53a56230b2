package acedata

import (
	"cmp"
	"encoding/json"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// model is a model of the vendor and the limits of its texts, in characters.
type model struct {
	name                string
	lyric, style, title int
}

// models maps the versions of the contract to the vendor's models.
var models = map[string]model{
	"v4":    {"chirp-v4", 3000, 200, 80},
	"v4.5":  {"chirp-v4-5", 5000, 1000, 100},
	"v4.5+": {"chirp-v4-5-plus", 5000, 1000, 100},
	"v5":    {"chirp-v5", 5000, 1000, 100},
	"v5.5":  {"chirp-v5-5", 5000, 1000, 100},
}

// defaultVersion is the model version of operations without a version field. It is the contract's
// default.
const defaultVersion = "v5"

// descriptionMax bounds the prompt of a song that is not custom, in characters. The guides say 500,
// and the OpenAPI document says 200.
const descriptionMax = 500

func modelOf(version string) (model, error) {
	m, ok := models[version]
	if !ok {
		return model{}, mediagate.Invalid("version", "version must be one of v4, v4.5, v4.5+, v5 and v5.5")
	}
	return m, nil
}

// checkTexts checks the texts of a song against the model's limits.
func (m model) checkTexts(lyricField, lyric, tags, title string) error {
	return cmp.Or(
		vendorhttp.CheckLength(lyricField, lyric, m.lyric),
		vendorhttp.CheckLength("tags", tags, m.style),
		vendorhttp.CheckLength("title", title, m.title),
	)
}

var songFields = []string{
	"custom", "instrumental", "prompt", "title", "tags", "negative_tags", "gpt_description", "auto_lyrics",
	"vocal_gender",
	"style_weight", "weirdness_constraint", "audio_weight", "version",
}

// songParams are the fields of the gateway's request for a song.
type songParams struct {
	Custom         bool        `json:"custom"`
	Instrumental   bool        `json:"instrumental"`
	Prompt         string      `json:"prompt"` // the lyrics
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

func newSong(job mediagate.Job) (*wire, error) {
	var p songParams
	if err := vendorhttp.DecodeParams(job.Params, &p, songFields...); err != nil {
		return nil, err
	}
	m, err := modelOf(p.Version)
	if err != nil {
		return nil, err
	}
	w := newRequest(job, body{
		Action: "generate", Model: m.name, Custom: &p.Custom, Instrumental: &p.Instrumental, VocalGender: p.VocalGender,
	})
	if err := w.setVoice(job.Source); err != nil {
		return nil, err
	}
	if !p.Custom {
		w.body.Prompt = p.GPTDescription
		return w, vendorhttp.CheckLength("gpt_description", p.GPTDescription, descriptionMax)
	}
	b := &w.body
	b.Title, b.Style, b.StyleNegative = p.Title, p.Tags, p.NegativeTags
	b.StyleInfluence, b.Weirdness, b.AudioWeight = p.StyleWeight, p.Weirdness, p.AudioWeight
	if p.AutoLyrics {
		// The vendor writes the lyrics. This text says what they are about.
		b.LyricPrompt = cmp.Or(p.Prompt, p.Title, p.Tags)
	} else {
		b.Lyric = p.Prompt
	}
	return w, m.checkTexts("prompt", p.Prompt, p.Tags, p.Title)
}

// setVoice sets the voice that sings, which the account must own. The vendor also wants the upload
// that the voice was made from. The voice's reference keeps the id of the upload in State. Without
// it the request names the voice alone.
func (w *wire) setVoice(voice *mediagate.Source) error {
	switch {
	case voice == nil:
		return nil
	case !voice.Own || voice.VendorID == "":
		return mediagate.Invalid(voiceField,
			"voice_id names a voice of another account with the vendor, which only that one can use")
	}
	w.body.PersonaID = voice.VendorID
	if voice.Ref.State != "" {
		w.body.Action, w.body.AudioID = "artist_consistency", voice.Ref.State
	}
	return nil
}

func newRemaster(job mediagate.Job) (*wire, error) {
	var p struct {
		Version string `json:"version"`
	}
	if err := vendorhttp.DecodeParams(job.Params, &p); err != nil {
		return nil, err
	}
	m, err := modelOf(p.Version)
	if err != nil {
		return nil, err
	}
	w := newRequest(job, body{Action: "remaster", Model: m.name})
	return w, w.setSource(job.Source, taskField)
}

var replaceFields = []string{"start_s", "end_s", "infill_lyrics", "prompt", "title", "tags", "negative_tags"}

// newReplace writes the replacement of a section. The vendor's prompt holds the lyrics of the
// section, and its lyric must contain them. The lyric is that of the whole song if the client gives
// it, otherwise the section's lyrics again.
func newReplace(job mediagate.Job) (*wire, error) {
	var p struct {
		Start        json.Number `json:"start_s"`
		End          json.Number `json:"end_s"`
		InfillLyrics string      `json:"infill_lyrics"`
		Prompt       string      `json:"prompt"`
		Title        string      `json:"title"`
		Tags         string      `json:"tags"`
		NegativeTags string      `json:"negative_tags"`
	}
	if err := vendorhttp.DecodeParams(job.Params, &p, replaceFields...); err != nil {
		return nil, err
	}
	m := models[defaultVersion]
	w := newRequest(job, body{
		Action: "replace_section", Model: m.name,
		Start: vendorhttp.RoundToHundredth(p.Start), End: vendorhttp.RoundToHundredth(p.End),
		Lyric: cmp.Or(p.Prompt, p.InfillLyrics), Prompt: p.InfillLyrics,
		Title: p.Title, Style: p.Tags, StyleNegative: p.NegativeTags,
	})
	if err := w.setSource(job.Source, taskField); err != nil {
		return nil, err
	}
	return w, cmp.Or(
		m.checkTexts("prompt", p.Prompt, p.Tags, p.Title),
		vendorhttp.CheckLength("infill_lyrics", p.InfillLyrics, m.lyric),
	)
}

// newVoice writes a voice made from a recording. The voice's name is the external id of the job.
func newVoice(job mediagate.Job) (*wire, error) {
	var p struct {
		AudioURL string `json:"audio_url"`
	}
	if err := vendorhttp.DecodeParams(job.Params, &p); err != nil {
		return nil, err
	}
	if p.AudioURL == "" {
		return nil, mediagate.Invalid("audio_url", "audio_url cannot be empty")
	}
	return &wire{
		path: suno + personaPath, body: body{Name: cmp.Or(job.ExternalID, "voice")},
		upload: p.AudioURL, field: "audio_url",
	}, nil
}
