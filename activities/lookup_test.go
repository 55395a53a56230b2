package activities_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/task"
)

// refuses returns a vendor's refusal of all submits.
func refuses(kind mediagate.Kind) func(context.Context, mediagate.Job) (mediagate.Submission, error) {
	return func(context.Context, mediagate.Job) (mediagate.Submission, error) {
		return mediagate.Submission{}, mediagate.Errorf(kind, "no")
	}
}

// unreported returns a vendor's answer to all questions for jobs.
func unreported(kind mediagate.Kind) func(context.Context, mediagate.JobRef) (mediagate.Report, error) {
	return func(context.Context, mediagate.JobRef) (mediagate.Report, error) {
		return mediagate.Report{}, mediagate.Errorf(kind, "no")
	}
}

// lost leaves the answer of attempt 1 lost, at a vendor that can be asked by our id.
func lost(t *testing.T) *bundle {
	t.Helper()
	b := setup(t, video)
	b.Async.OnSubmit = refuses(mediagate.KindAmbiguous)
	if answer := b.submit(1); answer.State != mediagate.AttemptUnknown || answer.Step.Kind != task.Lookup {
		t.Fatalf("answer %+v", answer)
	}
	return b
}

// absent proves that the lost attempt made no job.
func (b *bundle) absent() {
	b.t.Helper()
	b.advance(time.Minute)
	for range 2 {
		b.advance(time.Minute)
		b.change(task.NotFound{N: 1, SendBefore: b.attempt(1).SendBefore, AskedAt: b.Now()})
	}
}

func TestLookupFinds(t *testing.T) {
	t.Parallel()
	b := lost(t)
	_, err := b.Async.Accept(mediagate.Job{ExternalID: taskID})
	b.ok(err)
	writes := b.counts()
	if answer := b.step(task.Lookup, 1); answer.State != mediagate.AttemptAccepted || answer.Step.Why != task.SleepVendor {
		t.Errorf("answer %+v", answer)
	}
	if got := writes(); got != "0 OpenIntent, 1 Change" {
		t.Errorf("a lookup takes %s", got)
	}
	if rows := b.Store.Awaits(); b.attempt(1).Ref.JobID != "job-"+taskID || len(rows) != 1 || !rows[0].NextPollAt.After(
		b.Now(),
	) {
		t.Errorf("vendor's id %q, awaited %v", b.attempt(1).Ref.JobID, rows)
	}
	b.submitted(taskID)
}

// TestD4LookupsProveAbsence checks that a lookup that finds no job counts only once the call must
// be over: send window 10 s, call 30 s, clock skew 5 s. A second one, 30 s later, proves that
// there is no job. A lookup sends nothing.
func TestD4LookupsProveAbsence(t *testing.T) {
	t.Parallel()
	b := lost(t)
	for _, at := range []time.Duration{45*time.Second - time.Microsecond, 45 * time.Second} {
		b.advance(start.Add(at).Sub(b.Now()))
		b.step(task.Lookup, 1)
		if counts := !b.last().AbsentAt.IsZero(); counts != (at == 45*time.Second) {
			t.Errorf("after %v a lookup counts: %v", at, counts)
		}
	}
	b.advance(30 * time.Second)
	if step := b.step(task.Lookup, 1).Step; step.Kind != task.Submit || step.N != 1 {
		t.Errorf("after two lookups the next step is %+v", step)
	}
	b.submitted(taskID)
}

// TestD4LookupOfALostSender checks that an intent whose sender did not report is looked up as
// well, once its time is over. The first lookup that finds no job counts.
func TestD4LookupOfALostSender(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.Activities.Store = slippery{Store: b.Store, after: onceOf(fails("OpenIntent", mediagate.KindInternal))}
	if _, err := b.tryStep(task.Submit, 1); err == nil {
		t.Fatal("the sender lives")
	}
	b.advance(2 * time.Hour)
	if answer := b.step(
		task.Lookup, 1,
	); answer.Step.Why != task.SleepLookup || !b.last().SenderLost || !b.last().AbsentAt.Equal(b.Now()) {
		t.Errorf("the next step is %+v, the attempt absent since %v", answer.Step, b.last().AbsentAt)
	}
}

