package kling

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

const videosPath = "/v1/videos/"

// params are the fields of the gateway's request, validated and with defaults. Pointers distinguish
// a field that a model does not have from one that is off.
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
	MultiPrompt    []shot      `json:"multi_prompt"`
	ElementList    []element   `json:"element_list"`
	VideoList      []struct {
		VideoURL          string `json:"video_url"`
		ReferType         string `json:"refer_type"`
		KeepOriginalSound string `json:"keep_original_sound"`
	} `json:"video_list"`

	bound int // the limit of the vendor's prompt, in characters
}

type shot struct {
	Index    json.Number `json:"index"`
	Prompt   string      `json:"prompt"`
	Duration json.Number `json:"duration"`
}

// element is a subject. The vendor has it on record under an id, or the request describes it by
// name and pictures.
type element struct {
	ElementID   json.Number `json:"element_id"`
	Name        string      `json:"name"`
	Description string      `json:"description"`
	Pictures    []string    `json:"element_input_urls"`
}

func (e element) byName() bool { return e.ElementID == "" }

// hasCustomShots reports whether the client divided the video into shots. The vendor then reads
// their prompts and ignores the prompt of the video.
func (p *params) hasCustomShots() bool {
	return p.MultiShot != nil && *p.MultiShot && p.ShotType == "customize" && len(p.MultiPrompt) > 0
}

// request is the body for all three endpoints. Fields that an endpoint does not take are left out.
// Fields that it takes are always written, so that no default of the vendor applies.
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
	CallbackURL    string         `json:"callback_url,omitempty"`
	ExternalTaskID string         `json:"external_task_id"`
}

