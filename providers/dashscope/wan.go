package dashscope

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mediagate/mediagate"
)

// The limits of Wan that our contract does not state. Those for references come from a secondary
// source.
const (
	maxWanPrompt         = 1500 // of the older protocol
	maxWanV2Prompt       = 5000
	maxWanNegativePrompt = 500
	maxReferences        = 5
	maxReferenceSeconds  = 10 // if the video has references
)

// wanParams are the fields of the gateway's request for a video by Wan.
type wanParams struct {
	Prompt         string   `json:"prompt"`
	ImageURLs      []string `json:"image_urls"`
	ImageWithRoles []struct {
		URL  string `json:"url"`
		Role string `json:"role"`
	} `json:"image_with_roles"`
	VideoURLs      []string    `json:"video_urls"`
	Duration       json.Number `json:"duration"`
	Resolution     string      `json:"resolution"`
	AspectRatio    string      `json:"aspect_ratio"`
	NegativePrompt string      `json:"negative_prompt"`
	Audio          *bool       `json:"audio"`
	PromptExtend   *bool       `json:"prompt_extend"`
	Watermark      bool        `json:"watermark"`
	Seed           json.Number `json:"seed"`
}

// The kinds of models, by the ends of their names.
const (
	fromText       = "-t2v"
	fromFrames     = "-i2v"
	fromReferences = "-r2v"
)

// scene is the media of a request, by purpose.
type scene struct {
	first, last    string
	images, videos []string // references
	hasImageURLs   bool     // image_urls names some of the images
}

// scene sorts the media by purpose. A single image without any other media is the first frame.
func (p *wanParams) scene() (scene, error) {
	s := scene{images: slices.Clone(p.ImageURLs), videos: p.VideoURLs, hasImageURLs: len(p.ImageURLs) > 0}
	if len(p.ImageURLs) == 1 && len(p.ImageWithRoles)+len(p.VideoURLs) == 0 {
		return scene{first: p.ImageURLs[0]}, nil
	}
	frames := map[string]*string{"first_frame": &s.first, "last_frame": &s.last}
	for i, image := range p.ImageWithRoles {
		frame, isFrame := frames[image.Role]
		switch {
		case !isFrame:
			s.images = append(s.images, image.URL)
		case *frame != "":
			return s, invalid(fmt.Sprintf("image_with_roles[%d].role", i), "must not be "+image.Role+" again")
		default:
			*frame = image.URL
		}
	}
	return s, nil
}

func (s scene) references() int { return len(s.images) + len(s.videos) }

// kind returns the end of the model's name for the scene.
func (s scene) kind() string {
	switch {
	case s.references() > 0:
		return fromReferences
	case s.first != "" || s.last != "":
		return fromFrames
	default:
		return fromText
	}
}

// validate returns an error if no model of Wan can express the scene.
func (s scene) validate() error {
	switch {
	case s.last != "" && s.references() > 0:
		return invalid("image_with_roles", "may not have a last_frame beside images or videos to refer to")
	case s.last != "" && s.first == "":
		return invalid("image_with_roles", "must have a first_frame beside a last_frame")
	case s.references() > maxReferences:
		field := "image_with_roles"
		switch {
		case len(s.videos) > 0:
			field = "video_urls"
		case s.hasImageURLs:
			field = "image_urls"
		}
		return mediagate.Invalid(field,
			"%s: images and videos to refer to may be at most %d together", field, maxReferences)
	default:
		return nil
	}
}

type (
	wanInput struct {
		Prompt         string   `json:"prompt,omitempty"`
		NegativePrompt string   `json:"negative_prompt,omitempty"`
		Image          string   `json:"img_url,omitempty"`        // of the older protocol
		References     []string `json:"reference_urls,omitempty"` // of the older protocol
		Media          []media  `json:"media,omitempty"`
	}
	wanParameters struct {
		Size         string `json:"size,omitempty"` // pixels
		Resolution   string `json:"resolution,omitempty"`
		Ratio        string `json:"ratio,omitempty"`
		Duration     int64  `json:"duration"`
		Audio        *bool  `json:"audio,omitempty"`
		AudioSetting string `json:"audio_setting,omitempty"`
		PromptExtend *bool  `json:"prompt_extend,omitempty"`
		Watermark    bool   `json:"watermark"`
		Seed         *int64 `json:"seed,omitempty"`
	}
)

// newWan reads the request, and writes the fields that both protocols share. The caller adds the
// kind of the scene to the name of the upstream, as in wan2.6-i2v.
func newWan(job mediagate.Job) (p *wanParams, s scene, in *wanInput, out *wanParameters, err error) {
	if p, err = decode[wanParams](job); err != nil {
		return nil, s, nil, nil, err
	}
	if s, err = p.scene(); err == nil {
		err = s.validate()
	}
	if err == nil {
		err = checkLength("negative_prompt", p.NegativePrompt, maxWanNegativePrompt)
	}
	if err != nil {
		return nil, s, nil, nil, err
	}
	out = &wanParameters{PromptExtend: p.PromptExtend, Watermark: p.Watermark}
	if out.Duration, err = parseInteger("duration", p.Duration); err != nil {
		return nil, s, nil, nil, err
	}
	if out.Seed, err = parseSeed(p.Seed); err != nil {
		return nil, s, nil, nil, err
	}
	return p, s, &wanInput{Prompt: p.Prompt, NegativePrompt: p.NegativePrompt}, out, nil
}

