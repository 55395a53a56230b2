package activities_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
)

func asApplication(err error, app **temporal.ApplicationError) bool { return errors.As(err, app) }

func TestSubmitAccepted(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	st := b.submit(1)
	if st.State != mediagate.AttemptAccepted || st.N != 1 || st.Status != mediagate.StatusProcessing || !st.CanFind || !st.CanCancel {
		t.Errorf("story %+v", st)
	}
	job := b.Async.Submits()[0]
	if job.Upstream != "upstream-v3" || job.Operation != "text2video" || job.TaskID != taskID || string(job.Params) != string(b.task().Params) {
		t.Errorf("job %+v", job)
	}
	row := b.attempt(1)
	if want := start.Add(10 * time.Second); !row.SendBefore.Equal(want) { // D4
		t.Errorf("the first byte may be written until %v, want %v", row.SendBefore, want)
	}
	if left := time.Until(job.SendBefore); left > 10*time.Second || left < -time.Minute { // by this process's clock
		t.Errorf("the adapter may write the first byte for %v, want 10 s", left)
	}
	if row.Ref.JobID != "job-"+taskID || row.Fingerprint != "account-a" || row.Channel != activitytest.AsyncChannel || row.ExternalID != taskID {
		t.Errorf("row %+v", row)
	}
	rows := b.Store.Awaits()
	if len(rows) != 1 || !rows[0].NextPollAt.Equal(start.Add(b.AsyncBound().FirstPoll(taskID))) {
		t.Errorf("awaited rows %+v, want one that is due after the shortest interval", rows)
	}
}

func TestSubmitSynchronous(t *testing.T) {
	t.Parallel()
	b := setup(t, image)
	b.Sync.OnSubmit = func(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
		if until, ok := ctx.Deadline(); !ok || time.Until(until) < 2*time.Minute {
			t.Error("a synchronous call has less than its own time")
		}
		s, err := b.Sync.Accept(job)
		outcome := activitytest.Success()
		s.Outcome = &outcome
		return s, err
	}
	if st := b.submit(1); st.State != mediagate.AttemptEnded || !st.Succeeded || st.CanFind {
		t.Errorf("story %+v", st)
	}
	if rows := b.Store.Awaits(); len(rows) != 0 {
		t.Errorf("awaited rows %+v, want none", rows)
	}
}

// What the vendor said decides what is stored: only what proves that there is
// no job is a rejection.
func TestSubmitErrors(t *testing.T) {
	t.Parallel()
	type want struct {
		state     mediagate.AttemptState
		code      mediagate.FailureCode
		retryable bool
	}
	lost := want{state: mediagate.AttemptUnknown}
	cases := map[string]struct {
		err  error
		want want
	}{
		"invalid":     {mediagate.Errorf(mediagate.KindInvalid, "no"), want{mediagate.AttemptRejected, mediagate.CodeInvalidParameters, false}},
		"moderated":   {mediagate.Errorf(mediagate.KindModerated, "no"), want{mediagate.AttemptRejected, mediagate.CodeContentPolicy, false}},
		"credentials": {mediagate.Errorf(mediagate.KindCredentials, "no"), want{mediagate.AttemptRejected, mediagate.CodeProviderRefused, false}},
		"forbidden":   {mediagate.Errorf(mediagate.KindForbidden, "no"), want{mediagate.AttemptRejected, mediagate.CodeProviderRefused, false}},
		"bad picture": {&mediagate.Error{Kind: mediagate.KindInvalid, Code: string(mediagate.CodeImageProcessing)}, want{mediagate.AttemptRejected, mediagate.CodeImageProcessing, false}},
		"not found":   {mediagate.Errorf(mediagate.KindNotFound, "no"), want{mediagate.AttemptRejected, mediagate.CodeProviderAway, true}},
		"funds":       {mediagate.Errorf(mediagate.KindFunds, "no"), want{mediagate.AttemptRejected, mediagate.CodeFunds, false}},
		"throttled":   {mediagate.Errorf(mediagate.KindThrottled, "no"), want{mediagate.AttemptRejected, mediagate.CodeProviderAway, true}},
		"capacity":    {mediagate.Errorf(mediagate.KindCapacity, "no"), want{mediagate.AttemptRejected, mediagate.CodeProviderAway, true}},
		"unreached":   {mediagate.Errorf(mediagate.KindUnreached, "no"), want{mediagate.AttemptRejected, mediagate.CodeProviderAway, true}},
		"ambiguous":   {mediagate.Errorf(mediagate.KindAmbiguous, "no"), lost},
		"transient":   {mediagate.Errorf(mediagate.KindTransient, "no"), lost},
		"vendor":      {mediagate.Errorf(mediagate.KindVendor, "no"), lost},
		"internal":    {mediagate.Errorf(mediagate.KindInternal, "no"), lost},
		"foreign":     {errors.New("some library's"), lost},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			b.Async.OnSubmit = func(context.Context, mediagate.Job) (mediagate.Submission, error) {
				return mediagate.Submission{}, c.err
			}
			st := b.submit(1)
			if st.State != c.want.state {
				t.Fatalf("the attempt is %s, want %s", st.State, c.want.state)
			}
			if c.want.code == "" {
				if st.Failure != nil {
					t.Errorf("a failure %+v of an attempt whose fate is open", st.Failure)
				}
				return
			}
			if st.Failure == nil || st.Failure.Code != c.want.code || st.Failure.Retryable != c.want.retryable {
				t.Errorf("failure %+v, want %+v", st.Failure, c.want)
			}
		})
	}
}

