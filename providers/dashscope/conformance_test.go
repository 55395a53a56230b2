package dashscope_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/providertest"
)

var update = flag.Bool("update", false, "rewrite golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// row is a short name for the tables below.
var row = providertest.RowOf

const externalID = "task_01JZZZZZZZZZZZZZZZZZZZZZZZ"

func refusal(status int, code, text string) providertest.Reply {
	b, err := json.Marshal(map[string]string{"code": code, "message": text, "request_id": "req-1"})
	if err != nil {
		panic(err)
	}
	return providertest.Reply{Status: status, Body: string(b)}
}

func channel() mediagate.Channel {
	return mediagate.Channel{
		Name: "dashscope-a", Provider: "dashscope", Credentials: mediagate.Secrets(map[string]string{"api_key": "sk-4bX9mQ2vT7pW8nR3"}),
	}
}

func content(items string) providertest.Reply {
	return providertest.Reply{Body: fmt.Sprintf(
		`{"output":{"choices":[{"finish_reason":"stop","message":{"role":"assistant","content":%s}}]},"usage":{"width":1024},"request_id":"req-1"}`, items)}
}

// submitRows returns the rows that mean the same for all submissions.
func submitRows() map[string]providertest.Row {
	rows := map[string]providertest.Row{
		"InvalidApiKey":         {Reply: refusal(401, "InvalidApiKey", "Invalid API-key provided."), Kind: mediagate.KindCredentials, Code: mediagate.CodeProviderRefused},
		"invalid_api_key":       row(mediagate.KindCredentials, refusal(401, "invalid_api_key", "Incorrect API key provided.")),
		"AccessDenied":          row(mediagate.KindCredentials, refusal(403, "AccessDenied", "Access denied.")),
		"Model.AccessDenied":    row(mediagate.KindForbidden, refusal(403, "Model.AccessDenied", "Model access denied.")),
		"ModelNotFound":         row(mediagate.KindNoModel, refusal(404, "ModelNotFound", "Model can not be found.")),
		"model_not_found":       {Reply: refusal(404, "model_not_found", "No such model."), Kind: mediagate.KindNoModel, Code: mediagate.CodeModelRetired},
		"Arrearage":             row(mediagate.KindFunds, refusal(400, "Arrearage", "Access denied, overdue payment.")),
		"insufficient_quota":    row(mediagate.KindFunds, refusal(429, "insufficient_quota", "You exceeded your quota.")),
		"InvalidParameter":      {Reply: refusal(400, "InvalidParameter", "size is invalid"), Kind: mediagate.KindInvalid, Code: mediagate.CodeInvalidParameters},
		"InvalidParameter.Size": row(mediagate.KindInvalid, refusal(400, "InvalidParameter.Size", "size is invalid")),
		"InvalidURL":            {Reply: refusal(400, "InvalidURL", "The media cannot be fetched"), Kind: mediagate.KindInvalid, Code: mediagate.CodeImageProcessing},
		"DataInspectionFailed":  {Reply: refusal(400, "DataInspectionFailed", "Inappropriate content."), Kind: mediagate.KindModerated, Code: mediagate.CodeContentPolicy},
		"IPInfringementSuspect": row(mediagate.KindModerated, refusal(400, "IPInfringementSuspect", "Suspected infringement.")),
		"ModelUnavailable": {
			Reply: refusal(400, "ModelUnavailable", "Busy."), Kind: mediagate.KindCapacity, RetryAfter: time.Second,
		},
		"InternalError":         {Reply: refusal(500, "InternalError", "Oops."), Kind: mediagate.KindAmbiguous, Code: mediagate.CodeSubmissionUnknown},
		"InternalError.Timeout": row(mediagate.KindAmbiguous, refusal(500, "InternalError.Timeout", "Oops.")),
		"InternalError.Algo":    row(mediagate.KindAmbiguous, refusal(500, "InternalError.Algo", "Oops.")),
		"RequestTimeOut":        row(mediagate.KindAmbiguous, refusal(408, "RequestTimeOut", "Too long.")),
		"refused with HTTP 200": row(mediagate.KindModerated, refusal(200, "DataInspectionFailed", "Inappropriate content.")),
		"refused below output":  row(mediagate.KindModerated, providertest.Reply{Body: `{"output":{"code":"DataInspectionFailed","message":"no"},"request_id":"req-1"}`}),
		"new code with 400":     row(mediagate.KindInvalid, refusal(400, "Novelty", "New rule")),
		"new code with 200":     row(mediagate.KindAmbiguous, refusal(200, "Novelty", "New rule")),
	}
	for _, code := range []string{"Throttling", "Throttling.RateQuota", "Throttling.AllocationQuota"} {
		rows[code] = providertest.Row{Reply: refusal(429, code, "Slow down."), Kind: mediagate.KindThrottled, RetryAfter: time.Second}
	}
	return rows
}

func imageRows() map[string]providertest.Row {
	rows := submitRows()
	maps.Copy(rows, map[string]providertest.Row{
		"image with an HTTP status apart": row(mediagate.KindAmbiguous, providertest.Reply{Status: 202, Body: content(`[{"image":"https://a.example.com/a.png"}]`).Body}),
		"an asynchronous job":             row(mediagate.KindAmbiguous, providertest.Reply{Body: `{"output":{"task_id":"1","task_status":"PENDING"},"request_id":"req-1"}`}),
	})
	return rows
}

func suite() providertest.Suite {
	return providertest.Suite{
		Channel: channel(),
		Prefix:  "/api/v1",
		Job: mediagate.Job{
			TaskID: externalID, ExternalID: externalID, Upstream: "z-image-turbo", Operation: "image",
			Params: []byte(`{"prompt":"a red kite","size":"1:1","resolution":"1K","prompt_extend":false}`),
		},
		Inexpressible: []mediagate.Job{
			{Upstream: "qwen-image", Operation: "base_image", Params: []byte(`{"prompt":"a","size":"21:9"}`)},
			{Upstream: "qwen-image", Operation: "base_image", Params: []byte(`{"prompt":"a","size":"1:1","aspect_ratio":"4:3"}`)},
			{Upstream: "qwen-image", Operation: "base_image", Params: []byte(`{"prompt":"a","size":"1024x1024","resolution":"2K"}`)},
			{Upstream: "z-image-turbo", Operation: "image", Params: []byte(`{"prompt":"a","size":"21:9","resolution":"1K"}`)},
			{Upstream: "z-image-turbo", Operation: "image", Params: []byte(`{"prompt":"a","size":"1:1","resolution":"4K"}`)},
			{Upstream: "z-image-turbo", Operation: "image", Params: []byte(`{"prompt":"a","size":"1:1"}`)},
			{Upstream: "z-image-turbo", Operation: "image", Params: []byte(`{"prompt":"a","resolution":"1K"}`)},
		},
		Accepted: content(`[{"text":"a red kite"},{"image":"https://result.example.com/a.png?Expires=1"}]`),
		Submission: mediagate.Submission{
			Ref: mediagate.JobRef{JobID: "req-1", ExternalID: externalID, Operation: "image"},
			Outcome: &mediagate.Outcome{
				Succeeded: true,
				Media:     []mediagate.Media{{URL: "https://result.example.com/a.png?Expires=1", MimeType: "image/png"}},
			},
		},
		Refused:    func(text string) providertest.Reply { return refusal(400, "InvalidParameter", text) },
		SubmitRows: imageRows(),
	}
}

func baseImageJob() mediagate.Job {
	return mediagate.Job{
		TaskID: externalID, ExternalID: externalID, Upstream: "qwen-image", Operation: "base_image",
		Params: []byte(`{"prompt":"a red kite"}`),
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	image, video := suite(), videoSuite()
	video.Others = append(otherJobs(), image.Job, baseImageJob())
	image.Others = append(otherJobs(), video.Job, baseImageJob())
	for name, s := range map[string]providertest.Suite{"image": image, "video": video} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			providertest.Run(t, s)
		})
	}
}

func TestGolden(t *testing.T) {
	t.Parallel()
	suite().Golden(t, "testdata/*.txtar", *update)
}

// TestPollFindsNothing checks that Poll finds no image job, because the vendor keeps none.
func TestPollFindsNothing(t *testing.T) {
	t.Parallel()
	vendor := providertest.NewVendor(t)
	_, err := suite().Open(t, vendor.URL, providers.Options{}).Poll(t.Context(), mediagate.JobRef{JobID: "req-1"})
	if !mediagate.Is(err, mediagate.KindNotFound) {
		t.Errorf("Poll: %v, want not found", err)
	}
	if n := len(vendor.Requests()); n != 0 {
		t.Errorf("%d requests, want none", n)
	}
}

func FuzzDecodeImage(f *testing.F) { providertest.Fuzz(f, suite()) }

func FuzzDecodeVideo(f *testing.F) { providertest.Fuzz(f, videoSuite()) }
