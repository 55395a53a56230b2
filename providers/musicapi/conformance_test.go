package musicapi_test

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
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
)

const (
	jobID      = "6a9e5a1c-7d1f-4d0e-9c61-0f1c7c2b8f11"
	externalID = "task_01JZZZZZZZZZZZZZZZZZZZZZZZ"
	clipID     = "26c9c592-0566-46cf-bb71-91ac1deaa7b5"
)

// refusal returns an error as the vendor sends it: its code is the HTTP status.
func refusal(status int, text string) providertest.Reply {
	return plain(status, fmt.Sprintf(`{"code":%d,"message":%s}`, status, quote(text)))
}

// everyCall returns the rows and those that all calls share.
func everyCall(rows map[string]providertest.Row) map[string]providertest.Row {
	all := map[string]providertest.Row{
		"401":                   {Reply: refusal(401, "Invalid authorization format."), Kind: mediagate.KindCredentials, Code: mediagate.CodeProviderRefused},
		"401 within 200":        row(mediagate.KindCredentials, plain(200, `{"code":401,"message":"Authorization header is missing."}`)),
		"403, credits":          row(mediagate.KindFunds, refusal(403, "The remaining credits are not enough. You can buy more one-time credit packs or subscribe.")),
		"403, credits in error": row(mediagate.KindFunds, plain(403, `{"error":"The remaining credits are not enough."}`)),
		"403, subscription":     row(mediagate.KindFunds, refusal(403, "You do not have an active subscription. Please check whether your renewal was successful.")),
		"402":                   row(mediagate.KindFunds, refusal(402, "pay")),
		"429":                   {Reply: refusal(429, "slow down"), Kind: mediagate.KindThrottled, RetryAfter: 3 * time.Second},
	}
	maps.Copy(all, rows)
	return all
}

func submitRows() map[string]providertest.Row {
	rows := map[string]providertest.Row{
		"400":                   {Reply: refusal(400, "The 'mv' field is invalid."), Kind: mediagate.KindInvalid, Code: mediagate.CodeInvalidParameters},
		"400 within 200":        row(mediagate.KindInvalid, plain(200, `{"code":400,"message":"The 'mv' field is invalid.","task_id":"1"}`)),
		"400, somebody's work":  row(mediagate.KindModerated, refusal(400, "Uploaded audio matches existing work of art.")),
		"403, format":           {Reply: refusal(403, "The lyrics format is invalid. Please check and try again."), Kind: mediagate.KindInvalid, Code: mediagate.CodeInvalidParameters},
		"403, else":             row(mediagate.KindForbidden, refusal(403, "no")),
		"404":                   row(mediagate.KindNotFound, refusal(404, "no")),
		"409":                   row(mediagate.KindAmbiguous, refusal(409, "no")),
		"500":                   {Reply: refusal(500, "Internal Server Error."), Kind: mediagate.KindAmbiguous, Code: mediagate.CodeSubmissionUnknown},
		"500 within 200":        row(mediagate.KindAmbiguous, plain(200, `{"code":500,"message":"Internal Server Error."}`)),
		"504":                   row(mediagate.KindAmbiguous, refusal(504, "Task failed due to timeout. Credits were previously refunded.")),
		"403 within 500":        row(mediagate.KindAmbiguous, plain(500, `{"code":403,"message":"The remaining credits are not enough."}`)),
		"new code":              row(mediagate.KindAmbiguous, plain(200, `{"code":1,"message":"new","task_id":"1"}`)),
		"no id":                 row(mediagate.KindAmbiguous, plain(200, `{"code":200,"message":"success"}`)),
		"id with a line break":  row(mediagate.KindAmbiguous, plain(200, `{"message":"success","task_id":"a\nb"}`)),
		"id that is an object":  row(mediagate.KindAmbiguous, plain(200, `{"message":"success","task_id":{}}`)),
		"id with 400":           row(mediagate.KindInvalid, plain(400, `{"task_id":"1"}`)),
		"error in another word": row(mediagate.KindInvalid, plain(400, `{"error":"bad"}`)),
	}
	for _, text := range []string{
		"The lyrics contain copyrighted content: 'a'. Please use original lyrics.", "The lyrics contain inappropriate content: 'a'.",
		"The song description needs moderation review.", "The song description contains artist names: 'a' which is not allowed.",
		"The song description contains producer tags: 'a' which is not allowed.",
	} {
		rows[text] = providertest.Row{Reply: refusal(403, text), Kind: mediagate.KindModerated, Code: mediagate.CodeContentPolicy}
	}
	return everyCall(rows)
}

