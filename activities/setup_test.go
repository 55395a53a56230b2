package activities_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
)

const taskID = activitytest.TaskID

var start = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// clock stands still until it is moved.
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

// bundle is the activities on doubles, with one task.
type bundle struct {
	*activitytest.World
	*clock
	t *testing.T
}

func setup(t *testing.T, task func(*activitytest.World) mediagate.Task) *bundle {
	t.Helper()
	b := &bundle{t: t, clock: &clock{now: start}}
	b.World = activitytest.New(b.Now)
	b.Store.Add(task(b.World))
	return b
}

func video(w *activitytest.World) mediagate.Task { return w.NewVideo() }

func image(w *activitytest.World) mediagate.Task { return w.NewImage() }

// newEnv is where an activity runs by itself.
func newEnv(w *activitytest.World) *testsuite.TestActivityEnvironment {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(w.Activities)
	return env
}

// call runs an activity and takes its result.
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

func first() activities.AttemptArgs { return activities.AttemptArgs{TaskID: taskID, N: 1} }

func (b *bundle) submit(n int) mediagate.Story {
	b.t.Helper()
	return must[mediagate.Story](b, b.Activities.SubmitJob, activities.AttemptArgs{TaskID: taskID, N: n})
}

func (b *bundle) ok(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bundle) attempt(n int) mediagate.Attempt {
	b.t.Helper()
	a, err := b.Store.Attempt(context.Background(), taskID, n)
	b.ok(err)
	return a
}

func (b *bundle) task() mediagate.Task {
	b.t.Helper()
	t, err := b.Store.TaskByID(context.Background(), taskID)
	b.ok(err)
	return t
}

// submitted checks under which ids jobs were sent.
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

// succeeded leaves the task with a success of attempt 1.
func succeeded(t *testing.T, outcome mediagate.Outcome) *bundle {
	t.Helper()
	b := setup(t, video)
	b.submit(1)
	if _, err := b.Store.RecordOutcome(t.Context(), taskID, 1, outcome); err != nil {
		t.Fatal(err)
	}
	return b
}

// kind checks an activity's error: its kind, its code, and whether Temporal
// repeats the activity by itself.
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

// workerOptions are those of a worker whose activities end with ctx.
func workerOptions(ctx context.Context) worker.Options {
	return worker.Options{BackgroundActivityContext: ctx}
}
