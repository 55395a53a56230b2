package acedata_test

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

// These are short names for the tables below.
var (
	quote = providertest.Quote
	plain = providertest.Plain
	row   = providertest.RowOf
	coded = providertest.RowWithCode
)

const (
	jobID      = "eae26f89-b64b-404d-a80c-761996660b1c"
	externalID = "task_01JZZZZZZZZZZZZZZZZZZZZZZZ"
	clipID     = "b8a4f691-4b14-4120-a7e1-a54a27a0e57e"
	uploadID   = "00135f7d-cda1-4d70-b007-779f07143586"
	personaID  = "dae4ae5d-2b51-4af1-b286-1a4473ef4dba"
	songLink   = "https://media.example.com/song.mp3"
)

func refusal(status int, code, text string) providertest.Reply {
	return plain(status, fmt.Sprintf(`{"success":false,"error":{"code":%s,"message":%s},"trace_id":"2cf86e86-22a4-46e1-ac2f-032c0f2a4e89"}`, quote(code), quote(text)))
}

func retried(kind mediagate.Kind, reply providertest.Reply) providertest.Row {
	return providertest.Row{Reply: reply, Kind: kind, RetryAfter: time.Second}
}

// everyCall adds to rows the errors that mean the same for all calls.
func everyCall(rows map[string]providertest.Row) map[string]providertest.Row {
	all := map[string]providertest.Row{
		"no_token":                row(mediagate.KindCredentials, refusal(400, "no_token", "No token specified for the request.")),
		"invalid_token":           coded(mediagate.KindCredentials, mediagate.CodeProviderRefused, refusal(401, "invalid_token", "wrong")),
		"token_expired":           row(mediagate.KindCredentials, refusal(401, "token_expired", "token expired.")),
		"token_mismatched":        row(mediagate.KindCredentials, refusal(400, "token_mismatched", "no match")),
		"disabled":                row(mediagate.KindCredentials, refusal(400, "disabled", "abnormal usage")),
		"used_up":                 row(mediagate.KindFunds, refusal(403, "used_up", "Your balance is not sufficient")),
		"used_up with 200":        row(mediagate.KindFunds, refusal(200, "used_up", "Your balance is not sufficient")),
		"forbidden for a balance": row(mediagate.KindFunds, refusal(403, "forbidden", "insufficient balance")),
		"too_many_requests":       retried(mediagate.KindThrottled, refusal(429, "too_many_requests", "slow down")),
		"busy":                    retried(mediagate.KindThrottled, refusal(429, "busy", "throttled from upstream")),
	}
	maps.Copy(all, rows)
	return all
}

