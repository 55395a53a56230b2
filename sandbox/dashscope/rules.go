package dashscope

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// rules read input and parameters of a request for one model.
type rules func(input, parameters *kernel.Object) *kernel.Job

// videoModels are those that make videos.
var videoModels = map[string]rules{
	"wan2.6-t2v":       wanOld{text: true}.read,
	"wan2.6-i2v":       wanOld{frame: true}.read,
	"wan2.6-r2v":       wanOld{}.read,
	"wan2.7-t2v":       wanNew{ratio: true}.read,
	"wan2.7-i2v":       wanNew{media: map[string]int{"first_frame": 1, "last_frame": 1, "driving_audio": 1, "first_clip": 1}}.read,
	"wan2.7-r2v":       wanNew{media: map[string]int{"first_frame": 1, "reference_image": references, "reference_video": references}, ratio: true}.read,
	"wan2.7-videoedit": edit,

	"kling/kling-v3-video-generation":      kling("first_frame", "last_frame"),
	"kling/kling-v3-omni-video-generation": kling("first_frame", "last_frame", "refer", "base", "feature"),

	"vidu/viduq3-mix_reference2video": vidu{least: 1, resolutions: []string{"720P", "1080P"}}.read,
	"vidu/viduq3_reference2video":     vidu{least: 3, resolutions: []string{"540P", "720P", "1080P"}}.read,
}

// The bounds.
const (
	wanOldPrompt = 1500
	wanNewPrompt = 5000
	negativeMax  = 500
	references   = 5
	videosMax    = 3
	editImages   = 4

	klingPrompt = 2500
	klingShot   = 512
	klingShots  = 6
	klingIDs    = 3
	klingRefs   = 7

	viduPrompt = 5000
	viduImages = 7
)

var ratios = []string{"16:9", "9:16", "1:1", "4:3", "3:4"}

// text reads a prompt; required says that there must be one.
func text(in *kernel.Object, most int, required bool) string {
	prompt := in.TextMax("prompt", most)
	if required && strings.TrimSpace(prompt) == "" {
		in.Fail("prompt", "is required")
	}
	return prompt
}

// common reads the parameters that all models of Wan's have.
func common(p *kernel.Object) (marked bool) {
	p.Flag("prompt_extend")
	if p.Has("seed") {
		p.Integer("seed", 0, seedMax)
	}
	return p.Flag("watermark")
}

// seconds reads a length.
func seconds(p *kernel.Object, fallback, least, most int64) int {
	if !p.Has("duration") {
		return int(fallback)
	}
	return int(p.Integer("duration", least, most))
}

// lines are those of a resolution such as 720P.
func lines(resolution string) string { return strings.TrimSuffix(resolution, "P") }

// framed is the size of a video whose shape nobody said: that of its frame or
// its source, which is not looked at.
func framed(resolution, ratio string) (width, height int) {
	short, _ := strconv.Atoi(lines(resolution))
	w, h, ok := strings.Cut(ratio, ":")
	if !ok {
		w, h = "16", "9"
	}
	wide, _ := strconv.Atoi(w)
	high, _ := strconv.Atoi(h)
	if wide >= high {
		return short * wide / high / 2 * 2, short
	}
	return short, short * high / wide / 2 * 2
}

// links reads a list of addresses.
func links(in *kernel.Object, name string, most int) (list []string) {
	values, ok := in.Value(name).([]any)
	if !ok || len(values) == 0 || len(values) > most {
		in.Fail(name, "must be an array of 1 to %d URLs", most)
	}
	for i, value := range values {
		link, _ := value.(string)
		if !kernel.IsLink(link) {
			in.Fail(fmt.Sprintf("%s[%d]", name, i), "must be an http or https URL")
		}
		list = append(list, link)
	}
	return list
}

// mediaOf reads a list of files that say what they are for, counted by that.
func mediaOf(in *kernel.Object, limits map[string]int, fields ...string) map[string]int {
	counts, most := map[string]int{}, 0
	for _, limit := range limits {
		most += limit
	}
	for _, item := range in.Objects("media", most) {
		item.Only(append([]string{"type", "url"}, fields...)...)
		kind := item.Text("type")
		counts[kind]++
		item.Link("url")
		switch limit, known := limits[kind]; {
		case !known:
			item.Fail("type", "is not supported by this model")
		case counts[kind] > limit:
			item.Fail("type", "may be given %d times at most", limit)
		}
	}
	return counts
}

// wanOld is a model of Wan's older protocol.
type wanOld struct{ text, frame bool }

// oldSizes are the sizes in pixels, by resolution.
var oldSizes = map[string][]string{
	"720P":  {"1280*720", "720*1280", "960*960", "1088*832", "832*1088"},
	"1080P": {"1920*1080", "1080*1920", "1440*1440", "1632*1248", "1248*1632"},
}

