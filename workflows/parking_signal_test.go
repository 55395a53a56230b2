package workflows_test

import (
	"context"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/workflows"
)

// before has f done when an activity of that name starts for the nth time.
func (b *bundle) before(name string, nth int, f func()) {
	started := 0
	b.env.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, _ converter.EncodedValues) {
		if info.ActivityType.Name != name {
			return
		}
		if started++; started == nth {
			f()
		}
	})
}

// found records, as somebody whose answer was lost does, that the vendor has the
// job and that it ended well. The signal of that is lost, and repeated 30 s later if
// it is still outstanding.
func (b *bundle) found() {
	_, err := b.Store.AcceptAttempt(b.t.Context(), taskID, 1, mediagate.Submission{Ref: mediagate.JobRef{JobID: "job-found"}}, b.env.Now())
	b.ok(err)
	outcome := activitytest.Success()
	b.ok(b.StorePoll(b.t.Context(), mediagate.PollResult{TaskID: taskID, N: 1, Outcome: &outcome}))
	b.at(30*time.Second, func() {
		if len(b.Store.Awaits()) > 0 {
			b.env.SignalWorkflow(workflows.SignalUpstream, 1)
		}
	})
}

// A run waits after it has parked its task, whatever that step's story says: so it
// is signalled again what came to be known meanwhile.
func TestParkingTakesNoSignal(t *testing.T) {
	t.Parallel()
	for name, nth := range map[string]int{"first": 1, "last before it is given up": 6} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			loses(b.Async, true)
			b.awayLookups(1000 * time.Hour)
			var at time.Duration
			b.before("ParkTask", nth, func() {
				at = b.elapsed()
				b.found()
			})
			b.run()
			b.ended(mediagate.StatusCompleted)
			if got := b.endedAt(); got-at > 30*time.Second {
				t.Errorf("ended %v after its end was known", got-at)
			}
		})
	}
}
