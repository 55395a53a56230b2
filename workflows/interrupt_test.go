package workflows_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/workflows"
)

// While a step runs, the run hears an operator's "fail", by hand or by row.
func TestD3FailIsHeardWhileAStepRuns(t *testing.T) {
	t.Parallel()
	byRow := func(b *bundle) {
		row, err := b.Store.RecordAction(context.Background(), mediagate.Action{TaskID: taskID, Action: mediagate.ActionFail})
		b.ok(err)
		b.env.SignalWorkflow(workflows.SignalAction, activities.ActionArgs{ID: row.ID, TaskID: taskID, Action: row.Action})
	}
	byHand := func(b *bundle) { b.env.SignalWorkflow(mediagate.ActionFail, nil) }
	steps := map[string]func(*bundle, func(*bundle)){
		"submitting": func(b *bundle, order func(*bundle)) {
			b.Async.OnSubmit = func(_ context.Context, job mediagate.Job) (mediagate.Submission, error) {
				order(b)
				return b.Async.Accept(job)
			}
		},
		"looking up": func(b *bundle, order func(*bundle)) {
			loses(b.Async, false)
			b.Async.OnFind = func(context.Context, mediagate.JobRef) (mediagate.Report, error) {
				order(b)
				return mediagate.Report{}, mediagate.Errorf(mediagate.KindNotFound, "no such job")
			}
		},
		"copying": func(b *bundle, order func(*bundle)) {
			b.succeeds(time.Minute, 1)
			b.Bucket.OnMirror = func(string) error {
				order(b)
				b.until("the order is on record", func() bool { return len(b.Store.Actions()) > 0 })
				return nil
			}
		},
		"asking a last time": func(b *bundle, order func(*bundle)) {
			b.Async.OnPoll = func(context.Context, mediagate.JobRef) (mediagate.Report, error) {
				order(b)
				return mediagate.Report{State: mediagate.JobRunning}, nil
			}
		},
	}
	for step, script := range steps {
		for how, order := range map[string]func(*bundle){"by row": byRow, "by hand": byHand} {
			t.Run(step+" "+how, func(t *testing.T) {
				t.Parallel()
				b := setup(t, video)
				var once atomic.Bool
				script(b, func(b *bundle) {
					if once.CompareAndSwap(false, true) {
						order(b)
					}
				})
				b.run()
				b.failed(mediagate.CodeInternal)
				if got := len(b.Async.Submits()); got > 1 {
					t.Errorf("%d jobs submitted", got)
				}
				for _, a := range b.Store.Actions() {
					if a.State != "taken" {
						t.Errorf("the command %+v was not taken", a)
					}
				}
			})
		}
	}
}

// A wake makes the run look at its row, also while a step runs.
func TestD3WakeIsHeardWhileAStepRuns(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.Async.OnSubmit = func(_ context.Context, job mediagate.Job) (mediagate.Submission, error) {
		_, err := b.Store.RequestCancel(context.Background(), "acc_1", taskID)
		b.ok(err)
		b.env.SignalWorkflow(workflows.SignalWake, nil)
		return b.Async.Accept(job)
	}
	b.run()
	b.cancelled()
	if got := len(b.Async.Cancelled()); got != 1 {
		t.Errorf("%d vendor jobs stopped, want 1", got)
	}
}

// A command that is not for the running step is kept for what follows it.
func TestCommandsWhileAStepRunsAreKept(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.succeeds(time.Minute, 1)
	var calls atomic.Int64
	b.Bucket.OnMirror = func(string) error {
		n := calls.Add(1)
		if n == 1 {
			row, err := b.Store.RecordAction(context.Background(), mediagate.Action{TaskID: taskID, Action: mediagate.ActionRetry})
			b.ok(err)
			b.env.SignalWorkflow(workflows.SignalAction, activities.ActionArgs{ID: row.ID, TaskID: taskID, Action: row.Action})
		}
		if b.task().ParkReason == "" {
			return &mediagate.Error{Kind: mediagate.KindUnavailable, Code: string(mediagate.ParkStorage), Message: "the bucket is away"}
		}
		return nil
	}
	b.run()
	b.ended(mediagate.StatusCompleted)
	within(t, "the end", b.endedAt(), time.Minute, 3*time.Minute) // not only after the parking's own wait
}

// Each step that needs a vendor is bounded by what is left: of the waiting, or
// of the parking.
func TestD3StepsAreBounded(t *testing.T) {
	t.Parallel()
	bounds := func(b *bundle, name string) (got []time.Duration) {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, info := range b.infos {
			if info.ActivityType.Name == name {
				got = append(got, info.ScheduleToCloseTimeout)
			}
		}
		return got
	}
	t.Run("submit and copy", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		b.succeeds(time.Minute, 1)
		b.run()
		if got := bounds(b, "SubmitJob"); len(got) != 1 || got[0] != deadline {
			t.Errorf("a submit may take %v, want %v", got, deadline)
		}
		if got := bounds(b, "MirrorResult"); len(got) != 1 || got[0] != deadline-time.Minute {
			t.Errorf("a copy may take %v, want %v", got, deadline-time.Minute)
		}
	})
	t.Run("a late copy has its own time", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		b.at(time.Hour, func() { b.Async.End(taskID, activitytest.Success()) })
		b.run()
		b.ended(mediagate.StatusCompleted)
		if got := bounds(b, "MirrorResult"); len(got) != 1 || got[0] != time.Hour {
			t.Errorf("a copy may take %v, want 1h0m0s", got)
		}
	})
	t.Run("parked", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		b.Channels.Set(b.SyncBound())
		b.run()
		b.failed(mediagate.CodeProviderAway)
		for i, got := range bounds(b, "SubmitJob") {
			if got > deadline || got < time.Second {
				t.Errorf("submit %d may take %v", i, got)
			}
		}
		within(t, "the end", b.endedAt(), 24*time.Hour, 24*time.Hour+10*time.Minute)
	})
}