// Who reads the log does not read what a vendor repeats of a request.
func TestTheLogDoesNotRepeatTheRequest(t *testing.T) {
	t.Parallel()
	const prompt = "a fox that jumps over a very lazy dog"
	b := setup(t, func(w *activitytest.World) mediagate.Task {
		task := w.NewVideo()
		task.Params = []byte(`{"prompt":"` + prompt + `"}`)
		return task
	})
	var logged bytes.Buffer
	b.Activities.Logger = slog.New(slog.NewTextHandler(&logged, nil))
	b.Async.OnSubmit = func(context.Context, mediagate.Job) (mediagate.Submission, error) {
		return mediagate.Submission{}, mediagate.Errorf(mediagate.KindInvalid, "refused: %s, 1201", prompt)
	}
	b.submit(1)
	if text := logged.String(); !strings.Contains(text, "refused: …, 1201") || strings.Contains(text, "fox") {
		t.Error(text)
	}
}

// D3: an intent that is found was stored by somebody who died or still holds
// the call. Nothing is sent.
func TestD3FoundIntentIsNotSent(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	var calls atomic.Int64
	b.Async.OnSubmit = func(_ context.Context, job mediagate.Job) (mediagate.Submission, error) {
		if calls.Add(1) == 1 { // the same activity begins once more, beside this one
			if st := b.submit(1); st.State != mediagate.AttemptUnknown {
				t.Errorf("the second copy finds the attempt %s, want unknown", st.State)
			}
		}
		return b.Async.Accept(job)
	}
	if st := b.submit(1); st.State != mediagate.AttemptAccepted {
		t.Errorf("the attempt is %s, want accepted: the first copy's answer counts", st.State)
	}
	b.submitted(taskID)
	for range 3 {
		b.submit(1)
	}
	b.submitted(taskID)
}

// D3: no intent on a task that ended, is to be cancelled, or has a later attempt.
func TestD3NoIntent(t *testing.T) {
	t.Parallel()
	cases := map[string]func(*bundle){
		"cancel requested": func(b *bundle) {
			_, err := b.Store.RequestCancel(t.Context(), "acc_1", taskID)
			b.ok(err)
		},
		"ended": func(b *bundle) {
			_, _, err := b.Store.Settle(t.Context(), mediagate.Settlement{TaskID: taskID, Status: mediagate.StatusCancelled})
			b.ok(err)
		},
		"gone": func(b *bundle) { b.Store.Remove(taskID) },
		"overtaken": func(b *bundle) {
			_, _, err := b.Store.OpenAttempt(t.Context(), mediagate.Attempt{TaskID: taskID, N: 2, Channel: activitytest.AsyncChannel}, mediagate.Slots{})
			b.ok(err)
		},
	}
	for name, leave := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			leave(b)
			st := b.submit(1)
			b.submitted()
			if st.Missing != (name == "gone") {
				t.Errorf("story %+v", st)
			}
		})
	}
}

