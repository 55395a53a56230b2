package activities_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/task"
)

func TestSubmitAccepted(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	writes := b.counts()
	answer := b.submit(1)
	if answer.State != mediagate.AttemptAccepted || answer.N != 1 || answer.Status != mediagate.StatusProcessing ||
		answer.Channel != activitytest.AsyncChannel || answer.Step.Why != task.SleepVendor {
		t.Errorf("answer %+v", answer)
	}
	if got := writes(); got != "1 OpenIntent, 1 Change" {
		t.Errorf("a submit takes %s", got)
	}
	job := b.Async.Submits()[0]
	if job.Upstream != "upstream-v3" || job.Operation != "text2video" || job.TaskID != taskID ||
		string(job.Params) != string(b.task().Params) {
		t.Errorf("job %+v", job)
	}
	row := b.attempt(1)
	if want := start.Add(10 * time.Second); !row.SendBefore.Equal(want) { // D4
		t.Errorf("the first byte may be written until %v, want %v", row.SendBefore, want)
	}
	if left := time.Until(job.SendBefore); left > 10*time.Second || left < -time.Minute { // by this process's clock
		t.Errorf("the adapter may write the first byte for %v, want 10 s", left)
	}
	if row.Ref.JobID != "job-"+taskID || row.Fingerprint != "account-a" || row.ExternalID != taskID || !row.Route.Find ||
		!b.last().CanStop {
		t.Errorf("row %+v", row)
	}
	rows := b.Store.Awaits()
	if shortest := b.AsyncBound().PollMin; len(rows) != 1 || rows[0].NextPollAt.Before(start.Add(shortest/2)) ||
		rows[0].NextPollAt.After(start.Add(shortest*3/2)) {
		t.Errorf("awaited rows %+v, want one that is due after about the shortest interval", rows)
	}
}

// TestSubmitErrors checks that the vendor's answer decides what is stored: only a proof that
// there is no job is a rejection. A refusal by one account for its own reasons may be accepted by
// another account.
func TestSubmitErrors(t *testing.T) {
	t.Parallel()
	type want struct {
		state                mediagate.AttemptState
		code                 mediagate.FailureCode
		retryable, elsewhere bool
	}
	ofTheRequest := func(code mediagate.FailureCode) want { return want{mediagate.AttemptRejected, code, false, false} }
	ofTheAccount := func(code mediagate.FailureCode) want { return want{mediagate.AttemptRejected, code, false, true} }
	away := want{mediagate.AttemptRejected, mediagate.CodeProviderAway, true, true}
	of := func(kind mediagate.Kind) error { return mediagate.Errorf(kind, "no") }
	unknown := want{state: mediagate.AttemptUnknown}
	for name, c := range map[string]struct {
		err  error
		want want
	}{
		"invalid": {of(mediagate.KindInvalid), ofTheRequest(mediagate.CodeInvalidParameters)},
		"bad picture": {
			&mediagate.Error{Kind: mediagate.KindInvalid, Code: string(mediagate.CodeImageProcessing)},
			ofTheRequest(mediagate.CodeImageProcessing),
		},
		"moderated":   {of(mediagate.KindModerated), ofTheRequest(mediagate.CodeContentPolicy)},
		"credentials": {of(mediagate.KindCredentials), ofTheAccount(mediagate.CodeProviderRefused)},
		"forbidden":   {of(mediagate.KindForbidden), ofTheAccount(mediagate.CodeProviderRefused)},
		"funds":       {of(mediagate.KindFunds), ofTheAccount(mediagate.CodeFunds)},
		"not found":   {of(mediagate.KindNotFound), away},
		"no model":    {of(mediagate.KindNoModel), ofTheAccount(mediagate.CodeModelRetired)},
		"throttled":   {of(mediagate.KindThrottled), away},
		"capacity":    {of(mediagate.KindCapacity), away},
		"unreached":   {of(mediagate.KindUnreached), away},
		"ambiguous":   {of(mediagate.KindAmbiguous), unknown},
		"transient":   {of(mediagate.KindTransient), unknown},
		"vendor":      {of(mediagate.KindVendor), unknown},
		"internal":    {of(mediagate.KindInternal), unknown},
		"foreign":     {errors.New("some library's"), unknown},
		"a panic":     {nil, unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			b.twoAccounts()
			b.Async.OnSubmit = func(context.Context, mediagate.Job) (mediagate.Submission, error) {
				if c.err == nil {
					panic("a bug of the adapter")
				}
				return mediagate.Submission{}, c.err
			}
			answer, a := b.submit(1), b.last()
			got := want{state: answer.State, elsewhere: a.Elsewhere}
			if a.Failure != nil {
				got.code, got.retryable = a.Failure.Code, a.Failure.Retryable
			}
			if got != c.want {
				t.Errorf("the attempt is %+v, want %+v", got, c.want)
			}
		})
	}
}