// The database is away while the job is submitted: nobody could mend anything,
// so nothing parks, and it goes on as soon as it is back.
func TestDatabaseAwayWhileSubmitting(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.Store.Fault = func(method string) error {
		if method == "OpenAttempt" && b.elapsed() < 10*time.Minute {
			return mediagate.Errorf(mediagate.KindUnavailable, "the database is away")
		}
		if method == "Park" {
			t.Error("the task parks")
		}
		return nil
	}
	b.succeeds(20*time.Minute, 1)
	b.run()
	b.ended(mediagate.StatusCompleted)
	b.submits(taskID)
}

// intentOf leaves attempt 1 as an intent, whose sender a run that is gone
// began.
func intentOf(b *bundle, before time.Duration) {
	b.t.Helper()
	_, _, err := b.Store.OpenAttempt(b.t.Context(), mediagate.Attempt{
		TaskID: taskID, N: 1, Channel: activitytest.AsyncChannel, Provider: activitytest.AsyncProvider, Fingerprint: "account-a",
		Route: findable(b), ExternalID: taskID, SendBefore: start.Add(before), CreatedAt: b.env.Now(),
	}, mediagate.Slots{})
	b.ok(err)
}

// At the deadline a sender may still be at work: its answer is waited for, and
// counts (D5).
func TestD5SenderAtWorkAtTheDeadline(t *testing.T) {
	t.Parallel()
	t.Run("it answers", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		intentOf(b, deadline)
		b.again(deadline)
		b.at(20*time.Second, func() {
			s, err := b.Async.Accept(mediagate.Job{ExternalID: taskID})
			b.ok(err)
			_, err = b.Store.AcceptAttempt(t.Context(), taskID, 1, s, b.env.Now())
			b.ok(err)
			b.Async.End(taskID, activitytest.Success())
		})
		b.run()
		b.ended(mediagate.StatusCompleted)
		if got := b.endedAt(); got != deadline+35*time.Second {
			t.Errorf("ended after %v, want when the call must have ended", got-deadline)
		}
	})
	t.Run("it was lost, the vendor has the job", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		intentOf(b, deadline)
		b.Async.End(taskID, activitytest.Success())
		b.again(deadline)
		b.run()
		b.ended(mediagate.StatusCompleted)
		b.submits()
	})
	t.Run("it was lost, the vendor has nothing", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		intentOf(b, deadline)
		b.again(deadline)
		b.run()
		b.failed(mediagate.CodeGenerationTimeout)
		b.submits()
		within(t, "the end", b.endedAt(), deadline+65*time.Second, deadline+70*time.Second)
	})
}

// A synchronous call that was cut off by the deadline leaves nothing to wait
// for.
func TestD3LostSynchronousCallAtTheDeadline(t *testing.T) {
	t.Parallel()
	b := setup(t, image)
	b.Store.Edit(taskID, func(task *mediagate.Task) { task.DeadlineAt = start.Add(20 * time.Second) })
	b.Sync.OnSubmit = func(context.Context, mediagate.Job) (mediagate.Submission, error) {
		return mediagate.Submission{}, errLost
	}
	b.run()
	b.failed(mediagate.CodeGenerationTimeout)
	if got := b.endedAt(); got != 20*time.Second {
		t.Errorf("ended after %v, want 20s", got)
	}
	b.submits(taskID)
}

// A copy that cannot complete its task leaves that to a step of its own, however
// long it takes, and parks nothing: the files are on record.
func TestD13SettlingOutlastsTheCopy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fails func(method string, since time.Duration) bool // once the files are on record
		ends  time.Duration
	}{
		"the account is busy": {func(method string, since time.Duration) bool { return method == "Settle" && since < time.Second }, 2 * time.Second},
		"the database is away": {func(_ string, since time.Duration) bool { // for far longer than a copy is repeated
			return since < 10*time.Minute
		}, 10*time.Minute + 30*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			b.succeeds(time.Minute, 1)
			var stored atomic.Bool
			b.Store.Fault = func(method string) error {
				if stored.Load() && c.fails(method, b.elapsed()-time.Minute) {
					return mediagate.Errorf(mediagate.KindUnavailable, "the database is away")
				}
				stored.CompareAndSwap(false, method == "StoreMirrored")
				return nil
			}
			b.run()
			b.ended(mediagate.StatusCompleted)
			within(t, "the end", b.endedAt(), time.Minute, time.Minute+c.ends)
			if got := b.count("ParkTask"); got != 0 {
				t.Errorf("parked %d times", got)
			}
			if got := b.count("Settle"); got == 0 {
				t.Error("settled by no step of its own")
			}
			if got := len(b.Bucket.Writes()); got != 1 {
				t.Errorf("copied %d times", got)
			}
		})
	}
}
