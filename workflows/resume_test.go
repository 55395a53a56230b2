package workflows_test

import (
	"slices"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities/activitytest"
)

// Each case leaves a task as a run left it that was reset, terminated or
// killed; the next run goes on from there, and nothing is submitted again.
func TestD1ReplacedRunGoesOn(t *testing.T) {
	t.Parallel()
	intent := func(b *bundle) {
		_, _, err := b.Store.OpenAttempt(b.t.Context(), mediagate.Attempt{
			TaskID: taskID, N: 1, Channel: activitytest.AsyncChannel, Provider: activitytest.AsyncProvider, Fingerprint: "account-a",
			Route: findable(b), ExternalID: taskID, SendBefore: b.env.Now().Add(10 * time.Second), CreatedAt: b.env.Now(),
		}, mediagate.Slots{})
		b.ok(err)
	}
	sent := func(b *bundle) {
		intent(b)
		_, err := b.AsyncBound().Vendor.Submit(b.t.Context(), mediagate.Job{TaskID: taskID, ExternalID: taskID})
		b.ok(err)
	}
	outcome := func(b *bundle) {
		submitByHand(b)
		success := activitytest.Success()
		b.ok(b.StorePoll(b.t.Context(), mediagate.PollResult{TaskID: taskID, N: 1, Outcome: &success}))
	}
	mirrored := func(b *bundle) {
		outcome(b)
		b.ok(b.Store.DropAwait(b.t.Context(), taskID, 1))
		b.ok(b.Store.StoreMirrored(b.t.Context(), taskID, 1, []mediagate.Result{{Key: "results/" + taskID + "/1/0", Duration: 5}}))
	}
	cases := map[string]struct {
		leave   func(*bundle)
		want    mediagate.Status
		ends    bool // the vendor's job is yet to end
		mirrors int
	}{
		"intent stored, job made":    {sent, mediagate.StatusCompleted, true, 1},
		"accepted":                   {submitByHand, mediagate.StatusCompleted, true, 1},
		"outcome stored, not told":   {outcome, mediagate.StatusCompleted, false, 1},
		"mirrored, not settled":      {mirrored, mediagate.StatusCompleted, false, 0},
		"parked, the bucket is back": {func(b *bundle) { outcome(b); b.ok(b.Store.Park(b.t.Context(), taskID, mediagate.ParkStorage)) }, mediagate.StatusCompleted, false, 1},
		"in trouble": {func(b *bundle) {
			submitByHand(b)
			b.ok(b.StorePoll(b.t.Context(), mediagate.PollResult{TaskID: taskID, N: 1, Trouble: mediagate.ParkJobLost}))
		}, mediagate.StatusCompleted, true, 1},
		"in trouble, asked again": {func(b *bundle) {
			submitByHand(b)
			b.ok(b.StorePoll(b.t.Context(), mediagate.PollResult{TaskID: taskID, N: 1, Trouble: mediagate.ParkJobLost}))
			b.ok(b.Store.Park(b.t.Context(), taskID, mediagate.ParkJobLost))
			b.ok(b.Store.RestoreAwait(b.t.Context(), taskID, 1, b.env.Now()))
		}, mediagate.StatusCompleted, true, 1},
		"a cancel on the row": {func(b *bundle) {
			submitByHand(b)
			_, err := b.Store.RequestCancel(b.t.Context(), "acc_1", taskID)
			b.ok(err)
		}, mediagate.StatusCancelled, false, 0},
		"rejected for good": {func(b *bundle) {
			intent(b)
			row, err := b.Store.Attempt(b.t.Context(), taskID, 1)
			b.ok(err)
			b.ok(b.Store.RejectAttempt(b.t.Context(), taskID, 1, row.SendBefore, mediagate.Failure{Code: mediagate.CodeContentPolicy}, "moderated"))
		}, mediagate.StatusFailed, false, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			c.leave(b)
			before := len(b.Async.Submits())
			b.again(time.Minute)
			if c.ends {
				b.at(20*time.Minute, func() { b.Async.End(taskID, activitytest.Success()) })
				b.succeeds(20*time.Minute, 1)
			}
			b.run()
			b.ended(c.want)
			if got := len(b.Async.Submits()); got != before {
				t.Errorf("%d jobs submitted by the new run", got-before)
			}
			if got := len(b.Bucket.Writes()); got != c.mirrors {
				t.Errorf("%d files copied, want %d", got, c.mirrors)
			}
			again := slices.Clone(b.Store.Settlements(taskID))
			b.again(time.Hour) // and one more changes nothing
			b.run()
			if got := b.Store.Settlements(taskID); len(got) != len(again) {
				t.Errorf("settled %d times, want %d", len(got), len(again))
			}
		})
	}
}