// TestTheLogDoesNotRepeatTheRequest checks that the log does not hold what a vendor repeats of a
// request.
func TestTheLogDoesNotRepeatTheRequest(t *testing.T) {
	t.Parallel()
	const prompt = "a fox that jumps over a very lazy dog"
	b := setup(t, func(w *activitytest.World) mediagate.Task {
		t := w.NewVideo()
		t.Params = []byte(`{"prompt":"` + prompt + `"}`)
		return t
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

// TestD3FoundIntentIsNotSent checks that nothing is sent if the intent exists: its sender died,
// or is still in its call. The report of that first sender counts.
func TestD3FoundIntentIsNotSent(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	var calls atomic.Int64
	b.Async.OnSubmit = func(_ context.Context, job mediagate.Job) (mediagate.Submission, error) {
		if calls.Add(1) == 1 { // the same activity begins once more, alongside this one
			if answer := b.submit(1); answer.State != mediagate.AttemptUnknown || !b.last().SenderLost {
				t.Errorf("the second copy finds the attempt %s, want unknown", answer.State)
			}
		}
		return b.Async.Accept(job)
	}
	if answer := b.submit(1); answer.State != mediagate.AttemptAccepted {
		t.Errorf("the attempt is %s, want accepted: the first copy's answer counts", answer.State)
	}
	b.submit(1)
	b.submitted(taskID)
}

// TestD3NoIntent checks that a task that refuses the intent is not sent to a vendor, and that the
// answer has the next step.
func TestD3NoIntent(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.change(task.CancelRequested{})
	if answer := b.submit(1); answer.N != 0 || answer.Step.Kind != task.Settle || answer.Missing {
		t.Errorf("answer %+v", answer)
	}
	b.submitted()
}

// TestD17SubmitWithoutARow checks that a task without a row ends its run, whenever the row was
// lost. A job that was made meanwhile is stopped.
func TestD17SubmitWithoutARow(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.Async.OnSubmit = func(_ context.Context, job mediagate.Job) (mediagate.Submission, error) {
		b.Store.Remove(taskID)
		return b.Async.Accept(job)
	}
	for range 2 {
		if answer := b.submit(1); !answer.Missing {
			t.Errorf("answer %+v, want that the row is missing", answer)
		}
	}
	b.submitted(taskID)
	if got := b.Async.Cancelled(); len(got) != 1 {
		t.Errorf("jobs that were stopped: %v", got)
	}
}

// TestD5RepeatedReportStopsTheJob checks that a late report is repeated if the answer to its
// commit is lost, and that the job, which the task no longer waits for, is stopped all the same.
func TestD5RepeatedReportStopsTheJob(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	late, broken := false, false
	b.Async.OnSubmit = func(_ context.Context, job mediagate.Job) (mediagate.Submission, error) {
		b.change(task.SubmitUnknown{Sending: b.attempt(1).Sending, SenderLost: true}, task.CancelRequested{}, task.EndDue{})
		late = true
		return b.Async.Accept(job)
	}
	b.Activities.Store = slippery{Store: b.Store, after: func(method string) error {
		if !late || broken || method != "Change" {
			return nil
		}
		broken = true
		return mediagate.Errorf(mediagate.KindUnavailable, "the connection broke after the commit")
	}}
	b.submit(1)
	if got := b.Async.Cancelled(); len(got) != 1 || !broken {
		t.Errorf("jobs that were stopped: %v", got)
	}
}

// TestD4CallEndsInTime checks that a synchronous call ends before its stored end, even if the
// task waits and its deadline moves meanwhile.
func TestD4CallEndsInTime(t *testing.T) {
	t.Parallel()
	b := setup(t, func(w *activitytest.World) mediagate.Task {
		waits := w.NewImage()
		waits.DeadlineAt = start.Add(20 * time.Second)
		waits.Wait = mediagate.Wait{
			Why: mediagate.WhyParked, Reason: mediagate.ParkProviderAway, Since: start, EndsAt: start.Add(24 * time.Hour),
		}
		return waits
	})
	b.Activities.Store = slippery{Store: b.Store, after: func(method string) error {
		if method == "OpenIntent" { // a slow commit
			b.advance(8 * time.Second)
		}
		return nil
	}}
	b.Sync.OnSubmit = func(ctx context.Context, _ mediagate.Job) (mediagate.Submission, error) {
		deadline, _ := ctx.Deadline()
		if ends, stored := b.Now().Add(time.Until(deadline)), b.attempt(1).CallEnds; ends.After(stored) {
			t.Errorf("the call may last until %s after the start, and its stored end is %s", ends.Sub(start), stored.Sub(start))
		}
		return mediagate.Submission{}, mediagate.Errorf(mediagate.KindAmbiguous, "lost")
	}
	b.submit(1)
}

// TestD5AnswerAfterTheStepsTime checks that an answer is stored although the step has timed out
// meanwhile, as it does at the task's deadline.
func TestD5AnswerAfterTheStepsTime(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	env := newEnv(b.World)
	over := &beatWatch{ends: time.Now().Add(-time.Second)}
	env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{over}})
	_, err := env.ExecuteActivity(b.Activities.SubmitJob, stepOf(taskID, task.Submit, 1))
	b.ok(err)
	if row := b.attempt(1); row.Ref.JobID == "" {
		t.Errorf("the attempt is %s, without the job's id", row.State)
	}
}

// TestD4AbsentIsSentAgain checks that the same id is sent again, in a new window, once absence is
// proven.
func TestD4AbsentIsSentAgain(t *testing.T) {
	t.Parallel()
	b := lost(t)
	b.Async.OnSubmit = nil
	b.submit(1) // not proven: nothing is sent
	b.submitted(taskID)
	b.absent()
	writes := b.counts()
	if answer := b.submit(1); answer.State != mediagate.AttemptAccepted {
		t.Errorf("the attempt is %s, want accepted", answer.State)
	}
	if got := writes(); got != "0 OpenIntent, 2 Change" {
		t.Errorf("a repeated sending takes %s", got)
	}
	b.submitted(taskID, taskID)
	if got, want := b.attempt(1).SendBefore, b.Now().Add(10*time.Second); !got.Equal(want) {
		t.Errorf("send window until %v, want %v", got, want)
	}
}

// TestCallbackURL checks that a vendor that takes an address for callbacks gets that of the
// attempt, even if the attempt is sent again, and that no other vendor gets one.
func TestCallbackURL(t *testing.T) {
	t.Parallel()
	address := func(row task.Attempt) string {
		return fmt.Sprintf("https://gateway.example.com/%s/%d", row.TaskID, row.N)
	}
	b := lost(t)
	b.Async.OnSubmit = nil
	b.Activities.CallbackURL = address
	b.absent()
	b.submit(1)
	jobs := b.Async.Submits()
	if len(jobs) != 2 || jobs[1].CallbackURL != "https://gateway.example.com/"+taskID+"/1" {
		t.Errorf("jobs %+v", jobs)
	}
	b = setup(t, image)
	b.Activities.CallbackURL = address
	b.submit(1)
	if jobs = b.Sync.Submits(); len(jobs) != 1 || jobs[0].CallbackURL != "" {
		t.Errorf("jobs %+v", jobs)
	}
}

// TestD4AbsentIsNotSentAgain checks that a task that refuses the repeated sending is not sent to
// the vendor.
func TestD4AbsentIsNotSentAgain(t *testing.T) {
	t.Parallel()
	b := lost(t)
	b.absent()
	b.change(task.CancelRequested{})
	b.submit(1)
	b.submitted(taskID)
}

// TestD4LateSenderIsFenced checks that the adapter refuses a sender that slept through its
// window. The attempt was sent again meanwhile, and the late report says nothing about that
// sending.
func TestD4LateSenderIsFenced(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]mediagate.Kind{
		"unreached": mediagate.KindUnreached, "ambiguous": mediagate.KindAmbiguous,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			b.Async.OnSubmit = func(context.Context, mediagate.Job) (mediagate.Submission, error) {
				mine := b.sending(1)
				b.change(task.SubmitUnknown{Sending: mine, SenderLost: true})
				b.absent()
				b.change(
					task.Reopened{
						N: 1, Absent: mine.SendBefore, SendBefore: b.Now().Add(10 * time.Second), CallEnds: b.Now().Add(time.Minute),
					},
				)
				return mediagate.Submission{}, mediagate.Errorf(late, "too late")
			}
			if answer := b.submit(1); answer.State != mediagate.AttemptIntent {
				t.Errorf("the attempt is %s, want intent: the new sender's", answer.State)
			}
		})
	}
}

