package dashscope

import (
	"cmp"
	"regexp"
	"strings"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// The operations for requests of the base contract.
const (
	opBaseImage = "base_image"
	opBaseVideo = "base_video"
)

var (
	baseImageFields = []string{"prompt", "resolution", "size", "aspect_ratio"}
	baseVideoFields = []string{"prompt", "image_urls", "duration", "resolution", "aspect_ratio", "seed"}
)

// newBaseImage writes a request of the base contract as an image.
func newBaseImage(job mediagate.Job) (*request, error) {
	prompt, size, err := decodeBaseImage(job)
	if err != nil {
		return nil, err
	}
	return imageRequest(job, prompt, imageParameters{Size: size}), nil
}

var pixelSizePattern = regexp.MustCompile(`^([0-9]{2,5})[xX*]([0-9]{2,5})$`)

// decodeBaseImage reads a request of the base contract. size is a ratio, or a width and a height in
// pixels.
func decodeBaseImage(job mediagate.Job) (prompt, size string, err error) {
	b, err := vendorhttp.DecodeBase(job, baseImageFields)
	if err != nil {
		return "", "", err
	}
	if sides := pixelSizePattern.FindStringSubmatch(b.Size); sides != nil {
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

// olderWanPattern matches the names of Wan's models with the older protocol.
var olderWanPattern = regexp.MustCompile(`^wan(x|2\.[0-6](-|$))`)

// newBaseVideo writes a request of the base contract as a video. The upstream's name selects the
// protocol: names of Kling's and Vidu's models begin with the maker, and all others are Wan's. The
// default is five seconds of 720P in 16:9.
func newBaseVideo(job mediagate.Job) (*request, error) {
	b, err := vendorhttp.DecodeBase(job, baseVideoFields)
	if err != nil {
		return nil, err
	}
	b.Duration = cmp.Or(b.Duration, "5")
	b.Resolution, b.AspectRatio = strings.ToUpper(cmp.Or(b.Resolution, "720P")), cmp.Or(b.AspectRatio, "16:9")
	r := &request{Model: job.Upstream, path: videoPath}
	switch {
	case strings.HasPrefix(job.Upstream, "kling/"):
		r.Input, r.Parameters, err = baseKling(b)
	case strings.HasPrefix(job.Upstream, "vidu/"):
		p := &viduParams{
			Prompt: b.Prompt, ImageURLs: b.ImageURLs, Duration: b.Duration,
			Resolution: b.Resolution, AspectRatio: b.AspectRatio,
			Seed: b.Seed, Audio: true,
		}
		r.Input, r.Parameters, err = p.write()
	default:
		r.Input, r.Parameters, err = baseWan(job.Upstream, b)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// klingModes maps resolutions to Kling's modes.
var klingModes = map[string]string{"720P": "std", "1080P": "pro"}

func baseKling(b vendorhttp.Base) (*klingInput, *klingParameters, error) {
	mode := klingModes[b.Resolution]
	switch {
	case b.Seed != "":
		return nil, nil, invalid("seed", "is not supported here")
	case mode == "":
		return nil, nil, invalid("resolution", "must be 720p or 1080p here")
	}
	p := &klingParams{
		Prompt: b.Prompt, Mode: mode, Duration: b.Duration, AspectRatio: b.AspectRatio, ImageURLs: b.ImageURLs,
	}
	return p.write()
}

// baseWan writes a request for a model of Wan. Images are references if the model's name contains
// -r2v, otherwise the first frame and the last.
func baseWan(upstream string, b vendorhttp.Base) (in *wanInput, out *wanParameters, err error) {
	older, takesReferences := olderWanPattern.MatchString(upstream), strings.Contains(upstream, fromReferences)
	prompt, maxImages := maxWanV2Prompt, len(frames)
	if older {
		prompt, maxImages = maxWanPrompt, 1
	}
	if takesReferences {
		maxImages = maxReferences
	}
	if len(b.ImageURLs) > maxImages {
		return nil, nil, mediagate.Invalid("image_urls", "image_urls takes at most %d images here", maxImages)
	}
	if err := checkLength("prompt", b.Prompt, prompt); err != nil {
		return nil, nil, err
	}
	in, out = &wanInput{Prompt: b.Prompt}, &wanParameters{}
	if out.Duration, err = parseInteger("duration", b.Duration); err != nil {
		return nil, nil, err
	}
	if out.Seed, err = parseSeed(b.Seed); err != nil {
		return nil, nil, err
	}
	framed := len(b.ImageURLs) > 0 && !takesReferences // the video then has the ratio of its frame
	if older {
		if framed {
			in.Image, out.Resolution = b.ImageURLs[0], b.Resolution
			return in, out, nil
		}
		if out.Size = wanPixels[b.Resolution][b.AspectRatio]; out.Size == "" {
			return nil, nil, invalid("aspect_ratio", "has no pixel size here with this resolution")
		}
		in.References = b.ImageURLs
		return in, out, nil
	}
	out.Resolution = b.Resolution
	if !framed {
		out.Ratio = b.AspectRatio
	}
	for i, link := range b.ImageURLs {
		kind := "reference_image"
		if framed {
			kind = frames[i]
		}
		in.Media = append(in.Media, media{Type: kind, URL: link})
	}
	return in, out, nil
}
