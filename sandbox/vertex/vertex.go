package vertex

import (
	"crypto/rsa"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/golang-jwt/jwt/v5"

	"github.com/mediagate/mediagate/sandbox/googleapi"
	"github.com/mediagate/mediagate/sandbox/kernel"
)

const (
	project  = "sandbox-project"
	location = "us-central1"
)

// accountFile is the key of the only customer. It gives access to nothing but this sandbox.
//
//go:embed service_account.json
var accountFile string

//go:embed schema
var files embed.FS

var schemas = kernel.NewSchemas(files)

// Vendor returns Vertex AI with its customer account.
func Vendor() kernel.Vendor {
	v := kernel.NewVendor("vertex", "/vertex", "service_account", accountFile, mount)
	for _, c := range []map[string]string{v.Account.Credentials, v.Channel.Credentials} {
		c["project"], c["location"] = project, location
	}
	return v
}

// veoAPI is Veo as Vertex AI offers it.
var veoAPI = googleapi.VeoAPI{
	Schema: "vertex",
	Models: []string{
		"veo-3.1-generate-001", "veo-3.1-fast-generate-001", "veo-3.1-generate-preview", "veo-3.1-fast-generate-preview",
	},
	NameOf: nameOf,
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
		panic("sandbox: service_account.json: " + err.Error()) // the file is part of the program
	}
	mux := http.NewServeMux()
	mux.Handle("POST /token", s.Handle(v.token))
	mux.Handle("/", s.Routes(v.authenticated, googleapi.Refuse, map[string]kernel.Handler{
		"POST /v1/projects/{project}/locations/{location}/publishers/google/models/{call}": v.call,
	}))
	return mux
}

// call checks the project and the model, and runs the method.
func (v *vertex) call(r *http.Request, a kernel.Account) kernel.Reply {
	if r.PathValue("project") != project {
		return googleapi.Refuse(kernel.CallOther, googleapi.Hidden,
			kernel.NewViolation("", "Permission 'aiplatform.endpoints.predict' denied on resource (or it may not exist)"))
	}
	model, method, _ := strings.Cut(r.PathValue("call"), ":")
	if r.PathValue("location") != location || !slices.Contains(veoAPI.Models, model) {
		return googleapi.Refuse(kernel.CallSubmit, kernel.NoModel,
			kernel.NewViolation("", "Publisher Model %s was not found or your project does not have access to it", model))
	}
	switch method {
	case "predictLongRunning":
		return veoAPI.Submit(v.Service, r, a, model)
	case "fetchPredictOperation":
		return v.fetch(r, a, model)
	default:
		return googleapi.Refuse(kernel.CallOther, kernel.NoPath, nil)
	}
}

// fetch answers a poll of an operation.
func (v *vertex) fetch(r *http.Request, a kernel.Account, model string) kernel.Reply {
	const bodyMax = 64 << 10
	b, err := schemas.Read(r, "fetchPredictOperation", bodyMax)
	id, ok := strings.CutPrefix(b.Text("operationName"), nameOf(model, ""))
	if err == nil && !ok {
		err = kernel.NewViolation("operationName", "is invalid")
	}
	if err != nil {
		return googleapi.Refuse(kernel.CallPoll, kernel.Invalid, err)
	}
	return veoAPI.Poll(v.Service, a, model, id, v.answerDone)
}

// answerDone answers with the operation's videos, which are generated while the answer is sent.
func (v *vertex) answerDone(j *kernel.Job, op map[string]any) kernel.Reply {
	delivered, filtered := googleapi.CountVideos(j)
	response := map[string]any{
		"@type": "type.googleapis.com/cloud.ai.large_models.vision.GenerateVideoResponse", "raiMediaFilteredCount": filtered,
	}
	if filtered > 0 {
		response["raiMediaFilteredReasons"] = googleapi.Reasons(filtered)
	}
	var videos []any
	var files []*io.SectionReader
	for range delivered {
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
		return googleapi.Refuse(kernel.CallPoll, kernel.Internal, err)
	}
	if d := j.Directive; len(files) > 0 && d.Fails(kernel.AtDownload) {
		spoilt := d.FailsCall(kernel.AtDownload, v.Count(j, kernel.CallDownload))
		if spoilt && d.Fail != kernel.FailTimeout {
			return googleapi.Refuse(kernel.CallPoll, kernel.Internal, nil)
		}
		stream.NeverStalls = !spoilt
	}
	return kernel.Reply{Status: http.StatusOK, Stream: stream}
}