// D4: once absence is proven, the same id is sent again, in a new window.
func TestD4AbsentIsSentAgain(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.Async.OnSubmit = func(context.Context, mediagate.Job) (mediagate.Submission, error) {
		return mediagate.Submission{}, mediagate.Errorf(mediagate.KindAmbiguous, "lost")
	}
	b.submit(1)
	b.Async.OnSubmit = nil

	b.submit(1) // not proven: nothing is sent
	b.submitted(taskID)
	b.advance(time.Minute)
	b.notFound()
	b.advance(time.Hour)
	b.submit(1) // one lookup proves nothing, however long ago: after a reset, say
	b.submitted(taskID)
	b.notFound()
	if st := b.submit(1); st.State != mediagate.AttemptAccepted {
		t.Errorf("the attempt is %s, want accepted", st.State)
	}
	b.submitted(taskID, taskID)
	if got, want := b.attempt(1).SendBefore, start.Add(time.Hour+time.Minute+10*time.Second); !got.Equal(want) {
		t.Errorf("send window until %v, want %v", got, want)
	}
}

// notFound is a lookup of the lost attempt that found nothing.
func (b *bundle) notFound() {
	b.t.Helper()
	_, _, err := b.Store.NoteAbsent(context.Background(), taskID, 1, b.attempt(1).SendBefore, b.Now(), 30*time.Second)
	b.ok(err)
}

// D4: a cancel that arrives before the second sending keeps it from being sent.
func TestD4AbsentIsNotSentOnceCancelled(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.Async.OnSubmit = func(context.Context, mediagate.Job) (mediagate.Submission, error) {
		return mediagate.Submission{}, mediagate.Errorf(mediagate.KindAmbiguous, "lost")
	}
	b.submit(1)
	b.notFound()
	b.advance(time.Minute)
	b.notFound()
	_, err := b.Store.RequestCancel(t.Context(), "acc_1", taskID)
	b.ok(err)
	b.submit(1)
	b.submitted(taskID)
}

// D4: a sender that slept through its window is refused by the adapter. By
// then the attempt was sent anew, and the late word says nothing of that.
func TestD4LateSenderIsFenced(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]mediagate.Kind{"unreached": mediagate.KindUnreached, "ambiguous": mediagate.KindAmbiguous} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			b.Async.OnSubmit = func(ctx context.Context, _ mediagate.Job) (mediagate.Submission, error) {
				mine := b.attempt(1).SendBefore
				b.ok(b.Store.MarkUnknown(ctx, taskID, 1, mine, mediagate.SenderLost))
				b.notFound()
				b.advance(time.Minute)
				b.notFound()
				if opened, err := b.Store.ReopenIntent(ctx, taskID, 1, mine, b.Now().Add(10*time.Second)); !opened || err != nil {
					t.Errorf("not opened again: %v", err)
				}
				return mediagate.Submission{}, mediagate.Errorf(late, "too late")
			}
			if st := b.submit(1); st.State != mediagate.AttemptIntent {
				t.Errorf("the attempt is %s, want intent: the new sender's", st.State)
			}
		})
	}
}

// D5: the task has ended while the vendor was called: its id is recorded, no
// row waits, and the vendor's job is stopped.
func TestD5EndedMeanwhile(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.Async.OnSubmit = func(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
		_, _, err := b.Store.Settle(ctx, mediagate.Settlement{TaskID: taskID, Status: mediagate.StatusCancelled})
		b.ok(err)
		return b.Async.Accept(job)
	}
	b.submit(1)
	if got := b.Async.Cancelled(); len(got) != 1 || got[0].JobID != "job-"+taskID {
		t.Errorf("vendor jobs cancelled: %v", got)
	}
	if b.attempt(1).Ref.JobID == "" || len(b.Store.Awaits()) != 0 {
		t.Errorf("row %+v, awaited %v", b.attempt(1), b.Store.Awaits())
	}
}

