package workflows_test

import (
	"context"
	"testing"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/workflows"
)

// The patience for a lost image ends however often somebody looks in.
func TestD6LostImageEndsThoughItIsWoken(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]string{"woken": workflows.SignalWake, "polled": mediagate.ActionPollNow} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, image)
			loses(b.Sync, false)
			for at := 5 * time.Second; at < 3*time.Minute; at += 5 * time.Second {
				b.signal(at, signal, nil)
			}
			b.run()
			b.ended(mediagate.StatusFailed)
			b.failed(mediagate.CodeSubmissionUnknown)
			within(t, "the end", b.endedAt(), time.Minute, time.Minute+time.Second)
		})
	}
}

// What an operator ordered before an answer was lost is no leave to give that
// attempt up: nothing is sent twice for it.
func TestD6RetryFromBeforeTheLossGivesNothingUp(t *testing.T) {
	t.Parallel()
	ways := map[string]func(b *bundle){
		"by hand": func(b *bundle) { b.env.SignalWorkflow(mediagate.ActionRetry, nil) },
		"with a row": func(b *bundle) {
			row, err := b.Store.RecordAction(b.t.Context(), mediagate.Action{TaskID: taskID, Action: mediagate.ActionRetry, By: "admin"})
			b.ok(err)
			b.env.SignalWorkflow(workflows.SignalAction, activities.ActionArgs{ID: row.ID, TaskID: taskID, Action: row.Action})
		},
	}
	for name, retry := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, imageThatParks)
			b.Sync.OnSubmit = submitFunc(func(call int, job mediagate.Job) (mediagate.Submission, error) {
				if call == 1 {
					return mediagate.Submission{}, mediagate.Errorf(mediagate.KindCredentials, "refused")
				}
				retry(b) // the second click, while the step runs
				return mediagate.Submission{}, errLost
			})
			b.at(time.Minute, func() { retry(b) })
			b.at(30*time.Minute, func() {
				if got := b.task().ParkReason; got != mediagate.ParkSubmissionUnknown {
					t.Errorf("parked for %q, want %s", got, mediagate.ParkSubmissionUnknown)
				}
			})
			b.run()
			b.ended(mediagate.StatusFailed)
			b.failed(mediagate.CodeSubmissionUnknown)
			if got := len(b.Sync.Submits()); got != 2 {
				t.Errorf("%d submits, want 2: the one that was refused and the one that was lost", got)
			}
		})
	}
}

// D11: another account behind the channel is neither asked for the job nor
// sent it.
func TestD11LostSubmissionStaysWithItsAccount(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	other := b.AsyncBound()
	other.Fingerprint = "account-b"
	b.Async.OnSubmit = func(context.Context, mediagate.Job) (mediagate.Submission, error) {
		b.Channels.Set(other, b.SyncBound())
		return mediagate.Submission{}, errLost
	}
	b.Async.OnFind = func(context.Context, mediagate.JobRef) (mediagate.Report, error) {
		t.Error("the other account is asked")
		return mediagate.Report{}, mediagate.Errorf(mediagate.KindNotFound, "no such job")
	}
	b.run()
	b.ended(mediagate.StatusFailed)
	b.failed(mediagate.CodeSubmissionUnknown)
	b.submits(taskID)
}

// A signal whose input makes no sense is nothing to wait for.
func TestSenselessSignalsAreIgnored(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.signal(time.Second, workflows.SignalUpstream, "one")
	b.signal(2*time.Second, workflows.SignalAction, []int{1})
	b.succeeds(time.Minute, 1)
	b.run()
	b.ended(mediagate.StatusCompleted)
	within(t, "the end", b.endedAt(), time.Minute, time.Minute+time.Second)
}

// A history that grows long is ended, and the next one goes on by the row.
func TestLongHistoryContinuesAsNew(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.env.SetContinueAsNewSuggested(true)
	b.env.ExecuteWorkflow(workflows.Generate, workflows.Input{TaskID: taskID, Provider: "p"})
	if err := b.env.GetWorkflowError(); !workflow.IsContinueAsNewError(err) {
		t.Fatalf("the run ended with %v, want a new history", err)
	}
	b.again(time.Second)
	b.succeeds(time.Minute, 1)
	b.run()
	b.ended(mediagate.StatusCompleted)
}
