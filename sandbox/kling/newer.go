package kling

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// newerEndpoint is where the newer generation's jobs are kept: one place for
// all, which the older endpoints know nothing of.
const newerEndpoint = "tasks"

// The bounds of the newer generation.
const (
	newerPromptMax   = 3072
	newerContentsMax = 16
	newerIDsMax      = 100
)

// newerModel is what differs between its models.
type newerModel struct {
	operations  []string
	durations   []int
	resolutions []string
	audio       []string
	multiShot   bool
	o1          bool
}

func seconds(first, last int) []int {
	var all []int
	for s := first; s <= last; s++ {
		all = append(all, s)
	}
	return all
}

// newerModels are the models that the paths name.
var newerModels = map[string]newerModel{
	"kling-3.0": {
		operations: []string{"text-to-video", "image-to-video"}, durations: seconds(3, 15),
		resolutions: []string{"720p", "1080p", "4k"}, audio: []string{"off", "native"}, multiShot: true,
	},
	"kling-3.0-omni": {
		operations: []string{"omni-video"}, durations: seconds(3, 15),
		resolutions: []string{"720p", "1080p"}, audio: []string{"off", "native", "original"}, multiShot: true,
	},
	"kling-o1": {
		operations: []string{"omni-video"}, durations: seconds(3, 10),
		resolutions: []string{"720p", "1080p"}, audio: []string{"off", "original"}, o1: true,
	},
}

// newerContents are the contents that an operation knows.
var newerContents = map[string][]string{
	"image-to-video": {"prompt", "first_frame", "last_frame", "element"},
	"omni-video":     {"prompt", "first_frame", "last_frame", "element", "refer_image", "feature_video", "base_video"},
}

// newerSubmit takes a job of the newer generation.
func (k *kling) newerSubmit(r *http.Request, a kernel.Account) kernel.Reply {
	operation, name := r.PathValue("operation"), r.PathValue("model")
	model, ok := newerModels[name]
	if !ok || !slices.Contains(model.operations, operation) {
		return k.refuse(kernel.CallSubmit, codeNoResource, noModel(name))
	}
	in, err := kernel.ReadObject(r, bodyMax)
	if err != nil {
		return k.refuse(kernel.CallSubmit, codeInvalid, err.Error())
	}
	j := newerJob(in, operation, model)
	if in.Err() != nil {
		rep := k.refuse(kernel.CallSubmit, codeIllegalValue, in.Err().Error())
		rep.External = j.ExternalID
		return rep
	}
	j.ID, j.Endpoint, j.Model = kernel.NumericID(18), newerEndpoint, name
	return k.take(a, j, newerCreated, kernel.Callback{
		To: in.Nested("options").Text("callback_url"), Body: func(j *kernel.Job) any { return k.newerTask(r, j) },
	})
}

