package kling

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/mediagate/mediagate"
)

const videosPath = "/v1/videos/"

// The endpoints of this generation that we use.
const (
	text2video  = "text2video"
	image2video = "image2video"
	omniVideo   = "omni-video"
)

// operations names the endpoints that each operation may use.
var operations = map[string][]string{
	"video": {text2video, image2video},
	"omni":  {omniVideo},
}

// endpointOf chooses the endpoint of an operation by the inputs.
func endpointOf(operation string, p *params) (string, error) {
	switch {
	case operation == "video" && len(p.ImageURLs) == 0:
		return text2video, nil
	case operation == "video":
		return image2video, nil
	case operation == "omni":
		return omniVideo, nil
	default:
		return "", mediagate.Errorf(mediagate.KindNotFound, "operation %q is unknown here", operation)
	}
}

// params are the gateway's own fields, validated and with defaults. Pointers
// tell a field that a model does not have from one that is off.
type params struct {
	Prompt         string      `json:"prompt"`
	NegativePrompt string      `json:"negative_prompt"`
	Mode           string      `json:"mode"`
	Duration       json.Number `json:"duration"`
	AspectRatio    string      `json:"aspect_ratio"`
	ImageURLs      []string    `json:"image_urls"`
	Watermark      bool        `json:"watermark"`
	Audio          *bool       `json:"audio"`
	MultiShot      *bool       `json:"multi_shot"`
	ShotType       string      `json:"shot_type"`
	MultiPrompt    []struct {
		Index    json.Number `json:"index"`
		Prompt   string      `json:"prompt"`
		Duration json.Number `json:"duration"`
	} `json:"multi_prompt"`
	ElementList []struct {
		ElementID json.Number `json:"element_id"`
		Pictures  []string    `json:"element_input_urls"` // of a subject without an id
	} `json:"element_list"`
	VideoList []struct {
		VideoURL          string `json:"video_url"`
		ReferType         string `json:"refer_type"`
		KeepOriginalSound string `json:"keep_original_sound"`
	} `json:"video_list"`
}

func decodeParams(raw json.RawMessage) (*params, error) {
	p := new(params)
	if err := json.Unmarshal(raw, p); err != nil {
		// The decoder's text names a field at most; it is for the logs anyway.
		return nil, &mediagate.Error{
			Kind: mediagate.KindInvalid, Code: string(mediagate.CodeInvalidParameters),
			Message: "the stored request cannot be read", Err: err,
		}
	}
	return p, nil
}

// request is the body of all three endpoints. What an endpoint does not take
// stays empty and is left out; what it takes is always written, so that no
// default of the vendor's decides.
type request struct {
	ModelName      string         `json:"model_name"`
	Prompt         string         `json:"prompt,omitempty"`
	NegativePrompt string         `json:"negative_prompt,omitempty"`
	Image          string         `json:"image,omitempty"`
	ImageTail      string         `json:"image_tail,omitempty"`
	ImageList      []imageItem    `json:"image_list,omitempty"`
	VideoList      []videoItem    `json:"video_list,omitempty"`
	ElementList    []elementItem  `json:"element_list,omitempty"`
	Mode           string         `json:"mode,omitempty"`
	Duration       string         `json:"duration,omitempty"` // the vendor refuses a number
	AspectRatio    string         `json:"aspect_ratio,omitempty"`
	Sound          string         `json:"sound,omitempty"`
	MultiShot      *bool          `json:"multi_shot,omitempty"`
	ShotType       string         `json:"shot_type,omitempty"`
	MultiPrompt    []shotItem     `json:"multi_prompt,omitempty"`
	WatermarkInfo  *watermarkInfo `json:"watermark_info,omitempty"`
	ExternalTaskID string         `json:"external_task_id"`
}

type (
	imageItem struct {
		ImageURL string `json:"image_url"`
		Type     string `json:"type,omitempty"` // none: to refer to
	}
	videoItem struct {
		VideoURL          string `json:"video_url"`
		ReferType         string `json:"refer_type"`
		KeepOriginalSound string `json:"keep_original_sound"`
	}
	elementItem struct {
		ElementID int64 `json:"element_id"`
	}
	shotItem struct {
		Index    int    `json:"index"`
		Prompt   string `json:"prompt"`
		Duration string `json:"duration"`
	}
	watermarkInfo struct {
		Enabled bool `json:"enabled"`
	}
)

