package sandbox

import (
	"bytes"
	"encoding/base64"
	"image"
	_ "image/jpeg" // the formats that Kling takes
	_ "image/png"
	"slices"
	"strconv"
	"strings"
)

// The bounds of Kling's legacy standard.
const (
	klingPrompt     = 2500
	klingShotPrompt = 512
	klingShots      = 6
	klingElements   = 3
	klingVoices     = 2
	klingImageBytes = 10 << 20
	klingImageSide  = 300
)

// klingModel is what differs between models.
type klingModel struct {
	durations  []int
	modes      []string
	sound      bool
	soundModes []string // modes in which sound is available
	multiShot  bool
}

var (
	klingV3 = klingModel{
		durations: []int{3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, modes: []string{"std", "pro", "4k"},
		sound: true, soundModes: []string{"std", "pro", "4k"}, multiShot: true,
	}
	// klingModels are those of text2video and image2video.
	klingModels = map[string]klingModel{
		"kling-v3":          klingV3,
		"kling-v2-6":        {durations: []int{5, 10}, modes: []string{"std", "pro"}, sound: true, soundModes: []string{"pro"}},
		"kling-v2-5-turbo":  {durations: []int{5, 10}, modes: []string{"std", "pro"}},
		"kling-v2-1-master": {durations: []int{5, 10}, modes: []string{"std", "pro"}},
	}
)

// klingCommon are the fields of every endpoint.
var klingCommon = []string{
	"model_name", "prompt", "duration", "mode", "sound", "multi_shot", "shot_type", "multi_prompt",
	"element_list", "watermark_info", "callback_url", "external_task_id",
}

// klingText2Video are the rules of text2video.
func klingText2Video(in *object) (*job, *klingRefusal) {
	in.only(append([]string{"negative_prompt", "aspect_ratio", "cfg_scale", "camera_control"}, klingCommon...)...)
	model, refusal := klingModelOf(in, klingModels, "")
	if refusal != nil {
		return nil, refusal
	}
	if in.has("element_list") {
		in.fail("element_list", "is for image to video")
	}
	ratio := in.word("aspect_ratio", "16:9", "16:9", "9:16", "1:1")
	return klingVideo(in, model, "std", ratio)
}

// klingImage2Video are the rules of image2video: the picture decides the
// ratio, so there is no aspect_ratio.
func klingImage2Video(in *object) (*job, *klingRefusal) {
	in.only(append([]string{
		"negative_prompt", "image", "image_tail", "cfg_scale", "camera_control", "static_mask", "dynamic_masks", "voice_list",
	}, klingCommon...)...)
	model, refusal := klingModelOf(in, klingModels, "")
	if refusal != nil {
		return nil, refusal
	}
	if !in.has("image") && !in.has("image_tail") {
		in.fail("image", "image or image_tail is required")
	}
	ratio := "16:9"
	for _, name := range []string{"image_tail", "image"} {
		if in.has(name) {
			ratio = klingImage(in, name, ratio)
		}
	}
	klingElementList(in, klingElements)
	if voices := in.objects("voice_list", klingVoices); len(voices) > 0 {
		for _, v := range voices {
			if v.text("voice_id") == "" {
				v.fail("voice_id", "is required")
			}
		}
		if in.has("element_list") {
			in.fail("voice_list", "does not go together with element_list")
		}
		if in.word("sound", "off", "on", "off") != "on" {
			in.fail("voice_list", "needs sound on")
		}
	}
	return klingVideo(in, model, "std", ratio)
}

// klingModelOf finds the model that the body names.
func klingModelOf(in *object, models map[string]klingModel, fallback string) (klingModel, *klingRefusal) {
	name := fallback
	if in.has("model_name") {
		name = in.text("model_name")
	}
	if name == "" {
		in.fail("model_name", "is required")
	}
	if *in.err != nil {
		return klingModel{}, klingBroken(in)
	}
	model, ok := models[name]
	if !ok {
		return klingModel{}, &klingRefusal{klingNoResource, "model " + strconv.Quote(name) + " does not exist"}
	}
	in.fields["model_name"] = name
	return model, nil
}

func klingBroken(in *object) *klingRefusal {
	return &klingRefusal{klingIllegalValue, (*in.err).Error()}
}

// klingVideo checks what all endpoints share and makes the job.
func klingVideo(in *object, model klingModel, mode, ratio string) (*job, *klingRefusal) {
	for _, old := range []string{"cfg_scale", "camera_control", "static_mask", "dynamic_masks"} {
		if in.has(old) {
			in.fail(old, "is not supported by this model")
		}
	}
	mode = in.word("mode", mode, model.modes...)
	seconds := klingSeconds(in, "duration", 5)
	if !slices.Contains(model.durations, seconds) {
		in.fail("duration", "%d s is not supported by this model", seconds)
	}
	sound := in.word("sound", "off", "on", "off") == "on"
	if sound && (!model.sound || !slices.Contains(model.soundModes, mode)) {
		in.fail("sound", "is not supported by this model and mode")
	}
	in.textMax("negative_prompt", klingPrompt)
	prompt := klingPromptOf(in, model, seconds)
	if in.has("callback_url") && in.text("callback_url") != "" {
		in.link("callback_url")
	}
	watermark := in.nested("watermark_info")
	watermark.only("enabled")
	marked := watermark.flag("enabled")
	external := in.text("external_task_id")
	if *in.err != nil {
		return nil, klingBroken(in)
	}
	width, height := klingSize(mode, ratio)
	return &job{
		Model: in.text("model_name"), ExternalID: external, Prompt: prompt,
		Media: media{Kind: "video", Width: width, Height: height, Seconds: seconds, Sound: sound, Watermark: marked},
	}, nil
}

// klingPromptOf checks prompt and shots. With shots of one's own the prompt
// may be absent and is not read.
func klingPromptOf(in *object, model klingModel, seconds int) string {
	if !in.flag("multi_shot") {
		prompt := in.textMax("prompt", klingPrompt)
		if strings.TrimSpace(prompt) == "" {
			in.fail("prompt", "is required")
		}
		return prompt
	}
	if !model.multiShot {
		in.fail("multi_shot", "is not supported by this model")
	}
	if in.word("shot_type", "", "customize", "intelligence") == "" {
		in.fail("shot_type", "is required with multi_shot")
	}
	prompt := in.textMax("prompt", klingPrompt)
	if in.text("shot_type") != "customize" {
		if strings.TrimSpace(prompt) == "" {
			in.fail("prompt", "is required")
		}
		return prompt
	}
	shots := in.objects("multi_prompt", klingShots)
	if len(shots) == 0 {
		in.fail("multi_prompt", "1 to %d shots are required", klingShots)
	}
	sum, seen, texts := 0, map[int64]bool{}, []string{}
	for _, shot := range shots {
		shot.only("index", "prompt", "duration")
		index := shot.integer("index", 1, int64(len(shots)))
		if seen[index] {
			shot.fail("index", "is given twice")
		}
		seen[index] = true
		text := shot.textMax("prompt", klingShotPrompt)
		if strings.TrimSpace(text) == "" {
			shot.fail("prompt", "is required")
		}
		texts = append(texts, text)
		sum += klingSeconds(shot, "duration", 0)
	}
	if sum != seconds {
		in.fail("multi_prompt", "the shots last %d s, the video %d s", sum, seconds)
	}
	if strings.TrimSpace(prompt) == "" {
		prompt = strings.Join(texts, "\n")
	}
	return prompt
}

// klingSeconds reads a duration, which is a string of digits; a number is
// refused. Without a fallback it is required.
func klingSeconds(in *object, name string, fallback int) int {
	if !in.has(name) && fallback > 0 {
		return fallback
	}
	s := in.text(name)
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || strconv.Itoa(n) != s {
		in.fail(name, "must be a string holding a number of seconds")
		return 0
	}
	return n
}

func klingElementList(in *object, limit int) int {
	elements := in.objects("element_list", limit)
	for _, e := range elements {
		e.only("element_id")
		e.id("element_id")
	}
	return len(elements)
}

// klingImage checks a picture given as a URL or as bare base64 and returns
// the ratio that a video of it has, as far as we can see it.
func klingImage(in *object, name, ratio string) string {
	value := in.text(name)
	if isLink(value) || *in.err != nil {
		return ratio
	}
	raw, err := base64.StdEncoding.DecodeString(value)
	if err != nil || len(raw) == 0 {
		in.fail(name, "must be a URL or base64 without a prefix")
		return ratio
	}
	if len(raw) > klingImageBytes {
		in.fail(name, "is larger than %d bytes", klingImageBytes)
		return ratio
	}
	cfg, _, err := image.DecodeConfig(bytes.NewReader(raw))
	switch {
	case err != nil:
		in.fail(name, "must be a JPEG or PNG picture")
	case cfg.Width < klingImageSide || cfg.Height < klingImageSide:
		in.fail(name, "must have at least %d pixels a side", klingImageSide)
	case 5*cfg.Width < 2*cfg.Height || 5*cfg.Height < 2*cfg.Width:
		in.fail(name, "must have a ratio from 1:2.5 to 2.5:1")
	case cfg.Width == cfg.Height:
		return "1:1"
	case cfg.Width < cfg.Height:
		return "9:16"
	}
	return ratio
}

// klingSize is the pixel size for a mode and a ratio.
func klingSize(mode, ratio string) (width, height int) {
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
