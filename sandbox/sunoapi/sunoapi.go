package sunoapi

import (
	"embed"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// Vendor returns sunoapi.org with its customer account.
func Vendor() kernel.Vendor {
	return kernel.NewVendor("sunoapi", "/sunoapi", "api_key", "sandbox-sunoapi-api-key", mount)
}

//go:embed schema
var files embed.FS

var schemas = kernel.NewSchemas(files)

// The operations, by the names of their schemas.
const (
	opGenerate = "generate"
	opReplace  = "replace-section"
	opSeparate = "vocal-removal"
)

// The kinds of results of a job. They separate the jobs' endpoints.
const (
	songs  = "songs"
	tracks = "tracks"
)

const (
	bodyMax = 1 << 20

	fine    = 200
	invalid = 400
	tooLong = 413
)

var refuseBy = kernel.NewRefuse(map[kernel.Fault]kernel.FaultText{
	kernel.NoKey:         kernel.NewFaultText(http.StatusOK, 401, "You do not have access permissions"),
	kernel.NoPath:        kernel.NewFaultText(http.StatusOK, 404, "there is no such page"),
	kernel.NoJob:         kernel.NewFaultText(http.StatusOK, 404, "task not found"),
	kernel.Invalid:       kernel.NewFaultText(http.StatusOK, invalid, ""),
	kernel.Inappropriate: kernel.NewFaultText(http.StatusOK, invalid, "The prompt contains sensitive words"),
	kernel.Internal:      kernel.NewFaultText(http.StatusOK, 500, "Server exception"),
	kernel.TooManyJobs: kernel.NewFaultText(http.StatusOK, 430,
		"Your call frequency is too high. Please try again later."),
}, func(w kernel.FaultText) any { return map[string]any{"code": w.Code, "msg": w.Message, "data": nil} })

func refuse(kind string, f kernel.Fault, err error) kernel.Reply {
	rep := refuseBy(kind, f, err)
	if v, ok := errors.AsType[*kernel.Violation](err); ok && v.Rule == "maxLength" {
		rep.Body.(map[string]any)["code"] = tooLong
	}
	return rep
}

func mount(s *kernel.Service) http.Handler {
	api := func(makes string) *kernel.API {
		return &kernel.API{
			Service: s, Schemas: schemas, Limit: bodyMax, Endpoint: makes, Refuse: refuse,
			SubmitView: made, PollView: record, CallbackState: callbackStage, CallbackBody: callbackBody,
		}
	}
	routes := map[string]kernel.Handler{}
	for path, makes := range map[string]string{"/api/v1/generate": songs, "/api/v1/vocal-removal": tracks} {
		routes["GET "+path+"/record-info"] = func(r *http.Request, a kernel.Account) kernel.Reply {
			return api(makes).QueryID(r, a, r.FormValue("taskId"))
		}
	}
	for path, operation := range map[string]string{
		"/api/v1/generate": opGenerate, "/api/v1/generate/replace-section": opReplace,
		"/api/v1/vocal-removal/generate": opSeparate,
	} {
		makes := songs
		if operation == opSeparate {
			makes = tracks
		}
		routes["POST "+path] = func(r *http.Request, a kernel.Account) kernel.Reply {
			find := func(task, id string) (*kernel.Job, int) { return song(api(songs).Find(a, task), id, s.Now()) }
			return api(makes).Submit(r, a, operation, func(b kernel.Body) (*kernel.Job, error) {
				return job(operation, b, find)
			})
		}
	}
	return s.Routes(s.ByCredential("Authorization", "Bearer ", "api_key", refuse), refuse, routes)
}

func answer(data any) any { return map[string]any{"code": fine, "msg": "success", "data": data} }

func made(_ *http.Request, j *kernel.Job, _ time.Time) any {
	return answer(map[string]any{"taskId": j.ID})
}

func callbackBody(r *http.Request, j *kernel.Job, now time.Time) any {
	var response any
	if _, done := status(j, now); done >= 0 {
		response = map[string]any{"taskId": j.ID, "sunoData": clips(kernel.Base(r), j, done)}
	}
	return answer(map[string]any{"callbackType": callbackStage(j, now), "task_id": j.ID, "data": response})
}

// record returns the answer to a poll of a job.
func record(r *http.Request, j *kernel.Job, now time.Time) any {
	word, done := status(j, now)
	out := map[string]any{
		"taskId": j.ID, "errorCode": nil, "errorMessage": nil, "response": nil, "createTime": j.Created.UnixMilli(),
	}
	if j.State(now) == kernel.StateFailed {
		out["errorCode"], out["errorMessage"] = invalid, "the request was refused"
	}
	if j.Endpoint == tracks {
		out["successFlag"], out["audioId"] = word, j.Detail["source"]
		if word == "SUCCESS" {
			out["response"] = separated(kernel.Base(r), j)
		}
		return answer(out)
	}
	out["status"], out["param"], out["type"] = word, "{}", "GENERATE"
	if done >= 0 {
		out["response"] = map[string]any{"taskId": j.ID, "sunoData": clips(kernel.Base(r), j, done)}
	}
	return answer(out)
}

// status returns the vendor's word for the job's state, and how many of its songs are finished:
// -1 if the answer shows no songs yet. A running job that makes two songs shows TEXT_SUCCESS for
// the first half of its time and FIRST_SUCCESS after it.
func status(j *kernel.Job, now time.Time) (word string, done int) {
	switch state := j.State(now); {
	case state == kernel.StateSucceeded:
		return "SUCCESS", j.Media.Songs
	case state == kernel.StateFailed && j.Directive.Fail == kernel.FailModeration && j.Endpoint == songs:
		return "SENSITIVE_WORD_ERROR", -1
	case state == kernel.StateFailed:
		return "GENERATE_AUDIO_FAILED", -1
	case state == kernel.StateQueued, j.Endpoint == tracks:
		return "PENDING", -1
	case now.Sub(j.Created) < j.Duration()/2 || j.Media.Songs < 2:
		return "TEXT_SUCCESS", 0
	default:
		return "FIRST_SUCCESS", 1
	}
}

// callbackStage returns the job's state in the words of callbacks.
func callbackStage(j *kernel.Job, now time.Time) string {
	switch word, _ := status(j, now); word {
	case "PENDING":
		return ""
	case "TEXT_SUCCESS":
		return "text"
	case "FIRST_SUCCESS":
		return "first"
	case "SUCCESS":
		return "complete"
	default:
		return "error"
	}
}

// clips returns the songs of a job. The first done of them are finished.
func clips(base string, j *kernel.Job, done int) []any {
	var out []any
	for i := range j.Media.Songs {
		s := map[string]any{
			"id": songID(j, i), "audioUrl": "", "streamAudioUrl": base + j.Link(fmt.Sprintf("stream-%d.mp3", i)),
			"imageUrl": base + j.Link(fmt.Sprintf("cover-%d.png", i)), "prompt": j.Detail["lyrics"], "modelName": j.Model,
			"title": j.Detail["title"], "tags": j.Detail["tags"], "createTime": j.Created.UnixMilli(),
		}
		if i < done {
			s["audioUrl"], s["duration"] = base+j.Link(fmt.Sprintf("song-%d.mp3", i)), j.Media.Length(i)
		}
		out = append(out, s)
	}
	return out
}

// parts are the tracks that a separation makes.
var parts = []string{"vocal", "backingVocals", "drums", "bass"}

func separated(base string, j *kernel.Job) map[string]any {
	out := map[string]any{"originUrl": nil, "instrumentalUrl": nil, "guitarUrl": nil, "keyboardUrl": nil, "synthUrl": nil}
	for i, part := range parts {
		out[part+"Url"] = base + j.Link(fmt.Sprintf("song-%d.mp3", i))
	}
	return out
}

// song finds a song of a job that has succeeded. It returns the job and the number of the song.
func song(j *kernel.Job, id string, now time.Time) (*kernel.Job, int) {
	if j == nil || j.State(now) != kernel.StateSucceeded {
		return nil, 0
	}
	for i := range j.Media.Songs {
		if songID(j, i) == id {
			return j, i
		}
	}
	return nil, 0
}

func songID(j *kernel.Job, i int) string { return kernel.DeriveID(j.ID, "song "+strconv.Itoa(i)) }
