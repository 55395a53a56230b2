package dashscope

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/mediagate/mediagate"
)

// klingParams are the fields of the gateway's request for a video by Kling. The vendor takes no
// negative prompt here.
type klingParams struct {
	Prompt      string      `json:"prompt"`
	Mode        string      `json:"mode"`
	Duration    json.Number `json:"duration"`
	AspectRatio string      `json:"aspect_ratio"`
	ImageURLs   []string    `json:"image_urls"`
	Watermark   bool        `json:"watermark"`
	Audio       bool        `json:"audio"`
	MultiShot   bool        `json:"multi_shot"`
	ShotType    string      `json:"shot_type"`
	MultiPrompt []struct {
		Index    json.Number `json:"index"`
		Prompt   string      `json:"prompt"`
		Duration json.Number `json:"duration"`
	} `json:"multi_prompt"`
}

// klingOmniParams are the fields of a video with subjects.
type klingOmniParams struct {
	klingParams

	ElementList []struct {
		ElementID json.Number `json:"element_id"`
		// These fields describe a subject that the vendor does not have on record.
		Name        string   `json:"name"`
		Description string   `json:"description"`
		Pictures    []string `json:"element_input_urls"`
	} `json:"element_list"`
}

type (
	klingInput struct {
		Prompt      string      `json:"prompt"`
		Media       []media     `json:"media,omitempty"`
		MultiShot   bool        `json:"multi_shot"`
		ShotType    string      `json:"shot_type,omitempty"`
		MultiPrompt []klingShot `json:"multi_prompt,omitempty"`
		ElementList []klingID   `json:"element_list,omitempty"`
	}
	klingShot struct {
		Index    int64  `json:"index"`
		Prompt   string `json:"prompt"`
		Duration int64  `json:"duration"`
	}
	klingID struct {
		ElementID int64 `json:"element_id"`
	}
	klingParameters struct {
		Mode        string `json:"mode"`
		AspectRatio string `json:"aspect_ratio,omitempty"`
		Duration    int64  `json:"duration"`
		Audio       bool   `json:"audio"`
		Watermark   bool   `json:"watermark"`
	}
)

// frames lists the types of the images, by their order.
var frames = []string{"first_frame", "last_frame"}

// newKling writes a video without subjects.
func newKling(job mediagate.Job) (*request, error) {
	p, err := decode[klingParams](job)
	if err != nil {
		return nil, err
	}
	in, out, err := p.write()
	if err != nil {
		return nil, err
	}
	return &request{Model: job.Upstream, Input: in, Parameters: out, path: videoPath, wantsWatermark: p.Watermark}, nil
}

// newKlingOmni writes a video with subjects that the vendor has on record.
func newKlingOmni(job mediagate.Job) (*request, error) {
	p, err := decode[klingOmniParams](job)
	if err != nil {
		return nil, err
	}
	if len(p.ElementList) == 0 {
		return nil, invalid("element_list", "is required")
	}
	in, out, err := p.write()
	if err != nil {
		return nil, err
	}
	for i, e := range p.ElementList {
		if e.ElementID == "" {
			return nil, invalid(fmt.Sprintf("element_list[%d].name", i), "is not possible here")
		}
		id, err := strconv.ParseInt(e.ElementID.String(), 10, 64)
		if err != nil {
			return nil, invalid(fmt.Sprintf("element_list[%d].element_id", i), "must be an integer")
		}
		in.ElementList = append(in.ElementList, klingID{id})
	}
	return &request{Model: job.Upstream, Input: in, Parameters: out, path: videoPath, wantsWatermark: p.Watermark}, nil
}

func (p *klingParams) write() (*klingInput, *klingParameters, error) {
	switch {
	case p.Mode != "std" && p.Mode != "pro":
		return nil, nil, invalid("mode", "must be std or pro here")
	case len(p.ImageURLs) > len(frames):
		return nil, nil, invalid("image_urls", fmt.Sprintf("takes at most %d images here", len(frames)))
	}
	seconds, err := parseInteger("duration", p.Duration)
	if err != nil {
		return nil, nil, err
	}
	in := &klingInput{Prompt: p.Prompt, MultiShot: p.MultiShot}
	out := &klingParameters{Mode: p.Mode, Duration: seconds, Audio: p.Audio, Watermark: p.Watermark}
	for i, link := range p.ImageURLs {
		in.Media = append(in.Media, media{Type: frames[i], URL: link})
	}
	if len(p.ImageURLs) == 0 { // otherwise the video has the ratio of its frame
		out.AspectRatio = p.AspectRatio
	}
	if !p.MultiShot {
		return in, out, nil
	}
	in.ShotType = p.ShotType
	for i, shot := range p.MultiPrompt {
		field := fmt.Sprintf("multi_prompt[%d].", i)
		index, err := parseInteger(field+"index", shot.Index)
		if err != nil {
			return nil, nil, err
		}
		seconds, err := parseInteger(field+"duration", shot.Duration)
		if err != nil {
			return nil, nil, err
		}
		in.MultiPrompt = append(in.MultiPrompt, klingShot{Index: index, Prompt: shot.Prompt, Duration: seconds})
	}
	return in, out, nil
}
