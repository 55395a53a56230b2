package main

import (
	"context"
	"encoding/json"
	"io"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/sandbox/sample"
	"github.com/mediagate/mediagate/task"
	"github.com/mediagate/mediagate/workflows"
)

// scenarios begin with the singletons: a later one would find them with what others
// have left in their histories.
func scenarios() []scenario {
	tending := workflows.IDChannel(activitytest.AsyncChannel)
	return []scenario{
		{name: "wake", task: video, play: handedOver(workflows.IDWake), open: true, workflow: workflows.IDWake},
		{name: "channel", task: video, play: handedOver(tending), open: true, workflow: tending},
		{name: "image", task: image, prepare: answersAtOnce},
		{name: "video", task: video, play: []move{accepted, ends}},
		{name: "checked", task: naming, prepare: served, play: []move{accepted, ends}},
		{name: "lost", task: video, prepare: answerLost, play: []move{ends}},
		{name: "lost-and-retried", task: parking, prepare: answerLost, play: []move{sleeps, answered, signalled(mediagate.ActionRetry)}},
		{name: "late", task: late},
		{name: "cancelled", task: video, play: []move{accepted, happens(task.CancelRequested{})}},
		{name: "cancelled-from-outside", task: video, play: []move{accepted, cancelled}},
		{
			name: "cancelled-while-submitting", task: video, prepare: hangingSubmit,
			play: []move{begun, happens(task.CancelRequested{}), isStopped, released},
		},
		{name: "cancelled-while-checking", task: naming, prepare: hangingFile, play: []move{begun, happens(task.CancelRequested{})}},
		{name: "cancelled-while-mirroring", task: video, prepare: hangingFile, play: []move{accepted, ends, begun, happens(task.CancelRequested{})}},
		{name: "parked", task: video, prepare: bucketAway, play: []move{accepted, ends, parked, sleeps, released, signalled(mediagate.ActionRetry)}},
		{name: "parked-and-failed", task: video, prepare: bucketAway, play: []move{accepted, ends, parked, signalled(mediagate.ActionFail)}},
		{name: "queued", task: video, prepare: slotTaken, play: []move{queued, slotFreed, accepted, ends}},
		{name: "modal", task: inpainting, prepare: asksForMore, play: []move{asked, happens(task.ModalGiven{Input: json.RawMessage(`{"prompt":"` + activitytest.Secret + `"}`)})}},
		{name: "callback", task: image, prepare: retriedOnce, play: []move{over}, workflow: workflows.IDWebhook("task_callback", 1)},
	}
}

// The tasks.

func video(w *activitytest.World) mediagate.Task {
	t := w.NewVideo()
	t.Plan.Expected = 4 * time.Second // polled every 2 s
	return t
}

func image(w *activitytest.World) mediagate.Task { return w.NewImage() }

// naming is a video that goes by a picture of its client's.
func naming(w *activitytest.World) mediagate.Task {
	t := video(w)
	t.Params = json.RawMessage(`{"image_url":"https://client.example.com/` + activitytest.Secret + `"}`)
	t.Plan.Inputs = []mediagate.Input{{Field: "image_url", MediaBounds: mediagate.MediaBounds{Kind: "image", MinSide: 8}}}
	return t
}

// parking is an image whose vendor cannot be asked what became of a lost answer.
func parking(w *activitytest.World) mediagate.Task {
	t := image(w)
	t.Plan.OnUnknown = mediagate.OnUnknownPark
	return t
}

func late(w *activitytest.World) mediagate.Task {
	t := video(w)
	t.DeadlineAt = time.Now().Add(3 * time.Second)
	return t
}

func inpainting(w *activitytest.World) mediagate.Task {
	t := video(w)
	t.Type, t.Plan.Modal = mediagate.TypeArt, time.Minute
	return t
}

// The vendors, and whoever else is outside.

func answersAtOnce(st *stage) {
	st.Sync.OnSubmit = func(_ context.Context, job mediagate.Job) (mediagate.Submission, error) {
		s, err := st.Sync.Accept(job)
		outcome := activitytest.Success()
		s.Outcome = &outcome
		return s, err
	}
}

// answerLost makes the vendors make the job and lose the answer.
func answerLost(st *stage) {
	for _, v := range []*activitytest.Vendor{st.Async, st.Sync} {
		v.OnSubmit = func(_ context.Context, job mediagate.Job) (mediagate.Submission, error) {
			if _, err := v.Accept(job); err != nil {
				return mediagate.Submission{}, err
			}
			return mediagate.Submission{}, mediagate.Errorf(mediagate.KindAmbiguous, "the answer was lost")
		}
	}
}

// hangingSubmit has the vendor take its time, whatever the caller wants.
func hangingSubmit(st *stage) {
	st.Async.OnSubmit = func(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
		if err := st.hangs(context.WithoutCancel(ctx)); err != nil {
			return mediagate.Submission{}, err
		}
		return st.Async.Accept(job)
	}
}

// hangingFile has the server of each file take its time.
func hangingFile(st *stage) {
	st.Activities.Settings.QuickCopy = 0
	st.Fetcher.OnFetch = func(ctx context.Context, _, _ string) (io.ReadCloser, int64, error) {
		return nil, 0, st.hangs(ctx)
	}
}

