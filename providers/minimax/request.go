package minimax

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// request is a job in the vendor's words.
type request struct {
	path string
	body any
}

// newRequest writes the job. Its errors are of KindInvalid and name the field,
// or of KindNotFound for an operation that is none.
func newRequest(job mediagate.Job) (request, error) {
	switch job.Operation {
	case opVideo:
		body, err := newFirst(job)
		return request{firstPath, body}, err
	case opBaseVideo:
		body, err := newBase(job)
		return request{firstPath, body}, err
	case opSecond:
		body, err := newSecond(job)
		return request{secondPath, body}, err
	default:
		return request{}, mediagate.Errorf(mediagate.KindNotFound, "operation %q is unknown here", job.Operation)
	}
}

// firstParams are the gateway's fields that the first generation takes.
type firstParams struct {
	Prompt           string      `json:"prompt"`
	Duration         json.Number `json:"duration"`
	Resolution       string      `json:"resolution"`
	PromptOptimizer  *bool       `json:"prompt_optimizer"`
	FastPretreatment *bool       `json:"fast_pretreatment"`
	Watermark        bool        `json:"watermark"`
	FirstFrame       string      `json:"first_frame_image"`
	LastFrame        string      `json:"last_frame_image"`
}

// first is a request of the first generation.
type first struct {
	Model            string `json:"model"`
	Prompt           string `json:"prompt"`
	PromptOptimizer  *bool  `json:"prompt_optimizer,omitempty"`
	FastPretreatment *bool  `json:"fast_pretreatment,omitempty"` // the name is read at second hand
	Duration         int64  `json:"duration"`
	Resolution       string `json:"resolution"`
	FirstFrame       string `json:"first_frame_image,omitempty"`
	LastFrame        string `json:"last_frame_image,omitempty"`
	Watermark        bool   `json:"aigc_watermark"`
	CallbackURL      string `json:"callback_url,omitempty"`
}

// firstPrompt is the longest prompt of the first generation, in characters.
const firstPrompt = 2000

// seconds are the lengths that the first generation makes, by those that our
// clients may ask for: five is its six (spec: the vendor's nearest).
var seconds = map[string]int64{"5": 6, "10": 10}

func newFirst(job mediagate.Job) (*first, error) {
	p := new(firstParams)
	if err := vendorhttp.DecodeParams(job.Params, p); err != nil {
		return nil, err
	}
	duration, ok := seconds[wholeOf(p.Duration)]
	switch {
	case !ok:
		return nil, mediagate.Invalid("duration", "duration must be 5 or 10 here")
	case utf8.RuneCountInString(p.Prompt) > firstPrompt:
		return nil, mediagate.Invalid("prompt", "prompt must be a string of at most %d characters", firstPrompt)
	}
	return &first{
		Model: job.Upstream, Prompt: p.Prompt, PromptOptimizer: p.PromptOptimizer, FastPretreatment: p.FastPretreatment,
		Duration: duration, Resolution: strings.ToUpper(p.Resolution),
		FirstFrame: p.FirstFrame, LastFrame: p.LastFrame, Watermark: p.Watermark, CallbackURL: job.CallbackURL,
	}, nil
}

// wholeOf writes an integer without a fraction: 5.0 is 5.
func wholeOf(n json.Number) string {
	whole, fraction, _ := strings.Cut(n.String(), ".")
	if strings.Trim(fraction, "0") != "" {
		return n.String()
	}
	return whole
}

// secondParams are the gateway's fields that the second generation takes.
type secondParams struct {
	Prompt      string      `json:"prompt"`
	Duration    json.Number `json:"duration"`
	Resolution  string      `json:"resolution"`
	AspectRatio string      `json:"aspect_ratio"`
	ImageURLs   []string    `json:"image_urls"`
	VideoURLs   []string    `json:"video_urls"`
	AudioURLs   []string    `json:"audio_urls"`
	FirstFrame  string      `json:"first_frame_image"`
	LastFrame   string      `json:"last_frame_image"`
}

type (
	// second is a request of the second generation.
	second struct {
		Model       string      `json:"model"`
		Content     []content   `json:"content"`
		Resolution  string      `json:"resolution"`
		Duration    json.Number `json:"duration"`
		Ratio       string      `json:"ratio"`
		CallbackURL string      `json:"callback_url,omitempty"`
	}
	content struct {
		Type  string `json:"type"`
		Text  string `json:"text,omitempty"`
		Image *link  `json:"image_url,omitempty"`
		Video *link  `json:"video_url,omitempty"`
		Audio *link  `json:"audio_url,omitempty"`
		Role  string `json:"role,omitempty"`
	}
	link struct {
		URL string `json:"url"`
	}
)

// adaptive is the ratio of a video that follows its frames.
const adaptive = "adaptive"

func newSecond(job mediagate.Job) (*second, error) {
	p := new(secondParams)
	if err := vendorhttp.DecodeParams(job.Params, p); err != nil {
		return nil, err
	}
	r := &second{
		Model: job.Upstream, Resolution: p.Resolution, Duration: json.Number(wholeOf(p.Duration)), Ratio: p.AspectRatio,
		CallbackURL: job.CallbackURL,
	}
	if p.FirstFrame != "" || p.LastFrame != "" {
		r.Ratio = adaptive
	}
	if p.Prompt != "" {
		r.Content = append(r.Content, content{Type: "text", Text: p.Prompt})
	}
	image := func(url, role string) {
		if url != "" {
			r.Content = append(r.Content, content{Type: "image_url", Image: &link{url}, Role: role})
		}
	}
	image(p.FirstFrame, "first_frame")
	image(p.LastFrame, "last_frame")
	for _, url := range p.ImageURLs {
		image(url, "reference_image")
	}
	for _, url := range p.VideoURLs {
		r.Content = append(r.Content, content{Type: "video_url", Video: &link{url}, Role: "reference_video"})
	}
	for _, url := range p.AudioURLs {
		r.Content = append(r.Content, content{Type: "audio_url", Audio: &link{url}, Role: "reference_audio"})
	}
	return r, nil
}
