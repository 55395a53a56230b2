package minimax

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// The bounds of the second generation.
const (
	secondPromptMax = 7000

	referenceImages = 9
	referenceVideos = 3
	referenceAudios = 3

	// What one file may hold. A video of 50 MB would be allowed too, but the
	// request that held it in base64 would be larger than bodyMax.
	imageBytes = 30 << 20
	audioBytes = 15 << 20

	imageSideMin = 256
	imageSideMax = 5760

	// A video or a sound lasts so long, and the videos together at most as
	// long as one may.
	referenceLeast = 2 * time.Second
	referenceMost  = 15 * time.Second

	// knownTime is how long a job can be asked for.
	knownTime = 7 * 24 * time.Hour

	adaptive = "adaptive"
)

var (
	videoTypes = []string{"video/mp4", "video/quicktime"}
	audioTypes = []string{"audio/mpeg", "audio/mp3", "audio/wav", "audio/x-wav"}
)

// secondKinds are the error types that go with the codes.
var secondKinds = map[int]struct {
	status int
	kind   string
}{
	codeRateLimit: {http.StatusTooManyRequests, "rate_limit_error"},
	codeAuth:      {http.StatusUnauthorized, "authorized_error"},
	codeInternal:  {http.StatusInternalServerError, "server_error"},
	codeInput:     {http.StatusUnprocessableEntity, "unprocessable_entity_error"},
	codeParams:    {http.StatusBadRequest, "bad_request_error"},
	codeKey:       {http.StatusUnauthorized, "authorized_error"},
}

func refuseSecond(kind string, code int, detail string) kernel.Reply {
	e := secondKinds[code]
	return failure(kind, e.status, e.kind, fmt.Sprintf("%s (%d)", messageOf(code, detail), code))
}

// failure is an error in the second generation's envelope.
func failure(kind string, status int, errorType, message string) kernel.Reply {
	id := trace()
	return kernel.Reply{
		Kind: kind, Status: status, Header: map[string]string{"Trace-Id": id},
		Body: map[string]any{
			"type":       "error",
			"error":      map[string]any{"type": errorType, "message": message, "http_code": strconv.Itoa(status)},
			"request_id": id,
		},
	}
}

func (m *minimax) submitSecond(r *http.Request, a kernel.Account) kernel.Reply {
	return m.submit(r, a, second, refuseSecond, secondRules, func(j *kernel.Job) kernel.Reply {
		return kernel.Reply{Kind: kernel.CallSubmit, Status: http.StatusOK, Body: map[string]any{"task_id": j.ID}}
	})
}

// parts is what a request's content holds.
type parts struct {
	prompt        string
	texts         int
	firsts, lasts int
	images        int
	videos        int
	audios        int
	played        time.Duration  // of the videos that were measured
	picture       kernel.Picture // the first that was looked at
}

// secondRules read a request.
func secondRules(in *kernel.Object) *kernel.Job {
	in.Only("model", "content", "resolution", "duration", "ratio", "aigc_watermark", "callback_url")
	if in.Text("model") != "MiniMax-H3" {
		in.Fail("model", "is not one of this endpoint")
	}
	var p parts
	for _, part := range in.Objects("content", 1+referenceImages+referenceVideos+referenceAudios+2) {
		p.add(part)
	}
	p.judge(in)
	resolution := in.Word("resolution", "768P", "768P", "2K")
	seconds := int64(5)
	if in.Has("duration") {
		seconds = in.Integer("duration", 4, 15)
	}
	ratio := in.Word("ratio", adaptive, adaptive, "21:9", "16:9", "4:3", "1:1", "3:4", "9:16")
	switch {
	case p.firsts > 0:
		ratio = adaptive // the frame decides, whatever was asked for
	case ratio == adaptive && p.images+p.videos == 0:
		in.Fail("ratio", "must be a ratio for text alone")
	}
	marked := in.Flag("aigc_watermark")
	callback(in)
	if in.Err() != nil {
		return nil
	}
	width, height := kernel.Ratio(ratio)
	if ratio == adaptive {
		width, height = 16, 9
		if p.picture.Width > 0 {
			width, height = nearest(p.picture)
		}
	}
	w, h := kernel.Pixels(shortSides[resolution], width, height)
	return &kernel.Job{
		Prompt: p.prompt,
		Media:  kernel.Media{Kind: "video", Width: w, Height: h, Seconds: int(seconds), Sound: true, Watermark: marked},
		Detail: map[string]string{
			"resolution": resolution, "ratio": ratio, "input_seconds": strconv.Itoa(int(p.played.Seconds())),
			"input_images": strconv.Itoa(p.firsts + p.lasts + p.images),
		},
	}
}

