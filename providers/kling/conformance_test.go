package kling_test

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

// quote is a short name for the tables below.
var quote = providertest.Quote

const (
	jobID      = "831234567890123456"
	externalID = "task_01JZZZZZZZZZZZZZZZZZZZZZZZ"
)

func refusal(status int, code, text string) providertest.Reply {
	return providertest.Reply{
		Status: status,
		Body:   fmt.Sprintf(`{"code":%s,"message":%s,"request_id":"req-1"}`, code, quote(text)),
	}
}

func task(id, external, rest string) providertest.Reply {
	return providertest.Reply{Body: fmt.Sprintf(
		`{"code":0,"message":"SUCCEED","request_id":"req-1","data":{"task_id":%s,"task_info":{"external_task_id":%s},"created_at":1722769557708,"updated_at":1722769557708%s}}`,
		quote(id), quote(external), rest)}
}

const files = `,"final_unit_deduction":"1.5","task_result":{"videos":[{"id":"v1","url":"https://cdn.example.com/v1.mp4?sig=abc","watermark_url":"https://cdn.example.com/v1-marked.mp4","duration":"5.1"}]}`

// errorRows adds to rows the errors that mean the same for a submission and a poll.
func errorRows(rows map[string]providertest.Row) map[string]providertest.Row {
	all := map[string]providertest.Row{
		"1000": {Reply: refusal(401, "1000", "Authentication failed"), Kind: mediagate.KindCredentials, Code: mediagate.CodeProviderRefused, Calls: 2},
		"1001": {Reply: refusal(401, "1001", "Authorization is empty"), Kind: mediagate.KindCredentials, Calls: 2},
		"1002": {Reply: refusal(401, "1002", "Authorization is invalid"), Kind: mediagate.KindCredentials, Calls: 2},
		"1003": {Reply: refusal(401, "1003", "Authorization is not yet valid"), Kind: mediagate.KindCredentials, Calls: 2},
		"1004": {Reply: refusal(401, "1004", "Authorization has expired"), Kind: mediagate.KindCredentials, Calls: 2},
		"1100": {Reply: refusal(429, "1100", "Account exception"), Kind: mediagate.KindFunds},
		"1101": {Reply: refusal(429, "1101", "Account in arrears"), Kind: mediagate.KindFunds},
		"1102": {Reply: refusal(429, "1102", "Resource pack exhausted"), Kind: mediagate.KindFunds},
		"1103": {Reply: refusal(403, "1103", "Unauthorized access to the API"), Kind: mediagate.KindForbidden},
		"1302": {Reply: refusal(429, "1302", "Too fast"), Kind: mediagate.KindThrottled, RetryAfter: time.Second},
		"1304": {Reply: refusal(429, "1304", "IP whitelist policy"), Kind: mediagate.KindCredentials},
		"code as text": {
			Reply: refusal(429, `"1101"`, "Account in arrears"), Kind: mediagate.KindFunds,
		},
		"refused with HTTP 200": {Reply: refusal(200, "1101", "Account in arrears"), Kind: mediagate.KindFunds},
	}
	maps.Copy(all, rows)
	return all
}

