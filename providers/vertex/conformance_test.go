package vertex_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/providertest"
)

var update = flag.Bool("update", false, "rewrite golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Short names for the tables.
var (
	quote = providertest.Quote
	row   = providertest.RowOf
)

const (
	externalID = "task_01JZZZZZZZZZZZZZZZZZZZZZZZ"
	owner      = "projects/acme-media/locations/us-central1/publishers/google/models/veo-3.1-generate-001"
	jobID      = "a1b07c8e-7b5a-4aba-bb34-3e1ccb8afcc8"
	name       = owner + "/operations/" + jobID
	token      = "ya29.c.aSecretTokenOfThisTest0123456789"
	video      = "not much of a video, but bytes"
)

// privateKey returns a key that is made once, because any key can sign.
var privateKey = sync.OnceValue(func() string {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		panic(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
})

func account(tokenURI string) string {
	b, err := json.MarshalIndent(map[string]string{
		"type": "service_account", "project_id": "acme-media", "private_key_id": "4f1c0a77b2d94a6c8a6f0d1e2b3c4d5e",
		"private_key": privateKey(), "client_email": "gateway@acme-media.iam.gserviceaccount.com", "token_uri": tokenURI,
	}, "", "  ")
	if err != nil {
		panic(err)
	}
	return string(b)
}

var granted = providertest.Reply{Body: `{"access_token":"` + token + `","expires_in":3599,"token_type":"Bearer"}`}

func encoded(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// operation returns an answer about the suite's operation. rest follows its name.
func operation(rest string) providertest.Reply {
	return providertest.Reply{Body: `{"name":"` + name + `"` + rest + `}`}
}

func made(videos ...string) string {
	list := ""
	for i, v := range videos {
		if i > 0 {
			list += ","
		}
		list += `{"bytesBase64Encoded":"` + encoded(v) + `","mimeType":"video/mp4"}`
	}
	return `,"done":true,"response":{"@type":"type.googleapis.com/cloud.ai.large_models.vision.GenerateVideoResponse","raiMediaFilteredCount":0,"videos":[` + list + `]}`
}

func word(w string) providertest.Reply {
	switch w {
	case "true":
		return operation(made(video))
	case "false":
		return operation(`,"done":false`)
	case "absent":
		return operation("")
	case "error":
		return failed("oops")
	default:
		return operation(`,"done":` + quote(w))
	}
}

func failed(text string) providertest.Reply {
	return operation(`,"done":true,"error":{"code":13,"message":` + quote(text) + `}`)
}

func refusal(status int, code, text string) providertest.Reply {
	return providertest.Reply{Status: status, Body: fmt.Sprintf(`{"error":{"code":%d,"message":%s,"status":%s}}`, status, quote(text), quote(code))}
}

func suite() providertest.Suite {
	unauthenticated := providertest.Row{Reply: refusal(401, "UNAUTHENTICATED", "who are you"), Kind: mediagate.KindCredentials, Code: mediagate.CodeProviderRefused, Calls: 2}
	ref := mediagate.JobRef{JobID: jobID, ExternalID: externalID, Operation: "video", State: "1 " + owner}
	return providertest.Suite{
		Channel: mediagate.Channel{Name: "vertex-a", Provider: "vertex", Credentials: mediagate.Secrets(map[string]string{
			"service_account": account(providertest.Address + "/token"), "project": "acme-media", "location": "us-central1",
		})},
		Job: mediagate.Job{
			TaskID: externalID, ExternalID: externalID, Upstream: "veo-3.1-generate-001", Operation: "video",
			Params: []byte(`{"prompt":"a red kite","duration":8,"resolution":"720p","sample_count":1,"generate_audio":false,"first_frame_image":"https://img.example.com/a.png"}`),
		},
		Files:   map[string]string{"https://img.example.com/a.png": providertest.Picture(3, 2), "https://img.example.com/b.png": providertest.Picture(4, 2), "https://img.example.com/c.txt": "none"},
		Secrets: []string{token},
		Others: []mediagate.Job{{
			TaskID: externalID, ExternalID: externalID, Upstream: "veo-9", Operation: "base_video",
			Params: []byte(`{"prompt":"a red kite","image_urls":["https://img.example.com/a.png"],"seed":7}`),
		}},
		Inexpressible: []mediagate.Job{
			{Operation: "base_video", Upstream: "veo-9", Params: []byte(`{"prompt":"a","image_urls":["https://a.example.com","https://b.example.com","https://c.example.com"]}`)},
			{Operation: "video", Upstream: "veo", Params: []byte(`{"prompt":"a","duration":5}`)},
			{Operation: "video", Upstream: "veo", Params: []byte(`{"prompt":"a","enhance_prompt":false}`)},
			{Operation: "video", Upstream: "veo", Params: []byte(`{"prompt":"a","resize_mode":"stretch"}`)},
			{Operation: "video", Upstream: "veo", Params: []byte(`{"prompt":"a","person_generation":"allow_all"}`)},
			{Operation: "video", Upstream: "veo", Params: []byte(`{"prompt":"a","last_frame_image":"https://img.example.com/a.png"}`)},
		},
		BeforeSubmit: []providertest.Exchange{{Route: "POST /token", Reply: granted}},
		Accepted:     operation(""),
		Submission:   mediagate.Submission{Ref: ref},
		Refused:      func(text string) providertest.Reply { return refusal(400, "INVALID_ARGUMENT", text) },
		// The suite of gemini has the other rows of the error table, which is that of package googleapi.
		SubmitRows: map[string]providertest.Row{
			"content":             {Reply: refusal(400, "INVALID_ARGUMENT", "The prompt contains sensitive words that violate Google's Responsible AI practices."), Kind: mediagate.KindModerated, Code: mediagate.CodeContentPolicy},
			"UNAUTHENTICATED":     unauthenticated,
			"NOT_FOUND":           {Reply: refusal(404, "NOT_FOUND", "Publisher Model `projects/p/locations/l/publishers/google/models/veo-3.1-generate-001` was not found."), Kind: mediagate.KindNoModel, Code: mediagate.CodeModelRetired},
			"INTERNAL":            {Reply: refusal(500, "INTERNAL", "oops"), Kind: mediagate.KindAmbiguous, Code: mediagate.CodeSubmissionUnknown},
			"no name":             row(mediagate.KindAmbiguous, providertest.Reply{Body: `{"done":false}`}),
			"a name of no job":    row(mediagate.KindAmbiguous, providertest.Reply{Body: `{"name":"` + owner + `"}`}),
			"a name that leads":   row(mediagate.KindAmbiguous, providertest.Reply{Body: `{"name":"a/../../b/operations/c"}`}),
			"a name with a query": row(mediagate.KindAmbiguous, providertest.Reply{Body: `{"name":"a?b/operations/c"}`}),
		},
		Ref:    ref,
		Word:   word,
		Words:  map[string]mediagate.JobState{"true": mediagate.JobSucceeded, "false": mediagate.JobRunning, "absent": mediagate.JobRunning, "error": mediagate.JobFailed},
		Failed: failed,
		PollRows: map[string]providertest.Row{
			"NOT_FOUND":       row(mediagate.KindNotFound, refusal(404, "NOT_FOUND", "no such operation")),
			"UNAUTHENTICATED": unauthenticated,
			"INTERNAL":        row(mediagate.KindTransient, refusal(500, "INTERNAL", "oops")),
			"HTML 404":        row(mediagate.KindTransient, providertest.Reply{Status: 404, Body: "<html>"}),
		},
		ProtocolErrors: map[string]providertest.Reply{
			"another job's": {Body: `{"name":"` + owner + `/operations/b2","done":false}`},
			"no name":       {Body: `{"done":true,"response":{"videos":[{"bytesBase64Encoded":"AAAA"}]}}`},
		},
		Partial: map[string]providertest.Partial{
			"one of two without its bytes": {
				Reply: operation(`,"done":true,"response":{"videos":[{"mimeType":"video/mp4"},{"bytesBase64Encoded":"AAAA"}]}`),
				Media: []mediagate.Media{{Ref: "0", Index: 1, MimeType: "video/mp4"}},
			},
		},
		WithoutMedia: map[string]providertest.Reply{
			"done without":    operation(`,"done":true`),
			"done with null":  operation(`,"done":true,"response":null`),
			"a video of none": operation(`,"done":true,"response":{"videos":[{"mimeType":"video/mp4"}]}`),
			"an empty video":  operation(`,"done":true,"response":{"videos":[{"bytesBase64Encoded":""}]}`),
		},
		Media: mediagate.Media{Ref: "1", Index: 1},
		File:  operation(made("another", video)),
		OpenRows: map[string]providertest.Row{
			"none of that number": row(mediagate.KindGone, operation(made("one"))),
			"not done any more":   row(mediagate.KindTransient, operation(`,"done":false`)),
			"no base64":           row(mediagate.KindTransient, operation(`,"response":{"videos":[{"bytesBase64Encoded":"AAAA"},{"bytesBase64Encoded":"!!!!"}]}`)),
			"ends in the video":   row(mediagate.KindTransient, providertest.Reply{Body: operation(made("one", video)).Body[:400]}),
			"UNAUTHENTICATED":     {Reply: refusal(401, "UNAUTHENTICATED", "who are you"), Kind: mediagate.KindTransient, Calls: 2},
		},
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	providertest.Run(t, suite())
}

func TestGolden(t *testing.T) {
	t.Parallel()
	s := suite()
	s.Golden(t, "testdata/*.txtar", *update)
}

func FuzzDecode(f *testing.F) { providertest.Fuzz(f, suite()) }