// nearest is the picture's own shape, within what the vendor makes.
func nearest(p kernel.Picture) (width, height int) {
	switch {
	case 9*p.Width > 21*p.Height:
		return 21, 9
	case 16*p.Width < 9*p.Height:
		return 9, 16
	default:
		return p.Width, p.Height
	}
}

// add reads one part of the content.
func (p *parts) add(part *kernel.Object) {
	switch kind := part.Word("type", "", "text", "image_url", "video_url", "audio_url"); kind {
	case "text":
		part.Only("type", "text")
		p.texts++
		p.prompt = part.TextMax("text", secondPromptMax)
	case "image_url":
		switch role(part, kind, "first_frame", "last_frame", "reference_image") {
		case "first_frame":
			p.firsts++
		case "last_frame":
			p.lasts++
		default:
			p.images++
		}
		p.image(part.Nested(kind))
	case "video_url":
		role(part, kind, "reference_video")
		p.videos++
		p.played += clip(part.Nested(kind), videoTypes, bodyMax)
	case "audio_url":
		role(part, kind, "reference_audio")
		p.audios++
		clip(part.Nested(kind), audioTypes, audioBytes)
	default:
		part.Fail("type", "is required")
	}
}

// role reads what a part is for; the link itself is within an object.
func role(part *kernel.Object, kind string, words ...string) string {
	part.Only("type", kind, "role")
	part.Nested(kind).Only("url")
	word := part.Word("role", "", words...)
	if word == "" {
		part.Fail("role", "is required")
	}
	return word
}

func (p *parts) image(in *kernel.Object) {
	raw, _, ok := content(in, "url", imageTypes)
	if !ok {
		return
	}
	picture, ok := kernel.ReadPicture(raw)
	switch {
	case len(raw) > imageBytes:
		in.Fail("url", "is larger than %d bytes", imageBytes)
	case !ok:
		in.Fail("url", "must be a JPEG, PNG or WebP picture")
	case min(picture.Width, picture.Height) < imageSideMin || max(picture.Width, picture.Height) > imageSideMax:
		in.Fail("url", "must have %d to %d pixels a side", imageSideMin, imageSideMax)
	case p.picture.Width == 0:
		p.picture = picture
	}
}

// clip checks a video or a sound and says how long it plays, if it can.
func clip(in *kernel.Object, types []string, limit int) time.Duration {
	raw, mimeType, ok := content(in, "url", types)
	if !ok {
		return 0
	}
	if len(raw) > limit {
		in.Fail("url", "is larger than %d bytes", limit)
		return 0
	}
	played, ok := length(raw)
	switch {
	case !ok && (mimeType == "audio/mpeg" || mimeType == "audio/mp3"):
		return 0
	case !ok:
		in.Fail("url", "is not readable")
	case played < referenceLeast || played > referenceMost:
		in.Fail("url", "must play %s to %s", referenceLeast, referenceMost)
	}
	return played
}

// judge checks what goes together.
func (p *parts) judge(in *kernel.Object) {
	references := p.images + p.videos + p.audios
	switch {
	case p.texts > 1:
		in.Fail("content", "at most one text is allowed")
	case p.firsts > 1 || p.lasts > 1:
		in.Fail("content", "at most one first and one last frame are allowed")
	case p.lasts > p.firsts:
		in.Fail("content", "a last frame needs a first frame")
	case p.firsts > 0 && references > 0:
		in.Fail("content", "frames do not go together with references")
	case p.images > referenceImages:
		in.Fail("content", "at most %d reference images are allowed", referenceImages)
	case p.videos > referenceVideos:
		in.Fail("content", "at most %d reference videos are allowed", referenceVideos)
	case p.audios > referenceAudios:
		in.Fail("content", "at most %d reference audios are allowed", referenceAudios)
	case p.audios > 0 && p.images+p.videos == 0:
		in.Fail("content", "an audio needs an image or a video")
	case p.played > referenceMost:
		in.Fail("content", "the videos play longer than %s together", referenceMost)
	case strings.TrimSpace(p.prompt) == "" && p.firsts+references == 0:
		in.Fail("content", "a text is required")
	}
}

