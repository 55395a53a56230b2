package toy_test

import (
	"flag"
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/providertest"
)

var update = flag.Bool("update", false, "rewrite golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	jobID      = "3b0c5a1e-8d8f-4a52-9f0e-0a9d1f6f7c11"
	externalID = "task_01JZZZZZZZZZZZZZZZZZZZZZZZ"
)

func job(id, word, rest string) providertest.Reply {
	return providertest.Reply{Body: fmt.Sprintf(`{"id":%q,"state":%q%s}`, id, word, rest)}
}

func refusal(status int, code string) providertest.Reply {
	return providertest.Reply{Status: status, Body: fmt.Sprintf(`{"error":%q}`, code)}
}

const picture = `,"picture":"https://pictures.example.com/1.png"`

func suite() providertest.Suite {
	ref := mediagate.JobRef{JobID: jobID, ExternalID: externalID, Operation: "draw"}
	first := mediagate.Job{
		TaskID: externalID, ExternalID: externalID, Upstream: "toy-1", Operation: "draw",
		Params: []byte(`{"prompt":"a cat","style":"plain"}`),
	}
	noir := first
	noir.Params = []byte(`{"prompt":"a cat","style":"noir"}`)
	return providertest.Suite{
		Channel: mediagate.Channel{
			Name: "toy-a", Provider: "toy", Credentials: mediagate.Secrets(map[string]string{"api_key": "sk-tOy4mQ9xW2vB8nR"}),
		},
		Job:           first,
		Inexpressible: []mediagate.Job{noir},
		Accepted:      job(jobID, "waiting", ""),
		Submission:    mediagate.Submission{Ref: ref},
		Refused:       func(string) providertest.Reply { return refusal(400, "bad_request") },
		SubmitRows: map[string]providertest.Row{
			"bad_key":           {Reply: refusal(401, "bad_key"), Kind: mediagate.KindCredentials},
			"bad_request":       {Reply: refusal(400, "bad_request"), Kind: mediagate.KindInvalid},
			"forbidden_content": {Reply: refusal(400, "forbidden_content"), Kind: mediagate.KindModerated},
			"busy":              {Reply: refusal(429, "busy"), Kind: mediagate.KindThrottled},
			"broken":            {Reply: refusal(500, "broken"), Kind: mediagate.KindAmbiguous},
			"busy with 500":     {Reply: refusal(500, "busy"), Kind: mediagate.KindAmbiguous},
		},
		Ref:  ref,
		Word: func(word string) providertest.Reply { return job(jobID, word, picture) },
		Words: map[string]mediagate.JobState{
			"waiting": mediagate.JobQueued, "drawing": mediagate.JobRunning, "drawn": mediagate.JobSucceeded, "spoilt": mediagate.JobFailed,
		},
		Failed: func(string) providertest.Reply { return job(jobID, "spoilt", "") },
		PollRows: map[string]providertest.Row{
			"bad_key":     {Reply: refusal(401, "bad_key"), Kind: mediagate.KindCredentials},
			"busy":        {Reply: refusal(429, "busy"), Kind: mediagate.KindThrottled},
			"bad_request": {Reply: refusal(400, "bad_request"), Kind: mediagate.KindTransient},
			"no_drawing":  {Reply: refusal(404, "no_drawing"), Kind: mediagate.KindNotFound},
		},
		Lies: map[string]providertest.Reply{"another job": job("j8", "drawn", picture)},
		Bare: map[string]providertest.Reply{"no picture": job(jobID, "drawn", "")},
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
