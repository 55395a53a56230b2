package fal

import (
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/mediagate/mediagate/sandbox/kernel"
	"github.com/mediagate/mediagate/sandbox/sample"
)

// Vendor returns fal with its customer account.
func Vendor() kernel.Vendor {
	v := kernel.NewVendor("fal", "/fal", "api_key", "sandbox-fal-key-id:sandbox-fal-key-secret", mount)
	v.Files = file
	return v
}

//go:embed schema
var files embed.FS

var schemas = kernel.NewSchemas(files)

// The types of errors.
const (
	badValue      = "value_error"
	refused       = "content_policy_violation"
	internalError = "internal_server_error"
	cancelled     = "client_cancelled"
)

const unprocessable = http.StatusUnprocessableEntity

// bodyMax is the largest request, in bytes.
const bodyMax = 10 << 20

type fal struct {
	*kernel.Service
}

func mount(s *kernel.Service) http.Handler {
	v := &fal{s}
	const jobs = "/{owner}/{app}/requests/{id}"
	return s.Routes(s.ByCredential("Authorization", "Key ", "api_key", refuse), refuse, map[string]kernel.Handler{
		"POST /{model...}":        v.submit,
		"GET " + jobs + "/status": v.status,
		"GET " + jobs:             v.result,
		"PUT " + jobs + "/cancel": v.cancel,
	})
}

// refuse reports a fault in fal's words. Faults of content and of fields take the form of a
// model's error, the others that of the queue's.
func refuse(kind string, f kernel.Fault, err error) kernel.Reply {
	switch f {
	case kernel.NoKey:
		return queueError(kind, http.StatusUnauthorized, "invalid key credentials", "unauthorized")
	case kernel.NoPath:
		return queueError(kind, http.StatusNotFound, "Not Found", "not_found")
	case kernel.NoJob:
		return kernel.Reply{Kind: kind, Status: http.StatusNotFound, Body: map[string]any{"status": "NOT_FOUND"}}
	case kernel.Internal:
		return queueError(kind, http.StatusInternalServerError, "Internal error", "internal_error")
	case kernel.TooManyJobs:
		return queueError(kind, http.StatusTooManyRequests, "Too many requests", "concurrent_requests_limit")
	case kernel.Inappropriate:
		return modelError(kind, unprocessable, "prompt", flagged, refused)
	default:
		if err == nil { // the kernel describes only some faults
			return modelError(kind, unprocessable, "", "The request cannot be processed", badValue)
		}
		field, text, _ := strings.Cut(err.Error(), ": ")
		return modelError(kind, unprocessable, field, text, badValue)
	}
}

// queueError returns an error of the queue.
func queueError(kind string, status int, text, name string) kernel.Reply {
	return kernel.Reply{
		Kind: kind, Status: status, Header: map[string]string{"X-Fal-Error-Type": name},
		Body: map[string]any{"detail": text, "error_type": name},
	}
}

// modelError returns an error of a model about a field.
func modelError(kind string, status int, field, text, name string) kernel.Reply {
	where := []any{"body"}
	if field != "" {
		where = append(where, field)
	}
	return kernel.Reply{Kind: kind, Status: status, Body: map[string]any{"detail": []any{map[string]any{
		"loc": where, "msg": text, "type": name, "url": "https://docs.fal.ai/errors/#" + name,
	}}}}
}

// submit creates a job for any JSON object. If the request breaks a rule of the model, the
// violation becomes the job's result.
func (v *fal) submit(r *http.Request, a kernel.Account) kernel.Reply {
	name := r.PathValue("model")
	m, ok := models[name]
	if !ok {
		return queueError(kernel.CallSubmit, http.StatusNotFound, fmt.Sprintf("Application %q not found", name), "not_found")
	}
	body, err := kernel.ReadBody(r, bodyMax)
	if err != nil {
		return modelError(kernel.CallSubmit, unprocessable, "", err.Error(), "json_invalid")
	}
	j := m.job(body)
	j.ID, j.Model, j.Prompt = kernel.UUID(), name, body.Text("prompt")
	if err := schemas.Check(m.schema, body); err != nil {
		j.Detail["wrong"] = err.Error()
	}
	return v.Accept(a, j, refuse, func(made *kernel.Job) kernel.Reply {
		body := links(r, made)
		body["status"], body["queue_position"] = "IN_QUEUE", 0
		return kernel.OK(kernel.CallSubmit, body)
	})
}

const flagged = "The content could not be processed because it contained material flagged by a content checker."

// app returns the path below which a job is polled.
func app(j *kernel.Job) string {
	parts := strings.SplitN(j.Model, "/", 3)
	return parts[0] + "/" + parts[1]
}

// links returns the id of a job and the addresses of its calls.
func links(r *http.Request, j *kernel.Job) map[string]any {
	at := kernel.Base(r) + "/fal/" + app(j) + "/requests/" + j.ID
	return map[string]any{
		"request_id": j.ID, "response_url": at, "status_url": at + "/status", "cancel_url": at + "/cancel",
	}
}

