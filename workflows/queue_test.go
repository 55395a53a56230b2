package workflows_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/workflows"
)

const otherTask = "task_01OTHER"

// limited gives the asynchronous channel one slot, which another task has.
func (b *bundle) limited() {
	b.t.Helper()
	c := b.AsyncBound()
	c.Concurrency = 1
	b.Channels.Set(c, b.SyncBound())
	other := b.NewVideo()
	other.ID, other.AccountID = otherTask, "acc_2"
	b.Store.Add(other)
	_, _, err := b.Store.OpenAttempt(b.t.Context(), mediagate.Attempt{
		TaskID: otherTask, N: 1, Channel: c.Name, Provider: c.Provider, Route: other.Plan.Routes[0],
	}, c.Slots())
	b.ok(err)
}

// free ends the job that has the slot.
func (b *bundle) free() {
	_, err := b.Store.RecordOutcome(b.t.Context(), otherTask, 1, activitytest.Success())
	b.ok(err)
}

// grants makes the channel look for free slots after d, and signals what it
// grants if signal says so.
func (b *bundle) grants(d time.Duration, signal bool) {
	b.at(d, func() {
		c := b.Channels.All()[0]
		epoch, err := b.Store.BeginEpoch(b.t.Context(), c.Name)
		b.ok(err)
		got, err := b.Store.GrantSlots(b.t.Context(), mediagate.Granting{
			Channel: c.Name, Epoch: epoch, Slots: c.Slots(), Most: 10, TakeBack: 2 * time.Minute, Again: 30 * time.Second,
		})
		b.ok(err)
		for _, row := range got.Signals {
			if signal {
				b.env.SignalWorkflow(workflows.SignalSlot, row.N)
			}
		}
	})
}

func TestD7QueuedUntilASlotIsGranted(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.limited()
	deadline := b.task().DeadlineAt
	var queued mediagate.Task
	b.at(10*time.Hour-time.Minute, func() {
		queued = b.task()
		if got, want := b.details(), "for a slot at `"+b.Channels.All()[0].Name+"`, until"; !strings.Contains(got, want) {
			t.Errorf("the details lack %q:\n%s", want, got)
		}
		b.submits()
		if got := b.count("SubmitJob"); got > 11 {
			t.Errorf("%d steps while nothing happened in ten hours", got)
		}
		b.free()
	})
	b.grants(10*time.Hour-time.Second, true)
	b.succeeds(11*time.Hour, 1)
	b.run()
	b.ended(mediagate.StatusCompleted)
	b.submits(taskID)
	if queued.Status != mediagate.StatusPending || queued.QueuedAt.IsZero() || !queued.ParkedAt.IsZero() {
		t.Errorf("while it waits: %s, queued %v, parked %v", queued.Status, queued.QueuedAt, queued.ParkedAt)
	}
	within(t, "the deadline's move", b.task().DeadlineAt.Sub(deadline), 10*time.Hour-2*time.Second, 10*time.Hour)
	within(t, "the end", b.endedAt(), 11*time.Hour, 11*time.Hour+time.Minute)
}

func TestD7NobodyHasASlotInTime(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.limited()
	b.Activities.Settings.QueueTimeout = 90 * time.Minute
	b.run()
	b.failed(mediagate.CodeProviderAway)
	if f := b.Store.Settlements(taskID)[0].Failure; !f.Retryable || f.Message != "no provider had room for the task in time" {
		t.Errorf("the failure: %+v", f)
	}
	within(t, "the end", b.endedAt(), 90*time.Minute, 91*time.Minute)
	b.submits()
	if rows, err := b.Store.QueuedTasks(t.Context(), activitytest.AsyncChannel, 10); err != nil || len(rows) > 0 {
		t.Errorf("still queued: %v, %v", rows, err)
	}
}

func TestQueuedTasksHearEverything(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		script func(*bundle)
		check  func(*bundle)
		least  time.Duration
	}{
		"cancel": {
			func(b *bundle) { b.cancels(time.Minute) },
			func(b *bundle) { b.ended(mediagate.StatusCancelled); b.submits() }, time.Minute,
		},
		"the run's cancel": {
			func(b *bundle) { b.at(time.Minute, b.env.CancelWorkflow) },
			func(b *bundle) { b.ended(mediagate.StatusCancelled); b.submits() }, time.Minute,
		},
		"an operator's fail": {
			func(b *bundle) { b.signal(time.Minute, mediagate.ActionFail, nil) },
			func(b *bundle) { b.failed(mediagate.CodeInternal); b.submits() }, time.Minute,
		},
		"an operator's retry": {
			func(b *bundle) {
				b.at(time.Minute, b.free) // which nobody notices
				b.signal(2*time.Minute, mediagate.ActionRetry, nil)
				b.succeeds(5*time.Minute, 1)
			},
			func(b *bundle) { b.ended(mediagate.StatusCompleted); b.submits(taskID) }, 5 * time.Minute,
		},
		"a wake": {
			func(b *bundle) {
				b.at(time.Minute, b.free)
				b.signal(2*time.Minute, workflows.SignalWake, nil)
				b.succeeds(5*time.Minute, 1)
			},
			func(b *bundle) { b.ended(mediagate.StatusCompleted); b.submits(taskID) }, 5 * time.Minute,
		},
		"nothing, and looks by itself": {
			func(b *bundle) {
				b.at(time.Minute, b.free)
				b.succeeds(80*time.Minute, 1)
			},
			func(b *bundle) { b.ended(mediagate.StatusCompleted); b.submits(taskID) }, 80 * time.Minute,
		},
		"slots of other attempts, which are ignored": {
			func(b *bundle) {
				b.signal(time.Minute, workflows.SignalSlot, 7)
				b.signal(time.Minute, workflows.SignalSlot, "what")
				b.signal(2*time.Minute, workflows.SignalSlot, 1) // none was granted
				b.at(3*time.Minute, b.free)
				b.grants(3*time.Minute, true)
				b.succeeds(5*time.Minute, 1)
			},
			func(b *bundle) {
				b.ended(mediagate.StatusCompleted)
				b.submits(taskID)
				if got := b.count("SubmitJob"); got != 2 {
					b.t.Errorf("%d submits were tried, want one without a slot and one with", got)
				}
			}, 5 * time.Minute,
		},
		"a channel that is gone": {
			func(b *bundle) {
				b.at(time.Minute, func() { b.Channels.Set(b.SyncBound()) })
				b.signal(2*time.Minute, workflows.SignalWake, nil)
				b.at(10*time.Minute, func() {
					if got := b.task(); got.ParkReason != mediagate.ParkChannelMissing || !got.QueuedAt.IsZero() {
						b.t.Errorf("parked for %q, queued %v", got.ParkReason, got.QueuedAt)
					}
					b.free()
					b.Channels.Set(b.AsyncBound())
				})
				b.succeeds(20*time.Minute, 1)
			},
			func(b *bundle) { b.ended(mediagate.StatusCompleted); b.submits(taskID) }, 20 * time.Minute,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			b.limited()
			test.script(b)
			b.run()
			test.check(b)
			within(t, "the end", b.endedAt(), test.least, test.least+2*time.Minute)
		})
	}
}

