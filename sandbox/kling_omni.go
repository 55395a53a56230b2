package sandbox

import (
	"regexp"
	"strconv"
)

// klingOmniModels are the models of omni-video.
var klingOmniModels = map[string]klingModel{
	"kling-video-o1": {durations: []int{3, 4, 5, 6, 7, 8, 9, 10}, modes: []string{"std", "pro"}},
	"kling-v3-omni":  {durations: klingV3.durations, modes: []string{"std", "pro"}, sound: true, soundModes: []string{"std", "pro"}, multiShot: true},
}

const (
	klingOmniRefs      = 7 // images and elements together
	klingOmniRefsVideo = 4 // the same beside a video
)

// klingOmni are the rules of omni-video.
func klingOmni(in *object) (*job, *klingRefusal) {
	in.only(append([]string{"image_list", "video_list", "aspect_ratio"}, klingCommon...)...)
	model, refusal := klingModelOf(in, klingOmniModels, "kling-video-o1")
	if refusal != nil {
		return nil, refusal
	}
	refs := klingOmniInputs(in)
	refs.frames(in)
	ratio := in.word("aspect_ratio", "", "16:9", "9:16", "1:1")
	switch {
	case refs.first > 0 || refs.editing:
		if ratio == "" {
			ratio = refs.ratio
		}
	case ratio == "":
		in.fail("aspect_ratio", "is required without a first frame or a video to edit")
	}
	if in.text("model_name") == "kling-video-o1" && refs.onlyFiveOrTen() {
		model.durations = []int{5, 10}
	}
	if refs.videos > 0 && in.word("sound", "off", "on", "off") != "off" {
		in.fail("sound", "must be off with video_list")
	}
	j, refusal := klingVideo(in, model, "pro", ratio)
	if refusal != nil {
		return nil, refusal
	}
	if !refs.known(in) {
		return nil, klingBroken(in)
	}
	return j, nil
}

// omniRefs counts what an omni request refers to.
type omniRefs struct {
	images, elements, videos int
	first, end               int  // frames among the images
	editing                  bool // the video is the one to change
	ratio                    string
}

// onlyFiveOrTen holds for text alone and for a first frame alone.
func (r omniRefs) onlyFiveOrTen() bool {
	return r.elements == 0 && r.videos == 0 && r.end == 0 && r.images == r.first
}

func klingOmniInputs(in *object) omniRefs {
	r := omniRefs{ratio: "16:9", elements: klingElementList(in, klingOmniRefs)}
	for _, img := range in.objects("image_list", klingOmniRefs) {
		img.only("image_url", "type")
		r.images++
		ratio := klingImage(img, "image_url", "16:9")
		switch img.word("type", "", "first_frame", "end_frame") {
		case "first_frame":
			r.first++
			r.ratio = ratio
		case "end_frame":
			r.end++
		}
	}
	for _, v := range in.objects("video_list", 1) {
		v.only("video_url", "refer_type", "keep_original_sound")
		r.videos++
		v.link("video_url")
		r.editing = v.word("refer_type", "base", "base", "feature") == "base"
		v.word("keep_original_sound", "yes", "yes", "no")
	}
	limit := klingOmniRefs
	if r.videos > 0 {
		limit = klingOmniRefsVideo
	}
	if r.images+r.elements > limit {
		in.fail("image_list", "images and elements together are at most %d here", limit)
	}
	return r
}

// frames checks what goes together with a first and an end frame.
func (r omniRefs) frames(in *object) {
	o1 := in.text("model_name") == "kling-video-o1"
	switch {
	case r.first > 1 || r.end > 1:
		in.fail("image_list", "at most one first and one end frame")
	case r.end > r.first:
		in.fail("image_list", "an end frame needs a first frame")
	case r.first > 0 && r.editing:
		in.fail("image_list", "frames do not go together with a video to edit")
	case r.end > 0 && o1 && r.images > 2:
		in.fail("image_list", "this model takes no end frame beside more than 2 images")
	case r.end > 0 && o1 && r.elements > 0:
		in.fail("element_list", "this model takes no elements beside an end frame")
	case r.first > 0 && r.elements > klingElements:
		in.fail("element_list", "at most %d elements beside a frame", klingElements)
	}
}

var omniReference = regexp.MustCompile(`<<<(image|element|video)_(\d+)>>>`)

// known checks that each reference of the prompts names something given.
func (r omniRefs) known(in *object) bool {
	given := map[string]int{"image": r.images, "element": r.elements, "video": r.videos}
	prompts := []string{in.text("prompt")}
	if in.flag("multi_shot") {
		for _, shot := range in.objects("multi_prompt", klingShots) {
			prompts = append(prompts, shot.text("prompt"))
		}
	}
	for _, p := range prompts {
		for _, match := range omniReference.FindAllStringSubmatch(p, -1) {
			n, err := strconv.Atoi(match[2])
			if err != nil || n < 1 || n > given[match[1]] {
				in.fail("prompt", "%s refers to nothing", match[0])
				return false
			}
		}
	}
	return true
}
