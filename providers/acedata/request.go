package acedata

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// body is a job in the vendor's words, of either API.
type body struct {
	Action         string      `json:"action,omitempty"`
	Model          string      `json:"model,omitempty"`
	AudioID        string      `json:"audio_id,omitempty"`
	PersonaID      string      `json:"persona_id,omitempty"`
	Name           string      `json:"name,omitempty"`
	Custom         *bool       `json:"custom,omitempty"`
	Instrumental   *bool       `json:"instrumental,omitempty"`
	Prompt         string      `json:"prompt,omitempty"`
	Lyric          string      `json:"lyric,omitempty"`
	LyricPrompt    string      `json:"lyric_prompt,omitempty"`
	Title          string      `json:"title,omitempty"`
	Style          string      `json:"style,omitempty"`
	StyleNegative  string      `json:"style_negative,omitempty"`
	VocalGender    string      `json:"vocal_gender,omitempty"`
	StyleInfluence json.Number `json:"style_influence,omitempty"`
	Weirdness      json.Number `json:"weirdness,omitempty"`
	AudioWeight    json.Number `json:"audio_weight,omitempty"`
	Seed           string      `json:"seed,omitempty"`
	Start          json.Number `json:"replace_section_start,omitempty"`
	End            json.Number `json:"replace_section_end,omitempty"`
	Async          bool        `json:"async,omitempty"`
	CallbackURL    string      `json:"callback_url,omitempty"`
}

// wire is a job in the vendor's words: where it is sent, and what is sent.
type wire struct {
	path string
	body body
	// upload is the link of a file that is uploaded first, whose id body then
	// gets, and field is the one of the request that names the file.
	upload, field string
	state         string // of the reference
}

// write writes the job. Its errors are of KindInvalid and name the field, or of
// KindNotFound for an operation that is none.
func write(job mediagate.Job) (*wire, error) {
	switch job.Operation {
	case opSong:
		return newSong(job)
	case opRemaster:
		return newRemaster(job)
	case opStems:
		return newStems(job, "all_stems", taskField)
	case opReplace:
		return newReplace(job)
	case opVoice:
		return newVoice(job)
	case opFlowSong:
		return newFlowSong(job)
	case opFlowStems:
		return newStems(job, "stems", clipField)
	case opFlowReplace:
		return newFlowReplace(job)
	default:
		return nil, mediagate.Errorf(mediagate.KindNotFound, "operation %q is unknown here", job.Operation)
	}
}

// makes is a job of the operation's API that is asked for later.
func makes(job mediagate.Job, b body) *wire {
	b.Async, b.CallbackURL = true, job.CallbackURL // not async, the call may block for minutes
	return &wire{path: apis[job.Operation] + audiosPath, body: b}
}

// The fields by which clients name a source.
const (
	taskField  = "task_id"
	clipField  = "clip_id"
	voiceField = "voice_id"
)

// on lets the job work on its source: by the vendor's id where the account made
// it, else by an upload.
func (w *wire) on(source *mediagate.Source, field string) error {
	switch {
	case source == nil:
		return mediagate.Invalid(field, "%s is required", field)
	case source.Own && source.VendorID != "":
		w.body.AudioID = source.VendorID
	case source.URL != "":
		w.upload, w.field = source.URL, field
	case source.Own:
		return mediagate.Invalid(field, "%s names a song whose id is not known any more, and that has no file", field)
	default:
		return mediagate.Invalid(field, "%s names a song of another account with the vendor that has no file to go by", field)
	}
	return nil
}

// newStems separates a song. The reference keeps the id by which clients know
// the song.
func newStems(job mediagate.Job, action, field string) (*wire, error) {
	if err := vendorhttp.DecodeParams(job.Params, &struct{}{}); err != nil {
		return nil, err
	}
	w := makes(job, body{Action: action})
	if err := w.on(job.Source, field); err != nil {
		return nil, err
	}
	w.state = job.Source.VendorID
	return w, nil
}

// whole writes an integer without a fraction: 5.0 is 5.
func whole(n json.Number) string {
	v, err := n.Float64()
	if err != nil || v != math.Trunc(v) || math.Abs(v) > 1<<53 {
		return n.String()
	}
	return strconv.FormatInt(int64(v), 10)
}
