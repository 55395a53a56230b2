package minimax

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// The bounds of a picture within a request.
const (
	frameBytes = 20 << 20 // a frame of the first generation must be smaller
	frameSide  = 300      // its short side must be longer

	imageBytes   = 30 << 20
	imageSideMin = 256
	imageSideMax = 5760
)

const adaptive = "adaptive"

// shortSides holds the short side in pixels of each resolution of both generations.
var shortSides = map[string]int{"512P": 512, "768P": 768, "1080P": 1080, "2K": 1440}

// jobFirst returns the job of a request of the first generation.
func jobFirst(b kernel.Body) (*kernel.Job, error) {
	shape := kernel.Picture{Width: 16, Height: 9}
	for _, field := range []string{"last_frame_image", "first_frame_image"} {
		link := b.Text(field)
		if link == "" || kernel.IsLink(link) {
			continue
		}
		p, size, err := kernel.InlinePicture(link)
		switch {
		case err != nil:
			return nil, kernel.NewViolation(field, "%s", err)
		case size >= frameBytes:
			return nil, kernel.NewViolation(field, "must be smaller than %d bytes", frameBytes)
		case min(p.Width, p.Height) <= frameSide:
			return nil, kernel.NewViolation(field, "must have more than %d pixels on the short side", frameSide)
		case 5*p.Width < 2*p.Height || 5*p.Height < 2*p.Width:
			return nil, kernel.NewViolation(field, "must have a ratio from 2:5 to 5:2")
		}
		shape = p
	}
	return job(b, b.Text("prompt"), cmp.Or(b.Int("duration"), 6), shape), nil
}

// jobSecond returns the job of a request of the second generation.
func jobSecond(b kernel.Body) (*kernel.Job, error) {
	var (
		prompt string
		images int
		shape  kernel.Picture // of the first picture given as base64
		ratio  = cmp.Or(b.Text("ratio"), adaptive)
	)
	for i, item := range b.List("content") {
		prompt += item.Text("text")
		link := item.Text("image_url.url")
		if link == "" {
			continue
		}
		images++
		if item.Text("role") == "first_frame" {
			ratio = adaptive // the frame's ratio overrides the request's
		}
		if kernel.IsLink(link) {
			continue
		}
		field := fmt.Sprintf("content[%d].image_url.url", i)
		p, size, err := kernel.InlinePicture(link)
		switch {
		case err != nil:
			return nil, kernel.NewViolation(field, "%s", err)
		case size > imageBytes:
			return nil, kernel.NewViolation(field, "is larger than %d bytes", imageBytes)
		case min(p.Width, p.Height) < imageSideMin || max(p.Width, p.Height) > imageSideMax:
			return nil, kernel.NewViolation(field, "must have %d to %d pixels a side", imageSideMin, imageSideMax)
		case shape.Width == 0:
			shape = p
		}
	}
	switch {
	case ratio != adaptive:
		shape.Width, shape.Height = kernel.Ratio(ratio)
	case shape.Width == 0:
		shape.Width, shape.Height = 16, 9
	case 9*shape.Width > 21*shape.Height: // the vendor makes no wider video
		shape.Width, shape.Height = 21, 9
	case 16*shape.Width < 9*shape.Height:
		shape.Width, shape.Height = 9, 16
	}
	j := job(b, prompt, cmp.Or(b.Int("duration"), 5), shape)
	j.Media.Sound = true
	j.Detail = map[string]string{"resolution": resolutionOf(b), "ratio": ratio, "input_images": strconv.Itoa(images)}
	return j, nil
}

func resolutionOf(b kernel.Body) string { return cmp.Or(b.Text("resolution"), "768P") }

func job(b kernel.Body, prompt string, seconds int, shape kernel.Picture) *kernel.Job {
	width, height := kernel.Pixels(shortSides[resolutionOf(b)], shape.Width, shape.Height)
	return &kernel.Job{
		ID: kernel.NumericID(idDigits), CallbackURL: b.Text("callback_url"), Model: b.Text("model"), Prompt: prompt,
		Media: kernel.Media{
			Kind: "video", Width: width, Height: height, Seconds: seconds, Watermark: b.Flag("aigc_watermark", false),
		},
	}
}