func (m wanOld) read(in, p *kernel.Object) *kernel.Job {
	fields, params := []string{"prompt", "negative_prompt"}, []string{"duration", "prompt_extend", "shot_type", "watermark", "seed"}
	most := int64(15)
	input := ""
	switch {
	case m.text:
		fields, params = append(fields, "audio_url"), append(params, "size")
	case m.frame:
		fields, params = append(fields, "audio_url", "img_url"), append(params, "resolution", "audio")
	default:
		fields, params = append(fields, "reference_urls"), append(params, "size", "audio")
		most = 10
	}
	in.Only(fields...)
	p.Only(params...)
	prompt := text(in, wanOldPrompt, m.text)
	in.TextMax("negative_prompt", negativeMax)
	if in.Has("audio_url") {
		in.Link("audio_url")
	}
	p.Word("shot_type", "single", "single", "multi")
	marked := common(p)
	var (
		resolution    string
		width, height int
	)
	if m.frame {
		in.Link("img_url")
		resolution = p.Word("resolution", "1080P", "720P", "1080P")
		width, height = framed(resolution, "")
	} else {
		resolution, width, height = sizeOf(p, oldSizes, "1920*1080")
	}
	if !m.text && !m.frame {
		films := 0
		for _, link := range links(in, "reference_urls", references) {
			if isFilm(link) {
				films++
			}
		}
		if films > videosMax {
			in.Fail("reference_urls", "may hold %d videos at most", videosMax)
		}
		if films > 0 {
			input = sourceLength
		}
	}
	sound := !p.Has("audio") || p.Flag("audio")
	return film(prompt, resolution, width, height, seconds(p, 5, 2, most), sound, marked, input)
}

// isFilm tells a video from an image as the vendor does, by its name.
func isFilm(link string) bool {
	path, _, _ := strings.Cut(link, "?")
	return strings.HasSuffix(path, ".mp4") || strings.HasSuffix(path, ".mov")
}

// sizeOf reads a size such as 1280*720, which is one of a table's.
func sizeOf(p *kernel.Object, sizes map[string][]string, fallback string) (resolution string, width, height int) {
	size := fallback
	if p.Has("size") {
		size = p.Text("size")
	}
	for name, list := range sizes {
		if slices.Contains(list, size) {
			w, h, _ := strings.Cut(size, "*")
			width, _ = strconv.Atoi(w)
			height, _ = strconv.Atoi(h)
			return name, width, height
		}
	}
	p.Fail("size", "is not supported by this model")
	return "", 0, 0
}

// film is a job that makes a video.
func film(prompt, resolution string, width, height, length int, sound, marked bool, input string) *kernel.Job {
	j := &kernel.Job{
		Prompt: prompt,
		Media:  kernel.Media{Kind: "video", Width: width, Height: height, Seconds: length, Sound: sound, Watermark: marked},
		Detail: map[string]string{detailSR: lines(resolution)},
	}
	if input != "" {
		j.Detail[detailInput] = input
	}
	return j
}

// wanNew is a model of Wan's newer protocol: how many files of each kind it
// takes, and whether it can be told a ratio.
type wanNew struct {
	media map[string]int
	ratio bool
}

func (m wanNew) read(in, p *kernel.Object) *kernel.Job {
	fields, params := []string{"prompt", "negative_prompt"}, []string{"resolution", "duration", "prompt_extend", "watermark", "seed"}
	if m.media == nil {
		fields = append(fields, "audio_url")
	} else {
		fields = append(fields, "media")
	}
	if m.ratio {
		params = append(params, "ratio")
	}
	in.Only(fields...)
	p.Only(params...)
	prompt := text(in, wanNewPrompt, m.media == nil)
	in.TextMax("negative_prompt", negativeMax)
	given := mediaOf(in, m.media)
	refers := given["reference_image"] + given["reference_video"]
	_, takes := m.media["reference_image"]
	switch {
	case m.media == nil:
	case takes && refers == 0:
		in.Fail("media", "a reference is required")
	case takes && refers > references:
		in.Fail("media", "at most %d references are allowed", references)
	case !takes && given["first_frame"]+given["first_clip"] != 1:
		in.Fail("media", "one of first_frame and first_clip is required")
	}
	resolution := p.Word("resolution", "1080P", "720P", "1080P")
	ratio := p.Word("ratio", "", ratios...)
	width, height := framed(resolution, ratio)
	most, input := int64(15), ""
	if given["reference_video"] > 0 {
		most, input = 10, sourceLength
	}
	return film(prompt, resolution, width, height, seconds(p, 5, 2, most), true, common(p), input)
}

