package workflows_test

import (
	"bytes"
	"context"
	"encoding/json"
	picture "image"
	"image/png"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/task"
	"github.com/mediagate/mediagate/task/view"
	"github.com/mediagate/mediagate/workflows"
)

// succeeds makes the vendor's job of attempt n succeed after d. Its poller leaves the copy to the
// run.
func (b *bundle) succeeds(d time.Duration, n int) {
	b.change(d, task.VendorEnded{N: n, Outcome: activitytest.Success()})
}

// copied is succeeds with a poller that copies the files, which ends the task.
func (b *bundle) copied(d time.Duration, n int) {
	b.change(
		d, task.VendorEnded{N: n, Outcome: activitytest.Success()},
		task.Mirrored{N: n, Results: []mediagate.Result{{Key: "results/0"}}},
	)
}

// TestStepsOfATask checks the steps of tasks. They are what a task costs, since each is a write
// of Temporal. The first step needs no question.
func TestStepsOfATask(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		task   func(*activitytest.World) mediagate.Task
		script func(*bundle)
		want   []string
		ended  time.Duration
	}{
		"an image": {image, (*bundle).answersAtOnce, []string{"SubmitJob"}, 0},
		"an image whose copy is left": {image, func(b *bundle) {
			b.Activities.Settings.QuickCopy = 0
			b.answersAtOnce()
		}, []string{"SubmitJob", "MirrorResult"}, 0},
		"a video": {video, func(b *bundle) { b.copied(2*time.Minute, 1) }, []string{"SubmitJob", "Ask"}, 2 * time.Minute},
		"a video whose copy is left": {
			video, func(b *bundle) { b.succeeds(2*time.Minute, 1) },
			[]string{"SubmitJob", "Ask", "MirrorResult"},
			2 * time.Minute,
		},
		"a video that the vendor fails": {video, func(b *bundle) {
			b.change(time.Minute, task.VendorEnded{N: 1, Outcome: activitytest.Failed(mediagate.CodeGenerationFailed)})
		}, []string{"SubmitJob", "Ask", "Settle"}, time.Minute},
		"a video that is late": {video, func(b *bundle) {
			b.change(
				2*time.Hour+time.Second, task.Claimed{N: 1, Claim: "c"}, task.Progressed{N: 1, Claim: "c", NextAt: time.Now()},
			)
		}, []string{"SubmitJob", "Ask", "Ask", "CancelJob", "Settle"}, 2*time.Hour + time.Second},
		"a client that cancels": {
			video, func(b *bundle) { b.change(time.Minute, task.CancelRequested{}) },
			[]string{"SubmitJob", "Ask", "CancelJob", "Settle"},
			time.Minute,
		},
		"a lost submission": {video, func(b *bundle) {
			b.loses()
			b.copied(time.Minute, 1)
		}, []string{"SubmitJob", "LookUp", "Ask"}, time.Minute},
		"media of the request": {func(w *activitytest.World) mediagate.Task {
			t := w.NewVideo()
			t.Params, t.Plan.Inputs = json.RawMessage(`{"image":"https://media.example.com/a.png"}`), []mediagate.Input{
				{Field: "image", MediaBounds: mediagate.MediaBounds{Kind: "image"}},
			}
			return t
		}, func(b *bundle) {
			b.Fetcher.OnFetch = func(context.Context, string, string) (io.ReadCloser, int64, error) {
				var file bytes.Buffer
				err := png.Encode(&file, picture.NewGray(picture.Rect(0, 0, 8, 8)))
				return io.NopCloser(&file), int64(file.Len()), err
			}
			b.copied(time.Minute, 1)
		}, []string{"CheckInputs", "SubmitJob", "Ask"}, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, func(w *activitytest.World) mediagate.Task {
				t := c.task(w)
				t.Webhook = mediagate.Webhook{}
				return t
			})
			c.script(b)
			b.carried()
			b.run()
			same(t, "steps", b.steps, c.want)
			if b.endedAt() != c.ended || b.Store.End(taskID).Times != 1 {
				t.Errorf("ended %d times, after %v; want once, after %v", b.Store.End(taskID).Times, b.endedAt(), c.ended)
			}
			b.submits(taskID)
			if len(b.Store.Wakes(taskID)) != 0 {
				t.Errorf("wakes are left: %v", b.Store.Wakes(taskID))
			}
		})
	}
}

