package gemini

import (
	"net/http"
	"strings"

	"github.com/mediagate/mediagate/sandbox/googleapi"
	"github.com/mediagate/mediagate/sandbox/kernel"
)

// Vendor is Gemini with the customer that it has here.
func Vendor() kernel.Vendor {
	const name, key = "gemini", "sandbox-gemini-api-key"
	return kernel.Vendor{
		Name:    name,
		Account: kernel.Account{Provider: name, Credentials: map[string]string{"api_key": key}},
		Channel: kernel.Channel{Provider: name, Path: "/gemini", Credentials: map[string]string{"api_key": key}},
		Mount:   mount,
	}
}

// bodyMax is the most that a request with its images may hold.
const bodyMax = 20 << 20

// models make images.
var models = map[string]bool{"gemini-3.1-flash-image": true}

type gemini struct {
	*kernel.Service
}

func mount(s *kernel.Service) http.Handler {
	g := &gemini{s}
	mux := http.NewServeMux()
	mux.Handle("POST /v1beta/models/{call}", s.Handle(g.call))
	mux.Handle("/", s.Handle(googleapi.Missing))
	return mux
}

// call finds customer, model and method.
func (g *gemini) call(r *http.Request) kernel.Reply {
	a, refused, ok := googleapi.Keyed(g.Service, r)
	if !ok {
		return refused
	}
	model, method, _ := strings.Cut(r.PathValue("call"), ":")
	if !models[model] || method != "generateContent" {
		return googleapi.Refuse(kernel.CallSubmit, googleapi.NotFound, "models/"+model+" is not found for API version v1beta, or is not supported for "+method+".")
	}
	return g.generate(r, a, model)
}

// generate makes an image while the caller waits.
func (g *gemini) generate(r *http.Request, a kernel.Account, model string) kernel.Reply {
	in, err := kernel.ReadObject(r, bodyMax)
	if err != nil {
		return googleapi.Refuse(kernel.CallSubmit, googleapi.InvalidArgument, "Invalid request payload: "+err.Error())
	}
	q := readRequest(in)
	switch {
	case in.Err() != nil:
		return googleapi.Refuse(kernel.CallSubmit, googleapi.InvalidArgument, in.Err().Error())
	case q.files > 0:
		return googleapi.Refuse(kernel.CallSubmit, googleapi.PermissionDenied, "You do not have permission to access the File or it may not exist.")
	}
	width, height := q.pixels()
	id := kernel.UUID()
	return g.Take(a, &kernel.Job{
		ID: id, Endpoint: "generateContent", Model: model, Prompt: q.prompt,
		Media: kernel.Media{Kind: "image", Width: width, Height: height},
	}, kernel.Refusals{
		Rejected:  googleapi.Refuse(kernel.CallSubmit, googleapi.InvalidArgument, "contents: "+kernel.DirectiveTrouble(q.prompt)),
		Moderated: answer(q, model, id, map[string]any{"promptFeedback": map[string]any{"blockReason": "PROHIBITED_CONTENT"}}, 0),
		Broken:    googleapi.Refuse(kernel.CallSubmit, googleapi.Internal, googleapi.Broken),
		Busy:      googleapi.Refuse(kernel.CallSubmit, googleapi.ResourceExhausted, "You exceeded your current quota."),
	}, func(made *kernel.Job) kernel.Reply { return g.finish(r, made, q) })
}

// finish waits for the image and answers with it, or with what became of it.
func (g *gemini) finish(r *http.Request, j *kernel.Job, q *request) kernel.Reply {
	g.Wait(r, j.Takes())
	d := j.Directive
	if d.Fails(kernel.AtPoll) || d.Fails(kernel.AtDownload) && d.Fail != kernel.FailTimeout {
		switch d.Fail {
		case kernel.FailModeration:
			return answer(q, j.Model, j.ID, candidate("IMAGE_SAFETY", nil), 0)
		case kernel.FailReject:
			return answer(q, j.Model, j.ID, candidate("STOP", []any{text("I can only describe this.")}), 0)
		case kernel.FailInternal:
			return googleapi.Refuse(kernel.CallSubmit, googleapi.Internal, googleapi.Broken)
		default:
			return kernel.Reply{Kind: kernel.CallSubmit, Lost: true}
		}
	}
	return image(j, q)
}

// candidate is what was made, and why it ended.
func candidate(reason string, parts []any) map[string]any {
	c := map[string]any{"finishReason": reason, "index": 0}
	if len(parts) > 0 {
		c["content"] = map[string]any{"role": "model", "parts": parts}
	} else {
		c["finishMessage"] = "Unable to show the generated image."
	}
	return map[string]any{"candidates": []any{c}}
}

func text(s string) map[string]any { return map[string]any{"text": s} }

// answer completes what every answer with HTTP 200 has.
func answer(q *request, model, id string, body map[string]any, made int) kernel.Reply {
	asked := len(q.prompt)/4 + 258*q.images
	body["usageMetadata"] = map[string]any{
		"promptTokenCount": asked, "candidatesTokenCount": made, "totalTokenCount": asked + made,
	}
	body["modelVersion"], body["responseId"] = model, id
	return kernel.Reply{Kind: kernel.CallSubmit, Status: http.StatusOK, Body: body}
}
