package vidu

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// The vendor's bounds.
const (
	promptMax = 5000 // characters
	imagesMax = 7

	// bodyMax is 20 MB in the smaller of its two readings, with room for the
	// payload, which is not known before there is a task.
	bodyMax = 20_000_000 - 1000
)

// params are the gateway's fields that the operation takes.
type params struct {
	Prompt      string      `json:"prompt"`
	ImageURLs   []string    `json:"image_urls"`
	Duration    json.Number `json:"duration"`
	Resolution  string      `json:"resolution"`
	AspectRatio string      `json:"aspect_ratio"`
	Seed        json.Number `json:"seed"`
	Audio       *bool       `json:"audio"`
	Watermark   bool        `json:"watermark"`
}

// request is a job in the vendor's words. What decides how the file sounds and
// looks always travels: the vendor's own defaults differ from route to route.
type request struct {
	Model       string      `json:"model"`
	Images      []string    `json:"images"`
	Prompt      string      `json:"prompt"`
	Duration    json.Number `json:"duration,omitempty"`
	Seed        json.Number `json:"seed,omitempty"`
	AspectRatio string      `json:"aspect_ratio,omitempty"`
	Resolution  string      `json:"resolution,omitempty"`
	Audio       bool        `json:"audio"`
	Watermark   bool        `json:"watermark"`
	Payload     string      `json:"payload,omitempty"`
}

// newRequest writes the job. Its errors are of KindInvalid and name the field,
// or of KindNotFound for an operation that is none.
func newRequest(job mediagate.Job) (*request, error) {
	if job.Operation != opReference {
		return nil, mediagate.Errorf(mediagate.KindNotFound, "operation %q is unknown here", job.Operation)
	}
	p := new(params)
	if err := vendorhttp.DecodeParams(job.Params, p); err != nil {
		return nil, err
	}
	switch n := len(p.ImageURLs); {
	case utf8.RuneCountInString(p.Prompt) > promptMax:
		return nil, mediagate.Invalid("prompt", "prompt must be a string of at most %d characters", promptMax)
	case n < 1 || n > imagesMax:
		return nil, mediagate.Invalid("image_urls", "image_urls must be an array of 1 to %d items", imagesMax)
	}
	r := &request{
		Model: job.Upstream, Images: p.ImageURLs, Prompt: p.Prompt, Duration: p.Duration, Seed: p.Seed,
		AspectRatio: p.AspectRatio, Resolution: p.Resolution, Audio: p.Audio == nil || *p.Audio, Watermark: p.Watermark,
	}
	body, err := vendorhttp.Encode(r)
	if err != nil {
		return nil, mediagate.Errorf(mediagate.KindInvalid, "the request cannot be written: %w", err)
	}
	if len(body) > bodyMax {
		return nil, mediagate.Invalid("image_urls", "image_urls makes the request larger than %d bytes", bodyMax)
	}
	r.Payload = job.ExternalID
	return r, nil
}
