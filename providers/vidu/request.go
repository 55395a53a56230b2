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
	// payload and the address for callbacks, which are not known before there is a task.
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
	CallbackURL string      `json:"callback_url,omitempty"`
}

// wire is a job in the vendor's words: where it is sent, and what is sent.
type wire struct {
	path   string
	body   any
	marked bool // the client wants the file with a watermark
}

// write writes the job. Its errors are of KindInvalid and name the field, or of
// KindNotFound for an operation that is none.
func write(job mediagate.Job) (*wire, error) {
	switch job.Operation {
	case opReference:
		return newReference(job)
	case opBaseVideo:
		return newBase(job)
	default:
		return nil, mediagate.Errorf(mediagate.KindNotFound, "operation %q is unknown here", job.Operation)
	}
}

// bounded holds a prompt and a number of images to the vendor's bounds.
func bounded(prompt string, images, least int) error {
	switch {
	case utf8.RuneCountInString(prompt) > promptMax:
		return mediagate.Invalid("prompt", "prompt must be a string of at most %d characters", promptMax)
	case images < least || images > imagesMax:
		return mediagate.Invalid("image_urls", "image_urls must be an array of %d to %d items", least, imagesMax)
	default:
		return nil
	}
}

// fits holds a request without its payload to the vendor's bound.
func fits(r any) error {
	body, err := vendorhttp.Encode(r)
	if err != nil {
		return mediagate.Errorf(mediagate.KindInvalid, "the request cannot be written: %w", err)
	}
	if len(body) > bodyMax {
		return mediagate.Invalid("image_urls", "image_urls makes the request larger than %d bytes", bodyMax)
	}
	return nil
}

// newReference writes a video of references.
func newReference(job mediagate.Job) (*wire, error) {
	p := new(params)
	if err := vendorhttp.DecodeParams(job.Params, p); err != nil {
		return nil, err
	}
	if err := bounded(p.Prompt, len(p.ImageURLs), 1); err != nil {
		return nil, err
	}
	r := &request{
		Model: job.Upstream, Images: p.ImageURLs, Prompt: p.Prompt, Duration: p.Duration, Seed: p.Seed,
		AspectRatio: p.AspectRatio, Resolution: p.Resolution, Audio: p.Audio == nil || *p.Audio, Watermark: p.Watermark,
	}
	if err := fits(r); err != nil {
		return nil, err
	}
	r.Payload, r.CallbackURL = job.ExternalID, job.CallbackURL
	return &wire{path: referencePath, body: r, marked: p.Watermark}, nil
}