// wanPixels holds the pixel sizes of the older protocol, by resolution and ratio.
var wanPixels = map[string]map[string]string{
	"720P": {
		"16:9": "1280*720", "9:16": "720*1280", "1:1": "960*960", "4:3": "1088*832", "3:4": "832*1088",
	},
	"1080P": {
		"16:9": "1920*1080", "9:16": "1080*1920", "1:1": "1440*1440", "4:3": "1632*1248", "3:4": "1248*1632",
	},
}

// newVideo writes a request of the older protocol. Its models take either one frame or references.
// Its models for text always make sound, so their request has no audio field.
func newVideo(job mediagate.Job) (*request, error) {
	p, s, in, out, err := newWan(job)
	if err != nil {
		return nil, err
	}
	kind := s.kind()
	switch {
	case s.last != "":
		return nil, invalid("image_with_roles", "may not have a last_frame here")
	case s.first != "" && s.references() > 0:
		return nil, invalid("image_with_roles", "may not have a first_frame beside images or videos to refer to here")
	case kind == fromReferences && out.Duration > maxReferenceSeconds:
		return nil, invalid("duration",
			fmt.Sprintf("must be at most %d here with images or videos to refer to", maxReferenceSeconds))
	}
	if err := checkLength("prompt", p.Prompt, maxWanPrompt); err != nil {
		return nil, err
	}
	if kind == fromFrames { // the video has the ratio of its frame
		in.Image, out.Resolution, out.Audio = s.first, p.Resolution, p.Audio
	} else if out.Size = wanPixels[p.Resolution][p.AspectRatio]; out.Size == "" {
		return nil, invalid("aspect_ratio", "has no pixel size here")
	}
	if kind == fromReferences {
		in.References, out.Audio = slices.Concat(s.images, s.videos), p.Audio
	}
	return &request{
		Model: job.Upstream + kind, Input: in, Parameters: out, path: videoPath, wantsWatermark: p.Watermark,
	}, nil
}

// newVideoV2 writes a request of the newer protocol. Its models always make sound.
func newVideoV2(job mediagate.Job) (*request, error) {
	p, s, in, out, err := newWan(job)
	if err != nil {
		return nil, err
	}
	if len(s.videos) > 0 && out.Duration > maxReferenceSeconds {
		return nil, invalid("duration", fmt.Sprintf("must be at most %d with videos to refer to", maxReferenceSeconds))
	}
	if err := checkLength("prompt", p.Prompt, maxWanV2Prompt); err != nil {
		return nil, err
	}
	add := func(kind string, links ...string) {
		for _, link := range links {
			if link != "" {
				in.Media = append(in.Media, media{Type: kind, URL: link})
			}
		}
	}
	add("first_frame", s.first)
	add("last_frame", s.last)
	add("reference_image", s.images...)
	add("reference_video", s.videos...)
	out.Resolution = p.Resolution
	if s.first == "" { // otherwise the video has the ratio of its frame
		out.Ratio = p.AspectRatio
	}
	return &request{
		Model: job.Upstream + s.kind(), Input: in, Parameters: out, path: videoPath, wantsWatermark: p.Watermark,
	}, nil
}

// editParams are the fields of the gateway's request for a video edit.
type editParams struct {
	VideoURLs      []string    `json:"video_urls"`
	Prompt         string      `json:"prompt"`
	NegativePrompt string      `json:"negative_prompt"`
	ImageURLs      []string    `json:"image_urls"`
	Resolution     string      `json:"resolution"`
	Duration       json.Number `json:"duration"`
	Size           string      `json:"size"` // a ratio
	PromptExtend   *bool       `json:"prompt_extend"`
	Watermark      bool        `json:"watermark"`
	Seed           json.Number `json:"seed"`
	Metadata       struct {
		AudioSetting string `json:"audio_setting"`
	} `json:"metadata"`
}

// newEdit writes a video edit. Without a size the video keeps its ratio, and with a duration of 0
// it keeps its length.
func newEdit(job mediagate.Job) (*request, error) {
	p, err := decode[editParams](job)
	if err != nil {
		return nil, err
	}
	if len(p.VideoURLs) == 0 {
		return nil, invalid("video_urls", "is required")
	}
	in := &wanInput{
		Prompt: p.Prompt, NegativePrompt: p.NegativePrompt,
		Media: []media{{Type: "video", URL: p.VideoURLs[0]}},
	}
	for _, link := range p.ImageURLs {
		in.Media = append(in.Media, media{Type: "reference_image", URL: link})
	}
	out := &wanParameters{
		Resolution: p.Resolution, Ratio: p.Size, AudioSetting: p.Metadata.AudioSetting,
		PromptExtend: p.PromptExtend, Watermark: p.Watermark,
	}
	if out.Duration, err = parseInteger("duration", p.Duration); err != nil {
		return nil, err
	}
	if out.Seed, err = parseSeed(p.Seed); err != nil {
		return nil, err
	}
	return &request{Model: job.Upstream, Input: in, Parameters: out, path: videoPath, wantsWatermark: p.Watermark}, nil
}