// edit reads a video edit. A duration of 0 keeps that of the source.
func edit(in, p *kernel.Object) *kernel.Job {
	in.Only("prompt", "negative_prompt", "media")
	p.Only("resolution", "ratio", "duration", "audio_setting", "prompt_extend", "watermark", "seed")
	prompt := text(in, wanNewPrompt, false)
	in.TextMax("negative_prompt", negativeMax)
	if mediaOf(in, map[string]int{"video": 1, "reference_image": editImages})["video"] != 1 {
		in.Fail("media", "one video is required")
	}
	resolution := p.Word("resolution", "1080P", "720P", "1080P")
	ratio := p.Word("ratio", "", ratios...)
	width, height := framed(resolution, ratio)
	p.Word("audio_setting", "auto", "auto", "origin")
	length := seconds(p, 0, 0, 10)
	if length == 1 {
		p.Fail("duration", "must be 0, or from 2 to 10")
	}
	input := strconv.Itoa(length)
	if length == 0 {
		length, input = sourceSeconds, sourceLength
	}
	j := film(prompt, resolution, width, height, length, true, common(p), input)
	j.Detail[detailSeconds] = input
	return j
}

// kling reads a request for one of Kling's models, which takes files of these
// kinds.
func kling(kinds ...string) rules {
	return func(in, p *kernel.Object) *kernel.Job {
		in.Only("prompt", "media", "multi_shot", "shot_type", "multi_prompt", "element_list")
		p.Only("mode", "aspect_ratio", "duration", "audio", "watermark")
		limits := map[string]int{}
		for _, kind := range kinds {
			limits[kind] = 1
		}
		if slices.Contains(kinds, "refer") {
			limits["refer"] = klingRefs
		}
		given := mediaOf(in, limits, "keep_original_sound")
		if given["last_frame"] > given["first_frame"] {
			in.Fail("media", "a last frame needs a first frame")
		}
		for _, element := range in.Objects("element_list", klingIDs) {
			element.Only("element_id")
			element.ID("element_id")
		}
		most := int64(15)
		if given["base"]+given["feature"] > 0 {
			most = 10
		}
		length := seconds(p, 5, 3, most)
		prompt := shots(in, length)
		mode := p.Word("mode", "pro", "std", "pro")
		ratio := p.Word("aspect_ratio", "", "16:9", "9:16", "1:1")
		if ratio == "" && given["first_frame"]+given["base"] == 0 {
			p.Fail("aspect_ratio", "is required without a first frame")
		}
		resolution := map[string]string{"std": "720P", "pro": "1080P"}[mode]
		width, height := framed(resolution, ratio)
		j := film(prompt, resolution, width, height, length, p.Flag("audio"), p.Flag("watermark"), "")
		j.Detail[detailKling] = "yes"
		return j
	}
}

// shots reads what a video by Kling shows: a prompt, or shots that the customer
// cut.
func shots(in *kernel.Object, length int) string {
	many := in.Flag("multi_shot")
	kind := in.Word("shot_type", "", "intelligence", "customize")
	prompt := text(in, klingPrompt, !many || kind != "customize")
	switch {
	case !many && (kind != "" || in.Has("multi_prompt")):
		in.Fail("multi_shot", "must be true with shot_type and multi_prompt")
	case many && kind == "":
		in.Fail("shot_type", "is required with multi_shot")
	case many && kind == "customize":
		list := in.Objects("multi_prompt", klingShots)
		sum, seen := 0, map[int64]bool{}
		for _, shot := range list {
			shot.Only("index", "prompt", "duration")
			index := shot.Integer("index", 1, int64(len(list)))
			if seen[index] {
				shot.Fail("index", "is given twice")
			}
			seen[index] = true
			text(shot, klingShot, true)
			sum += int(shot.Integer("duration", 1, 15))
			if strings.TrimSpace(prompt) == "" {
				prompt = shot.Text("prompt")
			}
		}
		if len(list) == 0 || sum != length {
			in.Fail("multi_prompt", "the shots last %d s, the video %d s", sum, length)
		}
	}
	return prompt
}

// vidu is one of Vidu's models.
type vidu struct {
	least       int64
	resolutions []string
}

// viduSizes are the sizes in pixels, by resolution.
var viduSizes = map[string][]string{
	"540P":  {"960*540", "540*960", "540*540", "720*540", "540*720"},
	"720P":  {"1280*720", "720*1280", "720*720", "960*720", "720*960"},
	"1080P": {"1920*1080", "1080*1920", "1080*1080", "1440*1080", "1080*1440"},
}

func (m vidu) read(in, p *kernel.Object) *kernel.Job {
	in.Only("prompt", "media")
	p.Only("resolution", "size", "duration", "audio", "watermark", "seed")
	prompt := text(in, viduPrompt, true)
	if mediaOf(in, map[string]int{"image": viduImages})["image"] == 0 {
		in.Fail("media", "an image is required")
	}
	resolution := p.Word("resolution", "720P", m.resolutions...)
	of, width, height := sizeOf(p, viduSizes, "1280*720")
	if p.Has("size") && of != resolution {
		p.Fail("size", "is none of %s", resolution)
	}
	if p.Has("seed") {
		p.Integer("seed", 0, seedMax)
	}
	return film(prompt, resolution, width, height, seconds(p, 5, m.least, 16), p.Flag("audio"), p.Flag("watermark"), "")
}