// TestLookupErrors checks that a lookup without a result leaves the attempt as it was. Temporal
// repeats it.
func TestLookupErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		scene func(*bundle)
		kind  mediagate.Kind
		code  string
	}{
		"the vendor is away": {func(b *bundle) {
			b.Async.OnFind = unreported(mediagate.KindTransient)
		}, mediagate.KindTransient, ""},
		"no channel": {
			func(b *bundle) { b.Channels.Set(b.SyncBound()) }, mediagate.KindUnreached, string(mediagate.ParkChannelMissing),
		},
		"the database is away": {func(b *bundle) {
			b.Store.Fault = func(string) error { return mediagate.Errorf(mediagate.KindUnavailable, "away") }
		}, mediagate.KindUnavailable, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := lost(t)
			b.advance(time.Hour)
			c.scene(b)
			_, err := b.tryStep(task.Lookup, 1)
			kind(t, err, c.kind, c.code, true)
			if a := b.last(); a.State != mediagate.AttemptUnknown || !a.AbsentAt.IsZero() {
				t.Errorf("the attempt is %s, absent since %v", a.State, a.AbsentAt)
			}
		})
	}
}

// TestLookupComesLate checks that a report that arrives while the vendor is asked counts more
// than the vendor's answer.
func TestLookupComesLate(t *testing.T) {
	t.Parallel()
	b := lost(t)
	b.advance(time.Hour)
	b.Async.OnFind = func(context.Context, mediagate.JobRef) (mediagate.Report, error) {
		b.change(
			task.Accepted{
				Sending: b.sending(1), Submission: mediagate.Submission{Ref: mediagate.JobRef{JobID: "late"}}, FirstPollAt: b.Now(),
			},
		)
		return mediagate.Report{}, mediagate.Errorf(mediagate.KindNotFound, "not seen yet")
	}
	if answer := b.step(task.Lookup, 1); answer.State != mediagate.AttemptAccepted {
		t.Errorf("answer %+v", answer)
	}
	before := len(b.Async.Finds())
	b.step(task.Lookup, 1)
	if got := len(b.Async.Finds()); got != before {
		t.Error("an attempt whose fate is known is looked up")
	}
}

// TestD6LookupInTheBucket checks that a bucket that is away is searched again, and that a vendor
// that cannot be asked is not.
func TestD6LookupInTheBucket(t *testing.T) {
	t.Parallel()
	b := setup(t, image)
	b.handsOver("first")
	b.dies()
	b.advance(3 * time.Minute)
	away := unreadable{b.Bucket}
	b.Activities.Bucket = away
	b.submit(1) // the attempt's sender was lost
	_, err := b.tryStep(task.Lookup, 1)
	kind(t, err, mediagate.KindUnavailable, mediagate.ParkStorage, true)
	b.Activities.Bucket = b.Bucket
	if answer := b.step(task.Lookup, 1); answer.Step.Kind != task.Mirror {
		t.Errorf("answer %+v, want the files that were found", answer)
	}
	if got := len(b.Sync.Finds()); got != 0 {
		t.Errorf("the vendor was asked %d times", got)
	}
}

// unreadable is a bucket that is away for those who read manifests.
type unreadable struct{ *activitytest.Bucket }

func (unreadable) LoadManifest(context.Context, string) ([]byte, error) {
	return nil, mediagate.Errorf(mediagate.KindUnavailable, "away")
}

// silent is a bucket that accepts questions for manifests and does not answer them.
type silent struct{ *activitytest.Bucket }

func (silent) LoadManifest(ctx context.Context, _ string) ([]byte, error) {
	<-ctx.Done()
	return nil, mediagate.Errorf(mediagate.KindUnavailable, "no answer")
}

// TestLookupInABucketThatHangs checks that a bucket that hangs leaves a lookup, which has a
// minute, the time to ask the vendor.
func TestLookupInABucketThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bundle{t: t, clock: &clock{}, World: activitytest.New(t, time.Now)}
		b.Store.Add(b.NewImage())
		b.Sync.OnSubmit = refuses(mediagate.KindAmbiguous)
		b.submit(1)
		b.Activities.Bucket = silent{b.Bucket}
		asked := time.Now()
		_, err := b.tryStep(task.Lookup, 1)
		kind(t, err, mediagate.KindUnavailable, mediagate.ParkStorage, true)
		if took := time.Since(asked); took > 30*time.Second {
			t.Errorf("the bucket was waited for for %v", took)
		}
	})
}