func clip(id, state, rest string) string {
	return fmt.Sprintf(`{"clip_id":%q,"state":%s,"title":"Winter","tags":"pop","lyrics":"[Verse]\nSnow","image_url":"https://cdn.example.com/image_%s.jpeg?sig=abc",`+
		`"audio_url":"https://cdn.example.com/%s.mp3?sig=abc","video_url":null,"created_at":"2026-03-01T12:00:00.000Z","mv":"sonic-v5","gpt_description_prompt":null,`+
		`"duration":"198.44"%s}`, id, quote(state), id, id, rest)
}

// task returns the answer to a query for a job.
func task(clips ...string) providertest.Reply {
	return plain(200, `{"code":200,"data":[`+strings.Join(clips, ",")+`],"message":"success"}`)
}

func job(params string, source *mediagate.Source) mediagate.Job {
	return mediagate.Job{
		TaskID: externalID, ExternalID: externalID, Upstream: "sonic", Operation: "sample", Params: []byte(params), Source: source,
	}
}

func own() *mediagate.Source { return &mediagate.Source{VendorID: clipID, Own: true} }

const spring = `{"custom":true,"prompt":"[Verse]\nSnow","tags":"pop","version":"v5"}`

func suite() providertest.Suite {
	ref := mediagate.JobRef{JobID: jobID, ExternalID: externalID, Operation: "sample"}
	long := func(n int) string { return strings.Repeat("a", n) }
	return providertest.Suite{
		Channel: mediagate.Channel{
			Name: "musicapi-a", Provider: "musicapi", Credentials: mediagate.Secrets(map[string]string{"api_key": "9d1f4bX9mQ2vT7pW8nR3kL5"}),
		},
		NoJobID: true,
		Job:     job(spring, own()),
		Inexpressible: []mediagate.Job{
			job(`{"custom":false,"gpt_description":"a","version":"v6"}`, own()),
			job(`{"custom":true,"version":"v4","prompt":"`+long(3001)+`"}`, own()),
			job(`{"custom":true,"version":"v5","prompt":"`+long(5001)+`"}`, own()),
			job(`{"custom":true,"version":"v4","prompt":"a","tags":"`+long(201)+`"}`, own()),
			job(`{"custom":true,"prompt":"a","tags":"`+long(1001)+`"}`, own()),
			job(`{"custom":true,"prompt":"a","title":"`+long(81)+`"}`, own()),
			job(`{"custom":false,"gpt_description":"`+long(401)+`"}`, own()),
			job(spring, nil),
			job(spring, &mediagate.Source{VendorID: "1"}),
			job(spring, &mediagate.Source{Own: true}),
		},
		Accepted:   plain(200, fmt.Sprintf(`{"message":"success","task_id":%q}`, jobID)),
		Submission: mediagate.Submission{Ref: ref},
		Refused:    func(text string) providertest.Reply { return refusal(400, text) },
		SubmitRows: submitRows(),
		Ref:        ref,
		Word:       func(word string) providertest.Reply { return task(clip(clipID, word, "")) },
		Words: map[string]mediagate.JobState{
			"pending": mediagate.JobQueued, "running": mediagate.JobRunning, "succeeded": mediagate.JobSucceeded, "failed": mediagate.JobFailed,
		},
		Failed: func(text string) providertest.Reply { return task(clip(clipID, "failed", `,"message":`+quote(text))) },
		PollRows: everyCall(map[string]providertest.Row{
			"task not found":  row(mediagate.KindNotFound, refusal(400, "task not found.")),
			"missing task id": row(mediagate.KindTransient, refusal(400, "missing task id.")),
			"403, else":       row(mediagate.KindTransient, refusal(403, "no")),
			"404":             row(mediagate.KindTransient, refusal(404, "no")),
			"500":             row(mediagate.KindTransient, refusal(500, "Internal Server Error.")),
			"504, else":       row(mediagate.KindTransient, refusal(504, "gateway timeout")),
			"403 within 500":  row(mediagate.KindTransient, plain(500, `{"code":403,"message":"The remaining credits are not enough."}`)),
		}),
		ProtocolErrors: map[string]providertest.Reply{
			"songs of no code":   plain(200, `{"data":[`+clip(clipID, "succeeded", "")+`]}`),
			"not ready with 500": plain(500, `{"type":"not_ready"}`),
		},
		Partial: map[string]providertest.Partial{
			"a song without an id": {
				Reply: task(`{"state":"succeeded","audio_url":"https://cdn.example.com/1.mp3"}`),
				Media: []mediagate.Media{{URL: "https://cdn.example.com/1.mp3"}}, Clips: []string{""},
			},
			"a song without a file": {
				Reply: task(`{"clip_id":"1","state":"succeeded","audio_url":""}`, `{"clip_id":"2","state":"succeeded","audio_url":"https://cdn.example.com/2.mp3"}`),
				Media: []mediagate.Media{{URL: "https://cdn.example.com/2.mp3", Index: 1}}, Clips: []string{"1", "2"},
			},
		},
		WithoutMedia: map[string]providertest.Reply{
			"no songs":            task(),
			"a link that is none": task(`{"clip_id":"1","state":"succeeded","audio_url":"file:///etc/passwd"}`),
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

// The songs of a job end at different times, and some may fail.
func TestSongsTogether(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]struct {
		state mediagate.JobState
		songs []int // the numbers of the songs that have a file
	}{
		"pending pending":     {mediagate.JobQueued, nil},
		"pending running":     {mediagate.JobRunning, nil},
		"succeeded running":   {mediagate.JobRunning, nil},
		"failed running":      {mediagate.JobRunning, nil},
		"succeeded paused":    {mediagate.JobUnknown, nil},
		"paused failed":       {mediagate.JobUnknown, nil},
		"succeeded succeeded": {mediagate.JobSucceeded, []int{0, 1}},
		"failed succeeded":    {mediagate.JobSucceeded, []int{1}},
		"succeeded failed":    {mediagate.JobSucceeded, []int{0}},
		"failed failed":       {mediagate.JobFailed, nil},
	} {
		t.Run(words, func(t *testing.T) {
			t.Parallel()
			first, second, _ := strings.Cut(words, " ")
			s := suite()
			vendor := s.Vendor(t, task(clip("1", first, ""), clip("2", second, "")))
			got, err := s.Open(t, vendor.URL, providers.Options{}).Poll(t.Context(), s.Ref)
			if err != nil || got.State != want.state {
				t.Fatalf("%+v, %v, want %q", got, err, want.state)
			}
			if want.songs == nil {
				return
			}
			var files []int
			for _, m := range got.Outcome.Media {
				if m.Role == mediagate.RoleMain {
					files = append(files, m.Index)
				}
			}
			if len(got.Outcome.Made.Clips) != 2 || !slices.Equal(files, want.songs) || got.Incomplete {
				t.Errorf("%+v", got)
			}
		})
	}
}

func FuzzDecode(f *testing.F) { providertest.Fuzz(f, suite()) }