// TestD4RefusedAgainIsNoProof checks a repeated sending that is refused for a bad value: the
// vendor may mean that the id is taken.
func TestD4RefusedAgainIsNoProof(t *testing.T) {
	t.Parallel()
	for kind, want := range map[mediagate.Kind]mediagate.AttemptState{
		mediagate.KindInvalid: mediagate.AttemptUnknown, mediagate.KindModerated: mediagate.AttemptRejected,
	} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			b := lost(t)
			b.absent()
			b.Async.OnSubmit = refuses(kind)
			if answer := b.submit(1); answer.State != want {
				t.Errorf("the attempt is %s, want %s", answer.State, want)
			}
		})
	}
}

// TestRefusedIsSentElsewhereThoughTheWorkerStops checks that a refusal that says nothing about
// the request leads to the next channel, although the worker stops as the answer comes.
func TestRefusedIsSentElsewhereThoughTheWorkerStops(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.twoAccounts()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	b.Async.OnSubmit = func(context.Context, mediagate.Job) (mediagate.Submission, error) {
		stop()
		return mediagate.Submission{}, mediagate.Errorf(mediagate.KindFunds, "no")
	}
	submitWithin(ctx, b.World)
	if next := b.ask().Step; next.Kind != task.Submit || next.N != 2 {
		t.Errorf("the next step is %+v, want attempt 2 at once", next)
	}
}

