package gemini

import (
	"cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// opBaseImage makes images of requests of the base contract.
const opBaseImage = "base_image"

func baseFields() []string {
	return []string{"prompt", "image_urls", "resolution", "size", "aspect_ratio", "n"}
}

// decodeBase reads a request of the base contract as one of opImage. size and aspect_ratio both
// name the ratio.
func decodeBase(job mediagate.Job) (*params, error) {
	b, err := vendorhttp.DecodeBase(job, baseFields())
	if err != nil {
		return nil, err
	}
	if b.Size != "" && b.AspectRatio != "" && b.Size != b.AspectRatio {
		return nil, mediagate.Invalid("size", "size and aspect_ratio are the same here: give one of them")
	}
	p := &params{Prompt: b.Prompt, Size: cmp.Or(b.Size, b.AspectRatio), Resolution: b.Resolution, N: b.N}
	for _, url := range b.ImageURLs {
		p.Images = append(p.Images, reference(url))
	}
	return p, nil
}
