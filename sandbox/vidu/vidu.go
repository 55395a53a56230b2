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

// Vendor is Vidu with the customer that it has here.
func Vendor() kernel.Vendor {
	return kernel.NewVendor("vidu", "/vidu/ent/v2", "api_key", "vda_sandbox_vidu", mount)
}

//go:embed schema
var files embed.FS

var schemas = kernel.NewSchemas(files)

// The names of errors that more than one place tells.
const (
	fieldInvalid    = "FieldInvalid"
	internalFailure = "InternalServiceFailure"
)

var refuseBy = kernel.Refuser(map[kernel.Fault]kernel.Words{
	kernel.NoKey:         kernel.Says(http.StatusUnauthorized, "Unauthorized", "carry a valid key after the word Token"),
	kernel.NoPath:        kernel.Says(http.StatusNotFound, "NotFound", "there is no such page"),
	kernel.NoJob:         kernel.Says(http.StatusNotFound, "TaskNotFound", "there is no such task"),
	kernel.NotNow:        kernel.Says(http.StatusBadRequest, "BadRequest", "the task waits no more"),
	kernel.Invalid:       kernel.Says(http.StatusBadRequest, fieldInvalid, ""),
	kernel.Inappropriate: kernel.Says(http.StatusBadRequest, "AuditSubmitIllegal", "the prompt was refused"),
	kernel.Internal:      kernel.Says(http.StatusInternalServerError, internalFailure, "internal error"),
	kernel.Crowded:       kernel.Says(http.StatusTooManyRequests, "QuotaExceeded", "too many tasks at once"),
}, func(w kernel.Words) any {
	// The vendor does not document its envelope.
	return map[string]any{"code": w.Status, "reason": w.Code, "message": w.Message, "metadata": map[string]any{}}
})

// reasons are the names of violations of a schema.
var reasons = map[string]string{
	"additionalProperties": "FieldUnwanted", "required": "FieldLacking",
	"minItems": "FieldItemCountOutOfRange", "maxItems": "FieldItemCountOutOfRange",
}

// refuse tells a violation by its own name.
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
	// bodyMax is the most that one request may hold.
	bodyMax = 20 << 20

	// linkTime is how long the link to a file is good.
	linkTime = 24 * time.Hour

	generation = "v2" // of the API, one endpoint to the kernel
	idDigits   = 18
)

func mount(s *kernel.Service) http.Handler {
	api := &kernel.API{
		Service: s, Schemas: schemas, Limit: bodyMax, Endpoint: generation, Refuse: refuse,
		Made: made, Task: task, Word: told, Told: task,
	}
	routes := map[string]kernel.Handler{
		"GET /ent/v2/tasks/{id}/creations": api.Query,
		"POST /ent/v2/tasks/{id}/cancel":   func(r *http.Request, a kernel.Account) kernel.Reply { return cancel(api, r, a) },
	}
	for _, endpoint := range []string{"reference2video", "text2video", "img2video", "start-end2video"} {
		routes["POST /ent/v2/"+endpoint] = api.Submits(endpoint, job)
	}
	return s.Routes(s.Customers("Authorization", "Token ", "api_key", refuse), refuse, routes)
}

func made(_ *http.Request, j *kernel.Job, _ time.Time) any {
	return map[string]any{
		"task_id": j.ID, "state": "created", "model": j.Model, "prompt": j.Prompt, "duration": j.Media.Seconds,
		"payload": j.Detail["payload"], "credits": number(j.Detail["credits"]), "created_at": j.Created.Format(time.RFC3339Nano),
	}
}

// told is the status as callbacks tell it, which begin with the work.
func told(j *kernel.Job, now time.Time) string {
	if j.State(now) == kernel.StateQueued {
		return ""
	}
	return word(j, now)
}

// task is a job as a query shows it.
func task(r *http.Request, j *kernel.Job, now time.Time) any {
	out := map[string]any{
		"id": j.ID, "state": word(j, now), "err_code": "", "credits": number(j.Detail["credits"]), "payload": j.Detail["payload"],
		"bgm": false, "off_peak": false, "creations": []any{},
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
			"id": j.ID + "1", "url": link(kernel.FileVideo), "watermarked_url": link(kernel.FileMarked), "cover_url": link(kernel.FileCover),
		}}
	default:
	}
	return out
}

// number is a count as a job keeps it.
func number(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}

// word is the status; a queued job is only created for half of its time there.
func word(j *kernel.Job, now time.Time) string {
	switch j.State(now) {
	case kernel.StateQueued:
		if now.Sub(j.Created) < j.Takes()/20 {
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

// cancel stops a job that waits. The id may stand in a body too.
func cancel(api *kernel.API, r *http.Request, a kernel.Account) kernel.Reply {
	id := r.PathValue("id")
	if r.ContentLength != 0 {
		b, err := schemas.Read(r, "cancel", bodyMax)
		if err == nil && cmp.Or(b.Text("id"), id) != id {
			err = kernel.Wrong("id", "is not that of the path")
		}
		if err != nil {
			return refuse(kernel.CallCancel, kernel.Invalid, err)
		}
	}
	return api.Cancel(r, a)
}