func submitRows() map[string]providertest.Row {
	rows := map[string]providertest.Row{
		"bad_request":              coded(mediagate.KindInvalid, mediagate.CodeInvalidParameters, refusal(400, "bad_request", "Title too long.")),
		"bad_request with 200":     row(mediagate.KindInvalid, refusal(200, "bad_request", "Title too long.")),
		"forbidden, malformed":     row(mediagate.KindInvalid, refusal(403, "forbidden", "Prompt likely malformed")),
		"forbidden, else":          row(mediagate.KindForbidden, refusal(403, "forbidden", "Generic openAI error")),
		"no_api":                   row(mediagate.KindNotFound, refusal(404, "no_api", "API does not exist")),
		"api_not_implemented":      row(mediagate.KindNotFound, refusal(400, "api_not_implemented", "no")),
		"api_error":                coded(mediagate.KindAmbiguous, mediagate.CodeSubmissionUnknown, refusal(500, "api_error", "no available worker in system")),
		"api_error with 200":       row(mediagate.KindAmbiguous, refusal(200, "api_error", "fetch failed")),
		"timeout":                  row(mediagate.KindAmbiguous, refusal(504, "timeout", "timeout while waiting")),
		"busy with 500":            row(mediagate.KindAmbiguous, refusal(500, "busy", "throttled from upstream")),
		"used_up with 500":         row(mediagate.KindAmbiguous, refusal(500, "used_up", "no")),
		"new code with 400":        row(mediagate.KindInvalid, refusal(400, "novel", "new")),
		"new code with 402":        row(mediagate.KindFunds, refusal(402, "novel", "new")),
		"new code with 409":        row(mediagate.KindAmbiguous, refusal(409, "novel", "new")),
		"new code with 429":        row(mediagate.KindThrottled, refusal(429, "novel", "new")),
		"new code with 200":        row(mediagate.KindAmbiguous, refusal(200, "novel", "new")),
		"no id":                    row(mediagate.KindAmbiguous, plain(200, `{"success":true}`)),
		"empty id":                 row(mediagate.KindAmbiguous, plain(200, `{"task_id":""}`)),
		"id with a line break":     row(mediagate.KindAmbiguous, plain(200, `{"task_id":"a\nb"}`)),
		"id that is an object":     row(mediagate.KindAmbiguous, plain(200, `{"task_id":{}}`)),
		"refused beside an id":     row(mediagate.KindInvalid, plain(200, `{"success":false,"task_id":"1","error":{"code":"bad_request","message":"no"}}`)),
		"error that is a text":     row(mediagate.KindInvalid, plain(400, `{"error":"bad"}`)),
		"id with 400":              row(mediagate.KindInvalid, plain(400, `{"task_id":"1"}`)),
		"refused beside no status": row(mediagate.KindModerated, plain(200, `{"error":{"code":"forbidden","message":"Prompt flagged for moderation"}}`)),
	}
	for _, text := range []string{
		"Prompt likely copyrighted", "Prompt contained inappropriate material", "Song Description flagged for moderation",
		"Song Description contained artist name: somebody", "Tags contained artist name", "Lyrics contained copyrighted material",
		"Song Description contained producer tag", "Prompt flagged for moderation",
	} {
		rows[text] = coded(mediagate.KindModerated, mediagate.CodeContentPolicy, refusal(403, "forbidden", text))
	}
	rows["an upload of somebody's work"] = row(mediagate.KindModerated, refusal(400, "bad_request", "Uploaded audio matches existing work of art."))
	return everyCall(rows)
}

// song returns one song of a task, with more fields.
func song(id, rest string) string {
	return fmt.Sprintf(`{"id":%q,"title":"Holiday Wishes","image_url":"https://cdn.example.com/%s.jpeg?sig=abc","lyric":"[Verse]\nSnow","audio_url":"https://cdn.example.com/%s.mp3?sig=abc",`+
		`"video_url":"","created_at":"2024-08-31T05:44:54.806Z","model":"chirp-v5","style":"pop"%s}`, id, id, id, rest)
}

// record returns a task in the answer to a query.
func record(id, rest string) string {
	return fmt.Sprintf(`{"_id":"66d2","id":%q,"created_at":1725083093.077%s}`, id, rest)
}

func response(rest string) string {
	return `,"request":{"action":"generate"},"response":{` + rest + `}`
}

// worded returns a task with the vendor's status word.
func worded(id, word string) string {
	if word == "" {
		return fmt.Sprintf(`{"id":%q,"state":""}`, id)
	}
	return record(id, `,"state":`+quote(word)+response(`"success":true,"data":[`+song(clipID, `,"duration":154.44`)+`]`))
}

var words = map[string]mediagate.JobState{
	"pending": mediagate.JobQueued, "processing": mediagate.JobRunning, "running": mediagate.JobRunning,
	"complete": mediagate.JobSucceeded, "succeeded": mediagate.JobSucceeded,
	"failed": mediagate.JobFailed, "error": mediagate.JobFailed, "cancelled": mediagate.JobFailed, "canceled": mediagate.JobFailed,
}

func own() *mediagate.Source { return &mediagate.Source{VendorID: clipID, Own: true} }

func foreign() *mediagate.Source { return &mediagate.Source{VendorID: "77", URL: songLink} }

const spring = `{"custom":true,"instrumental":false,"prompt":"[Verse]\nSnow","tags":"pop","version":"v5"}`

func job(operation, params string, source *mediagate.Source) mediagate.Job {
	j := mediagate.Job{
		TaskID: externalID, ExternalID: externalID, Upstream: "chirp-v5", Operation: operation, Params: []byte(params), Source: source,
	}
	if strings.HasPrefix(operation, "flow") {
		j.Upstream = "FUZZ-2.0 Pro"
	}
	return j
}

