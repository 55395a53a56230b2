package kling

import (
	"net/http"
	"strconv"
	"time"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// Vendor is Kling with the customer that it has here. Both schemes of
// authentication open the account; a channel names one.
func Vendor() kernel.Vendor {
	const name, access, secret = "kling", "sandbox-access-key", "sandbox-secret-key-of-32-characters"
	return kernel.Vendor{
		Name: name,
		Account: kernel.Account{Provider: name, Credentials: map[string]string{
			"access_key": access, "secret_key": secret, "api_key": "sandbox-kling-api-key",
		}},
		Channel: kernel.Channel{Provider: name, Path: "/kling", Credentials: map[string]string{"access_key": access, "secret_key": secret}},
		Mount:   mount,
	}
}

// Kling's codes, as its legacy standard answers them.
const (
	codeAuthFailed   = 1000
	codeAuthEmpty    = 1001
	codeAuthInvalid  = 1002
	codeAuthEarly    = 1003
	codeAuthExpired  = 1004
	codeInvalid      = 1200
	codeIllegalValue = 1201
	codeMethod       = 1202
	codeNoResource   = 1203
	codeModeration   = 1301
	codeSlots        = 1303
	codeInternal     = 5000
)

// httpStatus is the HTTP status that goes with a code.
func httpStatus(code int) int {
	switch {
	case code <= codeAuthExpired:
		return http.StatusUnauthorized
	case code == codeMethod || code == codeNoResource:
		return http.StatusNotFound
	case code == codeSlots:
		return http.StatusTooManyRequests
	case code >= codeInternal:
		return http.StatusInternalServerError
	default:
		return http.StatusBadRequest
	}
}

// endpoints are the operations that are served, with the rules of each.
var endpoints = map[string]func(*kernel.Object) (*kernel.Job, *refusal){
	"text2video":  text2Video,
	"image2video": image2Video,
	"omni-video":  omni,
}

// bodyMax is the most one request may hold: two images of 10 MB as base64.
const bodyMax = 32 << 20

// refusal is a broken rule.
type refusal struct {
	code    int
	message string
}

// kling plays both generations of Kling's API.
type kling struct {
	*kernel.Service
}

func mount(s *kernel.Service) http.Handler {
	k := &kling{s}
	mux := http.NewServeMux()
	serve := func(h func(*http.Request, kernel.Account) kernel.Reply) http.HandlerFunc {
		return s.Handle(func(r *http.Request) kernel.Reply {
			a, refusal := k.authenticate(r)
			if refusal != nil {
				return k.refuse(kernel.CallOther, refusal.code, refusal.message)
			}
			return h(r, a)
		})
	}
	// The newer generation takes a console's API key only.
	newer := func(h func(*http.Request, kernel.Account) kernel.Reply) http.HandlerFunc {
		return serve(func(r *http.Request, a kernel.Account) kernel.Reply {
			if signed(r) {
				return k.refuse(kernel.CallOther, codeAuthInvalid, "Authorization is invalid")
			}
			return h(r, a)
		})
	}
	mux.Handle("POST /v1/videos/{endpoint}", serve(k.submit))
	mux.Handle("GET /v1/videos/{endpoint}/{id}", serve(k.query))
	mux.Handle("GET /v1/videos/{endpoint}", serve(k.list))
	mux.Handle("POST /{operation}/{model}", newer(k.newerSubmit))
	mux.Handle("GET /tasks", newer(k.newerQuery))
	mux.Handle("/v1/videos/{endpoint}", serve(k.wrongMethod))
	mux.Handle("/v1/videos/{endpoint}/{id}", serve(k.wrongMethod))
	mux.Handle("/", serve(k.unknownPath))
	return mux
}

func (k *kling) wrongMethod(*http.Request, kernel.Account) kernel.Reply {
	return k.refuse(kernel.CallOther, codeMethod, "The requested method is invalid")
}

func (k *kling) unknownPath(*http.Request, kernel.Account) kernel.Reply {
	return k.refuse(kernel.CallOther, codeNoResource, "The requested resource does not exist")
}

// refuse answers with an error envelope.
func (k *kling) refuse(kind string, code int, message string) kernel.Reply {
	return kernel.Reply{Kind: kind, Status: httpStatus(code), Body: map[string]any{"code": code, "message": message, "request_id": kernel.UUID()}}
}

func (k *kling) answer(kind string, data any) kernel.Reply {
	return kernel.Reply{Kind: kind, Status: http.StatusOK, Body: map[string]any{"code": 0, "message": "SUCCEED", "request_id": kernel.UUID(), "data": data}}
}

// submit takes a job. What was asked under an external id that is in use is
// refused, also by another endpoint.
func (k *kling) submit(r *http.Request, a kernel.Account) kernel.Reply {
	endpoint := r.PathValue("endpoint")
	rules, ok := endpoints[endpoint]
	if !ok {
		return k.refuse(kernel.CallOther, codeNoResource, "The requested resource does not exist")
	}
	in, err := kernel.ReadObject(r, bodyMax)
	if err != nil {
		return k.refuse(kernel.CallSubmit, codeInvalid, err.Error())
	}
	j, refusal := rules(in)
	if refusal != nil {
		rep := k.refuse(kernel.CallSubmit, refusal.code, refusal.message)
		if id, ok := in.Value("external_task_id").(string); ok {
			rep.External = id
		}
		return rep
	}
	j.ID, j.Endpoint = kernel.NumericID(18), endpoint

	return k.take(a, j, created, kernel.Callback{To: in.Text("callback_url"), Body: func(j *kernel.Job) any { return k.task(r, j) }})
}

// take accepts a job that broke no rule, unless something else speaks against
// it; shown is how an answer tells of it.
// The customer is told of each change of its status.
func (k *kling) take(a kernel.Account, j *kernel.Job, shown func(*kernel.Job) map[string]any, tell kernel.Callback) kernel.Reply {
	rep := k.Take(a, j, kernel.Refusals{
		Rejected:  k.refuse(kernel.CallSubmit, codeIllegalValue, "prompt: "+kernel.DirectiveTrouble(j.Prompt)),
		Moderated: k.refuse(kernel.CallSubmit, codeModeration, "Failure to pass the risk control system: the prompt is against the content policy"),
		Broken:    k.refuse(kernel.CallSubmit, codeInternal, "Internal server error, please try again later"),
		Busy:      k.refuse(kernel.CallSubmit, codeSlots, "parallel task over resource pack limit"),
		Duplicate: k.refuse(kernel.CallSubmit, codeIllegalValue, "external_task_id already exists"),
	}, func(made *kernel.Job) kernel.Reply { return k.answer(kernel.CallSubmit, shown(made)) })
	rep.External = j.ExternalID
	if rep.Made {
		tell.Word = func(j *kernel.Job, now time.Time) string { return statusWords[j.State(now)] }
		k.CallBack(j, tell)
	}
	return rep
}

// query finds a job by its own or its external id, under the endpoint that
// made it only.
func (k *kling) query(r *http.Request, a kernel.Account) kernel.Reply {
	id := r.PathValue("id")
	j := k.Find(a, id)
	if j == nil || j.Endpoint != r.PathValue("endpoint") {
		rep := k.refuse(kernel.CallPoll, codeIllegalValue, "Task not found")
		rep.External = id
		return rep
	}
	rep := k.answer(kernel.CallPoll, k.task(r, j))
	if k.Spoiled(j) {
		rep = k.refuse(kernel.CallPoll, codeInternal, "Internal server error, please try again later")
	}
	rep.Job, rep.External = j.ID, j.ExternalID
	return rep
}

// list pages through the endpoint's jobs, newest first.
func (k *kling) list(r *http.Request, a kernel.Account) kernel.Reply {
	endpoint := r.PathValue("endpoint")
	if _, ok := endpoints[endpoint]; !ok {
		return k.refuse(kernel.CallOther, codeNoResource, "The requested resource does not exist")
	}
	page, okPage := kernel.PageValue(r, "pageNum", 1, 1000)
	size, okSize := kernel.PageValue(r, "pageSize", 30, 500)
	if !okPage || !okSize {
		return k.refuse(kernel.CallList, codeIllegalValue, "pageNum is 1 to 1000, pageSize 1 to 500")
	}
	jobs := k.Jobs(a, func(j *kernel.Job) bool { return j.Endpoint == endpoint })
	data := []any{}
	for i := len(jobs) - 1 - (page-1)*size; i >= 0 && len(data) < size; i-- {
		data = append(data, k.task(r, jobs[i]))
	}
	return k.answer(kernel.CallList, data)
}

// statusWords are the status words.
var statusWords = map[kernel.State]string{
	kernel.StateQueued: "submitted", kernel.StateRunning: "processing", kernel.StateSucceeded: "succeed", kernel.StateFailed: "failed",
}

func taskInfo(j *kernel.Job) map[string]any {
	if j.ExternalID == "" {
		return map[string]any{}
	}
	return map[string]any{"external_task_id": j.ExternalID}
}

func created(j *kernel.Job) map[string]any {
	return map[string]any{
		"task_id": j.ID, "task_status": "submitted", "task_info": taskInfo(j),
		"created_at": j.Created.UnixMilli(), "updated_at": j.Created.UnixMilli(),
	}
}

// failureText is why a job failed.
func failureText(j *kernel.Job) string {
	if j.Directive.Fail == kernel.FailModeration {
		return "Failure to pass the risk control system: content security was triggered"
	}
	return "Generation failed: the inputs could not be processed"
}

// task is a job as queries show it.
func (k *kling) task(r *http.Request, j *kernel.Job) map[string]any {
	now := k.Now()
	state := j.State(now)
	data := created(j)
	data["task_status"] = statusWords[state]
	data["task_status_msg"] = ""
	data["watermark_info"] = map[string]any{"enabled": j.Media.Watermark}
	data["updated_at"] = j.Changed(now).UnixMilli()
	switch state {
	case kernel.StateFailed:
		data["task_status_msg"] = failureText(j)
	case kernel.StateSucceeded:
		seconds := strconv.Itoa(j.Media.Seconds)
		video := map[string]any{"id": "v" + j.ID, "url": kernel.Base(r) + j.Link(kernel.FileVideo), "duration": seconds}
		if j.Media.Watermark {
			video["watermark_url"] = kernel.Base(r) + j.Link(kernel.FileMarked)
		}
		data["task_result"] = map[string]any{"videos": []any{video}}
		data["final_unit_deduction"] = seconds
	case kernel.StateWaiting, kernel.StateQueued, kernel.StateRunning, kernel.StateCancelled:
	}
	return data
}
