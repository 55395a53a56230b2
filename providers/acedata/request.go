package acedata

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// body is the body of a request to either API.
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

// wire is a request to the vendor: its path and its body.
type wire struct {
	path string
	body body
	// upload is the link of a file to upload before the submission; the body then takes the file's
	// id. field is the field of the client's request that names the file.
	upload, field string
	state         string // the State of the job's reference
}

// write translates the job into a request. Its errors are of KindInvalid and name the field, or of
// KindNotFound for an unknown operation.
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

// newRequest returns the request for a job that the operation's API runs asynchronously.
func newRequest(job mediagate.Job, b body) *wire {
	b.Async, b.CallbackURL = true, job.CallbackURL // a synchronous call may block for minutes
	return &wire{path: apis[job.Operation] + audiosPath, body: b}
}

// The fields by which a client names a source.
const (
	taskField  = "task_id"
	clipField  = "clip_id"
	voiceField = "voice_id"
)

// setSource sets the song that the job works on: by the vendor's id if the account made the song,
// otherwise by an upload. field is the field of the client's request that names the song.
func (w *wire) setSource(source *mediagate.Source, field string) error {
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
		return mediagate.Invalid(field,
			"%s names a song of another account with the vendor that has no file to go by", field)
	}
	return nil
}

// newStems writes the separation of a song. The reference keeps the vendor's id of the song, by
// which clients know it.
func newStems(job mediagate.Job, action, field string) (*wire, error) {
	if err := vendorhttp.DecodeParams(job.Params, &struct{}{}); err != nil {
		return nil, err
	}
	w := newRequest(job, body{Action: action})
	if err := w.setSource(job.Source, field); err != nil {
		return nil, err
	}
	w.state = job.Source.VendorID
	return w, nil
}

// formatInteger writes an integer without a fraction: 5.0 becomes 5.
func formatInteger(n json.Number) string {
	v, err := n.Float64()
	if err != nil || v != math.Trunc(v) || math.Abs(v) > 1<<53 {
		return n.String()
	}
	return strconv.FormatInt(int64(v), 10)
}
