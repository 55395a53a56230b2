package sunoapi_test

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
)

const (
	jobID      = "5c79be8e92d31d53b9c1d2aa8a0c6d6e"
	externalID = "task_01JZZZZZZZZZZZZZZZZZZZZZZZ"
	songID     = "8551662c-7b6e-4a5d-9d4c-8f9a1b2c3d4e"
)

// refusal returns an error as the vendor sends it: with HTTP 200.
func refusal(code int, text string) providertest.Reply {
	return plain(200, fmt.Sprintf(`{"code":%d,"msg":%s,"data":null}`, code, quote(text)))
}

func retried(after time.Duration, reply providertest.Reply) providertest.Row {
	return providertest.Row{Reply: reply, Kind: mediagate.KindThrottled, RetryAfter: after}
}

// everyCall returns the rows and those that all calls share.
func everyCall(rows map[string]providertest.Row) map[string]providertest.Row {
	all := map[string]providertest.Row{
		"401":               {Reply: refusal(401, "no access"), Kind: mediagate.KindCredentials, Code: mediagate.CodeProviderRefused},
		"402":               row(mediagate.KindFunds, refusal(402, "insufficient credits")),
		"404":               row(mediagate.KindNotFound, refusal(404, "not found")),
		"405":               retried(time.Second, refusal(405, "call frequency")),
		"429":               row(mediagate.KindFunds, refusal(429, "insufficient credits")),
		"429 with HTTP 429": row(mediagate.KindFunds, plain(429, `{"code":429,"msg":"insufficient credits"}`)),
		"429 as a text":     row(mediagate.KindFunds, plain(200, `{"code":"429","msg":"insufficient credits"}`)),
		"430":               retried(time.Second, refusal(430, "too frequent")),
		"455":               retried(30*time.Second, refusal(455, "maintenance")),
	}
	maps.Copy(all, rows)
	return all
}

func song(id, rest string) string {
	return fmt.Sprintf(`{"id":%q,"audioUrl":"https://cdn.example.com/%s.mp3?sig=abc","streamAudioUrl":"https://cdn.example.com/stream","imageUrl":"https://cdn.example.com/%s.jpeg",`+
		`"prompt":"[Verse]\nSnow","modelName":"chirp-v5","title":"Winter","tags":"pop","createTime":1772366400000,"duration":198.44%s}`, id, id, id, rest)
}

// record returns the answer to a query for a job.
func record(id, rest string) providertest.Reply {
	return plain(200, fmt.Sprintf(`{"code":200,"msg":"success","data":{"taskId":%q,"parentMusicId":"","param":"{}","type":"GENERATE"%s}}`, id, rest))
}

func songs(items ...string) string {
	return `,"response":{"taskId":"` + jobID + `","sunoData":[` + strings.Join(items, ",") + `]},"errorCode":null,"errorMessage":null`
}

func job(operation, params string, source *mediagate.Source) mediagate.Job {
	return mediagate.Job{
		TaskID: externalID, ExternalID: externalID, Upstream: "V5", Operation: operation, Params: []byte(params), Source: source,
	}
}

func own(seconds float64) *mediagate.Source {
	return &mediagate.Source{VendorID: songID, Ref: mediagate.JobRef{JobID: jobID}, Own: true, Clip: &mediagate.Clip{Seconds: seconds}}
}

const (
	spring  = `{"custom":true,"instrumental":false,"prompt":"[Verse]\nSnow","tags":"pop","version":"v5"}`
	section = `{"start_s":10,"end_s":30}`
)

