package workflows_test

import (
	"context"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities/activitytest"
)

// before has f done whenever an activity of that name starts, for the nth time.
func (b *bundle) before(name string, f func(nth int)) {
	started := 0
	b.env.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, _ converter.EncodedValues) {
		if info.ActivityType.Name != name {
			return
		}
		started++
		f(started)
	})
}

// found records, as somebody whose answer was lost does, that the vendor has the
// job and that it ended well. The signal of that is lost.
func (b *bundle) found() {
	_, err := b.Store.AcceptAttempt(b.t.Context(), taskID, 1, mediagate.Submission{Ref: mediagate.JobRef{JobID: "job-found"}}, b.env.Now())
	b.ok(err)
	outcome := activitytest.Success()
	b.ok(b.StorePoll(b.t.Context(), mediagate.PollResult{TaskID: taskID, N: 1, Outcome: &outcome}))
}

// A run that parks its task does not wait where the story of that step tells how the
// attempt ended.
func TestParkingHeedsWhatItTells(t *testing.T) {
	t.Parallel()
	for name, nth := range map[string]int{"first": 1, "last before it is given up": 6} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			loses(b.Async, true)
			b.awayLookups(1000 * time.Hour)
			var at time.Duration
			b.before("ParkTask", func(n int) {
				if n == nth {
					at = b.elapsed()
					b.found()
				}
			})
			b.run()
			b.ended(mediagate.StatusCompleted)
			if got := b.endedAt(); got-at > time.Second {
				t.Errorf("ended %v after its end was known", got-at)
			}
		})
	}
}

// What a last try of a parked task tells counts, though nobody signals it before the
// patience is over.
func TestGivingUpHeedsWhatTheLastTryTold(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.polled(time.Minute, mediagate.PollResult{N: 1, Trouble: mediagate.ParkCredentials})
	known := false
	b.before("RestoreAwait", func(int) {
		if !known && b.elapsed() > 23*time.Hour+54*time.Minute {
			known = true
			_, err := b.Store.RecordOutcome(t.Context(), taskID, 1, activitytest.Success())
			b.ok(err)
		}
	})
	b.run()
	if !known {
		t.Fatal("nobody asked again at the end")
	}
	b.ended(mediagate.StatusCompleted)
}