// D3: once the waiting is over, the row refuses the intent: an activity that
// lay in a queue until then sends nothing.
func TestD3NoIntentAfterTheDeadline(t *testing.T) {
	t.Parallel()
	t.Run("first", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		b.advance(2 * time.Hour)
		if st := b.submit(1); st.N != 0 || len(b.Store.Attempts(taskID)) != 0 {
			t.Errorf("story %+v, attempts %v", st, b.Store.Attempts(taskID))
		}
		b.submitted()
	})
	t.Run("again", func(t *testing.T) {
		t.Parallel()
		b := lost(t)
		b.notFound()
		b.advance(time.Minute)
		b.notFound()
		b.advance(2 * time.Hour)
		if st := b.submit(1); st.State != mediagate.AttemptUnknown {
			t.Errorf("story %+v", st)
		}
		b.submitted(taskID)
	})
	t.Run("the first byte not later either", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		b.advance(2*time.Hour - 4*time.Second)
		b.submit(1)
		if got, want := b.attempt(1).SendBefore, start.Add(2*time.Hour); !got.Equal(want) {
			t.Errorf("send window until %v, want %v", got, want)
		}
	})
	t.Run("a synchronous call ends by then", func(t *testing.T) {
		t.Parallel()
		b := setup(t, image)
		b.advance(2*time.Hour - 4*time.Second)
		b.Sync.OnSubmit = func(ctx context.Context, _ mediagate.Job) (mediagate.Submission, error) {
			if until, ok := ctx.Deadline(); !ok || time.Until(until) > 4*time.Second {
				t.Errorf("the call may last until %v", until)
			}
			return mediagate.Submission{}, mediagate.Errorf(mediagate.KindAmbiguous, "cut off")
		}
		if st := b.submit(1); st.State != mediagate.AttemptUnknown {
			t.Errorf("story %+v", st)
		}
	})
}

// D5: of an intent the story tells until when its call may be under way: of a
// synchronous one no longer than anybody waits, and also once its sender was
// lost. A sender that has spoken has no call under way.
func TestD5CallEnds(t *testing.T) {
	t.Parallel()
	open := func(b *bundle, route mediagate.Route, before time.Time) mediagate.Story {
		_, _, err := b.Store.OpenAttempt(t.Context(), mediagate.Attempt{
			TaskID: taskID, N: 1, Channel: activitytest.AsyncChannel, Route: route, SendBefore: before,
		}, mediagate.Slots{})
		b.ok(err)
		return must[mediagate.Story](b, b.Activities.LoadTask, activities.LoadArgs{TaskID: taskID})
	}
	async := mediagate.Route{Provider: activitytest.AsyncProvider}
	sync := mediagate.Route{Provider: activitytest.SyncProvider, Sync: true}
	cases := map[string]struct {
		route  mediagate.Route
		before time.Duration
		want   time.Duration
	}{
		"asynchronous":                    {async, 10 * time.Second, 45 * time.Second},
		"synchronous":                     {sync, 10 * time.Second, 165 * time.Second},
		"of an adapter that is gone":      {mediagate.Route{Provider: "gone"}, 10 * time.Second, activities.LongestSubmit + 15*time.Second},
		"synchronous, near the deadline":  {sync, 2*time.Hour - time.Minute, 2*time.Hour + 5*time.Second},
		"asynchronous, near the deadline": {async, 2*time.Hour - time.Minute, 2*time.Hour - 25*time.Second},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			if got := open(b, c.route, start.Add(c.before)).CallEnds; !got.Equal(start.Add(c.want)) {
				t.Errorf("the call ends %v after the start, want %v", got.Sub(start), c.want)
			}
			st := must[mediagate.Story](b, b.Activities.MarkLost, activities.AttemptArgs{TaskID: taskID, N: 1})
			if got := st.CallEnds; c.route.Sync != got.Equal(start.Add(c.want)) || !c.route.Sync && !got.IsZero() {
				t.Errorf("once the sender was lost, the call ends %v after the start, want %v", got.Sub(start), c.want)
			}
		})
	}
	for word, want := range map[string]bool{mediagate.SenderLost: true, "ambiguous": false} {
		t.Run("told by "+word, func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			before := start.Add(10 * time.Second)
			open(b, sync, before)
			b.ok(b.Store.MarkUnknown(t.Context(), taskID, 1, before, word))
			st := must[mediagate.Story](b, b.Activities.LoadTask, activities.LoadArgs{TaskID: taskID})
			if got := !st.CallEnds.IsZero(); got != want {
				t.Errorf("the call may go on: %v, want %v", got, want)
			}
		})
	}
}

