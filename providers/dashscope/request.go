package dashscope

import (
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

const opImage = "image"

// submitTimeout bounds a submission, which lasts as long as the generation.
const submitTimeout = 150 * time.Second

// Description is what the adapter says of itself.
func Description() providers.Description {
	return providers.Description{
		Credentials: []string{"api_key"},
		Operations: map[string]providers.Operation{
			opImage: {Fields: imageFields(), Media: "image", Sync: true, Submit: submitTimeout},
		},
	}
}

func imageFields() []string { return []string{"prompt", "size", "resolution", "prompt_extend"} }

// params are the gateway's own fields that this vendor takes.
type params struct {
	Prompt       string `json:"prompt"`
	Size         string `json:"size"` // a ratio
	Resolution   string `json:"resolution"`
	PromptExtend bool   `json:"prompt_extend"`
}

// pixels are the sizes that the vendor is asked for, by ratio and resolution.
var pixels = map[string]map[string]string{
	"1:1":  {"1K": "1024*1024", "2K": "2048*2048"},
	"4:3":  {"1K": "1152*864", "2K": "2048*1536"},
	"3:4":  {"1K": "864*1152", "2K": "1536*2048"},
	"16:9": {"1K": "1280*720", "2K": "2048*1152"},
	"9:16": {"1K": "720*1280", "2K": "1152*2048"},
	"3:2":  {"1K": "1248*832", "2K": "2048*1360"},
	"2:3":  {"1K": "832*1248", "2K": "1360*2048"},
}

type (
	request struct {
		Model      string     `json:"model"`
		Input      input      `json:"input"`
		Parameters parameters `json:"parameters"`
	}
	input struct {
		Messages []message `json:"messages"`
	}
	message struct {
		Role    string `json:"role"`
		Content []text `json:"content"`
	}
	text struct {
		Text string `json:"text"`
	}
	parameters struct {
		Size         string `json:"size"`
		PromptExtend bool   `json:"prompt_extend"`
	}
)

// Express says whether the vendor can be told the job's request, as Submit
// would tell it. Channels have no options.
func Express(job mediagate.Job, _ map[string]string) error {
	_, err := write(job)
	return err
}

// write puts the job in the vendor's words.
func write(job mediagate.Job) (*request, error) {
	if job.Operation != opImage {
		return nil, mediagate.Errorf(mediagate.KindNotFound, "operation %q is unknown here", job.Operation)
	}
	var p params
	if err := vendorhttp.DecodeParams(job.Params, &p, imageFields()...); err != nil {
		return nil, err
	}
	size := pixels[p.Size][p.Resolution]
	if size == "" {
		// Without one the vendor would choose, and the client would get
		// another image than it paid for.
		return nil, mediagate.Invalid("size", "size has no pixel size here")
	}
	return &request{
		Model:      job.Upstream,
		Input:      input{Messages: []message{{Role: "user", Content: []text{{Text: p.Prompt}}}}},
		Parameters: parameters{Size: size, PromptExtend: p.PromptExtend},
	}, nil
}
