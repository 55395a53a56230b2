package activities_test

import (
	"context"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/providers"
)

// lost leaves attempt 1 with its fate open.
func lost(t *testing.T) *bundle {
	t.Helper()
	b := setup(t, video)
	b.Async.OnSubmit = func(context.Context, mediagate.Job) (mediagate.Submission, error) {
		return mediagate.Submission{}, mediagate.Errorf(mediagate.KindAmbiguous, "lost")
	}
	if st := b.submit(1); st.State != mediagate.AttemptUnknown {
		t.Fatalf("story %+v", st)
	}
	return b
}

func (b *bundle) resolve() activities.Resolution {
	b.t.Helper()
	return must[activities.Resolution](b, b.Activities.ResolveSubmission, first())
}

func TestResolveFound(t *testing.T) {
	t.Parallel()
	b := lost(t)
	_, err := b.Async.Accept(mediagate.Job{ExternalID: taskID})
	b.ok(err)
	res := b.resolve()
	if res.Story.State != mediagate.AttemptAccepted || res.Absent || !res.AskAt.IsZero() {
		t.Errorf("resolution %+v", res)
	}
	if got := b.attempt(1).Ref.JobID; got != "job-"+taskID || len(b.Store.Awaits()) != 1 {
		t.Errorf("vendor's id %q, awaited %v", got, b.Store.Awaits())
	}
	b.submitted(taskID)
}

// Send window 10 s + call timeout 30 s + clock skew 5 s: before that, nothing
// found means nothing.
func TestD4AbsenceRules(t *testing.T) {
	t.Parallel()
	const settled = 45 * time.Second
	b := lost(t)
	for _, at := range []time.Duration{0, settled - time.Microsecond} {
		b.advance(start.Add(at).Sub(b.Now()))
		res := b.resolve()
		if res.Absent || !res.AskAt.Equal(start.Add(settled)) || !b.attempt(1).AbsentAt.IsZero() {
			t.Errorf("after %v: %+v, absent since %v", at, res, b.attempt(1).AbsentAt)
		}
	}
	b.advance(start.Add(settled).Sub(b.Now()))
	res := b.resolve()
	if res.Absent || !res.AskAt.Equal(start.Add(settled+30*time.Second)) || !b.attempt(1).AbsentAt.Equal(start.Add(settled)) {
		t.Errorf("first absence: %+v, since %v", res, b.attempt(1).AbsentAt)
	}
	b.advance(30*time.Second - time.Microsecond)
	if res = b.resolve(); res.Absent {
		t.Error("absent after two lookups within 30 s")
	}
	b.advance(time.Microsecond)
	if res = b.resolve(); !res.Absent || res.Story.State != mediagate.AttemptUnknown {
		t.Errorf("second absence: %+v", res)
	}
	b.submitted(taskID) // looking up sends nothing
}

// D4: a synchronous call may be under way for longer, and absence is proven
// later accordingly.
func TestD4AbsenceAfterASynchronousCall(t *testing.T) {
	t.Parallel()
	b := setup(t, func(w *activitytest.World) mediagate.Task {
		task := w.NewVideo()
		task.Plan.Routes[0].Sync = true
		return task
	})
	b.Descriptions.Set(activitytest.AsyncProvider, providers.Operation{Sync: true, Find: true, Submit: 150 * time.Second})
	b.Async.OnSubmit = func(context.Context, mediagate.Job) (mediagate.Submission, error) {
		return mediagate.Submission{}, mediagate.Errorf(mediagate.KindAmbiguous, "lost")
	}
	b.submit(1)
	b.advance(165*time.Second - time.Microsecond)
	if res := b.resolve(); !res.AskAt.Equal(start.Add(165*time.Second)) || !b.attempt(1).AbsentAt.IsZero() {
		t.Errorf("resolution %+v, absent since %v", res, b.attempt(1).AbsentAt)
	}
	b.advance(time.Microsecond)
	b.resolve()
	if b.attempt(1).AbsentAt.IsZero() {
		t.Error("nothing is under way any more, and the lookup does not count")
	}
}