// newRequest writes the job in the endpoint's words. A field that the
// endpoint lacks is an error that names it: it is never dropped in silence.
func newRequest(job mediagate.Job, endpoint string, p *params) (*request, error) {
	r := &request{
		ModelName:      job.Upstream,
		Prompt:         p.Prompt,
		Mode:           p.Mode,
		MultiShot:      p.MultiShot,
		WatermarkInfo:  &watermarkInfo{Enabled: p.Watermark},
		ExternalTaskID: job.ExternalID,
	}
	if p.Audio != nil {
		r.Sound = onOff(*p.Audio)
	}
	if err := r.setDuration(p); err != nil {
		return nil, err
	}
	if err := r.setShots(p); err != nil {
		return nil, err
	}
	if err := r.setElements(endpoint, p); err != nil {
		return nil, err
	}
	switch endpoint {
	case omniVideo:
		return r, r.setOmni(p, job.Values["images"])
	case image2video:
		// No aspect_ratio: the video follows the image.
		r.Image = p.ImageURLs[0]
		switch {
		case len(p.ImageURLs) == 2:
			r.ImageTail = p.ImageURLs[1]
		case len(p.ImageURLs) > 2:
			return nil, mediagate.Invalid("image_urls", "image_urls takes at most 2 images here")
		}
	default:
		r.AspectRatio = p.AspectRatio
	}
	if len(p.VideoList) > 0 {
		return nil, mediagate.Invalid("video_list", "video_list is not supported here")
	}
	r.NegativePrompt = p.NegativePrompt
	return r, nil
}

func (r *request) setDuration(p *params) error {
	if p.Duration == "" {
		return nil
	}
	seconds, err := whole(p.Duration)
	if err != nil {
		return mediagate.Invalid("duration", "duration must be an integer")
	}
	r.Duration = strconv.Itoa(seconds)
	return nil
}

// setShots writes the shots that take effect: none without multi_shot, and
// their list only where the client cut them.
func (r *request) setShots(p *params) error {
	if p.MultiShot == nil || !*p.MultiShot {
		return nil
	}
	r.ShotType = p.ShotType
	if p.ShotType != "customize" {
		return nil
	}
	for i, shot := range p.MultiPrompt {
		index, err := whole(shot.Index)
		if err != nil {
			field := fmt.Sprintf("multi_prompt[%d].index", i)
			return mediagate.Invalid(field, "%s must be an integer", field)
		}
		seconds, err := whole(shot.Duration)
		if err != nil {
			field := fmt.Sprintf("multi_prompt[%d].duration", i)
			return mediagate.Invalid(field, "%s must be an integer", field)
		}
		r.MultiPrompt = append(r.MultiPrompt, shotItem{Index: index, Prompt: shot.Prompt, Duration: strconv.Itoa(seconds)})
	}
	return nil
}

func (r *request) setElements(endpoint string, p *params) error {
	if len(p.ElementList) > 0 && endpoint == text2video {
		return mediagate.Invalid("element_list", "element_list needs an image here")
	}
	for i, element := range p.ElementList {
		// Subjects without an id are not known to the vendor. They are shown
		// by their pictures, where it takes pictures to refer to.
		if element.ElementID == "" {
			if endpoint != omniVideo || len(element.Pictures) == 0 {
				field := fmt.Sprintf("element_list[%d].name", i)
				return mediagate.Invalid(field, "%s is not supported here; give element_id", field)
			}
			continue
		}
		id, err := strconv.ParseInt(element.ElementID.String(), 10, 64)
		if err != nil {
			field := fmt.Sprintf("element_list[%d].element_id", i)
			return mediagate.Invalid(field, "%s must be an integer", field)
		}
		r.ElementList = append(r.ElementList, elementItem{ElementID: id})
	}
	return nil
}

// frameTypes are what omni-video calls a first and a last frame.
var frameTypes = []string{"first_frame", "end_frame"}

// setOmni writes what only omni-video takes. Its images are frames or, with
// no type, references; the pictures of subjects come after them, in the order
// by which the prompt refers to them.
func (r *request) setOmni(p *params, images string) error {
	if p.NegativePrompt != "" {
		return mediagate.Invalid("negative_prompt", "negative_prompt is not supported here")
	}
	frames := images == "frames"
	if frames && len(p.ImageURLs) > len(frameTypes) {
		return mediagate.Invalid("image_urls", "image_urls takes at most %d images here", len(frameTypes))
	}
	if !frames || len(p.ImageURLs) == 0 { // else the video follows the frame
		r.AspectRatio = p.AspectRatio
	}
	for i, link := range p.ImageURLs {
		item := imageItem{ImageURL: link}
		if frames {
			item.Type = frameTypes[i]
		}
		r.ImageList = append(r.ImageList, item)
	}
	for _, element := range p.ElementList {
		for _, link := range element.Pictures {
			r.ImageList = append(r.ImageList, imageItem{ImageURL: link})
		}
	}
	for _, v := range p.VideoList {
		r.VideoList = append(r.VideoList, videoItem(v))
	}
	if len(r.VideoList) > 0 && r.Sound == "on" {
		return mediagate.Invalid("audio", "audio cannot be made for a request with a video")
	}
	return nil
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// whole reads an integer however it is written, as 5 or 5.0.
func whole(n json.Number) (int, error) {
	f, err := n.Float64()
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1e9 {
		return 0, fmt.Errorf("%q is no integer", n)
	}
	return int(f), nil
}
