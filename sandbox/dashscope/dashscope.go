package dashscope

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// Vendor is DashScope with the customer that it has here.
func Vendor() kernel.Vendor {
	const name, key = "dashscope", "sk-sandbox-dashscope"
	return kernel.Vendor{
		Name:    name,
		Account: kernel.Account{Provider: name, Credentials: map[string]string{"api_key": key}},
		Channel: kernel.Channel{Provider: name, Path: "/dashscope/api/v1", Credentials: map[string]string{"api_key": key}},
		Mount:   mount,
	}
}

// DashScope's codes.
const (
	codeKey        = "InvalidApiKey"
	codeDenied     = "AccessDenied"
	codeNoModel    = "ModelNotFound"
	codeInvalid    = "InvalidParameter"
	codeInspection = "DataInspectionFailed"
	codeThrottled  = "Throttling.AllocationQuota"
	codeInternal   = "InternalError"
	codeAlgorithm  = "InternalError.Algo"
	codeUnsupport  = "UnsupportedOperation"
)

// httpStatus is the HTTP status that goes with a code.
func httpStatus(code string) int {
	switch code {
	case codeKey:
		return http.StatusUnauthorized
	case codeDenied:
		return http.StatusForbidden
	case codeNoModel:
		return http.StatusNotFound
	case codeThrottled:
		return http.StatusTooManyRequests
	case codeInternal, codeAlgorithm:
		return http.StatusInternalServerError
	default:
		return http.StatusBadRequest
	}
}

const (
	bodyMax     = 6 << 20
	promptMax   = 800
	pixelsMin   = 512 * 512
	pixelsMax   = 2048 * 2048
	seedMax     = 1<<31 - 1
	defaultSize = "1024*1024"

	images = "multimodal-generation"
	videos = "video-generation"
)

// dashscope plays Alibaba's Model Studio: images in one blocking call, videos as
// jobs.
type dashscope struct {
	*kernel.Service
}

func mount(s *kernel.Service) http.Handler {
	d := &dashscope{s}
	mux := http.NewServeMux()
	serve := func(h func(*http.Request, kernel.Account) kernel.Reply) http.HandlerFunc {
		return s.Keyed("Bearer ", h, func(*http.Request) kernel.Reply {
			return d.refuse(kernel.CallOther, codeKey, "Invalid API-key provided.")
		})
	}
	mux.Handle("POST /api/v1/services/aigc/multimodal-generation/generation", serve(d.generate))
	mux.Handle("POST /api/v1/services/aigc/video-generation/video-synthesis", serve(d.synthesize))
	mux.Handle("GET /api/v1/tasks/{id}", serve(d.query))
	mux.Handle("POST /api/v1/tasks/{id}/cancel", serve(d.cancel))
	mux.Handle("/", serve(func(*http.Request, kernel.Account) kernel.Reply {
		return d.refuse(kernel.CallOther, codeInvalid, "url error, please check url!")
	}))
	return mux
}

func (d *dashscope) refuse(kind, code, message string) kernel.Reply {
	return kernel.Reply{Kind: kind, Status: httpStatus(code), Body: map[string]any{"code": code, "message": message, "request_id": kernel.UUID()}}
}

// generate makes an image while the caller waits. A failure "at poll" strikes
// when the image would be ready, one at submit at once.
func (d *dashscope) generate(r *http.Request, a kernel.Account) kernel.Reply {
	if r.Header.Get("X-DashScope-Async") != "" {
		return d.refuse(kernel.CallSubmit, codeDenied, "current user api does not support asynchronous calls")
	}
	in, err := kernel.ReadObject(r, bodyMax)
	if err != nil {
		return d.refuse(kernel.CallSubmit, codeInvalid, err.Error())
	}
	model := in.Text("model")
	if in.Err() == nil && model != "z-image-turbo" {
		if model == "" {
			return d.refuse(kernel.CallSubmit, codeInvalid, "model: is required")
		}
		return d.refuse(kernel.CallSubmit, codeNoModel, "Model not exist.")
	}
	j, extend := readImage(in)
	if in.Err() != nil {
		return d.refuse(kernel.CallSubmit, codeInvalid, in.Err().Error())
	}
	j.ID, j.Endpoint, j.Model = kernel.UUID(), images, model

	return d.accept(a, j, func(made *kernel.Job) kernel.Reply { return d.finish(r, made, extend) })
}

