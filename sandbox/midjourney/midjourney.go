package midjourney

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// Vendor is the proxy with the customer that it has here.
func Vendor() kernel.Vendor {
	const name, key = "midjourney", "sandbox-midjourney-secret"
	return kernel.Vendor{
		Name:    name,
		Account: kernel.Account{Provider: name, Credentials: map[string]string{"api_secret": key}},
		Channel: kernel.Channel{Provider: name, Path: "/midjourney", Credentials: map[string]string{"api_secret": key}},
		Mount:   mount,
	}
}

// The dialects.
const (
	trueai   = "trueai"
	novicezk = "novicezk"
)

// The codes of answers, and their texts.
const (
	codeAccepted = 1
	codeMissing  = 3
	codeInvalid  = 4
	codeFailed   = 9
	codeExisted  = 21
	codeQueued   = 22
	codeFull     = 23
	codeBanned   = 24

	textAccepted = "提交成功"
	textMissing  = "关联任务不存在或已失效"
	textState    = "关联任务状态错误"
	textFull     = "队列已满，请稍后尝试"
	textFailed   = "提交失败，系统异常"
	textBanned   = "可能包含敏感词"
	textWaits    = "Waiting for window confirm"
	textStopped  = "取消任务"
)

const (
	// bodyMax is the most that one request may hold.
	bodyMax = 28 << 20
	// linkTime is how long the link to a file is good.
	linkTime = 24 * time.Hour
	// stateMax bounds what the customer says to a job.
	stateMax = 255
	idDigits = 16
)

type proxy struct {
	*kernel.Service
	dialect string
}

type handler func(*http.Request, kernel.Account) kernel.Reply

func mount(s *kernel.Service) http.Handler {
	mux := http.NewServeMux()
	large, small := &proxy{s, trueai}, &proxy{s, novicezk}
	for _, mode := range []string{"", "fast", "turbo", "relax"} {
		prefix := ""
		if mode != "" {
			prefix = "/mj-" + mode
		}
		for name, submit := range map[string]func(*request) kernel.Reply{
			"imagine": large.imagine, "blend": large.blend, "describe": large.describe, "action": large.action, "modal": large.modal,
		} {
			mux.Handle("POST "+prefix+"/mj/submit/"+name, large.serve(large.submission(mode, submit)))
		}
	}
	for name, submit := range map[string]func(*request) kernel.Reply{
		"imagine": small.imagine, "blend": small.blend, "describe": small.describe, "change": small.change,
	} {
		mux.Handle("POST /novicezk/mj/submit/"+name, small.serve(small.submission("", submit)))
	}
	for prefix, p := range map[string]*proxy{"": large, "/novicezk": small} {
		mux.Handle("GET "+prefix+"/mj/task/{id}/fetch", p.serve(p.fetch))
		mux.Handle("POST "+prefix+"/mj/task/list-by-condition", p.serve(p.list))
	}
	mux.Handle("POST /mj/task/list-by-ids", large.serve(large.list))
	mux.Handle("POST /mj/task/{id}/cancel", large.serve(large.cancel))
	mux.Handle("/", large.serve(func(*http.Request, kernel.Account) kernel.Reply {
		return empty(kernel.CallOther, http.StatusNotFound)
	}))
	return mux
}

// serve judges the secret before anything else.
func (p *proxy) serve(h handler) http.Handler {
	return p.Handle(func(r *http.Request) kernel.Reply {
		a, known := p.Customer("api_secret", r.Header.Get("mj-api-secret"))
		switch {
		case known:
			return h(r, a)
		case p.dialect == novicezk:
			return empty(kernel.CallOther, http.StatusUnauthorized)
		default:
			return text(kernel.CallOther, http.StatusUnauthorized, "Authorization header missing.")
		}
	})
}

// empty is an answer with nothing in it.
func empty(kind string, status int) kernel.Reply { return text(kind, status, "") }

func text(kind string, status int, words string) kernel.Reply {
	return kernel.Reply{Kind: kind, Status: status, Stream: &kernel.Stream{
		Type: "text/plain; charset=utf-8", Size: int64(len(words)), Content: strings.NewReader(words), Whole: true,
	}}
}

// answer is one to a submission, with HTTP 200 as nearly always.
func answer(code int, words string, result any, properties map[string]any) kernel.Reply {
	if properties == nil {
		properties = map[string]any{}
	}
	return kernel.Reply{Kind: kernel.CallSubmit, Status: http.StatusOK, Body: map[string]any{
		"code": code, "description": words, "result": result, "properties": properties,
	}}
}

