package googleapi

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/inline"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// Video is a request for videos with the fields of the gateway.
type Video struct {
	Prompt           string      `json:"prompt"`
	NegativePrompt   string      `json:"negative_prompt"`
	Duration         json.Number `json:"duration"`
	AspectRatio      string      `json:"aspect_ratio"`
	Resolution       string      `json:"resolution"`
	FirstFrame       string      `json:"first_frame_image"`
	LastFrame        string      `json:"last_frame_image"`
	Seed             json.Number `json:"seed"`
	SampleCount      json.Number `json:"sample_count"`
	GenerateAudio    *bool       `json:"generate_audio"`
	PersonGeneration string      `json:"person_generation"`
	ResizeMode       string      `json:"resize_mode"`
	EnhancePrompt    *bool       `json:"enhance_prompt"`

	frameFields [baseFrames]string // the client's names for the frames, if they differ from the usual ones
}

// VideoFields returns the fields of the gateway's request that Veo takes.
func VideoFields() []string {
	return []string{
		"prompt", "negative_prompt", "duration", "aspect_ratio", "resolution", "first_frame_image", "last_frame_image",
		"seed", "sample_count", "generate_audio", "person_generation", "resize_mode", "enhance_prompt",
	}
}

// DecodeVideo reads a job's request. It returns a KindInvalid that names the field if neither
// surface of Veo can express the request.
func DecodeVideo(job mediagate.Job) (*Video, error) {
	v := new(Video)
	if err := vendorhttp.DecodeParams(job.Params, v); err != nil {
		return nil, err
	}
	switch seconds, _ := v.Duration.Int64(); {
	case v.LastFrame != "" && v.FirstFrame == "":
		return nil, mediagate.Invalid("last_frame_image", "last_frame_image needs first_frame_image here")
	case v.Duration != "" && !slices.Contains([]int64{4, 6, 8}, seconds):
		return nil, mediagate.Invalid("duration", "duration must be 4, 6 or 8 here")
	case v.EnhancePrompt != nil && !*v.EnhancePrompt:
		return nil, mediagate.Invalid("enhance_prompt", "enhance_prompt can only be true here")
	case v.PersonGeneration != "" && persons[v.PersonGeneration] == "":
		return nil, mediagate.Invalid("person_generation", "person_generation must be allow_adult or disallow here")
	}
	return v, nil
}

// persons maps the values of person_generation to the vendor's words.
var persons = map[string]string{"allow_adult": "allow_adult", "disallow": "dont_allow"}

// Samples returns how many videos the job asks for.
func (v *Video) Samples() int {
	n, _ := v.SampleCount.Int64()
	return max(1, int(n))
}

// Images returns the frames to fetch.
func (v *Video) Images() []inline.Image {
	var images []inline.Image
	if v.FirstFrame != "" {
		images = append(images, inline.Image{Field: v.frameField(0, "first_frame_image"), URL: v.FirstFrame})
	}
	if v.LastFrame != "" {
		images = append(images, inline.Image{Field: v.frameField(1, "last_frame_image"), URL: v.LastFrame})
	}
	return images
}

// VideoParameters are the parameters that both surfaces take.
type VideoParameters struct {
	SampleCount      json.Number `json:"sampleCount,omitempty"`
	DurationSeconds  json.Number `json:"durationSeconds,omitempty"`
	AspectRatio      string      `json:"aspectRatio,omitempty"`
	Resolution       string      `json:"resolution,omitempty"`
	NegativePrompt   string      `json:"negativePrompt,omitempty"`
	PersonGeneration string      `json:"personGeneration,omitempty"`
}

// Parameters returns the parameters that both surfaces take.
func (v *Video) Parameters() VideoParameters {
	return VideoParameters{
		SampleCount: v.SampleCount, DurationSeconds: v.Duration, AspectRatio: v.AspectRatio,
		Resolution: strings.ToLower(v.Resolution), NegativePrompt: v.NegativePrompt,
		PersonGeneration: persons[v.PersonGeneration],
	}
}

type (
	// veoRequest has its instances last, and an instance has its frames last, because texts must
	// come before images. See Images.Request.
	veoRequest struct {
		Parameters any        `json:"parameters"`
		Instances  []instance `json:"instances"`
	}
	instance struct {
		Prompt    string `json:"prompt"`
		Image     *frame `json:"image,omitempty"`
		LastFrame *frame `json:"lastFrame,omitempty"`
	}
	frame struct {
		Bytes    string `json:"bytesBase64Encoded"`
		MimeType string `json:"mimeType"`
	}
)

// Document returns the vendor's request with these frames and the parameters of one surface.
func (v *Video) Document(parameters any, frames []inline.Blob) any {
	one := instance{Prompt: v.Prompt}
	for i, blob := range frames {
		f := &frame{blob.Data, blob.MimeType}
		if i == 0 {
			one.Image = f
		} else {
			one.LastFrame = f
		}
	}
	return veoRequest{parameters, []instance{one}}
}

// RefuseVideo returns the error for an answer to a submission that starts no operation.
func RefuseVideo(client *vendorhttp.Client, answer vendorhttp.Answer, model string) error {
	status, reading := readError(answer)
	if reading.Meaning.Kind == mediagate.KindInvalid && status.IsModerated() {
		reading.Meaning.Kind = mediagate.KindModerated
	}
	return submitError(client, answer, model, reading)
}

// Filtered is the part of a finished operation that counts the videos which the vendor withheld.
type Filtered struct {
	Count   vendorhttp.Text   `json:"raiMediaFilteredCount"`
	Reasons []vendorhttp.Text `json:"raiMediaFilteredReasons"`
}

// OfferVideos completes the report on an operation that ended without an error. The job succeeds
// with the media, and fails if the vendor withheld all videos. Withheld videos are not part of
// media. whole says that every other video has its file.
func OfferVideos(
	client *vendorhttp.Client, report *mediagate.Report, media []mediagate.Media, whole bool, held Filtered,
) {
	if out := held.refusal(client); len(media) == 0 && out != nil {
		report.State, report.Outcome = mediagate.JobFailed, out
		return
	}
	report.Offer(&mediagate.Outcome{Media: media}, whole)
}

// refusal returns the outcome of an operation whose videos were withheld, or nil if none were.
func (f Filtered) refusal(client *vendorhttp.Client) *mediagate.Outcome {
	if (f.Count == "" || f.Count == "0") && len(f.Reasons) == 0 {
		return nil
	}
	out := &mediagate.Outcome{
		Failure: &mediagate.Failure{Code: mediagate.CodeContentPolicy, Message: "the content was refused"},
	}
	for _, reason := range f.Reasons {
		text := client.Clean(string(reason))
		if shown := vendorhttp.EnglishOrEmpty(text); shown != "" {
			out.Failure.Message = shown
			return out
		}
		out.VendorText = text
	}
	return out
}
