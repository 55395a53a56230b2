package vidu_test

import (
	"flag"
	"fmt"
	"maps"
	"strings"
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
	plain = providertest.Plain
	row   = providertest.RowOf
	coded = providertest.RowWithCode
)

const (
	jobID      = "944051234567890123"
	externalID = "task_01JZZZZZZZZZZZZZZZZZZZZZZZ"
)

// refusal returns an error in the form that the sandbox uses, too.
func refusal(status int, name, text string) providertest.Reply {
	return providertest.Reply{Status: status, Body: fmt.Sprintf(
		`{"code":%d,"reason":%s,"message":%s,"metadata":{}}`, status, quote(name), quote(text))}
}

func retried(kind mediagate.Kind, reply providertest.Reply) providertest.Row {
	return providertest.Row{Reply: reply, Kind: kind, RetryAfter: time.Second}
}

// everyCall returns the rows and those that all calls share.
func everyCall(rows map[string]providertest.Row) map[string]providertest.Row {
	all := map[string]providertest.Row{
		"Unauthorized":       coded(mediagate.KindCredentials, mediagate.CodeProviderRefused, refusal(401, "Unauthorized", "bad token")),
		"Forbidden":          row(mediagate.KindCredentials, refusal(403, "Forbidden", "not yours")),
		"CreditInsufficient": row(mediagate.KindFunds, refusal(400, "CreditInsufficient", "no credits")),
		"TooManyRequests":    retried(mediagate.KindThrottled, refusal(429, "TooManyRequests", "slow down")),
		"SystemThrottling":   retried(mediagate.KindThrottled, refusal(429, "SystemThrottling", "slow down")),
		"a refusal with 200": row(mediagate.KindFunds, refusal(200, "CreditInsufficient", "no credits")),
		// The forms of an error.
		"name as err_code":    row(mediagate.KindFunds, plain(400, `{"err_code":"CreditInsufficient"}`)),
		"name as code":        row(mediagate.KindFunds, plain(400, `{"code":"CreditInsufficient","message":"no"}`)),
		"name as message":     row(mediagate.KindFunds, plain(400, `{"code":400,"message":"CreditInsufficient"}`)),
		"name in snake case":  row(mediagate.KindFunds, plain(400, `{"code":400,"reason":"credit_insufficient"}`)),
		"name in capitals":    row(mediagate.KindFunds, plain(400, `{"code":400,"reason":"CREDIT_INSUFFICIENT"}`)),
		"a strange field":     row(mediagate.KindFunds, plain(400, `{"code":{"a":1},"reason":"CreditInsufficient","message":[]}`)),
		"a text that says no": row(mediagate.KindFunds, plain(400, `{"reason":"CreditInsufficient","message":"TooManyRequests"}`)),
	}
	maps.Copy(all, rows)
	return all
}