// newerJob checks a request.
func newerJob(in *kernel.Object, operation string, model newerModel) *kernel.Job {
	settings, options := in.Nested("settings"), in.Nested("options")
	j := &kernel.Job{Media: kernel.Media{Kind: "video"}}
	fields := []string{"multi_shot", "audio", "resolution", "duration"}
	ratio := "16:9"
	if operation == "text-to-video" {
		in.Only("prompt", "settings", "options")
		j.Prompt = in.TextMax("prompt", newerPromptMax)
		ratio = settings.Word("aspect_ratio", ratio, "16:9", "9:16", "1:1")
		fields = append(fields, "aspect_ratio")
	} else {
		in.Only("contents", "settings", "options")
		c := readContents(in, operation, model)
		j.Prompt = c.prompt
		if operation == "omni-video" {
			fields = append(fields, "aspect_ratio")
			ratio = settings.Word("aspect_ratio", "", "16:9", "9:16", "1:1")
			if ratio == "" && c.first == 0 && !c.editing {
				settings.Fail("aspect_ratio", "is required without a first frame or a video to edit")
			}
		}
		if model.o1 && c.pictures == 0 && c.videos == 0 {
			model.durations = []int{5, 10}
		}
		if c.videos == 0 {
			model.audio = slices.DeleteFunc(slices.Clone(model.audio), func(a string) bool { return a == "original" })
		}
	}
	if strings.TrimSpace(j.Prompt) == "" {
		in.Fail("prompt", "is required")
	}
	settings.Only(fields...)
	j.Media.Seconds = 5
	if settings.Has("duration") {
		j.Media.Seconds = int(settings.Integer("duration", 1, 60))
	}
	if !slices.Contains(model.durations, j.Media.Seconds) {
		settings.Fail("duration", "%d s is not supported by this model", j.Media.Seconds)
	}
	audio := settings.Word("audio", "off", model.audio...)
	j.Media.Sound = audio != "off"
	if cut := settings.Flag("multi_shot") || !settings.Has("multi_shot"); cut && model.multiShot {
		checkShots(in, j.Prompt, j.Media.Seconds)
	}
	if settings.Has("multi_shot") && !model.multiShot {
		settings.Fail("multi_shot", "is not supported by this model")
	}
	mode := map[string]string{"720p": "std", "1080p": "pro", "4k": "4k"}[settings.Word("resolution", "720p", model.resolutions...)]
	j.Media.Width, j.Media.Height = pixels(mode, ratio)

	options.Only("callback_url", "external_task_id", "watermark_info")
	if options.Has("callback_url") {
		options.Link("callback_url")
	}
	watermark := options.Nested("watermark_info")
	watermark.Only("enabled")
	j.Media.Watermark = watermark.Flag("enabled")
	j.ExternalID = options.Text("external_task_id")
	return j
}

// contents is what a video is made of.
type contents struct {
	prompt                     string
	first, last                int
	pictures, videos, elements int
	editing                    bool
}

func readContents(in *kernel.Object, operation string, model newerModel) contents {
	var c contents
	ids := map[string]bool{}
	prompts := 0
	for _, item := range in.Objects("contents", newerContentsMax) {
		switch kind := item.Word("type", "", newerContents[operation]...); kind {
		case "prompt":
			item.Only("type", "text")
			prompts++
			c.prompt = item.TextMax("text", newerPromptMax)
			continue
		case "element":
			item.Only("type", "element_id", "id")
			c.elements++
			if _, err := strconv.ParseInt(item.Text("element_id"), 10, 64); err != nil {
				item.Fail("element_id", "must be a string of digits")
			}
		default:
			item.Only("type", "url", "id")
			item.Link("url")
			switch kind {
			case "first_frame":
				c.first++
			case "last_frame":
				c.last++
			case "refer_image":
				c.pictures++
			default:
				c.videos++
				c.editing = kind == "base_video"
			}
		}
		if id := item.Text("id"); id != "" {
			if ids[id] {
				item.Fail("id", "is given twice")
			}
			ids[id] = true
		}
	}
	limit := omniRefsMax
	if c.videos > 0 {
		limit = omniRefsVideoMax
	}
	switch {
	case prompts != 1:
		in.Fail("contents", "one prompt is required")
	case c.first > 1 || c.last > 1 || c.last > c.first:
		in.Fail("contents", "at most one first frame, and a last frame beside one only")
	case operation == "image-to-video" && c.first == 0:
		in.Fail("contents", "a first frame is required")
	case operation == "image-to-video" && c.elements > elementsMax, c.first > 0 && c.elements > elementsMax:
		in.Fail("contents", "at most %d elements beside a frame", elementsMax)
	case c.videos > 1:
		in.Fail("contents", "at most one video")
	case c.editing && c.first > 0:
		in.Fail("contents", "frames do not go together with a video to edit")
	case c.first+c.last+c.pictures+c.elements > limit:
		in.Fail("contents", "images and elements together are at most %d here", limit)
	case model.o1 && c.last > 0 && c.pictures+c.elements > 0:
		in.Fail("contents", "this model takes nothing else beside a last frame")
	}
	for _, match := range newerReference.FindAllStringSubmatch(c.prompt, -1) {
		if !ids[match[1]] {
			in.Fail("contents", "@%s refers to nothing", match[1])
		}
	}
	return c
}

var (
	newerReference = regexp.MustCompile(`@((?:image|element|video)_\w+)`)
	newerShot      = regexp.MustCompile(`^\s*shot (\d+), (\d+), (.*)$`)
)

