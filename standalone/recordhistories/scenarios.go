package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync/atomic"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/sandbox/sample"
	"github.com/mediagate/mediagate/workflows"
)

func scenarios() []scenario {
	return []scenario{
		{name: "video", task: video, play: ends},
		{name: "image", task: image, prepare: answersAtOnce},
		{name: "cancelled", task: video, play: func(ctx context.Context, st *stage) error {
			if err := accepted(ctx, st); err != nil {
				return err
			}
			return cancel(ctx, st)
		}},
		{name: "judged", task: naming, prepare: awayAtFirst, play: ends},
		{name: "judged-bad", task: naming, prepare: noImage},
		{name: "cancelled-while-judging", task: naming, play: cancelledWhileJudging},
		{name: "cancelled-while-submitting", task: video, play: cancelledWhileSubmitting},
		{name: "cancelled-while-mirroring", task: video, play: cancelledWhileMirroring},
		{name: "failed-while-mirroring", task: video, play: failedWhileMirroring},
		{name: "cancelled-from-outside", task: video, play: func(ctx context.Context, st *stage) error {
			if err := accepted(ctx, st); err != nil {
				return err
			}
			return st.engine.Temporal.CancelWorkflow(ctx, st.task.ID, "")
		}},
		{name: "parked", task: video, prepare: deadAtFirst, play: ends},
		{name: "refused", task: video, prepare: fullAtFirst, play: ends},
		{name: "shut-out", task: video, prepare: spareAccount, play: shutOut},
		{name: "queued", task: video, prepare: slotTaken, play: slotFreed},
		{name: "lost", task: video, prepare: answerLost, play: ends},
		{name: "trouble", task: video, prepare: lostSight, play: ends},
		{name: "trouble-over", task: video, play: sightRegained},
		{name: "modal", task: inpainting(time.Minute), prepare: asksForMore, play: given},
		{name: "modal-expired", task: inpainting(2 * time.Second), prepare: asksForMore},
		{name: "callback", task: image, prepare: func(st *stage) {
			answersAtOnce(st)
			retriedOnce(st)
		}, workflow: func(st *stage) string { return workflows.IDWebhook(st.task.ID, 1) }, play: startedAndEnded},
		{name: "callback-under-way", task: video, prepare: retriedOnce, play: callbackUnderWay},
		{name: "channel", task: video, play: handedOver, open: true, workflow: func(*stage) string {
			return workflows.IDChannel(activitytest.AsyncChannel)
		}},
	}
}

func video(w *activitytest.World) mediagate.Task {
	t := w.NewVideo()
	t.Plan.Expected = 4 * time.Second // polled every 2 s
	return t
}

func image(w *activitytest.World) mediagate.Task { return w.NewImage() }

func answersAtOnce(st *stage) {
	st.Sync.OnSubmit = func(_ context.Context, job mediagate.Job) (mediagate.Submission, error) {
		s, err := st.Sync.Accept(job)
		outcome := activitytest.Success()
		s.Outcome = &outcome
		return s, err
	}
}