// Whoever stored an intent is gone; what is known of it by now stays.
func TestMarkLost(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	_, _, err := b.Store.OpenAttempt(t.Context(), mediagate.Attempt{TaskID: taskID, N: 1, SendBefore: start}, mediagate.Slots{})
	b.ok(err)
	mark := func() mediagate.Story { return must[mediagate.Story](b, b.Activities.MarkLost, first()) }
	if st := mark(); st.State != mediagate.AttemptUnknown {
		t.Errorf("story %+v", st)
	}
	_, err = b.Store.AcceptAttempt(t.Context(), taskID, 1, mediagate.Submission{Ref: mediagate.JobRef{JobID: "late"}}, start)
	b.ok(err)
	if st := mark(); st.State != mediagate.AttemptAccepted {
		t.Errorf("story %+v", st)
	}
}

func TestResolveErrors(t *testing.T) {
	t.Parallel()
	t.Run("vendor away", func(t *testing.T) {
		t.Parallel()
		b := lost(t)
		b.advance(time.Hour)
		b.Async.OnFind = func(context.Context, mediagate.JobRef) (mediagate.Report, error) {
			return mediagate.Report{}, mediagate.Errorf(mediagate.KindTransient, "away")
		}
		_, err := call[activities.Resolution](b, b.Activities.ResolveSubmission, first())
		kind(t, err, mediagate.KindTransient, "", true)
		if !b.attempt(1).AbsentAt.IsZero() {
			t.Error("a failed lookup counts as absence")
		}
	})
	t.Run("no channel", func(t *testing.T) {
		t.Parallel()
		b := lost(t)
		b.Channels.Set(b.SyncBound())
		_, err := call[activities.Resolution](b, b.Activities.ResolveSubmission, first())
		kind(t, err, mediagate.KindUnreached, mediagate.ParkChannelMissing, true)
	})
	t.Run("fate known meanwhile", func(t *testing.T) {
		t.Parallel()
		b := lost(t)
		b.advance(time.Hour)
		b.Async.OnFind = func(ctx context.Context, _ mediagate.JobRef) (mediagate.Report, error) {
			_, err := b.Store.AcceptAttempt(ctx, taskID, 1, mediagate.Submission{Ref: mediagate.JobRef{JobID: "late"}}, b.Now())
			b.ok(err)
			return mediagate.Report{}, mediagate.Errorf(mediagate.KindNotFound, "not seen yet")
		}
		res := b.resolve()
		if res.Absent || !res.AskAt.IsZero() || res.Story.State != mediagate.AttemptAccepted {
			t.Errorf("resolution %+v", res)
		}
	})
}

// A trouble of the last question counts like one that the channel finds; an
// outcome that came meanwhile counts more.
func TestD11NoteTrouble(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.submit(1)
	in := activities.TroubleArgs{TaskID: first().TaskID, N: 1, Trouble: mediagate.ParkFunds}
	if st := must[mediagate.Story](b, b.Activities.NoteTrouble, in); st.Trouble != mediagate.ParkFunds || len(b.Store.Awaits()) != 0 {
		t.Errorf("story %+v, rows %v", st, b.Store.Awaits())
	}
	if _, err := b.Store.RecordOutcome(t.Context(), in.TaskID, 1, activitytest.Success()); err != nil {
		t.Fatal(err)
	}
	if st := must[mediagate.Story](b, b.Activities.NoteTrouble, in); st.Trouble != "" || !st.Succeeded {
		t.Errorf("story %+v, want the outcome", st)
	}
}

func TestPollJob(t *testing.T) {
	t.Parallel()
	poll := func(b *bundle) (mediagate.Story, error) {
		return call[mediagate.Story](b, b.Activities.PollJob, first())
	}
	t.Run("ended", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		b.submit(1)
		b.Async.End(taskID, activitytest.Success())
		if st, err := poll(b); err != nil || !st.Succeeded || len(b.Store.Awaits()) != 0 {
			t.Errorf("story %+v (%v), awaited %v", st, err, b.Store.Awaits())
		}
	})
	t.Run("the first outcome counts", func(t *testing.T) {
		t.Parallel()
		b := succeeded(t, activitytest.Success())
		b.Async.End(taskID, activitytest.Failed(mediagate.CodeGenerationFailed))
		if st, err := poll(b); err != nil || !st.Succeeded || len(b.Async.Polls()) != 0 {
			t.Errorf("story %+v (%v)", st, err)
		}
	})
	t.Run("running", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		b.submit(1)
		if st, err := poll(b); err != nil || st.State != mediagate.AttemptAccepted {
			t.Errorf("story %+v (%v)", st, err)
		}
	})
	t.Run("unknown to the vendor", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		b.submit(1)
		b.Async.OnPoll = func(context.Context, mediagate.JobRef) (mediagate.Report, error) {
			return mediagate.Report{}, mediagate.Errorf(mediagate.KindNotFound, "no such job")
		}
		_, err := poll(b)
		kind(t, err, mediagate.KindNotFound, mediagate.ParkJobLost, false)
	})
	t.Run("away", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		b.submit(1)
		b.Async.OnPoll = func(context.Context, mediagate.JobRef) (mediagate.Report, error) {
			return mediagate.Report{}, &mediagate.Error{Kind: mediagate.KindThrottled, Message: "slower", RetryAfter: 7 * time.Second}
		}
		_, err := poll(b)
		kind(t, err, mediagate.KindThrottled, "", true)
	})
	t.Run("D11 another account", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		b.submit(1)
		other, _ := b.Stranger()
		b.Channels.Set(other)
		_, err := poll(b)
		kind(t, err, mediagate.KindUnreached, mediagate.ParkChannelMissing, true)
	})
	t.Run("D11 no channel", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		b.submit(1)
		b.Channels.Set()
		_, err := poll(b)
		kind(t, err, mediagate.KindUnreached, mediagate.ParkChannelMissing, true)
	})
}

