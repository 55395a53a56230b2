package workflows_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/channel"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/workflows"
)

// wording is how a vendor of these tests words the canonical request.
type wording func(job mediagate.Job, request map[string]any) map[string]any

func inScenes(job mediagate.Job, request map[string]any) map[string]any {
	return map[string]any{"model_name": job.Upstream, "scenes": []any{map[string]any{"text": request["prompt"]}}}
}

func inSeconds(job mediagate.Job, request map[string]any) map[string]any {
	return map[string]any{"engine": job.Upstream, "input": request["prompt"], "frames": request["duration"].(float64) * 24}
}

// listens makes a vendor note the requests that it is sent, in its own words,
// and refuse its first calls for these reasons.
func listens(v *activitytest.Vendor, words wording, kinds ...mediagate.Kind) *[]map[string]any {
	heard := &[]map[string]any{}
	v.OnSubmit = func(_ context.Context, job mediagate.Job) (mediagate.Submission, error) {
		var request map[string]any
		if err := json.Unmarshal(job.Params, &request); err != nil {
			return mediagate.Submission{}, err
		}
		call := len(*heard)
		*heard = append(*heard, words(job, request))
		if call < len(kinds) {
			return mediagate.Submission{}, mediagate.Errorf(kinds[call], "no")
		}
		return v.Accept(job)
	}
	return heard
}

// twoRoutes is a video that two vendors could make.
func twoRoutes(w *activitytest.World) mediagate.Task {
	t := w.NewVideo()
	t.Params = json.RawMessage(`{"prompt":"a dog","duration":5}`)
	t.Plan.Routes = append(t.Plan.Routes,
		mediagate.Route{Provider: activitytest.AsyncProvider, Upstream: "upstream-v3-omni", Operation: "omni"}, // of the same account
		mediagate.Route{Provider: "second", Upstream: "motion-2", Operation: "clip"},
	)
	return t
}

// second adds the channel of the second route.
func (b *bundle) second() *activitytest.Vendor {
	v := &activitytest.Vendor{}
	b.Descriptions.Set("second", providers.Operation{Submit: 30 * time.Second, Find: true})
	b.Channels.Set(b.AsyncBound(), channel.Channel{
		Channel:     mediagate.Channel{Name: "second-a", Provider: "second", PollMin: 2 * time.Second, PollMax: 15 * time.Second},
		Fingerprint: "account-2", Vendor: v.Finding(),
	})
	return v
}

// What one vendor refuses for now the next attempt asks of the other, in that
// one's words: the task keeps what the client meant, and no vendor's wording.
func TestTheNextRouteHasItsOwnWords(t *testing.T) {
	t.Parallel()
	first := map[string]any{"model_name": "upstream-v3", "scenes": []any{map[string]any{"text": "a dog"}}}
	other := map[string]any{"engine": "motion-2", "input": "a dog", "frames": 120.0}
	full := mediagate.KindCapacity
	for name, c := range map[string]struct {
		firstSays, secondSays []mediagate.Kind
		first, second         []map[string]any
		channel               string // that makes the job
	}{
		"the first takes it":    {nil, nil, []map[string]any{first}, []map[string]any{}, activitytest.AsyncChannel},
		"the first is full":     {[]mediagate.Kind{full}, nil, []map[string]any{first}, []map[string]any{other}, "second-a"},
		"both are full":         {[]mediagate.Kind{full}, []mediagate.Kind{full}, []map[string]any{first, first}, []map[string]any{other}, activitytest.AsyncChannel},
		"both are full, longer": {[]mediagate.Kind{full, full}, []mediagate.Kind{full}, []map[string]any{first, first}, []map[string]any{other, other}, "second-a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, twoRoutes)
			heardFirst := listens(b.Async, inScenes, c.firstSays...)
			heardSecond := listens(b.second(), inSeconds, c.secondSays...)
			n := len(c.first) + len(c.second)
			b.at(time.Minute, func() {
				attempts := b.Store.Attempts(taskID)
				if len(attempts) != n || attempts[n-1].Channel != c.channel {
					t.Errorf("attempts %+v, want %d, the last with %s", attempts, n, c.channel)
				}
				_, err := b.Store.RecordOutcome(t.Context(), taskID, n, activitytest.Success())
				b.ok(err)
				b.env.SignalWorkflow(workflows.SignalUpstream, n)
			})
			b.run()
			b.ended(mediagate.StatusCompleted)
			if diff := cmp.Diff(c.first, *heardFirst); diff != "" {
				t.Errorf("the first vendor is told (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.second, *heardSecond); diff != "" {
				t.Errorf("the second vendor is told (-want +got):\n%s", diff)
			}
			if got := string(b.task().Params); got != string(twoRoutes(b.World).Params) {
				t.Errorf("the task keeps %s", got)
			}
		})
	}
}