func submitRows() map[string]providertest.Row {
	rows := map[string]providertest.Row{
		"QuotaExceeded":            retried(mediagate.KindCapacity, refusal(429, "QuotaExceeded", "too many jobs")),
		"OperationInProcess":       retried(mediagate.KindCapacity, refusal(400, "OperationInProcess", "later")),
		"ModelUnavailable":         row(mediagate.KindCapacity, refusal(400, "ModelUnavailable", "not now")),
		"NotFound":                 row(mediagate.KindNotFound, refusal(404, "NotFound", "no")),
		"TaskNotFound":             row(mediagate.KindNotFound, refusal(404, "TaskNotFound", "no")),
		"CreationNotFound":         row(mediagate.KindNotFound, refusal(404, "CreationNotFound", "no")),
		"Conflict":                 coded(mediagate.KindAmbiguous, mediagate.CodeSubmissionUnknown, refusal(409, "Conflict", "no")),
		"Canceled":                 row(mediagate.KindAmbiguous, refusal(499, "Canceled", "client closed request")),
		"InternalServiceFailure":   row(mediagate.KindAmbiguous, refusal(500, "InternalServiceFailure", "no")),
		"new name with 400":        row(mediagate.KindInvalid, refusal(400, "NovelError", "new")),
		"new name with 200":        row(mediagate.KindAmbiguous, refusal(200, "NovelError", "new")),
		"no name with 400":         row(mediagate.KindInvalid, plain(400, `{"message":"bad"}`)),
		"no id":                    row(mediagate.KindAmbiguous, plain(200, `{"state":"created"}`)),
		"empty id":                 row(mediagate.KindAmbiguous, plain(200, `{"task_id":"","state":"created"}`)),
		"id with a line break":     row(mediagate.KindAmbiguous, plain(200, `{"task_id":"a\nb","state":"created"}`)),
		"id that is an object":     row(mediagate.KindAmbiguous, plain(200, `{"task_id":{},"state":"created"}`)),
		"id with 400":              row(mediagate.KindInvalid, plain(400, `{"task_id":"1","state":"created"}`)),
		"a refusal beside no id":   row(mediagate.KindModerated, plain(200, `{"state":"failed","err_code":"AuditSubmitIllegal"}`)),
		"throttled without a wait": retried(mediagate.KindThrottled, plain(429, `{"reason":"SystemThrottling"}`)),
	}
	for _, name := range []string{"BadRequest", "FieldLacking", "FieldUnwanted", "FieldInvalid", "FieldItemCountOutOfRange", "UserCancelled"} {
		rows[name] = coded(mediagate.KindInvalid, mediagate.CodeInvalidParameters, refusal(400, name, "no"))
	}
	for _, name := range []string{"PageSizeOutOfRange", "ImageDownloadFailure", "ImageFormatInvalid"} {
		rows[name] = coded(mediagate.KindInvalid, mediagate.CodeImageProcessing, refusal(400, name, "no"))
	}
	for _, name := range []string{"AuditSubmitIllegal", "TaskPromptPolicyViolation", "CreationPolicyViolation"} {
		rows[name] = coded(mediagate.KindModerated, mediagate.CodeContentPolicy, refusal(400, name, "no"))
	}
	return everyCall(rows)
}

// job returns the answer about Ref's job.
func job(state, rest string) providertest.Reply {
	return plain(200, fmt.Sprintf(`{"id":%q,"state":%s,"credits":25,"payload":%q,"bgm":false,"off_peak":false%s}`, jobID, quote(state), externalID, rest))
}

const files = `,"err_code":"","creations":[{"id":"1","url":"https://cdn.example.com/v.mp4?sig=abc",` +
	`"cover_url":"https://cdn.example.com/v.jpg?sig=abc","watermarked_url":"https://cdn.example.com/w.mp4?sig=abc"}]`

