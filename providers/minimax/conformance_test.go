package minimax_test

import (
	"flag"
	"fmt"
	"maps"
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
	jobID      = "176843862716480"
	externalID = "task_01JZZZZZZZZZZZZZZZZZZZZZZZ"
)

func channel() mediagate.Channel {
	return mediagate.Channel{
		Name: "minimax-a", Provider: "minimax", Credentials: mediagate.Secrets(map[string]string{"api_key": "eJ4bX9mQ2vT7pW8nR3"}),
	}
}

// base returns an answer of the first generation: HTTP 200 for every code.
func base(code int, text, rest string) providertest.Reply {
	return providertest.Reply{Body: fmt.Sprintf(`{%s"base_resp":{"status_code":%d,"status_msg":%s}}`, rest, code, quote(text))}
}

// refusal returns an error of the second generation.
func refusal(status int, kind, text string) providertest.Reply {
	return providertest.Reply{Status: status, Body: fmt.Sprintf(
		`{"type":"error","error":{"type":%s,"message":%s,"http_code":"%d"},"request_id":"req-1"}`, quote(kind), quote(text), status)}
}

func retried(kind mediagate.Kind, reply providertest.Reply) providertest.Row {
	return providertest.Row{Reply: reply, Kind: kind, RetryAfter: time.Second}
}

// firstRows returns the rows and those that all calls of the first generation share.
func firstRows(rows map[string]providertest.Row) map[string]providertest.Row {
	all := map[string]providertest.Row{
		"1002": retried(mediagate.KindThrottled, base(1002, "rate limit", "")),
		"1004": {Reply: base(1004, "login fail", ""), Kind: mediagate.KindCredentials, Code: mediagate.CodeProviderRefused},
		"1008": row(mediagate.KindFunds, base(1008, "insufficient balance", "")),
		"1039": retried(mediagate.KindThrottled, base(1039, "token limit", "")),
		"2038": row(mediagate.KindCredentials, base(2038, "verify the account", "")),
		"2049": row(mediagate.KindCredentials, base(2049, "invalid api key", "")),
		"2056": row(mediagate.KindFunds, base(2056, "plan resource limit", "")),
	}
	maps.Copy(all, rows)
	return all
}

