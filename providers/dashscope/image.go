package dashscope

import (
	"github.com/mediagate/mediagate"
)

// imageParams are the fields of the gateway's request for an image.
type imageParams struct {
	Prompt       string `json:"prompt"`
	Size         string `json:"size"` // a ratio
	Resolution   string `json:"resolution"`
	PromptExtend bool   `json:"prompt_extend"`
}

// imagePixels holds the pixel sizes that the request states, by ratio and resolution.
var imagePixels = map[string]map[string]string{
	"1:1":  {"1K": "1024*1024", "2K": "2048*2048"},
	"4:3":  {"1K": "1152*864", "2K": "2048*1536"},
	"3:4":  {"1K": "864*1152", "2K": "1536*2048"},
	"16:9": {"1K": "1280*720", "2K": "2048*1152"},
	"9:16": {"1K": "720*1280", "2K": "1152*2048"},
	"3:2":  {"1K": "1248*832", "2K": "2048*1360"},
	"2:3":  {"1K": "832*1248", "2K": "1360*2048"},
}

type (
	imageInput struct {
		Messages []message `json:"messages"`
	}
	message struct {
		Role    string `json:"role"`
		Content []text `json:"content"`
	}
	text struct {
		Text string `json:"text"`
	}
	imageParameters struct {
		Size         string `json:"size"`
		PromptExtend bool   `json:"prompt_extend"`
	}
)

func newImage(job mediagate.Job) (*request, error) {
	p, err := decode[imageParams](job)
	if err != nil {
		return nil, err
	}
	size := imagePixels[p.Size][p.Resolution]
	if size == "" {
		// Without a size the vendor would choose one, and the client would get another image than
		// it pays for.
		return nil, mediagate.Invalid("size", "size has no pixel size here")
	}
	return imageRequest(job, p.Prompt, imageParameters{Size: size, PromptExtend: p.PromptExtend}), nil
}

func imageRequest(job mediagate.Job, prompt string, p imageParameters) *request {
	return &request{
		Model:      job.Upstream,
		Input:      imageInput{Messages: []message{{Role: "user", Content: []text{{Text: prompt}}}}},
		Parameters: p,
		path:       imagePath,
	}
}
