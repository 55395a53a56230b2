package openai

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// Vendor is OpenAI with the customer that it has here.
func Vendor() kernel.Vendor {
	const name, key = "openai", "sandbox-openai-api-key"
	return kernel.Vendor{
		Name:    name,
		Account: kernel.Account{Provider: name, Credentials: map[string]string{"api_key": key}},
		Channel: kernel.Channel{Provider: name, Path: "/openai/v1", Credentials: map[string]string{"api_key": key}},
		Mount:   mount,
	}
}

const (
	bodyMax  = 1 << 20
	inputMax = 4096
	// broke is the customer whose account is empty.
	broke = "@broke"
)

var (
	models  = []string{"gpt-4o-mini-tts", "gpt-4o-mini-tts-2025-12-15", "tts-1", "tts-1-hd"}
	voices  = strings.Fields("alloy ash ballad coral echo fable onyx nova sage shimmer verse marin cedar")
	formats = strings.Fields("mp3 opus aac flac wav pcm")
)

type openai struct {
	*kernel.Service
}

func mount(s *kernel.Service) http.Handler {
	o := &openai{s}
	mux := http.NewServeMux()
	mux.Handle("POST /v1/audio/speech", s.Handle(o.speech))
	mux.Handle("/", s.Handle(func(r *http.Request) kernel.Reply {
		return refuse(kernel.CallOther, http.StatusNotFound, invalid, "", "Invalid URL ("+r.Method+" "+r.URL.Path+")")
	}))
	return mux
}

const invalid = "invalid_request_error"

// refuse answers as the vendor does. What is empty is null.
func refuse(kind string, status int, errorType, code, message string) kernel.Reply {
	body := map[string]any{"message": message, "type": errorType, "param": nil, "code": nil}
	if code != "" {
		body["code"] = code
	}
	return kernel.Reply{
		Kind: kind, Status: status, Header: map[string]string{"X-Request-Id": "req_" + kernel.UUID()}, Body: map[string]any{"error": body},
	}
}

// speech speaks a text.
func (o *openai) speech(r *http.Request) kernel.Reply {
	key, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	account, ok := o.Customer("api_key", key)
	switch {
	case !bearer || !ok:
		return refuse(kernel.CallSubmit, http.StatusUnauthorized, invalid, "invalid_api_key", "Incorrect API key provided.")
	case strings.Contains(key, broke):
		return refuse(kernel.CallSubmit, http.StatusTooManyRequests, "insufficient_quota", "insufficient_quota", "You exceeded your current quota, please check your plan and billing details.")
	}
	in, err := kernel.ReadObject(r, bodyMax)
	if err != nil {
		return refuse(kernel.CallSubmit, http.StatusBadRequest, invalid, "", err.Error())
	}
	q := readRequest(in)
	if in.Err() == nil && !slices.Contains(models, q.model) {
		return refuse(kernel.CallSubmit, http.StatusNotFound, invalid, "model_not_found", "The model `"+q.model+"` does not exist or you do not have access to it.")
	}
	if err := in.Err(); err != nil {
		return refuse(kernel.CallSubmit, http.StatusBadRequest, invalid, "", err.Error())
	}
	return o.Take(account, &kernel.Job{
		ID: kernel.UUID(), Endpoint: "speech", Model: q.model, Prompt: q.input, Media: kernel.Media{Kind: kernel.MediaSpeech},
	}, kernel.Refusals{
		Rejected:  refuse(kernel.CallSubmit, http.StatusBadRequest, invalid, "", "input: "+kernel.DirectiveTrouble(q.input)),
		Moderated: moderated(),
		Broken:    failed(),
		Busy:      refuse(kernel.CallSubmit, http.StatusTooManyRequests, "requests", "rate_limit_exceeded", "Rate limit reached for "+q.model+"."),
	}, func(made *kernel.Job) kernel.Reply { return o.speak(r, made, q) })
}

func moderated() kernel.Reply {
	return refuse(kernel.CallSubmit, http.StatusBadRequest, invalid, "content_policy_violation", "Your request was rejected as a result of our safety system.")
}

func failed() kernel.Reply {
	return refuse(kernel.CallSubmit, http.StatusInternalServerError, "server_error", "", "The server had an error while processing your request.")
}

// speak answers with the sound, or with what became of it.
func (o *openai) speak(r *http.Request, j *kernel.Job, q request) kernel.Reply {
	o.Wait(r, j.Takes())
	d := j.Directive
	cut := d.Fail == kernel.FailInternal || d.Fail == kernel.FailTimeout
	if d.Fails(kernel.AtPoll) || d.Fails(kernel.AtDownload) && !cut {
		switch d.Fail {
		case kernel.FailModeration:
			return moderated()
		case kernel.FailReject:
			return refuse(kernel.CallSubmit, http.StatusBadRequest, invalid, "", "input is not acceptable")
		case kernel.FailInternal:
			return failed()
		default:
			return kernel.Reply{Kind: kernel.CallSubmit, Lost: true}
		}
	}
	content, mimeType := sound(q.format, q.seconds())
	return kernel.Reply{
		Kind: kernel.CallSubmit, Status: http.StatusOK, Header: map[string]string{"X-Request-Id": "req_" + kernel.UUID()},
		Stream: &kernel.Stream{Type: mimeType, Size: content.Size(), Content: content, Breaks: true},
	}
}

// request is what is known of one.
type request struct {
	model, input, format string
	speed                float64
}

// charactersPerSecond is how fast people speak.
const charactersPerSecond = 15

func (q request) seconds() float64 {
	return max(0.1, float64(utf8.RuneCountInString(q.input))/charactersPerSecond/q.speed)
}

func readRequest(in *kernel.Object) request {
	in.Only("model", "input", "voice", "instructions", "response_format", "speed", "stream_format")
	q := request{
		model: in.Text("model"), input: in.TextMax("input", inputMax), format: in.Word("response_format", "mp3", formats...), speed: 1,
	}
	for name, value := range map[string]string{"model": q.model, "input": q.input, "voice": in.Word("voice", "", voices...)} {
		if value == "" && in.Err() == nil {
			in.Fail(name, "is required")
		}
	}
	if in.Has("speed") {
		n, _ := in.Value("speed").(json.Number)
		var err error
		if q.speed, err = n.Float64(); err != nil || q.speed < 0.25 || q.speed > 4 {
			in.Fail("speed", "must be a number from 0.25 to 4.0")
		}
	}
	if in.Text("instructions"); in.Has("instructions") && strings.HasPrefix(q.model, "tts-1") {
		in.Fail("instructions", "is not supported with this model")
	}
	if in.Word("stream_format", "audio", "audio", "sse") == "sse" {
		in.Fail("stream_format", "sse is not played here")
	}
	return q
}