func firstSuite() providertest.Suite {
	ref := mediagate.JobRef{JobID: jobID, ExternalID: externalID, Operation: "video"}
	state := func(word, rest string) providertest.Reply {
		return base(0, "success", fmt.Sprintf(`"task_id":%q,"status":%s,"file_id":"205258526306433","video_width":1366,%s`, jobID, quote(word), rest))
	}
	return providertest.Suite{
		Channel: channel(),
		Job: mediagate.Job{
			TaskID: externalID, ExternalID: externalID, Upstream: "MiniMax-Hailuo-02", Operation: "video",
			Params: []byte(`{"prompt":"a red kite","duration":5,"resolution":"768p","prompt_optimizer":true,"fast_pretreatment":false,"watermark":false}`),
		},
		AfterPoll: []providertest.Exchange{{
			Route: "GET /v1/files/retrieve",
			Reply: base(0, "success", `"file":{"file_id":205258526306433,"bytes":5896337,"created_at":1700469398,"filename":"output.mp4","purpose":"video_generation","download_url":"https://cdn.example.com/output.mp4?sig=abc"},`),
		}},
		Accepted:   base(0, "success", fmt.Sprintf(`"task_id":%q,`, jobID)),
		Submission: mediagate.Submission{Ref: ref},
		Refused:    func(text string) providertest.Reply { return base(2013, text, "") },
		SubmitRows: firstRows(map[string]providertest.Row{
			"1000":                   {Reply: base(1000, "unknown error", ""), Kind: mediagate.KindAmbiguous, Code: mediagate.CodeSubmissionUnknown},
			"1001":                   row(mediagate.KindAmbiguous, base(1001, "timeout", "")),
			"1024":                   row(mediagate.KindAmbiguous, base(1024, "internal error", "")),
			"1026":                   {Reply: base(1026, "input new_sensitive", ""), Kind: mediagate.KindModerated, Code: mediagate.CodeContentPolicy},
			"1027":                   row(mediagate.KindModerated, base(1027, "output new_sensitive", "")),
			"1033":                   row(mediagate.KindAmbiguous, base(1033, "downstream", "")),
			"1041":                   retried(mediagate.KindCapacity, base(1041, "connection limit", "")),
			"1042":                   row(mediagate.KindInvalid, base(1042, "invisible characters", "")),
			"2013":                   {Reply: base(2013, "invalid params, duration", ""), Kind: mediagate.KindInvalid, Code: mediagate.CodeInvalidParameters},
			"code as text":           row(mediagate.KindFunds, providertest.Reply{Body: `{"base_resp":{"status_code":"1008","status_msg":"no"}}`}),
			"refused beside an id":   row(mediagate.KindFunds, base(1008, "no", fmt.Sprintf(`"task_id":%q,`, jobID))),
			"new code":               row(mediagate.KindAmbiguous, base(1999, "new", "")),
			"new code with 400":      row(mediagate.KindInvalid, providertest.Reply{Status: 400, Body: base(1999, "new", "").Body}),
			"success with 400":       row(mediagate.KindInvalid, providertest.Reply{Status: 400, Body: base(0, "success", fmt.Sprintf(`"task_id":%q,`, jobID)).Body}),
			"no id":                  row(mediagate.KindAmbiguous, base(0, "success", "")),
			"empty id":               row(mediagate.KindAmbiguous, base(0, "success", `"task_id":"",`)),
			"id with a line break":   row(mediagate.KindAmbiguous, base(0, "success", `"task_id":"a\nb",`)),
			"base_resp that is text": row(mediagate.KindAmbiguous, providertest.Reply{Body: `{"base_resp":"ok"}`}),
		}),
		Ref:  ref,
		Word: func(word string) providertest.Reply { return state(word, "") },
		Words: map[string]mediagate.JobState{
			"Preparing": mediagate.JobQueued, "Queueing": mediagate.JobQueued, "Processing": mediagate.JobRunning,
			"Success": mediagate.JobSucceeded, "Fail": mediagate.JobFailed,
		},
		Failed: func(text string) providertest.Reply {
			return base(1000, text, fmt.Sprintf(`"task_id":%q,"status":"Fail","file_id":"",`, jobID))
		},
		PollRows: firstRows(map[string]providertest.Row{
			"1000":               row(mediagate.KindTransient, base(1000, "unknown error", "")),
			"1024":               row(mediagate.KindTransient, base(1024, "internal error", "")),
			"1026":               row(mediagate.KindTransient, base(1026, "sensitive", "")),
			"1041":               retried(mediagate.KindThrottled, base(1041, "connection limit", "")),
			"2013":               row(mediagate.KindNotFound, base(2013, "invalid params, task_id", "")),
			"new code":           row(mediagate.KindTransient, base(1999, "new", "")),
			"404 without a code": row(mediagate.KindTransient, providertest.Reply{Status: 404, Body: `{"message":"no route"}`}),
		}),
		ProtocolErrors: map[string]providertest.Reply{
			"another job": base(0, "success", `"task_id":"1","status":"Success","file_id":"2",`),
			"no id":       base(0, "success", `"status":"Success","file_id":"2",`),
		},
		WithoutMedia: map[string]providertest.Reply{
			"no file": base(0, "success", fmt.Sprintf(`"task_id":%q,"status":"Success",`, jobID)),
		},
	}
}

func secondRows(rows map[string]providertest.Row) map[string]providertest.Row {
	all := map[string]providertest.Row{
		"401":         {Reply: refusal(401, "authorized_error", "invalid api key (2049)"), Kind: mediagate.KindCredentials, Code: mediagate.CodeProviderRefused},
		"401 no code": row(mediagate.KindCredentials, refusal(401, "authorized_error", "invalid api key")),
		"402":         row(mediagate.KindFunds, refusal(402, "insufficient_balance_error", "insufficient balance (1008)")),
		"402 no code": row(mediagate.KindFunds, refusal(402, "insufficient_balance_error", "insufficient balance")),
		"429":         retried(mediagate.KindThrottled, refusal(429, "rate_limit_error", "rate limit (1002)")),
		"429 no code": retried(mediagate.KindThrottled, refusal(429, "rate_limit_error", "rate limit")),
		"429 funds":   row(mediagate.KindFunds, refusal(429, "rate_limit_error", "plan used up (2056)")),
	}
	maps.Copy(all, rows)
	return all
}

