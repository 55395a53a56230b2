package fal

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/mediagate/mediagate/sandbox/kernel"
	"github.com/mediagate/mediagate/sandbox/sample"
)

// Vendor is fal with the customer that it has here.
func Vendor() kernel.Vendor {
	const name, key = "fal", "sandbox-fal-key-id:sandbox-fal-key-secret"
	return kernel.Vendor{
		Name:    name,
		Account: kernel.Account{Provider: name, Credentials: map[string]string{"api_key": key}},
		Channel: kernel.Channel{Provider: name, Path: "/fal", Credentials: map[string]string{"api_key": key}},
		Mount:   mount,
		Files:   file,
	}
}

// The types of errors.
const (
	badValue      = "value_error"
	refused       = "content_policy_violation"
	internalError = "internal_server_error"
	cancelled     = "client_cancelled"
)

const unprocessable = http.StatusUnprocessableEntity

// bodyMax is the most that one request may hold.
const bodyMax = 10 << 20

type fal struct {
	*kernel.Service
}

func mount(s *kernel.Service) http.Handler {
	v := &fal{s}
	mux := http.NewServeMux()
	serve := func(path string, h func(*http.Request, kernel.Account) kernel.Reply) {
		mux.Handle(path, s.Keyed("Key ", h, func(*http.Request) kernel.Reply {
			return say(kernel.CallOther, http.StatusUnauthorized, "invalid key credentials", "unauthorized")
		}))
	}
	const jobs = "/{owner}/{app}/requests/{id}"
	serve("POST /{model...}", v.submit)
	serve("GET "+jobs+"/status", v.status)
	serve("GET "+jobs, v.result)
	serve("PUT "+jobs+"/cancel", v.cancel)
	serve("/", func(*http.Request, kernel.Account) kernel.Reply {
		return say(kernel.CallOther, http.StatusNotFound, "Not Found", "not_found")
	})
	return mux
}

// say is an error of the queue.
func say(kind string, status int, text, name string) kernel.Reply {
	return kernel.Reply{
		Kind: kind, Status: status, Header: map[string]string{"X-Fal-Error-Type": name},
		Body: map[string]any{"detail": text, "error_type": name},
	}
}

// detail is an error of a model about a field.
func detail(kind string, status int, field, text, name string) kernel.Reply {
	where := []any{"body"}
	if field != "" {
		where = append(where, field)
	}
	return kernel.Reply{Kind: kind, Status: status, Body: map[string]any{"detail": []any{map[string]any{
		"loc": where, "msg": text, "type": name, "url": "https://docs.fal.ai/errors/#" + name,
	}}}}
}

// lost is the answer about a job that there is not.
func lost(kind string) kernel.Reply {
	return kernel.Reply{Kind: kind, Status: http.StatusNotFound, Body: map[string]any{"status": "NOT_FOUND"}}
}

// submit takes a job for any request that is JSON. What is wrong with it is the job's
// result.
func (v *fal) submit(r *http.Request, a kernel.Account) kernel.Reply {
	name := r.PathValue("model")
	m, ok := models[name]
	if !ok {
		return say(kernel.CallSubmit, http.StatusNotFound, fmt.Sprintf("Application %q not found", name), "not_found")
	}
	in, err := kernel.ReadObject(r, bodyMax)
	if err != nil {
		return detail(kernel.CallSubmit, unprocessable, "", err.Error(), "json_invalid")
	}
	j := m(in)
	j.ID, j.Model, j.Prompt = kernel.UUID(), name, in.Text("prompt")
	if in.Err() != nil {
		j.Detail["wrong"] = in.Err().Error()
	}
	return v.Take(a, j, kernel.Refusals{
		Rejected:  detail(kernel.CallSubmit, unprocessable, "prompt", kernel.DirectiveTrouble(j.Prompt), badValue),
		Moderated: detail(kernel.CallSubmit, unprocessable, "prompt", flagged, refused),
		Broken:    say(kernel.CallSubmit, http.StatusInternalServerError, "Internal error", "internal_error"),
		Busy:      say(kernel.CallSubmit, http.StatusTooManyRequests, "Too many requests", "concurrent_requests_limit"),
	}, func(made *kernel.Job) kernel.Reply {
		body := links(r, made)
		body["status"], body["queue_position"] = "IN_QUEUE", 0
		return kernel.Reply{Kind: kernel.CallSubmit, Status: http.StatusOK, Body: body}
	})
}

