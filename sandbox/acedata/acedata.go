package acedata

import (
	"net/http"
	"strings"
	"time"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// Vendor is AceData Cloud with the customer that it has here.
func Vendor() kernel.Vendor {
	const name, key = "acedata", "sandbox-acedata-api-key"
	return kernel.Vendor{
		Name:    name,
		Account: kernel.Account{Provider: name, Credentials: map[string]string{"api_key": key}},
		Channel: kernel.Channel{Provider: name, Path: "/acedata", Credentials: map[string]string{"api_key": key}},
		Mount:   mount,
		Files:   file,
	}
}

// The codes of errors, and the HTTP status that goes with each.
const (
	badRequest   = "bad_request"
	noToken      = "no_token"
	invalidToken = "invalid_token"
	forbidden    = "forbidden"
	noAPI        = "no_api"
	notFound     = "not_found"
	tooMany      = "too_many_requests"
	apiError     = "api_error"
)

// statuses are those other than 400.
var statuses = map[string]int{
	invalidToken: http.StatusUnauthorized,
	forbidden:    http.StatusForbidden,
	noAPI:        http.StatusNotFound,
	notFound:     http.StatusNotFound,
	tooMany:      http.StatusTooManyRequests,
	apiError:     http.StatusInternalServerError,
}

// The two APIs, and the endpoint of personas.
const (
	suno     = "suno"
	producer = "producer"
	persona  = "persona"
)

// bodyMax is the most that one request may hold.
const bodyMax = 1 << 20

type acedata struct {
	*kernel.Service
}

// caller is who sends a request.
type caller struct {
	kernel.Account
	key string // as it came, without what a renewal adds
}

func mount(s *kernel.Service) http.Handler {
	v := &acedata{s}
	mux := http.NewServeMux()
	serve := func(path string, h func(*http.Request, caller) kernel.Reply) {
		mux.Handle(path, s.Handle(func(r *http.Request) kernel.Reply { return v.authenticated(r, h) }))
	}
	for _, api := range []string{suno, producer} {
		with := func(h func(*http.Request, caller, string) kernel.Reply) func(*http.Request, caller) kernel.Reply {
			return func(r *http.Request, c caller) kernel.Reply { return h(r, c, api) }
		}
		serve("POST /"+api+"/audios", with(v.submit))
		serve("POST /"+api+"/tasks", with(v.query))
		serve("POST /"+api+"/upload", with(v.upload))
	}
	serve("POST /suno/persona", v.persona)
	serve("/", func(*http.Request, caller) kernel.Reply {
		return refuse(kernel.CallOther, noAPI, "API does not exist, please make sure url is correct.")
	})
	return mux
}

func refuse(kind, code, message string) kernel.Reply {
	status := http.StatusBadRequest
	if s, ok := statuses[code]; ok {
		status = s
	}
	return kernel.Reply{Kind: kind, Status: status, Body: map[string]any{
		"success": false, "error": fault(code, message), "trace_id": kernel.UUID(),
	}}
}

func fault(code, message string) map[string]any {
	return map[string]any{"code": code, "message": message}
}

// authenticated judges the key before anything else.
func (v *acedata) authenticated(r *http.Request, h func(*http.Request, caller) kernel.Reply) kernel.Reply {
	key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || key == "" {
		return refuse(kernel.CallOther, noToken, "No token specified for the request.")
	}
	a, known := v.Customer("api_key", key)
	if !known {
		return refuse(kernel.CallOther, invalidToken, "The specified token is invalid or wrong.")
	}
	key, _, _ = strings.Cut(key, "~")
	key, _, _ = strings.Cut(key, "*")
	return h(r, caller{a, key})
}

// submit takes a job of one of the two APIs.
func (v *acedata) submit(r *http.Request, c caller, api string) kernel.Reply {
	in, err := kernel.ReadObject(r, bodyMax)
	if err != nil {
		return refuse(kernel.CallSubmit, badRequest, err.Error())
	}
	q := &request{in: in, api: api, songs: func(id string) (song, bool) { return v.song(c, api, id) }}
	q.voices = func(id string) bool { return v.voice(c, id) }
	q.read()
	if in.Err() != nil {
		return refuse(kernel.CallSubmit, badRequest, in.Err().Error())
	}
	j := q.job()
	j.ID, j.Endpoint = kernel.UUID(), api
	rep := v.take(c, j, func(made *kernel.Job) kernel.Reply {
		return kernel.Reply{Kind: kernel.CallSubmit, Status: http.StatusOK, Body: map[string]any{"task_id": made.ID}}
	})
	if rep.Made {
		v.CallBack(j, kernel.Callback{To: in.Text("callback_url"), Word: v.told, Body: func(j *kernel.Job) any { return v.record(r, j)["response"] }})
	}
	return rep
}

// told is when the customer is called back: at the end.
func (v *acedata) told(j *kernel.Job, now time.Time) string {
	if state := j.State(now); state != kernel.StateQueued && state != kernel.StateRunning {
		return string(state)
	}
	return ""
}

// take takes a job, unless its directive speaks against it.
func (v *acedata) take(c caller, j *kernel.Job, taken func(*kernel.Job) kernel.Reply) kernel.Reply {
	return v.Take(c.Account, j, kernel.Refusals{
		Rejected:  refuse(kernel.CallSubmit, badRequest, "prompt: "+kernel.DirectiveTrouble(j.Prompt)),
		Moderated: refuse(kernel.CallSubmit, forbidden, "Prompt contained inappropriate material"),
		Broken:    refuse(kernel.CallSubmit, apiError, "Internal server error."),
		Busy:      refuse(kernel.CallSubmit, tooMany, "You have exceeded the rate limit."),
	}, taken)
}

// persona makes a voice of a song: the answer brings it.
func (v *acedata) persona(r *http.Request, c caller) kernel.Reply {
	in, err := kernel.ReadObject(r, bodyMax)
	if err != nil {
		return refuse(kernel.CallSubmit, badRequest, err.Error())
	}
	in.Only("audio_id", "name", "description")
	for _, name := range []string{"audio_id", "name"} {
		if in.Text(name) == "" {
			in.Fail(name, "is required")
		}
	}
	in.Text("description")
	if _, ok := v.song(c, suno, in.Text("audio_id")); !ok && in.Err() == nil {
		in.Fail("audio_id", unknownSong)
	}
	if in.Err() != nil {
		return refuse(kernel.CallSubmit, badRequest, in.Err().Error())
	}
	return v.take(c, &kernel.Job{
		ID: kernel.UUID(), Endpoint: persona, Model: persona, Prompt: in.Text("name"),
		Media: kernel.Media{Kind: "image"}, // takes as long
	}, func(made *kernel.Job) kernel.Reply { return v.voiced(r, made) })
}

// voiced waits for a voice and answers with it, or with what became of it.
func (v *acedata) voiced(r *http.Request, j *kernel.Job) kernel.Reply {
	v.Wait(r, j.Takes())
	if j.Directive.Fails(kernel.AtPoll) {
		switch j.Directive.Fail {
		case kernel.FailTimeout:
			return kernel.Reply{Kind: kernel.CallSubmit, Lost: true}
		case kernel.FailModeration:
			return refuse(kernel.CallSubmit, forbidden, "Lyrics contained copyrighted material")
		case kernel.FailReject:
			return refuse(kernel.CallSubmit, badRequest, "audio_id: has no voice in it")
		default:
			return refuse(kernel.CallSubmit, apiError, "Internal server error.")
		}
	}
	return kernel.Reply{Kind: kernel.CallSubmit, Status: http.StatusOK, Body: map[string]any{
		"success": true, "task_id": j.ID, "data": map[string]any{"persona_id": kernel.Derived(j.ID, persona)},
	}}
}
