package vertex

import (
	"encoding/json"
	"slices"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/googleapi"
)

// parameters are the vendor's parameters of a request. The vendor chooses the values of absent
// fields. GenerateAudio is always sent, because the vendor's default differs from ours.
type parameters struct {
	googleapi.VideoParameters

	GenerateAudio bool        `json:"generateAudio"`
	Seed          json.Number `json:"seed,omitempty"`
	ResizeMode    string      `json:"resizeMode,omitempty"`
	EnhancePrompt *bool       `json:"enhancePrompt,omitempty"`
}

// baseFields returns the fields of the base contract that the operation takes.
func baseFields() []string { return append(googleapi.BaseFields(), "seed") }

// decode reads the job's request. It returns an error if the API cannot express the request.
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

// parametersOf returns the vendor's parameters for the request.
func parametersOf(v *googleapi.Video) parameters {
	p := parameters{
		VideoParameters: v.Parameters(), GenerateAudio: v.GenerateAudio != nil && *v.GenerateAudio, Seed: v.Seed,
		EnhancePrompt: v.EnhancePrompt,
	}
	if v.FirstFrame != "" {
		p.ResizeMode = v.ResizeMode // applies to a frame only
	}
	return p
}