// TestRerouteGoesToTheChosenChannel checks that an operator's choice of a channel counts, and
// that no other channel takes its place (D9).
func TestRerouteGoesToTheChosenChannel(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.Channels.Set(b.AsyncBound(), b.account("b", 0, 1), b.account("c", 0, 2))
	b.submit(1)
	b.change(task.RerouteRequested{Channel: "c"})
	b.submit(2)
	if row := b.attempt(2); row.Channel != "c" || row.State != mediagate.AttemptAccepted {
		t.Errorf("attempt 2 is %s at %s", row.State, row.Channel)
	}
	b.change(task.RerouteRequested{Channel: "gone"})
	_, err := b.tryStep(task.Submit, 3)
	kind(t, err, mediagate.KindUnreached, mediagate.ParkChannelMissing, true)
	b.submitted(taskID, taskID+"-2")
}

// TestD11SubmitWithoutAChannel checks that a worker without the channel leaves the attempt to
// another worker, without an alarm.
func TestD11SubmitWithoutAChannel(t *testing.T) {
	t.Parallel()
	for name, scene := range map[string]func(t *testing.T) (b *bundle){
		"of a first attempt": func(t *testing.T) *bundle { t.Helper(); return setup(t, video) },
		"of a repeated sending": func(t *testing.T) *bundle {
			t.Helper()
			b := lost(t)
			b.absent()
			return b
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := scene(t)
			before := len(b.Async.Submits())
			b.Channels.Set(b.SyncBound())
			_, err := b.tryStep(task.Submit, 1)
			kind(t, err, mediagate.KindUnreached, mediagate.ParkChannelMissing, true)
			var app *temporal.ApplicationError
			if !asApplication(err, &app) || app.Category() != temporal.ApplicationErrorCategoryBenign {
				t.Error("the error raises alarms")
			}
			if got := len(b.Async.Submits()); got != before {
				t.Errorf("%d jobs were sent", got-before)
			}
		})
	}
}