func TestD1AGrantWhoseSignalWasLost(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.limited()
	b.at(time.Minute, b.free)
	b.grants(time.Minute, false) // and whoever granted died
	b.succeeds(3*time.Hour, 1)
	b.run()
	b.ended(mediagate.StatusCompleted)
	b.submits(taskID)
}

func TestD7AfterARefusalTheNextAttemptQueues(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.limited()
	b.free()
	b.Async.OnSubmit = submitFunc(func(call int, job mediagate.Job) (mediagate.Submission, error) {
		if call > 1 {
			return b.Async.Accept(job)
		}
		// Somebody else has the slot as soon as it is free.
		b.at(0, func() {
			_, _, err := b.Store.OpenAttempt(context.Background(), mediagate.Attempt{
				TaskID: otherTask, N: 2, Channel: activitytest.AsyncChannel, Provider: activitytest.AsyncProvider,
			}, b.Channels.All()[0].Slots())
			b.ok(err)
		})
		return mediagate.Submission{}, mediagate.Errorf(mediagate.KindThrottled, "full")
	})
	b.at(10*time.Minute, func() {
		if got := b.task(); got.QueuedAt.IsZero() {
			t.Errorf("not queued: %+v", got)
		}
		_, err := b.Store.RecordOutcome(b.t.Context(), otherTask, 2, activitytest.Success())
		b.ok(err)
	})
	b.grants(10*time.Minute, true)
	b.succeeds(12*time.Minute, 2)
	b.run()
	b.ended(mediagate.StatusCompleted)
	b.submits(taskID, taskID+"-2")
}

// A parked task that is queued while its channel is shut, as the others are that
// take their turns to be the probe, does not outlast its parking for that.
func TestD12QueueingEndsNoParking(t *testing.T) {
	t.Parallel()
	for kind, code := range map[mediagate.Kind]mediagate.FailureCode{
		mediagate.KindCredentials: mediagate.CodeProviderRefused,
		mediagate.KindFunds:       mediagate.CodeProviderAway,
		mediagate.KindUnreached:   mediagate.CodeProviderAway,
	} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			c := b.AsyncBound()
			c.Concurrency = 1
			b.Channels.Set(c)
			refuse(b.Async, 1000, kind)
			b.Activities.Settings.ParkTimeout = 5 * time.Hour
			for d := time.Minute; d < 12*time.Hour; d += 30 * time.Minute {
				b.at(d, func() { // the probe of another task fails
					_, err := b.Store.EnableChannel(t.Context(), c.Name, true)
					b.ok(err)
					b.trip(c.Name, mediagate.ParkProviderAway, 28*time.Minute)
				})
				b.grants(d+29*time.Minute, true)
			}
			b.run()
			b.failed(code)
			within(t, "the end", b.endedAt(), 5*time.Hour, 6*time.Hour)
		})
	}
}

// D7: where one channel refuses and the other is full, the task rests between its
// tries, and parks after six of them.
func TestD7RefusedByOneAndTheOtherIsFull(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	refuse(b.Async, 1000, mediagate.KindCapacity)
	b.spare()
	full := b.Channels.All()[1]
	full.Concurrency = 1
	b.Channels.Set(b.AsyncBound(), full)
	theirs := b.NewVideo()
	theirs.ID = otherTask
	b.Store.Add(theirs)
	_, _, err := b.Store.OpenAttempt(t.Context(), mediagate.Attempt{
		TaskID: otherTask, N: 1, Channel: full.Name, Provider: full.Provider, Route: theirs.Plan.Routes[0],
	}, full.Slots())
	b.ok(err)
	b.at(10*time.Minute, func() {
		if n := len(b.Async.Submits()); n < 3 || n > 2*6 {
			t.Errorf("%d jobs were refused within ten minutes", n)
		}
	})
	b.cancels(20 * time.Minute)
	b.run()
	b.ended(mediagate.StatusCancelled)
}
