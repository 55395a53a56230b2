package sandbox

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// DashScope's codes.
const (
	dashKey        = "InvalidApiKey"
	dashDenied     = "AccessDenied"
	dashNoModel    = "ModelNotFound"
	dashInvalid    = "InvalidParameter"
	dashInspection = "DataInspectionFailed"
	dashThrottled  = "Throttling.AllocationQuota"
	dashInternal   = "InternalError"
)

// dashStatus is the HTTP status that goes with a code.
func dashStatus(code string) int {
	switch code {
	case dashKey:
		return http.StatusUnauthorized
	case dashDenied:
		return http.StatusForbidden
	case dashNoModel:
		return http.StatusNotFound
	case dashThrottled:
		return http.StatusTooManyRequests
	case dashInternal:
		return http.StatusInternalServerError
	default:
		return http.StatusBadRequest
	}
}

const (
	dashBody      = 6 << 20
	dashPrompt    = 800
	dashMinPixels = 512 * 512
	dashMaxPixels = 2048 * 2048
	dashMaxSeed   = 1<<31 - 1
	dashSize      = "1024*1024"

	dashImages = "multimodal-generation"
)

// dashscope plays Alibaba's Model Studio: images in one blocking call.
type dashscope struct {
	*Server
}

func mountDashScope(s *Server) http.Handler {
	d := &dashscope{s}
	mux := http.NewServeMux()
	serve := func(h func(*http.Request, Account) reply) http.HandlerFunc {
		return s.serve("dashscope", func(r *http.Request) reply {
			key, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
			a, ok := s.account("dashscope", "api_key", key)
			if !ok || key == r.Header.Get("Authorization") {
				return d.refuse(callOther, dashKey, "Invalid API-key provided.")
			}
			return h(r, a)
		})
	}
	mux.Handle("POST /api/v1/services/aigc/multimodal-generation/generation", serve(d.generate))
	mux.Handle("/", serve(func(*http.Request, Account) reply {
		return d.refuse(callOther, dashInvalid, "url error, please check url!")
	}))
	return mux
}

func (d *dashscope) refuse(kind, code, message string) reply {
	return reply{kind: kind, status: dashStatus(code), body: map[string]any{"code": code, "message": message, "request_id": uuid()}}
}

// generate makes an image while the caller waits. A failure "at poll" strikes
// when the image would be ready, one at submit at once.
func (d *dashscope) generate(r *http.Request, a Account) reply {
	if r.Header.Get("X-DashScope-Async") != "" {
		return d.refuse(callSubmit, dashDenied, "current user api does not support asynchronous calls")
	}
	in, err := readObject(r, dashBody)
	if err != nil {
		return d.refuse(callSubmit, dashInvalid, err.Error())
	}
	model := in.text("model")
	if *in.err == nil && model != "z-image-turbo" {
		if model == "" {
			return d.refuse(callSubmit, dashInvalid, "model: is required")
		}
		return d.refuse(callSubmit, dashNoModel, "Model not exist.")
	}
	j, extend := dashImage(in)
	if *in.err != nil {
		return d.refuse(callSubmit, dashInvalid, (*in.err).Error())
	}
	j.ID, j.Provider, j.Endpoint, j.Model = uuid(), "dashscope", dashImages, model

	made, verdict := d.accept(a, j)
	var rep reply
	switch verdict {
	case accepted:
		rep = d.finish(r, made, extend)
	case answerLost:
		rep = reply{kind: callSubmit, lost: true}
	case moderated:
		return d.refuse(callSubmit, dashInspection, "Input data may contain inappropriate content.")
	case busy:
		return d.refuse(callSubmit, dashThrottled, "Too many requests in route. Please try again later.")
	case rejected, duplicate:
		return d.refuse(callSubmit, dashInvalid, "prompt: "+directiveTrouble(j.Prompt))
	default:
		return d.refuse(callSubmit, dashInternal, "An internal error has occurred, please try again later.")
	}
	rep.job, rep.made = made.ID, true
	return rep
}

// dashImage reads input and parameters.
func dashImage(in *object) (j *job, extend bool) {
	in.only("model", "input", "parameters")
	input := in.nested("input")
	input.only("messages")
	messages := input.objects("messages", 1)
	prompt := ""
	if len(messages) != 1 {
		input.fail("messages", "exactly one message is required")
	} else {
		m := messages[0]
		m.only("role", "content")
		if m.word("role", "", "user") == "" {
			m.fail("role", "is required")
		}
		content := m.objects("content", 1)
		if len(content) != 1 {
			m.fail("content", "exactly one text is required")
		} else {
			content[0].only("text")
			prompt = content[0].textMax("text", dashPrompt)
			if strings.TrimSpace(prompt) == "" {
				content[0].fail("text", "is required")
			}
		}
	}
	p := in.nested("parameters")
	p.only("size", "prompt_extend", "seed")
	extend = p.flag("prompt_extend")
	if p.has("seed") {
		p.integer("seed", 0, dashMaxSeed)
	}
	width, height := dashPixels(p)
	return &job{Prompt: prompt, Media: media{Kind: "image", Width: width, Height: height}}, extend
}

// dashPixels reads a size such as 1024*768.
func dashPixels(p *object) (width, height int) {
	size := dashSize
	if p.has("size") {
		size = p.text("size")
	}
	w, h, _ := strings.Cut(size, "*")
	width, errWidth := strconv.Atoi(w)
	height, errHeight := strconv.Atoi(h)
	bad := errWidth != nil || errHeight != nil || width < 1 || height < 1 || width > dashMaxPixels || height > dashMaxPixels
	if bad || width*height < dashMinPixels || width*height > dashMaxPixels || fmt.Sprintf("%d*%d", width, height) != size {
		p.fail("size", "must be W*H with 512*512 to 2048*2048 pixels")
		return 0, 0
	}
	return width, height
}

// finish waits for the image and answers with it.
func (d *dashscope) finish(r *http.Request, j *job, extend bool) reply {
	d.wait(r, j.takes())
	if j.Directive.fails(atPoll) {
		switch j.Directive.Fail {
		case failModeration:
			return d.refuse(callSubmit, dashInspection, "Output data may contain inappropriate content.")
		case failReject:
			return d.refuse(callSubmit, dashInvalid, "the request could not be processed")
		case failInternal:
			return d.refuse(callSubmit, dashInternal, "An internal error has occurred, please try again later.")
		default:
			return reply{kind: callSubmit, lost: true}
		}
	}
	message := []any{
		map[string]any{"image": base(r) + j.link(fileImage)},
		map[string]any{"text": j.Prompt},
	}
	content := map[string]any{"role": "assistant", "content": message}
	if extend {
		message[1] = map[string]any{"text": "A detailed picture: " + j.Prompt}
		content["reasoning_content"] = "The prompt was extended."
	}
	return reply{kind: callSubmit, status: http.StatusOK, body: map[string]any{
		"output": map[string]any{"choices": []any{map[string]any{"finish_reason": "stop", "message": content}}},
		"usage": map[string]any{
			"width": j.Media.Width, "height": j.Media.Height, "image_count": 1,
			"input_tokens": 0, "output_tokens": 0, "total_tokens": 0,
		},
		"request_id": j.ID,
	}}
}
