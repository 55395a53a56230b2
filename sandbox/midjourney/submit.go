package midjourney

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// longSide is that of one picture of four, in pixels.
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

// request is a well-formed body, and who sent it how.
type request struct {
	in      *kernel.Object
	account kernel.Account
	mode    string
}

// submission reads what all submissions have.
func (p *proxy) submission(mode string, h func(*request) kernel.Reply) handler {
	return func(r *http.Request, a kernel.Account) kernel.Reply {
		in, err := kernel.ReadObject(r, bodyMax)
		if err != nil {
			return text(kernel.CallSubmit, http.StatusBadRequest, err.Error())
		}
		if utf8.RuneCountInString(in.Text("state")) > stateMax {
			in.Fail("state", "has more than %d characters", stateMax)
		}
		if in.Has("notifyHook") {
			in.Link("notifyHook")
		}
		rep := h(&request{in: in, account: a, mode: strings.ToUpper(cmp.Or(mode, "fast"))})
		if j := p.find(a, rep.Job); j != nil && rep.Kind == kernel.CallSubmit {
			p.CallBack(j, kernel.Callback{To: in.Text("notifyHook"), Word: progress, Body: func(j *kernel.Job) any { return p.task(r, j) }})
		}
		return rep
	}
}

// progress is what its customer is told anew of: the status, and each step of the work.
func progress(j *kernel.Job, now time.Time) string {
	state := j.State(now)
	if state == kernel.StateRunning {
		return fmt.Sprint(words[state], j.Percent(now)/10)
	}
	return words[state]
}

// only refuses what the dialect does not know.
func (p *proxy) only(q *request, names ...string) {
	names = append(names, "state", "notifyHook")
	if p.dialect == trueai {
		names = append(names, "accountFilter")
	}
	q.in.Only(names...)
}

func (p *proxy) bot(q *request) []string {
	if p.dialect == novicezk {
		return nil
	}
	q.in.Word("botType", "MID_JOURNEY", "MID_JOURNEY", "NIJI_JOURNEY")
	return []string{"botType"}
}

// accept makes the job unless a rule was broken.
func (p *proxy) accept(q *request, j *kernel.Job) kernel.Reply {
	if err := q.in.Err(); err != nil {
		return refuse(codeInvalid, err.Error())
	}
	j.ID, j.Endpoint, j.Model, j.Media.Kind = kernel.NumericID(idDigits), p.dialect, "midjourney", "image"
	j.Detail["state"], j.Detail["mode"], j.Detail["uuid"] = q.in.Text("state"), q.mode, kernel.UUID()
	made, admission := p.Accept(q.account, j)
	return p.made(made, j.Prompt, admission)
}

var imageTypes = []string{"image/png", "image/jpeg", "image/webp", "image/gif"}

// image reads a data URI.
func image(in *kernel.Object, field string, uri any) {
	s, _ := uri.(string)
	raw, _, err := kernel.ReadData(s, imageTypes)
	if err != nil {
		in.Fail(field, "%s", err)
		return
	}
	if _, ok := kernel.ReadPicture(raw); !ok {
		in.Fail(field, "must be a picture")
	}
}

// images reads an array of data URIs.
func images(in *kernel.Object, least, most int) {
	if !in.Has("base64Array") && least == 0 {
		return
	}
	items, ok := in.Value("base64Array").([]any)
	if !ok || len(items) < least || len(items) > most {
		in.Fail("base64Array", "must be an array of %d to %d images", least, most)
		return
	}
	for i, item := range items {
		image(in, fmt.Sprintf("base64Array[%d]", i), item)
	}
}

func (p *proxy) imagine(q *request) kernel.Reply {
	p.only(q, append(p.bot(q), "prompt", "base64Array")...)
	prompt := strings.TrimSpace(q.in.Text("prompt"))
	if prompt == "" {
		q.in.Fail("prompt", "is required")
	}
	images(q.in, 0, 10)
	final := p.final(prompt)
	asked := readPrompt(q.in, final)
	return p.accept(q, &kernel.Job{
		Prompt: prompt, Media: grid(asked.ratio), Billed: asked.billed(),
		Detail: map[string]string{"action": kindImagine, "final": final, "ratio": asked.ratio},
	})
}

