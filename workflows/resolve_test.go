package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/workflows"
)

// loses makes the vendor lose the answer of the first submit; made says
// whether it made the job.
func loses(v *activitytest.Vendor, made bool) {
	v.OnSubmit = submitFunc(func(call int, job mediagate.Job) (mediagate.Submission, error) {
		if call > 1 {
			return v.Accept(job)
		}
		if made {
			if _, err := v.Accept(job); err != nil {
				return mediagate.Submission{}, err
			}
		}
		return mediagate.Submission{}, errLost
	})
}

func TestD4FoundGoesOn(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	loses(b.Async, true)
	b.succeeds(time.Minute, 1)
	b.run()
	b.ended(mediagate.StatusCompleted)
	b.submits(taskID)
	if got := b.endedAt(); got != time.Minute {
		t.Errorf("ended after %v, want 1m0s: the loss costs nothing", got)
	}
}

// Absence counts once nothing of the call can be under way (send window, call
// timeout, clock skew: 45 s), and twice, 30 s apart. Then the same id goes out.
func TestD4AbsentTwiceIsSentAgainUnderTheSameID(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	loses(b.Async, false)
	var lookups []time.Duration
	b.Async.OnFind = func(context.Context, mediagate.JobRef) (mediagate.Report, error) {
		lookups = append(lookups, b.elapsed())
		return mediagate.Report{}, mediagate.Errorf(mediagate.KindNotFound, "no such job")
	}
	b.succeeds(5*time.Minute, 1)
	b.run()
	b.ended(mediagate.StatusCompleted)
	b.submits(taskID, taskID)
	if diff := cmp.Diff([]time.Duration{0, 45 * time.Second, 75 * time.Second}, lookups); diff != "" {
		t.Errorf("lookups (-want +got):\n%s", diff)
	}
	rows := b.Store.Attempts(taskID)
	if len(rows) != 1 || rows[0].SendBefore.Sub(start) != 85*time.Second {
		t.Errorf("attempts %+v; want one that may be sent until 1m25s", rows)
	}
}

// A job that appears between the two lookups is taken, nothing is sent.
func TestD4FoundAtTheSecondLookup(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	loses(b.Async, false)
	b.at(time.Minute, func() {
		_, err := b.Async.Accept(mediagate.Job{ExternalID: taskID})
		b.ok(err)
	})
	b.succeeds(5*time.Minute, 1)
	b.run()
	b.ended(mediagate.StatusCompleted)
	b.submits(taskID)
}

// awayLookups makes all lookups fail until a time.
func (b *bundle) awayLookups(until time.Duration) {
	b.Async.OnFind = func(_ context.Context, ref mediagate.JobRef) (mediagate.Report, error) {
		if b.elapsed() < until {
			return mediagate.Report{}, errAway
		}
		return mediagate.Report{Ref: mediagate.JobRef{JobID: "job-" + ref.ExternalID, ExternalID: ref.ExternalID}, State: mediagate.JobRunning}, nil
	}
}

func TestD6LookupAway(t *testing.T) {
	t.Parallel()
	t.Run("parked, then found", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		loses(b.Async, true)
		b.awayLookups(20 * time.Minute)
		b.at(10*time.Minute, func() {
			if got := b.task().ParkReason; got != mediagate.ParkSubmissionUnknown {
				t.Errorf("parked for %q, want %s", got, mediagate.ParkSubmissionUnknown)
			}
		})
		b.at(50*time.Minute, func() {
			if got := b.task().ParkReason; got != "" {
				t.Errorf("a task whose job was found is parked for %s", got)
			}
		})
		b.succeeds(time.Hour, 1)
		b.run()
		b.ended(mediagate.StatusCompleted)
		b.submits(taskID)
	})
	t.Run("given up an hour after the deadline", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		loses(b.Async, true)
		b.awayLookups(1000 * time.Hour)
		b.run()
		b.failed(mediagate.CodeSubmissionUnknown)
		b.submits(taskID)
		if got := b.endedAt(); got != deadline+time.Hour {
			t.Errorf("given up after %v, want %v", got, deadline+time.Hour)
		}
		if got := b.count("ParkTask"); got != 6 { // one each failed lookup
			t.Errorf("%d lookups, want 6", got)
		}
	})
	t.Run("pauses", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		loses(b.Async, true)
		var at []time.Duration
		b.Async.OnFind = func(context.Context, mediagate.JobRef) (mediagate.Report, error) {
			at = append(at, b.elapsed())
			return mediagate.Report{}, mediagate.Errorf(mediagate.KindCredentials, "no") // not repeated by itself
		}
		b.run()
		b.failed(mediagate.CodeSubmissionUnknown)
		want := []time.Duration{0, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, time.Hour}
		if len(at) != len(want) {
			t.Fatalf("lookups at %v, want %d of them", at, len(want))
		}
		for i := 1; i < len(at); i++ {
			within(t, "pause before lookup", at[i]-at[i-1], want[i], want[i]+want[i]/5)
		}
	})
	t.Run("an operator's retry looks up at once, and never sends", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		loses(b.Async, true)
		b.awayLookups(4 * time.Minute)
		b.signal(4*time.Minute, mediagate.ActionRetry, nil)
		b.succeeds(5*time.Minute, 1)
		b.run()
		b.ended(mediagate.StatusCompleted)
		b.submits(taskID)
	})
}

