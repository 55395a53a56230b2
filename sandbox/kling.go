package sandbox

import (
	"net/http"
	"strconv"
	"time"
)

// Kling's codes, as its legacy standard answers them.
const (
	klingAuthFailed   = 1000
	klingAuthEmpty    = 1001
	klingAuthInvalid  = 1002
	klingAuthEarly    = 1003
	klingAuthExpired  = 1004
	klingInvalid      = 1200
	klingIllegalValue = 1201
	klingMethod       = 1202
	klingNoResource   = 1203
	klingModeration   = 1301
	klingSlots        = 1303
	klingInternal     = 5000
)

// klingStatus is the HTTP status that goes with a code.
func klingStatus(code int) int {
	switch {
	case code <= klingAuthExpired:
		return http.StatusUnauthorized
	case code == klingMethod || code == klingNoResource:
		return http.StatusNotFound
	case code == klingSlots:
		return http.StatusTooManyRequests
	case code >= klingInternal:
		return http.StatusInternalServerError
	default:
		return http.StatusBadRequest
	}
}

// klingEndpoints are the operations that are served, with the rules of each.
var klingEndpoints = map[string]func(*object) (*job, *klingRefusal){
	"text2video":  klingText2Video,
	"image2video": klingImage2Video,
	"omni-video":  klingOmni,
}

// klingBody is the most one request may hold: two images of 10 MB as base64.
const klingBody = 32 << 20

// klingRefusal is a broken rule.
type klingRefusal struct {
	code    int
	message string
}

// kling plays the legacy standard of Kling's API.
type kling struct {
	*Server
}

func mountKling(s *Server) http.Handler {
	k := &kling{s}
	mux := http.NewServeMux()
	serve := func(h func(*http.Request, Account) reply) http.HandlerFunc {
		return s.serve("kling", func(r *http.Request) reply {
			a, refusal := k.authenticate(r)
			if refusal != nil {
				return k.refuse(callOther, refusal.code, refusal.message)
			}
			return h(r, a)
		})
	}
	mux.Handle("POST /v1/videos/{endpoint}", serve(k.submit))
	mux.Handle("GET /v1/videos/{endpoint}/{id}", serve(k.query))
	mux.Handle("GET /v1/videos/{endpoint}", serve(k.list))
	mux.Handle("/v1/videos/{endpoint}", serve(k.wrongMethod))
	mux.Handle("/v1/videos/{endpoint}/{id}", serve(k.wrongMethod))
	mux.Handle("/", serve(k.unknownPath))
	return mux
}

func (k *kling) wrongMethod(*http.Request, Account) reply {
	return k.refuse(callOther, klingMethod, "The requested method is invalid")
}

func (k *kling) unknownPath(*http.Request, Account) reply {
	return k.refuse(callOther, klingNoResource, "The requested resource does not exist")
}

// refuse answers with an error envelope.
func (k *kling) refuse(kind string, code int, message string) reply {
	return reply{kind: kind, status: klingStatus(code), body: map[string]any{"code": code, "message": message, "request_id": uuid()}}
}

func (k *kling) answer(kind string, data any) reply {
	return reply{kind: kind, status: http.StatusOK, body: map[string]any{"code": 0, "message": "SUCCEED", "request_id": uuid(), "data": data}}
}

// submit takes a job. What was asked under an external id that is in use is
// refused, also by another endpoint.
func (k *kling) submit(r *http.Request, a Account) reply {
	endpoint := r.PathValue("endpoint")
	rules, ok := klingEndpoints[endpoint]
	if !ok {
		return k.refuse(callOther, klingNoResource, "The requested resource does not exist")
	}
	in, err := readObject(r, klingBody)
	if err != nil {
		return k.refuse(callSubmit, klingInvalid, err.Error())
	}
	j, refusal := rules(in)
	if refusal != nil {
		rep := k.refuse(callSubmit, refusal.code, refusal.message)
		if id, ok := in.fields["external_task_id"].(string); ok {
			rep.external = id
		}
		return rep
	}
	j.ID, j.Provider, j.Endpoint = numericID(), "kling", endpoint

	var rep reply
	made, verdict := k.accept(a, j)
	switch verdict {
	case accepted:
		rep = k.answer(callSubmit, klingCreated(made))
	case answerLost:
		rep = reply{kind: callSubmit, lost: true}
	case duplicate:
		rep = k.refuse(callSubmit, klingIllegalValue, "external_task_id already exists")
	case busy:
		rep = k.refuse(callSubmit, klingSlots, "parallel task over resource pack limit")
	case moderated:
		rep = k.refuse(callSubmit, klingModeration, "Failure to pass the risk control system: the prompt is against the content policy")
	case rejected:
		rep = k.refuse(callSubmit, klingIllegalValue, "prompt: "+directiveTrouble(j.Prompt))
	default:
		rep = k.refuse(callSubmit, klingInternal, "Internal server error, please try again later")
	}
	rep.external = j.ExternalID
	if made != nil {
		rep.job, rep.made = made.ID, verdict == accepted || verdict == answerLost
	}
	return rep
}

