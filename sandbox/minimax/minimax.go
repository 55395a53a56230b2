package minimax

import (
	"embed"
	"net/http"
	"strings"
	"time"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// Vendor returns MiniMax with its customer account.
func Vendor() kernel.Vendor {
	return kernel.NewVendor("minimax", "/minimax", "api_key", "sk-sandbox-minimax", mount)
}

//go:embed schema
var files embed.FS

var schemas = kernel.NewSchemas(files)

// The codes for refused content.
const (
	codeInput  = 1026
	codeOutput = 1027
)

// faults are the words of both generations. The second generation sends their status and adds
// the code to the message. The first always sends HTTP 200.
var faults = map[kernel.Fault]kernel.FaultText{
	kernel.NoKey:  kernel.NewFaultText(http.StatusUnauthorized, 2049, "invalid api key"),
	kernel.NoPath: kernel.NewFaultText(http.StatusNotFound, 2013, "page not found"),
	kernel.NoJob:  kernel.NewFaultText(http.StatusBadRequest, 2013, "invalid params, invalid task_id"),
	kernel.WrongState: kernel.NewFaultText(http.StatusBadRequest, 2013,
		"invalid params, the task is under way or was cancelled"),
	kernel.Invalid:       kernel.NewFaultText(http.StatusBadRequest, 2013, "invalid params, "),
	kernel.Inappropriate: kernel.NewFaultText(http.StatusUnprocessableEntity, codeInput, "input new_sensitive"),
	kernel.Internal:      kernel.NewFaultText(http.StatusInternalServerError, 1024, "internal error"),
	kernel.TooManyJobs:   kernel.NewFaultText(http.StatusTooManyRequests, 1002, "rate limit exceeded"),
}

// bodyMax is the largest request, in bytes.
const bodyMax = 64 << 20

// idDigits keeps the ids of jobs and files small enough for a JSON number to be exact.
const idDigits = 15

func mount(s *kernel.Service) http.Handler {
	v1 := &kernel.API{
		Service: s, Schemas: schemas, Limit: bodyMax, Endpoint: "v1", Refuse: refuseFirst,
		SubmitView: madeFirst, PollView: taskFirst,
		CallbackState: callbackStatus, CallbackBody: callbackBody, Challenge: true,
	}
	v2 := *v1
	v2.Endpoint, v2.Refuse, v2.SubmitView, v2.PollView = "v2", refuseSecond, madeSecond, taskSecond
	mux := http.NewServeMux()
	customers := func(refuse kernel.Refuse) kernel.Recognise {
		return s.ByCredential("Authorization", "Bearer ", "api_key", refuse)
	}
	mux.Handle("/v1/", s.Routes(customers(refuseFirst), refuseFirst, map[string]kernel.Handler{
		"POST /v1/video_generation": v1.SubmitHandler("v1", jobFirst),
		"GET /v1/query/video_generation": func(r *http.Request, a kernel.Account) kernel.Reply {
			return v1.QueryID(r, a, r.FormValue("task_id"))
		},
		"GET /v1/files/retrieve": func(r *http.Request, a kernel.Account) kernel.Reply { return retrieve(v1, r, a) },
	}))
	mux.Handle("/", s.Routes(customers(refuseSecond), refuseSecond, map[string]kernel.Handler{
		"POST /v2/video_generation": v2.SubmitHandler("v2", jobSecond),
		"GET /v2/query/video_generation/{id}": func(r *http.Request, a kernel.Account) kernel.Reply {
			return v2.AnswerPoll(known(&v2, r, a), func(j *kernel.Job) kernel.Reply {
				return kernel.OK(kernel.CallPoll, taskSecond(r, j, s.Now()))
			})
		},
		"DELETE /v2/video_generation/{id}": func(r *http.Request, a kernel.Account) kernel.Reply { return remove(&v2, r, a) },
	}))
	return mux
}

// callbackBody returns the body of a callback.
func callbackBody(_ *http.Request, j *kernel.Job, now time.Time) any {
	return map[string]any{"task_id": j.ID, "status": callbackStatus(j, now), "base_resp": succeeded}
}

// callbackStatus returns the job's state in the words of callbacks, which differ from those of polls.
func callbackStatus(j *kernel.Job, now time.Time) string {
	switch j.State(now) {
	case kernel.StateQueued:
		return ""
	case kernel.StateRunning:
		return "processing"
	case kernel.StateSucceeded:
		return "success"
	default:
		return "failed"
	}
}

// file returns the name of the file that the customer gets. A watermark replaces the clean file.
func file(j *kernel.Job) string {
	if j.Media.Watermark {
		return kernel.FileMarked
	}
	return kernel.FileVideo
}

// trace returns the id of a call, which the vendor's support asks for.
func trace() string { return strings.ReplaceAll(kernel.UUID(), "-", "") }
