package minimax

import (
	"cmp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// opBaseVideo makes videos of requests of the base contract, by the first
// generation.
const opBaseVideo = "base_video"

func baseFields() []string { return []string{"prompt", "image_urls", "duration", "resolution"} }

// newBase writes a request of the base contract. The images are the first frame
// and the last; what the client leaves open is the vendor's own default.
func newBase(job mediagate.Job) (*first, error) {
	b, err := vendorhttp.DecodeBase(job, baseFields())
	if err != nil {
		return nil, err
	}
	duration, err := strconv.ParseInt(wholeOf(cmp.Or(b.Duration, "6")), 10, 32)
	switch {
	case err != nil:
		return nil, mediagate.Invalid("duration", "duration must be an integer")
	case len(b.ImageURLs) > 2:
		return nil, mediagate.Invalid("image_urls", "image_urls takes at most 2 images here")
	case utf8.RuneCountInString(b.Prompt) > firstPrompt:
		return nil, mediagate.Invalid("prompt", "prompt must be a string of at most %d characters", firstPrompt)
	}
	r := &first{Model: job.Upstream, Prompt: b.Prompt, Duration: duration, Resolution: strings.ToUpper(cmp.Or(b.Resolution, "768P")), CallbackURL: job.CallbackURL}
	for i, frame := range []*string{&r.FirstFrame, &r.LastFrame} {
		if i < len(b.ImageURLs) {
			*frame = b.ImageURLs[i]
		}
	}
	return r, nil
}
