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

const modalTime = 30 * time.Minute

// inpainting is a task whose vendor may want to hear more from the client.
func inpainting(w *activitytest.World) mediagate.Task {
	t := w.NewVideo()
	t.Type, t.Plan.Modal, t.Plan.Timeout = mediagate.TypeArt, modalTime, 10*time.Minute
	t.DeadlineAt = t.CreatedAt.Add(t.Plan.Timeout)
	return t
}

// asks makes the vendor want more after d, and the channel hear of it.
func (b *bundle) asks(d time.Duration) { b.polled(d, mediagate.PollResult{N: 1, Waiting: true}) }

// says makes the client give parameters after d. Unsignalled, the API died
// before it told the workflow.
func (b *bundle) says(d time.Duration, signalled bool) {
	b.at(d, func() {
		command, _, err := b.Store.SubmitModal(b.t.Context(), mediagate.ModalCall{AccountID: "acc_1", TaskID: taskID, Input: []byte(`{"prompt":"a hat"}`)})
		b.ok(err)
		if signalled {
			b.env.SignalWorkflow(workflows.SignalAction, activities.ActionArgs{ID: command.ID, TaskID: taskID, Action: command.Action})
		}
	})
}

func TestD15ModalIsAWait(t *testing.T) {
	t.Parallel()
	for name, signalled := range map[string]bool{"signalled": true, "by the reconciler": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, inpainting)
			b.asks(time.Minute)
			b.says(25*time.Minute, signalled) // long after the first deadline
			if !signalled {
				b.signal(26*time.Minute, workflows.SignalAction, activities.ActionArgs{ID: "act_1", TaskID: taskID, Action: mediagate.ActionModal})
			}
			b.at(24*time.Minute, func() {
				if got := b.task(); got.Modal.State != mediagate.ModalWaiting || len(b.Store.Awaits()) > 0 {
					t.Errorf("the task is %q, and %d rows wait", got.Modal.State, len(b.Store.Awaits()))
				}
			})
			b.succeeds(27*time.Minute, 2)
			b.run()
			b.ended(mediagate.StatusCompleted)
			b.submits(taskID, taskID+"-2")
			if n := b.count("PollJob"); n > 0 {
				t.Errorf("the vendor was asked %d times though nothing was to be known", n)
			}
			second := b.Async.Submits()[1]
			want := mediagate.Job{
				TaskID: taskID, ExternalID: taskID + "-2", Upstream: "upstream-v3", Operation: mediagate.OperationModal,
				Params: []byte(`{"prompt":"a hat"}`), SendBefore: second.SendBefore,
				Source: &mediagate.Source{
					TaskID: taskID, Provider: activitytest.AsyncProvider, Channel: activitytest.AsyncChannel, Fingerprint: "account-a",
					Ref: b.Store.Attempts(taskID)[0].Ref, Own: true,
				},
			}
			second.Inputs, second.Sink = nil, nil
			if diff := cmp.Diff(want, second); diff != "" {
				t.Errorf("the job that takes the parameters (-want +got):\n%s", diff)
			}
		})
	}
}

func TestD15ModalExpires(t *testing.T) {
	t.Parallel()
	for name, during := range map[string]func(*bundle){
		"undisturbed": func(*bundle) {},
		"woken":       func(b *bundle) { b.signal(20*time.Minute, workflows.SignalWake, nil) },
		"retried":     func(b *bundle) { b.signal(20*time.Minute, mediagate.ActionRetry, nil) },
		"polled":      func(b *bundle) { b.signal(20*time.Minute, mediagate.ActionPollNow, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, inpainting)
			b.asks(time.Minute)
			during(b)
			b.run()
			b.failed(mediagate.CodeModalExpired)
			b.submits(taskID)
			within(t, "the end", b.endedAt(), time.Minute+modalTime, time.Minute+modalTime+time.Second)
			if len(b.Async.Cancelled()) != 1 {
				t.Error("the job that waits was not stopped")
			}
		})
	}
}

func TestD15WhatElseEndsModal(t *testing.T) {
	t.Parallel()
	t.Run("cancelled", func(t *testing.T) {
		t.Parallel()
		b := setup(t, inpainting)
		b.asks(time.Minute)
		b.cancels(2 * time.Minute)
		b.run()
		b.ended(mediagate.StatusCancelled)
	})
	t.Run("failed by an operator", func(t *testing.T) {
		t.Parallel()
		b := setup(t, inpainting)
		b.asks(time.Minute)
		b.signal(2*time.Minute, mediagate.ActionFail, nil)
		b.run()
		b.ended(mediagate.StatusFailed)
	})
	t.Run("cancelled after the client's word", func(t *testing.T) {
		t.Parallel()
		b := setup(t, inpainting)
		b.asks(time.Minute)
		b.says(2*time.Minute, true)
		b.cancels(3 * time.Minute)
		b.run()
		b.ended(mediagate.StatusCancelled)
		b.submits(taskID, taskID+"-2")
	})
}