// TestD15LookupOfModalParameters checks that parameters whose call was lost are looked up by
// their job. A job that still waits has not got them; a job that does anything else has.
func TestD15LookupOfModalParameters(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		report mediagate.Report
		err    error
		kind   mediagate.Kind // the kind of the lookup's error
		found  bool
		absent bool
	}{
		"the job waits still": {report: mediagate.Report{State: mediagate.JobWaiting}, absent: true},
		"it runs":             {report: mediagate.Report{State: mediagate.JobRunning}, found: true},
		"it has ended":        {report: mediagate.Report{State: mediagate.JobSucceeded}, found: true},
		"nobody knows its word": {
			report: mediagate.Report{State: mediagate.JobUnknown, Word: "limbo"}, kind: mediagate.KindTransient,
		},
		"the vendor does not know it": {
			err: mediagate.Errorf(mediagate.KindNotFound, "no such job"), kind: mediagate.KindTransient,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := waiting(t)
			b.Async.OnSubmit = refuses(mediagate.KindAmbiguous)
			b.submit(2)
			if job := b.Async.Submits()[1]; job.Source == nil || job.Source.Ref.JobID != "job-"+taskID ||
				job.Operation != mediagate.OperationModal {
				t.Errorf("the parameters go out as %+v", job)
			}
			b.advance(time.Minute)
			var asked mediagate.JobRef
			b.Async.OnPoll = func(_ context.Context, ref mediagate.JobRef) (mediagate.Report, error) {
				asked = ref
				return c.report, c.err
			}
			_, err := b.tryStep(task.Lookup, 2)
			if c.kind != 0 {
				kind(t, err, c.kind, "", true)
			} else {
				b.ok(err)
			}
			a := b.last()
			if found := a.State == mediagate.AttemptAccepted; found != c.found || !a.AbsentAt.IsZero() != c.absent ||
				asked.JobID != "job-"+taskID {
				t.Errorf("asked for %q: the attempt is %s, absent since %v", asked.JobID, a.State, a.AbsentAt)
			}
			if c.found && a.Ref.JobID != "job-"+taskID {
				t.Errorf("found as %+v", a.Ref)
			}
		})
	}
}

// waiting leaves the task with the client's modal parameters, which are to be sent.
func waiting(t *testing.T) *bundle {
	t.Helper()
	b := setup(t, func(w *activitytest.World) mediagate.Task {
		task := w.NewVideo()
		task.Plan.Modal = 30 * time.Minute
		return task
	})
	b.submit(1)
	b.ok(b.StorePoll(t.Context(), mediagate.PollResult{TaskID: taskID, N: 1, Waiting: true}))
	if next := b.change(task.ModalGiven{Input: []byte(`{"seed":1}`)}).Step; next.Kind != task.Submit || next.N != 2 {
		t.Fatalf("the next step is %+v", next)
	}
	return b
}

// TestLookupOfASynchronousCall checks a vendor that can be asked although its calls are
// synchronous: it is asked once the bucket has nothing.
func TestLookupOfASynchronousCall(t *testing.T) {
	t.Parallel()
	b := setup(t, func(w *activitytest.World) mediagate.Task {
		task := w.NewVideo()
		task.Plan.Routes[0].Sync = true
		return task
	})
	b.Descriptions.Set(activitytest.AsyncProvider, providers.Operation{Sync: true, Find: true, Submit: 150 * time.Second})
	b.Async.OnSubmit = refuses(mediagate.KindAmbiguous)
	b.submit(1)
	if step := b.step(task.Lookup, 1).Step; step.Why != task.SleepLookup || !step.Until.Equal(start.Add(165*time.Second)) {
		t.Errorf("the next step is %+v, want to wait for the end of the call", step)
	}
	b.Async.End(taskID, activitytest.Success())
	if answer := b.step(task.Lookup, 1); answer.State != mediagate.AttemptAccepted {
		t.Errorf("answer %+v", answer)
	}
}
