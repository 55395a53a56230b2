package veo_test

import (
	"flag"
	"fmt"
	"testing"
	"time"

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
	owner      = "models/veo-3.1-generate-preview"
	jobID      = "idxd8u3x0b1c"
	name       = owner + "/operations/" + jobID
	public     = "https://generativelanguage.googleapis.com"
	filePath   = "/v1beta/files/abc123:download?alt=media"
)

func operation(rest string) providertest.Reply {
	return providertest.Reply{Body: `{"name":"` + name + `"` + rest + `}`}
}

func made(uris ...string) string {
	list := ""
	for i, u := range uris {
		if i > 0 {
			list += ","
		}
		list += `{"video":{"uri":` + quote(u) + `}}`
	}
	return `,"done":true,"response":{"@type":"type.googleapis.com/google.ai.generativelanguage.v1beta.PredictLongRunningResponse","generateVideoResponse":{"generatedSamples":[` + list + `]}}`
}

func word(w string) providertest.Reply {
	switch w {
	case "true":
		return operation(made(public + filePath))
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

const noKey = `{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}`

func job(params string) mediagate.Job {
	return mediagate.Job{
		TaskID: externalID, ExternalID: externalID, Upstream: "veo-3.1-generate-preview", Operation: "video", Params: []byte(params),
	}
}

func suite() providertest.Suite {
	ref := mediagate.JobRef{JobID: jobID, ExternalID: externalID, Operation: "video", State: owner}
	s := providertest.Suite{
		Channel: mediagate.Channel{Name: "veo-a", Provider: "veo", Credentials: mediagate.Secrets(map[string]string{"api_key": "AIzaSyB4bX9mQ2vT7pW8nR3"})},
		Job:     job(`{"prompt":"a red kite","generate_audio":true,"first_frame_image":"https://img.example.com/a.png"}`),
		Files:   map[string]string{"https://img.example.com/a.png": providertest.Picture(3, 2), "https://img.example.com/b.png": providertest.Picture(4, 2)},
		Others: []mediagate.Job{{
			TaskID: externalID, ExternalID: externalID, Upstream: "veo-9", Operation: "base_video",
			Params: []byte(`{"prompt":"a red kite","image_urls":["https://img.example.com/a.png"]}`),
		}},
		Inexpressible: []mediagate.Job{
			{Operation: "base_video", Upstream: "veo-9", Params: []byte(`{"prompt":"a","image_urls":["https://a.example.com","https://b.example.com","https://c.example.com"]}`)},
			job(`{"prompt":"a","generate_audio":true,"seed":0}`),
			job(`{"prompt":"a","generate_audio":true,"resize_mode":"crop"}`), job(`{"prompt":"a","generate_audio":true,"enhance_prompt":false}`),
			job(`{"prompt":"a","generate_audio":true,"duration":5}`),
		},
		Accepted:   operation(""),
		Submission: mediagate.Submission{Ref: ref},
		Refused:    func(text string) providertest.Reply { return refusal(400, "INVALID_ARGUMENT", text) },
		// The suite of gemini has the other rows of the error table, which is that of package googleapi.
		SubmitRows: map[string]providertest.Row{
			"content":   {Reply: refusal(400, "INVALID_ARGUMENT", "The input violates our usage guidelines. Support codes: 1"), Kind: mediagate.KindModerated, Code: mediagate.CodeContentPolicy},
			"NOT_FOUND": {Reply: refusal(404, "NOT_FOUND", "models/veo-3.1-generate-preview is not found for API version v1beta, or is not supported for predictLongRunning."), Kind: mediagate.KindNoModel, Code: mediagate.CodeModelRetired},
			"INTERNAL":  {Reply: refusal(500, "INTERNAL", "oops"), Kind: mediagate.KindAmbiguous, Code: mediagate.CodeSubmissionUnknown},
			"no name":   row(mediagate.KindAmbiguous, providertest.Reply{Body: `{"done":false}`}),
		},
		Ref:    ref,
		Word:   word,
		Words:  map[string]mediagate.JobState{"true": mediagate.JobSucceeded, "false": mediagate.JobRunning, "absent": mediagate.JobRunning, "error": mediagate.JobFailed},
		Failed: failed,
		PollRows: map[string]providertest.Row{
			"NOT_FOUND":           row(mediagate.KindNotFound, refusal(404, "NOT_FOUND", "no such operation")),
			"no key":              row(mediagate.KindCredentials, providertest.Reply{Status: 400, Body: noKey}),
			"PERMISSION_DENIED":   row(mediagate.KindCredentials, refusal(403, "PERMISSION_DENIED", "no")),
			"RESOURCE_EXHAUSTED":  {Reply: refusal(429, "RESOURCE_EXHAUSTED", "slow down"), Kind: mediagate.KindThrottled, RetryAfter: time.Second},
			"FAILED_PRECONDITION": row(mediagate.KindFunds, refusal(400, "FAILED_PRECONDITION", "not in this region")),
			"INVALID_ARGUMENT":    row(mediagate.KindTransient, refusal(400, "INVALID_ARGUMENT", "what")),
			"INTERNAL":            row(mediagate.KindTransient, refusal(500, "INTERNAL", "oops")),
		},
		ProtocolErrors: map[string]providertest.Reply{
			"another job's": {Body: `{"name":"` + owner + `/operations/b2","done":false}`},
			"no name":       {Body: `{"done":true}`},
		},
		Partial: map[string]providertest.Partial{
			"one of two without a link": {
				Reply: operation(made("", public+filePath)),
				Media: []mediagate.Media{{Ref: filePath, Index: 1, MimeType: "video/mp4"}},
			},
		},
		WithoutMedia: map[string]providertest.Reply{
			"done without":   operation(`,"done":true`),
			"no link":        operation(made("")),
			"a link of none": operation(made("gs://bucket/a.mp4")),
		},
		Media: mediagate.Media{Ref: filePath},
		File:  providertest.Reply{Body: "a video", Header: map[string]string{"Content-Type": "video/mp4"}},
		OpenRows: map[string]providertest.Row{
			"deleted":           row(mediagate.KindGone, refusal(403, "PERMISSION_DENIED", "You do not have permission to access the File abc123 or it may not exist.")),
			"PERMISSION_DENIED": row(mediagate.KindTransient, refusal(403, "PERMISSION_DENIED", "no")),
			"no key":            row(mediagate.KindTransient, providertest.Reply{Status: 400, Body: noKey}),
			"leads to others":   row(mediagate.KindInvalid, providertest.Reply{Status: 302, Header: map[string]string{"Location": "https://storage.example.com/a.mp4"}}),
			"leads inside":      row(mediagate.KindInvalid, providertest.Reply{Status: 302, Header: map[string]string{"Location": "http://169.254.169.254/latest"}}),
			"leads nowhere":     row(mediagate.KindTransient, providertest.Reply{Status: 302}),
			"leads round":       {Reply: providertest.Reply{Status: 307, Header: map[string]string{"Location": "/v1beta/files/again"}}, Kind: mediagate.KindInvalid, Calls: 6},
		},
	}
	return s
}

func TestConformance(t *testing.T) {
	t.Parallel()
	providertest.Run(t, suite())
}

func TestGolden(t *testing.T) {
	t.Parallel()
	suite().Golden(t, "testdata/*.txtar", *update)
}

func FuzzDecode(f *testing.F) { providertest.Fuzz(f, suite()) }