const flagged = "The content could not be processed because it contained material flagged by a content checker."

// app is the path by which a job is asked for.
func app(j *kernel.Job) string {
	parts := strings.SplitN(j.Model, "/", 3)
	return parts[0] + "/" + parts[1]
}

// links are the id of a job and the addresses of its calls.
func links(r *http.Request, j *kernel.Job) map[string]any {
	at := kernel.Base(r) + "/fal/" + app(j) + "/requests/" + j.ID
	return map[string]any{
		"request_id": j.ID, "response_url": at, "status_url": at + "/status", "cancel_url": at + "/cancel",
	}
}

// find finds a job of the app in the path.
func (v *fal) find(r *http.Request, a kernel.Account) *kernel.Job {
	j := v.Find(a, r.PathValue("id"))
	if j == nil || app(j) != r.PathValue("owner")+"/"+r.PathValue("app") {
		return nil
	}
	return j
}

// status tells where a job stands. That a job was stopped is an error here; what the
// model refused is not.
func (v *fal) status(r *http.Request, a kernel.Account) kernel.Reply {
	j := v.find(r, a)
	if j == nil {
		return lost(kernel.CallPoll)
	}
	rep := kernel.Reply{Kind: kernel.CallPoll, Status: http.StatusAccepted, Job: j.ID}
	if v.Spoiled(j) {
		rep = say(kernel.CallPoll, http.StatusInternalServerError, "Internal error", "internal_error")
		rep.Job = j.ID
		return rep
	}
	body := links(r, j)
	switch j.State(v.Now()) {
	case kernel.StateQueued:
		body["status"], body["queue_position"] = "IN_QUEUE", 0
	case kernel.StateRunning:
		body["status"], body["logs"] = "IN_PROGRESS", nil
	default:
		rep.Status, body["status"], body["logs"] = http.StatusOK, "COMPLETED", nil
		body["metrics"] = map[string]any{"inference_time": j.Takes().Seconds()}
		if j.Cancelled != nil {
			body["error"], body["error_type"] = "Request was cancelled by the client", cancelled
		}
	}
	rep.Body = body
	return rep
}

// result is what the model answered, with its HTTP status.
func (v *fal) result(r *http.Request, a kernel.Account) kernel.Reply {
	j := v.find(r, a)
	if j == nil {
		return lost(kernel.CallOther)
	}
	rep := kernel.Reply{Kind: kernel.CallOther, Status: http.StatusOK}
	switch state := j.State(v.Now()); {
	case state == kernel.StateQueued, state == kernel.StateRunning:
		rep = say(kernel.CallOther, http.StatusBadRequest, "Request is still in progress", "bad_request")
	case state == kernel.StateCancelled:
		rep = say(kernel.CallOther, 499, "Request was cancelled by the client", cancelled)
	case j.Detail["wrong"] != "":
		field, text, _ := strings.Cut(j.Detail["wrong"], ": ")
		rep = detail(kernel.CallOther, unprocessable, field, text, badValue)
	case state == kernel.StateFailed && j.Directive.Fail == kernel.FailModeration:
		rep = detail(kernel.CallOther, unprocessable, "prompt", flagged, refused)
	case state == kernel.StateFailed:
		rep = detail(kernel.CallOther, http.StatusInternalServerError, "", "Internal server error", internalError)
	case j.Media.Kind == "video":
		rep.Body = map[string]any{"video": map[string]any{
			"url": kernel.Base(r) + j.Link(kernel.FileVideo), "content_type": "video/mp4", "file_name": kernel.FileVideo,
			"width": j.Media.Width, "height": j.Media.Height, "duration": j.Media.Seconds,
		}}
	default:
		rep.Body = images(r, j)
	}
	rep.Job = j.ID
	return rep
}

// images are those of a job, none of them flagged.
func images(r *http.Request, j *kernel.Job) map[string]any {
	var list, flags []any
	n, _ := strconv.Atoi(j.Detail["images"])
	for i := range n {
		list, flags = append(list, map[string]any{
			"url":   kernel.Base(r) + j.Link(fmt.Sprintf("image-%d.png", i)),
			"width": j.Media.Width, "height": j.Media.Height, "content_type": "image/png",
		}), append(flags, false)
	}
	return map[string]any{
		"images": list, "has_nsfw_concepts": flags, "prompt": j.Prompt, "seed": json.Number(j.Detail["seed"]),
	}
}

