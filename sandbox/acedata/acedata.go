package acedata

import (
	"embed"
	"net/http"
	"time"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// Vendor returns AceData Cloud with its customer account.
func Vendor() kernel.Vendor {
	v := kernel.NewVendor("acedata", "/acedata", "api_key", "sandbox-acedata-api-key", mount)
	v.Files = file
	return v
}

//go:embed schema
var files embed.FS

var schemas = kernel.NewSchemas(files)

// The codes that failed jobs also have.
const (
	badRequest = "bad_request"
	forbidden  = "forbidden"
)

var refuse = kernel.NewRefuse(map[kernel.Fault]kernel.FaultText{
	kernel.NoKey: kernel.NewFaultText(http.StatusUnauthorized, "invalid_token",
		"The specified token is invalid or wrong."),
	kernel.NoPath: kernel.NewFaultText(http.StatusNotFound, "no_api",
		"API does not exist, please make sure url is correct."),
	kernel.NoJob:         kernel.NewFaultText(http.StatusNotFound, "not_found", "task not found"),
	kernel.Invalid:       kernel.NewFaultText(http.StatusBadRequest, badRequest, ""),
	kernel.Inappropriate: kernel.NewFaultText(http.StatusForbidden, forbidden, "Prompt contained inappropriate material"),
	kernel.Internal:      kernel.NewFaultText(http.StatusInternalServerError, "api_error", "Internal server error."),
	kernel.TooManyJobs: kernel.NewFaultText(http.StatusTooManyRequests, "too_many_requests",
		"You have exceeded the rate limit."),
}, func(w kernel.FaultText) any {
	return map[string]any{"success": false, "error": fault(w.Code, w.Message), "trace_id": kernel.UUID()}
})

func fault(code any, message string) map[string]any {
	return map[string]any{"code": code, "message": message}
}

// The two APIs, and the endpoint of personas.
const (
	suno     = "suno"
	producer = "producer"
	persona  = "persona"
)

// bodyMax is the largest request, in bytes.
const bodyMax = 1 << 20

// api is either of the two APIs.
type api struct{ *kernel.API }

func mount(s *kernel.Service) http.Handler {
	routes := map[string]kernel.Handler{}
	for _, name := range []string{suno, producer} {
		v := api{&kernel.API{
			Service: s, Schemas: schemas, Limit: bodyMax, Endpoint: name, Refuse: refuse,
			SubmitView: made, CallbackState: callbackState, CallbackBody: callbackBody,
		}}
		routes["POST /"+name+"/audios"] = func(r *http.Request, a kernel.Account) kernel.Reply {
			return v.Submit(r, a, name+"-audios", func(b kernel.Body) (*kernel.Job, error) { return v.job(a, b) })
		}
		routes["POST /"+name+"/tasks"] = v.query
		routes["POST /"+name+"/upload"] = v.upload
		if name == suno {
			routes["POST /suno/persona"] = v.persona
		}
	}
	return s.Routes(s.ByCredential("Authorization", "Bearer ", "api_key", refuse), refuse, routes)
}

func made(_ *http.Request, j *kernel.Job, _ time.Time) any { return map[string]any{"task_id": j.ID} }

// callbackState returns the job's state once the job has ended, which causes the only callback.
func callbackState(j *kernel.Job, now time.Time) string {
	if state := j.State(now); state != kernel.StateQueued && state != kernel.StateRunning {
		return string(state)
	}
	return ""
}

func callbackBody(r *http.Request, j *kernel.Job, now time.Time) any {
	return record(r, j, now)["response"]
}

// persona makes a voice from a song and answers with it in the same call.
func (v api) persona(r *http.Request, a kernel.Account) kernel.Reply {
	b, err := schemas.Read(r, persona, bodyMax)
	if _, known := v.song(a, b.Text("audio_id")); err == nil && !known {
		err = kernel.NewViolation("audio_id", unknownSong)
	}
	if err != nil {
		return refuse(kernel.CallSubmit, kernel.Invalid, err)
	}
	return v.Accept(a, &kernel.Job{
		ID: kernel.UUID(), Endpoint: persona, Model: persona, Prompt: b.Text("name"),
		Media: kernel.Media{Kind: "image"}, // takes as long as an image
	}, refuse, func(j *kernel.Job) kernel.Reply {
		if rep, failed := v.Await(r, j, refuse); failed {
			return rep
		}
		return kernel.OK(kernel.CallSubmit, map[string]any{
			"success": true, "task_id": j.ID, "data": map[string]any{"persona_id": kernel.DeriveID(j.ID, persona)},
		})
	})
}
