package fal_test

import (
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

// Short names for the tables.
var (
	quote = providertest.Quote
	plain = providertest.Plain
	row   = providertest.RowOf
	coded = providertest.RowWithCode
)

const (
	jobID      = "764cabcf-b745-4b3e-ae38-1200304cf45b"
	externalID = "task_01JZZZZZZZZZZZZZZZZZZZZZZZ"
)

// refusal returns an error of the queue.
func refusal(status int, name, text string) providertest.Reply {
	return plain(status, fmt.Sprintf(`{"detail":%s,"error_type":%s}`, quote(text), quote(name)))
}

// detail returns an error of a model.
func detail(status int, name, text string) providertest.Reply {
	return plain(status, fmt.Sprintf(`{"detail":[{"loc":["body","prompt"],"msg":%s,"type":%s}]}`, quote(text), quote(name)))
}

// everyCall returns the rows and those that all calls share.
func everyCall(rows map[string]providertest.Row) map[string]providertest.Row {
	all := map[string]providertest.Row{
		"401": coded(mediagate.KindCredentials, mediagate.CodeProviderRefused, plain(401, `{"detail":"invalid key credentials"}`)),
		"out of money": row(mediagate.KindFunds, plain(403,
			`{"detail":"User is locked. Reason: Exhausted balance. Top up your balance at fal.ai/dashboard/billing."}`)),
		"402":    row(mediagate.KindFunds, plain(402, `{"detail":"pay"}`)),
		"locked": row(mediagate.KindCredentials, plain(403, `{"detail":"User is locked. Reason: Admin lock."}`)),
		"429":    {Reply: refusal(429, "concurrent_requests_limit", "slow down"), Kind: mediagate.KindThrottled, RetryAfter: time.Second},
	}
	maps.Copy(all, rows)
	return all
}

// status returns the answer about Ref's job.
func status(word, rest string) providertest.Reply {
	return plain(200, fmt.Sprintf(`{"status":%s,"request_id":%q,"metrics":{"inference_time":4.2}%s}`, quote(word), jobID, rest))
}

const statusPath = "/fal-ai/ltx-2.3/requests/" + jobID

func suite() providertest.Suite {
	ref := mediagate.JobRef{JobID: jobID, ExternalID: externalID, Operation: "video", State: "fal-ai/ltx-2.3"}
	return providertest.Suite{
		Channel: mediagate.Channel{
			Name: "fal-a", Provider: "fal", Credentials: mediagate.Secrets(map[string]string{"api_key": "f3a9:4bX9mQ2vT7pW8nR3kL5"}),
		},
		Job: mediagate.Job{
			TaskID: externalID, ExternalID: externalID, Upstream: "fal-ai/ltx-2.3/text-to-video", Operation: "video",
			Params: []byte(`{"prompt":"a red kite","duration":6,"resolution":"1080p","aspect_ratio":"16:9","audio":true}`),
		},
		Others: []mediagate.Job{image(`{"prompt":"a red kite","size":"1:1"}`)},
		Inexpressible: []mediagate.Job{
			image(`{"prompt":"a red kite"}`),
			image(`{"prompt":"a red kite","size":"21:9"}`),
		},
		AfterPoll: []providertest.Exchange{{
			Route: "GET " + statusPath,
			Reply: plain(200, `{"video":{"url":"https://cdn.example.com/v.mp4?sig=abc","content_type":"video/mp4","duration":6.04}}`),
		}},
		Accepted:   plain(200, fmt.Sprintf(`{"status":"IN_QUEUE","request_id":%q,"queue_position":0}`, jobID)),
		Submission: mediagate.Submission{Ref: ref},
		Refused:    func(text string) providertest.Reply { return detail(422, "value_error", text) },
		SubmitRows: everyCall(map[string]providertest.Row{
			"422":                    coded(mediagate.KindInvalid, mediagate.CodeInvalidParameters, detail(422, "missing", "Field required")),
			"an image":               coded(mediagate.KindInvalid, mediagate.CodeImageProcessing, detail(422, "image_load_error", "no image")),
			"refused content":        coded(mediagate.KindModerated, mediagate.CodeContentPolicy, detail(422, "content_policy_violation", "no")),
			"403":                    row(mediagate.KindForbidden, refusal(403, "forbidden", "not this model")),
			"404":                    row(mediagate.KindNotFound, plain(404, `{"detail":"Application \"x\" not found"}`)),
			"400":                    row(mediagate.KindInvalid, refusal(400, "bad_request", "no")),
			"a service with 400":     row(mediagate.KindAmbiguous, detail(400, "downstream_service_error", "no")),
			"409":                    row(mediagate.KindAmbiguous, refusal(409, "conflict", "no")),
			"500":                    coded(mediagate.KindAmbiguous, mediagate.CodeSubmissionUnknown, refusal(500, "internal_error", "no")),
			"503":                    row(mediagate.KindAmbiguous, refusal(503, "runner_scheduling_failure", "no")),
			"no id":                  row(mediagate.KindAmbiguous, plain(200, `{"status":"IN_QUEUE"}`)),
			"an id beside an error":  row(mediagate.KindAmbiguous, plain(200, fmt.Sprintf(`{"request_id":%q,"error_type":"novel"}`, jobID))),
			"an id that is a folder": row(mediagate.KindAmbiguous, plain(200, `{"request_id":"../1"}`)),
		}),
		Ref:  ref,
		Word: func(word string) providertest.Reply { return status(word, "") },
		Words: map[string]mediagate.JobState{
			"IN_QUEUE": mediagate.JobQueued, "IN_PROGRESS": mediagate.JobRunning, "COMPLETED": mediagate.JobSucceeded,
		},
		Failed: func(text string) providertest.Reply {
			return status("COMPLETED", `,"error":`+quote(text)+`,"error_type":"runner_server_error"`)
		},
		PollRows: everyCall(map[string]providertest.Row{
			"no such job":     row(mediagate.KindNotFound, plain(404, `{"status":"NOT_FOUND"}`)),
			"no such app":     row(mediagate.KindTransient, plain(404, `{"detail":"Application \"x\" not found"}`)),
			"403":             row(mediagate.KindTransient, refusal(403, "forbidden", "no")),
			"422":             row(mediagate.KindTransient, detail(422, "value_error", "no")),
			"500":             row(mediagate.KindTransient, refusal(500, "internal_error", "no")),
			"refused content": row(mediagate.KindTransient, detail(422, "content_policy_violation", "no")),
		}),
		ProtocolErrors: map[string]providertest.Reply{
			"another job": plain(200, `{"status":"COMPLETED","request_id":"1"}`),
			"no status":   plain(200, fmt.Sprintf(`{"request_id":%q}`, jobID)),
		},
		Stop:    "PUT " + statusPath + "/cancel",
		Stopped: plain(202, `{"status":"CANCELLATION_REQUESTED"}`),
		CancelRows: everyCall(map[string]providertest.Row{
			"no such job":   row(mediagate.KindNotFound, plain(404, `{"status":"NOT_FOUND"}`)),
			"it has ended":  row(mediagate.KindTransient, plain(400, `{"status":"ALREADY_COMPLETED"}`)),
			"no such model": row(mediagate.KindTransient, plain(404, `{"detail":"Application \"x\" not found"}`)),
		}),
	}
}

func image(params string) mediagate.Job {
	return mediagate.Job{
		TaskID: externalID, ExternalID: externalID, Upstream: "fal-ai/flux/schnell", Operation: "image", Params: []byte(params),
	}
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

// The answer to the result call decides the outcome of a completed job. Its HTTP status is that of
// the model.
func TestResults(t *testing.T) {
	t.Parallel()
	const failed = mediagate.CodeGenerationFailed
	for name, tt := range map[string]struct {
		reply providertest.Reply
		code  mediagate.FailureCode // of the job; empty: the result call is repeated
		text  string                // the message that clients see
	}{
		"a refused request": {detail(422, "value_error", "must be 6, 8 or 10"), mediagate.CodeInvalidParameters, "must be 6, 8 or 10"},
		"refused content":   {detail(422, "content_policy_violation", "flagged"), mediagate.CodeContentPolicy, "flagged"},
		"an image":          {detail(422, "file_download_error", "no such file"), mediagate.CodeImageProcessing, "no such file"},
		"a model's fault":   {detail(500, "internal_server_error", "oh"), failed, "oh"},
		"a model too slow":  {detail(504, "generation_timeout", "slow"), failed, "slow"},
		"another service":   {detail(400, "downstream_service_error", "away"), failed, "away"},
		"no file":           {plain(200, `{"video":{"url":"soon"}}`), mediagate.CodeResultUnavailable, ""},
		"the queue's fault": {refusal(503, "runner_disconnected", "no"), "", ""},
		"a proxy":           {plain(502, "<html>Bad Gateway</html>"), "", ""},
		"slow down":         {plain(429, `{"detail":"slow down"}`), "", ""},
		"out of money":      {plain(403, `{"detail":"User is locked. Reason: Exhausted balance."}`), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := suite()
			s.AfterPoll[0].Reply = tt.reply
			report, err := s.Open(t, s.Vendor(t, s.Word("COMPLETED")).URL, providers.Options{}).Poll(t.Context(), s.Ref)
			switch {
			case tt.code == "":
				if err == nil {
					t.Errorf("%+v", report)
				}
			case err != nil || report.Outcome.Failure == nil || (report.State == mediagate.JobFailed) == report.Incomplete:
				t.Errorf("%+v, %v", report, err)
			case report.Outcome.Failure.Code != tt.code || tt.text != "" && report.Outcome.Failure.Message != tt.text:
				t.Errorf("failure %+v, want %s: %s", report.Outcome.Failure, tt.code, tt.text)
			}
		})
	}
}
