package minimax

import (
	"net/http"
	"strings"
	"time"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// Vendor is MiniMax with the customer that it has here.
func Vendor() kernel.Vendor {
	const name, key = "minimax", "sk-sandbox-minimax"
	return kernel.Vendor{
		Name:    name,
		Account: kernel.Account{Provider: name, Credentials: map[string]string{"api_key": key}},
		Channel: kernel.Channel{Provider: name, Path: "/minimax", Credentials: map[string]string{"api_key": key}},
		Mount:   mount,
	}
}

// The codes of the first generation. The second one writes them behind its
// messages.
const (
	codeRateLimit = 1002
	codeAuth      = 1004
	codeInternal  = 1024
	codeInput     = 1026 // moderation
	codeOutput    = 1027 // moderation
	codeParams    = 2013
	codeKey       = 2049
)

// messages are what the codes are told with.
var messages = map[int]string{
	codeRateLimit: "rate limit exceeded",
	codeAuth:      "login fail: carry the API key in the Authorization header",
	codeInternal:  "internal error",
	codeInput:     "input new_sensitive",
	codeOutput:    "output new_sensitive",
	codeParams:    "invalid params",
	codeKey:       "invalid api key",
}

// bodyMax is the most that one request may hold.
const bodyMax = 64 << 20

// The endpoints of jobs: an id of one generation is unknown to the other.
const (
	first  = "v1"
	second = "v2"
)

// idDigits keep ids, and the ids of files, exact in a JSON number.
const idDigits = 15

// refusal answers a call with a code; detail follows the code's message.
type refusal func(kind string, code int, detail string) kernel.Reply

type minimax struct {
	*kernel.Service
}

func mount(s *kernel.Service) http.Handler {
	m := &minimax{s}
	mux := http.NewServeMux()
	serve := func(refuse refusal, h func(*http.Request, kernel.Account) kernel.Reply) http.HandlerFunc {
		return s.Handle(func(r *http.Request) kernel.Reply {
			rep := m.authenticated(r, refuse, h)
			if rep.Header == nil {
				rep.Header = map[string]string{"Trace-Id": trace()}
			}
			return rep
		})
	}
	mux.Handle("POST /v1/video_generation", serve(refuseFirst, m.submitFirst))
	mux.Handle("GET /v1/query/video_generation", serve(refuseFirst, m.queryFirst))
	mux.Handle("GET /v1/files/retrieve", serve(refuseFirst, m.retrieve))
	mux.Handle("POST /v2/video_generation", serve(refuseSecond, m.submitSecond))
	mux.Handle("DELETE /v2/video_generation/{id}", serve(refuseSecond, m.remove))
	mux.Handle("GET /v2/query/video_generation", serve(refuseSecond, m.listSecond))
	mux.Handle("GET /v2/query/video_generation/{id}", serve(refuseSecond, m.querySecond))
	mux.Handle("/", serve(refuseSecond, func(*http.Request, kernel.Account) kernel.Reply {
		return failure(kernel.CallOther, http.StatusNotFound, "bad_request_error", "page not found")
	}))
	return mux
}

// authenticated judges the key before anything else.
func (m *minimax) authenticated(r *http.Request, refuse refusal, h func(*http.Request, kernel.Account) kernel.Reply) kernel.Reply {
	key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || key == "" {
		return refuse(kernel.CallOther, codeAuth, "")
	}
	a, ok := m.Customer("api_key", key)
	if !ok {
		return refuse(kernel.CallOther, codeKey, "")
	}
	return h(r, a)
}

// submit takes the job that the rules of one generation made of a request.
func (m *minimax) submit(
	r *http.Request, a kernel.Account, endpoint string, refuse refusal,
	rules func(*kernel.Object) *kernel.Job, created func(*kernel.Job) kernel.Reply,
) kernel.Reply {
	in, err := kernel.ReadObject(r, bodyMax)
	if err != nil {
		return refuse(kernel.CallSubmit, codeParams, err.Error())
	}
	j := rules(in)
	if in.Err() != nil {
		return refuse(kernel.CallSubmit, codeParams, in.Err().Error())
	}
	j.ID, j.Endpoint, j.Model = kernel.NumericID(idDigits), endpoint, in.Text("model")
	rep := m.Take(a, j, kernel.Refusals{
		Rejected:  refuse(kernel.CallSubmit, codeParams, "prompt: "+kernel.DirectiveTrouble(j.Prompt)),
		Moderated: refuse(kernel.CallSubmit, codeInput, ""),
		Broken:    refuse(kernel.CallSubmit, codeInternal, ""),
		Busy:      refuse(kernel.CallSubmit, codeRateLimit, ""),
	}, created)
	if rep.Made {
		m.CallBack(j, kernel.Callback{To: in.Text("callback_url"), Challenge: true, Word: told, Body: func(j *kernel.Job) any {
			return map[string]any{"task_id": j.ID, "status": told(j, m.Now()), "base_resp": base(0, "")}
		}})
	}
	return rep
}

// told is the status in the words of callbacks, which are not those of queries.
func told(j *kernel.Job, now time.Time) string {
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

// find is a job of one generation.
func (m *minimax) find(a kernel.Account, endpoint, id string) *kernel.Job {
	if j := m.Find(a, id); j != nil && j.Endpoint == endpoint {
		return j
	}
	return nil
}

// file is the one that the customer gets: a watermark is within it.
func file(j *kernel.Job) string {
	if j.Media.Watermark {
		return kernel.FileMarked
	}
	return kernel.FileVideo
}

// trace is what support asks for.
func trace() string { return strings.ReplaceAll(kernel.UUID(), "-", "") }

// messageOf is a code's message with what follows it.
func messageOf(code int, detail string) string {
	if detail == "" {
		return messages[code]
	}
	return messages[code] + ", " + detail
}
