package midjourney

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// longSide is the long side of one of a grid's four pictures, in pixels.
const longSide = 512

// The kinds of jobs.
const (
	kindImagine   = "IMAGINE"
	kindUpscale   = "UPSCALE"
	kindVariation = "VARIATION"
	kindReroll    = "REROLL"
	kindBlend     = "BLEND"
	kindDescribe  = "DESCRIBE"
	kindZoom      = "ZOOM"
	kindPan       = "PAN"
	kindUpscaleHD = "UPSCALE_HD"
)

// request is a request for any operation, with its account and mode.
type request struct {
	kernel.Body
	account kernel.Account
	mode    string
}

// submission returns the handler of an operation. It validates the request against the schema
// and passes it to h. If h returns an error, the handler refuses the request with it.
func (p *proxy) submission(mode, operation string, h submitter) kernel.Handler {
	if p.dialect == novicezk {
		operation = novicezk + "-" + operation
	}
	return func(r *http.Request, a kernel.Account) kernel.Reply {
		b, err := kernel.ReadBody(r, bodyMax)
		if err != nil {
			return text(kernel.CallSubmit, http.StatusBadRequest, err.Error())
		}
		var rep kernel.Reply
		if err = schemas.Check(operation, b); err == nil {
			err = checkPictures(b)
		}
		if err == nil {
			rep, err = h(&request{b, a, strings.ToUpper(cmp.Or(mode, "fast"))})
		}
		if err != nil {
			return answerCode(codeInvalid, err.Error())
		}
		if j := p.find(a, rep.Job); j != nil {
			body := func(j *kernel.Job) any { return p.task(r, j) }
			p.CallBack(j, kernel.Callback{To: b.Text("notifyHook"), State: progress, Body: body})
		}
		return rep
	}
}

// checkPictures checks the pictures of a request.
func checkPictures(b kernel.Body) error {
	for _, field := range []string{"base64Array", "base64", "maskBase64"} {
		for _, uri := range append(b.Texts(field), b.Text(field)) {
			if _, _, err := kernel.InlinePicture(uri); uri != "" && err != nil {
				return kernel.NewViolation(field, "%s", err)
			}
		}
	}
	return nil
}

// progress returns the word whose change causes a callback: the state, and while the job runs
// also each tenth of its progress.
func progress(j *kernel.Job, now time.Time) string {
	state := j.State(now)
	if state == kernel.StateRunning {
		return fmt.Sprint(words[state], j.Percent(now)/10)
	}
	return words[state]
}

// accept completes the job of a request and submits it.
func (p *proxy) accept(q *request, j *kernel.Job) (kernel.Reply, error) {
	j.ID, j.Endpoint, j.Model, j.Media.Kind = kernel.NumericID(idDigits), p.dialect, "midjourney", "image"
	j.Detail["state"], j.Detail["mode"], j.Detail["uuid"] = q.Text("state"), q.mode, kernel.UUID()
	return p.Accept(q.account, j, refuse, made), nil
}

func (p *proxy) imagine(q *request) (kernel.Reply, error) {
	prompt := strings.TrimSpace(q.Text("prompt"))
	final := p.final(prompt)
	params, err := readPrompt(final)
	if err != nil {
		return kernel.Reply{}, err
	}
	return p.accept(q, &kernel.Job{
		Prompt: prompt, Media: grid(params.ratio), Billed: params.billed(),
		Detail: map[string]string{"action": kindImagine, "final": final, "ratio": params.ratio},
	})
}

// ratios are the ratios that a blend may name.
var ratios = map[string]string{"PORTRAIT": "2:3", "SQUARE": "1:1", "LANDSCAPE": "3:2"}

func (p *proxy) blend(q *request) (kernel.Reply, error) {
	ratio := ratios[q.Text("dimensions")]
	return p.accept(q, &kernel.Job{
		Media: grid(ratio), Detail: map[string]string{"action": kindBlend, "final": "--ar " + ratio, "ratio": ratio},
	})
}

func (p *proxy) describe(q *request) (kernel.Reply, error) {
	return p.accept(q, &kernel.Job{Media: grid("1:1"), Detail: map[string]string{"action": kindDescribe, "ratio": "1:1"}})
}

// grid returns a grid of four pictures with the ratio.
func grid(ratio string) kernel.Media {
	m := single(ratio, 0)
	m.Width, m.Height, m.Grid = 2*m.Width, 2*m.Height, true
	return m
}

// single returns the picture with number n of a grid, counted from 1.
func single(ratio string, n int) kernel.Media {
	w, h := kernel.Ratio(ratio)
	w, h = max(w, 1), max(h, 1)
	width, height := longSide, max(2, longSide*h/w)
	if h > w {
		width, height = max(2, longSide*w/h), longSide
	}
	return kernel.Media{Kind: "image", Width: width &^ 1, Height: height &^ 1, Quarter: n}
}