func submitRows() map[string]providertest.Row {
	taken := "external_task_id already exists, it must be unique"
	return errorRows(map[string]providertest.Row{
		"1200":                         {Reply: refusal(400, "1200", "Invalid request parameters"), Kind: mediagate.KindInvalid, Code: mediagate.CodeInvalidParameters},
		"1201":                         {Reply: refusal(400, "1201", "duration value is invalid"), Kind: mediagate.KindInvalid},
		"1201 external id taken":       {Reply: refusal(400, "1201", taken), Kind: mediagate.KindAmbiguous},
		"1201 external id duplicate":   {Reply: refusal(400, "1201", "Duplicate external_task_id"), Kind: mediagate.KindAmbiguous},
		"1200 external id taken":       {Reply: refusal(400, "1200", taken), Kind: mediagate.KindAmbiguous},
		"1201 external id too long":    {Reply: refusal(400, "1201", "external_task_id is too long"), Kind: mediagate.KindInvalid},
		"1202":                         {Reply: refusal(404, "1202", "Invalid method"), Kind: mediagate.KindNotFound},
		"1203":                         {Reply: refusal(404, "1203", "Model not found"), Kind: mediagate.KindNoModel, Code: mediagate.CodeModelRetired},
		"1203 in Chinese":              {Reply: refusal(404, "1203", "模型不存在"), Kind: mediagate.KindNoModel},
		"1203 without the model":       {Reply: refusal(404, "1203", "The requested resource does not exist"), Kind: mediagate.KindNotFound},
		"1300":                         {Reply: refusal(400, "1300", "Platform policy"), Kind: mediagate.KindModerated, Code: mediagate.CodeContentPolicy},
		"1301":                         {Reply: refusal(400, "1301", "Content security"), Kind: mediagate.KindModerated},
		"1303":                         {Reply: refusal(429, "1303", "parallel task over resource pack limit"), Kind: mediagate.KindCapacity, RetryAfter: time.Second},
		"5000":                         {Reply: refusal(500, "5000", "Internal error"), Kind: mediagate.KindAmbiguous, Code: mediagate.CodeSubmissionUnknown},
		"5001":                         {Reply: refusal(503, "5001", "Maintenance"), Kind: mediagate.KindAmbiguous},
		"5002":                         {Reply: refusal(504, "5002", "Internal timeout"), Kind: mediagate.KindAmbiguous},
		"1201 a duplicate":             {Reply: refusal(400, "1201", "Duplicate task"), Kind: mediagate.KindAmbiguous},
		"new code with 400":            {Reply: refusal(400, "1999", "New rule"), Kind: mediagate.KindInvalid},
		"new code with 200":            {Reply: refusal(200, "1999", "New rule"), Kind: mediagate.KindAmbiguous},
		"success with 400":             {Reply: providertest.Reply{Status: 400, Body: task(jobID, externalID, "").Body}, Kind: mediagate.KindAmbiguous},
		"no id":                        {Reply: task("", externalID, ""), Kind: mediagate.KindAmbiguous},
		"id with a line break":         {Reply: task("a\nb", externalID, ""), Kind: mediagate.KindAmbiguous},
		"id that is an object":         {Reply: providertest.Reply{Body: `{"code":0,"data":{"task_id":{}}}`}, Kind: mediagate.KindAmbiguous},
		"data that is a text":          {Reply: providertest.Reply{Body: `{"code":0,"data":"soon"}`}, Kind: mediagate.KindAmbiguous},
		"code that is no number":       {Reply: providertest.Reply{Body: `{"code":"ok","data":{"task_id":"1"}}`}, Kind: mediagate.KindAmbiguous},
		"answer of the newer standard": {Reply: providertest.Reply{Body: `{"code":0,"data":{"id":"1","status":"submitted"}}`}, Kind: mediagate.KindAmbiguous},
	})
}

func pollRows() map[string]providertest.Row {
	return errorRows(map[string]providertest.Row{
		"1200":                {Reply: refusal(400, "1200", "Invalid request parameters"), Kind: mediagate.KindTransient},
		"1201":                {Reply: refusal(400, "1201", "pageSize value is invalid"), Kind: mediagate.KindTransient},
		"1201 task not found": {Reply: refusal(400, "1201", "Task not found"), Kind: mediagate.KindNotFound},
		"1202":                {Reply: refusal(404, "1202", "Invalid method"), Kind: mediagate.KindTransient},
		"1203":                {Reply: refusal(404, "1203", "Task not found"), Kind: mediagate.KindNotFound},
		"1300":                {Reply: refusal(400, "1300", "Platform policy"), Kind: mediagate.KindTransient},
		"1301":                {Reply: refusal(400, "1301", "Content security"), Kind: mediagate.KindTransient},
		"1303":                {Reply: refusal(429, "1303", "QPS over the pack"), Kind: mediagate.KindThrottled, RetryAfter: time.Second},
		"5000":                {Reply: refusal(500, "5000", "Internal error"), Kind: mediagate.KindTransient},
		"5001":                {Reply: refusal(503, "5001", "Maintenance"), Kind: mediagate.KindTransient},
		"5002":                {Reply: refusal(504, "5002", "Internal timeout"), Kind: mediagate.KindTransient},
		"404 without a code":  {Reply: providertest.Reply{Status: 404, Body: `{"error":"no route"}`}, Kind: mediagate.KindTransient},
		"new code":            {Reply: refusal(400, "1999", "New rule"), Kind: mediagate.KindTransient},
	})
}