// known reports whether the vendor still answers for the job.
func (m *minimax) known(j *kernel.Job) bool {
	return j != nil && m.Now().Sub(j.Created) < knownTime
}

func (m *minimax) querySecond(r *http.Request, a kernel.Account) kernel.Reply {
	j := m.find(a, second, r.PathValue("id"))
	if !m.known(j) {
		return refuseSecond(kernel.CallPoll, codeParams, "invalid task_id")
	}
	rep := kernel.Reply{Kind: kernel.CallPoll, Status: http.StatusOK, Body: map[string]any{"task": m.task(r, j)}}
	if m.Spoiled(j) {
		rep = refuseSecond(kernel.CallPoll, codeInternal, "")
	}
	rep.Job = j.ID
	return rep
}

// listSecond pages through the jobs, newest first. The vendor's documents that
// were at hand name the parameters; the names in the answer follow the query.
func (m *minimax) listSecond(r *http.Request, a kernel.Account) kernel.Reply {
	page, okPage := kernel.PageValue(r, "page_num", 1, 1000)
	size, okSize := kernel.PageValue(r, "page_size", 20, 100)
	if !okPage || !okSize {
		return refuseSecond(kernel.CallList, codeParams, "page_num is 1 to 1000, page_size 1 to 100")
	}
	jobs := m.Jobs(a, func(j *kernel.Job) bool { return j.Endpoint == second && m.known(j) })
	tasks := []any{}
	for i := len(jobs) - 1 - (page-1)*size; i >= 0 && len(tasks) < size; i-- {
		tasks = append(tasks, m.task(r, jobs[i]))
	}
	return kernel.Reply{Kind: kernel.CallList, Status: http.StatusOK, Body: map[string]any{"tasks": tasks, "total": len(jobs)}}
}

// remove cancels a job that is queued and forgets one that has ended; one that
// runs, or was cancelled, stays.
func (m *minimax) remove(r *http.Request, a kernel.Account) kernel.Reply {
	j := m.find(a, second, r.PathValue("id"))
	if !m.known(j) {
		return refuseSecond(kernel.CallCancel, codeParams, "invalid task_id")
	}
	m.Count(j, kernel.CallCancel)
	now := m.Now().UTC()
	done := m.Change(j, func(j *kernel.Job) bool {
		switch j.State(now) {
		case kernel.StateQueued:
			j.Cancelled = &now
		case kernel.StateSucceeded, kernel.StateFailed:
			j.Removed = true
		default:
			return false
		}
		return true
	})
	rep := kernel.Reply{Kind: kernel.CallCancel, Status: http.StatusOK, Body: map[string]any{}}
	if !done {
		rep = refuseSecond(kernel.CallCancel, codeParams, "the task is "+secondWords[j.State(now)])
	}
	rep.Job = j.ID
	return rep
}

// secondWords are the status words.
var secondWords = map[kernel.State]string{
	kernel.StateQueued: "queued", kernel.StateRunning: "running", kernel.StateSucceeded: "succeeded",
	kernel.StateFailed: "failed", kernel.StateCancelled: "cancelled",
}

// task is a job as queries show it.
func (m *minimax) task(r *http.Request, j *kernel.Job) map[string]any {
	state := j.State(m.Now())
	out := map[string]any{"id": j.ID, "model": j.Model, "status": secondWords[state], "task_type": "generation", "modality": "video"}
	switch state {
	case kernel.StateFailed:
		out["error"] = map[string]any{"code": "server_error", "message": "the video could not be made"}
		if j.Directive.Fail == kernel.FailModeration {
			out["error"] = map[string]any{"code": "unprocessable_entity_error", "message": fmt.Sprintf("%s (%d)", messageOf(codeOutput, ""), codeOutput)}
		}
	case kernel.StateSucceeded:
		input, _ := strconv.Atoi(j.Detail["input_seconds"])
		images, _ := strconv.Atoi(j.Detail["input_images"])
		out["content"] = map[string]any{"url": kernel.Base(r) + j.Link(file(j))}
		out["resolution"], out["duration"], out["ratio"] = j.Detail["resolution"], j.Media.Seconds, j.Detail["ratio"]
		out["usage"] = map[string]any{
			"total_seconds": input + j.Media.Seconds, "input_seconds": input, "output_seconds": j.Media.Seconds, "input_image_count": images,
		}
	default:
	}
	return out
}
