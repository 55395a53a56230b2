package veo

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/mediagate/mediagate/sandbox/googleapi"
	"github.com/mediagate/mediagate/sandbox/kernel"
)

// Vendor is Veo on the Gemini API with the customer that it has here.
func Vendor() kernel.Vendor {
	const name, key = "veo", "sandbox-veo-api-key"
	return kernel.Vendor{
		Name:    name,
		Account: kernel.Account{Provider: name, Credentials: map[string]string{"api_key": key}},
		Channel: kernel.Channel{Provider: name, Path: "/veo", Credentials: map[string]string{"api_key": key}},
		Mount:   mount,
	}
}

// surface is Veo as it is offered here.
var surface = googleapi.Surface{
	Models: []string{"veo-3.1-generate-preview", "veo-3.1-fast-generate-preview"},
	Sound:  true,
	NameOf: func(model, id string) string { return "models/" + model + "/operations/" + id },
}

// keptTime is how long a file is there.
const keptTime = 2 * 24 * time.Hour

type veo struct {
	*kernel.Service
}

func mount(s *kernel.Service) http.Handler {
	v := &veo{s}
	mux := http.NewServeMux()
	serve := func(handle func(*http.Request, kernel.Account) kernel.Reply) http.HandlerFunc {
		return s.Handle(func(r *http.Request) kernel.Reply {
			a, refused, ok := googleapi.Keyed(s, r)
			if !ok {
				return refused
			}
			return handle(r, a)
		})
	}
	mux.Handle("POST /v1beta/models/{call}", serve(v.submit))
	mux.Handle("GET /v1beta/models/{model}/operations/{id}", serve(v.poll))
	mux.Handle("GET /v1beta/files/{call}", serve(v.lead))
	mux.Handle("GET /download/v1beta/files/{call}", serve(v.download))
	mux.Handle("/", s.Handle(googleapi.Missing))
	return mux
}

func (v *veo) submit(r *http.Request, a kernel.Account) kernel.Reply {
	model, method, _ := strings.Cut(r.PathValue("call"), ":")
	if !surface.Has(model) || method != "predictLongRunning" {
		return googleapi.Refuse(kernel.CallSubmit, googleapi.NotFound, "models/"+model+" is not found for API version v1beta, or is not supported for "+method+".")
	}
	return surface.Submit(v.Service, r, a, model)
}

func (v *veo) poll(r *http.Request, a kernel.Account) kernel.Reply {
	j := v.Find(a, r.PathValue("id"))
	if j != nil && j.Endpoint != r.PathValue("model") {
		j = nil
	}
	return surface.Poll(v.Service, j, func(op map[string]any) kernel.Reply {
		delivered, filtered := googleapi.Made(j)
		made := map[string]any{}
		var samples []any
		for i := range delivered {
			uri := fmt.Sprintf("%s/veo/v1beta/files/%s-%d:download?alt=media", kernel.Base(r), j.ID, i)
			samples = append(samples, map[string]any{"video": map[string]any{"uri": uri}})
		}
		if len(samples) > 0 {
			made["generatedSamples"] = samples
		}
		if filtered > 0 {
			made["raiMediaFilteredCount"], made["raiMediaFilteredReasons"] = filtered, googleapi.Reasons(filtered)
		}
		op["response"] = map[string]any{
			"@type":                 "type.googleapis.com/google.ai.generativelanguage.v1beta.PredictLongRunningResponse",
			"generateVideoResponse": made,
		}
		return kernel.Reply{Status: http.StatusOK, Body: op}
	})
}

// file is the job whose file a path names; nil where the caller may not see it,
// or not any more: the vendor does not tell which.
func (v *veo) file(r *http.Request, a kernel.Account) *kernel.Job {
	name, ok := strings.CutSuffix(r.PathValue("call"), ":download")
	at := strings.LastIndex(name, "-")
	if !ok || at < 0 || r.FormValue("alt") != "media" {
		return nil
	}
	j := v.Find(a, name[:at])
	if j == nil || j.State(v.Now()) != kernel.StateSucceeded || v.Now().Sub(j.Changed(v.Now())) >= keptTime {
		return nil
	}
	delivered, _ := googleapi.Made(j)
	if n, err := strconv.Atoi(name[at+1:]); err != nil || n < 0 || n >= delivered {
		return nil
	}
	return j
}

func hidden(r *http.Request) kernel.Reply {
	name, _, _ := strings.Cut(r.PathValue("call"), ":")
	return googleapi.Refuse(kernel.CallOther, googleapi.PermissionDenied,
		"You do not have permission to access the File "+name+" or it may not exist.")
}

// lead sends the caller on to where the file is.
func (v *veo) lead(r *http.Request, a kernel.Account) kernel.Reply {
	j := v.file(r, a)
	if j == nil {
		return hidden(r)
	}
	return kernel.Reply{
		Kind: kernel.CallOther, Status: http.StatusFound, Job: j.ID, Body: map[string]any{},
		Header: map[string]string{"Location": kernel.Base(r) + "/veo/download/v1beta/files/" + r.PathValue("call") + "?alt=media"},
	}
}

func (v *veo) download(r *http.Request, a kernel.Account) kernel.Reply {
	j := v.file(r, a)
	if j == nil {
		return hidden(r)
	}
	refused := j.Directive.Fail == kernel.FailReject || j.Directive.Fail == kernel.FailModeration
	if refused && j.Directive.Concerns(r.URL.Path) && j.Directive.Spoils(kernel.AtDownload, v.Count(j, kernel.CallDownload)) {
		return hidden(r)
	}
	return kernel.Reply{Kind: kernel.CallDownload, Job: j.ID, File: kernel.FileVideo}
}