// query finds a job by its own or its external id, under the endpoint that
// made it only.
func (k *kling) query(r *http.Request, a Account) reply {
	id := r.PathValue("id")
	j := k.store.lookup("kling", a.id(), id)
	if j == nil || j.Endpoint != r.PathValue("endpoint") {
		rep := k.refuse(callPoll, klingIllegalValue, "Task not found")
		rep.external = id
		return rep
	}
	nth := k.store.count(j.ID, callPoll)
	rep := k.answer(callPoll, k.task(r, j))
	if j.Directive.spoils(atPoll, nth) && j.Directive.Fail == failInternal {
		rep = k.refuse(callPoll, klingInternal, "Internal server error, please try again later")
	}
	rep.job, rep.external = j.ID, j.ExternalID
	return rep
}

// list pages through the endpoint's jobs, newest first.
func (k *kling) list(r *http.Request, a Account) reply {
	endpoint := r.PathValue("endpoint")
	if _, ok := klingEndpoints[endpoint]; !ok {
		return k.refuse(callOther, klingNoResource, "The requested resource does not exist")
	}
	page, okPage := pageValue(r, "pageNum", 1, 1000)
	size, okSize := pageValue(r, "pageSize", 30, 500)
	if !okPage || !okSize {
		return k.refuse(callList, klingIllegalValue, "pageNum is 1 to 1000, pageSize 1 to 500")
	}
	jobs := k.store.list(func(j *job) bool {
		return j.Provider == "kling" && j.Account == a.id() && j.Endpoint == endpoint
	})
	data := []any{}
	for i := len(jobs) - 1 - (page-1)*size; i >= 0 && len(data) < size; i-- {
		data = append(data, k.task(r, jobs[i].job))
	}
	return k.answer(callList, data)
}

func pageValue(r *http.Request, name string, fallback, most int) (int, bool) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return fallback, true
	}
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= 1 && n <= most
}

// klingWords are the status words.
var klingWords = map[jobState]string{
	stateQueued: "submitted", stateRunning: "processing", stateSucceeded: "succeed", stateFailed: "failed",
}

func klingInfo(j *job) map[string]any {
	if j.ExternalID == "" {
		return map[string]any{}
	}
	return map[string]any{"external_task_id": j.ExternalID}
}

func klingCreated(j *job) map[string]any {
	return map[string]any{
		"task_id": j.ID, "task_status": "submitted", "task_info": klingInfo(j),
		"created_at": millis(j.Created), "updated_at": millis(j.Created),
	}
}

// task is a job as queries show it.
func (k *kling) task(r *http.Request, j *job) map[string]any {
	now := k.now()
	state := j.state(now)
	data := klingCreated(j)
	data["task_status"] = klingWords[state]
	data["task_status_msg"] = ""
	data["watermark_info"] = map[string]any{"enabled": j.Media.Watermark}
	data["updated_at"] = millis(j.changed(now).Truncate(time.Millisecond))
	switch state {
	case stateFailed:
		data["task_status_msg"] = "Generation failed: the inputs could not be processed"
		if j.Directive.Fail == failModeration {
			data["task_status_msg"] = "Failure to pass the risk control system: content security was triggered"
		}
	case stateSucceeded:
		seconds := strconv.Itoa(j.Media.Seconds)
		video := map[string]any{"id": "v" + j.ID, "url": base(r) + j.link(fileVideo), "duration": seconds}
		if j.Media.Watermark {
			video["watermark_url"] = base(r) + j.link(fileMarked)
		}
		data["task_result"] = map[string]any{"videos": []any{video}}
		data["final_unit_deduction"] = seconds
	case stateQueued, stateRunning:
	}
	return data
}

// directiveTrouble says what is wrong with a prompt's directive, or that it
// asked for a refusal.
func directiveTrouble(prompt string) string {
	if _, _, err := findDirective(prompt); err != nil {
		return err.Error()
	}
	return "is not acceptable"
}