// acceptChild accepts a job that works on parent. The job has the parent's prompt, but not its
// directive. If window is set, the job waits for the customer's input in this window.
func (p *proxy) acceptChild(
	q *request, parent *kernel.Job, kind string, media kernel.Media, window string,
) (kernel.Reply, error) {
	return p.accept(q, &kernel.Job{
		Prompt: kernel.WithoutDirective(parent.Prompt), Media: media, Waits: window != "",
		Detail: map[string]string{
			"action": kind, "final": parent.Detail["final"], "ratio": parent.Detail["ratio"],
			"parent": parent.ID, "window": window,
		},
	})
}

// parent returns the job that a request works on. The job must have succeeded.
func (p *proxy) parent(q *request) (*kernel.Job, kernel.Reply) {
	j := p.find(q.account, q.Text("taskId"))
	switch {
	case j == nil:
		return nil, p.missing()
	case j.State(p.Now()) != kernel.StateSucceeded:
		return nil, answerCode(codeInvalid, textState)
	default:
		return j, kernel.Reply{}
	}
}

// change makes an upscale, a variation or a reroll. The original dialect has this operation
// instead of buttons.
func (p *proxy) change(q *request) (kernel.Reply, error) {
	parent, refused := p.parent(q)
	if parent == nil {
		return refused, nil
	}
	if !slices.Contains([]string{kindImagine, kindVariation, kindReroll, kindBlend}, parent.Detail["action"]) {
		return answerCode(codeInvalid, "关联任务不允许执行变化"), nil
	}
	media, action := grid(parent.Detail["ratio"]), q.Text("action")
	if action == kindUpscale {
		media = single(parent.Detail["ratio"], q.Int("index"))
	}
	return p.acceptChild(q, parent, action, media, "")
}

// action presses a button that the parent shows.
func (p *proxy) action(q *request) (kernel.Reply, error) {
	parent, refused := p.parent(q)
	if parent == nil {
		return refused, nil
	}
	pressed := q.Text("customId")
	if !slices.ContainsFunc(buttons(parent), func(b button) bool { return b.CustomID == pressed }) {
		return answerCode(codeInvalid, "customId: 未知的 Action 类型"), nil
	}
	parts := strings.Split(pressed, "::")
	n := 0
	if len(parts) > 3 {
		n, _ = strconv.Atoi(parts[3])
	}
	ratio := parent.Detail["ratio"]
	var does, window string
	media := grid(ratio)
	switch kind := strings.Join(parts[1:min(3, len(parts))], "::"); {
	case kind == "JOB::upsample":
		does, media = kindUpscale, single(ratio, n)
	case strings.HasPrefix(kind, "JOB::upsample_"):
		does, media = kindUpscaleHD, single(ratio, max(1, parent.Media.Quarter))
		media.Width, media.Height = 2*media.Width, 2*media.Height
	case strings.HasSuffix(kind, "variation"):
		does = kindVariation
	case kind == "JOB::reroll":
		does = parent.Detail["action"]
	case strings.HasPrefix(kind, "Outpaint"):
		does = kindZoom
	case strings.HasPrefix(kind, "JOB::pan_"):
		does = kindPan
	case parts[1] == "CustomZoom":
		does, window = kindZoom, parts[1]
	case parts[1] == "Inpaint":
		does, window = kindVariation, parts[1]
	case kind == "Picread::Retry":
		does = kindDescribe
	case kind == "Job::PicReader" && n > 0:
		does = kindImagine
	default:
		return answerCode(codeInvalid, "customId: is not played here"), nil
	}
	return p.acceptChild(q, parent, does, media, window)
}

// modal resumes a job that waits for the customer's input. Without a prompt, it keeps the prompt
// of the parent.
func (p *proxy) modal(q *request) (kernel.Reply, error) {
	prompt := strings.TrimSpace(q.Text("prompt"))
	params := promptParams{jobs: 1}
	if prompt != "" {
		var err error
		if params, err = readPrompt(p.final(prompt)); err != nil {
			return kernel.Reply{}, err
		}
	}
	j := p.find(q.account, q.Text("taskId"))
	switch {
	case j == nil:
		return p.missing(), nil
	case j.State(p.Now()) != kernel.StateWaiting:
		return answerCode(codeInvalid, textState), nil
	case j.Detail["window"] == "Inpaint" && q.Text("maskBase64") == "":
		return kernel.Reply{}, kernel.NewViolation("maskBase64", "is required")
	}
	return p.Resume(j.ID, cmp.Or(prompt, j.Prompt), params.billed(), refuse, made), nil
}
