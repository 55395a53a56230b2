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
	made, rep, ok := v.accept(c, j)
	if ok {
		rep.Body = map[string]any{"task_id": made.ID}
	}
	if made != nil {
		v.CallBack(made, kernel.Callback{To: in.Text("callback_url"), Word: v.told, Body: func(j *kernel.Job) any { return v.record(r, j)["response"] }})
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

// accept takes a job, unless its directive speaks against it; ok is false where
// the reply is the answer already.
func (v *acedata) accept(c caller, j *kernel.Job) (made *kernel.Job, rep kernel.Reply, ok bool) {
	made, admission := v.Accept(c.Account, j)
	switch admission {
	case kernel.Accepted, kernel.AnswerLost:
		rep = kernel.Reply{Kind: kernel.CallSubmit, Status: http.StatusOK, Job: made.ID, Made: true, Lost: admission == kernel.AnswerLost}
		return made, rep, !rep.Lost
	case kernel.Moderated:
		return nil, refuse(kernel.CallSubmit, forbidden, "Prompt contained inappropriate material"), false
	case kernel.Busy:
		return nil, refuse(kernel.CallSubmit, tooMany, "You have exceeded the rate limit."), false
	case kernel.Rejected, kernel.Duplicate:
		return nil, refuse(kernel.CallSubmit, badRequest, "prompt: "+kernel.DirectiveTrouble(j.Prompt)), false
	default:
		return nil, refuse(kernel.CallSubmit, apiError, "Internal server error."), false
	}
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
	made, rep, ok := v.accept(c, &kernel.Job{
		ID: kernel.UUID(), Endpoint: persona, Model: persona, Prompt: in.Text("name"),
		Media: kernel.Media{Kind: "image"}, // takes as long
	})
	if !ok {
		return rep
	}
	v.Wait(r, made.Takes())
	if d := made.Directive; d.Fails(kernel.AtPoll) {
		switch d.Fail {
		case kernel.FailTimeout:
			rep.Lost = true
			return rep
		case kernel.FailModeration:
			rep.Status, rep.Body = http.StatusForbidden, refuse("", forbidden, "Lyrics contained copyrighted material").Body
		case kernel.FailReject:
			rep.Status, rep.Body = http.StatusBadRequest, refuse("", badRequest, "audio_id: has no voice in it").Body
		default:
			rep.Status, rep.Body = http.StatusInternalServerError, refuse("", apiError, "Internal server error.").Body
		}
		return rep
	}
	rep.Body = map[string]any{"success": true, "task_id": made.ID, "data": map[string]any{"persona_id": kernel.Derived(made.ID, persona)}}
	return rep
}