func served(st *stage) {
	st.Fetcher.OnFetch = func(_ context.Context, _, _ string) (io.ReadCloser, int64, error) {
		r, w := io.Pipe()
		go func() { _ = w.CloseWithError(sample.Grid(w, "image/png", 64, 64)) }()
		return r, -1, nil
	}
}

// bucketAway has the bucket take no file until it is released.
func bucketAway(st *stage) {
	st.Bucket.OnMirror = func(string) error {
		select {
		case <-st.release:
			return nil
		default:
			return mediagate.Errorf(mediagate.KindUnavailable, "the bucket is away")
		}
	}
}

const otherTask = "task_other"

// slotTaken leaves the vendor's account without a free slot.
func slotTaken(st *stage) {
	c := st.AsyncBound()
	c.Concurrency = 1
	st.Channels.Set(c)
	other := st.NewVideo()
	other.ID = otherTask
	st.Store.Add(other)
	if _, err := st.Store.OpenIntent(context.Background(), otherTask, c.Slots(), task.IntentStored{Sending: task.Sending{N: 1, Channel: c.Name, Provider: c.Provider, ExternalID: otherTask}}); err != nil {
		panic(err) // the doubles' own
	}
}

// asksForMore makes the vendor want parameters until it was given some.
func asksForMore(st *stage) {
	st.Async.OnPoll = func(context.Context, mediagate.JobRef) (mediagate.Report, error) {
		if len(st.Async.Submits()) < 2 {
			return mediagate.Report{State: mediagate.JobWaiting, Word: "MODAL", Percent: -1}, nil
		}
		outcome := activitytest.Success()
		return mediagate.Report{State: mediagate.JobSucceeded, Outcome: &outcome}, nil
	}
}

// retriedOnce has the client take the second delivery only.
func retriedOnce(st *stage) {
	answersAtOnce(st)
	st.Deliverer.OnDeliver = func(n int) (mediagate.DeliveryResult, error) {
		if n == 1 {
			return mediagate.DeliveryResult{Outcome: mediagate.DeliveryRetry, Status: 503}, nil
		}
		return mediagate.DeliveryResult{Outcome: mediagate.DeliveryDone, Status: 200}, nil
	}
}

// The moves.

// is waits until the task's state is so.
func is(so func(task.State) bool) move {
	return func(ctx context.Context, st *stage) error {
		return until(ctx, func() bool {
			s, _ := st.Store.Peek(st.id)
			return so(s)
		})
	}
}

var (
	accepted = is(func(s task.State) bool { return s.Last() != nil && s.Last().State == mediagate.AttemptAccepted })
	parked   = is(func(s task.State) bool { return !s.ParkedAt.IsZero() })
	queued   = is(func(s task.State) bool { return !s.QueuedAt.IsZero() })
	asked    = is(func(s task.State) bool { return s.Modal.State == mediagate.ModalWaiting })
)

// latest waits until the run's history has such an event as its last one.
func latest(kind enumspb.EventType) move {
	return func(ctx context.Context, st *stage) error {
		return until(ctx, func() bool {
			history, err := st.history(ctx, st.id)
			return err == nil && history[len(history)-1].GetEventType() == kind
		})
	}
}

var (
	sleeps    = latest(enumspb.EVENT_TYPE_TIMER_STARTED)
	isStopped = latest(enumspb.EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED)
)

// happens is an event from outside.
func happens(event task.Event) move {
	return func(ctx context.Context, st *stage) error { return st.change(ctx, st.id, event) }
}

// signalled is an operator's signal.
func signalled(action string) move {
	return func(ctx context.Context, st *stage) error {
		return st.engine.Temporal.SignalWorkflow(ctx, st.id, "", action, nil)
	}
}

func cancelled(ctx context.Context, st *stage) error {
	return st.engine.Temporal.CancelWorkflow(ctx, st.id, "")
}

func slotFreed(ctx context.Context, st *stage) error {
	return st.change(ctx, otherTask, task.VendorEnded{N: 1, Outcome: activitytest.Success()})
}

// ends ends the vendor's job.
func ends(_ context.Context, st *stage) error {
	st.Async.End(st.id, activitytest.Success())
	return nil
}

// answered has the vendor answer from now on.
func answered(_ context.Context, st *stage) error {
	answersAtOnce(st)
	return nil
}

// begun waits until a call hangs.
func begun(ctx context.Context, st *stage) error {
	select {
	case <-st.begun:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func released(_ context.Context, st *stage) error {
	close(st.release)
	return nil
}

// over waits for the end of the task's run.
func over(ctx context.Context, st *stage) error {
	return st.engine.Temporal.GetWorkflow(ctx, st.id, "").Get(ctx, nil)
}

// handedOver stops the worker that has a singleton's activity, so that another takes it.
func handedOver(id string) []move {
	works := func(ctx context.Context, st *stage) error {
		return until(ctx, func() bool {
			run, err := st.engine.Temporal.DescribeWorkflowExecution(ctx, id, "")
			return err == nil && len(run.GetPendingActivities()) == 1 && run.GetPendingActivities()[0].GetLastHeartbeatTime() != nil
		})
	}
	return []move{works, restarted, works}
}

// restarted stops the worker, and starts another.
func restarted(ctx context.Context, st *stage) error {
	if err := st.stop(); err != nil {
		return err
	}
	st.start(ctx)
	return nil
}