// jobs returns one job of each operation.
func jobs() map[string]mediagate.Job {
	return map[string]mediagate.Job{
		"song":         job("song", spring, nil),
		"remaster":     job("remaster", `{"version":"v5"}`, own()),
		"stems":        job("stems", `{}`, own()),
		"replace":      job("replace", `{"start_s":1,"end_s":9}`, own()),
		"voice":        job("voice", `{"audio_url":"https://media.example.com/voice.mp3"}`, nil),
		"flow_song":    job("flow_song", `{"sound_prompt":"snow"}`, nil),
		"flow_stems":   job("flow_stems", `{}`, own()),
		"flow_replace": job("flow_replace", `{"start_s":1,"end_s":9,"instruction":"a solo"}`, own()),
	}
}

// suiteOf returns the suite for a job of the operation.
func suiteOf(operation string) providertest.Suite {
	all := jobs()
	first := all[operation]
	var others []mediagate.Job
	for name, j := range all {
		if name != operation {
			others = append(others, j)
		}
	}
	ref := mediagate.JobRef{JobID: jobID, ExternalID: externalID, Operation: operation}
	api := "/suno"
	if strings.HasPrefix(operation, "flow") {
		api = "/producer"
	}
	long := func(n int) string { return strings.Repeat("a", n) }
	return providertest.Suite{
		Channel: mediagate.Channel{
			Name: "acedata-a", Provider: "acedata", Credentials: mediagate.Secrets(map[string]string{"api_key": "8f0c4bX9mQ2vT7pW8nR3kL5"}),
		},
		Job:    first,
		Others: others,
		Inexpressible: []mediagate.Job{
			job("song", `{"version":"v6"}`, nil),
			job("song", `{"custom":true,"version":"v4","prompt":"`+long(3001)+`"}`, nil),
			job("song", `{"custom":true,"version":"v5","prompt":"`+long(5001)+`"}`, nil),
			job("song", `{"custom":true,"version":"v4","prompt":"a","tags":"`+long(201)+`"}`, nil),
			job("song", `{"custom":true,"version":"v5","prompt":"a","title":"`+long(101)+`"}`, nil),
			job("song", `{"custom":false,"version":"v5","gpt_description":"`+long(501)+`"}`, nil),
			job("song", spring, &mediagate.Source{VendorID: personaID}),
			job("remaster", `{"version":"v5"}`, nil),
			job("remaster", `{"version":"v5"}`, &mediagate.Source{VendorID: clipID}),
			job("remaster", `{"version":"v5"}`, &mediagate.Source{Own: true}),
			job("replace", `{"start_s":1,"end_s":9,"infill_lyrics":"`+long(5001)+`"}`, own()),
			job("stems", `{}`, nil),
			job("flow_stems", `{}`, &mediagate.Source{VendorID: clipID}),
			job("flow_replace", `{"start_s":1,"end_s":9,"instruction":"a"}`, nil),
			job("voice", `{}`, nil),
		},
		Accepted:   plain(200, fmt.Sprintf(`{"task_id":%q}`, jobID)),
		Submission: mediagate.Submission{Ref: ref},
		Refused:    func(text string) providertest.Reply { return refusal(400, "bad_request", text) },
		SubmitRows: submitRows(),
		Ref:        ref,
		Word:       func(word string) providertest.Reply { return plain(200, worded(jobID, word)) },
		Words:      words,
		Failed: func(text string) providertest.Reply {
			return plain(200, record(jobID, response(`"success":false,"error":{"code":"api_error","message":`+quote(text)+`}`)))
		},
		PollRows: everyCall(map[string]providertest.Row{
			"not_found":           row(mediagate.KindNotFound, refusal(404, "not_found", "no such task")),
			"not_found with 500":  row(mediagate.KindTransient, refusal(500, "not_found", "no")),
			"no_api":              row(mediagate.KindTransient, refusal(404, "no_api", "no")),
			"404 that is no code": row(mediagate.KindTransient, plain(404, `{"message":"no route"}`)),
			"bad_request":         row(mediagate.KindTransient, refusal(400, "bad_request", "id")),
			"forbidden":           row(mediagate.KindTransient, refusal(403, "forbidden", "Prompt flagged for moderation")),
			"api_error":           row(mediagate.KindTransient, refusal(500, "api_error", "fetch failed")),
			"new code":            row(mediagate.KindTransient, refusal(400, "novel", "new")),
		}),
		ProtocolErrors: map[string]providertest.Reply{
			"another job":           plain(200, worded("1", "succeeded")),
			"a response of another": plain(200, `{"response":{"success":true,"task_id":"1","data":[`+song(clipID, "")+`]}}`),
			"no id":                 plain(200, `{"state":"succeeded","response":{"success":true,"data":[`+song(clipID, "")+`]}}`),
		},
		Partial: map[string]providertest.Partial{
			"a song without an id": {
				Reply: plain(200, record(jobID, response(`"success":true,"data":[{"audio_url":"https://cdn.example.com/1.mp3"}]`))),
				Media: []mediagate.Media{{URL: "https://cdn.example.com/1.mp3"}}, Clips: []string{""},
			},
			"a song without a file": {
				Reply: plain(200, record(jobID, response(`"success":true,"data":[{"id":"1","audio_url":null,"image_url":"https://cdn.example.com/1.png"},{"id":"2","audio_url":"https://cdn.example.com/2.mp3"}]`))),
				Media: []mediagate.Media{{URL: "https://cdn.example.com/2.mp3", Index: 1}}, Clips: []string{"1", "2"},
			},
		},
		WithoutMedia: map[string]providertest.Reply{
			"no songs":               plain(200, record(jobID, response(`"success":true,"data":[]`))),
			"songs of an odd type":   plain(200, record(jobID, response(`"success":true,"data":{"id":"1"}`))),
			"a song without a file":  plain(200, record(jobID, response(`"success":true,"data":[{"id":"1","audio_url":""}]`))),
			"a link that is none":    plain(200, record(jobID, response(`"success":true,"data":[{"id":"1","audio_url":"file:///etc/passwd"}]`))),
			"success and nothing":    plain(200, record(jobID, `,"state":"succeeded"`)),
			"success without a word": plain(200, record(jobID, `,"state":"complete","response":{"data":[]}`)),
		},
		BatchCall: func(ids []string) string {
			return "POST " + api + `/tasks` + "\n" + `{"action":"retrieve_batch","ids":["` + strings.Join(ids, `","`) + `"]}`
		},
		Batch: func(ids, states []string) providertest.Reply {
			var items []string
			for i := range ids {
				items = append(items, worded(ids[i], states[i]))
			}
			return plain(200, fmt.Sprintf(`{"items":[%s],"count":%d}`, strings.Join(items, ","), len(items)))
		},
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	providertest.Run(t, suiteOf("song"))
}

var uploaded = plain(200, fmt.Sprintf(`{"success":true,"task_id":"058f8450","data":{"audio_id":%q,"duration":131.16}}`, uploadID))

// TestUploadConformance uploads a song of another account ahead of the submission.
func TestUploadConformance(t *testing.T) {
	t.Parallel()
	s := suiteOf("remaster")
	s.Job.Source = foreign()
	s.BeforeSubmit = []providertest.Exchange{{Route: "POST /suno/upload", Reply: uploaded}}
	providertest.Run(t, s)
}

func TestVoiceConformance(t *testing.T) {
	t.Parallel()
	s := suiteOf("voice")
	s.BeforeSubmit = []providertest.Exchange{{Route: "POST /suno/upload", Reply: uploaded}}
	s.Word = nil
	s.Accepted = plain(200, fmt.Sprintf(`{"success":true,"task_id":%q,"data":{"persona_id":%q}}`, jobID, personaID))
	s.Submission = mediagate.Submission{
		Ref:     mediagate.JobRef{JobID: jobID, ExternalID: externalID, Operation: "voice", State: uploadID},
		Outcome: &mediagate.Outcome{Succeeded: true, Made: &mediagate.Made{Voices: []string{personaID}}},
	}
	s.SubmitRows["no voice"] = row(mediagate.KindAmbiguous, plain(200, `{"success":true,"task_id":"1","data":{}}`))
	s.SubmitRows["a voice that failed"] = row(mediagate.KindAmbiguous, plain(200, `{"success":false,"data":{"persona_id":"1"}}`))
	providertest.Run(t, s)
}

func TestGolden(t *testing.T) {
	t.Parallel()
	suiteOf("song").Golden(t, "testdata/*.txtar", *update)
}

func FuzzDecodeSong(f *testing.F) { providertest.Fuzz(f, suiteOf("song")) }

func FuzzDecodeProducer(f *testing.F) { providertest.Fuzz(f, suiteOf("flow_song")) }
