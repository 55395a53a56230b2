package activities_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/channel"
	"github.com/mediagate/mediagate/task"
)

const taskID = activitytest.TaskID

var start = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// clock stands still until advance moves it.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// bundle is the activities with doubles, and one task.
type bundle struct {
	*activitytest.World
	*clock
	t *testing.T
}

func setup(t *testing.T, submitted func(*activitytest.World) mediagate.Task) *bundle {
	t.Helper()
	b := &bundle{t: t, clock: &clock{now: start}}
	b.World = activitytest.New(t, b.Now)
	b.Store.Add(submitted(b.World))
	return b
}

// same compares got with want.
func same[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// inBubble runs a parallel subtest on a clock of its own.
func inBubble(t *testing.T, name string, test func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, test)
	})
}

func video(w *activitytest.World) mediagate.Task { return w.NewVideo() }

func image(w *activitytest.World) mediagate.Task { return w.NewImage() }

// newEnv returns an environment in which an activity runs by itself.
func newEnv(w *activitytest.World) *testsuite.TestActivityEnvironment {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(w.Activities)
	return env
}

// repeated runs an activity as a workflow does that repeats it, and calls each of begins at every
// attempt.
func (b *bundle) repeated(does, arg any, begins ...func(attempt int32)) error {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	env.RegisterActivity(b.Activities)
	env.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, _ converter.EncodedValues) {
		for _, f := range begins {
			f(info.Attempt)
		}
	})
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			StartToCloseTimeout: time.Minute, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 50},
		})
		return workflow.ExecuteActivity(ctx, does, arg).Get(ctx, nil)
	})
	return env.GetWorkflowError()
}

// call runs an activity and returns its result.
func call[T any](b *bundle, activity, arg any) (T, error) {
	var out T
	value, err := newEnv(b.World).ExecuteActivity(activity, arg)
	if err == nil && value.HasValue() {
		err = value.Get(&out)
	}
	return out, err
}

// must is call for an activity that has to succeed.
func must[T any](b *bundle, activity, arg any) T {
	b.t.Helper()
	out, err := call[T](b, activity, arg)
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

// stepOf returns the input of an activity that works on attempt n of a task.
func stepOf(id string, kind task.Kind, n int) activities.StepArgs {
	begun := n
	if kind == task.Submit { // the run has not seen the attempt yet
		begun--
	}
	return activities.StepArgs{TaskID: id, Step: task.Step{Kind: kind, N: n}, Seen: seen(begun)}
}

// step takes a step of the task, and returns the answer.
func (b *bundle) step(kind task.Kind, n int) activities.Answer {
	b.t.Helper()
	answer, err := b.tryStep(kind, n)
	b.ok(err)
	return answer
}

func (b *bundle) tryStep(kind task.Kind, n int) (activities.Answer, error) {
	return call[activities.Answer](b, activityOf(b.World, kind), stepOf(taskID, kind, n))
}

// activityOf returns the activity of a step.
func activityOf(w *activitytest.World, kind task.Kind) any {
	a := w.Activities
	switch kind {
	case task.CheckInputs:
		return a.CheckInputs
	case task.Submit:
		return a.SubmitJob
	case task.Lookup:
		return a.LookUp
	case task.Mirror:
		return a.MirrorResult
	case task.CancelJob:
		return a.CancelJob
	case task.Settle:
		return a.Settle
	case task.Sleep, task.Done:
	}
	panic("no activity takes the step " + kind)
}

func (b *bundle) submit(n int) activities.Answer {
	b.t.Helper()
	return b.step(task.Submit, n)
}

// ask asks for the next step.
func (b *bundle) ask() activities.Answer {
	b.t.Helper()
	return must[activities.Answer](b, b.Activities.Ask, activities.Question{TaskID: taskID})
}

// change applies events to the task.
func (b *bundle) change(events ...task.Event) task.Changed {
	b.t.Helper()
	changed, err := b.Store.Change(context.Background(), taskID, events...)
	b.ok(err)
	return changed
}

func (b *bundle) state() task.State {
	b.t.Helper()
	st, ok := b.Store.Peek(taskID)
	if !ok {
		b.t.Fatal("the task is gone")
	}
	return st
}

func (b *bundle) ok(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bundle) attempt(n int) task.Attempt {
	b.t.Helper()
	a, err := b.Store.Attempt(context.Background(), taskID, n)
	b.ok(err)
	return a
}

// seen returns a memory that knows only the number of attempt n.
func seen(n int) task.Seen { return task.Seen{Sending: task.Sending{N: n}} }

// sending returns the last sending of attempt n.
func (b *bundle) sending(n int) task.Sending {
	a := b.stored(n)
	return a.Sending
}

// stored returns attempt n as the state has it.
func (b *bundle) stored(n int) task.Attempt {
	b.t.Helper()
	st := b.state()
	a := st.Attempt(n)
	if a == nil {
		b.t.Fatalf("there is no attempt %d", n)
	}
	return *a
}

func (b *bundle) task() mediagate.Task {
	b.t.Helper()
	t, err := b.Store.TaskByID(context.Background(), taskID)
	b.ok(err)
	return t
}

// submitted checks the ids under which jobs were sent.
func (b *bundle) submitted(want ...string) {
	b.t.Helper()
	var got []string
	for _, job := range append(b.Async.Submits(), b.Sync.Submits()...) {
		got = append(got, job.ExternalID)
	}
	if !slices.Equal(got, want) {
		b.t.Errorf("jobs submitted: %v, want %v", got, want)
	}
}

// succeeded returns a bundle whose task has a success of attempt 1.
func succeeded(t *testing.T, outcome mediagate.Outcome) *bundle {
	t.Helper()
	b := setup(t, video)
	b.submit(1)
	b.change(task.VendorEnded{N: 1, Outcome: outcome})
	return b
}

// kind checks an activity's error: its kind, its code, and whether Temporal repeats the activity
// by itself.
func kind[C ~string](t *testing.T, err error, want mediagate.Kind, code C, repeated bool) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %s", want)
	}
	got := activities.FromTemporal(err)
	if got.Kind != want || got.Code != string(code) {
		t.Errorf("error %s %q (%v), want %s %q", got.Kind, got.Code, err, want, code)
	}
	var app *temporal.ApplicationError
	if asApplication(err, &app) && app.NonRetryable() == repeated {
		t.Errorf("repeated by Temporal: %v, want %v", !app.NonRetryable(), repeated)
	}
}

// workerOptions returns the options of a worker whose activities end with ctx.
func workerOptions(ctx context.Context) worker.Options {
	return worker.Options{BackgroundActivityContext: ctx}
}

func asApplication(err error, app **temporal.ApplicationError) bool { return errors.As(err, app) }

// account returns a channel with an account of its own at the asynchronous vendor.
func (b *bundle) account(name string, concurrency, priority int) channel.Channel {
	c := b.AsyncBound()
	c.Name, c.Fingerprint, c.Concurrency, c.Priority = name, name, concurrency, priority
	return c
}

// housekeep lets TendWakes run for d, inside a bubble.
func housekeep(t *testing.T, w *activitytest.World, d time.Duration) {
	t.Helper()
	stop, done := make(chan struct{}), make(chan error, 1)
	env := newEnv(w)
	env.SetWorkerStopChannel(stop)
	go func() {
		_, err := env.ExecuteActivity(w.Activities.TendWakes)
		done <- err
	}()
	time.Sleep(d)
	at := time.Now()
	close(stop)
	if err := <-done; err != nil || time.Since(at) != 0 {
		t.Errorf("ended with %v after %v, want at once", err, time.Since(at))
	}
}
