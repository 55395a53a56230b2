package midjourney

import (
	"embed"
	"net/http"
	"strings"
	"time"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// Vendor returns the proxy with its customer account.
func Vendor() kernel.Vendor {
	return kernel.NewVendor("midjourney", "/midjourney", "api_secret", "sandbox-midjourney-secret", mount)
}

//go:embed schema
var files embed.FS

var schemas = kernel.NewSchemas(files)

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
	// bodyMax is the largest request, in bytes.
	bodyMax = 28 << 20
	// linkTime is how long the link to a file is valid.
	linkTime = 24 * time.Hour
	idDigits = 16
)

type proxy struct {
	*kernel.Service
	dialect string
}

// submitter answers a request that has passed its schema, or returns an error if the request
// breaks another rule.
type submitter = func(*request) (kernel.Reply, error)

func mount(s *kernel.Service) http.Handler {
	mux := http.NewServeMux()
	large, small := &proxy{s, trueai}, &proxy{s, novicezk}
	routes := map[string]kernel.Handler{"POST /mj/task/{id}/cancel": large.cancel}
	for _, mode := range []string{"", "fast", "turbo", "relax"} {
		prefix := ""
		if mode != "" {
			prefix = "/mj-" + mode
		}
		for name, submit := range map[string]submitter{
			"imagine": large.imagine, "blend": large.blend, "describe": large.describe,
			"action": large.action, "modal": large.modal,
		} {
			routes["POST "+prefix+"/mj/submit/"+name] = large.submission(mode, name, submit)
		}
	}
	original := map[string]kernel.Handler{}
	for name, submit := range map[string]submitter{
		"imagine": small.imagine, "blend": small.blend, "describe": small.describe, "change": small.change,
	} {
		original["POST /novicezk/mj/submit/"+name] = small.submission("", name, submit)
	}
	for prefix, p := range map[string]*proxy{"": large, "/novicezk": small} {
		all := map[string]map[string]kernel.Handler{"": routes, "/novicezk": original}[prefix]
		all["GET "+prefix+"/mj/task/{id}/fetch"] = p.fetch
		all["POST "+prefix+"/mj/task/list-by-condition"] = p.list
		mux.Handle(prefix+"/", s.Routes(s.ByCredential("mj-api-secret", "", "api_secret", p.refuseCaller), refuse, all))
	}
	return mux
}

// refuseCaller refuses a caller without the secret.
func (p *proxy) refuseCaller(kind string, _ kernel.Fault, _ error) kernel.Reply {
	if p.dialect == novicezk {
		return empty(kind, http.StatusUnauthorized)
	}
	return text(kind, http.StatusUnauthorized, "Authorization header missing.")
}

// empty returns an answer without a body.
func empty(kind string, status int) kernel.Reply { return text(kind, status, "") }

func text(kind string, status int, words string) kernel.Reply {
	return kernel.Reply{Kind: kind, Status: status, Stream: &kernel.Stream{
		Type: "text/plain; charset=utf-8", Size: int64(len(words)), Content: strings.NewReader(words), NeverStalls: true,
	}}
}

// answer returns the answer to a submission. Nearly all of them have HTTP 200.
func answer(code int, words string, result any, properties map[string]any) kernel.Reply {
	if properties == nil {
		properties = map[string]any{}
	}
	return kernel.Reply{Kind: kernel.CallSubmit, Status: http.StatusOK, Body: map[string]any{
		"code": code, "description": words, "result": result, "properties": properties,
	}}
}

func answerCode(code int, words string) kernel.Reply { return answer(code, words, nil, nil) }

// missing returns the answer to a request whose earlier job does not exist.
func (p *proxy) missing() kernel.Reply {
	rep := answerCode(codeMissing, textMissing)
	if p.dialect == trueai {
		rep.Status = http.StatusNotFound
	}
	return rep
}

// find returns the account's job if it belongs to the dialect, or nil.
func (p *proxy) find(a kernel.Account, id string) *kernel.Job {
	if j := p.Find(a, id); j != nil && j.Endpoint == p.dialect {
		return j
	}
	return nil
}

// refuse returns the answer that refuses a call. Nearly all refusals have HTTP 200.
func refuse(kind string, f kernel.Fault, err error) kernel.Reply {
	switch f {
	case kernel.Inappropriate:
		return answer(codeBanned, textBanned, nil, map[string]any{"bannedWord": "sandbox"})
	case kernel.Internal:
		return answerCode(codeFailed, textFailed)
	case kernel.TooManyJobs:
		return answerCode(codeFull, textFull)
	case kernel.WrongState:
		return answerCode(codeInvalid, textState)
	case kernel.NoPath:
		return empty(kind, http.StatusNotFound)
	default:
		if err == nil { // the kernel describes only some faults
			return answerCode(codeFailed, textFailed)
		}
		return answerCode(codeInvalid, err.Error())
	}
}

// made returns the answer to a submission that created a job.
func made(j *kernel.Job) kernel.Reply {
	switch {
	case j.Waits:
		return answer(codeExisted, textWaits, j.ID, map[string]any{"finalPrompt": j.Detail["final"], "remix": true})
	case j.Detail["mode"] == "RELAX":
		return answer(codeQueued, "排队中，前面还有1个任务", j.ID, map[string]any{"numberOfQueues": 1})
	default:
		return answer(codeAccepted, textAccepted, j.ID, map[string]any{"discordInstanceId": "1180000000000000001"})
	}
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
	if p.CountPoll(j) {
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

// list answers a poll of several jobs. It leaves out jobs that do not exist.
func (p *proxy) list(r *http.Request, a kernel.Account) kernel.Reply {
	b, err := schemas.Read(r, "list", bodyMax)
	if err != nil {
		return text(kernel.CallList, http.StatusBadRequest, err.Error())
	}
	jobs, spoiled := []any{}, false
	for _, name := range b.Texts("ids") {
		if j := p.find(a, name); j != nil {
			spoiled = p.CountPoll(j) || spoiled
			jobs = append(jobs, p.task(r, j))
		}
	}
	if spoiled {
		return broken(kernel.CallList)
	}
	return kernel.Reply{Kind: kernel.CallList, Status: http.StatusOK, Body: jobs}
}

// cancel stops a job that has not ended. The answer is always empty, with HTTP 200.
func (p *proxy) cancel(r *http.Request, a kernel.Account) kernel.Reply {
	rep := empty(kernel.CallCancel, http.StatusOK)
	j := p.find(a, r.PathValue("id"))
	if j == nil {
		return rep
	}
	rep.Job = j.ID
	p.Stop(j, kernel.StateWaiting, kernel.StateQueued, kernel.StateRunning)
	return rep
}