// TestD2ASignalBeforeTheFirstStep checks that a run that was signalled before it began asks,
// although its start carries a step.
func TestD2ASignalBeforeTheFirstStep(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.change(0, task.CancelRequested{})
	b.carried()
	b.run()
	same(t, "steps", b.steps[:2], []string{"Ask", "Settle"})
	b.submits()
}

// TestD14CallbackOfARun checks that the run starts the callback in a workflow of its own.
func TestD14CallbackOfARun(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.copied(time.Minute, 1)
	b.run()
	b.ended(mediagate.StatusCompleted, "")
	same(t, "steps", b.steps, []string{"Ask", "SubmitJob", "Ask", "LoadRound", "DeliverWebhook"})
	var callback view.Task
	bodies := b.Deliverer.Bodies()
	if len(bodies) != 1 || json.Unmarshal(bodies[0], &callback) != nil || callback.ID != taskID ||
		callback.Status != mediagate.StatusCompleted {
		t.Errorf("callbacks %q, want one of the completed task", bodies)
	}
	if got := b.state().Webhook.State; got != mediagate.WebhookDelivered {
		t.Errorf("the callback is %s, want delivered", got)
	}
}

func TestD14TerminalAtStartOnlyStartsThePendingCallback(t *testing.T) {
	t.Parallel()
	for state, want := range map[mediagate.WebhookState]int{
		mediagate.WebhookPending: 1, mediagate.WebhookDelivered: 0, mediagate.WebhookAbandoned: 0,
		mediagate.WebhookDropped: 0, "": 0,
	} {
		t.Run(string(state), func(t *testing.T) {
			t.Parallel()
			b := failed(t)
			b.Store.Exec("UPDATE tasks SET webhook_state = ? WHERE id = ?", state, taskID)
			b.run()
			if got := len(b.Deliverer.Bodies()); got != want {
				t.Errorf("%d callbacks sent, want %d", got, want)
			}
			b.submits()
		})
	}
}

// failed returns a run of a task that has failed.
func failed(t *testing.T) *bundle {
	t.Helper()
	b := setup(t, video)
	_, err := b.Store.Change(t.Context(), taskID, task.FailRequested{}, task.EndDue{})
	b.ok(err)
	return b
}

// TestD5ARunRestoresALostTail checks that a row that lost its last commits in a failover adopts
// them from the run, which has seen the attempt and its job.
func TestD5ARunRestoresALostTail(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.Async.OnFind = func(context.Context, mediagate.JobRef) (mediagate.Report, error) {
		return mediagate.Report{}, mediagate.Errorf(mediagate.KindNotFound, "no such job")
	}
	b.at(time.Minute, func() {
		b.Store.Unsend(taskID)
		b.signal(workflows.SignalWake, nil)
	})
	b.copied(2*time.Minute, 1)
	b.run()
	b.ended(mediagate.StatusCompleted, "")
	b.submits(taskID)
}

// TestD12AStepThatFailsParks checks that a step that fails for good parks its task, and that the
// task tries again by itself.
func TestD12AStepThatFailsParks(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.Channels.Set()
	b.at(14*time.Minute, func() {
		if got := b.state().Wait.Reason; got != mediagate.ParkChannelMissing {
			t.Errorf("parked for %q, want %q", got, mediagate.ParkChannelMissing)
		}
	})
	b.at(15*time.Minute, func() { b.Channels.Set(b.AsyncBound()) })
	b.copied(30*time.Minute, 1)
	b.run()
	b.ended(mediagate.StatusCompleted, "")
	b.submits(taskID)
}