// A synchronous vendor cannot be asked: the task fails after a minute, and
// the client may try again.
func TestD6SyncFails(t *testing.T) {
	t.Parallel()
	b := setup(t, image)
	loses(b.Sync, true)
	b.run()
	b.failed(mediagate.CodeSubmissionUnknown)
	b.submits(taskID)
	if got := b.endedAt(); got != time.Minute {
		t.Errorf("ended after %v, want 1m0s", got)
	}
	if !b.task().Failure.Retryable {
		t.Error("the failure is not marked as retryable")
	}
}

// Somebody who looks in does not shorten the minute.
func TestD6SyncPatienceIsNotShortened(t *testing.T) {
	t.Parallel()
	b := setup(t, image)
	loses(b.Sync, true)
	b.signal(10*time.Second, workflows.SignalWake, nil)
	b.signal(20*time.Second, mediagate.ActionPollNow, nil)
	b.run()
	b.failed(mediagate.CodeSubmissionUnknown)
	if got := b.endedAt(); got < time.Minute {
		t.Errorf("ended after %v, want a minute at least", got)
	}
}

// The sender was not dead, only slow: its answer counts while the minute runs.
func TestD6SyncLateAnswerCounts(t *testing.T) {
	t.Parallel()
	b := setup(t, image)
	loses(b.Sync, true)
	b.at(30*time.Second, func() {
		outcome := activitytest.Success()
		_, err := b.Store.AcceptAttempt(t.Context(), taskID, 1, mediagate.Submission{
			Ref: mediagate.JobRef{JobID: "job-late"}, Outcome: &outcome,
		}, time.Time{})
		b.ok(err)
	})
	b.run()
	b.ended(mediagate.StatusCompleted)
	b.submits(taskID)
}

func TestD6SyncParks(t *testing.T) {
	t.Parallel()
	t.Run("an operator's retry makes a new attempt", func(t *testing.T) {
		t.Parallel()
		b := setup(t, imageThatParks)
		loses(b.Sync, true)
		b.at(time.Minute, func() {
			b.submits(taskID)
			if got := b.task().ParkReason; got != mediagate.ParkSubmissionUnknown {
				t.Errorf("parked for %q, want %s", got, mediagate.ParkSubmissionUnknown)
			}
			b.answersAtOnce()
			b.env.SignalWorkflow(mediagate.ActionRetry, nil)
		})
		b.run()
		b.ended(mediagate.StatusCompleted)
		b.submits(ids(2)...)
		if got := b.Store.Attempts(taskID)[0]; got.State != mediagate.AttemptEnded || got.Outcome != nil {
			t.Errorf("the lost attempt is %s with outcome %v, want given up", got.State, got.Outcome)
		}
	})
	t.Run("nobody decides: nothing is sent, and it is given up", func(t *testing.T) {
		t.Parallel()
		b := setup(t, imageThatParks)
		loses(b.Sync, true)
		for d := time.Minute; d < 3*time.Hour; d += 20 * time.Minute {
			b.signal(d, workflows.SignalWake, nil)
		}
		b.run()
		b.failed(mediagate.CodeSubmissionUnknown)
		b.submits(taskID)
		if got := b.endedAt(); got != deadline+time.Hour {
			t.Errorf("given up after %v, want %v", got, deadline+time.Hour)
		}
	})
	t.Run("an operator fails it", func(t *testing.T) {
		t.Parallel()
		b := setup(t, imageThatParks)
		loses(b.Sync, true)
		b.signal(time.Minute, workflows.SignalAction, activities.ActionArgs{TaskID: taskID, Action: mediagate.ActionFail})
		b.run()
		b.failed(mediagate.CodeSubmissionUnknown)
		b.submits(taskID)
	})
}