func secondSuite() providertest.Suite {
	ref := mediagate.JobRef{JobID: jobID, ExternalID: externalID, Operation: "video_v2"}
	job := func(id, word, rest string) providertest.Reply {
		return providertest.Reply{Body: fmt.Sprintf(
			`{"task":{"id":%q,"model":"MiniMax-H3","status":%s,"resolution":"768P","duration":5,"ratio":"16:9"%s}}`, id, quote(word), rest)}
	}
	const file = `,"content":{"url":"https://cdn.example.com/h3.mp4?sig=abc"},"usage":{"total_seconds":5,"input_seconds":0,"output_seconds":"5"}`
	return providertest.Suite{
		Channel: channel(),
		Job: mediagate.Job{
			TaskID: externalID, ExternalID: externalID, Upstream: "MiniMax-H3", Operation: "video_v2",
			Params: []byte(`{"prompt":"a red kite","duration":5,"resolution":"768P","aspect_ratio":"16:9"}`),
		},
		Stop:       "DELETE /v2/video_generation/" + jobID,
		Stopped:    providertest.Reply{Body: `{}`},
		Accepted:   providertest.Reply{Body: fmt.Sprintf(`{"task_id":%q}`, jobID)},
		Submission: mediagate.Submission{Ref: ref},
		Refused:    func(text string) providertest.Reply { return refusal(400, "bad_request_error", text+" (2013)") },
		SubmitRows: secondRows(map[string]providertest.Row{
			"400":                   {Reply: refusal(400, "bad_request_error", "bad duration (2013)"), Kind: mediagate.KindInvalid, Code: mediagate.CodeInvalidParameters},
			"400 no code":           row(mediagate.KindInvalid, refusal(400, "bad_request_error", "bad duration")),
			"400 moderated":         row(mediagate.KindModerated, refusal(400, "bad_request_error", "sensitive (1026)")),
			"422":                   {Reply: refusal(422, "unprocessable_entity_error", "sensitive (1026)"), Kind: mediagate.KindModerated, Code: mediagate.CodeContentPolicy},
			"422 no code":           row(mediagate.KindModerated, refusal(422, "unprocessable_entity_error", "sensitive")),
			"500":                   row(mediagate.KindAmbiguous, refusal(500, "server_error", "internal (1024)")),
			"server_error with 400": row(mediagate.KindAmbiguous, refusal(400, "server_error", "internal")),
			"new type with 400":     row(mediagate.KindInvalid, refusal(400, "novel_error", "new")),
			"new type with 200":     row(mediagate.KindAmbiguous, refusal(200, "novel_error", "new")),
			"no id":                 row(mediagate.KindAmbiguous, providertest.Reply{Body: `{}`}),
			"id that is an object":  row(mediagate.KindAmbiguous, providertest.Reply{Body: `{"task_id":{}}`}),
			"id beside 202":         row(mediagate.KindAmbiguous, providertest.Reply{Status: 202, Body: `{"accepted":true}`}),
		}),
		Ref: ref,
		Word: func(word string) providertest.Reply {
			return job(jobID, word, file)
		},
		Words: map[string]mediagate.JobState{
			"queued": mediagate.JobQueued, "running": mediagate.JobRunning, "succeeded": mediagate.JobSucceeded,
			"failed": mediagate.JobFailed, "cancelled": mediagate.JobFailed, "expired": mediagate.JobFailed,
		},
		Failed: func(text string) providertest.Reply {
			return job(jobID, "failed", `,"error":{"code":"1000","message":`+quote(text)+`}`)
		},
		PollRows: secondRows(map[string]providertest.Row{
			"400 unknown id":       row(mediagate.KindNotFound, refusal(400, "bad_request_error", "invalid task_id (2013)")),
			"404":                  row(mediagate.KindNotFound, refusal(404, "bad_request_error", "no such task")),
			"404 of another type":  row(mediagate.KindNotFound, refusal(404, "not_found_error", "no such task")),
			"404 that is no error": row(mediagate.KindTransient, providertest.Reply{Status: 404, Body: `{"message":"no route"}`}),
			"422":                  row(mediagate.KindTransient, refusal(422, "unprocessable_entity_error", "sensitive")),
			"500":                  row(mediagate.KindTransient, refusal(500, "server_error", "internal (1024)")),
			"new type":             row(mediagate.KindTransient, refusal(409, "novel_error", "new")),
		}),
		ProtocolErrors: map[string]providertest.Reply{
			"another job": job("1", "succeeded", file),
			"no id":       job("", "succeeded", file),
		},
		WithoutMedia: map[string]providertest.Reply{
			"no file":           job(jobID, "succeeded", ""),
			"a file of no link": job(jobID, "succeeded", `,"content":{"url":"soon"}`),
		},
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	first, second := firstSuite(), secondSuite()
	plain := first.Job
	plain.Operation, plain.Params = "base_video", []byte(`{"prompt":"a red kite"}`)
	for _, params := range []string{`{"prompt":"a","duration":"4.5"}`, `{"prompt":"a","image_urls":["https://a","https://b","https://c"]}`} {
		first.Inexpressible = append(first.Inexpressible, mediagate.Job{Upstream: "m", Operation: "base_video", Params: []byte(params)})
	}
	first.Others, second.Others = []mediagate.Job{second.Job, plain}, []mediagate.Job{first.Job, plain}
	for name, suite := range map[string]providertest.Suite{"v1": first, "v2": second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			providertest.Run(t, suite)
		})
	}
}

func TestGolden(t *testing.T) {
	t.Parallel()
	firstSuite().Golden(t, "testdata/*.txtar", *update)
}

func FuzzDecodeFirst(f *testing.F) { providertest.Fuzz(f, firstSuite()) }

func FuzzDecodeSecond(f *testing.F) { providertest.Fuzz(f, secondSuite()) }
