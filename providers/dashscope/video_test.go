package dashscope_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/dashscope"
	"github.com/mediagate/mediagate/providers/providertest"
)

const jobID = "0385dc79-5ff8-4d82-bcb6-7c1f3a2b4d5e"

// One valid request for each operation.
const (
	wanFields = `"duration":5,"resolution":"720P","aspect_ratio":"16:9","audio":true,"prompt_extend":true,"watermark":false`
	wanText   = `{"prompt":"a red kite",` + wanFields + `}`
	editText  = `{"video_urls":["https://media.example.com/a.mp4"],"resolution":"1080P","duration":0,"prompt_extend":true,"watermark":false,"metadata":{"audio_setting":"auto"}}`
	klingText = `{"prompt":"a red kite","mode":"std","duration":5,"aspect_ratio":"16:9","audio":false,"multi_shot":false}`
	omniText  = `{"prompt":"a red kite","mode":"std","duration":5,"aspect_ratio":"16:9","audio":false,"multi_shot":false,"element_list":[{"element_id":7}]}`
	viduText  = `{"prompt":"a red kite","image_urls":["https://media.example.com/a.png"],"duration":5,"resolution":"720p","aspect_ratio":"16:9","audio":true}`
)

func jobOf(upstream, operation, params string) mediagate.Job {
	return mediagate.Job{TaskID: externalID, ExternalID: externalID, Upstream: upstream, Operation: operation, Params: []byte(params)}
}

// otherJobs returns one job of each operation without its own suite. These operations differ only
// in their requests.
func otherJobs() []mediagate.Job {
	return []mediagate.Job{
		jobOf("wan2.7", "video_v2", wanText),
		jobOf("wan2.7-videoedit", "edit", editText),
		jobOf("kling/kling-v3-video-generation", "kling", klingText),
		jobOf("kling/kling-v3-omni-video-generation", "kling_omni", omniText),
		jobOf("vidu/viduq3_reference2video", "vidu", viduText),
		jobOf("wan9.9-t2v", "base_video", `{"prompt":"a red kite","resolution":"1080p"}`),
	}
}

