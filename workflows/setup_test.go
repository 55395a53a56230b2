package workflows_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/workflows"
)

const taskID = activitytest.TaskID

// start is when the tests' clock begins.
var start = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// bundle is a run of a workflow on a skipping clock: the real activities, on
// doubles of everything outside.
type bundle struct {
	*activitytest.World
	t   *testing.T
	env *testsuite.TestWorkflowEnvironment

	mu      sync.Mutex
	started []string        // activities, in the order of their starts
	infos   []activity.Info // of the same
}

// setup makes a run of the task: a video, or what edit makes of it.
func setup(t *testing.T, task func(*activitytest.World) mediagate.Task) *bundle {
	t.Helper()
	b := &bundle{t: t}
	b.newRun()
	b.World = activitytest.New(func() time.Time { return b.env.Now() })
	b.Store.Add(task(b.World))
	b.register()
	return b
}

func video(w *activitytest.World) mediagate.Task { return w.NewVideo() }

func image(w *activitytest.World) mediagate.Task { return w.NewImage() }

// imageThatParks is one whose lost submission an operator decides on.
func imageThatParks(w *activitytest.World) mediagate.Task {
	t := w.NewImage()
	t.Plan.OnUnknown = mediagate.OnUnknownPark
	return t
}

func (b *bundle) newRun() {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	b.env = suite.NewTestWorkflowEnvironment()
	b.env.SetStartTime(start)
	b.env.SetTestTimeout(20 * time.Second)
	b.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: taskID, TaskQueue: workflows.QueueMain})
	b.env.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, _ converter.EncodedValues) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.started = append(b.started, info.ActivityType.Name)
		b.infos = append(b.infos, *info)
	})
}

func (b *bundle) register() {
	b.env.RegisterActivity(b.Activities)
	b.env.RegisterWorkflow(workflows.Generate)
	b.env.RegisterWorkflow(workflows.DeliverWebhook)
}

// again replaces the run by a new one that begins d after the clock of the
// last one, as after a reset or a termination.
func (b *bundle) again(d time.Duration) {
	at := b.env.Now().Add(d)
	b.newRun()
	b.env.SetStartTime(at)
	b.register()
}

// at runs f when d has passed since the start.
func (b *bundle) at(d time.Duration, f func()) { b.env.RegisterDelayedCallback(f, d) }

// polled makes the channel hear of an attempt after d, and signal it.
func (b *bundle) polled(d time.Duration, p mediagate.PollResult) {
	b.at(d, func() {
		p.TaskID = taskID
		b.ok(b.StorePoll(b.t.Context(), p))
		b.env.SignalWorkflow(workflows.SignalUpstream, p.N)
	})
}

// succeeds makes the vendor's job of attempt n end well after d.
func (b *bundle) succeeds(d time.Duration, n int) {
	outcome := activitytest.Success()
	b.polled(d, mediagate.PollResult{N: n, Outcome: &outcome})
}

// answersAtOnce makes the synchronous vendor do what is asked of it.
func (b *bundle) answersAtOnce() {
	b.Sync.OnSubmit = func(_ context.Context, job mediagate.Job) (mediagate.Submission, error) {
		s, err := b.Sync.Accept(job)
		outcome := activitytest.Success()
		s.Outcome = &outcome
		return s, err
	}
}

// signal sends one after d.
func (b *bundle) signal(d time.Duration, name string, arg any) {
	b.at(d, func() { b.env.SignalWorkflow(name, arg) })
}

// cancels makes the client cancel after d.
func (b *bundle) cancels(d time.Duration) {
	b.at(d, func() {
		_, err := b.Store.RequestCancel(b.t.Context(), "acc_1", taskID)
		b.ok(err)
		b.env.SignalWorkflow(workflows.SignalCancel, nil)
	})
}

func (b *bundle) run() {
	b.t.Helper()
	b.env.ExecuteWorkflow(workflows.Generate, workflows.Input{TaskID: taskID, Provider: b.task().Plan.Routes[0].Provider})
	if !b.env.IsWorkflowCompleted() {
		b.t.Fatal("the run did not end")
	}
	if err := b.env.GetWorkflowError(); err != nil {
		b.t.Fatalf("the run failed: %v", err)
	}
}

