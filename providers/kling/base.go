package kling

import (
	"cmp"
	"strings"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// opBaseVideo makes videos from requests of the base contract, at the endpoints of opVideo.
const opBaseVideo = "base_video"

func baseFields() []string {
	return []string{"prompt", "image_urls", "duration", "resolution", "aspect_ratio"}
}

// modes maps resolutions to the vendor's modes.
var modes = map[string]string{"720p": "std", "1080p": "pro", "4k": "4k"}

// readBase reads a request of the base contract as one of opVideo. The defaults for fields that the
// client leaves open are those of the vendor.
func readBase(job mediagate.Job, bound int) (*params, error) {
	b, err := vendorhttp.DecodeBase(job, baseFields())
	if err != nil {
		return nil, err
	}
	mode, ok := modes[cmp.Or(strings.ToLower(b.Resolution), "720p")]
	if !ok {
		return nil, invalid("resolution", "must be 720p, 1080p or 4k here")
	}
	return &params{
		Prompt: b.Prompt, ImageURLs: b.ImageURLs, Duration: cmp.Or(b.Duration, "5"), AspectRatio: b.AspectRatio,
		Mode: mode, bound: bound,
	}, nil
}