// ratios are the words of blends.
var ratios = map[string]string{"PORTRAIT": "2:3", "SQUARE": "1:1", "LANDSCAPE": "3:2"}

func (p *proxy) blend(q *request) kernel.Reply {
	p.only(q, append(p.bot(q), "base64Array", "dimensions")...)
	images(q.in, 2, 5)
	ratio := ratios[q.in.Text("dimensions")]
	if ratio == "" {
		q.in.Fail("dimensions", "must be PORTRAIT, SQUARE or LANDSCAPE")
	}
	return p.accept(q, &kernel.Job{
		Media: grid(ratio), Detail: map[string]string{"action": kindBlend, "final": "--ar " + ratio, "ratio": ratio},
	})
}

func (p *proxy) describe(q *request) kernel.Reply {
	p.only(q, append(p.bot(q), "base64", "link", "language")...)
	image(q.in, "base64", q.in.Value("base64"))
	return p.accept(q, &kernel.Job{Media: grid("1:1"), Detail: map[string]string{"action": kindDescribe, "ratio": "1:1"}})
}

// grid is four pictures of the ratio in one.
func grid(ratio string) kernel.Media {
	m := single(ratio, 0)
	m.Width, m.Height, m.Grid = 2*m.Width, 2*m.Height, true
	return m
}

// single is the picture of this number.
func single(ratio string, n int) kernel.Media {
	w, h := kernel.Ratio(ratio)
	w, h = max(w, 1), max(h, 1)
	width, height := longSide, max(2, longSide*h/w)
	if h > w {
		width, height = max(2, longSide*w/h), longSide
	}
	return kernel.Media{Kind: "image", Width: width &^ 1, Height: height &^ 1, Quarter: n}
}

// follow is a job that works on the parent. It has the parent's words, and not
// what they ask of the sandbox.
func follow(parent *kernel.Job, kind string, media kernel.Media) *kernel.Job {
	return &kernel.Job{
		Prompt: kernel.WithoutDirective(parent.Prompt), Media: media,
		Detail: map[string]string{
			"action": kind, "final": parent.Detail["final"], "ratio": parent.Detail["ratio"], "parent": parent.ID,
		},
	}
}

// parent finds the job that a request works on, which must have ended well.
func (p *proxy) parent(q *request) (*kernel.Job, *kernel.Reply) {
	id := q.in.Text("taskId")
	if id == "" {
		q.in.Fail("taskId", "is required")
	}
	if err := q.in.Err(); err != nil {
		rep := refuse(codeInvalid, err.Error())
		return nil, &rep
	}
	j := p.find(q.account, id)
	switch {
	case j == nil:
		rep := p.missing()
		return nil, &rep
	case j.State(p.Now()) != kernel.StateSucceeded:
		rep := refuse(codeInvalid, textState)
		return nil, &rep
	default:
		return j, nil
	}
}

// change is what the original has in place of buttons.
func (p *proxy) change(q *request) kernel.Reply {
	p.only(q, "taskId", "action", "index")
	kind := q.in.Word("action", "", kindUpscale, kindVariation, kindReroll)
	if kind == "" {
		q.in.Fail("action", "is required")
	}
	n := 0
	if kind != kindReroll {
		n = int(q.in.Integer("index", 1, 4))
	}
	parent, refused := p.parent(q)
	if refused != nil {
		return *refused
	}
	if !slices.Contains([]string{kindImagine, kindVariation, kindReroll, kindBlend}, parent.Detail["action"]) {
		return refuse(codeInvalid, "关联任务不允许执行变化")
	}
	ratio := parent.Detail["ratio"]
	if kind == kindUpscale {
		return p.accept(q, follow(parent, kind, single(ratio, n)))
	}
	return p.accept(q, follow(parent, kind, grid(ratio)))
}