// find returns the job in the path if it belongs to the app in the path.
func (v *fal) find(r *http.Request, a kernel.Account) *kernel.Job {
	j := v.Find(a, r.PathValue("id"))
	if j == nil || app(j) != r.PathValue("owner")+"/"+r.PathValue("app") {
		return nil
	}
	return j
}

// status answers with the state of a job. A cancelled job has an error here. A refusal of the
// model is visible only in the result.
func (v *fal) status(r *http.Request, a kernel.Account) kernel.Reply {
	j := v.find(r, a)
	if j == nil {
		return refuse(kernel.CallPoll, kernel.NoJob, nil)
	}
	rep := kernel.Reply{Kind: kernel.CallPoll, Status: http.StatusAccepted, Job: j.ID}
	if v.CountPoll(j) {
		rep = refuse(kernel.CallPoll, kernel.Internal, nil)
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
		body["metrics"] = map[string]any{"inference_time": j.Duration().Seconds()}
		if j.Cancelled != nil {
			body["error"], body["error_type"] = "Request was cancelled by the client", cancelled
		}
	}
	rep.Body = body
	return rep
}

// result answers with the model's answer and its HTTP status.
func (v *fal) result(r *http.Request, a kernel.Account) kernel.Reply {
	j := v.find(r, a)
	if j == nil {
		return refuse(kernel.CallOther, kernel.NoJob, nil)
	}
	rep := kernel.Reply{Kind: kernel.CallOther, Status: http.StatusOK}
	switch state := j.State(v.Now()); {
	case state == kernel.StateQueued, state == kernel.StateRunning:
		rep = queueError(kernel.CallOther, http.StatusBadRequest, "Request is still in progress", "bad_request")
	case state == kernel.StateCancelled:
		rep = queueError(kernel.CallOther, 499, "Request was cancelled by the client", cancelled)
	case j.Detail["wrong"] != "":
		field, text, _ := strings.Cut(j.Detail["wrong"], ": ")
		rep = modelError(kernel.CallOther, unprocessable, field, text, badValue)
	case state == kernel.StateFailed && j.Directive.Fail == kernel.FailModeration:
		rep = modelError(kernel.CallOther, unprocessable, "prompt", flagged, refused)
	case state == kernel.StateFailed:
		rep = modelError(kernel.CallOther, http.StatusInternalServerError, "", "Internal server error", internalError)
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

// images returns the result of a job that makes images. None of them is flagged.
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

// cancel stops a job that has not ended. It may be repeated.
func (v *fal) cancel(r *http.Request, a kernel.Account) kernel.Reply {
	j := v.find(r, a)
	if j == nil {
		return refuse(kernel.CallCancel, kernel.NoJob, nil)
	}
	rep := kernel.Reply{Kind: kernel.CallCancel, Status: http.StatusAccepted, Job: j.ID}
	rep.Body = map[string]any{"status": "CANCELLATION_REQUESTED"}
	if !v.Stop(j, kernel.StateQueued, kernel.StateRunning, kernel.StateCancelled) {
		rep.Status, rep.Body = http.StatusBadRequest, map[string]any{"status": "ALREADY_COMPLETED"}
	}
	return rep
}

// model is one of the models: the schema of its requests and the function that creates a job.
type model struct {
	schema string
	job    func(kernel.Body) *kernel.Job
}

var models = map[string]model{
	"fal-ai/flux/schnell":          {"flux-schnell", image},
	"fal-ai/ltx-2.3/text-to-video": {"ltx-text-to-video", video},
}

// sizes holds the pixels of an image by the vendor's names for them.
var sizes = map[string][2]int{
	"square_hd": {1024, 1024}, "square": {512, 512}, "portrait_4_3": {768, 1024}, "portrait_16_9": {576, 1024},
	"landscape_4_3": {1024, 768}, "landscape_16_9": {1024, 576},
}

func image(b kernel.Body) *kernel.Job {
	size := sizes[cmp.Or(b.Text("image_size"), "landscape_4_3")]
	seed := 1
	if _, given := b["seed"]; given {
		seed = b.Int("seed")
	}
	return &kernel.Job{
		Media: kernel.Media{Kind: "image", Width: size[0], Height: size[1]},
		Detail: map[string]string{
			"images": strconv.Itoa(cmp.Or(b.Int("num_images"), 1)),
			"seed":   strconv.Itoa(seed),
		},
	}
}

// shortSides holds the pixels of a video's shorter side.
var shortSides = map[string]int{"1080p": 1080, "1440p": 1440, "2160p": 2160}

func video(b kernel.Body) *kernel.Job {
	w, h := kernel.Pixels(cmp.Or(shortSides[b.Text("resolution")], 1080), 16, 9)
	if b.Text("aspect_ratio") == "9:16" {
		w, h = h, w
	}
	return &kernel.Job{
		Media: kernel.Media{
			Kind: "video", Width: w, Height: h, Seconds: cmp.Or(b.Int("duration"), 6), Sound: b.Flag("generate_audio", true),
		},
		Detail: map[string]string{},
	}
}
