package kling

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// The bounds of Kling's legacy standard.
const (
	promptMax     = 2500
	shotPromptMax = 512
	shotsMax      = 6
	elementsMax   = 3
	voicesMax     = 2
	imageBytesMax = 10 << 20
	imageSideMin  = 300
)

// modelRules is what differs between models.
type modelRules struct {
	durations  []int
	modes      []string
	sound      bool
	soundModes []string // modes in which sound is available
	multiShot  bool
}

var (
	v3 = modelRules{
		durations: []int{3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, modes: []string{"std", "pro", "4k"},
		sound: true, soundModes: []string{"std", "pro", "4k"}, multiShot: true,
	}
	// models are those of text2video and image2video.
	models = map[string]modelRules{
		"kling-v3":          v3,
		"kling-v2-6":        {durations: []int{5, 10}, modes: []string{"std", "pro"}, sound: true, soundModes: []string{"pro"}},
		"kling-v2-5-turbo":  {durations: []int{5, 10}, modes: []string{"std", "pro"}},
		"kling-v2-1-master": {durations: []int{5, 10}, modes: []string{"std", "pro"}},
	}
)

// commonFields are the fields of every endpoint.
var commonFields = []string{
	"model_name", "prompt", "duration", "mode", "sound", "multi_shot", "shot_type", "multi_prompt",
	"element_list", "watermark_info", "callback_url", "external_task_id",
}

// text2Video are the rules of text2video.
func text2Video(in *kernel.Object) (*kernel.Job, *refusal) {
	in.Only(append([]string{"negative_prompt", "aspect_ratio", "cfg_scale", "camera_control"}, commonFields...)...)
	model, refusal := modelOf(in, models, "")
	if refusal != nil {
		return nil, refusal
	}
	if in.Has("element_list") {
		in.Fail("element_list", "is for image to video")
	}
	ratio := in.Word("aspect_ratio", "16:9", "16:9", "9:16", "1:1")
	return video(in, model, "std", ratio)
}

// image2Video are the rules of image2video: the picture decides the
// ratio, so there is no aspect_ratio.
func image2Video(in *kernel.Object) (*kernel.Job, *refusal) {
	in.Only(append([]string{
		"negative_prompt", "image", "image_tail", "cfg_scale", "camera_control", "static_mask", "dynamic_masks", "voice_list",
	}, commonFields...)...)
	model, refusal := modelOf(in, models, "")
	if refusal != nil {
		return nil, refusal
	}
	if !in.Has("image") && !in.Has("image_tail") {
		in.Fail("image", "image or image_tail is required")
	}
	ratio := "16:9"
	for _, name := range []string{"image_tail", "image"} {
		if in.Has(name) {
			ratio = picture(in, name, ratio)
		}
	}
	elementsOf(in, elementsMax)
	if voices := in.Objects("voice_list", voicesMax); len(voices) > 0 {
		for _, v := range voices {
			if v.Text("voice_id") == "" {
				v.Fail("voice_id", "is required")
			}
		}
		if in.Has("element_list") {
			in.Fail("voice_list", "does not go together with element_list")
		}
		if in.Word("sound", "off", "on", "off") != "on" {
			in.Fail("voice_list", "needs sound on")
		}
	}
	return video(in, model, "std", ratio)
}

// noModel is what the vendor says of a model that it does not have.
func noModel(name string) string { return "model " + strconv.Quote(name) + " does not exist" }

// modelOf finds the model that the body names.
func modelOf(in *kernel.Object, models map[string]modelRules, fallback string) (modelRules, *refusal) {
	name := fallback
	if in.Has("model_name") {
		name = in.Text("model_name")
	}
	if name == "" {
		in.Fail("model_name", "is required")
	}
	if in.Err() != nil {
		return modelRules{}, brokenRule(in)
	}
	model, ok := models[name]
	if !ok {
		return modelRules{}, &refusal{codeNoResource, noModel(name)}
	}
	in.Set("model_name", name)
	return model, nil
}

func brokenRule(in *kernel.Object) *refusal {
	return &refusal{codeIllegalValue, in.Err().Error()}
}

// video checks what all endpoints share and makes the job.
func video(in *kernel.Object, model modelRules, mode, ratio string) (*kernel.Job, *refusal) {
	for _, old := range []string{"cfg_scale", "camera_control", "static_mask", "dynamic_masks"} {
		if in.Has(old) {
			in.Fail(old, "is not supported by this model")
		}
	}
	mode = in.Word("mode", mode, model.modes...)
	seconds := secondsOf(in, "duration", 5)
	if !slices.Contains(model.durations, seconds) {
		in.Fail("duration", "%d s is not supported by this model", seconds)
	}
	sound := in.Word("sound", "off", "on", "off") == "on"
	if sound && (!model.sound || !slices.Contains(model.soundModes, mode)) {
		in.Fail("sound", "is not supported by this model and mode")
	}
	in.TextMax("negative_prompt", promptMax)
	prompt := promptOf(in, model, seconds)
	if in.Has("callback_url") && in.Text("callback_url") != "" {
		in.Link("callback_url")
	}
	watermark := in.Nested("watermark_info")
	watermark.Only("enabled")
	marked := watermark.Flag("enabled")
	external := in.Text("external_task_id")
	if in.Err() != nil {
		return nil, brokenRule(in)
	}
	width, height := pixels(mode, ratio)
	return &kernel.Job{
		Model: in.Text("model_name"), ExternalID: external, Prompt: prompt,
		Media: kernel.Media{Kind: "video", Width: width, Height: height, Seconds: seconds, Sound: sound, Watermark: marked},
	}, nil
}

// promptOf checks prompt and shots. With shots of one's own the prompt
// may be absent and is not read.
func promptOf(in *kernel.Object, model modelRules, seconds int) string {
	if !in.Flag("multi_shot") {
		prompt := in.TextMax("prompt", promptMax)
		if strings.TrimSpace(prompt) == "" {
			in.Fail("prompt", "is required")
		}
		return prompt
	}
	if !model.multiShot {
		in.Fail("multi_shot", "is not supported by this model")
	}
	if in.Word("shot_type", "", "customize", "intelligence") == "" {
		in.Fail("shot_type", "is required with multi_shot")
	}
	prompt := in.TextMax("prompt", promptMax)
	if in.Text("shot_type") != "customize" {
		if strings.TrimSpace(prompt) == "" {
			in.Fail("prompt", "is required")
		}
		return prompt
	}
	shots := in.Objects("multi_prompt", shotsMax)
	if len(shots) == 0 {
		in.Fail("multi_prompt", "1 to %d shots are required", shotsMax)
	}
	sum, seen, texts := 0, map[int64]bool{}, []string{}
	for _, shot := range shots {
		shot.Only("index", "prompt", "duration")
		index := shot.Integer("index", 1, int64(len(shots)))
		if seen[index] {
			shot.Fail("index", "is given twice")
		}
		seen[index] = true
		text := shot.TextMax("prompt", shotPromptMax)
		if strings.TrimSpace(text) == "" {
			shot.Fail("prompt", "is required")
		}
		texts = append(texts, text)
		sum += secondsOf(shot, "duration", 0)
	}
	if sum != seconds {
		in.Fail("multi_prompt", "the shots last %d s, the video %d s", sum, seconds)
	}
	if strings.TrimSpace(prompt) == "" {
		prompt = strings.Join(texts, "\n")
	}
	return prompt
}

// secondsOf reads a duration, which is a string of digits; a number is
// refused. Without a fallback it is required.
func secondsOf(in *kernel.Object, name string, fallback int) int {
	if !in.Has(name) && fallback > 0 {
		return fallback
	}
	s := in.Text(name)
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || strconv.Itoa(n) != s {
		in.Fail(name, "must be a string holding a number of seconds")
		return 0
	}
	return n
}

func elementsOf(in *kernel.Object, limit int) int {
	elements := in.Objects("element_list", limit)
	for _, e := range elements {
		e.Only("element_id")
		e.ID("element_id")
	}
	return len(elements)
}

// picture checks a picture given as a URL or as bare base64 and returns
// the ratio that a video of it has, as far as we can see it.
func picture(in *kernel.Object, name, ratio string) string {
	value := in.Text(name)
	if kernel.IsLink(value) || in.Err() != nil {
		return ratio
	}
	raw, err := base64.StdEncoding.DecodeString(value)
	if err != nil || len(raw) == 0 {
		in.Fail(name, "must be a URL or base64 without a prefix")
		return ratio
	}
	if len(raw) > imageBytesMax {
		in.Fail(name, "is larger than %d bytes", imageBytesMax)
		return ratio
	}
	cfg, ok := kernel.ReadPicture(raw)
	switch {
	case !ok || cfg.Format != "jpeg" && cfg.Format != "png":
		in.Fail(name, "must be a JPEG or PNG picture")
	case cfg.Width < imageSideMin || cfg.Height < imageSideMin:
		in.Fail(name, "must have at least %d pixels a side", imageSideMin)
	case 5*cfg.Width < 2*cfg.Height || 5*cfg.Height < 2*cfg.Width:
		in.Fail(name, "must have a ratio from 1:2.5 to 2.5:1")
	case cfg.Width == cfg.Height:
		return "1:1"
	case cfg.Width < cfg.Height:
		return "9:16"
	}
	return ratio
}

// pixels is the pixel size for a mode and a ratio.
func pixels(mode, ratio string) (width, height int) {
	short := map[string]int{"std": 720, "pro": 1080, "4k": 2160}[mode]
	long := short * 16 / 9
	switch ratio {
	case "9:16":
		return short, long
	case "1:1":
		return short, short
	default:
		return long, short
	}
}
