package vidu

import (
	"encoding/json"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// opBaseVideo makes videos of requests of the base contract.
const opBaseVideo = "base_video"

func baseFields() []string {
	return []string{"prompt", "image_urls", "duration", "resolution", "aspect_ratio", "seed"}
}

// basePaths are the endpoints by the number of images: of text, of a first
// frame, of a first and a last one. More are references.
var basePaths = []string{"/text2video", "/img2video", "/start-end2video"}

// baseRequest is a request of the base contract in the vendor's words. Sound is
// not spoken of, as not every model has it.
type baseRequest struct {
	Model       string      `json:"model"`
	Images      []string    `json:"images,omitempty"`
	Prompt      string      `json:"prompt"`
	Duration    json.Number `json:"duration,omitempty"`
	Seed        json.Number `json:"seed,omitempty"`
	AspectRatio string      `json:"aspect_ratio,omitempty"`
	Resolution  string      `json:"resolution,omitempty"`
	Payload     string      `json:"payload,omitempty"`
	CallbackURL string      `json:"callback_url,omitempty"`
}

// newBase writes a request of the base contract. What the client leaves open is
// left to the vendor.
func newBase(job mediagate.Job) (*wire, error) {
	b, err := vendorhttp.DecodeBase(job, baseFields())
	if err != nil {
		return nil, err
	}
	n := len(b.ImageURLs)
	if err := bounded(b.Prompt, n, 0); err != nil {
		return nil, err
	}
	r := &baseRequest{
		Model: job.Upstream, Images: b.ImageURLs, Prompt: b.Prompt, Duration: b.Duration, Seed: b.Seed, AspectRatio: b.AspectRatio,
		Resolution: b.Resolution,
	}
	path := referencePath
	if n < len(basePaths) {
		path = basePaths[n]
		if n > 0 { // the video follows its frame
			r.AspectRatio = ""
		}
	}
	if err := fits(r); err != nil {
		return nil, err
	}
	r.Payload, r.CallbackURL = job.ExternalID, job.CallbackURL
	return &wire{path: path, body: r}, nil
}