// TestD3CallsEndWithTheDeadline checks that near the deadline the first byte, and a whole
// synchronous call, come before it.
func TestD3CallsEndWithTheDeadline(t *testing.T) {
	t.Parallel()
	b := setup(t, image)
	b.advance(2*time.Hour - 4*time.Second)
	b.Sync.OnSubmit = func(ctx context.Context, _ mediagate.Job) (mediagate.Submission, error) {
		if until, ok := ctx.Deadline(); !ok || time.Until(until) > 4*time.Second {
			t.Errorf("the call may last until %v", until)
		}
		return mediagate.Submission{}, mediagate.Errorf(mediagate.KindAmbiguous, "cut off")
	}
	b.submit(1)
	a := b.last()
	if a.State != mediagate.AttemptUnknown || !a.SendBefore.Equal(start.Add(2*time.Hour)) || !a.CallEnds.Equal(
		start.Add(2*time.Hour+5*time.Second),
	) {
		t.Errorf("the attempt is %s, sent before %v, its call over at %v", a.State, a.SendBefore, a.CallEnds)
	}
}

// TestD5CallEnds checks that the intent says until when its call may be under way: as long as the
// adapter says that a submit takes (D4).
func TestD5CallEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		submitted func(*activitytest.World) mediagate.Task
		operation providers.Operation
		want      time.Duration
		call      time.Duration
	}{
		"asynchronous": {
			video, providers.Operation{Find: true, Submit: 30 * time.Second}, 45 * time.Second, 30 * time.Second,
		},
		"with uploads before": {
			video, providers.Operation{Uploads: true, Submit: 30 * time.Second}, 95 * time.Second, 30 * time.Second,
		},
		"synchronous": {
			image, providers.Operation{Sync: true, Submit: 40 * time.Second}, 55 * time.Second, 40 * time.Second,
		},
		"not described": {
			video, providers.Operation{}, 15*time.Second + activities.LongestSubmit, activities.LongestSubmit,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, c.submitted)
			b.Descriptions.Set(activitytest.AsyncProvider, c.operation)
			b.Descriptions.Set(activitytest.SyncProvider, c.operation)
			submit := func(ctx context.Context, _ mediagate.Job) (mediagate.Submission, error) {
				if until, ok := ctx.Deadline(); !ok || time.Until(until) > c.call || time.Until(until) < c.call-10*time.Second {
					t.Errorf("the call may last for %v, want %v", time.Until(until), c.call)
				}
				return mediagate.Submission{}, mediagate.Errorf(mediagate.KindAmbiguous, "lost")
			}
			b.Async.OnSubmit, b.Sync.OnSubmit = submit, submit
			b.submit(1)
			if got := b.last().CallEnds; !got.Equal(start.Add(c.want)) {
				t.Errorf("the call ends %v after the start, want %v", got.Sub(start), c.want)
			}
		})
	}
}