type (
	imageItem struct {
		ImageURL string `json:"image_url"`
		Type     string `json:"type,omitempty"` // empty: a reference
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

// Supports returns an error that says why the vendor's API cannot express the request, or nil.
// It writes the request as Submit does, for the generation that the channel's options name.
func Supports(job mediagate.Job, options map[string]string) error {
	_, err := toWire(job, generationOf(options))
	return err
}

// wire is a request to the vendor: its path, its body, and the place to ask for the job later.
type wire struct {
	path string
	body any
	at   place
}

// toWire translates the job for the generation of the vendor's API.
func toWire(job mediagate.Job, generation string) (wire, error) {
	if generation == generationV2 {
		return writeNewer(job)
	}
	r, at, err := write(job)
	return wire{path: videosPath + at.endpoint, body: r, at: at}, err
}

// read reads the job's fields. bound is the limit of the vendor's prompts in characters.
func read(job mediagate.Job, bound int) (*params, error) {
	if endpoints[job.Operation] == nil {
		return nil, mediagate.Errorf(mediagate.KindNotFound, "operation %q is unknown here", job.Operation)
	}
	if job.Operation == opBaseVideo {
		return readBase(job, bound)
	}
	p := &params{bound: bound}
	return p, vendorhttp.DecodeParams(job.Params, p, fieldsOf(job)...)
}

// write translates the job for the older generation. It returns the body and the place to ask for
// the job later. It makes no call. Its errors name the field and the rule.
func write(job mediagate.Job) (*request, place, error) {
	p, err := read(job, maxPrompt)
	if err != nil {
		return nil, place{}, err
	}
	at := place{endpoint: omniVideo, wantsWatermark: p.Watermark}
	r := &request{
		ModelName:      job.Upstream,
		Mode:           p.Mode,
		MultiShot:      p.MultiShot,
		WatermarkInfo:  &watermarkInfo{Enabled: p.Watermark},
		CallbackURL:    job.CallbackURL,
		ExternalTaskID: job.ExternalID,
	}
	if p.Audio != nil {
		r.Sound = onOff(*p.Audio)
	}
	switch {
	case job.Operation == opVideo, job.Operation == opBaseVideo:
		at.endpoint, err = r.setVideo(p)
	case isStoredInVendorForm(job):
		err = r.setFrames(p)
	case job.Operation == opOmniFrames:
		if err = p.checkFrames(); err == nil {
			err = p.writeFramesText()
		}
		if err == nil {
			err = r.setFrames(p)
		}
	default:
		if err = p.writeReferencesText(); err == nil {
			err = r.setReferences(p)
		}
	}
	if err != nil {
		return nil, place{}, err
	}
	// The operation has changed the client's texts, so they are written last.
	r.Prompt = p.Prompt
	if err := r.setDuration(p); err != nil {
		return nil, place{}, err
	}
	if err := r.setShots(p); err != nil {
		return nil, place{}, err
	}
	if err := r.setElements(p); err != nil {
		return nil, place{}, err
	}
	return r, at, nil
}

func (r *request) setDuration(p *params) error {
	if p.Duration == "" {
		return nil
	}
	seconds, err := parseInteger(p.Duration)
	if err != nil {
		return mediagate.Invalid("duration", "duration must be an integer")
	}
	r.Duration = strconv.Itoa(seconds)
	return nil
}

// setShots writes how the video is divided into shots. Without multi_shot it writes nothing. It writes
// the list of shots only if the client divided the video (shot_type customize).
func (r *request) setShots(p *params) error {
	if p.MultiShot == nil || !*p.MultiShot {
		return nil
	}
	r.ShotType = p.ShotType
	if p.ShotType != "customize" {
		return nil
	}
	for i, shot := range p.MultiPrompt {
		index, err := parseInteger(shot.Index)
		if err != nil {
			field := fmt.Sprintf("multi_prompt[%d].index", i)
			return mediagate.Invalid(field, "%s must be an integer", field)
		}
		seconds, err := parseInteger(shot.Duration)
		if err != nil {
			field := fmt.Sprintf("multi_prompt[%d].duration", i)
			return mediagate.Invalid(field, "%s must be an integer", field)
		}
		r.MultiPrompt = append(r.MultiPrompt, shotItem{
			Index: index, Prompt: shot.Prompt, Duration: strconv.Itoa(seconds),
		})
	}
	return nil
}

// setVideo writes the fields that only the plain endpoints take, and chooses between the endpoints
// by the images. They take subjects by id only, and only beside a first frame.
func (r *request) setVideo(p *params) (endpoint string, err error) {
	if err := p.checkPlain(); err != nil {
		return "", err
	}
	r.NegativePrompt = p.NegativePrompt
	switch len(p.ImageURLs) {
	case 0:
		r.AspectRatio = p.AspectRatio
		return text2video, nil
	case 2:
		r.ImageTail = p.ImageURLs[1]
	}
	r.Image = p.ImageURLs[0] // no aspect_ratio: the video has that of the image
	return image2video, nil
}

// checkPlain returns an error if the endpoints for plain text and frames cannot express the
// request.
func (p *params) checkPlain() error {
	switch i := slices.IndexFunc(p.ElementList, element.byName); {
	case i >= 0:
		return invalid(fmt.Sprintf("element_list[%d].name", i), "is not possible here")
	case len(p.ImageURLs) == 0 && len(p.ElementList) > 0:
		return invalid("element_list", "is only possible together with image_urls")
	case len(p.ImageURLs) > len(frameTypes):
		return invalid("image_urls", fmt.Sprintf("takes at most %d images here", len(frameTypes)))
	default:
		return nil
	}
}

// frameTypes holds omni-video's names for a first and a last frame.
var frameTypes = []string{"first_frame", "end_frame"}

// checkFrames returns an error if the request belongs to another endpoint, or if omni-video cannot
// make it.
func (p *params) checkFrames() error {
	named := slices.ContainsFunc(p.ElementList, element.byName)
	switch {
	case len(p.ElementList) == 0:
		return invalid("element_list", "is required")
	case !named && len(p.ImageURLs) > 0:
		return invalid("image_urls", "is not possible here")
	case named && p.Mode == "4k":
		return invalid("mode", "must be std or pro when element_list has subjects by name")
	case p.Mode == "4k":
		return invalid("mode", "must be std or pro with element_list unless image_urls are given")
	default:
		return nil
	}
}

// setFrames writes images as omni-video's frames.
func (r *request) setFrames(p *params) error {
	if p.NegativePrompt != "" {
		return invalid("negative_prompt", "is not supported here")
	}
	if len(p.ImageURLs) > len(frameTypes) {
		return invalid("image_urls", fmt.Sprintf("takes at most %d images here", len(frameTypes)))
	}
	if len(p.ImageURLs) == 0 { // otherwise the video has the ratio of the frame
		r.AspectRatio = p.AspectRatio
	}
	for i, link := range p.ImageURLs {
		r.ImageList = append(r.ImageList, imageItem{ImageURL: link, Type: frameTypes[i]})
	}
	return nil
}

// setReferences writes images and videos as omni-video's references.
func (r *request) setReferences(p *params) error {
	r.AspectRatio = p.AspectRatio
	for _, link := range p.ImageURLs {
		r.ImageList = append(r.ImageList, imageItem{ImageURL: link})
	}
	for _, v := range p.VideoList {
		r.VideoList = append(r.VideoList, videoItem(v))
	}
	if len(r.VideoList) > 0 && r.Sound == "on" {
		return invalid("audio", "cannot be made for a request with a video")
	}
	return nil
}

// setElements writes subjects by id as elements. The vendor has no record of the others, so it gets
// their pictures. These follow the request's own images, in the order in which the prompt numbers
// them.
func (r *request) setElements(p *params) error {
	for i, e := range p.ElementList {
		if e.byName() {
			if len(e.Pictures) == 0 {
				return invalid(fmt.Sprintf("element_list[%d].name", i), "is not supported here; give element_id")
			}
			for _, link := range e.Pictures {
				r.ImageList = append(r.ImageList, imageItem{ImageURL: link})
			}
			continue
		}
		id, err := strconv.ParseInt(e.ElementID.String(), 10, 64)
		if err != nil {
			return invalid(fmt.Sprintf("element_list[%d].element_id", i), "must be an integer")
		}
		r.ElementList = append(r.ElementList, elementItem{ElementID: id})
	}
	return nil
}

// invalid returns the error about a field. rule follows the name of the field in the message.
func invalid(field, rule string) error { return mediagate.Invalid(field, "%s %s", field, rule) }

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// parseInteger reads an integer in any form, such as 5 or 5.0.
func parseInteger(n json.Number) (int, error) {
	f, err := n.Float64()
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1e9 {
		return 0, fmt.Errorf("%q is no integer", n)
	}
	return int(f), nil
}
