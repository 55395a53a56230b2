package vidu

import (
	"cmp"
	"strconv"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// credits holds the price of a second, by model and resolution.
var credits = map[string]map[string]int{
	"viduq3-mix":   {"720p": 25, "1080p": 30},
	"viduq3":       {"540p": 10, "720p": 20, "1080p": 25},
	"viduq3-pro":   {"540p": 10, "720p": 25, "1080p": 30},
	"viduq3-turbo": {"540p": 8, "720p": 12, "1080p": 16},
}

var shortSides = map[string]int{"540p": 540, "720p": 720, "1080p": 1080}

// job returns the job of a request to any endpoint.
func job(b kernel.Body) (*kernel.Job, error) {
	width, height := 16, 9 // for auto too, because images are not fetched
	if ratio := cmp.Or(b.Text("aspect_ratio"), "16:9"); ratio != "auto" {
		width, height = kernel.Ratio(ratio)
	}
	model, resolution, seconds := b.Text("model"), cmp.Or(b.Text("resolution"), "720p"), cmp.Or(b.Int("duration"), 5)
	width, height = kernel.Pixels(shortSides[resolution], width, height)
	return &kernel.Job{
		ID: kernel.NumericID(idDigits), CallbackURL: b.Text("callback_url"), Model: model, Prompt: b.Text("prompt"),
		Media: kernel.Media{
			Kind: "video", Width: width, Height: height, Seconds: seconds, Sound: b.Flag("audio", true), Watermark: true,
		},
		Detail: map[string]string{
			"credits": strconv.Itoa(seconds * credits[model][resolution]), "payload": b.Text("payload"),
		},
	}, nil
}