func TestParkingDropsTheRowInTrouble(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.submit(1)
	park := func() mediagate.Story {
		return must[mediagate.Story](b, b.Activities.ParkTask, activities.ParkArgs{TaskID: taskID, Reason: mediagate.ParkJobLost})
	}
	park() // no trouble: the row stays
	if got := len(b.Store.Awaits()); got != 1 {
		t.Fatalf("%d rows wait, want 1", got)
	}
	b.ok(b.StorePoll(t.Context(), mediagate.PollResult{TaskID: taskID, N: 1, Trouble: mediagate.ParkJobLost}))
	b.advance(time.Hour)
	if st := park(); st.ParkReason != mediagate.ParkJobLost || !st.ParkedAt.Equal(start) || len(b.Store.Awaits()) != 0 {
		t.Errorf("story %+v, awaited %v; want parked since the first time, and none", st, b.Store.Awaits())
	}
	st := must[mediagate.Story](b, b.Activities.RestoreAwait, first())
	if rows := b.Store.Awaits(); st.Trouble != "" || len(rows) != 1 || rows[0].Ended {
		t.Errorf("story %+v, awaited %v; want one that is polled", st, rows)
	}
	_, err := b.Store.RecordOutcome(t.Context(), taskID, 1, activitytest.Success())
	b.ok(err)
	if st := must[mediagate.Story](b, b.Activities.RestoreAwait, first()); !st.Succeeded || len(b.Store.Awaits()) != 0 {
		t.Errorf("story %+v, awaited %v; want the outcome and none", st, b.Store.Awaits())
	}
}

func TestD10UnparkingMovesTheDeadline(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	before := b.task().DeadlineAt
	must[mediagate.Story](b, b.Activities.ParkTask, activities.ParkArgs{TaskID: taskID, Reason: mediagate.ParkStorage})
	b.advance(3 * time.Hour)
	st := must[mediagate.Story](b, b.Activities.UnparkTask, activities.TaskArgs{TaskID: taskID})
	if st.ParkReason != "" || !st.DeadlineAt.Equal(before.Add(3*time.Hour)) {
		t.Errorf("story %+v, want a deadline 3 h later than %v", st, before)
	}
}

func TestTakeAction(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	take := func(a activities.ActionArgs) bool { return must[bool](b, b.Activities.TakeAction, a) }
	byHand := activities.ActionArgs{TaskID: taskID, Action: mediagate.ActionRetry}
	for range 2 { // an activity that is repeated, since its answer was lost
		if !take(byHand) {
			t.Error("a command by hand is not taken")
		}
	}
	if got := b.Store.Actions(); len(got) != 1 || got[0].By == "" || got[0].State != "taken" {
		t.Errorf("commands on record: %+v", got)
	}
	for id, taker := range map[string]string{"act_mine": "", "act_theirs": "another run"} {
		row, err := b.Store.RecordAction(t.Context(), mediagate.Action{ID: id, TaskID: taskID, Action: mediagate.ActionFail})
		b.ok(err)
		if taker != "" {
			_, err := b.Store.TakeAction(t.Context(), row.ID, taker)
			b.ok(err)
		}
		stored := activities.ActionArgs{ID: row.ID, TaskID: taskID, Action: mediagate.ActionFail}
		for range 2 {
			if got, want := take(stored), taker == ""; got != want {
				t.Errorf("%s is taken: %v, want %v", id, got, want)
			}
		}
	}
}
