package vertex

import (
	"crypto/rsa"
	_ "embed" // the key
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/golang-jwt/jwt/v5"

	"github.com/mediagate/mediagate/sandbox/googleapi"
	"github.com/mediagate/mediagate/sandbox/kernel"
)

const (
	project  = "sandbox-project"
	location = "us-central1"
)

// accountFile is the key of the one customer. It opens nothing but this
// sandbox.
//
//go:embed service_account.json
var accountFile string

// Vendor is Vertex AI with the customer that it has here.
func Vendor() kernel.Vendor {
	const name = "vertex"
	credentials := func() map[string]string {
		return map[string]string{"service_account": accountFile, "project": project, "location": location}
	}
	return kernel.Vendor{
		Name:    name,
		Account: kernel.Account{Provider: name, Credentials: credentials()},
		Channel: kernel.Channel{Provider: name, Path: "/vertex", Credentials: credentials()},
		Mount:   mount,
	}
}

// surface is Veo as it is offered here.
var surface = googleapi.Surface{
	Models: []string{
		"veo-3.1-generate-001", "veo-3.1-fast-generate-001", "veo-3.1-generate-preview", "veo-3.1-fast-generate-preview",
	},
	Parameters: []string{"generateAudio", "seed", "resizeMode", "storageUri"},
	NameOf:     nameOf,
}

func nameOf(model, id string) string {
	return fmt.Sprintf("projects/%s/locations/%s/publishers/google/models/%s/operations/%s", project, location, model, id)
}

type vertex struct {
	*kernel.Service

	account struct {
		ClientEmail  string `json:"client_email"`
		PrivateKey   string `json:"private_key"`
		PrivateKeyID string `json:"private_key_id"`
	}
	key *rsa.PrivateKey
}

func mount(s *kernel.Service) http.Handler {
	v := &vertex{Service: s}
	err := json.Unmarshal([]byte(accountFile), &v.account)
	if err == nil {
		v.key, err = jwt.ParseRSAPrivateKeyFromPEM([]byte(v.account.PrivateKey))
	}
	if err != nil {
		panic("sandbox: service_account.json: " + err.Error()) // it is part of the program
	}
	mux := http.NewServeMux()
	mux.Handle("POST /token", s.Handle(v.token))
	mux.Handle("POST /v1/projects/{project}/locations/{location}/publishers/google/models/{call}", s.Handle(v.call))
	mux.Handle("/", s.Handle(googleapi.Missing))
	return mux
}

// call finds customer, project, model and method.
func (v *vertex) call(r *http.Request) kernel.Reply {
	a, refused, ok := v.authenticated(r)
	if !ok {
		return refused
	}
	if r.PathValue("project") != project {
		return googleapi.Refuse(kernel.CallOther, googleapi.PermissionDenied, "Permission 'aiplatform.endpoints.predict' denied on resource (or it may not exist).")
	}
	model, method, _ := strings.Cut(r.PathValue("call"), ":")
	if r.PathValue("location") != location || !surface.Has(model) {
		return googleapi.Refuse(kernel.CallSubmit, googleapi.NotFound, "Publisher Model "+model+" was not found or your project does not have access to it.")
	}
	switch method {
	case "predictLongRunning":
		return surface.Submit(v.Service, r, a, model)
	case "fetchPredictOperation":
		return v.fetch(r, a, model)
	default:
		return googleapi.Missing(r)
	}
}

// fetch answers about an operation.
func (v *vertex) fetch(r *http.Request, a kernel.Account, model string) kernel.Reply {
	const bodyMax = 64 << 10
	in, err := kernel.ReadObject(r, bodyMax)
	if err != nil {
		return googleapi.Refuse(kernel.CallPoll, googleapi.InvalidArgument, "Invalid request payload: "+err.Error())
	}
	in.Only("operationName")
	name := in.Text("operationName")
	id, ok := strings.CutPrefix(name, nameOf(model, ""))
	switch {
	case in.Err() != nil:
		return googleapi.Refuse(kernel.CallPoll, googleapi.InvalidArgument, in.Err().Error())
	case !ok:
		return googleapi.Refuse(kernel.CallPoll, googleapi.InvalidArgument, "Invalid operation name.")
	}
	j := v.Find(a, id)
	if j != nil && j.Endpoint != model {
		j = nil
	}
	return surface.Poll(v.Service, j, func(op map[string]any) kernel.Reply { return v.end(j, op) })
}

// end answers with the videos, which are made while they are sent.
func (v *vertex) end(j *kernel.Job, op map[string]any) kernel.Reply {
	delivered, filtered := googleapi.Made(j)
	response := map[string]any{
		"@type": "type.googleapis.com/cloud.ai.large_models.vision.GenerateVideoResponse", "raiMediaFilteredCount": filtered,
	}
	if filtered > 0 {
		response["raiMediaFilteredReasons"] = googleapi.Reasons(filtered)
	}
	var videos []any
	var files []*io.SectionReader
	for i := range delivered {
		if storage := j.Detail["storage"]; storage != "" {
			videos = append(videos, map[string]any{"gcsUri": fmt.Sprintf("%s/%s/sample_%d.mp4", strings.TrimRight(storage, "/"), j.ID, i), "mimeType": "video/mp4"})
			continue
		}
		file, mimeType, _ := j.File(kernel.FileVideo)
		videos = append(videos, map[string]any{"bytesBase64Encoded": kernel.Place, "mimeType": mimeType})
		files = append(files, file)
	}
	if len(videos) > 0 {
		response["videos"] = videos
	}
	op["response"] = response
	stream, err := kernel.Inline(op, files...)
	if err != nil {
		return googleapi.Refuse(kernel.CallPoll, googleapi.Internal, err.Error())
	}
	if d := j.Directive; len(files) > 0 && d.Fails(kernel.AtDownload) {
		spoilt := d.Spoils(kernel.AtDownload, v.Count(j, kernel.CallDownload))
		if spoilt && d.Fail != kernel.FailTimeout {
			return googleapi.Refuse(kernel.CallPoll, googleapi.Internal, googleapi.Broken)
		}
		stream.Whole = !spoilt
	}
	return kernel.Reply{Status: http.StatusOK, Stream: stream}
}
