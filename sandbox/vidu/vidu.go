package vidu

import (
	"fmt"
	"net/http"
	"time"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// Vendor is Vidu with the customer that it has here.
func Vendor() kernel.Vendor {
	const name, key = "vidu", "vda_sandbox_vidu"
	return kernel.Vendor{
		Name:    name,
		Account: kernel.Account{Provider: name, Credentials: map[string]string{"api_key": key}},
		Channel: kernel.Channel{Provider: name, Path: "/vidu/ent/v2", Credentials: map[string]string{"api_key": key}},
		Mount:   mount,
	}
}

// The names of errors, and the HTTP status that goes with each.
const (
	badRequest       = "BadRequest"
	fieldLacking     = "FieldLacking"
	fieldUnwanted    = "FieldUnwanted"
	fieldInvalid     = "FieldInvalid"
	itemCount        = "FieldItemCountOutOfRange"
	imageSize        = "PageSizeOutOfRange"
	imageFormat      = "ImageFormatInvalid"
	modelUnavailable = "ModelUnavailable"
	refusedRequest   = "AuditSubmitIllegal"
	refusedCreation  = "CreationPolicyViolation"
	stopped          = "UserCancelled"
	unauthorized     = "Unauthorized"
	taskNotFound     = "TaskNotFound"
	notFound         = "NotFound"
	quotaExceeded    = "QuotaExceeded"
	internalFailure  = "InternalServiceFailure"
)

// statuses are those other than 400.
var statuses = map[string]int{
	unauthorized:    http.StatusUnauthorized,
	taskNotFound:    http.StatusNotFound,
	notFound:        http.StatusNotFound,
	quotaExceeded:   http.StatusTooManyRequests,
	internalFailure: http.StatusInternalServerError,
}

const (
	// bodyMax is the most that one request may hold.
	bodyMax = 20 << 20

	// linkTime is how long the link to a file is good.
	linkTime = 24 * time.Hour

	generation = "v2" // of the API, one endpoint to the kernel
	idDigits   = 18
)

type vidu struct {
	*kernel.Service
}

func mount(s *kernel.Service) http.Handler {
	v := &vidu{s}
	mux := http.NewServeMux()
	serve := func(h func(*http.Request, kernel.Account) kernel.Reply) http.HandlerFunc {
		return s.Keyed("Token ", h, func(*http.Request) kernel.Reply {
			return refuse(kernel.CallOther, unauthorized, "carry a valid key in the Authorization header, after the word Token")
		})
	}
	for endpoint := range imagesOf {
		mux.Handle("POST /ent/v2/"+endpoint, serve(func(r *http.Request, a kernel.Account) kernel.Reply { return v.submit(r, a, endpoint) }))
	}
	mux.Handle("GET /ent/v2/tasks/{id}/creations", serve(v.query))
	mux.Handle("POST /ent/v2/tasks/{id}/cancel", serve(v.cancel))
	mux.Handle("/", serve(func(*http.Request, kernel.Account) kernel.Reply {
		return refuse(kernel.CallOther, notFound, "there is no such page")
	}))
	return mux
}

// refuse tells an error. The vendor does not document its envelope.
func refuse(kind, name, message string) kernel.Reply {
	status := http.StatusBadRequest
	if s, ok := statuses[name]; ok {
		status = s
	}
	return kernel.Reply{Kind: kind, Status: status, Body: map[string]any{
		"code": status, "reason": name, "message": message, "metadata": map[string]any{},
	}}
}

func (v *vidu) submit(r *http.Request, a kernel.Account, endpoint string) kernel.Reply {
	in, err := kernel.ReadObject(r, bodyMax)
	if err != nil {
		return refuse(kernel.CallSubmit, badRequest, err.Error())
	}
	q := read(in, endpoint)
	if in.Err() != nil {
		return refuse(kernel.CallSubmit, q.broken(), in.Err().Error())
	}
	j := q.job()
	j.ID, j.Endpoint = kernel.NumericID(idDigits), generation
	rep := v.Take(a, j, kernel.Refusals{
		Rejected:  refuse(kernel.CallSubmit, fieldInvalid, "prompt: "+kernel.DirectiveTrouble(j.Prompt)),
		Moderated: refuse(kernel.CallSubmit, refusedRequest, "the prompt was refused"),
		Broken:    refuse(kernel.CallSubmit, internalFailure, "internal error"),
		Busy:      refuse(kernel.CallSubmit, quotaExceeded, "too many tasks at once"),
	}, func(made *kernel.Job) kernel.Reply {
		return kernel.Reply{Kind: kernel.CallSubmit, Status: http.StatusOK, Body: q.created(made)}
	})
	if rep.Made {
		v.CallBack(j, kernel.Callback{To: in.Text("callback_url"), Word: told, Body: func(j *kernel.Job) any { return v.task(r, j) }})
	}
	return rep
}

// told is the status as callbacks tell it, which begin with the work.
func told(j *kernel.Job, now time.Time) string {
	if j.State(now) == kernel.StateQueued {
		return ""
	}
	return word(j, now)
}

func (v *vidu) query(r *http.Request, a kernel.Account) kernel.Reply {
	j := v.Find(a, r.PathValue("id"))
	if j == nil {
		return refuse(kernel.CallPoll, taskNotFound, "there is no such task")
	}
	rep := kernel.Reply{Kind: kernel.CallPoll, Status: http.StatusOK, Body: v.task(r, j)}
	if v.Spoiled(j) {
		rep = refuse(kernel.CallPoll, internalFailure, "internal error")
	}
	rep.Job = j.ID
	return rep
}

// task is a job as a query shows it.
func (v *vidu) task(r *http.Request, j *kernel.Job) map[string]any {
	now := v.Now()
	out := map[string]any{
		"id": j.ID, "state": word(j, now), "err_code": "", "credits": number(j.Detail["credits"]), "payload": j.Detail["payload"],
		"bgm": j.Detail["bgm"] == "true", "off_peak": j.Detail["off_peak"] == "true", "creations": []any{},
	}
	switch j.State(now) {
	case kernel.StateFailed:
		out["err_code"], out["credits"] = internalFailure, 0
		if j.Directive.Fail == kernel.FailModeration {
			out["err_code"] = refusedCreation
		}
	case kernel.StateCancelled:
		out["err_code"], out["credits"] = stopped, 0
	case kernel.StateSucceeded:
		link := func(file string) string { return kernel.Base(r) + j.LinkUntil(file, now.Add(linkTime)) }
		out["creations"] = []any{map[string]any{
			"id": j.ID + "1", "url": link(kernel.FileVideo), "watermarked_url": link(kernel.FileMarked), "cover_url": link(kernel.FileCover),
		}}
	default:
	}
	return out
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

// cancel stops a job that waits.
func (v *vidu) cancel(r *http.Request, a kernel.Account) kernel.Reply {
	id := r.PathValue("id")
	if r.ContentLength != 0 {
		in, err := kernel.ReadObject(r, bodyMax)
		if err != nil {
			return refuse(kernel.CallCancel, badRequest, err.Error())
		}
		in.Only("id")
		if in.Has("id") && in.Text("id") != id {
			in.Fail("id", "is not that of the path")
		}
		if in.Err() != nil {
			return refuse(kernel.CallCancel, fieldInvalid, in.Err().Error())
		}
	}
	j := v.Find(a, id)
	if j == nil {
		return refuse(kernel.CallCancel, taskNotFound, "there is no such task")
	}
	v.Count(j, kernel.CallCancel)
	now := v.Now().UTC()
	rep := kernel.Reply{Kind: kernel.CallCancel, Status: http.StatusOK, Body: map[string]any{}}
	if !v.Change(j, func(j *kernel.Job) bool {
		if j.State(now) != kernel.StateQueued {
			return false
		}
		j.Cancelled = &now
		return true
	}) {
		rep = refuse(kernel.CallCancel, badRequest, fmt.Sprintf("the task is %s", word(j, now)))
	}
	rep.Job = j.ID
	return rep
}
