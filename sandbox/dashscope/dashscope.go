package dashscope

import (
	"embed"
	"errors"
	"net/http"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// Vendor returns DashScope with its customer account.
func Vendor() kernel.Vendor {
	return kernel.NewVendor("dashscope", "/dashscope/api/v1", "api_key", "sk-sandbox-dashscope", mount)
}

//go:embed schema
var files embed.FS

var schemas = kernel.NewSchemas(files)

// The codes that failed jobs also have.
const (
	codeInspection = "DataInspectionFailed"
	codeAlgorithm  = "InternalError.Algo"
)

// wrongCall is the fault of an asynchronous call for an image, or a synchronous call for a
// video.
const wrongCall kernel.Fault = -1

var refuse = kernel.NewRefuse(map[kernel.Fault]kernel.FaultText{
	kernel.NoKey:   kernel.NewFaultText(http.StatusUnauthorized, "InvalidApiKey", "Invalid API-key provided."),
	kernel.NoPath:  kernel.NewFaultText(http.StatusBadRequest, "InvalidParameter", "url error, please check url!"),
	kernel.NoModel: kernel.NewFaultText(http.StatusNotFound, "ModelNotFound", "Model not exist."),
	kernel.NoJob:   kernel.NewFaultText(http.StatusBadRequest, "InvalidParameter", "task not exist"),
	kernel.WrongState: kernel.NewFaultText(http.StatusBadRequest, "UnsupportedOperation",
		"Failed to cancel the task, please confirm if the task is in PENDING status."),
	kernel.Invalid: kernel.NewFaultText(http.StatusBadRequest, "InvalidParameter", ""),
	kernel.Inappropriate: kernel.NewFaultText(http.StatusBadRequest, codeInspection,
		"Input data may contain inappropriate content."),
	kernel.Internal: kernel.NewFaultText(http.StatusInternalServerError, "InternalError",
		"An internal error has occurred, please try again later."),
	kernel.TooManyJobs: kernel.NewFaultText(http.StatusTooManyRequests, "Throttling.AllocationQuota",
		"Too many requests in route. Please try again later."),
	wrongCall: kernel.NewFaultText(http.StatusForbidden, "AccessDenied", "current user api does not support "),
}, func(w kernel.FaultText) any {
	return map[string]any{"code": w.Code, "message": w.Message, "request_id": kernel.UUID()}
})

const (
	bodyMax = 6 << 20

	images = "multimodal-generation"
	videos = "video-generation"
)

func mount(s *kernel.Service) http.Handler {
	api := &kernel.API{Service: s, Schemas: schemas, Limit: bodyMax, Endpoint: videos, Refuse: refuse, SubmitView: made}
	return s.Routes(s.ByCredential("Authorization", "Bearer ", "api_key", refuse), refuse, map[string]kernel.Handler{
		"POST /api/v1/services/aigc/multimodal-generation/generation": func(r *http.Request, a kernel.Account) kernel.Reply {
			return generate(s, r, a)
		},
		"POST /api/v1/services/aigc/video-generation/video-synthesis": func(r *http.Request, a kernel.Account) kernel.Reply {
			return synthesize(api, r, a)
		},
		"GET /api/v1/tasks/{id}":         func(r *http.Request, a kernel.Account) kernel.Reply { return query(api, r, a) },
		"POST /api/v1/tasks/{id}/cancel": func(r *http.Request, a kernel.Account) kernel.Reply { return cancel(api, r, a) },
	})
}

// read validates a request and returns its job. It refuses a model for which known returns
// false.
func read(r *http.Request, known func(model string) bool, job kernel.Maker) (*kernel.Job, kernel.Reply) {
	body, err := kernel.ReadBody(r, bodyMax)
	if err != nil {
		return nil, refuse(kernel.CallSubmit, kernel.Invalid, err)
	}
	switch model := body.Text("model"); {
	case model == "":
		err = kernel.NewViolation("model", "is required")
	case !known(model):
		return nil, refuse(kernel.CallSubmit, kernel.NoModel, nil)
	default:
		err = schemas.Check(operation(model), body)
	}
	var j *kernel.Job
	if err == nil {
		j, err = job(body)
	}
	if err != nil {
		return nil, refuse(kernel.CallSubmit, kernel.Invalid, err)
	}
	return j, kernel.Reply{}
}

// generate makes an image while the caller waits. A failure at submit happens at once, and a
// failure at poll when the image would be ready.
func generate(s *kernel.Service, r *http.Request, a kernel.Account) kernel.Reply {
	if r.Header.Get("X-DashScope-Async") != "" {
		return refuse(kernel.CallSubmit, wrongCall, errors.New("asynchronous calls"))
	}
	j, rep := read(r, func(model string) bool { return model == "z-image-turbo" }, image)
	if j == nil {
		return rep
	}
	return s.Accept(a, j, refuse, func(j *kernel.Job) kernel.Reply {
		if rep, failed := s.Await(r, j, refuse); failed {
			return rep
		}
		return picture(r, j)
	})
}

func picture(r *http.Request, j *kernel.Job) kernel.Reply {
	message := []any{map[string]any{"image": kernel.Base(r) + j.Link(kernel.FileImage)}, map[string]any{"text": j.Prompt}}
	content := map[string]any{"role": "assistant", "content": message}
	if j.Detail[detailExtended] != "" {
		message[1] = map[string]any{"text": "A detailed picture: " + j.Prompt}
		content["reasoning_content"] = "The prompt was extended."
	}
	return kernel.OK(kernel.CallSubmit, map[string]any{
		"output":     map[string]any{"choices": []any{map[string]any{"finish_reason": "stop", "message": content}}},
		"usage":      map[string]any{"width": j.Media.Width, "height": j.Media.Height, "image_count": 1},
		"request_id": j.ID,
	})
}
