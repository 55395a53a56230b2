package googleapi

import (
	"cmp"
	"fmt"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// BaseFields returns the fields of the base contract that Veo takes on both surfaces.
func BaseFields() []string {
	return []string{"prompt", "image_urls", "duration", "resolution", "aspect_ratio"}
}

// baseFrames is the most images that a request of the base contract may have: the first frame and
// the last.
const baseFrames = 2

// DecodeBase reads a request of the base contract, of which the surface takes the given fields. The
// video always has sound, because one of the surfaces offers no choice. The vendor's defaults apply
// to everything else that the client leaves open. DecodeBase does not check the duration, because
// the allowed lengths differ from model to model.
func DecodeBase(job mediagate.Job, fields []string) (*Video, error) {
	b, err := vendorhttp.DecodeBase(job, fields)
	if err != nil {
		return nil, err
	}
	if len(b.ImageURLs) > baseFrames {
		return nil, mediagate.Invalid("image_urls", "image_urls takes at most %d images here", baseFrames)
	}
	sound := true
	v := &Video{
		Prompt: b.Prompt, Duration: b.Duration, AspectRatio: b.AspectRatio, Resolution: b.Resolution,
		Seed: b.Seed, GenerateAudio: &sound,
	}
	for i, frame := range []*string{&v.FirstFrame, &v.LastFrame} {
		if i < len(b.ImageURLs) {
			*frame = b.ImageURLs[i]
			v.frameFields[i] = fmt.Sprintf("image_urls[%d]", i)
		}
	}
	return v, nil
}

// frameField returns the client's name for frame i: that of the base contract, such as
// image_urls[1], or else name.
func (v *Video) frameField(i int, name string) string { return cmp.Or(v.frameFields[i], name) }
