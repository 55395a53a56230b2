package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/workflows"
)

// cancelled checks the one cancelled end, without a callback.
func (b *bundle) cancelled() {
	b.t.Helper()
	b.ended(mediagate.StatusCancelled)
	if got := len(b.Deliverer.Bodies()); got != 0 {
		b.t.Errorf("%d callbacks of a cancelled task", got)
	}
}

func TestCancelByClient(t *testing.T) {
	t.Parallel()
	t.Run("pending", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		_, err := b.Store.RequestCancel(t.Context(), "acc_1", taskID)
		b.ok(err)
		b.run()
		b.cancelled()
		b.submits()
	})
	t.Run("awaiting", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		b.cancels(time.Minute)
		b.run()
		b.cancelled()
		b.submits(taskID)
		if got := b.endedAt(); got != time.Minute {
			t.Errorf("ended after %v, want 1m0s", got)
		}
		if got := b.Async.Cancelled(); len(got) != 1 || got[0].JobID != "job-"+taskID {
			t.Errorf("vendor jobs cancelled: %v, want that of the task", got)
		}
	})
	t.Run("awaiting, the vendor does not listen", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		b.Async.OnCancel = func(context.Context, mediagate.JobRef) error { return errAway }
		b.cancels(time.Minute)
		b.run()
		b.cancelled()
	})
	t.Run("while the result is copied", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		b.Bucket.OnMirror = func(string) error {
			_, err := b.Store.RequestCancel(context.Background(), "acc_1", taskID)
			b.env.SignalWorkflow(workflows.SignalCancel, nil)
			return err
		}
		b.succeeds(time.Minute, 1)
		b.run()
		b.cancelled()
	})
	t.Run("parked", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		b.bucketAway(time.Hour)
		b.succeeds(time.Minute, 1)
		b.cancels(10 * time.Minute)
		b.run()
		b.cancelled()
		if got := b.endedAt(); got > 11*time.Minute {
			t.Errorf("ended after %v, want about 10m0s", got)
		}
	})
	t.Run("between two attempts", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		refuse(b.Async, 100, mediagate.KindThrottled)
		b.cancels(time.Second)
		b.run()
		b.cancelled()
		b.submits(taskID)
	})
	t.Run("fate unknown", func(t *testing.T) {
		t.Parallel()
		b := setup(t, image)
		refuse(b.Sync, 1, mediagate.KindAmbiguous)
		b.cancels(20 * time.Second)
		b.run()
		b.cancelled()
		b.submits(taskID)
	})
	t.Run("told twice", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		b.cancels(time.Minute)
		b.signal(time.Minute, workflows.SignalCancel, nil)
		b.run()
		b.cancelled()
	})
	t.Run("too late", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		b.succeeds(time.Minute, 1)
		b.signal(30*time.Second, workflows.SignalCancel, nil) // without a request on the row it means nothing
		b.run()
		b.ended(mediagate.StatusCompleted)
	})
}