// suite returns the conformance suite of an account with a key pair and JWTs.
func suite() providertest.Suite {
	ref := mediagate.JobRef{JobID: jobID, ExternalID: externalID, Operation: "video", State: "text2video"}
	return providertest.Suite{
		Channel: mediagate.Channel{
			Name: "kling-a", Provider: "kling",
			Credentials: mediagate.Secrets(map[string]string{"access_key": "AKhHpR8qPzLmT3", "secret_key": "SKbT4eW9nQx7Yv2"}),
		},
		Job: mediagate.Job{
			TaskID: externalID, ExternalID: externalID, Upstream: "kling-v3", Operation: "video",
			Params: []byte(`{"prompt":"a red kite","mode":"std","duration":5,"aspect_ratio":"16:9","audio":false,"multi_shot":false}`),
		},
		Others: []mediagate.Job{
			{
				TaskID: externalID, ExternalID: externalID, Upstream: "kling-v9", Operation: "base_video",
				Params: []byte(`{"prompt":"a red kite","resolution":"1080p"}`),
			},
			{
				TaskID: externalID, ExternalID: externalID, Upstream: "kling-v3-omni", Operation: "omni_frames",
				Params: []byte(`{"prompt":"a red kite","mode":"std","duration":5,"aspect_ratio":"16:9","audio":false,"multi_shot":false,"element_list":[{"element_id":7}]}`),
			},
			{
				TaskID: externalID, ExternalID: externalID, Upstream: "kling-video-o1", Operation: "omni",
				Params: []byte(`{"prompt":"a red kite","mode":"std","duration":5,"aspect_ratio":"16:9"}`),
			},
		},
		NoBatch: true,
		Inexpressible: []mediagate.Job{
			{ExternalID: externalID, Upstream: "kling-v9", Operation: "base_video", Params: []byte(`{"prompt":"a","resolution":"480p"}`)},
			{ExternalID: externalID, Upstream: "kling-v9", Operation: "base_video", Params: []byte(`{"prompt":"a","duration":4.5}`)},
			{ExternalID: externalID, Upstream: "kling-v9", Operation: "base_video", Params: []byte(`{"prompt":"a","image_urls":["https://a","https://b","https://c"]}`)},
		},
		Accepted:   task(jobID, externalID, `,"task_status":"submitted"`),
		Submission: mediagate.Submission{Ref: ref},
		Refused:    func(text string) providertest.Reply { return refusal(400, "1201", text) },
		SubmitRows: submitRows(),
		Ref:        ref,
		Word: func(word string) providertest.Reply {
			return task(jobID, externalID, `,"task_status_msg":"the text","task_status":`+quote(word)+files)
		},
		Words: map[string]mediagate.JobState{
			"submitted": mediagate.JobQueued, "processing": mediagate.JobRunning,
			"succeed": mediagate.JobSucceeded, "failed": mediagate.JobFailed,
			"succeeded": mediagate.JobUnknown, // the word of the newer generation
		},
		Failed: func(text string) providertest.Reply {
			return task(jobID, externalID, `,"task_status":"failed","task_status_msg":`+quote(text))
		},
		PollRows: pollRows(),
		ProtocolErrors: map[string]providertest.Reply{
			"another external id": task("999", "task_other", `,"task_status":"processing"`),
			"no id":               task("", externalID, `,"task_status":"succeed"`+files),
		},
		Partial: map[string]providertest.Partial{
			"one of two without a link": {
				Reply: task(jobID, externalID, `,"task_status":"succeed","task_result":{"videos":[{"url":null},{"url":"https://cdn.example.com/2.mp4"}]}`),
				Media: []mediagate.Media{{URL: "https://cdn.example.com/2.mp4", Index: 1, MimeType: "video/mp4"}},
			},
		},
		WithoutMedia: map[string]providertest.Reply{
			"success without result":   task(jobID, externalID, `,"task_status":"succeed"`),
			"success without files":    task(jobID, externalID, `,"task_status":"succeed","task_result":{"videos":[]}`),
			"success without links":    task(jobID, externalID, `,"task_status":"succeed","task_result":{"videos":[{"url":"","duration":"5"}]}`),
			"success with a file link": task(jobID, externalID, `,"task_status":"succeed","task_result":{"videos":[{"url":"file:///etc/passwd"}]}`),
			"success with a relative":  task(jobID, externalID, `,"task_status":"succeed","task_result":{"videos":[{"url":"/v1.mp4"}]}`),
			"success of odd types":     task(jobID, externalID, `,"task_status":"succeed","task_result":{"videos":{"url":"https://cdn.example.com/a"}}`),
		},
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

func FuzzDecodeNewer(f *testing.F) { providertest.Fuzz(f, newerSuite()) }
