package googleapi

import (
	"cmp"
	"fmt"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// BaseFields are those of the base contract that Veo takes on both surfaces.
func BaseFields() []string {
	return []string{"prompt", "image_urls", "duration", "resolution", "aspect_ratio"}
}

// baseFrames is how many images of the base contract there may be: the first
// frame and the last.
const baseFrames = 2

// DecodeBase reads a request of the base contract, of whose fields the surface
// takes the given ones. There is sound, as on the surface that has no choice;
// what else the client leaves open is the vendor's own default. Lengths are not
// judged: they differ from model to model.
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
		Prompt: b.Prompt, Duration: b.Duration, AspectRatio: b.AspectRatio, Resolution: b.Resolution, Seed: b.Seed, GenerateAudio: &sound,
	}
	for i, frame := range []*string{&v.FirstFrame, &v.LastFrame} {
		if i < len(b.ImageURLs) {
			*frame = b.ImageURLs[i]
			v.frameFields[i] = fmt.Sprintf("image_urls[%d]", i)
		}
	}
	return v, nil
}

// frameField is the name that the client has for a frame.
func (v *Video) frameField(i int, name string) string { return cmp.Or(v.frameFields[i], name) }
