package kling

import (
	"embed"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// Vendor returns Kling with its customer account. Both authentication schemes open the account.
// The channel uses the access key.
func Vendor() kernel.Vendor {
	v := kernel.NewVendor("kling", "/kling", "access_key", "sandbox-access-key", mount)
	const secret = "sandbox-secret-key-of-32-characters"
	v.Account.Credentials["secret_key"], v.Channel.Credentials["secret_key"] = secret, secret
	v.Account.Credentials["api_key"] = "sandbox-kling-api-key"
	return v
}

//go:embed schema
var files embed.FS

var schemas = kernel.NewSchemas(files)

const (
	// bodyMax is the largest request, in bytes.
	bodyMax = 32 << 20
	// newerIDsMax is how many jobs one poll may name.
	newerIDsMax = 100
	idDigits    = 18

	omni = "omni-video"
)

// wrongMethod is the fault of a call to an existing path with the wrong method.
const wrongMethod kernel.Fault = -1

var refuseBy = kernel.NewRefuse(map[kernel.Fault]kernel.FaultText{
	wrongMethod:    kernel.NewFaultText(http.StatusNotFound, 1202, "The requested method is invalid"),
	kernel.NoPath:  kernel.NewFaultText(http.StatusNotFound, 1203, "The requested resource does not exist"),
	kernel.NoModel: kernel.NewFaultText(http.StatusNotFound, 1203, ""),
	kernel.NoJob:   kernel.NewFaultText(http.StatusBadRequest, 1201, "Task not found"),
	kernel.Invalid: kernel.NewFaultText(http.StatusBadRequest, 1201, ""),
	kernel.Inappropriate: kernel.NewFaultText(http.StatusBadRequest, 1301,
		"Failure to pass the risk control system: the prompt is against the content policy"),
	kernel.Internal: kernel.NewFaultText(http.StatusInternalServerError, 5000,
		"Internal server error, please try again later"),
	kernel.TooManyJobs: kernel.NewFaultText(http.StatusTooManyRequests, 1303, "parallel task over resource pack limit"),
	kernel.InUse:       kernel.NewFaultText(http.StatusBadRequest, 1201, "external_task_id already exists"),
}, func(w kernel.FaultText) any { return envelope(w.Code, w.Message, nil) })

func envelope(code any, message string, data any) map[string]any {
	body := map[string]any{"code": code, "message": message, "request_id": kernel.UUID()}
	if data != nil {
		body["data"] = data
	}
	return body
}

func succeed(data any) any { return envelope(0, "SUCCEED", data) }

// refuse reports an unknown model and an unreadable body by codes of their own.
func refuse(kind string, f kernel.Fault, err error) kernel.Reply {
	v, violation := errors.AsType[*kernel.Violation](err)
	if violation && v.Field == "model_name" && v.Rule == "enum" {
		f = kernel.NoModel
	}
	rep := refuseBy(kind, f, err)
	if err != nil && !violation {
		rep.Body = envelope(1200, err.Error(), nil)
	}
	return rep
}

func mount(s *kernel.Service) http.Handler {
	api := func(endpoint string) *kernel.API {
		return &kernel.API{
			Service: s, Schemas: schemas, Limit: bodyMax, Endpoint: endpoint, Refuse: refuse,
			SubmitView: made, PollView: task, CallbackState: statusWord, CallbackBody: taskBody,
		}
	}
	routes := map[string]kernel.Handler{}
	for _, endpoint := range []string{"text2video", "image2video", omni} {
		v1 := api(endpoint)
		routes["POST /v1/videos/"+endpoint] = v1.SubmitHandler(endpoint, func(b kernel.Body) (*kernel.Job, error) {
			return olderJob(endpoint, b)
		})
		for _, path := range []string{endpoint, endpoint + "/{id}"} {
			routes["/v1/videos/"+path] = func(*http.Request, kernel.Account) kernel.Reply {
				return refuse(kernel.CallOther, wrongMethod, nil)
			}
		}
		routes["GET /v1/videos/"+endpoint+"/{id}"] = v1.Query
	}
	v2 := api("tasks")
	v2.SubmitView, v2.CallbackBody = newerMade, newerTask
	for operation, models := range map[string][]string{
		"text-to-video": {"kling-3.0"}, "image-to-video": {"kling-3.0"}, "omni-video": {"kling-3.0-omni", "kling-o1"},
	} {
		routes["POST /"+operation+"/{model}"] = apiKeyed(func(r *http.Request, _ kernel.Account) kernel.Reply {
			return refuse(kernel.CallSubmit, kernel.NoModel,
				kernel.NewViolation("", "model %q does not exist", r.PathValue("model")))
		})
		for _, model := range models {
			job := func(b kernel.Body) (*kernel.Job, error) { return newerJob(model, b) }
			routes["POST /"+operation+"/"+model] = apiKeyed(v2.SubmitHandler(operation+"-"+model, job))
		}
	}
	routes["GET /tasks"] = apiKeyed(func(r *http.Request, a kernel.Account) kernel.Reply { return newerQuery(v2, r, a) })
	return s.Routes(authenticator{s}.findCustomer, refuse, routes)
}

// statusWords are the vendor's words for the states. The newer generation has another word for
// success.
var statusWords = map[kernel.State]string{
	kernel.StateQueued: "submitted", kernel.StateRunning: "processing",
	kernel.StateSucceeded: "succeed", kernel.StateFailed: "failed",
}

func statusWord(j *kernel.Job, now time.Time) string { return statusWords[j.State(now)] }

func created(j *kernel.Job) map[string]any {
	info := map[string]any{}
	if j.ExternalID != "" {
		info["external_task_id"] = j.ExternalID
	}
	return map[string]any{
		"task_id": j.ID, "task_status": "submitted", "task_info": info,
		"created_at": j.Created.UnixMilli(), "updated_at": j.Created.UnixMilli(),
	}
}

func made(_ *http.Request, j *kernel.Job, _ time.Time) any { return succeed(created(j)) }

// failureText returns the reason why a job failed.
func failureText(j *kernel.Job) string {
	if j.Directive.Fail == kernel.FailModeration {
		return "Failure to pass the risk control system: content security was triggered"
	}
	return "Generation failed: the inputs could not be processed"
}

func task(r *http.Request, j *kernel.Job, now time.Time) any { return succeed(taskBody(r, j, now)) }

// taskBody returns a job as polls and callbacks show it.
func taskBody(r *http.Request, j *kernel.Job, now time.Time) any {
	data := created(j)
	data["task_status"], data["task_status_msg"] = statusWord(j, now), ""
	data["watermark_info"] = map[string]any{"enabled": j.Media.Watermark}
	data["updated_at"] = j.StateSince(now).UnixMilli()
	switch j.State(now) {
	case kernel.StateFailed:
		data["task_status_msg"] = failureText(j)
	case kernel.StateSucceeded:
		data["task_result"] = map[string]any{"videos": []any{video(r, j)}}
		data["final_unit_deduction"] = strconv.Itoa(j.Media.Seconds)
	default:
	}
	return data
}

// video returns the result of a job.
func video(r *http.Request, j *kernel.Job) map[string]any {
	seconds := strconv.Itoa(j.Media.Seconds)
	out := map[string]any{"id": "v" + j.ID, "url": kernel.Base(r) + j.Link(kernel.FileVideo), "duration": seconds}
	if j.Media.Watermark {
		out["watermark_url"] = kernel.Base(r) + j.Link(kernel.FileMarked)
	}
	return out
}