// inpainting is a task that waits so long for its client.
func inpainting(modal time.Duration) func(*activitytest.World) mediagate.Task {
	return func(w *activitytest.World) mediagate.Task {
		t := video(w)
		t.Type, t.Plan.Modal = mediagate.TypeArt, modal
		return t
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

// given has the client speak once it is asked.
func given(ctx context.Context, st *stage) error {
	if err := startTask(ctx, st); err != nil {
		return err
	}
	if err := until(ctx, func() bool {
		t, err := st.Store.TaskByID(ctx, st.task.ID)
		return err == nil && t.Modal.State == mediagate.ModalWaiting && len(st.Store.Awaits()) == 0
	}); err != nil {
		return err
	}
	command, _, err := st.Store.SubmitModal(ctx, mediagate.ModalCall{
		AccountID: st.task.AccountID, TaskID: st.task.ID, Input: json.RawMessage(`{"prompt":"` + activitytest.Secret + `"}`),
	})
	if err != nil {
		return err
	}
	return st.engine.SignalAction(ctx, command)
}

// deadAtFirst makes the result's link dead until the task has parked.
func deadAtFirst(st *stage) {
	st.Fetcher.OnFetch = func(ctx context.Context, url, host string) (io.ReadCloser, int64, error) {
		if t, err := st.Store.TaskByID(ctx, st.task.ID); err != nil || (t.ParkedAt.IsZero() && len(st.Bucket.Objects()) == 0) {
			return nil, 0, mediagate.Errorf(mediagate.KindGone, "the link has died")
		}
		return (&activitytest.Fetcher{}).Fetch(ctx, url, host)
	}
}

func fullAtFirst(st *stage) {
	var calls atomic.Int64
	st.Async.OnSubmit = func(_ context.Context, job mediagate.Job) (mediagate.Submission, error) {
		if calls.Add(1) == 1 {
			return mediagate.Submission{}, mediagate.Errorf(mediagate.KindCapacity, "all slots are taken")
		}
		return st.Async.Accept(job)
	}
}

// spareAccount adds an account, tried after the first, which is out of money.
// The first is disabled for now, and so is the other.
func spareAccount(st *stage) {
	st.Async.OnSubmit = func(context.Context, mediagate.Job) (mediagate.Submission, error) {
		return mediagate.Submission{}, mediagate.Errorf(mediagate.KindFunds, "in arrears")
	}
	spare := st.AsyncBound()
	spare.Name, spare.Fingerprint, spare.Priority, spare.Vendor = "async-b", "account-b", 1, (&activitytest.Vendor{}).Finding()
	st.Channels.Set(st.AsyncBound(), spare)
}

// shutOut starts the task while no channel takes it; then one refuses it, and
// the next one takes it.
func shutOut(ctx context.Context, st *stage) error {
	enable := func(enabled bool) error {
		_, first := st.Store.EnableChannel(ctx, activitytest.AsyncChannel, enabled)
		_, second := st.Store.EnableChannel(ctx, "async-b", enabled)
		return errors.Join(first, second)
	}
	if err := enable(false); err != nil {
		return err
	}
	if err := st.engine.Start(ctx, st.task); err != nil {
		return err
	}
	if err := until(ctx, func() bool {
		t, err := st.Store.TaskByID(ctx, st.task.ID)
		return err == nil && !t.ParkedAt.IsZero()
	}); err != nil {
		return err
	}
	if err := enable(true); err != nil {
		return err
	}
	time.Sleep(2 * time.Second) // until the worker knows, and the run waits
	if err := st.engine.SignalWake(ctx, st.task.ID); err != nil {
		return err
	}
	if err := state(ctx, st, mediagate.AttemptAccepted); err != nil {
		return err
	}
	if _, err := st.Store.RecordOutcome(ctx, st.task.ID, 2, activitytest.Success()); err != nil {
		return err
	}
	_, err := st.engine.SignalUpstream(ctx, st.task.ID, 2)
	return err
}

const otherTask = "task_other"

// slotTaken leaves the vendor's account without a free slot.
func slotTaken(st *stage) {
	c := st.AsyncBound()
	c.Concurrency = 1
	st.Channels.Set(c, st.SyncBound())
	other := st.NewVideo()
	other.ID = otherTask
	st.Store.Add(other)
	_, _, err := st.Store.OpenAttempt(context.Background(), mediagate.Attempt{TaskID: otherTask, N: 1, Channel: c.Name, Provider: c.Provider}, c.Slots())
	if err != nil {
		panic(err) // the doubles' own
	}
}

// slotFreed frees it once the task is queued.
func slotFreed(ctx context.Context, st *stage) error {
	if err := startTask(ctx, st); err != nil {
		return err
	}
	queued := func() bool {
		story, err := st.Store.Story(ctx, st.task.ID)
		return err == nil && !story.QueuedAt.IsZero()
	}
	if err := until(ctx, queued); err != nil {
		return err
	}
	if _, err := st.Store.RecordOutcome(ctx, otherTask, 1, activitytest.Success()); err != nil {
		return err
	}
	if err := until(ctx, func() bool { return len(st.Store.Awaits()) == 1 }); err != nil {
		return err
	}
	st.Async.End(st.task.ID, activitytest.Success())
	return nil
}

// answerLost makes the job and loses the answer.
func answerLost(st *stage) {
	st.Async.OnSubmit = func(_ context.Context, job mediagate.Job) (mediagate.Submission, error) {
		if _, err := st.Async.Accept(job); err != nil {
			return mediagate.Submission{}, err
		}
		return mediagate.Submission{}, mediagate.Errorf(mediagate.KindAmbiguous, "the answer was lost")
	}
}

// lostSight makes the vendor not know the job until the task has parked.
func lostSight(st *stage) {
	st.Async.OnPoll = func(ctx context.Context, _ mediagate.JobRef) (mediagate.Report, error) {
		if t, err := st.Store.TaskByID(ctx, st.task.ID); err != nil || t.ParkedAt.IsZero() {
			return mediagate.Report{}, mediagate.Errorf(mediagate.KindNotFound, "no such job")
		}
		outcome := activitytest.Success()
		return mediagate.Report{State: mediagate.JobSucceeded, Outcome: &outcome}, nil
	}
}

// sightRegained makes the vendor not know the job until the task has parked,
// and end it only once the task is unparked again.
func sightRegained(ctx context.Context, st *stage) error {
	parked := func() bool {
		t, err := st.Store.TaskByID(ctx, st.task.ID)
		return err == nil && !t.ParkedAt.IsZero()
	}
	var over atomic.Bool
	st.Async.OnPoll = func(context.Context, mediagate.JobRef) (mediagate.Report, error) {
		switch {
		case over.Load():
			outcome := activitytest.Success()
			return mediagate.Report{State: mediagate.JobSucceeded, Outcome: &outcome}, nil
		case parked():
			return mediagate.Report{State: mediagate.JobRunning, Percent: -1}, nil
		default:
			return mediagate.Report{}, mediagate.Errorf(mediagate.KindNotFound, "no such job")
		}
	}
	if err := accepted(ctx, st); err != nil {
		return err
	}
	if err := until(ctx, parked); err != nil {
		return err
	}
	answered := func() bool {
		story, err := st.Store.Story(ctx, st.task.ID)
		return err == nil && len(st.Store.Awaits()) == 1 && story.Trouble == "" && !story.Unanswered
	}
	if err := until(ctx, answered); err != nil {
		return err
	}
	if err := st.engine.SignalWake(ctx, st.task.ID); err != nil {
		return err
	}
	if err := until(ctx, func() bool { return !parked() }); err != nil {
		return err
	}
	over.Store(true)
	return nil
}

func retriedOnce(st *stage) {
	st.Deliverer.OnDeliver = func(n int) (activities.DeliveryResult, error) {
		if n == 1 {
			return activities.DeliveryResult{Verdict: activities.VerdictRetry, Status: 503}, nil
		}
		return activities.DeliveryResult{Verdict: activities.VerdictDelivered, Status: 200}, nil
	}
}

// state waits until the task's newest attempt is in the state.
func state(ctx context.Context, st *stage, want mediagate.AttemptState) error {
	return until(ctx, func() bool {
		attempts := st.Store.Attempts(st.task.ID)
		return len(attempts) > 0 && attempts[len(attempts)-1].State == want
	})
}

// accepted starts the task and waits until the vendor has its job.
func accepted(ctx context.Context, st *stage) error {
	if err := st.engine.Start(ctx, st.task); err != nil {
		return err
	}
	return state(ctx, st, mediagate.AttemptAccepted)
}

// ends lets the vendor's job end well.
func ends(ctx context.Context, st *stage) error {
	if err := accepted(ctx, st); err != nil {
		return err
	}
	for _, a := range st.Store.Attempts(st.task.ID) {
		if a.State == mediagate.AttemptAccepted {
			st.Async.End(a.ExternalID, activitytest.Success())
		}
	}
	return nil
}

func cancel(ctx context.Context, st *stage) error {
	if _, err := st.Store.RequestCancel(ctx, st.task.AccountID, st.task.ID); err != nil {
		return err
	}
	return st.engine.SignalCancel(ctx, st.task.ID)
}

// naming is a video whose request names an image with a bound.
func naming(w *activitytest.World) mediagate.Task {
	t := video(w)
	t.Params = json.RawMessage(`{"image_url":"` + inputURL + `"}`)
	t.Plan.Inputs = []mediagate.Input{{Field: "image_url", MediaBounds: mediagate.MediaBounds{Kind: "image", MinSide: 128}}}
	return t
}

const inputURL = "https://pictures.example.com/" + activitytest.Secret

// serves answers the nth call for the image, from 1; results are themselves.
func (st *stage) serves(answer func(ctx context.Context, n int64) ([]byte, error)) {
	var calls atomic.Int64
	st.Fetcher.OnFetch = func(ctx context.Context, url, host string) (io.ReadCloser, int64, error) {
		if url != inputURL {
			return (&activitytest.Fetcher{}).Fetch(ctx, url, host)
		}
		file, err := answer(ctx, calls.Add(1))
		return io.NopCloser(bytes.NewReader(file)), int64(len(file)), err
	}
}

// awayAtFirst is a server of images that is back a moment later.
func awayAtFirst(st *stage) {
	st.serves(func(_ context.Context, n int64) ([]byte, error) {
		if n == 1 {
			return nil, mediagate.Errorf(mediagate.KindTransient, "away")
		}
		return sample.Image(128, 128), nil
	})
}

func noImage(st *stage) {
	st.serves(func(context.Context, int64) ([]byte, error) { return []byte("no image"), nil })
}

// cancelledWhileJudging hangs the image's server until the cancel has reached
// it.
func cancelledWhileJudging(ctx context.Context, st *stage) error {
	asked := make(chan struct{}, 1)
	st.serves(func(ctx context.Context, _ int64) ([]byte, error) {
		asked <- struct{}{}
		<-ctx.Done()
		return nil, mediagate.Errorf(mediagate.KindTransient, "cut: %w", ctx.Err())
	})
	if err := st.engine.Start(ctx, st.task); err != nil {
		return err
	}
	select {
	case <-asked:
	case <-ctx.Done():
		return ctx.Err()
	}
	return cancel(ctx, st)
}

// cancelledWhileSubmitting holds the vendor's answer back until the run has
// asked the call to stop: it must wait for the call all the same (D5).
func cancelledWhileSubmitting(ctx context.Context, st *stage) error {
	release := make(chan struct{})
	st.Async.OnSubmit = func(_ context.Context, job mediagate.Job) (mediagate.Submission, error) {
		<-release
		return st.Async.Accept(job)
	}
	defer close(release)
	if err := st.engine.Start(ctx, st.task); err != nil {
		return err
	}
	if err := state(ctx, st, mediagate.AttemptIntent); err != nil {
		return err
	}
	if err := cancel(ctx, st); err != nil {
		return err
	}
	return until(ctx, func() bool {
		events := st.engine.Temporal.GetWorkflowHistory(ctx, st.task.ID, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for events.HasNext() {
			if e, err := events.Next(); err == nil && e.GetEventType() == enumspb.EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED {
				return true
			}
		}
		return false
	})
}

// cancelledWhileMirroring hangs the file's server, until the cancel has
// reached the copy through its heartbeat.
func cancelledWhileMirroring(ctx context.Context, st *stage) error {
	asked := make(chan struct{}, 1)
	st.Fetcher.OnFetch = func(ctx context.Context, _, _ string) (io.ReadCloser, int64, error) {
		asked <- struct{}{}
		<-ctx.Done()
		return nil, 0, mediagate.Errorf(mediagate.KindTransient, "cut: %w", ctx.Err())
	}
	if err := ends(ctx, st); err != nil {
		return err
	}
	select {
	case <-asked:
	case <-ctx.Done():
		return ctx.Err()
	}
	return cancel(ctx, st)
}

// failedWhileMirroring has an operator fail the task while its result is being
// copied, and the copy go on for a moment.
func failedWhileMirroring(ctx context.Context, st *stage) error {
	asked, gone := make(chan struct{}, 1), make(chan struct{})
	st.Fetcher.OnFetch = func(ctx context.Context, _, _ string) (io.ReadCloser, int64, error) {
		select {
		case asked <- struct{}{}:
		default:
		}
		select {
		case <-gone:
			return nil, 0, mediagate.Errorf(mediagate.KindGone, "the link has died")
		case <-ctx.Done():
			return nil, 0, mediagate.Errorf(mediagate.KindTransient, "cut: %w", ctx.Err())
		}
	}
	if err := ends(ctx, st); err != nil {
		return err
	}
	select {
	case <-asked:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := st.engine.Temporal.SignalWorkflow(ctx, st.task.ID, "", "fail", nil); err != nil {
		return err
	}
	time.AfterFunc(2*time.Second, func() { close(gone) }) // the run has seen the signal by then
	return nil
}

// startedAndEnded waits for the task's own run, so that its child exists.
func startedAndEnded(ctx context.Context, st *stage) error {
	if err := st.engine.Start(ctx, st.task); err != nil {
		return err
	}
	return st.engine.Temporal.GetWorkflow(ctx, st.task.ID, "").Get(ctx, nil)
}

// callbackUnderWay starts the delivery round before the task's run does: the
// reconciler may be first.
func callbackUnderWay(ctx context.Context, st *stage) error {
	_, _, err := st.Store.Settle(ctx, mediagate.Settlement{
		TaskID: st.task.ID, Status: mediagate.StatusFailed, Failure: &mediagate.Failure{Code: mediagate.CodeInternal},
		EndedAt: time.Now(), WebhookBody: []byte("{}"),
	})
	if err != nil {
		return err
	}
	if err := st.engine.EnsureWebhook(ctx, mediagate.WebhookRound{TaskID: st.task.ID, AccountID: st.task.AccountID, Round: 1}); err != nil {
		return err
	}
	return st.engine.Start(ctx, st.task)
}

// handedOver stops the worker under a channel that polls, and starts another.
func handedOver(ctx context.Context, st *stage) error {
	if err := accepted(ctx, st); err != nil {
		return err
	}
	polled := func() bool { return len(st.Async.Polls()) > 0 }
	if err := until(ctx, polled); err != nil {
		return err
	}
	if err := st.stop(); err != nil {
		return err
	}
	st.start(ctx)
	if err := ends(ctx, st); err != nil {
		return err
	}
	return st.engine.Temporal.GetWorkflow(ctx, st.task.ID, "").Get(ctx, nil)
}