// checkShots reads a prompt in shots: "shot n, m, words; …". Any other text is
// for the vendor to cut.
func checkShots(in *kernel.Object, prompt string, total int) {
	if !newerShot.MatchString(strings.SplitN(prompt, ";", 2)[0]) {
		return
	}
	parts := strings.Split(strings.TrimSuffix(strings.TrimSpace(prompt), ";"), ";")
	sum := 0
	for i, part := range parts {
		match := newerShot.FindStringSubmatch(part)
		if match == nil || match[1] != strconv.Itoa(i+1) {
			in.Fail("prompt", "shot %d is not written as shot n, m, words", i+1)
			return
		}
		length, _ := strconv.Atoi(match[2])
		sum += length
		if utf8.RuneCountInString(match[3]) > shotPromptMax {
			in.Fail("prompt", "shot %d has more than %d characters", i+1, shotPromptMax)
		}
	}
	if len(parts) > shotsMax {
		in.Fail("prompt", "has %d shots, at most %d are allowed", len(parts), shotsMax)
	}
	if sum != total {
		in.Fail("prompt", "the shots last %d s, the video %d s", sum, total)
	}
}

// newerQuery answers for the jobs that one of the two lists of ids names.
func (k *kling) newerQuery(r *http.Request, a kernel.Account) kernel.Reply {
	own, external := r.URL.Query().Get("task_ids"), r.URL.Query().Get("external_task_ids")
	if (own == "") == (external == "") {
		return k.refuse(kernel.CallPoll, codeIllegalValue, "exactly one of task_ids and external_task_ids is required")
	}
	ids := strings.Split(own+external, ",")
	if len(ids) > newerIDsMax {
		return k.refuse(kernel.CallPoll, codeIllegalValue, "too many ids")
	}
	data := []any{}
	rep := kernel.Reply{}
	for _, id := range ids {
		j := k.Find(a, id)
		if j == nil || j.Endpoint != newerEndpoint || (own != "") != (j.ID == id) {
			continue
		}
		if k.Spoiled(j) {
			rep = k.refuse(kernel.CallPoll, codeInternal, "Internal server error, please try again later")
			rep.Job, rep.External = j.ID, j.ExternalID
			return rep
		}
		rep.Job, rep.External = j.ID, j.ExternalID
		data = append(data, k.newerTask(r, j))
	}
	made := k.answer(kernel.CallPoll, data)
	made.Job, made.External = rep.Job, rep.External
	return made
}

// newerWords are the status words of the newer generation.
var newerWords = map[kernel.State]string{
	kernel.StateQueued: "submitted", kernel.StateRunning: "processing", kernel.StateSucceeded: "succeeded", kernel.StateFailed: "failed",
}

func newerCreated(j *kernel.Job) map[string]any {
	return map[string]any{
		"id": j.ID, "status": "submitted", "external_id": j.ExternalID,
		"create_time": j.Created.UnixMilli(), "update_time": j.Created.UnixMilli(),
	}
}

// newerTask is a job as queries show it.
func (k *kling) newerTask(r *http.Request, j *kernel.Job) map[string]any {
	now := k.Now()
	state := j.State(now)
	data := newerCreated(j)
	data["status"], data["message"], data["outputs"], data["billing"] = newerWords[state], "", []any{}, []any{}
	data["update_time"] = j.Changed(now).UnixMilli()
	switch state {
	case kernel.StateFailed:
		data["message"] = failureText(j)
	case kernel.StateSucceeded:
		seconds := strconv.Itoa(j.Media.Seconds)
		video := map[string]any{"type": "video", "id": "v" + j.ID, "url": kernel.Base(r) + j.Link(kernel.FileVideo), "duration": seconds}
		if j.Media.Watermark {
			video["watermark_url"] = kernel.Base(r) + j.Link(kernel.FileMarked)
		}
		data["outputs"] = []any{video}
		data["billing"] = []any{map[string]any{"charge_type": "unit", "package_type": "video", "amount": seconds}}
	case kernel.StateWaiting, kernel.StateQueued, kernel.StateRunning, kernel.StateCancelled:
	}
	return data
}