// TestD7AQueuedTaskIsWakenedWithItsSlot checks that a task without a slot waits until a channel
// grants one.
func TestD7AQueuedTaskIsWakenedWithItsSlot(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	c := b.AsyncBound()
	c.Concurrency = 1
	b.Channels.Set(c)
	enable := func(yes bool) {
		_, err := b.Store.EnableChannel(t.Context(), c.Name, yes)
		b.ok(err)
	}
	enable(false)
	b.at(10*time.Minute, func() {
		if b.state().Wait.Why != mediagate.WhySlot {
			t.Error("the task is not queued")
		}
		enable(true)
		epoch, err := b.Store.BeginEpoch(t.Context(), c.Name)
		b.ok(err)
		got, err := b.Store.GrantSlots(
			t.Context(), mediagate.Granting{Channel: c.Name, Epoch: epoch, Slots: c.Slots(), Most: 1, TakeBack: time.Minute},
		)
		if err != nil || len(got.Tasks) != 1 {
			t.Errorf("granted %+v, %v", got, err)
		}
		b.signal(workflows.SignalWake, nil)
	})
	b.copied(11*time.Minute, 1)
	b.run()
	b.ended(mediagate.StatusCompleted, "")
	if got := b.endedAt(); got != 11*time.Minute {
		t.Errorf("ended after %v, want 11m", got)
	}
}

// TestD15ModalParametersWakeTheRun checks that the run sleeps while the client is asked, and
// continues with what the client gives.
func TestD15ModalParametersWakeTheRun(t *testing.T) {
	t.Parallel()
	b := setup(t, inpainting)
	b.asks(time.Minute)
	b.change(2*time.Minute, task.ModalGiven{Input: json.RawMessage(`{}`)})
	b.copied(3*time.Minute, 2)
	b.run()
	b.ended(mediagate.StatusCompleted, "")
	if got := len(b.Async.Submits()); got != 2 {
		t.Errorf("%d calls, want the job and its parameters", got)
	}
}

func inpainting(w *activitytest.World) mediagate.Task {
	t := w.NewVideo()
	t.Type, t.Plan.Modal = mediagate.TypeArt, 30*time.Minute
	return t
}

// asks makes the vendor wait for modal parameters after d.
func (b *bundle) asks(d time.Duration) {
	b.at(d, func() {
		b.ok(b.StorePoll(b.t.Context(), mediagate.PollResult{TaskID: taskID, N: 1, Waiting: true}))
		b.signal(workflows.SignalWake, nil)
	})
}

// TestD18WaitsInTheBacklog checks that an attempt waits in its channel's backlog while a worker
// makes as many calls as it may, and that it looks for another channel if no worker serves the
// backlog.
func TestD18WaitsInTheBacklog(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	const behind = activitytest.AsyncChannel
	b.full(behind, behind, "", behind)
	b.copied(time.Minute, 1)
	b.run()
	b.ended(mediagate.StatusCompleted, "")
	const call, backlog = "call/" + activitytest.AsyncProvider, "backlog/" + behind
	same(t, "queues", b.queues("SubmitJob"), []string{call, backlog, backlog, call, backlog})
}

// TestD18CancelledInTheBacklog checks that a client's cancel reaches a submit in a backlog.
func TestD18CancelledInTheBacklog(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.full(activitytest.AsyncChannel, "cancelled")
	b.run()
	b.ended(mediagate.StatusCancelled, "")
	b.submits()
}

// full lets the first submits find all channels busy, so that they have to wait behind the named
// one. "" is a channel whose backlog no worker serves; "cancelled" is one during whose wait the
// client cancels.
func (b *bundle) full(answers ...string) {
	call := 0
	b.env.OnActivity(b.Activities.SubmitJob, mock.Anything, mock.Anything).Return(
		func(ctx context.Context, in activities.StepArgs) (activities.Answer, error) {
			if call == len(answers) {
				return b.Activities.SubmitJob(ctx, in)
			}
			answer := answers[call]
			call++
			switch answer {
			case "":
				return activities.Answer{}, temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, nil)
			case "cancelled":
				_, err := b.Store.Change(ctx, taskID, task.CancelRequested{})
				b.ok(err)
			}
			asked, err := b.Activities.Ask(ctx, activities.Question{TaskID: taskID})
			asked.Behind = answer
			return asked, err
		})
}

// queues returns the queues that activities of that name were put into.
func (b *bundle) queues(name string) (queues []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, info := range b.infos {
		if info.ActivityType.Name == name {
			queues = append(queues, info.TaskQueue)
		}
	}
	return queues
}