func suite() providertest.Suite {
	ref := mediagate.JobRef{JobID: jobID, ExternalID: externalID, Operation: "song"}
	long := func(n int) string { return strings.Repeat("a", n) }
	span := func(from, to string) string { return `{"start_s":` + from + `,"end_s":` + to + `}` }
	return providertest.Suite{
		Channel: mediagate.Channel{
			Name: "sunoapi-a", Provider: "sunoapi", Credentials: mediagate.Secrets(map[string]string{"api_key": "9d1f4bX9mQ2vT7pW8nR3kL5"}),
		},
		Job:    job("song", spring, nil),
		Others: []mediagate.Job{job("replace", section, own(198)), job("stems", `{}`, own(0))},
		Inexpressible: []mediagate.Job{
			job("song", `{"custom":false,"gpt_description":"a","version":"v5.5"}`, nil),
			job("song", `{"custom":true,"auto_lyrics":true,"prompt":"a","version":"v5"}`, nil),
			job("song", `{"custom":true,"version":"v4","prompt":"`+long(3001)+`"}`, nil),
			job("song", `{"custom":true,"version":"v5","prompt":"a","tags":"`+long(1001)+`"}`, nil),
			job("song", `{"custom":false,"version":"v5","gpt_description":"`+long(501)+`"}`, nil),
			job("song", spring, &mediagate.Source{VendorID: "1"}),
			job("replace", span("10", "15.99"), own(198)),
			job("replace", span("10", "70.01"), own(198)),
			job("replace", span("10", "30.01"), own(40)),
			job("replace", section, nil),
			job("replace", section, &mediagate.Source{VendorID: songID, URL: "https://media.example.com/song.mp3"}),
			job("replace", section, &mediagate.Source{VendorID: songID, Own: true}),
			job("stems", `{}`, &mediagate.Source{Ref: mediagate.JobRef{JobID: jobID}, Own: true}),
			job("stems", `{}`, nil),
		},
		Accepted:   plain(200, fmt.Sprintf(`{"code":200,"msg":"success","data":{"taskId":%q}}`, jobID)),
		Submission: mediagate.Submission{Ref: ref},
		Refused:    func(text string) providertest.Reply { return refusal(400, text) },
		SubmitRows: everyCall(map[string]providertest.Row{
			"400":                  {Reply: refusal(400, "bad model"), Kind: mediagate.KindInvalid, Code: mediagate.CodeInvalidParameters},
			"400 with HTTP 400":    row(mediagate.KindInvalid, plain(400, `{"code":400,"msg":"bad"}`)),
			"413":                  row(mediagate.KindInvalid, refusal(413, "prompt too long")),
			"422":                  row(mediagate.KindInvalid, refusal(422, "bad")),
			"a word":               {Reply: refusal(400, "contains sensitive words"), Kind: mediagate.KindModerated, Code: mediagate.CodeContentPolicy},
			"an artist":            row(mediagate.KindModerated, refusal(413, "The prompt contained artist name: somebody")),
			"500":                  {Reply: refusal(500, "server error"), Kind: mediagate.KindAmbiguous, Code: mediagate.CodeSubmissionUnknown},
			"429 with HTTP 500":    row(mediagate.KindAmbiguous, plain(500, `{"code":429,"msg":"no"}`)),
			"new code":             row(mediagate.KindAmbiguous, refusal(499, "new")),
			"new code, HTTP 400":   row(mediagate.KindInvalid, plain(400, `{"code":499,"msg":"new"}`)),
			"no code, HTTP 429":    row(mediagate.KindThrottled, plain(429, `{"msg":"slow down"}`)),
			"no id":                row(mediagate.KindAmbiguous, plain(200, `{"code":200,"data":{}}`)),
			"id with a line break": row(mediagate.KindAmbiguous, plain(200, `{"code":200,"data":{"taskId":"a\nb"}}`)),
			"id without a code":    row(mediagate.KindAmbiguous, plain(200, `{"data":{"taskId":"1"}}`)),
		}),
		Ref: ref,
		Word: func(word string) providertest.Reply {
			return record(jobID, songs(song(songID, ""))+`,"status":`+quote(word))
		},
		Words: map[string]mediagate.JobState{
			"PENDING": mediagate.JobQueued, "TEXT_SUCCESS": mediagate.JobRunning, "FIRST_SUCCESS": mediagate.JobRunning,
			"SUCCESS": mediagate.JobSucceeded, "CALLBACK_EXCEPTION": mediagate.JobSucceeded,
			"CREATE_TASK_FAILED": mediagate.JobFailed, "GENERATE_AUDIO_FAILED": mediagate.JobFailed, "SENSITIVE_WORD_ERROR": mediagate.JobFailed,
		},
		Failed: func(text string) providertest.Reply {
			return record(jobID, `,"status":"GENERATE_AUDIO_FAILED","errorCode":500,"errorMessage":`+quote(text))
		},
		PollRows: everyCall(map[string]providertest.Row{
			"400":               row(mediagate.KindTransient, refusal(400, "taskId")),
			"500":               row(mediagate.KindTransient, refusal(500, "server error")),
			"429 with HTTP 500": row(mediagate.KindTransient, plain(500, `{"code":429,"msg":"no"}`)),
			"new code":          row(mediagate.KindTransient, refusal(499, "new")),
			"no data":           row(mediagate.KindTransient, plain(200, `{"code":200,"data":null}`)),
		}),
		ProtocolErrors: map[string]providertest.Reply{
			"another job": record("1", songs(song(songID, ""))+`,"status":"SUCCESS"`),
		},
		Partial: map[string]providertest.Partial{
			"a song without a file": {
				Reply: record(jobID, songs(`{"id":"1","audioUrl":null}`, `{"id":"2","audioUrl":"https://cdn.example.com/2.mp3"}`)+`,"status":"SUCCESS"`),
				Media: []mediagate.Media{{URL: "https://cdn.example.com/2.mp3", Index: 1}}, Clips: []string{"1", "2"},
			},
			"a song that did not come with its callback": {
				Reply: record(jobID, songs(`{"id":"1","audioUrl":"https://cdn.example.com/1.mp3"}`, `{"id":"2","audioUrl":""}`)+`,"status":"CALLBACK_EXCEPTION"`),
				Media: []mediagate.Media{{URL: "https://cdn.example.com/1.mp3"}}, Clips: []string{"1", "2"},
			},
		},
		WithoutMedia: map[string]providertest.Reply{
			"no songs":            record(jobID, songs()+`,"status":"SUCCESS"`),
			"no response":         record(jobID, `,"status":"SUCCESS"`),
			"a preview alone":     record(jobID, songs(`{"id":"1","audioUrl":"","streamAudioUrl":"https://cdn.example.com/stream"}`)+`,"status":"SUCCESS"`),
			"a link that is none": record(jobID, songs(`{"id":"1","audioUrl":"file:///etc/passwd"}`)+`,"status":"SUCCESS"`),
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