// TestD5AcceptedAfterTheEnd checks that a job that is accepted after its task has ended is
// recorded, and that the vendor is asked to stop it.
func TestD5AcceptedAfterTheEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		refusal error
		want    mediagate.AttemptState
	}{"stopped": {nil, mediagate.AttemptEnded}, "not stopped": {errors.New("it has begun"), mediagate.AttemptAbandoned}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			b.Async.OnSubmit = func(_ context.Context, job mediagate.Job) (mediagate.Submission, error) {
				b.advance(time.Hour) // the sender counts as lost meanwhile
				b.change(task.SubmitUnknown{Sending: b.sending(1), SenderLost: true}, task.CancelRequested{}, task.EndDue{})
				return b.Async.Accept(job)
			}
			b.Async.OnCancel = func(context.Context, mediagate.JobRef) error { return c.refusal }
			if answer := b.submit(1); answer.Status != mediagate.StatusCancelled || answer.Step.Kind != task.Done {
				t.Errorf("answer %+v", answer)
			}
			if got := b.Async.Cancelled(); len(got) != 1 || got[0].JobID != "job-"+taskID {
				t.Errorf("jobs that were stopped: %v", got)
			}
			if row := b.attempt(1); row.Ref.JobID == "" || row.State != c.want {
				t.Errorf("the attempt is %s, want %s", row.State, c.want)
			}
		})
	}
}

// TestTheAnswerIsHeldWhileTheDatabaseIsAway checks that a database that is away for minutes after
// the vendor's answer costs no job: the sender holds the answer for as long as the activity may
// run, even if its context has ended.
func TestTheAnswerIsHeldWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		away time.Duration
		want mediagate.AttemptState
	}{
		"for minutes":                      {5 * time.Minute, mediagate.AttemptAccepted},
		"longer than the activity may run": {time.Hour, mediagate.AttemptIntent},
	} {
		inBubble(t, name, func(t *testing.T) {
			l := newLife(t, video)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var back time.Time
			l.Async.OnSubmit = func(_ context.Context, job mediagate.Job) (mediagate.Submission, error) {
				back = time.Now().Add(c.away)
				stop()
				return l.Async.Accept(job)
			}
			l.Activities.Store = slippery{Store: l.Store, before: func(string) error {
				if time.Now().Before(back) {
					return mediagate.Errorf(mediagate.KindUnavailable, "the database is away")
				}
				return nil
			}}
			submitWithin(ctx, l.World)
			if got := l.Store.Attempts(taskID)[0].State; got != c.want {
				t.Errorf("the attempt is %s, want %s", got, c.want)
			}
		})
	}
}

// TestD5ASenderReports checks that a sender reports what it has begun before it calls the vendor,
// and the job's id as soon as it knows it.
func TestD5ASenderReports(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t, video)
		var reports []task.Seen
		var known atomic.Bool // Temporal knows the job's id
		env := newEnv(l.World)
		env.SetOnActivityHeartbeatListener(func(_ *activity.Info, details converter.EncodedValues) {
			var seen task.Seen
			if err := details.Get(&seen); err != nil {
				t.Error(err)
			}
			reports = append(reports, seen)
			known.Store(seen.Ref.JobID != "")
		})
		l.Async.OnSubmit = func(_ context.Context, job mediagate.Job) (mediagate.Submission, error) {
			if len(reports) != 1 || reports[0].ExternalID != job.ExternalID || reports[0].Channel != activitytest.AsyncChannel {
				t.Errorf("the vendor is called, and Temporal knows %+v", reports)
			}
			gone := time.Now()
			l.Activities.Store = slippery{Store: l.Store, before: func(string) error {
				if known.Load() || time.Since(gone) > time.Minute {
					return nil
				}
				return mediagate.Errorf(mediagate.KindUnavailable, "the database is away until Temporal knows the id")
			}}
			return l.Async.Accept(job)
		}
		if _, err := env.ExecuteActivity(l.Activities.SubmitJob, stepOf(taskID, task.Submit, 1)); err != nil {
			t.Fatal(err)
		}
		if !known.Load() {
			t.Errorf("Temporal never got the job's id: %+v", reports)
		}
	})
}

// remembered is the next try after a sender that died, which had reported so much.
func (b *bundle) remembered(seen task.Seen) {
	b.t.Helper()
	env := newEnv(b.World)
	env.SetHeartbeatDetails(seen)
	_, err := env.ExecuteActivity(b.Activities.SubmitJob, stepOf(taskID, task.Submit, 1))
	b.ok(err)
	if sends := len(b.Async.Submits()) + len(b.Sync.Submits()); sends != 0 {
		b.t.Errorf("the vendor was called %d times", sends)
	}
}

