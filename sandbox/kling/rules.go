package kling

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// The bounds that are not in a schema.
const (
	shotsMax      = 6
	shotPromptMax = 512
	refsMax       = 7 // images and elements together
	refsVideoMax  = 4 // images and elements together with a video
)

// olderJob returns the job of a request to an endpoint of the older generation.
func olderJob(endpoint string, b kernel.Body) (*kernel.Job, error) {
	model, mode := b.Text("model_name"), cmp.Or(b.Text("mode"), "std")
	if endpoint == omni {
		model, mode = cmp.Or(model, "kling-video-o1"), cmp.Or(b.Text("mode"), "pro")
	}
	seconds, _ := strconv.Atoi(cmp.Or(b.Text("duration"), "5"))
	prompt, err := promptOf(b, seconds)
	if err == nil && endpoint == omni {
		err = checkReferences(b)
	}
	if err != nil {
		return nil, err
	}
	width, height := pixels(mode, b.Text("aspect_ratio"))
	return &kernel.Job{
		ID: kernel.NumericID(idDigits), Model: model, Prompt: prompt,
		ExternalID: b.Text("external_task_id"), CallbackURL: b.Text("callback_url"), Media: kernel.Media{
			Kind: "video", Width: width, Height: height, Seconds: seconds, Sound: b.Text("sound") == "on",
			Watermark: b.Flag("watermark_info.enabled", false),
		},
	}, nil
}

// promptOf returns the prompt. If it is blank because the customer gives a prompt for each shot,
// promptOf joins the prompts of the shots. It also checks the shots' indexes and durations.
func promptOf(b kernel.Body, seconds int) (string, error) {
	prompt := b.Text("prompt")
	if !b.Flag("multi_shot", false) || b.Text("shot_type") != "customize" {
		return prompt, nil
	}
	shots, sum, seen, prompts := b.List("multi_prompt"), 0, map[int]bool{}, []string{}
	for _, shot := range shots {
		index := shot.Int("index")
		if seen[index] || index > len(shots) {
			return "", kernel.NewViolation("multi_prompt", "the indexes are not 1 to %d", len(shots))
		}
		seen[index] = true
		prompts = append(prompts, shot.Text("prompt"))
		length, _ := strconv.Atoi(shot.Text("duration"))
		sum += length
	}
	if sum != seconds {
		return "", kernel.NewViolation("multi_prompt", "the shots last %d s, the video %d s", sum, seconds)
	}
	if strings.TrimSpace(prompt) != "" {
		return prompt, nil
	}
	return strings.Join(prompts, "\n"), nil
}

var omniReference = regexp.MustCompile(`<<<(image|element|video)_(\d+)>>>`)

// checkReferences checks the number of images and elements, and checks that each reference in the prompts
// names a given image, element or video.
func checkReferences(b kernel.Body) error {
	given := map[string]int{}
	for _, kind := range []string{"image", "element", "video"} {
		given[kind] = len(b.List(kind + "_list"))
	}
	limit := refsMax
	if given["video"] > 0 {
		limit = refsVideoMax
	}
	if given["image"]+given["element"] > limit {
		return kernel.NewViolation("image_list", "images and elements together are at most %d here", limit)
	}
	prompts := []string{b.Text("prompt")}
	for _, shot := range b.List("multi_prompt") {
		prompts = append(prompts, shot.Text("prompt"))
	}
	for _, match := range omniReference.FindAllStringSubmatch(strings.Join(prompts, "\n"), -1) {
		if n, err := strconv.Atoi(match[2]); err != nil || n < 1 || n > given[match[1]] {
			return kernel.NewViolation("prompt", "%s refers to nothing", match[0])
		}
	}
	return nil
}

// pixels returns the size of a video for a mode and a ratio.
func pixels(mode, ratio string) (width, height int) {
	short := map[string]int{"std": 720, "720p": 720, "pro": 1080, "1080p": 1080, "4k": 2160}[mode]
	width, height = kernel.Ratio(cmp.Or(ratio, "16:9"))
	return kernel.Pixels(short, width, height)
}

var newerReference = regexp.MustCompile(`@((?:image|element|video)_\w+)`)

// newerJob returns the job of a request for a model of the newer generation.
func newerJob(model string, b kernel.Body) (*kernel.Job, error) {
	prompt, ids := b.Text("prompt"), map[string]bool{}
	for _, item := range b.List("contents") {
		id := item.Text("id")
		if ids[id] && id != "" {
			return nil, kernel.NewViolation("contents", "%s is given twice", id)
		}
		ids[id] = true
		prompt += item.Text("text")
	}
	for _, match := range newerReference.FindAllStringSubmatch(prompt, -1) {
		if len(ids) > 0 && !ids[match[1]] {
			return nil, kernel.NewViolation("contents", "@%s refers to nothing", match[1])
		}
	}
	seconds := cmp.Or(b.Int("settings.duration"), 5)
	if b.Flag("settings.multi_shot", model != "kling-o1") {
		if err := checkShots(prompt, seconds); err != nil {
			return nil, err
		}
	}
	width, height := pixels(cmp.Or(b.Text("settings.resolution"), "720p"), b.Text("settings.aspect_ratio"))
	return &kernel.Job{
		ID: kernel.NumericID(idDigits), Model: model, Prompt: prompt,
		ExternalID: b.Text("options.external_task_id"), CallbackURL: b.Text("options.callback_url"), Media: kernel.Media{
			Kind: "video", Width: width, Height: height, Seconds: seconds,
			Sound: cmp.Or(b.Text("settings.audio"), "off") != "off", Watermark: b.Flag("options.watermark_info.enabled", false),
		},
	}, nil
}

var newerShot = regexp.MustCompile(`^\s*shot (\d+), (\d+), (.*)$`)

// checkShots checks a prompt that lists shots: "shot n, m, words; …". It accepts any other text,
// which the vendor divides into shots itself.
func checkShots(prompt string, total int) error {
	parts := strings.Split(strings.TrimSuffix(strings.TrimSpace(prompt), ";"), ";")
	if !newerShot.MatchString(parts[0]) {
		return nil
	}
	sum := 0
	for i, part := range parts {
		match := newerShot.FindStringSubmatch(part)
		if match == nil || match[1] != strconv.Itoa(i+1) || utf8.RuneCountInString(match[3]) > shotPromptMax {
			return kernel.NewViolation("prompt",
				"shot %d is not shot n, m, words with at most %d characters", i+1, shotPromptMax)
		}
		length, _ := strconv.Atoi(match[2])
		sum += length
	}
	if sum != total || len(parts) > shotsMax {
		return kernel.NewViolation("prompt",
			"%d shots last %d s, of at most %d shots and %d s", len(parts), sum, shotsMax, total)
	}
	return nil
}
