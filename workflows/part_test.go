package workflows_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/providers"
)

// pictures is a task of two pictures, of a vendor that makes one a call.
func pictures(w *activitytest.World) mediagate.Task {
	w.Descriptions.Set(activitytest.SyncProvider, providers.Operation{Sync: true, Submit: 150 * time.Second, Parts: "n"})
	task := w.NewImage()
	task.Params = json.RawMessage(`{"prompt":"p","n":2}`)
	task.Charges[0].Quantity, task.Hold = 2, 40_000
	return task
}

// A sender that dies within a call of several: the task ends by what the other
// calls came to, once the lost one can be no more, and is charged for that (D6).
func TestD6OnePartIsLost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		other mediagate.Kind // of the other call's refusal; none draws
		end   mediagate.Status
		code  mediagate.FailureCode
		cost  mediagate.Micros
	}{
		"the other succeeded":                {end: mediagate.StatusCompleted, cost: 20_000},
		"the other was refused for good":     {other: mediagate.KindModerated, end: mediagate.StatusFailed, code: mediagate.CodeContentPolicy},
		"the other was refused by the funds": {other: mediagate.KindFunds, end: mediagate.StatusFailed, code: mediagate.CodeSubmissionUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, pictures)
			b.Sync.OnSubmit = func(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
				if job.Part == 1 {
					return mediagate.Submission{}, errLost
				}
				if c.other != 0 {
					return mediagate.Submission{}, mediagate.Errorf(c.other, "no")
				}
				m, err := job.Sink.Store(ctx, 0, strings.NewReader("picture"))
				return mediagate.Submission{
					Ref: mediagate.JobRef{JobID: "req"}, Outcome: &mediagate.Outcome{Succeeded: true, Media: []mediagate.Media{m}},
				}, err
			}
			// When the attempt is to be ended the lost call is an intent of which
			// nobody has heard, as a sender that died leaves it.
			dead := false
			b.Store.Fault = func(method string) error {
				if dead || method != "AcceptAttempt" && method != "RejectAttempt" && method != "MarkUnknown" {
					return nil
				}
				dead = true
				b.Store.EditParts(taskID, 1, func(parts []mediagate.Part) []mediagate.Part {
					parts[1].State = mediagate.PartIntent
					return parts
				})
				return mediagate.Errorf(mediagate.KindUnavailable, "dead")
			}
			b.run()
			b.ended(c.end)
			got := b.Store.Settlements(taskID)[0]
			if got.Cost != c.cost || c.code != "" && got.Failure.Code != c.code {
				t.Errorf("settled %+v, failure %+v", got, got.Failure)
			}
			if n := len(b.Sync.Submits()); n != 2 {
				t.Errorf("%d calls, want 2", n)
			}
			within(t, "the end", b.endedAt(), 0, 10*time.Minute)
		})
	}
}