// action presses a button that the parent shows.
func (p *proxy) action(q *request) kernel.Reply {
	p.only(q, "taskId", "customId", "enableRemix", "chooseSameChannel")
	pressed := q.in.Text("customId")
	if pressed == "" {
		q.in.Fail("customId", "is required")
	}
	parent, refused := p.parent(q)
	if refused != nil {
		return *refused
	}
	ratio := parent.Detail["ratio"]
	if !slices.ContainsFunc(buttons(parent), func(b button) bool { return b.CustomID == pressed }) {
		return refuse(codeInvalid, "customId: 未知的 Action 类型")
	}
	parts := strings.Split(pressed, "::")
	n := 0
	if len(parts) > 3 {
		n, _ = strconv.Atoi(parts[3])
	}
	switch kind := strings.Join(parts[1:min(3, len(parts))], "::"); {
	case kind == "JOB::upsample":
		return p.accept(q, follow(parent, kindUpscale, single(ratio, n)))
	case strings.HasPrefix(kind, "JOB::upsample_"):
		media := single(ratio, max(1, parent.Media.Quarter))
		media.Width, media.Height = 2*media.Width, 2*media.Height
		return p.accept(q, follow(parent, kindUpscaleHD, media))
	case strings.HasSuffix(kind, "variation"):
		return p.accept(q, follow(parent, kindVariation, grid(ratio)))
	case kind == "JOB::reroll":
		return p.accept(q, follow(parent, parent.Detail["action"], grid(ratio)))
	case strings.HasPrefix(kind, "Outpaint"):
		return p.accept(q, follow(parent, kindZoom, grid(ratio)))
	case strings.HasPrefix(kind, "JOB::pan_"):
		return p.accept(q, follow(parent, kindPan, grid(ratio)))
	case strings.HasPrefix(kind, "CustomZoom"), strings.HasPrefix(kind, "Inpaint"):
		made := kindZoom
		if parts[1] == "Inpaint" {
			made = kindVariation
		}
		j := follow(parent, made, grid(ratio))
		j.Waits, j.Detail["window"] = true, parts[1]
		return p.accept(q, j)
	case kind == "Picread::Retry":
		return p.accept(q, follow(parent, kindDescribe, grid(ratio)))
	case kind == "Job::PicReader" && n > 0:
		return p.accept(q, follow(parent, kindImagine, grid(ratio)))
	default:
		return refuse(codeInvalid, "customId: is not played here")
	}
}

// modal tells a job what it waits for. Without words the parent's are taken.
func (p *proxy) modal(q *request) kernel.Reply {
	p.only(q, "taskId", "prompt", "maskBase64")
	if q.in.Has("maskBase64") {
		image(q.in, "maskBase64", q.in.Value("maskBase64"))
	}
	id := q.in.Text("taskId")
	prompt := strings.TrimSpace(q.in.Text("prompt"))
	var said asked
	if prompt != "" {
		said = readPrompt(q.in, p.final(prompt))
	}
	if id == "" {
		q.in.Fail("taskId", "is required")
	}
	if err := q.in.Err(); err != nil {
		return refuse(codeInvalid, err.Error())
	}
	j := p.find(q.account, id)
	switch {
	case j == nil:
		return p.missing()
	case j.State(p.Now()) != kernel.StateWaiting:
		return refuse(codeInvalid, textState)
	case j.Detail["window"] == "Inpaint" && !q.in.Has("maskBase64"):
		return refuse(codeInvalid, "maskBase64: is required")
	}
	told, admission := p.Resume(j, cmp.Or(prompt, j.Prompt))
	if admission == kernel.Accepted || admission == kernel.AnswerLost {
		p.Change(told, func(j *kernel.Job) bool {
			j.Billed = said.billed()
			return true
		})
	}
	rep := p.made(told, cmp.Or(prompt, j.Prompt), admission)
	rep.Made = false // it was there
	return rep
}

// final is the prompt as it goes to Midjourney. The larger dialect takes lone
// dashes and the speeds out, wherever they stand, since it has modes for these.
func (p *proxy) final(prompt string) string {
	if p.dialect == trueai {
		prompt = strings.ReplaceAll(prompt, " -- ", " ")
		for range 3 {
			prompt = strings.ReplaceAll(prompt, "  ", " ")
		}
		for _, speed := range []string{"--fast", "--relax", "--turbo"} {
			prompt = strings.ReplaceAll(strings.TrimSpace(prompt), speed, "")
		}
	}
	return prompt
}

