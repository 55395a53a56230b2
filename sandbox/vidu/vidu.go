package vidu

import (
	"cmp"
	"embed"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// Vendor returns Vidu with its customer account.
func Vendor() kernel.Vendor {
	return kernel.NewVendor("vidu", "/vidu/ent/v2", "api_key", "vda_sandbox_vidu", mount)
}

//go:embed schema
var files embed.FS

var schemas = kernel.NewSchemas(files)

// The names of errors that occur in more than one place.
const (
	fieldInvalid    = "FieldInvalid"
	internalFailure = "InternalServiceFailure"
)

var refuseBy = kernel.NewRefuse(map[kernel.Fault]kernel.FaultText{
	kernel.NoKey: kernel.NewFaultText(http.StatusUnauthorized, "Unauthorized",
		"carry a valid key after the word Token"),
	kernel.NoPath:        kernel.NewFaultText(http.StatusNotFound, "NotFound", "there is no such page"),
	kernel.NoJob:         kernel.NewFaultText(http.StatusNotFound, "TaskNotFound", "there is no such task"),
	kernel.WrongState:    kernel.NewFaultText(http.StatusBadRequest, "BadRequest", "the task waits no more"),
	kernel.Invalid:       kernel.NewFaultText(http.StatusBadRequest, fieldInvalid, ""),
	kernel.Inappropriate: kernel.NewFaultText(http.StatusBadRequest, "AuditSubmitIllegal", "the prompt was refused"),
	kernel.Internal:      kernel.NewFaultText(http.StatusInternalServerError, internalFailure, "internal error"),
	kernel.TooManyJobs:   kernel.NewFaultText(http.StatusTooManyRequests, "QuotaExceeded", "too many tasks at once"),
}, func(w kernel.FaultText) any {
	// The vendor does not document its envelope.
	return map[string]any{"code": w.Status, "reason": w.Code, "message": w.Message, "metadata": map[string]any{}}
})

// reasons holds the vendor's names for violations, by the keyword of the schema.
var reasons = map[string]string{
	"additionalProperties": "FieldUnwanted", "required": "FieldLacking",
	"minItems": "FieldItemCountOutOfRange", "maxItems": "FieldItemCountOutOfRange",
}

// refuse reports a violation by the vendor's name for it.
func refuse(kind string, f kernel.Fault, err error) kernel.Reply {
	rep := refuseBy(kind, f, err)
	body, _ := rep.Body.(map[string]any)
	switch v, ok := errors.AsType[*kernel.Violation](err); {
	case err != nil && !ok:
		body["reason"] = "BadRequest"
	case ok && v.Field == "model" && v.Rule == "enum":
		body["reason"] = "ModelUnavailable"
	case ok && reasons[v.Rule] != "":
		body["reason"] = reasons[v.Rule]
	}
	return rep
}

const (
	// bodyMax is the largest request, in bytes.
	bodyMax = 20 << 20

	// linkTime is how long the link to a file is valid.
	linkTime = 24 * time.Hour

	generation = "v2" // of the API; the kernel treats it as one endpoint
	idDigits   = 18
)

func mount(s *kernel.Service) http.Handler {
	api := &kernel.API{
		Service: s, Schemas: schemas, Limit: bodyMax, Endpoint: generation, Refuse: refuse,
		SubmitView: made, PollView: task, CallbackState: callbackStatus, CallbackBody: task,
	}
	routes := map[string]kernel.Handler{
		"GET /ent/v2/tasks/{id}/creations": api.Query,
		"POST /ent/v2/tasks/{id}/cancel":   func(r *http.Request, a kernel.Account) kernel.Reply { return cancel(api, r, a) },
	}
	for _, endpoint := range []string{"reference2video", "text2video", "img2video", "start-end2video"} {
		routes["POST /ent/v2/"+endpoint] = api.SubmitHandler(endpoint, job)
	}
	return s.Routes(s.ByCredential("Authorization", "Token ", "api_key", refuse), refuse, routes)
}

func made(_ *http.Request, j *kernel.Job, _ time.Time) any {
	return map[string]any{
		"task_id": j.ID, "state": "created", "model": j.Model, "prompt": j.Prompt, "duration": j.Media.Seconds,
		"payload": j.Detail["payload"], "credits": number(j.Detail["credits"]),
		"created_at": j.Created.Format(time.RFC3339Nano),
	}
}

// callbackStatus returns the state in the words of callbacks, which begin when the work does.
func callbackStatus(j *kernel.Job, now time.Time) string {
	if j.State(now) == kernel.StateQueued {
		return ""
	}
	return statusWord(j, now)
}

// task returns a job as polls and callbacks show it.
func task(r *http.Request, j *kernel.Job, now time.Time) any {
	out := map[string]any{
		"id": j.ID, "state": statusWord(j, now), "err_code": "", "credits": number(j.Detail["credits"]),
		"payload": j.Detail["payload"], "bgm": false, "off_peak": false, "creations": []any{},
	}
	switch j.State(now) {
	case kernel.StateFailed:
		out["err_code"], out["credits"] = internalFailure, 0
		if j.Directive.Fail == kernel.FailModeration {
			out["err_code"] = "CreationPolicyViolation"
		}
	case kernel.StateCancelled:
		out["err_code"], out["credits"] = "UserCancelled", 0
	case kernel.StateSucceeded:
		link := func(file string) string { return kernel.Base(r) + j.LinkUntil(file, now.Add(linkTime)) }
		out["creations"] = []any{map[string]any{
			"id": j.ID + "1", "url": link(kernel.FileVideo),
			"watermarked_url": link(kernel.FileMarked), "cover_url": link(kernel.FileCover),
		}}
	default:
	}
	return out
}

// number parses a number in a job's details.
func number(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}

// statusWord returns the vendor's word for a job's state. A queued job is created for the first
// half of its time in the queue.
func statusWord(j *kernel.Job, now time.Time) string {
	switch j.State(now) {
	case kernel.StateQueued:
		if now.Sub(j.Created) < j.Duration()/20 {
			return "created"
		}
		return "queueing"
	case kernel.StateRunning:
		return "processing"
	case kernel.StateSucceeded:
		return "success"
	default:
		return "failed"
	}
}

// cancel stops a job that is queued. If the request has a body, its id must be that of the path.
func cancel(api *kernel.API, r *http.Request, a kernel.Account) kernel.Reply {
	id := r.PathValue("id")
	if r.ContentLength != 0 {
		b, err := schemas.Read(r, "cancel", bodyMax)
		if err == nil && cmp.Or(b.Text("id"), id) != id {
			err = kernel.NewViolation("id", "is not that of the path")
		}
		if err != nil {
			return refuse(kernel.CallCancel, kernel.Invalid, err)
		}
	}
	return api.Cancel(r, a)
}
