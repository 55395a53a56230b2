package activities_test

import (
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

// drained disables the channel of the task's last attempt, as an operator does.
func (b *bundle) drained() {
	b.t.Helper()
	_, err := b.Store.EnableChannel(b.t.Context(), b.last().Channel, false)
	b.ok(err)
	b.advance(2 * time.Second) // the states are read again
}

// TestDrainedChannelIsAskedForTheLost checks that an attempt whose answer was lost is looked up
// even at a disabled channel.
func TestDrainedChannelIsAskedForTheLost(t *testing.T) {
	t.Parallel()
	b := lost(t)
	b.drained()
	b.advance(2 * time.Minute)
	_, err := b.Async.Accept(mediagate.Job{ExternalID: taskID})
	b.ok(err)
	if answer := b.step(task.Lookup, 1); answer.State != mediagate.AttemptAccepted || answer.Step.Why != task.SleepVendor {
		t.Errorf("answer %+v", answer)
	}
}

// TestDrainedChannelTakesModalParameters checks that a disabled channel takes modal parameters
// for a job that waits there (D15).
func TestDrainedChannelTakesModalParameters(t *testing.T) {
	t.Parallel()
	b := waiting(t)
	b.drained()
	if answer := b.submit(2); answer.State != mediagate.AttemptAccepted {
		t.Errorf("the attempt is %s, want accepted", answer.State)
	}
}