// asked is what a prompt says by its parameters.
type asked struct {
	ratio string
	jobs  int // that are made, and billed; the results of the first are shown
}

// billed is how many jobs are, where that is not one.
func (a asked) billed() int {
	if a.jobs == 1 {
		return 0
	}
	return a.jobs
}

// jobsMax is how many jobs one prompt may make.
const jobsMax = 40

// choice is one of several words in a prompt, each of which makes a job.
var choice = regexp.MustCompile(`\{([^{}]*)\}`)

// permute are the prompts that one with choices stands for, at most one more than
// there may be.
func permute(prompt string) []string {
	at := choice.FindStringSubmatchIndex(prompt)
	if at == nil {
		return []string{prompt}
	}
	var all []string
	for word := range strings.SplitSeq(prompt[at[2]:at[3]], ",") {
		all = append(all, permute(prompt[:at[0]]+strings.TrimSpace(word)+prompt[at[1]:])...)
		if len(all) > jobsMax {
			break
		}
	}
	return all
}

// parameter is the name of one within a prompt. What follows it, up to the
// next, is its value.
var parameter = regexp.MustCompile(`(?:^|[\s\p{Z}])(?:--|—)([a-zA-Z]+)`)

var ratioPattern = regexp.MustCompile(`^[1-9][0-9]{0,3}:[1-9][0-9]{0,3}$`)

// readPrompt reads the parameters of a prompt, in all that its choices make of it.
func readPrompt(in *kernel.Object, prompt string) asked {
	var first asked
	jobs := 0
	for i, one := range permute(prompt) {
		said := readOne(in, one)
		jobs += said.jobs
		if i == 0 {
			first = said
		}
	}
	if jobs > jobsMax {
		in.Fail("prompt", "Invalid parameter: more than %d jobs", jobsMax)
	}
	first.jobs = jobs
	return first
}

// readOne reads the parameters of one prompt, each of which stands there once.
func readOne(in *kernel.Object, prompt string) asked {
	out := asked{ratio: "1:1", jobs: 1}
	seen := map[string]bool{}
	found := parameter.FindAllStringSubmatchIndex(prompt, -1)
	for i, at := range found {
		end := len(prompt)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		name, value := strings.ToLower(prompt[at[2]:at[3]]), strings.TrimSpace(kernel.WithoutDirective(prompt[at[1]:end]))
		if long := map[string]string{"aspect": "ar", "version": "v", "s": "stylize", "c": "chaos", "w": "weird", "r": "repeat"}[name]; long != "" {
			name = long
		}
		if seen[name] || name == "niji" && seen["v"] || name == "v" && seen["niji"] {
			in.Fail("prompt", "Invalid parameter: --%s is given twice", name)
		}
		seen[name] = true
		if !fits(name, value) {
			in.Fail("prompt", "Invalid parameter: --%s %s", name, value)
		}
		switch name {
		case "ar":
			out.ratio = value
		case "repeat":
			out.jobs, _ = strconv.Atoi(value)
		}
	}
	return out
}

// fits reports whether a parameter may have the value.
func fits(name, value string) bool {
	number := func(most uint64) bool {
		n, err := strconv.ParseUint(value, 10, 64)
		return err == nil && n <= most
	}
	switch name {
	case "ar":
		return ratioPattern.MatchString(value)
	case "v":
		return slices.Contains([]string{"1", "2", "3", "4", "5", "5.1", "5.2", "6", "6.1", "7"}, value)
	case "niji":
		return slices.Contains([]string{"4", "5", "6"}, value)
	case "seed":
		return number(math.MaxUint32)
	case "stylize":
		return number(1000)
	case "chaos":
		return number(100)
	case "weird":
		return number(3000)
	case "repeat":
		return number(jobsMax) && value != "0"
	case "zoom":
		n, err := strconv.ParseFloat(value, 64)
		return err == nil && n >= 1 && n <= 2
	case "tile", "fast", "relax", "turbo":
		return value == ""
	case "no", "style", "sref", "cref", "iw", "sw", "cw", "quality", "q", "stop", "raw":
		return value != "" || name == "raw"
	default:
		return false
	}
}
