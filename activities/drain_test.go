package activities_test

import (
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

// drained takes the channel of the task's last attempt out, as an operator does.
func (b *bundle) drained(yes bool) {
	b.t.Helper()
	_, err := b.Store.EnableChannel(b.t.Context(), b.last().Channel, !yes)
	b.ok(err)
	b.advance(2 * time.Second) // the states are read again
}

// A job that provably never came to be is a new one: a channel that is drained does not
// get it, and has it once it is enabled.
func TestDrainedChannelIsNotSentAgain(t *testing.T) {
	t.Parallel()
	b := lost(t)
	b.Async.OnSubmit = nil
	b.absent()
	b.drained(true)
	_, err := b.tryStep(task.Submit, 1)
	kind(t, err, mediagate.KindShutOut, mediagate.ParkProviderAway, false)
	b.submitted(taskID)
	b.drained(false)
	if answer := b.submit(1); answer.State != mediagate.AttemptAccepted {
		t.Errorf("the attempt is %s, want accepted", answer.State)
	}
	b.submitted(taskID, taskID)
}

// An attempt whose answer was lost is looked for at a channel that is drained, too.
func TestDrainedChannelIsAskedForTheLost(t *testing.T) {
	t.Parallel()
	b := lost(t)
	b.drained(true)
	b.advance(2 * time.Minute)
	_, err := b.Async.Accept(mediagate.Job{ExternalID: taskID})
	b.ok(err)
	if answer := b.step(task.Lookup, 1); answer.State != mediagate.AttemptAccepted || answer.Step.Why != task.WhyVendor {
		t.Errorf("answer %+v", answer)
	}
}

// D15: the parameters of a job that waits end what the channel has.
func TestDrainedChannelTakesModalParameters(t *testing.T) {
	t.Parallel()
	b := waiting(t)
	b.drained(true)
	if answer := b.submit(2); answer.State != mediagate.AttemptAccepted {
		t.Errorf("the attempt is %s, want accepted", answer.State)
	}
}