func (b *bundle) task() mediagate.Task {
	b.t.Helper()
	t, err := b.Store.TaskByID(b.t.Context(), taskID)
	b.ok(err)
	return t
}

func (b *bundle) ok(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Error(err)
	}
}

// elapsed is the time since the start of the first run.
func (b *bundle) elapsed() time.Duration { return b.env.Now().Sub(start) }

// endedAt is when the task ended, since the start.
func (b *bundle) endedAt() time.Duration { return b.task().EndedAt.Sub(start) }

// ended checks the one end of the task.
func (b *bundle) ended(want mediagate.Status) {
	b.t.Helper()
	settled := b.Store.Settlements(taskID)
	if len(settled) != 1 {
		b.t.Fatalf("the task was settled %d times, want once", len(settled))
	}
	if got := settled[0].Status; got != want {
		b.t.Fatalf("the task ended as %s (%+v), want %s", got, settled[0].Failure, want)
	}
	if got := b.task(); got.Status != want || !got.ParkedAt.IsZero() || len(b.Store.Awaits()) > 0 {
		b.t.Errorf("the row says %s, parked %v, %d rows wait; want %s and none", got.Status, got.ParkedAt, len(b.Store.Awaits()), want)
	}
	if want != mediagate.StatusCompleted && settled[0].Cost != 0 {
		b.t.Errorf("a %s task costs %s", want, settled[0].Cost)
	}
}

// failed checks that the task failed with the code.
func (b *bundle) failed(code mediagate.FailureCode) {
	b.t.Helper()
	b.ended(mediagate.StatusFailed)
	if got := b.Store.Settlements(taskID)[0].Failure; got.Code != code {
		b.t.Errorf("the task failed with %+v, want %s", got, code)
	}
}

// submits checks how often vendors were given a job, and under which ids.
func (b *bundle) submits(want ...string) {
	b.t.Helper()
	var got []string
	for _, job := range append(b.Async.Submits(), b.Sync.Submits()...) {
		got = append(got, job.ExternalID)
	}
	if !slices.Equal(got, want) {
		b.t.Errorf("jobs submitted: %v, want %v", got, want)
	}
}

// until lets an activity go on once something holds that the run does meanwhile.
func (b *bundle) until(what string, holds func() bool) {
	for range 10_000 {
		if holds() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	b.t.Errorf("not so: %s", what)
}

// count is how often an activity was started.
func (b *bundle) count(name string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, s := range b.started {
		if s == name {
			n++
		}
	}
	return n
}

// within checks a time that has jitter.
func within(t *testing.T, what string, got, least, most time.Duration) {
	t.Helper()
	if got < least || got > most {
		t.Errorf("%s: %v, want %v to %v", what, got, least, most)
	}
}

// refuse is a vendor that refuses the first n jobs.
func refuse(v *activitytest.Vendor, n int, kind mediagate.Kind) {
	v.OnSubmit = submitFunc(func(call int, job mediagate.Job) (mediagate.Submission, error) {
		if call <= n {
			return mediagate.Submission{}, mediagate.Errorf(kind, "no")
		}
		return v.Accept(job)
	})
}

var errLost = mediagate.Errorf(mediagate.KindAmbiguous, "the answer was lost")

var errAway = mediagate.Errorf(mediagate.KindTransient, "the vendor is out of reach")

// bucketAway makes the bucket fail until after.
func (b *bundle) bucketAway(until time.Duration) {
	b.Bucket.OnMirror = func(string) error {
		if b.elapsed() < until {
			return &mediagate.Error{Kind: mediagate.KindUnavailable, Code: string(mediagate.ParkStorage), Message: "the bucket is away", Err: errors.New("refused")}
		}
		return nil
	}
}

// submitFunc makes a vendor's answer depend on the number of the call, from 1.
func submitFunc(f func(call int, job mediagate.Job) (mediagate.Submission, error)) func(context.Context, mediagate.Job) (mediagate.Submission, error) {
	var calls atomic.Int64
	return func(_ context.Context, job mediagate.Job) (mediagate.Submission, error) {
		return f(int(calls.Add(1)), job)
	}
}

// findable is the task's first route as an attempt takes it whose vendor can
// be asked by our own id.
func findable(b *bundle) mediagate.Route {
	route := b.task().Plan.Routes[0]
	route.Find = true
	return route
}