func suite() providertest.Suite {
	ref := mediagate.JobRef{JobID: jobID, ExternalID: externalID, Operation: "reference"}
	first := mediagate.Job{
		TaskID: externalID, ExternalID: externalID, Upstream: "viduq3", Operation: "reference",
		Params: []byte(`{"prompt":"a red kite","image_urls":["https://media.example.com/kite.png"],"duration":5,"resolution":"720p","aspect_ratio":"16:9","audio":true}`),
	}
	with := func(params string) mediagate.Job {
		j := first
		j.Params = []byte(params)
		return j
	}
	base := func(params string) mediagate.Job {
		j := with(params)
		j.Upstream, j.Operation = "viduq9", "base_video"
		return j
	}
	images := strings.Repeat(`"https://media.example.com/kite.png",`, 7) + `"https://media.example.com/kite.png"`
	return providertest.Suite{
		Channel: mediagate.Channel{
			Name: "vidu-a", Provider: "vidu", Credentials: mediagate.Secrets(map[string]string{"api_key": "vda_4bX9mQ2vT7pW8nR3kL5"}),
		},
		Prefix: "/ent/v2",
		Job:    first,
		Others: []mediagate.Job{base(`{"prompt":"a red kite","resolution":"720p"}`)},
		Inexpressible: []mediagate.Job{
			base(`{"prompt":"a kite","image_urls":[` + images + `]}`),
			base(`{"prompt":"` + strings.Repeat("a", 5001) + `"}`),
			with(`{"prompt":"a kite"}`),
			with(`{"prompt":"a kite","image_urls":[]}`),
			with(`{"prompt":"a kite","image_urls":[` + images + `]}`),
		},
		Accepted: plain(200, fmt.Sprintf(`{"task_id":%q,"state":"created","model":"viduq3","credits":100,"payload":%q}`, jobID, externalID)),
		Submission: mediagate.Submission{
			Ref: ref,
		},
		Refused:    func(text string) providertest.Reply { return refusal(400, "FieldInvalid", text) },
		SubmitRows: submitRows(),
		Ref:        ref,
		Word:       func(word string) providertest.Reply { return job(word, files) },
		Words: map[string]mediagate.JobState{
			"created": mediagate.JobQueued, "queueing": mediagate.JobQueued, "processing": mediagate.JobRunning,
			"success": mediagate.JobSucceeded, "failed": mediagate.JobFailed,
		},
		Failed: func(text string) providertest.Reply {
			return job("failed", `,"err_code":"InternalServiceFailure","message":`+quote(text)+`,"creations":[]`)
		},
		PollRows: everyCall(map[string]providertest.Row{
			"TaskNotFound":           row(mediagate.KindNotFound, refusal(404, "TaskNotFound", "no such task")),
			"CreationNotFound":       row(mediagate.KindNotFound, refusal(404, "CreationNotFound", "no such creation")),
			"NotFound":               row(mediagate.KindNotFound, refusal(404, "NotFound", "no")),
			"404 that is no error":   row(mediagate.KindTransient, plain(404, `{"message":"no route"}`)),
			"ModelUnavailable":       row(mediagate.KindTransient, refusal(400, "ModelUnavailable", "no")),
			"FieldInvalid":           row(mediagate.KindTransient, refusal(400, "FieldInvalid", "id")),
			"AuditSubmitIllegal":     row(mediagate.KindTransient, refusal(400, "AuditSubmitIllegal", "no")),
			"Conflict":               row(mediagate.KindTransient, refusal(409, "Conflict", "no")),
			"Canceled":               row(mediagate.KindTransient, refusal(499, "Canceled", "no")),
			"QuotaExceeded":          retried(mediagate.KindThrottled, refusal(429, "QuotaExceeded", "no")),
			"OperationInProcess":     retried(mediagate.KindThrottled, refusal(400, "OperationInProcess", "no")),
			"InternalServiceFailure": row(mediagate.KindTransient, refusal(500, "InternalServiceFailure", "no")),
			"new name":               row(mediagate.KindTransient, refusal(400, "NovelError", "new")),
		}),
		ProtocolErrors: map[string]providertest.Reply{
			"another job":        plain(200, `{"id":"1","state":"success","payload":"`+externalID+`"`+files+`}`),
			"another's payload":  plain(200, `{"state":"success","payload":"task_2"`+files+`}`),
			"neither id nor any": plain(200, `{"credits":1}`),
		},
		Partial: map[string]providertest.Partial{
			"one of two without a link": {
				Reply: job("success", `,"creations":[{"id":"1","url":""},{"id":"2","url":"https://cdn.example.com/2.mp4"}]`),
				Media: []mediagate.Media{{URL: "https://cdn.example.com/2.mp4", Index: 1, MimeType: "video/mp4"}},
			},
		},
		WithoutMedia: map[string]providertest.Reply{
			"no file":           job("success", `,"creations":[]`),
			"no list of files":  job("success", ""),
			"a file of no link": job("success", `,"creations":[{"id":"1","url":"soon"}]`),
		},
		Stop:    "POST /ent/v2/tasks/" + jobID + "/cancel\n" + `{"id":"` + jobID + `"}`,
		Stopped: plain(200, `{}`),
		CancelRows: everyCall(map[string]providertest.Row{
			"BadRequest":   row(mediagate.KindTransient, refusal(400, "BadRequest", "it has begun")),
			"TaskNotFound": row(mediagate.KindNotFound, refusal(404, "TaskNotFound", "no such task")),
		}),
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