// A cancel of the run from the Temporal UI is the task's own cancel, whatever
// the run was at.
func TestD1CancelledRunSettlesAsCancelled(t *testing.T) {
	t.Parallel()
	cases := map[string]func(*bundle){
		"before the first step": func(b *bundle) {
			b.at(0, func() { b.env.CancelWorkflow() })
		},
		"while submitting": func(b *bundle) {
			b.Async.OnSubmit = func(_ context.Context, job mediagate.Job) (mediagate.Submission, error) {
				b.env.CancelWorkflow()
				return b.Async.Accept(job)
			}
		},
		"awaiting": func(b *bundle) {
			b.at(time.Minute, func() { b.env.CancelWorkflow() })
		},
		"while the result is copied": func(b *bundle) {
			b.succeeds(time.Minute, 1)
			b.Bucket.OnMirror = func(string) error {
				b.env.CancelWorkflow()
				b.until("the cancel is on the row", func() bool {
					task, _ := b.Store.Peek(taskID)
					return !task.CancelRequestedAt.IsZero()
				})
				return nil
			}
		},
		"parked": func(b *bundle) {
			b.succeeds(time.Minute, 1)
			b.bucketAway(time.Hour)
			b.at(10*time.Minute, func() { b.env.CancelWorkflow() })
		},
		"asking a last time": func(b *bundle) {
			b.Async.OnPoll = func(context.Context, mediagate.JobRef) (mediagate.Report, error) {
				b.env.CancelWorkflow()
				return mediagate.Report{State: mediagate.JobRunning}, nil
			}
		},
		"fate unknown": func(b *bundle) {
			b.Async.OnSubmit = func(context.Context, mediagate.Job) (mediagate.Submission, error) {
				return mediagate.Submission{}, errLost
			}
			b.at(20*time.Second, func() { b.env.CancelWorkflow() })
		},
		"between two attempts": func(b *bundle) {
			refuse(b.Async, 100, mediagate.KindCapacity)
			b.at(time.Second, func() { b.env.CancelWorkflow() })
		},
	}
	for name, script := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			script(b)
			b.run()
			b.cancelled()
			if got := b.task(); got.CancelRequestedAt.IsZero() {
				t.Error("the cancel is not on the row")
			}
			if got := len(b.Async.Submits()); got > 1 {
				t.Errorf("%d jobs submitted", got)
			}
		})
	}
}

// A task that has ended stays as it ended, though the run is cancelled then.
func TestD13CancelOfAnEndedTask(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.succeeds(time.Minute, 1)
	b.Store.Fault = func(method string) error {
		if method == "Settle" {
			b.env.CancelWorkflow()
		}
		return nil
	}
	b.run()
	b.ended(mediagate.StatusCompleted)
	if got := len(b.Deliverer.Bodies()); got != 1 {
		t.Errorf("%d callbacks, want 1", got)
	}
}

// A cancel that commits after the run's last look at the row holds: nothing is
// charged, nobody is called, and the files go.
func TestD13CancelAtTheLastMoment(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.succeeds(time.Minute, 1)
	b.Store.Fault = func(method string) error {
		if method == "Settle" {
			_, err := b.Store.RequestCancel(context.Background(), "acc_1", taskID)
			b.ok(err)
		}
		return nil
	}
	b.run()
	b.cancelled()
	if got := b.Bucket.Objects(); len(got) != 0 {
		t.Errorf("objects %v are left", got)
	}
}

// The first end counts: a run that comes second goes on from what it finds.
func TestD13SettleReturnsTheEndItFinds(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.succeeds(time.Minute, 1)
	first := true
	b.Store.Fault = func(method string) error {
		if method == "Settle" && first {
			first = false
			_, _, err := b.Store.Settle(context.Background(), mediagate.Settlement{
				TaskID: taskID, Status: mediagate.StatusFailed, Failure: &mediagate.Failure{Code: mediagate.CodeInternal}, WebhookBody: []byte("{}"),
			})
			return err
		}
		return nil
	}
	b.run()
	b.failed(mediagate.CodeInternal)
	if got := len(b.Deliverer.Bodies()); got != 1 {
		t.Errorf("%d callbacks, want the one of the end that counts", got)
	}
}

// A late acceptance of a task that ended is recorded, and its job stopped.
func TestD5AcceptedAfterTheEnd(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.Async.OnSubmit = func(_ context.Context, job mediagate.Job) (mediagate.Submission, error) {
		_, _, err := b.Store.Settle(context.Background(), mediagate.Settlement{TaskID: taskID, Status: mediagate.StatusCancelled})
		b.ok(err)
		return b.Async.Accept(job)
	}
	b.run()
	b.cancelled()
	if got := b.Async.Cancelled(); len(got) != 1 || got[0].JobID != "job-"+activitytest.TaskID {
		t.Errorf("vendor jobs cancelled: %v, want that of the task", got)
	}
	if got := b.Store.Attempts(taskID)[0].Ref.JobID; got == "" {
		t.Error("the vendor's id was not recorded")
	}
}