// taskReply returns the answer to a query for a job.
func taskReply(id, word, output, usage string) providertest.Reply {
	return providertest.Reply{Body: fmt.Sprintf(
		`{"request_id":"req-1","output":{"task_id":%q,"task_status":%s,"submit_time":"2026-03-01 12:00:00.000"%s},"usage":{%s}}`,
		id, quote(word), output, usage)}
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// askRows adds to rows the errors that mean the same for a poll and a cancel.
func askRows(rows map[string]providertest.Row) map[string]providertest.Row {
	all := map[string]providertest.Row{
		"InvalidApiKey":      {Reply: refusal(401, "InvalidApiKey", "Invalid API-key provided."), Kind: mediagate.KindCredentials, Code: mediagate.CodeProviderRefused},
		"AccessDenied":       row(mediagate.KindCredentials, refusal(403, "AccessDenied", "Access denied.")),
		"Arrearage":          row(mediagate.KindFunds, refusal(400, "Arrearage", "Overdue payment.")),
		"Throttling":         {Reply: refusal(429, "Throttling.RateQuota", "Slow down."), Kind: mediagate.KindThrottled, RetryAfter: time.Second},
		"ModelUnavailable":   {Reply: refusal(400, "ModelUnavailable", "Busy."), Kind: mediagate.KindThrottled, RetryAfter: time.Second},
		"InternalError":      row(mediagate.KindTransient, refusal(500, "InternalError", "Oops.")),
		"InvalidParameter":   row(mediagate.KindTransient, refusal(400, "InvalidParameter", "What?")),
		"ModelNotFound":      row(mediagate.KindTransient, refusal(404, "ModelNotFound", "What?")),
		"404 without a code": row(mediagate.KindTransient, providertest.Reply{Status: 404, Body: `{"error":"no route"}`}),
		"HTML":               row(mediagate.KindTransient, providertest.Reply{Status: 404, Body: `<html>`}),
	}
	maps.Copy(all, rows)
	return all
}

func videoSuite() providertest.Suite {
	const file, usage = `,"video_url":"https://cdn.example.com/a.mp4?Expires=1"`, `"duration":5,"SR":"720"`
	ref := mediagate.JobRef{JobID: jobID, ExternalID: externalID, Operation: "video"}
	rows := submitRows()
	maps.Copy(rows, map[string]providertest.Row{
		"no id":                  row(mediagate.KindAmbiguous, providertest.Reply{Body: `{"output":{"task_status":"PENDING"},"request_id":"req-1"}`}),
		"an id with a blank":     row(mediagate.KindAmbiguous, providertest.Reply{Body: `{"output":{"task_id":"a b"},"request_id":"req-1"}`}),
		"an id that is a list":   row(mediagate.KindAmbiguous, providertest.Reply{Body: `{"output":{"task_id":[]},"request_id":"req-1"}`}),
		"an id beside a code":    row(mediagate.KindModerated, providertest.Reply{Body: `{"code":"DataInspectionFailed","message":"no","output":{"task_id":"1"}}`}),
		"an id with 400":         row(mediagate.KindInvalid, providertest.Reply{Status: 400, Body: `{"output":{"task_id":"1"}}`}),
		"an image":               row(mediagate.KindAmbiguous, content(`[{"image":"https://a.example.com/a.png"}]`)),
		"output that is a text":  row(mediagate.KindAmbiguous, providertest.Reply{Body: `{"output":"ok","request_id":"req-1"}`}),
		"no asynchronous access": row(mediagate.KindCredentials, refusal(403, "AccessDenied", "current user api does not support synchronous calls")),
	})
	return providertest.Suite{
		Channel: channel(),
		Prefix:  "/api/v1",
		Job:     jobOf("wan2.6", "video", wanText),
		Inexpressible: []mediagate.Job{
			jobOf("kling/kling-v3-video-generation", "kling", strings.Replace(klingText, "std", "4k", 1)),
			jobOf("vidu/viduq3_reference2video", "vidu", strings.Replace(viduText, "16:9", "21:9", 1)),
			jobOf("wan9.9-i2v", "base_video", `{"prompt":"a","image_urls":["https://a.example.com","https://b.example.com","https://c.example.com"]}`),
			jobOf("wan9.9-r2v", "base_video", `{"prompt":"a","image_urls":["https://a","https://b","https://c","https://d","https://e","https://f"]}`),
			jobOf("wan9.9-t2v", "base_video", `{"prompt":"a","seed":2147483648}`),
			jobOf("wan9.9-t2v", "base_video", `{"prompt":"`+strings.Repeat("a", 5001)+`"}`),
			jobOf("wan2.5-t2v-preview", "base_video", `{"prompt":"`+strings.Repeat("a", 1501)+`"}`),
			jobOf("wan2.5-i2v-preview", "base_video", `{"prompt":"a","image_urls":["https://a.example.com","https://b.example.com"]}`),
			jobOf("wan2.2-t2v-plus", "base_video", `{"prompt":"a","resolution":"480P"}`),
			jobOf("kling/kling-v9", "base_video", `{"prompt":"a","seed":1}`),
			jobOf("kling/kling-v9", "base_video", `{"prompt":"a","resolution":"4K"}`),
			jobOf("vidu/viduq9", "base_video", `{"prompt":"a","resolution":"4K"}`),
		},
		Accepted:   providertest.Reply{Body: fmt.Sprintf(`{"output":{"task_id":%q,"task_status":"PENDING"},"request_id":"req-1"}`, jobID)},
		Submission: mediagate.Submission{Ref: ref},
		Refused:    func(text string) providertest.Reply { return refusal(400, "InvalidParameter", text) },
		SubmitRows: rows,

		Ref:  ref,
		Word: func(word string) providertest.Reply { return taskReply(jobID, word, file, usage) },
		Words: map[string]mediagate.JobState{
			"PENDING": mediagate.JobQueued, "SUSPENDED": mediagate.JobQueued, "RUNNING": mediagate.JobRunning,
			"SUCCEEDED": mediagate.JobSucceeded, "FAILED": mediagate.JobFailed, "CANCELED": mediagate.JobFailed,
		},
		Failed: func(text string) providertest.Reply {
			return taskReply(jobID, "FAILED", `,"code":"InternalError.Algo","message":`+quote(text), "")
		},
		PollRows: askRows(map[string]providertest.Row{
			"UNKNOWN":              row(mediagate.KindNotFound, taskReply(jobID, "UNKNOWN", "", "")),
			"UNKNOWN of another":   row(mediagate.KindTransient, taskReply("1", "UNKNOWN", "", "")),
			"moderated, not ended": row(mediagate.KindTransient, refusal(400, "DataInspectionFailed", "Inappropriate content.")),
		}),
		ProtocolErrors: map[string]providertest.Reply{
			"another job": taskReply("1", "SUCCEEDED", file, usage),
			"no id":       taskReply("", "SUCCEEDED", file, usage),
		},
		WithoutMedia: map[string]providertest.Reply{
			"no file":           taskReply(jobID, "SUCCEEDED", "", usage),
			"a file of no link": taskReply(jobID, "SUCCEEDED", `,"video_url":"soon"`, usage),
		},

		Stop:    "POST /api/v1/tasks/" + jobID + "/cancel",
		Stopped: providertest.Reply{Body: `{"request_id":"req-1"}`},
		CancelRows: askRows(map[string]providertest.Row{
			"already running": row(mediagate.KindTransient, refusal(400, "UnsupportedOperation", "Failed to cancel the task, it is not PENDING.")),
			"a code with 200": row(mediagate.KindTransient, refusal(200, "UnsupportedOperation", "Failed to cancel the task.")),
		}),
	}
}

// TestOutcome checks the outcome of a job, in all the ways in which the vendor writes its numbers.
func TestOutcome(t *testing.T) {
	t.Parallel()
	const clean, marked = "https://cdn.example.com/clean.mp4", "https://cdn.example.com/marked.mp4"
	both := fmt.Sprintf(`,"video_url":%q,"watermark_video_url":%q`, clean, marked)
	good := func(url string, seconds float64, cost string) *mediagate.Outcome {
		return &mediagate.Outcome{
			Succeeded: true, Seconds: seconds, VendorCharge: mediagate.ChargedBy(cost, "seconds"),
			Media: []mediagate.Media{{URL: url, MimeType: "video/mp4", Duration: seconds}},
		}
	}
	failure := func(code mediagate.FailureCode, message string, retryable bool) *mediagate.Outcome {
		return &mediagate.Outcome{Failure: &mediagate.Failure{Code: code, Message: message, Retryable: retryable}}
	}
	for name, tt := range map[string]struct {
		state               string
		word, output, usage string
		want                *mediagate.Outcome
	}{
		"numbers":            {"", "SUCCEEDED", both, `"duration":5,"SR":720,"video_count":1`, good(clean, 5, "5")},
		"texts":              {"", "SUCCEEDED", both, `"duration":"5.0","SR":"720","size":"1280*720"`, good(clean, 5, "5.0")},
		"input and output":   {"", "SUCCEEDED", both, `"duration":9.2,"input_video_duration":5,"output_video_duration":4.2`, good(clean, 4.2, "9.2")},
		"output as text":     {"", "SUCCEEDED", both, `"duration":"10","input_video_duration":"5","output_video_duration":"5"`, good(clean, 5, "10")},
		"input alone":        {"", "SUCCEEDED", both, `"duration":10,"input_video_duration":5`, good(clean, 0, "10")},
		"no usage":           {"", "SUCCEEDED", both, ``, good(clean, 0, "")},
		"odd numbers":        {"", "SUCCEEDED", both, `"duration":{},"output_video_duration":-1`, good(clean, 0, "")},
		"marked":             {"watermark", "SUCCEEDED", both, `"duration":5`, good(marked, 5, "5")},
		"marked by itself":   {"watermark", "SUCCEEDED", fmt.Sprintf(`,"video_url":%q`, clean), `"duration":5`, good(clean, 5, "5")},
		"marked of no link":  {"watermark", "SUCCEEDED", fmt.Sprintf(`,"video_url":%q,"watermark_video_url":""`, clean), `"duration":5`, good(clean, 5, "5")},
		"moderated":          {"", "FAILED", `,"code":"DataInspectionFailed","message":"Output data may be inappropriate."`, "", failure(mediagate.CodeContentPolicy, "Output data may be inappropriate.", false)},
		"infringing":         {"", "FAILED", `,"code":"IPInfringementSuspect","message":""`, "", failure(mediagate.CodeContentPolicy, "the content was refused", false)},
		"an input is away":   {"", "FAILED", `,"code":"InvalidURL","message":"The url is not reachable"`, "", failure(mediagate.CodeImageProcessing, "The url is not reachable", false)},
		"invalid":            {"", "FAILED", `,"code":"InvalidParameter.Duration","message":"too long"`, "", failure(mediagate.CodeInvalidParameters, "too long", false)},
		"the vendor's fault": {"", "FAILED", `,"code":"InternalError.Algo","message":"oops"`, "", failure(mediagate.CodeGenerationFailed, "oops", true)},
		"in its language": {
			"", "FAILED", `,"code":"InternalError","message":"内部错误"`, "",
			&mediagate.Outcome{Failure: &mediagate.Failure{Code: mediagate.CodeGenerationFailed, Message: "the generation failed at the vendor", Retryable: true}, VendorText: "内部错误"},
		},
		"stopped": {"", "CANCELED", ``, "", failure(mediagate.CodeGenerationFailed, "the generation failed at the vendor", true)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := videoSuite()
			vendor := providertest.NewVendor(t, taskReply(jobID, tt.word, tt.output, tt.usage))
			ref := s.Ref
			ref.State = tt.state
			report, err := s.Open(t, vendor.URL, providers.Options{}).Poll(t.Context(), ref)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, report.Outcome); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestPollOfNoOperation checks that an unknown operation is no proof that the vendor has no job.
func TestPollOfNoOperation(t *testing.T) {
	t.Parallel()
	vendor := providertest.NewVendor(t)
	p := videoSuite().Open(t, vendor.URL, providers.Options{})
	for operation, want := range map[string]mediagate.Kind{"film": mediagate.KindTransient, "video": mediagate.KindNotFound} {
		if _, err := p.Poll(t.Context(), mediagate.JobRef{Operation: operation}); !mediagate.Is(err, want) {
			t.Errorf("%s: %v", operation, err)
		}
	}
	for _, ref := range []mediagate.JobRef{{Operation: "video"}, {Operation: "image", JobID: "1"}, {Operation: "film", JobID: "1"}} {
		if err := p.(providers.Canceller).Cancel(t.Context(), ref); err == nil {
			t.Errorf("Cancel(%+v) is no error", ref)
		}
	}
	if n := len(vendor.Requests()); n != 0 {
		t.Errorf("%d requests, want none", n)
	}
}

// TestExpress checks which requests each operation takes, on both sides of its limits.
func TestSupports(t *testing.T) {
	t.Parallel()
	links := func(n int) string {
		items := make([]string, n)
		for i := range items {
			items[i] = fmt.Sprintf(`"https://media.example.com/%d"`, i)
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	role := func(words ...string) string {
		items := make([]string, len(words))
		for i, word := range words {
			items[i] = fmt.Sprintf(`{"url":"https://media.example.com/%d","role":%q}`, i, word)
		}
		return `"image_with_roles":[` + strings.Join(items, ",") + "]"
	}
	long := func(field, unit string, n int) string { return `"` + field + `":` + quote(strings.Repeat(unit, n)) }
	with := func(base string, fields ...string) string {
		var all map[string]json.RawMessage
		for _, text := range append([]string{base}, fields...) {
			if !strings.HasPrefix(text, "{") {
				text = "{" + text + "}"
			}
			if err := json.Unmarshal([]byte(text), &all); err != nil {
				t.Fatalf("%v in %s", err, text)
			}
		}
		out, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	bare := "{" + wanFields + "}"
	// oldField and newField are the fields that the two protocols of Wan refuse. If a field is
	// empty, oldModel or newModel is the model that takes the request.
	for name, tt := range map[string]struct{ params, oldModel, oldField, newModel, newField string }{
		"text":                            {wanText, "wan2.6-t2v", "", "wan2.7-t2v", ""},
		"text of 1500":                    {with(bare, long("prompt", "語", 1500)), "wan2.6-t2v", "", "wan2.7-t2v", ""},
		"text of 1501":                    {with(bare, long("prompt", "語", 1501)), "", "prompt", "wan2.7-t2v", ""},
		"text of 5000":                    {with(bare, long("prompt", "🎈", 5000)), "", "prompt", "wan2.7-t2v", ""},
		"text of 5001":                    {with(bare, long("prompt", "🎈", 5001)), "", "prompt", "", "prompt"},
		"negative of 500":                 {with(wanText, long("negative_prompt", "語", 500)), "wan2.6-t2v", "", "wan2.7-t2v", ""},
		"negative of 501":                 {with(wanText, long("negative_prompt", "語", 501)), "", "negative_prompt", "", "negative_prompt"},
		"seed":                            {with(wanText, `"seed":2147483647`), "wan2.6-t2v", "", "wan2.7-t2v", ""},
		"seed beyond":                     {with(wanText, `"seed":2147483648`), "", "seed", "", "seed"},
		"a silent text":                   {with(wanText, `"audio":false`), "wan2.6-t2v", "", "wan2.7-t2v", ""},
		"a silent frame":                  {with(wanText, `"audio":false,"image_urls":`+links(1)), "wan2.6-i2v", "", "wan2.7-i2v", ""},
		"one image":                       {with(bare, `"image_urls":`+links(1)), "wan2.6-i2v", "", "wan2.7-i2v", ""},
		"one image as a frame":            {with(bare, role("first_frame")), "wan2.6-i2v", "", "wan2.7-i2v", ""},
		"one image to refer to":           {with(bare, role("reference")), "wan2.6-r2v", "", "wan2.7-r2v", ""},
		"two images":                      {with(bare, `"image_urls":`+links(2)), "wan2.6-r2v", "", "wan2.7-r2v", ""},
		"an image and a video":            {with(bare, `"image_urls":`+links(1)+`,"video_urls":`+links(1)), "wan2.6-r2v", "", "wan2.7-r2v", ""},
		"a video":                         {with(bare, `"video_urls":`+links(1)), "wan2.6-r2v", "", "wan2.7-r2v", ""},
		"two frames":                      {with(bare, role("last_frame", "first_frame")), "", "image_with_roles", "wan2.7-i2v", ""},
		"a last frame alone":              {with(bare, role("last_frame")), "", "image_with_roles", "", "image_with_roles"},
		"a first frame twice":             {with(bare, role("first_frame", "first_frame")), "", "image_with_roles[1].role", "", "image_with_roles[1].role"},
		"a frame and a reference":         {with(bare, role("first_frame", "reference")), "", "image_with_roles", "wan2.7-r2v", ""},
		"a frame and an image":            {with(bare, role("first_frame"), `"image_urls":`+links(1)), "", "image_with_roles", "wan2.7-r2v", ""},
		"two frames and an image":         {with(bare, role("first_frame", "last_frame"), `"image_urls":`+links(1)), "", "image_with_roles", "", "image_with_roles"},
		"five references":                 {with(bare, `"image_urls":`+links(2)+`,"video_urls":`+links(3)), "wan2.6-r2v", "", "wan2.7-r2v", ""},
		"six references":                  {with(bare, `"image_urls":`+links(3)+`,"video_urls":`+links(3)), "", "video_urls", "", "video_urls"},
		"six images":                      {with(bare, role("reference"), `"image_urls":`+links(5)), "", "image_urls", "", "image_urls"},
		"six images by their roles":       {with(bare, role(slices.Repeat([]string{"reference"}, 6)...)), "", "image_with_roles", "", "image_with_roles"},
		"15 s":                            {with(wanText, `"duration":15`), "wan2.6-t2v", "", "wan2.7-t2v", ""},
		"15 s of a frame":                 {with(bare, `"duration":15,"image_urls":`+links(1)), "wan2.6-i2v", "", "wan2.7-i2v", ""},
		"10 s of images":                  {with(bare, `"duration":10,"image_urls":`+links(2)), "wan2.6-r2v", "", "wan2.7-r2v", ""},
		"11 s of images":                  {with(bare, `"duration":11,"image_urls":`+links(2)), "", "duration", "wan2.7-r2v", ""},
		"10 s of a video":                 {with(bare, `"duration":10,"video_urls":`+links(1)), "wan2.6-r2v", "", "wan2.7-r2v", ""},
		"11 s of a video":                 {with(bare, `"duration":11,"video_urls":`+links(1)), "", "duration", "", "duration"},
		"a ratio that has no pixels":      {with(wanText, `"aspect_ratio":"21:9"`), "", "aspect_ratio", "wan2.7-t2v", ""},
		"a ratio that the frame replaces": {with(bare, `"aspect_ratio":"4:3","image_urls":`+links(1)), "wan2.6-i2v", "", "wan2.7-i2v", ""},
	} {
		t.Run("wan "+name, func(t *testing.T) {
			t.Parallel()
			expressed(t, jobOf("wan2.6", "video", tt.params), tt.oldModel, tt.oldField)
			expressed(t, jobOf("wan2.7", "video_v2", tt.params), tt.newModel, tt.newField)
		})
	}
	const named = `"element_list":[{"element_id":7},{"name":"a","description":"b","element_input_urls":["https://a.example.com/1"]}]`
	const standard, omni, vidu = "kling/kling-v3-video-generation", "kling/kling-v3-omni-video-generation", "vidu/viduq3_reference2video"
	for name, tt := range map[string]struct{ upstream, operation, params, field string }{
		"edit":                     {"wan2.7-videoedit", "edit", editText, ""},
		"edit of no video":         {"wan2.7-videoedit", "edit", with(editText, `"video_urls":[]`), "video_urls"},
		"kling":                    {standard, "kling", klingText, ""},
		"kling pro":                {standard, "kling", with(klingText, `"mode":"pro"`), ""},
		"kling 4k":                 {standard, "kling", with(klingText, `"mode":"4k"`), "mode"},
		"kling not":                {standard, "kling", with(klingText, `"negative_prompt":"b"`), "negative_prompt"},
		"kling two frames":         {standard, "kling", with(klingText, `"image_urls":`+links(2)), ""},
		"kling three":              {standard, "kling", with(klingText, `"image_urls":`+links(3)), "image_urls"},
		"kling subjects":           {standard, "kling", omniText, "element_list"},
		"omni":                     {omni, "kling_omni", omniText, ""},
		"omni and frames":          {omni, "kling_omni", with(omniText, `"image_urls":`+links(2)), ""},
		"omni without subjects":    {omni, "kling_omni", klingText, "element_list"},
		"omni 4k":                  {omni, "kling_omni", with(omniText, `"mode":"4k"`), "mode"},
		"omni not":                 {omni, "kling_omni", with(omniText, `"negative_prompt":"b"`), "negative_prompt"},
		"omni by name":             {omni, "kling_omni", with(omniText, named), "element_list[1].name"},
		"vidu":                     {vidu, "vidu", viduText, ""},
		"vidu seed":                {vidu, "vidu", with(viduText, `"seed":2147483647`), ""},
		"vidu seed beyond":         {vidu, "vidu", with(viduText, `"seed":2147483648`), "seed"},
		"vidu of no pixels":        {vidu, "vidu", with(viduText, `"aspect_ratio":"21:9"`), "aspect_ratio"},
		"a duration that is none":  {vidu, "vidu", with(viduText, `"duration":5.5`), "duration"},
		"an operation that is not": {vidu, "film", viduText, "-"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := tt.upstream
			if tt.field != "" {
				model = ""
			}
			expressed(t, jobOf(tt.upstream, tt.operation, tt.params), model, tt.field)
		})
	}
}

// expressed checks that the request names the model, or that it is refused because of the field.
func expressed(t *testing.T, job mediagate.Job, model, field string) {
	t.Helper()
	err := dashscope.Supports(job, nil)
	switch {
	case field == "-":
		if !mediagate.Is(err, mediagate.KindNotFound) {
			t.Errorf("%s: %v", job.Operation, err)
		}
		return
	case field != "":
		if !mediagate.Is(err, mediagate.KindInvalid) || !strings.Contains(err.Error(), "("+field+")") {
			t.Errorf("%s: %v, want an error about %s", job.Operation, err, field)
		}
		return
	case err != nil:
		t.Errorf("%s: %v", job.Operation, err)
		return
	}
	vendor := providertest.NewVendor(t, videoSuite().Accepted)
	if _, err := videoSuite().Open(t, vendor.URL, providers.Options{}).Submit(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	sent := vendor.Requests()[0]
	if !strings.Contains(sent.Body, fmt.Sprintf(`"model":%q`, model)) || sent.Header.Get("X-Dashscope-Async") != "enable" {
		t.Errorf("%s: sent %s, want %s", job.Operation, sent.Body, model)
	}
}

// TestVideoPixels checks the tables that translate a ratio into pixels.
func TestVideoPixels(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ operation, resolution, ratio, want string }{
		{"video", "720P", "16:9", "1280*720"},
		{"video", "720P", "9:16", "720*1280"},
		{"video", "720P", "1:1", "960*960"},
		{"video", "720P", "4:3", "1088*832"},
		{"video", "720P", "3:4", "832*1088"},
		{"video", "1080P", "16:9", "1920*1080"},
		{"video", "1080P", "9:16", "1080*1920"},
		{"video", "1080P", "1:1", "1440*1440"},
		{"video", "1080P", "4:3", "1632*1248"},
		{"video", "1080P", "3:4", "1248*1632"},
		{"vidu", "540p", "16:9", "960*540"},
		{"vidu", "540p", "9:16", "540*960"},
		{"vidu", "540p", "1:1", "540*540"},
		{"vidu", "540p", "4:3", "720*540"},
		{"vidu", "540p", "3:4", "540*720"},
		{"vidu", "720p", "16:9", "1280*720"},
		{"vidu", "720p", "9:16", "720*1280"},
		{"vidu", "720p", "1:1", "720*720"},
		{"vidu", "720p", "4:3", "960*720"},
		{"vidu", "720p", "3:4", "720*960"},
		{"vidu", "1080p", "16:9", "1920*1080"},
		{"vidu", "1080p", "9:16", "1080*1920"},
		{"vidu", "1080p", "1:1", "1080*1080"},
		{"vidu", "1080p", "4:3", "1440*1080"},
		{"vidu", "1080p", "3:4", "1080*1440"},
	} {
		t.Run(tt.operation+" "+tt.resolution+" "+tt.ratio, func(t *testing.T) {
			t.Parallel()
			params := fmt.Sprintf(`{"prompt":"a","duration":5,"resolution":%q,"aspect_ratio":%q}`, tt.resolution, tt.ratio)
			vendor := providertest.NewVendor(t, videoSuite().Accepted)
			if _, err := videoSuite().Open(t, vendor.URL, providers.Options{}).Submit(t.Context(), jobOf("x", tt.operation, params)); err != nil {
				t.Fatal(err)
			}
			if sent := vendor.Requests()[0].Body; !strings.Contains(sent, fmt.Sprintf(`"size":%q`, tt.want)) {
				t.Errorf("sent %s, want %s", sent, tt.want)
			}
		})
	}
}