// The wait is noted at the deadline as well, when no channel had told of it.
func TestD15ModalAtTheDeadline(t *testing.T) {
	t.Parallel()
	b := setup(t, inpainting)
	b.Async.OnPoll = func(context.Context, mediagate.JobRef) (mediagate.Report, error) {
		return mediagate.Report{State: mediagate.JobWaiting, Word: "MODAL", Percent: -1}, nil
	}
	b.says(20*time.Minute, true)
	b.succeeds(21*time.Minute, 2)
	b.run()
	b.ended(mediagate.StatusCompleted)
	b.submits(taskID, taskID+"-2")
}

// D1: a run that replaces one goes on by the row, whatever the one before had
// come to.
func TestD15RunIsReplacedInModal(t *testing.T) {
	t.Parallel()
	waits := func(b *bundle) {
		submitByHand(b)
		b.ok(b.StorePoll(b.t.Context(), mediagate.PollResult{TaskID: taskID, N: 1, Waiting: true}))
	}
	given := func(b *bundle) {
		waits(b)
		_, _, err := b.Store.SubmitModal(b.t.Context(), mediagate.ModalCall{AccountID: "acc_1", TaskID: taskID, Input: []byte(`{}`)})
		b.ok(err)
	}
	intent := func(b *bundle) {
		given(b)
		route := findable(b)
		route.Operation = mediagate.OperationModal
		_, _, err := b.Store.OpenAttempt(b.t.Context(), mediagate.Attempt{
			TaskID: taskID, N: 2, Channel: activitytest.AsyncChannel, Provider: activitytest.AsyncProvider, Fingerprint: "account-a",
			Route: route, ExternalID: taskID + "-2", SendBefore: b.env.Now().Add(10 * time.Second), CreatedAt: b.env.Now(),
		}, mediagate.Slots{})
		b.ok(err)
	}
	for name, test := range map[string]struct {
		leave   func(*bundle)
		want    mediagate.Status
		submits []string // since
	}{
		"the wait stored, not told":            {waits, mediagate.StatusFailed, nil},
		"noted":                                {func(b *bundle) { waits(b); b.ok(b.Store.DropAwait(b.t.Context(), taskID, 1)) }, mediagate.StatusFailed, nil},
		"parked before":                        {func(b *bundle) { waits(b); b.ok(b.Store.Park(b.t.Context(), taskID, mediagate.ParkJobLost)) }, mediagate.StatusFailed, nil},
		"parameters stored, not told":          {given, mediagate.StatusCompleted, []string{taskID + "-2"}},
		"their intent stored, they may be out": {intent, mediagate.StatusCompleted, []string{taskID + "-2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, inpainting)
			b.Async.OnPoll = func(context.Context, mediagate.JobRef) (mediagate.Report, error) {
				return mediagate.Report{State: mediagate.JobWaiting, Word: "MODAL", Percent: -1}, nil
			}
			test.leave(b)
			before := len(b.Async.Submits())
			b.again(time.Minute)
			if test.want == mediagate.StatusCompleted {
				b.succeeds(8*time.Minute, 2)
			}
			b.run()
			b.ended(test.want)
			var got []string
			for _, job := range b.Async.Submits()[before:] {
				got = append(got, job.ExternalID)
			}
			if diff := cmp.Diff(test.submits, got); diff != "" {
				t.Errorf("submits since (-want +got):\n%s", diff)
			}
			if test.want == mediagate.StatusFailed {
				b.failed(mediagate.CodeModalExpired)
			}
		})
	}
}

// D4: an answer to the parameters that was lost is looked for by the id of the
// job that waits: it waits still, so they are sent again, under the same name;
// or it does not, so they have arrived.
func TestD15LostAnswerToParameters(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		then    mediagate.Report
		submits []string
	}{
		"they have arrived":     {mediagate.Report{State: mediagate.JobRunning, Word: "IN_PROGRESS", Percent: 1}, []string{taskID, taskID + "-2"}},
		"they have not arrived": {mediagate.Report{State: mediagate.JobWaiting, Word: "MODAL", Percent: -1}, []string{taskID, taskID + "-2", taskID + "-2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, inpainting)
			b.Async.OnSubmit = submitFunc(func(call int, job mediagate.Job) (mediagate.Submission, error) {
				if call == 2 {
					return mediagate.Submission{}, errLost
				}
				return b.Async.Accept(job)
			})
			b.Async.OnPoll = func(context.Context, mediagate.JobRef) (mediagate.Report, error) { return test.then, nil }
			b.asks(time.Minute)
			b.says(2*time.Minute, true)
			b.succeeds(9*time.Minute, 2)
			b.run()
			b.ended(mediagate.StatusCompleted)
			b.submits(test.submits...)
			if n := len(b.Async.Finds()); n > 0 {
				t.Errorf("the vendor was asked %d times by our own id", n)
			}
		})
	}
}