// accept takes a job that broke no rule, and answers for it.
func (d *dashscope) accept(a kernel.Account, j *kernel.Job, answer func(*kernel.Job) kernel.Reply) kernel.Reply {
	return d.Take(a, j, kernel.Refusals{
		Rejected:  d.refuse(kernel.CallSubmit, codeInvalid, "prompt: "+kernel.DirectiveTrouble(j.Prompt)),
		Moderated: d.refuse(kernel.CallSubmit, codeInspection, "Input data may contain inappropriate content."),
		Broken:    d.refuse(kernel.CallSubmit, codeInternal, "An internal error has occurred, please try again later."),
		Busy:      d.refuse(kernel.CallSubmit, codeThrottled, "Too many requests in route. Please try again later."),
	}, answer)
}

// readImage reads input and parameters.
func readImage(in *kernel.Object) (j *kernel.Job, extend bool) {
	in.Only("model", "input", "parameters")
	input := in.Nested("input")
	input.Only("messages")
	messages := input.Objects("messages", 1)
	prompt := ""
	if len(messages) != 1 {
		input.Fail("messages", "exactly one message is required")
	} else {
		m := messages[0]
		m.Only("role", "content")
		if m.Word("role", "", "user") == "" {
			m.Fail("role", "is required")
		}
		content := m.Objects("content", 1)
		if len(content) != 1 {
			m.Fail("content", "exactly one text is required")
		} else {
			content[0].Only("text")
			prompt = content[0].TextMax("text", promptMax)
			if strings.TrimSpace(prompt) == "" {
				content[0].Fail("text", "is required")
			}
		}
	}
	p := in.Nested("parameters")
	p.Only("size", "prompt_extend", "seed")
	extend = p.Flag("prompt_extend")
	if p.Has("seed") {
		p.Integer("seed", 0, seedMax)
	}
	width, height := pixels(p)
	return &kernel.Job{Prompt: prompt, Media: kernel.Media{Kind: "image", Width: width, Height: height}}, extend
}

// pixels reads a size such as 1024*768.
func pixels(p *kernel.Object) (width, height int) {
	size := defaultSize
	if p.Has("size") {
		size = p.Text("size")
	}
	w, h, _ := strings.Cut(size, "*")
	width, errWidth := strconv.Atoi(w)
	height, errHeight := strconv.Atoi(h)
	bad := errWidth != nil || errHeight != nil || width < 1 || height < 1 || width > pixelsMax || height > pixelsMax
	if bad || width*height < pixelsMin || width*height > pixelsMax || fmt.Sprintf("%d*%d", width, height) != size {
		p.Fail("size", "must be W*H with 512*512 to 2048*2048 pixels")
		return 0, 0
	}
	return width, height
}

// finish waits for the image and answers with it.
func (d *dashscope) finish(r *http.Request, j *kernel.Job, extend bool) kernel.Reply {
	d.Wait(r, j.Takes())
	if j.Directive.Fails(kernel.AtPoll) {
		switch j.Directive.Fail {
		case kernel.FailModeration:
			return d.refuse(kernel.CallSubmit, codeInspection, "Output data may contain inappropriate content.")
		case kernel.FailReject:
			return d.refuse(kernel.CallSubmit, codeInvalid, "the request could not be processed")
		case kernel.FailInternal:
			return d.refuse(kernel.CallSubmit, codeInternal, "An internal error has occurred, please try again later.")
		default:
			return kernel.Reply{Kind: kernel.CallSubmit, Lost: true}
		}
	}
	message := []any{
		map[string]any{"image": kernel.Base(r) + j.Link(kernel.FileImage)},
		map[string]any{"text": j.Prompt},
	}
	content := map[string]any{"role": "assistant", "content": message}
	if extend {
		message[1] = map[string]any{"text": "A detailed picture: " + j.Prompt}
		content["reasoning_content"] = "The prompt was extended."
	}
	return kernel.Reply{Kind: kernel.CallSubmit, Status: http.StatusOK, Body: map[string]any{
		"output": map[string]any{"choices": []any{map[string]any{"finish_reason": "stop", "message": content}}},
		"usage": map[string]any{
			"width": j.Media.Width, "height": j.Media.Height, "image_count": 1,
			"input_tokens": 0, "output_tokens": 0, "total_tokens": 0,
		},
		"request_id": j.ID,
	}}
}