// D4: a bad value, said of what was sent again, may be a taken id in words that
// nobody foresaw. The vendor is asked first.
func TestD4RefusedAgainIsNoProof(t *testing.T) {
	t.Parallel()
	again := func(t *testing.T, kind mediagate.Kind) *bundle {
		t.Helper()
		b := lost(t)
		b.Async.OnSubmit = func(context.Context, mediagate.Job) (mediagate.Submission, error) {
			return mediagate.Submission{}, &mediagate.Error{Kind: kind, Message: "external_task_id has been occupied"}
		}
		b.notFound()
		b.advance(time.Minute)
		b.notFound()
		b.submit(1)
		b.submitted(taskID, taskID)
		return b
	}
	t.Run("found", func(t *testing.T) {
		t.Parallel()
		b := again(t, mediagate.KindInvalid)
		if got := b.attempt(1); got.State != mediagate.AttemptUnknown || got.Refusal == nil {
			t.Fatalf("row %+v", got)
		}
		_, err := b.Async.Accept(mediagate.Job{ExternalID: taskID})
		b.ok(err)
		if res := b.resolve(); res.Story.State != mediagate.AttemptAccepted {
			t.Errorf("resolution %+v", res)
		}
	})
	t.Run("absent: the refusal was meant", func(t *testing.T) {
		t.Parallel()
		b := again(t, mediagate.KindInvalid)
		for _, wait := range []time.Duration{45 * time.Second, 30 * time.Second} {
			b.advance(wait)
			if b.resolve().Absent {
				t.Error("it may be sent once more")
			}
		}
		st := must[mediagate.Story](b, b.Activities.LoadTask, activities.LoadArgs{TaskID: taskID})
		if st.State != mediagate.AttemptRejected || st.Failure == nil || st.Failure.Code != mediagate.CodeInvalidParameters {
			t.Errorf("story %+v", st)
		}
		b.submitted(taskID, taskID)
	})
	t.Run("others prove as ever", func(t *testing.T) {
		t.Parallel()
		if got := again(t, mediagate.KindModerated).attempt(1).State; got != mediagate.AttemptRejected {
			t.Errorf("the attempt is %s, want rejected", got)
		}
	})
}

// The next attempt goes out under another id.
func TestSecondAttemptHasAnotherID(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.Async.OnSubmit = func(_ context.Context, job mediagate.Job) (mediagate.Submission, error) {
		if job.ExternalID == taskID {
			return mediagate.Submission{}, mediagate.Errorf(mediagate.KindThrottled, "no")
		}
		return b.Async.Accept(job)
	}
	b.submit(1)
	if st := b.submit(2); st.N != 2 || st.State != mediagate.AttemptAccepted {
		t.Errorf("story %+v", st)
	}
	b.submitted(taskID, taskID+"-2")
}

// D4: that a repeated sending made no job proves nothing of the first, so what
// follows keeps the name under which the vendor takes one job only.
func TestD4AfterARepeatedSendingTheNameStays(t *testing.T) {
	t.Parallel()
	for _, kind := range []mediagate.Kind{mediagate.KindUnreached, mediagate.KindThrottled} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			b := lost(t)
			refusals := 0
			b.Async.OnSubmit = func(_ context.Context, job mediagate.Job) (mediagate.Submission, error) {
				if refusals++; refusals <= 2 {
					return mediagate.Submission{}, mediagate.Errorf(kind, "not now")
				}
				return b.Async.Accept(job)
			}
			b.notFound()
			b.advance(time.Minute)
			b.notFound()
			for n := range 3 {
				b.submit(n + 1)
			}
			b.submitted(taskID, taskID, taskID, taskID)
			if got := b.attempt(3).State; got != mediagate.AttemptAccepted {
				t.Errorf("attempt 3 is %s", got)
			}
		})
	}
}

// D11: a worker without the channel leaves the attempt to another worker.
func TestD11NoChannel(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.Channels.Set(b.SyncBound())
	_, err := call[mediagate.Story](b, b.Activities.SubmitJob, first())
	kind(t, err, mediagate.KindUnreached, mediagate.ParkChannelMissing, true)
	if got := b.Store.Attempts(taskID); len(got) != 0 {
		t.Errorf("attempts %v, want none", got)
	}
	var app *temporal.ApplicationError
	if !asApplication(err, &app) || app.Category() != temporal.ApplicationErrorCategoryBenign {
		t.Error("the error raises alarms")
	}
}