// A word that nobody knows, or a job that the vendor does not know, proves
// neither: nothing is sent twice.
func TestD15NothingIsProven(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func() (mediagate.Report, error){
		"unknown word": func() (mediagate.Report, error) {
			return mediagate.Report{State: mediagate.JobUnknown, Word: "ODD"}, nil
		},
		"unknown job": func() (mediagate.Report, error) {
			return mediagate.Report{}, mediagate.Errorf(mediagate.KindNotFound, "no such job")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, inpainting)
			b.Async.OnSubmit = submitFunc(func(call int, job mediagate.Job) (mediagate.Submission, error) {
				if call == 2 {
					return mediagate.Submission{}, errLost
				}
				return b.Async.Accept(job)
			})
			b.Async.OnPoll = func(context.Context, mediagate.JobRef) (mediagate.Report, error) { return answer() }
			b.asks(time.Minute)
			b.says(2*time.Minute, true)
			b.run()
			b.failed(mediagate.CodeSubmissionUnknown)
			b.submits(taskID, taskID+"-2")
		})
	}
}

// Parameters go to the account whose job waits, and to no other: not when its
// channel is gone, and not when it is full.
func TestD15ParametersGoToTheAccount(t *testing.T) {
	t.Parallel()
	t.Run("its channel is gone for a while", func(t *testing.T) {
		t.Parallel()
		b := setup(t, inpainting)
		spare := b.AsyncBound()
		spare.Name, spare.Fingerprint = "async-b", "account-b"
		b.asks(time.Minute)
		b.at(90*time.Second, func() { b.Channels.Set(spare, b.SyncBound()) })
		b.says(2*time.Minute, true)
		b.at(6*time.Minute, func() {
			if got := b.task().ParkReason; got != mediagate.ParkChannelMissing {
				t.Errorf("the task is parked for %q", got)
			}
			b.Channels.Set(b.AsyncBound(), spare, b.SyncBound())
		})
		b.succeeds(13*time.Minute, 2)
		b.run()
		b.ended(mediagate.StatusCompleted)
		b.submits(taskID, taskID+"-2")
	})
	t.Run("its key is renewed meanwhile", func(t *testing.T) { // D11: the job that waits proves whose the new one is
		t.Parallel()
		b := setup(t, inpainting)
		b.Async.OnPoll = func(_ context.Context, ref mediagate.JobRef) (mediagate.Report, error) {
			return mediagate.Report{Ref: ref, State: mediagate.JobWaiting, Word: "MODAL", Percent: -1, Named: true}, nil
		}
		b.asks(time.Minute)
		b.at(90*time.Second, func() { b.Channels.Set(b.Renewed(), b.SyncBound()) })
		b.says(2*time.Minute, true)
		b.succeeds(4*time.Minute, 2)
		b.run()
		b.ended(mediagate.StatusCompleted)
		b.submits(taskID, taskID+"-2")
	})
	t.Run("its name is another account's meanwhile", func(t *testing.T) {
		t.Parallel()
		b := setup(t, inpainting)
		other, vendor := b.Stranger()
		b.asks(time.Minute)
		b.at(90*time.Second, func() { b.Channels.Set(other, b.SyncBound()) })
		b.says(2*time.Minute, true)
		b.at(9*time.Minute, func() {
			if got := b.task().ParkReason; got != mediagate.ParkChannelMissing {
				t.Errorf("the task is parked for %q", got)
			}
		})
		b.cancels(10 * time.Minute)
		b.run()
		b.ended(mediagate.StatusCancelled)
		b.submits(taskID)
		if n := len(vendor.Submits()); n > 0 {
			t.Errorf("another account was sent %d jobs", n)
		}
	})
	t.Run("it refuses for now", func(t *testing.T) {
		t.Parallel()
		b := setup(t, inpainting)
		b.Async.OnSubmit = submitFunc(func(call int, job mediagate.Job) (mediagate.Submission, error) {
			if call == 2 {
				return mediagate.Submission{}, mediagate.Errorf(mediagate.KindCapacity, "full")
			}
			return b.Async.Accept(job)
		})
		spare := b.AsyncBound()
		spare.Name, spare.Fingerprint = "async-b", "account-b"
		b.Channels.Set(b.AsyncBound(), spare, b.SyncBound())
		b.asks(time.Minute)
		b.says(2*time.Minute, true)
		b.succeeds(5*time.Minute, 3)
		b.run()
		b.ended(mediagate.StatusCompleted)
		b.submits(taskID, taskID+"-2", taskID+"-3")
		for _, a := range b.Store.Attempts(taskID) {
			if a.Channel != activitytest.AsyncChannel {
				t.Errorf("attempt %d went to %s", a.N, a.Channel)
			}
		}
	})
}
