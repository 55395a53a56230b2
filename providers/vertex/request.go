package vertex

import (
	"encoding/json"
	"slices"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/googleapi"
)

// parameters are those of the request. What is left out the vendor decides;
// sound is said in any case, since the vendor's default is another than ours.
type parameters struct {
	googleapi.VideoParameters

	GenerateAudio bool        `json:"generateAudio"`
	Seed          json.Number `json:"seed,omitempty"`
	ResizeMode    string      `json:"resizeMode,omitempty"`
	EnhancePrompt *bool       `json:"enhancePrompt,omitempty"`
}

// baseFields are those of the base contract.
func baseFields() []string { return append(googleapi.BaseFields(), "seed") }

// decode reads the job's request, and says what of it cannot be expressed.
func decode(job mediagate.Job) (*googleapi.Video, error) {
	switch job.Operation {
	case opVideo:
	case opBaseVideo:
		return googleapi.DecodeBase(job, baseFields())
	default:
		return nil, mediagate.Errorf(mediagate.KindNotFound, "operation %q is unknown here", job.Operation)
	}
	v, err := googleapi.DecodeVideo(job)
	if err != nil {
		return nil, err
	}
	if v.ResizeMode != "" && !slices.Contains([]string{"pad", "crop"}, v.ResizeMode) {
		return nil, mediagate.Invalid("resize_mode", "resize_mode must be pad or crop here")
	}
	return v, nil
}

// parametersOf are the vendor's words for the request.
func parametersOf(v *googleapi.Video) parameters {
	p := parameters{
		VideoParameters: v.Parameters(), GenerateAudio: v.GenerateAudio != nil && *v.GenerateAudio, Seed: v.Seed,
		EnhancePrompt: v.EnhancePrompt,
	}
	if v.FirstFrame != "" {
		p.ResizeMode = v.ResizeMode // of a frame
	}
	return p
}