func refuse(code int, words string) kernel.Reply { return answer(code, words, nil, nil) }

// missing says that there is no earlier job.
func (p *proxy) missing() kernel.Reply {
	rep := refuse(codeMissing, textMissing)
	if p.dialect == trueai {
		rep.Status = http.StatusNotFound
	}
	return rep
}

// find finds a job of the dialect's.
func (p *proxy) find(a kernel.Account, id string) *kernel.Job {
	if j := p.Find(a, id); j != nil && j.Endpoint == p.dialect {
		return j
	}
	return nil
}

// made answers for a submission whose rules were kept.
func (p *proxy) made(j *kernel.Job, prompt string, admission kernel.Admission) kernel.Reply {
	return admission.Reply(j, kernel.Refusals{
		Rejected:  refuse(codeInvalid, "prompt: "+kernel.DirectiveTrouble(prompt)),
		Moderated: answer(codeBanned, textBanned, nil, map[string]any{"promptEn": prompt, "bannedWord": "sandbox"}),
		Broken:    refuse(codeFailed, textFailed),
		Busy:      refuse(codeFull, textFull),
		Duplicate: refuse(codeInvalid, textState),
	}, func(j *kernel.Job) kernel.Reply {
		switch {
		case j.Waits:
			return answer(codeExisted, textWaits, j.ID, map[string]any{"finalPrompt": j.Detail["final"], "remix": true})
		case j.Detail["mode"] == "RELAX":
			return answer(codeQueued, "排队中，前面还有1个任务", j.ID, map[string]any{"numberOfQueues": 1})
		default:
			return answer(codeAccepted, textAccepted, j.ID, map[string]any{"discordInstanceId": "1180000000000000001"})
		}
	})
}

func (p *proxy) fetch(r *http.Request, a kernel.Account) kernel.Reply {
	j := p.find(a, r.PathValue("id"))
	if j == nil {
		if p.dialect == trueai {
			return empty(kernel.CallPoll, http.StatusNoContent)
		}
		return empty(kernel.CallPoll, http.StatusOK)
	}
	rep := kernel.Reply{Kind: kernel.CallPoll, Status: http.StatusOK, Body: p.task(r, j)}
	if p.Spoiled(j) {
		rep = broken(kernel.CallPoll)
	}
	rep.Job = j.ID
	return rep
}

func broken(kind string) kernel.Reply {
	return kernel.Reply{Kind: kind, Status: http.StatusInternalServerError, Body: map[string]any{
		"status": http.StatusInternalServerError, "error": "Internal Server Error",
	}}
}

// list tells of several jobs, of those that there are.
func (p *proxy) list(r *http.Request, a kernel.Account) kernel.Reply {
	in, err := kernel.ReadObject(r, bodyMax)
	if err != nil {
		return text(kernel.CallList, http.StatusBadRequest, err.Error())
	}
	ids, ok := in.Value("ids").([]any)
	if !ok {
		return kernel.Reply{Kind: kernel.CallList, Status: http.StatusOK, Body: []any{}}
	}
	jobs, spoiled := []any{}, false
	for _, id := range ids {
		name, _ := id.(string)
		if j := p.find(a, name); j != nil {
			spoiled = p.Spoiled(j) || spoiled
			jobs = append(jobs, p.task(r, j))
		}
	}
	if spoiled {
		return broken(kernel.CallList)
	}
	return kernel.Reply{Kind: kernel.CallList, Status: http.StatusOK, Body: jobs}
}

// cancel stops a job that has not ended. It says yes to everything.
func (p *proxy) cancel(r *http.Request, a kernel.Account) kernel.Reply {
	rep := empty(kernel.CallCancel, http.StatusOK)
	j := p.find(a, r.PathValue("id"))
	if j == nil {
		return rep
	}
	rep.Job = j.ID
	p.Count(j, kernel.CallCancel)
	now := p.Now()
	p.Change(j, func(j *kernel.Job) bool {
		open := []kernel.State{kernel.StateWaiting, kernel.StateQueued, kernel.StateRunning}
		if !slices.Contains(open, j.State(now)) {
			return false
		}
		j.Cancelled = &now
		return true
	})
	return rep
}
