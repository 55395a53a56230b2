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

// Vendor returns Veo on the Gemini API with its customer account.
func Vendor() kernel.Vendor {
	return kernel.NewVendor("veo", "/veo", "api_key", "sandbox-veo-api-key", mount)
}

// veoAPI is Veo as the Gemini API offers it.
var veoAPI = googleapi.VeoAPI{
	Schema: "veo",
	Models: []string{"veo-3.1-generate-preview", "veo-3.1-fast-generate-preview"},
	Sound:  true,
	NameOf: func(model, id string) string { return "models/" + model + "/operations/" + id },
}

// keptTime is how long a file is available.
const keptTime = 2 * 24 * time.Hour

func mount(s *kernel.Service) http.Handler {
	return s.Routes(googleapi.ByAPIKey(s), googleapi.Refuse, map[string]kernel.Handler{
		"POST /v1beta/models/{call}": func(r *http.Request, a kernel.Account) kernel.Reply {
			model, refused := googleapi.ModelOf(r, veoAPI.Models, "predictLongRunning")
			if refused != nil {
				return *refused
			}
			return veoAPI.Submit(s, r, a, model)
		},
		"GET /v1beta/models/{model}/operations/{id}": func(r *http.Request, a kernel.Account) kernel.Reply {
			show := func(j *kernel.Job, op map[string]any) kernel.Reply { return answerDone(r, j, op) }
			return veoAPI.Poll(s, a, r.PathValue("model"), r.PathValue("id"), show)
		},
		"GET /v1beta/files/{call}": func(r *http.Request, a kernel.Account) kernel.Reply { return redirect(s, r, a) },
		"GET /download/v1beta/files/{call}": func(r *http.Request, a kernel.Account) kernel.Reply {
			return download(s, r, a)
		},
	})
}

// answerDone answers with the links to an operation's videos.
func answerDone(r *http.Request, j *kernel.Job, op map[string]any) kernel.Reply {
	delivered, filtered := googleapi.CountVideos(j)
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
	return kernel.OK(kernel.CallPoll, op)
}

// file returns the job whose file the path names. It returns nil if there is no such file, if
// the caller may not see the file, or if the file has expired. Like the vendor, the sandbox does
// not say which.
func file(v *kernel.Service, r *http.Request, a kernel.Account) *kernel.Job {
	name, ok := strings.CutSuffix(r.PathValue("call"), ":download")
	at := strings.LastIndex(name, "-")
	if !ok || at < 0 || r.FormValue("alt") != "media" {
		return nil
	}
	j := v.Find(a, name[:at])
	if j == nil || j.State(v.Now()) != kernel.StateSucceeded || v.Now().Sub(j.StateSince(v.Now())) >= keptTime {
		return nil
	}
	delivered, _ := googleapi.CountVideos(j)
	if n, err := strconv.Atoi(name[at+1:]); err != nil || n < 0 || n >= delivered {
		return nil
	}
	return j
}

func hidden(r *http.Request) kernel.Reply {
	name, _, _ := strings.Cut(r.PathValue("call"), ":")
	return googleapi.Refuse(kernel.CallOther, googleapi.Hidden,
		kernel.NewViolation("", "You do not have permission to access the File %s or it may not exist", name))
}

// redirect redirects the caller to the file.
func redirect(v *kernel.Service, r *http.Request, a kernel.Account) kernel.Reply {
	j := file(v, r, a)
	if j == nil {
		return hidden(r)
	}
	return kernel.Reply{
		Kind: kernel.CallOther, Status: http.StatusFound, Job: j.ID, Body: map[string]any{},
		Header: map[string]string{
			"Location": kernel.Base(r) + "/veo/download/v1beta/files/" + r.PathValue("call") + "?alt=media",
		},
	}
}

func download(v *kernel.Service, r *http.Request, a kernel.Account) kernel.Reply {
	j := file(v, r, a)
	if j == nil {
		return hidden(r)
	}
	refused := j.Directive.Fail == kernel.FailReject || j.Directive.Fail == kernel.FailModeration
	if refused && j.Directive.AppliesTo(r.URL.Path) &&
		j.Directive.FailsCall(kernel.AtDownload, v.Count(j, kernel.CallDownload)) {
		return hidden(r)
	}
	return kernel.Reply{Kind: kernel.CallDownload, Job: j.ID, File: kernel.FileVideo}
}