// TestD5ASenderIsRemembered checks that the next try after a sender that died lets the row adopt
// what that sender had begun, and sends nothing itself.
func TestD5ASenderIsRemembered(t *testing.T) {
	t.Parallel()
	job := mediagate.JobRef{JobID: "job-lost", ExternalID: taskID}
	for name, c := range map[string]struct {
		leave func(*bundle, task.Sending) // sets what the row has
		ref   mediagate.JobRef
		want  mediagate.AttemptState
	}{
		"the row lacks the attempt": {func(*bundle, task.Sending) {}, mediagate.JobRef{}, mediagate.AttemptUnknown},
		// the next try says what follows
		"the row forgets it again": {forgets, mediagate.JobRef{}, mediagate.AttemptIntent},
		"the row lacks the job":    {func(*bundle, task.Sending) {}, job, mediagate.AttemptAccepted},
		"the row has the intent": {
			func(b *bundle, s task.Sending) { b.change(task.IntentStored{Sending: s}) }, job, mediagate.AttemptAccepted,
		},
		"the row has the intent, and no id": {
			func(b *bundle, s task.Sending) { b.change(task.IntentStored{Sending: s}) },
			mediagate.JobRef{},
			mediagate.AttemptUnknown,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			sent := task.Sending{
				N: 1, Channel: activitytest.AsyncChannel, Provider: activitytest.AsyncProvider,
				Fingerprint: b.AsyncBound().Fingerprint,
				Route:       mediagate.Route{Provider: activitytest.AsyncProvider, Find: true}, ExternalID: taskID,
				SendBefore: b.Now().Add(10 * time.Second),
				CallEnds:   b.Now().Add(time.Minute), Sends: 1,
			}
			c.leave(b, sent)
			b.remembered(task.Seen{Sending: sent, Ref: c.ref})
			if row := b.attempt(1); row.State != c.want || row.Ref != c.ref || row.Channel != sent.Channel {
				t.Errorf("the attempt is %s with %+v at %q, want %s", row.State, row.Ref, row.Channel, c.want)
			}
		})
	}
}

// forgets lets the database lose everything from now on, once, before a task is read.
func forgets(b *bundle, _ task.Sending) {
	if err := b.Store.KeepPast(); err != nil {
		b.t.Fatal(err)
	}
	forget := sync.OnceValue(func() error { return b.Store.Lapse(time.Second) })
	b.Store.Fault = func(method string) error {
		if method == "TaskByID" {
			return forget()
		}
		return nil
	}
}

// TestD5ASynchronousSenderIsRemembered checks a sender of a synchronous call that dies before the
// database has the answer. The id in that answer names no job: the next try reads the manifest,
// and polls for nothing.
func TestD5ASynchronousSenderIsRemembered(t *testing.T) {
	t.Parallel()
	outcome := activitytest.Success()
	for name, c := range map[string]struct {
		left *mediagate.Submission // what is left in the bucket
		want mediagate.AttemptState
	}{
		"its manifest": {
			&mediagate.Submission{Ref: mediagate.JobRef{JobID: "response-1", ExternalID: taskID}, Outcome: &outcome},
			mediagate.AttemptEnded,
		},
		"nothing": {nil, mediagate.AttemptUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, image)
			if c.left != nil {
				text, err := json.Marshal(c.left)
				b.ok(err)
				b.Bucket.Write(manifest("outcome.json"), string(text))
			}
			sent := task.Sending{
				N: 1, Channel: activitytest.SyncChannel, Provider: activitytest.SyncProvider,
				Fingerprint: b.SyncBound().Fingerprint,
				Route:       mediagate.Route{Provider: activitytest.SyncProvider, Sync: true}, ExternalID: taskID,
				SendBefore: b.Now().Add(10 * time.Second),
				CallEnds:   b.Now().Add(time.Minute), Sends: 1,
			}
			b.change(task.IntentStored{Sending: sent})
			b.remembered(task.Seen{Sending: sent, Ref: mediagate.JobRef{JobID: "response-1", ExternalID: taskID}})
			if row := b.attempt(1); row.State != c.want {
				t.Errorf("the attempt is %s with %+v, want %s", row.State, row.Ref, c.want)
			}
		})
	}
}

