package workflows_test

import (
	"context"
	"testing"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
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

// lostSender begins a run after a worker that stored the intent of an image, and
// was taken for dead: Temporal gives the step to another, which finds the intent.
func lostSender(t *testing.T) *bundle {
	t.Helper()
	b := setup(t, image)
	_, _, err := b.Store.OpenAttempt(t.Context(), mediagate.Attempt{
		TaskID: taskID, N: 1, Channel: activitytest.SyncChannel, Provider: activitytest.SyncProvider, Fingerprint: "account-s",
		Route: b.task().Plan.Routes[0], ExternalID: taskID, SendBefore: start.Add(10 * time.Second), CreatedAt: start,
	}, mediagate.Slots{})
	b.ok(err)
	return b
}

// D5, D6: a sender that was taken for dead may still hold the vendor's call. The
// task waits as long as that can last, not only for the patience of D6, and the
// answer counts.
func TestD5AnswerOfALostSenderCounts(t *testing.T) {
	t.Parallel()
	operation, _ := new(activitytest.Descriptions).Operation(mediagate.Route{Provider: activitytest.SyncProvider})
	callEnds := 10*time.Second + operation.Submit + activities.DefaultSettings().ClockSkew
	t.Run("it comes", func(t *testing.T) {
		t.Parallel()
		b := lostSender(t)
		b.at(2*time.Minute, func() {
			outcome := activitytest.Success()
			_, err := b.Store.AcceptAttempt(t.Context(), taskID, 1, mediagate.Submission{Outcome: &outcome}, b.env.Now())
			b.ok(err)
		})
		b.run()
		b.ended(mediagate.StatusCompleted)
		b.submits()
		within(t, "the end", b.endedAt(), 2*time.Minute, 2*time.Minute+15*time.Second)
	})
	t.Run("none comes", func(t *testing.T) {
		t.Parallel()
		b := lostSender(t)
		b.run()
		b.failed(mediagate.CodeSubmissionUnknown)
		b.submits()
		within(t, "the end", b.endedAt(), callEnds, callEnds+time.Second)
	})
	t.Run("the deadline comes first", func(t *testing.T) {
		t.Parallel()
		b := lostSender(t)
		b.Store.Edit(taskID, func(task *mediagate.Task) { task.DeadlineAt = start.Add(90 * time.Second) })
		b.run()
		b.failed(mediagate.CodeGenerationTimeout)
		within(t, "the end", b.endedAt(), 90*time.Second, 96*time.Second)
	})
	t.Run("the client cancels", func(t *testing.T) {
		t.Parallel()
		b := lostSender(t)
		b.cancels(30 * time.Second)
		b.run()
		b.ended(mediagate.StatusCancelled)
		within(t, "the end", b.endedAt(), 30*time.Second, 31*time.Second)
	})
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

// Nor is a command whose signal was lost, which the reconciler brings after the
// loss though it was ordered before.
func TestD6RetryThatComesLateGivesNothingUp(t *testing.T) {
	t.Parallel()
	b := setup(t, imageThatParks)
	loses(b.Sync, false)
	row, err := b.Store.RecordAction(t.Context(), mediagate.Action{TaskID: taskID, Action: mediagate.ActionRetry, By: "admin"})
	b.ok(err)
	b.again(time.Second)
	b.signal(20*time.Second, workflows.SignalAction, activities.ActionArgs{ID: row.ID, TaskID: taskID, Action: row.Action})
	b.run()
	b.failed(mediagate.CodeSubmissionUnknown)
	b.taken(mediagate.ActionRetry)
	b.submits(taskID)
}

// Such a retry moves the deadline all the same (D10), and the run goes by it.
func TestD10RetryBeforeTheLossIsKnownMovesTheDeadline(t *testing.T) {
	t.Parallel()
	b := setup(t, image)
	_, _, err := b.Store.OpenAttempt(t.Context(), mediagate.Attempt{
		TaskID: taskID, N: 1, Channel: activitytest.SyncChannel, Provider: activitytest.SyncProvider, Fingerprint: "account-s",
		Route: b.task().Plan.Routes[0], ExternalID: taskID, SendBefore: start.Add(10 * time.Second), CreatedAt: start,
	}, mediagate.Slots{})
	b.ok(err)
	b.ok(b.Store.MarkUnknown(t.Context(), taskID, 1, start.Add(10*time.Second), "lost"))
	late := b.task().DeadlineAt.Sub(start) + time.Minute
	b.again(late) // no run was there for so long
	row, err := b.Store.RecordAction(t.Context(), mediagate.Action{TaskID: taskID, Action: mediagate.ActionRetry, By: "admin"})
	b.ok(err)
	b.signal(0, workflows.SignalAction, activities.ActionArgs{ID: row.ID, TaskID: taskID, Action: row.Action})
	b.run()
	b.failed(mediagate.CodeSubmissionUnknown)
	within(t, "the end", b.endedAt(), late+time.Minute, late+2*time.Minute)
}

// Of several commands that are found with the loss, a "fail" counts: the retry
// that came after it was about something else.
func TestD6FailBeforeAnIgnoredRetryCounts(t *testing.T) {
	t.Parallel()
	b := setup(t, imageThatParks)
	_, _, err := b.Store.OpenAttempt(t.Context(), mediagate.Attempt{
		TaskID: taskID, N: 1, Channel: activitytest.SyncChannel, Provider: activitytest.SyncProvider, Fingerprint: "account-s",
		Route: b.task().Plan.Routes[0], ExternalID: taskID, SendBefore: start.Add(10 * time.Second), CreatedAt: start,
	}, mediagate.Slots{})
	b.ok(err)
	b.ok(b.Store.MarkUnknown(t.Context(), taskID, 1, start.Add(10*time.Second), "lost"))
	b.again(time.Second)
	for _, action := range []string{mediagate.ActionFail, mediagate.ActionRetry} {
		row, err := b.Store.RecordAction(t.Context(), mediagate.Action{TaskID: taskID, Action: action, By: "admin"})
		b.ok(err)
		b.signal(0, workflows.SignalAction, activities.ActionArgs{ID: row.ID, TaskID: taskID, Action: row.Action})
	}
	b.run()
	b.failed(mediagate.CodeInternal)
	within(t, "the end", b.endedAt(), time.Second, 2*time.Second)
}

// D11: another account behind the channel is not sent the job, and that it
// does not know it proves nothing: were it believed, the job would be sent.
func TestD11LostSubmissionStaysWithItsAccount(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	other, stranger := b.Stranger()
	b.Async.OnSubmit = func(context.Context, mediagate.Job) (mediagate.Submission, error) {
		b.Channels.Set(other, b.SyncBound())
		return mediagate.Submission{}, errLost
	}
	b.run()
	b.ended(mediagate.StatusFailed)
	b.failed(mediagate.CodeSubmissionUnknown)
	b.submits(taskID)
	if sent, asked := len(stranger.Submits()), len(stranger.Finds()); sent != 0 || asked == 0 {
		t.Errorf("the other account was sent %d jobs and asked %d times, want none and some", sent, asked)
	}
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

// What an operator said is known to the run only: it ends no history before
// that is carried out, but then it does.
func TestLongHistoryKeepsCommands(t *testing.T) {
	t.Parallel()
	for name, say := range map[string]func(*bundle){
		"while it waits": func(b *bundle) { b.env.SignalWorkflow(mediagate.ActionFail, nil) },
		"with a row": func(b *bundle) {
			row, err := b.Store.RecordAction(b.t.Context(), mediagate.Action{ID: "act_1", TaskID: taskID, Action: mediagate.ActionFail})
			b.ok(err)
			b.env.SignalWorkflow(workflows.SignalAction, activities.ActionArgs{ID: row.ID, TaskID: taskID, Action: row.Action})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			b.bucketAway(100 * time.Hour)
			b.succeeds(time.Minute, 1)
			b.at(30*time.Minute, func() {
				b.env.SetContinueAsNewSuggested(true)
				say(b)
			})
			b.run()
			b.failed(mediagate.CodeResultUnavailable)
			if got := b.endedAt(); got != 30*time.Minute {
				t.Errorf("ended after %v, want 30m0s", got)
			}
		})
	}
	t.Run("after a retry that did not help", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		b.bucketAway(100 * time.Hour)
		b.succeeds(time.Minute, 1)
		b.at(30*time.Minute, func() {
			b.env.SetContinueAsNewSuggested(true)
			b.env.SignalWorkflow(mediagate.ActionRetry, nil)
		})
		b.env.ExecuteWorkflow(workflows.Generate, workflows.Input{TaskID: taskID, Provider: activitytest.AsyncProvider})
		if err := b.env.GetWorkflowError(); !workflow.IsContinueAsNewError(err) {
			t.Fatalf("the run ended with %v, want a new history", err)
		}
		within(t, "the new history", b.elapsed(), 30*time.Minute, 37*time.Minute)
		b.taken(mediagate.ActionRetry)
	})
}

// A command with a row that reaches the next run of a loss that is known was
// meant for it, unlike one by hand, which a reset may repeat.
func TestRetryReachesTheNextRun(t *testing.T) {
	t.Parallel()
	for name, obeyed := range map[string]bool{"with a row": true, "by hand": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, imageThatParks)
			loses(b.Sync, false)
			b.at(10*time.Minute, func() {
				b.env.SetContinueAsNewSuggested(true) // stands for a run that is gone
				b.env.SignalWorkflow(workflows.SignalWake, nil)
			})
			b.env.ExecuteWorkflow(workflows.Generate, workflows.Input{TaskID: taskID, Provider: activitytest.SyncProvider})
			if got := b.task().ParkReason; got != mediagate.ParkSubmissionUnknown {
				t.Fatalf("parked for %q", got)
			}
			b.again(time.Second)
			b.at(0, func() {
				if !obeyed {
					b.env.SignalWorkflow(mediagate.ActionRetry, nil)
					return
				}
				row, err := b.Store.RecordAction(b.t.Context(), mediagate.Action{ID: "act_1", TaskID: taskID, Action: mediagate.ActionRetry})
				b.ok(err)
				b.env.SignalWorkflow(workflows.SignalAction, activities.ActionArgs{ID: row.ID, TaskID: taskID, Action: row.Action})
			})
			b.answersAtOnce()
			b.run()
			if obeyed {
				b.ended(mediagate.StatusCompleted)
				b.submits(ids(2)...)
				return
			}
			b.failed(mediagate.CodeSubmissionUnknown)
			b.submits(taskID)
		})
	}
}
