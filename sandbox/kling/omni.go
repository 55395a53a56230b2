package kling

import (
	"regexp"
	"strconv"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// omniModels are the models of omni-video.
var omniModels = map[string]modelRules{
	"kling-video-o1": {durations: []int{3, 4, 5, 6, 7, 8, 9, 10}, modes: []string{"std", "pro"}},
	"kling-v3-omni":  {durations: v3.durations, modes: []string{"std", "pro"}, sound: true, soundModes: []string{"std", "pro"}, multiShot: true},
}

const (
	omniRefsMax      = 7 // images and elements together
	omniRefsVideoMax = 4 // the same beside a video
)

// omni are the rules of omni-video.
func omni(in *kernel.Object) (*kernel.Job, *refusal) {
	in.Only(append([]string{"image_list", "video_list", "aspect_ratio"}, commonFields...)...)
	model, refusal := modelOf(in, omniModels, "kling-video-o1")
	if refusal != nil {
		return nil, refusal
	}
	refs := omniInputs(in)
	refs.frames(in)
	ratio := in.Word("aspect_ratio", "", "16:9", "9:16", "1:1")
	switch {
	case refs.first > 0 || refs.editing:
		if ratio == "" {
			ratio = refs.ratio
		}
	case ratio == "":
		in.Fail("aspect_ratio", "is required without a first frame or a video to edit")
	}
	if in.Text("model_name") == "kling-video-o1" && refs.onlyFiveOrTen() {
		model.durations = []int{5, 10}
	}
	if refs.videos > 0 && in.Word("sound", "off", "on", "off") != "off" {
		in.Fail("sound", "must be off with video_list")
	}
	j, refusal := video(in, model, "pro", ratio)
	if refusal != nil {
		return nil, refusal
	}
	if !refs.known(in) {
		return nil, brokenRule(in)
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

func omniInputs(in *kernel.Object) omniRefs {
	r := omniRefs{ratio: "16:9", elements: elementsOf(in, omniRefsMax)}
	for _, img := range in.Objects("image_list", omniRefsMax) {
		img.Only("image_url", "type")
		r.images++
		ratio := picture(img, "image_url", "16:9")
		switch img.Word("type", "", "first_frame", "end_frame") {
		case "first_frame":
			r.first++
			r.ratio = ratio
		case "end_frame":
			r.end++
		}
	}
	for _, v := range in.Objects("video_list", 1) {
		v.Only("video_url", "refer_type", "keep_original_sound")
		r.videos++
		v.Link("video_url")
		r.editing = v.Word("refer_type", "base", "base", "feature") == "base"
		v.Word("keep_original_sound", "yes", "yes", "no")
	}
	limit := omniRefsMax
	if r.videos > 0 {
		limit = omniRefsVideoMax
	}
	if r.images+r.elements > limit {
		in.Fail("image_list", "images and elements together are at most %d here", limit)
	}
	return r
}

// frames checks what goes together with a first and an end frame.
func (r omniRefs) frames(in *kernel.Object) {
	o1 := in.Text("model_name") == "kling-video-o1"
	switch {
	case r.first > 1 || r.end > 1:
		in.Fail("image_list", "at most one first and one end frame")
	case r.end > r.first:
		in.Fail("image_list", "an end frame needs a first frame")
	case r.first > 0 && r.editing:
		in.Fail("image_list", "frames do not go together with a video to edit")
	case r.end > 0 && o1 && r.images > 2:
		in.Fail("image_list", "this model takes no end frame beside more than 2 images")
	case r.end > 0 && o1 && r.elements > 0:
		in.Fail("element_list", "this model takes no elements beside an end frame")
	case r.first > 0 && r.elements > elementsMax:
		in.Fail("element_list", "at most %d elements beside a frame", elementsMax)
	}
}

var omniReference = regexp.MustCompile(`<<<(image|element|video)_(\d+)>>>`)

// known checks that each reference of the prompts names something given.
func (r omniRefs) known(in *kernel.Object) bool {
	given := map[string]int{"image": r.images, "element": r.elements, "video": r.videos}
	prompts := []string{in.Text("prompt")}
	if in.Flag("multi_shot") {
		for _, shot := range in.Objects("multi_prompt", shotsMax) {
			prompts = append(prompts, shot.Text("prompt"))
		}
	}
	for _, p := range prompts {
		for _, match := range omniReference.FindAllStringSubmatch(p, -1) {
			n, err := strconv.Atoi(match[2])
			if err != nil || n < 1 || n > given[match[1]] {
				in.Fail("prompt", "%s refers to nothing", match[0])
				return false
			}
		}
	}
	return true
}
