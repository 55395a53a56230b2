package dashscope

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// The bounds of the pixels of an image of z-image-turbo.
const (
	pixelsMin = 512 * 512
	pixelsMax = 2048 * 2048
)

// pixels720 is the largest number of pixels of a video that counts as 720P, for every ratio.
const pixels720 = 1280 * 720

// defaults are the default parameters of a model that makes videos.
type defaults struct {
	size, resolution, mode string
	sound                  bool
}

var videoModels = map[string]defaults{
	"wan2.6-t2v":       {size: "1920*1080", sound: true},
	"wan2.6-i2v":       {resolution: "1080P", sound: true},
	"wan2.6-r2v":       {size: "1920*1080", sound: true},
	"wan2.7-t2v":       {resolution: "1080P", sound: true},
	"wan2.7-i2v":       {resolution: "1080P", sound: true},
	"wan2.7-r2v":       {resolution: "1080P", sound: true},
	"wan2.7-videoedit": {resolution: "1080P", sound: true},

	"kling/kling-v3-video-generation":      {mode: "pro"},
	"kling/kling-v3-omni-video-generation": {mode: "pro"},

	"vidu/viduq3-mix_reference2video": {resolution: "720P", size: "1280*720"},
	"vidu/viduq3_reference2video":     {resolution: "720P", size: "1280*720"},
}

// operation returns the name of a model's schema.
func operation(model string) string { return model[strings.Index(model, "/")+1:] }

// image returns the job of a request for an image.
func image(b kernel.Body) (*kernel.Job, error) {
	width, height := parseSize(cmp.Or(b.Text("parameters.size"), "1024*1024"))
	if n := width * height; n < pixelsMin || n > pixelsMax {
		return nil, kernel.NewViolation("parameters.size", "must be W*H with 512*512 to 2048*2048 pixels")
	}
	j := &kernel.Job{
		ID: kernel.UUID(), Endpoint: images, Model: b.Text("model"),
		Prompt: b.List("input.messages")[0].List("content")[0].Text("text"),
		Media:  kernel.Media{Kind: "image", Width: width, Height: height}, Detail: map[string]string{},
	}
	if b.Flag("parameters.prompt_extend", false) {
		j.Detail[detailExtended] = "yes"
	}
	return j, nil
}

// video returns the job of a request for a video.
func video(b kernel.Body) (*kernel.Job, error) {
	model, seconds := b.Text("model"), b.Int("parameters.duration")
	editing := model == "wan2.7-videoedit"
	if !editing {
		seconds = cmp.Or(seconds, 5)
	}
	prompt, err := promptOf(b, seconds)
	if err != nil {
		return nil, err
	}
	usual := videoModels[model]
	resolution, ratio := cmp.Or(b.Text("parameters.resolution"), usual.resolution), b.Text("parameters.ratio")
	if usual.mode != "" {
		mode := cmp.Or(b.Text("parameters.mode"), usual.mode)
		resolution, ratio = map[string]string{"std": "720P", "pro": "1080P"}[mode], b.Text("parameters.aspect_ratio")
	}
	width, height := parseSize(cmp.Or(b.Text("parameters.size"), usual.size))
	switch {
	case width == 0:
		width, height = sizeFor(resolution, ratio)
	case resolution == "" && width*height <= pixels720:
		resolution = "720P"
	case resolution == "":
		resolution = "1080P"
	}
	j := &kernel.Job{
		ID: kernel.UUID(), Endpoint: videos, Model: model, Prompt: prompt,
		Media: kernel.Media{
			Kind: "video", Width: width, Height: height, Seconds: seconds, Sound: b.Flag("parameters.audio", usual.sound),
			Watermark: b.Flag("parameters.watermark", false),
		},
		Detail: map[string]string{detailSR: strings.TrimSuffix(resolution, "P")},
	}
	switch {
	case usual.mode != "":
		j.Detail[detailKling] = "yes"
	case seconds == 0: // an edit is as long as its source
		j.Media.Seconds = sourceSeconds
		j.Detail[detailInput], j.Detail[detailSeconds] = sourceLength, sourceLength
	case editing:
		j.Detail[detailInput] = strconv.Itoa(seconds)
	case refersToVideo(b):
		j.Detail[detailInput] = sourceLength
	}
	return j, nil
}

// videoURL matches the URL of a video. Like the vendor, the sandbox tells videos from images by
// the name of the file.
var videoURL = regexp.MustCompile(`^[^?]*\.(mp4|mov)(\?|$)`)

func refersToVideo(b kernel.Body) bool {
	film := func(item kernel.Body) bool { return item.Text("type") == "reference_video" }
	return slices.ContainsFunc(b.Texts("input.reference_urls"), videoURL.MatchString) ||
		slices.ContainsFunc(b.List("input.media"), film)
}

// promptOf returns the prompt. If it is blank because the customer gives a prompt for each shot,
// promptOf returns the prompt of the first shot. It also checks the shots' indexes and durations.
func promptOf(b kernel.Body, seconds int) (string, error) {
	shots := b.List("input.multi_prompt")
	prompt, sum, seen := b.Text("input.prompt"), 0, map[int]bool{}
	for _, shot := range shots {
		index := shot.Int("index")
		if seen[index] || index > len(shots) {
			return "", kernel.NewViolation("input.multi_prompt", "the indexes are not 1 to %d", len(shots))
		}
		seen[index] = true
		sum += shot.Int("duration")
		if strings.TrimSpace(prompt) == "" {
			prompt = shot.Text("prompt")
		}
	}
	if len(shots) > 0 && sum != seconds {
		return "", kernel.NewViolation("input.multi_prompt", "the shots last %d s, the video %d s", sum, seconds)
	}
	return prompt, nil
}

// parseSize parses a size such as 1280*720.
func parseSize(size string) (width, height int) {
	w, h, _ := strings.Cut(size, "*")
	width, _ = strconv.Atoi(w)
	height, _ = strconv.Atoi(h)
	return width, height
}

// sizeFor returns the size of a video with the resolution and ratio. Without a ratio, the vendor
// uses that of a frame or a source video. The sandbox does not fetch these and uses 16:9.
func sizeFor(resolution, ratio string) (width, height int) {
	if ratio == "" {
		ratio = "16:9"
	}
	short, _ := strconv.Atoi(strings.TrimSuffix(resolution, "P"))
	wide, high := kernel.Ratio(ratio)
	return kernel.Pixels(short, wide, high)
}