// file makes one of a job's images.
func file(j *kernel.Job, name string) (*io.SectionReader, string, bool) {
	if !strings.HasPrefix(name, "image-") {
		return nil, "", false
	}
	return sample.Padded(sample.Image(j.Media.Width, j.Media.Height), j.Directive.ResultBytes), "image/png", true
}

// cancel stops a job that has not ended. It is taken again.
func (v *fal) cancel(r *http.Request, a kernel.Account) kernel.Reply {
	j := v.find(r, a)
	if j == nil {
		return lost(kernel.CallCancel)
	}
	v.Count(j, kernel.CallCancel)
	now := v.Now().UTC()
	rep := kernel.Reply{Kind: kernel.CallCancel, Status: http.StatusAccepted, Job: j.ID}
	rep.Body = map[string]any{"status": "CANCELLATION_REQUESTED"}
	if !v.Change(j, func(j *kernel.Job) bool {
		switch j.State(now) {
		case kernel.StateSucceeded, kernel.StateFailed:
			return false
		default:
			j.Cancelled = &now
			return true
		}
	}) {
		rep.Status, rep.Body = http.StatusBadRequest, map[string]any{"status": "ALREADY_COMPLETED"}
	}
	return rep
}

// models are the ones that are played: each reads a request and says what becomes of it.
var models = map[string]func(*kernel.Object) *kernel.Job{
	"fal-ai/flux/schnell":          image,
	"fal-ai/ltx-2.3/text-to-video": video,
}

// sizes are the pixels of an image by the vendor's names for them.
var sizes = map[string][2]int{
	"square_hd": {1024, 1024}, "square": {512, 512}, "portrait_4_3": {768, 1024}, "portrait_16_9": {576, 1024},
	"landscape_4_3": {1024, 768}, "landscape_16_9": {1024, 576},
}

func image(in *kernel.Object) *kernel.Job {
	in.Only("prompt", "image_size", "num_inference_steps", "guidance_scale", "seed", "sync_mode", "num_images",
		"enable_safety_checker", "output_format", "acceleration")
	require(in, "prompt")
	n, seed := int64(1), int64(1)
	if in.Has("num_images") {
		n = in.Integer("num_images", 1, 4)
	}
	if in.Has("seed") {
		seed = in.Integer("seed", 0, 1<<53)
	}
	size := in.Word("image_size", "landscape_4_3", slices.Sorted(maps.Keys(sizes))...)
	if in.Word("output_format", "jpeg", "jpeg", "png") != "png" {
		in.Fail("output_format", "only png is played here")
	}
	return &kernel.Job{
		Media:  kernel.Media{Kind: "image", Width: sizes[size][0], Height: sizes[size][1]},
		Detail: map[string]string{"images": strconv.FormatInt(n, 10), "seed": strconv.FormatInt(seed, 10)},
	}
}

func video(in *kernel.Object) *kernel.Job {
	in.Only("prompt", "duration", "resolution", "aspect_ratio", "fps", "generate_audio")
	require(in, "prompt")
	seconds := int64(6)
	if in.Has("duration") {
		if seconds = in.Integer("duration", 6, 10); seconds%2 != 0 {
			in.Fail("duration", "must be 6, 8 or 10")
		}
	}
	short := map[string]int{"1080p": 1080, "1440p": 1440, "2160p": 2160}
	w, h := kernel.Pixels(short[in.Word("resolution", "1080p", slices.Sorted(maps.Keys(short))...)], 16, 9)
	if in.Word("aspect_ratio", "16:9", "16:9", "9:16") == "9:16" {
		w, h = h, w
	}
	sound := !in.Has("generate_audio") || in.Flag("generate_audio")
	return &kernel.Job{
		Media:  kernel.Media{Kind: "video", Width: w, Height: h, Seconds: int(seconds), Sound: sound},
		Detail: map[string]string{},
	}
}

func require(in *kernel.Object, name string) {
	if strings.TrimSpace(in.Text(name)) == "" {
		in.Fail(name, "Field required")
	}
}
