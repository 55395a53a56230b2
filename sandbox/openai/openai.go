package openai

import (
	"cmp"
	"embed"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// Vendor returns OpenAI with its customer account.
func Vendor() kernel.Vendor {
	return kernel.NewVendor("openai", "/openai/v1", "api_key", "sandbox-openai-api-key", mount)
}

//go:embed schema
var files embed.FS

var schemas = kernel.NewSchemas(files)

const (
	bodyMax = 1 << 20
	// emptyAccountMark marks the key of the customer whose account is empty.
	emptyAccountMark = "@broke"
)

var refuseBy = kernel.NewRefuse(map[kernel.Fault]kernel.FaultText{
	kernel.NoKey: kernel.NewFaultText(http.StatusUnauthorized, errorWords{invalid, "invalid_api_key"},
		"Incorrect API key provided."),
	kernel.NoModel: kernel.NewFaultText(http.StatusNotFound, errorWords{invalid, "model_not_found"},
		"The model does not exist or you do not have access to it: "),
	kernel.NoPath:  kernel.NewFaultText(http.StatusNotFound, errorWords{invalid, nil}, "Invalid URL"),
	kernel.Invalid: kernel.NewFaultText(http.StatusBadRequest, errorWords{invalid, nil}, ""),
	kernel.Inappropriate: kernel.NewFaultText(http.StatusBadRequest, errorWords{invalid, "content_policy_violation"},
		"Your request was rejected as a result of our safety system."),
	kernel.Internal: kernel.NewFaultText(http.StatusInternalServerError, errorWords{"server_error", nil},
		"The server had an error while processing your request."),
	kernel.TooManyJobs: kernel.NewFaultText(http.StatusTooManyRequests, errorWords{"requests", "rate_limit_exceeded"},
		"Rate limit reached."),
	noMoney: kernel.NewFaultText(http.StatusTooManyRequests, errorWords{"insufficient_quota", "insufficient_quota"},
		"You exceeded your current quota, please check your plan and billing details."),
}, func(w kernel.FaultText) any {
	s, _ := w.Code.(errorWords)
	return map[string]any{"error": map[string]any{"message": w.Message, "type": s.kind, "param": nil, "code": s.code}}
})

const (
	invalid = "invalid_request_error"

	noMoney kernel.Fault = -1 // the account is empty
)

// errorWords holds the vendor's type and code of an error.
type errorWords struct {
	kind string
	code any // nil: null
}

func refuse(kind string, f kernel.Fault, err error) kernel.Reply {
	if v, ok := errors.AsType[*kernel.Violation](err); ok && v.Field == "model" && v.Rule == "enum" {
		f = kernel.NoModel
	}
	rep := refuseBy(kind, f, err)
	rep.Header = requestID()
	return rep
}

func requestID() map[string]string { return map[string]string{"X-Request-Id": "req_" + kernel.UUID()} }

func mount(s *kernel.Service) http.Handler {
	api := &kernel.API{Service: s, Schemas: schemas, Limit: bodyMax, Endpoint: "speech", Refuse: refuse}
	return s.Routes(s.ByCredential("Authorization", "Bearer ", "api_key", refuse), refuse, map[string]kernel.Handler{
		"POST /v1/audio/speech": func(r *http.Request, a kernel.Account) kernel.Reply {
			if strings.Contains(r.Header.Get("Authorization"), emptyAccountMark) {
				return refuse(kernel.CallSubmit, noMoney, nil)
			}
			j, rep := api.Read(r, "speech", job)
			if j == nil {
				return rep
			}
			return api.Accept(a, j, refuse, func(j *kernel.Job) kernel.Reply { return answerSpeech(api, r, j) })
		},
	})
}

// answerSpeech answers with the sound, or with the failure that the directive asks for.
func answerSpeech(api *kernel.API, r *http.Request, j *kernel.Job) kernel.Reply {
	d := j.Directive
	if cut := d.Fail == kernel.FailInternal || d.Fail == kernel.FailTimeout; d.Fails(kernel.AtDownload) && !cut {
		j.Directive.At = kernel.AtPoll // once it has begun, a sound cannot be refused
	}
	if rep, failed := api.Await(r, j, refuse); failed {
		return rep
	}
	seconds, _ := strconv.ParseFloat(j.Detail["seconds"], 64)
	content, mimeType := sound(j.Detail["format"], seconds)
	return kernel.Reply{
		Kind: kernel.CallSubmit, Status: http.StatusOK, Header: requestID(),
		Stream: &kernel.Stream{Type: mimeType, Size: content.Size(), Content: content, CutByInternal: true},
	}
}

// job returns the job of a request.
func job(b kernel.Body) (*kernel.Job, error) {
	input := b.Text("input")
	seconds := max(0.1, float64(utf8.RuneCountInString(input))/charactersPerSecond/cmp.Or(b.Number("speed"), 1))
	return &kernel.Job{
		ID: kernel.UUID(), Model: b.Text("model"), Prompt: input, Media: kernel.Media{Kind: kernel.MediaSpeech},
		Detail: map[string]string{"format": b.Text("response_format"), "seconds": strconv.FormatFloat(seconds, 'f', -1, 64)},
	}, nil
}

// charactersPerSecond is the speed of the voice.
const charactersPerSecond = 15
