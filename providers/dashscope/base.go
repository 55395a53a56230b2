package dashscope

import (
	"cmp"
	"regexp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// opBaseImage makes images of requests of the base contract.
const opBaseImage = "base_image"

var baseImageFields = []string{"prompt", "resolution", "size", "aspect_ratio"}

// newBaseImage writes a request of the base contract as an image.
func newBaseImage(job mediagate.Job) (*request, error) {
	prompt, size, err := decodeBaseImage(job)
	if err != nil {
		return nil, err
	}
	return imageRequest(job, prompt, imageParameters{Size: size}), nil
}

var inPixels = regexp.MustCompile(`^([0-9]{2,5})[xX*]([0-9]{2,5})$`)

// decodeBaseImage reads a request of the base contract: a size is a ratio, or
// width and height in pixels.
func decodeBaseImage(job mediagate.Job) (prompt, size string, err error) {
	b, err := vendorhttp.DecodeBase(job, baseImageFields)
	if err != nil {
		return "", "", err
	}
	if sides := inPixels.FindStringSubmatch(b.Size); sides != nil {
		if b.Resolution != "" || b.AspectRatio != "" {
			return "", "", mediagate.Invalid("size", "size in pixels excludes resolution and aspect_ratio")
		}
		return b.Prompt, sides[1] + "*" + sides[2], nil
	}
	if b.Size != "" && b.AspectRatio != "" && b.Size != b.AspectRatio {
		return "", "", mediagate.Invalid("size", "size and aspect_ratio are the same here: give one of them")
	}
	size = imagePixels[cmp.Or(b.Size, b.AspectRatio, "1:1")][cmp.Or(b.Resolution, "1K")]
	if size == "" {
		return "", "", mediagate.Invalid("size", "size has no pixel size here")
	}
	return b.Prompt, size, nil
}
