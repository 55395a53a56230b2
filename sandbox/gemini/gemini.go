package gemini

import (
	"embed"
	"net/http"
	"strconv"

	"github.com/mediagate/mediagate/sandbox/googleapi"
	"github.com/mediagate/mediagate/sandbox/kernel"
)

// Vendor returns Gemini with its customer account.
func Vendor() kernel.Vendor {
	return kernel.NewVendor("gemini", "/gemini", "api_key", "sandbox-gemini-api-key", mount)
}

//go:embed schema
var files embed.FS

var schemas = kernel.NewSchemas(files)

// bodyMax is the largest request with its images, in bytes.
const bodyMax = 20 << 20

// models make images.
var models = []string{"gemini-3.1-flash-image"}

const method = "generateContent"

func mount(s *kernel.Service) http.Handler {
	api := &kernel.API{Service: s, Schemas: schemas, Limit: bodyMax, Endpoint: method, Refuse: googleapi.Refuse}
	return s.Routes(googleapi.ByAPIKey(s), googleapi.Refuse, map[string]kernel.Handler{
		"POST /v1beta/models/{call}": func(r *http.Request, a kernel.Account) kernel.Reply { return generate(api, r, a) },
	})
}

// generate makes an image while the caller waits, and answers with the image or with its
// failure.
func generate(api *kernel.API, r *http.Request, a kernel.Account) kernel.Reply {
	model, refused := googleapi.ModelOf(r, models, method)
	if refused != nil {
		return *refused
	}
	j, rep := api.Read(r, method, func(b kernel.Body) (*kernel.Job, error) { return job(model, b) })
	if j == nil {
		return rep
	}
	refuse := func(kind string, f kernel.Fault, err error) kernel.Reply {
		if f == kernel.Inappropriate {
			return answer(j, map[string]any{"promptFeedback": map[string]any{"blockReason": "PROHIBITED_CONTENT"}}, 0)
		}
		return googleapi.Refuse(kind, f, err)
	}
	return api.Accept(a, j, refuse, func(j *kernel.Job) kernel.Reply {
		d := j.Directive
		if d.Fails(kernel.AtDownload) && d.Fail != kernel.FailTimeout {
			j.Directive.At = kernel.AtPoll // the answer is the download, so it cannot fail later
		}
		rep, failed := api.Await(r, j, googleapi.Refuse)
		switch {
		case failed && d.Fail == kernel.FailModeration:
			return answer(j, candidate("IMAGE_SAFETY", nil), 0)
		case failed && d.Fail == kernel.FailReject:
			return answer(j, candidate("STOP", map[string]any{"text": "I can only describe this."}), 0)
		case failed:
			return rep
		}
		content, mimeType, _ := j.File(kernel.FileImage)
		inline := map[string]any{"inlineData": map[string]any{"mimeType": mimeType, "data": kernel.Place}}
		rep = answer(j, candidate("STOP", inline), tokens[j.Detail["size"]])
		stream, err := kernel.Inline(rep.Body, content)
		if err != nil {
			return googleapi.Refuse(kernel.CallSubmit, kernel.Internal, err)
		}
		rep.Stream = stream
		return rep
	})
}

// candidate returns the body of an answer with one part and a finish reason. Without a part it
// adds the message of a refusal.
func candidate(reason string, part map[string]any) map[string]any {
	c := map[string]any{"finishReason": reason, "index": 0}
	if part != nil {
		c["content"] = map[string]any{"role": "model", "parts": []any{part}}
	} else {
		c["finishMessage"] = "Unable to show the generated image."
	}
	return map[string]any{"candidates": []any{c}}
}

// answer completes the body of an answer with HTTP 200. made is the number of tokens that the
// image counts for.
func answer(j *kernel.Job, body map[string]any, made int) kernel.Reply {
	images, _ := strconv.Atoi(j.Detail["images"])
	asked := len(j.Prompt)/4 + 258*images
	body["usageMetadata"] = map[string]any{
		"promptTokenCount": asked, "candidatesTokenCount": made, "totalTokenCount": asked + made,
	}
	body["modelVersion"], body["responseId"] = j.Model, j.ID
	return kernel.OK(kernel.CallSubmit, body)
}