// The record of what the vendor said is made though the activity is being
// cancelled.
func TestSubmitRecordsOnACancelledContext(t *testing.T) {
	t.Parallel()
	b := setup(t, image)
	ctx, cancel := context.WithCancel(t.Context())
	b.Sync.OnSubmit = func(context.Context, mediagate.Job) (mediagate.Submission, error) {
		cancel()
		return mediagate.Submission{}, mediagate.Errorf(mediagate.KindAmbiguous, "cut")
	}
	env := newEnv(b.World)
	env.SetWorkerOptions(workerOptions(ctx))
	_, err := env.ExecuteActivity(b.Activities.SubmitJob, first())
	if got := b.attempt(1).State; got != mediagate.AttemptUnknown {
		t.Errorf("the attempt is %s (%v), want unknown", got, err)
	}
}

// A cancel of the activity cuts a synchronous call, but not an asynchronous
// submit, which is about to tell the job's id.
func TestD5CancelCutsSynchronousCallsOnly(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		task  func(*activitytest.World) mediagate.Task
		cause error
		cut   bool
	}{
		"synchronous":                        {image, temporal.NewCanceledError(), true},
		"synchronous, Temporal out of reach": {image, errors.New("no heartbeat"), false},
		"asynchronous":                       {video, temporal.NewCanceledError(), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, c.task)
			ctx, cancel := context.WithCancelCause(t.Context())
			submit := func(call context.Context, job mediagate.Job) (mediagate.Submission, error) {
				cancel(c.cause)
				if c.cut {
					<-call.Done() // or the test never ends
				} else if call.Err() != nil {
					t.Error("the call was cut")
				}
				return mediagate.Submission{Ref: mediagate.JobRef{JobID: "job-1"}}, nil
			}
			b.Async.OnSubmit, b.Sync.OnSubmit = submit, submit
			env := newEnv(b.World)
			env.SetWorkerOptions(workerOptions(ctx))
			_, _ = env.ExecuteActivity(b.Activities.SubmitJob, first()) // what counts is what is stored
			if got := b.attempt(1).Ref.JobID; got != "job-1" {
				t.Errorf("the vendor's id %q was stored", got)
			}
		})
	}
}

func TestCancelJob(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.submit(1)
	must[any](b, b.Activities.CancelJob, first())
	if got := b.Async.Cancelled(); len(got) != 1 {
		t.Fatalf("vendor jobs cancelled: %v, want one", got)
	}
	b.Channels.Set(b.Renewed()) // which may be another account
	must[any](b, b.Activities.CancelJob, first())
	if got := b.Async.Cancelled(); len(got) != 1 {
		t.Error("a job was cancelled in another account")
	}
}

func TestLoadTaskCarriesTheSettings(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.Activities.Settings.ParkRetry, b.Activities.Settings.ParkTimeout = time.Minute, time.Hour
	st, err := b.Activities.LoadTask(t.Context(), activities.LoadArgs{TaskID: taskID})
	b.ok(err)
	if st.ParkRetry != time.Minute || st.ParkTimeout != time.Hour || st.N != 0 {
		t.Errorf("story %+v", st)
	}
	b.Store.Remove(taskID)
	if st, err = b.Activities.LoadTask(t.Context(), activities.LoadArgs{TaskID: taskID}); err != nil || !st.Missing {
		t.Errorf("story %+v (%v), want missing", st, err)
	}
}

// D4: what was sent more than once keeps its name, and stays with the vendor
// that would refuse to double it.
func TestD4SentTwiceStaysWithItsVendor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sends int
		id    string
		want  string
	}{
		"sent once":  {1, taskID + "-2", "other-a"},
		"sent twice": {2, taskID, activitytest.AsyncChannel},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, func(w *activitytest.World) mediagate.Task {
				task := w.NewVideo()
				task.Plan.Routes = append(task.Plan.Routes, mediagate.Route{Provider: "other", Upstream: "u", Operation: "o"})
				return task
			})
			other := b.SyncBound()
			other.Name, other.Provider = "other-a", "other"
			b.Channels.Set(b.AsyncBound(), other)
			b.Async.OnSubmit = func(context.Context, mediagate.Job) (mediagate.Submission, error) {
				return mediagate.Submission{}, mediagate.Errorf(mediagate.KindCapacity, "full")
			}
			b.submit(1)
			b.Store.EditAttempt(taskID, 1, func(a *mediagate.Attempt) { a.Sends = c.sends })
			b.submit(2)
			if row := b.attempt(2); row.Channel != c.want || row.ExternalID != c.id {
				t.Errorf("attempt 2 is %s at %s, want %s at %s", row.ExternalID, row.Channel, c.id, c.want)
			}
		})
	}
}
