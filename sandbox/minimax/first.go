package minimax

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// The bounds of the first generation.
const (
	firstPromptMax = 2000

	// linkTime is how long the link to a file is good.
	linkTime = time.Hour

	// fileOffset parts the ids of files from those of their jobs.
	fileOffset = 1_000_000_000_000_000
)

// firstModel is what differs between models.
type firstModel struct {
	resolutions []string
	lastFrame   bool
	imageOnly   bool
}

var firstModels = map[string]firstModel{
	"MiniMax-Hailuo-02":       {resolutions: []string{"512P", "768P", "1080P"}, lastFrame: true},
	"MiniMax-Hailuo-2.3":      {resolutions: []string{"768P", "1080P"}},
	"MiniMax-Hailuo-2.3-Fast": {resolutions: []string{"768P", "1080P"}, imageOnly: true},
}

// shortSides are the pixels of both generations' resolutions.
var shortSides = map[string]int{"512P": 512, "768P": 768, "1080P": 1080, "2K": 1440}

// refuseFirst tells an error with HTTP 200.
func refuseFirst(kind string, code int, detail string) kernel.Reply {
	body := map[string]any{"base_resp": base(code, detail)}
	if kind == kernel.CallSubmit || kind == kernel.CallPoll {
		body["task_id"] = ""
	}
	return kernel.Reply{Kind: kind, Status: http.StatusOK, Body: body}
}

func base(code int, detail string) map[string]any {
	if code == 0 {
		return map[string]any{"status_code": 0, "status_msg": "success"}
	}
	return map[string]any{"status_code": code, "status_msg": messageOf(code, detail)}
}

func (m *minimax) submitFirst(r *http.Request, a kernel.Account) kernel.Reply {
	return m.submit(r, a, first, refuseFirst, firstRules, func(j *kernel.Job) kernel.Reply {
		return kernel.Reply{Kind: kernel.CallSubmit, Status: http.StatusOK, Body: map[string]any{"task_id": j.ID, "base_resp": base(0, "")}}
	})
}

// firstRules read a request.
func firstRules(in *kernel.Object) *kernel.Job {
	in.Only("model", "prompt", "prompt_optimizer", "fast_pretreatment", "duration", "resolution",
		"first_frame_image", "last_frame_image", "subject_reference", "aigc_watermark", "callback_url")
	model, ok := firstModels[in.Text("model")]
	if !ok {
		in.Fail("model", "is not one of this endpoint")
		return nil
	}
	in.Flag("prompt_optimizer")
	in.Flag("fast_pretreatment")
	if in.Has("subject_reference") {
		in.Fail("subject_reference", "is not supported by this model")
	}
	width, height := 16, 9
	for _, name := range []string{"last_frame_image", "first_frame_image"} {
		if in.Has(name) {
			if p, ok := frame(in, name); ok {
				width, height = p.Width, p.Height
			}
		}
	}
	opens, closes := in.Has("first_frame_image"), in.Has("last_frame_image")
	prompt := in.TextMax("prompt", firstPromptMax)
	resolution := in.Word("resolution", "768P", model.resolutions...)
	seconds := int64(6)
	if in.Has("duration") {
		seconds = in.Integer("duration", 6, 10)
	}
	switch {
	case strings.TrimSpace(prompt) == "" && !opens && !closes:
		in.Fail("prompt", "is required")
	case model.imageOnly && !opens:
		in.Fail("first_frame_image", "is required by this model")
	case closes && !model.lastFrame:
		in.Fail("last_frame_image", "is not supported by this model")
	case resolution == "512P" && !opens:
		in.Fail("resolution", "512P is for image to video")
	case resolution == "512P" && closes:
		in.Fail("last_frame_image", "does not go together with 512P")
	case !slices.Contains([]int64{6, 10}, seconds):
		in.Fail("duration", "must be 6 or 10")
	case seconds == 10 && resolution == "1080P":
		in.Fail("duration", "must be 6 with 1080P")
	}
	marked := in.Flag("aigc_watermark")
	callback(in)
	w, h := kernel.Pixels(shortSides[resolution], width, height)
	return &kernel.Job{
		Prompt: prompt,
		Media:  kernel.Media{Kind: "video", Width: w, Height: h, Seconds: int(seconds), Watermark: marked},
	}
}

func callback(in *kernel.Object) {
	if in.Has("callback_url") {
		in.Link("callback_url")
	}
}

// queryFirst shows a job with the id of its file, once there is one.
func (m *minimax) queryFirst(r *http.Request, a kernel.Account) kernel.Reply {
	id := r.FormValue("task_id")
	j := m.find(a, first, id)
	if j == nil {
		return refuseFirst(kernel.CallPoll, codeParams, "task_id is unknown")
	}
	if m.Spoiled(j) {
		rep := refuseFirst(kernel.CallPoll, codeInternal, "")
		rep.Job = j.ID
		return rep
	}
	now := m.Now()
	body := map[string]any{"task_id": j.ID, "status": firstWord(j, now), "file_id": "", "base_resp": base(0, "")}
	switch j.State(now) {
	case kernel.StateSucceeded:
		body["file_id"] = strconv.FormatInt(fileID(j), 10)
		body["video_width"], body["video_height"] = j.Media.Width, j.Media.Height
	case kernel.StateFailed:
		if j.Directive.Fail == kernel.FailModeration {
			body["base_resp"] = base(codeOutput, "")
		}
	default:
	}
	return kernel.Reply{Kind: kernel.CallPoll, Status: http.StatusOK, Job: j.ID, Body: body}
}

// firstWord is the status; a queued job prepares for half of its time there.
func firstWord(j *kernel.Job, now time.Time) string {
	switch j.State(now) {
	case kernel.StateQueued:
		if now.Sub(j.Created) < j.Takes()/20 {
			return "Preparing"
		}
		return "Queueing"
	case kernel.StateRunning:
		return "Processing"
	case kernel.StateSucceeded:
		return "Success"
	default:
		return "Fail"
	}
}

func fileID(j *kernel.Job) int64 {
	n, _ := strconv.ParseInt(j.ID, 10, 64)
	return n + fileOffset
}

// retrieve gives a link to a file; each call gives a fresh one.
func (m *minimax) retrieve(r *http.Request, a kernel.Account) kernel.Reply {
	n, err := strconv.ParseInt(r.FormValue("file_id"), 10, 64)
	if err != nil {
		return refuseFirst(kernel.CallOther, codeParams, "file_id must be a number")
	}
	now := m.Now()
	j := m.find(a, first, strconv.FormatInt(n-fileOffset, 10))
	if j == nil || j.State(now) != kernel.StateSucceeded {
		return refuseFirst(kernel.CallOther, codeParams, "file_id is unknown")
	}
	content, _, _ := j.File(file(j))
	return kernel.Reply{Kind: kernel.CallOther, Status: http.StatusOK, Job: j.ID, Body: map[string]any{
		"file": map[string]any{
			"file_id": n, "bytes": content.Size(), "created_at": j.Changed(now).Unix(), "filename": "output_aigc.mp4",
			"purpose": "video_generation", "download_url": kernel.Base(r) + j.LinkUntil(file(j), now.Add(linkTime)),
		},
		"base_resp": base(0, ""),
	}}
}
