package declared_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/all"
	"github.com/mediagate/mediagate/providers/providertest"
)

// A file from a folder makes a complete adapter. This file uses features that no built-in file
// uses, such as a lookup.
func TestConformance(t *testing.T) {
	t.Parallel()
	vendors, err := all.Load("testdata/vendors", nil)
	if err != nil {
		t.Fatal(err)
	}
	const jobID, task = "d-7", "task_01JZZZZZZZZZZZZZZZZZZZZZZZ"
	body := func(word, rest string) string {
		return fmt.Sprintf(`{"id":%q,"reference":%q,"state":%s%s}`, jobID, task, providertest.Quote(word), rest)
	}
	// The suite uses the same answers for polls and lookups. This vendor's lookup reads found, and
	// its poll reads the other members.
	both := func(inner string) providertest.Reply {
		return providertest.Plain(200, inner[:len(inner)-1]+`,"found":[`+inner+`]}`)
	}
	refusal := func(status int, code, why string) providertest.Reply {
		return providertest.Plain(status, fmt.Sprintf(`{"error":%q,"why":%s}`, code, providertest.Quote(why)))
	}
	ref := mediagate.JobRef{JobID: jobID, ExternalID: task, Operation: "draw", State: "us"}
	rows := map[string]providertest.Row{
		"throttled": {Reply: refusal(429, "slow", "no"), Kind: mediagate.KindThrottled, RetryAfter: 2 * time.Second},
	}
	lookups := map[string]providertest.Row{
		"throttled":       rows["throttled"],
		"unknown_drawing": providertest.RowOf(mediagate.KindNotFound, refusal(404, "unknown_drawing", "no")),
		"new error":       providertest.RowOf(mediagate.KindTransient, refusal(400, "novel", "no")),
	}
	const pages = `,"pages":[{"url":"https://cdn.example.com/1.png","type":"image/png"}]`
	providertest.Run(t, providertest.Suite{
		Vendors: vendors,
		Channel: mediagate.Channel{
			Name: "drawings-a", Provider: "drawings", Options: map[string]string{"region": "us"},
			Credentials: mediagate.Secrets(map[string]string{"key_id": "key-4bX9mQ2v", "secret": "T7pW8nR3kL5vB6x"}),
		},
		Prefix: "/api",
		Job: mediagate.Job{
			TaskID: task, ExternalID: task, Upstream: "d", Operation: "draw", Params: []byte(`{"prompt":"a fox","seed":7}`),
		},
		Inexpressible: []mediagate.Job{{Operation: "draw", Params: []byte(`{"prompt":"a fox","seed":13}`)}},
		Accepted:      providertest.Plain(200, body("waiting", "")),
		Submission:    mediagate.Submission{Ref: ref},
		Refused:       func(text string) providertest.Reply { return refusal(400, "bad_text", text) },
		SubmitRows:    rows,
		Ref:           ref,
		Word:          func(word string) providertest.Reply { return both(body(word, pages)) },
		Words: map[string]mediagate.JobState{
			"waiting": mediagate.JobQueued, "drawing": mediagate.JobRunning, "drawn": mediagate.JobSucceeded,
			"lost": mediagate.JobFailed, "banned": mediagate.JobFailed,
		},
		Failed:         func(text string) providertest.Reply { return both(body("lost", `,"why":`+providertest.Quote(text))) },
		PollRows:       lookups,
		ProtocolErrors: map[string]providertest.Reply{"another job": providertest.Plain(200, `{"id":"d-8","reference":"x","state":"drawn","found":[{"id":"d-8","reference":"x"}]}`)},
		WithoutMedia:   map[string]providertest.Reply{"no pages": both(body("drawn", ""))},
		Stop:           "POST /api/drawings/" + jobID + "/stop",
		Stopped:        providertest.Plain(204, ""),
	})
}