// TestD5TheStopHasItsTime checks that the vendor has its full time to stop a job that the task no
// longer waits for, however long the database took.
func TestD5TheStopHasItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t, video)
		slow := false
		l.Async.OnSubmit = func(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
			st, _ := l.Store.Peek(taskID)
			_, err := l.Store.Change(ctx, taskID, task.SubmitUnknown{Sending: st.Last().Sending},
				task.CancelRequested{}, task.EndDue{})
			slow = true
			if err != nil {
				t.Error(err)
			}
			return l.Async.Accept(job)
		}
		l.Activities.Store = slippery{Store: l.Store, after: func(method string) error {
			if slow && method == "Change" {
				slow = false
				time.Sleep(6 * time.Second)
			}
			return nil
		}}
		l.Async.OnCancel = func(ctx context.Context, _ mediagate.JobRef) error {
			select {
			case <-time.After(8 * time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if _, ok, err := l.take(task.Step{Kind: task.Submit, N: 1}); !ok {
			t.Fatal(err)
		}
		if got := l.Store.Attempts(taskID)[0].State; got != mediagate.AttemptEnded {
			t.Errorf("the attempt is %s, want ended: the vendor has stopped the job", got)
		}
	})
}

// TestD5CancelCutsSynchronousCallsOnly checks that a cancel of the activity cuts a synchronous
// call, but not an asynchronous submit, which is about to return the job's id. The answer is
// stored either way.
func TestD5CancelCutsSynchronousCallsOnly(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		submitted func(*activitytest.World) mediagate.Task
		cause     error
		cut       bool
	}{
		"synchronous":                        {image, temporal.NewCanceledError(), true},
		"synchronous, Temporal out of reach": {image, errors.New("no heartbeat"), false},
		"asynchronous":                       {video, temporal.NewCanceledError(), false},
	} {
		inBubble(t, name, func(t *testing.T) {
			l := newLife(t, c.submitted)
			ctx, cancel := context.WithCancelCause(t.Context())
			submit := func(call context.Context, job mediagate.Job) (mediagate.Submission, error) {
				cancel(c.cause)
				synctest.Wait()
				if got := call.Err() != nil; got != c.cut {
					t.Errorf("the call was cut: %v, want %v", got, c.cut)
				}
				if c.cut {
					return mediagate.Submission{}, mediagate.Errorf(mediagate.KindAmbiguous, "cut")
				}
				return l.Async.Accept(job)
			}
			l.Async.OnSubmit, l.Sync.OnSubmit = submit, submit
			submitWithin(ctx, l.World)
			want := mediagate.AttemptAccepted
			if c.cut {
				want = mediagate.AttemptUnknown
			}
			if got := l.Store.Attempts(taskID)[0].State; got != want {
				t.Errorf("the attempt is %s, want %s", got, want)
			}
		})
	}
}

func TestCancelJob(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.submit(1)
	b.change(task.CancelRequested{})
	answer := b.step(task.CancelJob, 1)
	if got := b.Async.Cancelled(); len(got) != 1 || answer.State != mediagate.AttemptEnded ||
		answer.Step.Kind != task.Settle {
		t.Errorf("stopped %v, then %+v", got, answer)
	}
}

// TestCancelJobWithoutADatabase checks that a database that is away does not count as a vendor
// that cannot stop the job.
func TestCancelJobWithoutADatabase(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.submit(1)
	b.change(task.CancelRequested{})
	b.Activities.Store = slippery{Store: b.Store, before: onceOf(fails("Attempt", mediagate.KindUnavailable))}
	_, err := b.tryStep(task.CancelJob, 1)
	kind(t, err, mediagate.KindUnavailable, "", true)
	b.step(task.CancelJob, 1)
	if got := b.Async.Cancelled(); len(got) != 1 {
		t.Errorf("stopped %v, want the job", got)
	}
}
