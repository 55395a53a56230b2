package workflows_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/task"
	"github.com/mediagate/mediagate/workflows"
)

const taskID = activitytest.TaskID

// start is the time at which the tests' clock begins.
var start = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// bundle is a run of a workflow on a skipping clock: the real activities, and doubles of
// everything outside.
type bundle struct {
	*activitytest.World
	t   *testing.T
	env *testsuite.TestWorkflowEnvironment

	first *activities.Answer // set for a first run, see carried

	mu    sync.Mutex
	steps []string        // activities and questions, in the order of their starts
	infos []activity.Info // those of activities, without questions
}

// setup makes a run of the task.
func setup(t *testing.T, task func(*activitytest.World) mediagate.Task) *bundle {
	t.Helper()
	b := &bundle{t: t, env: newEnv()}
	b.World = activitytest.New(t, func() time.Time { return b.env.Now() })
	b.Store.Add(task(b.World))
	b.env.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, _ converter.EncodedValues) {
		b.began(info.ActivityType.Name)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.infos = append(b.infos, *info)
	})
	b.env.SetOnLocalActivityStartedListener(
		func(info *activity.Info, _ context.Context, _ []any) { b.began(info.ActivityType.Name) },
	)
	b.env.RegisterActivity(b.Activities)
	return b
}

func newEnv() *testsuite.TestWorkflowEnvironment {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	// On a busy machine a goroutine may get no processor for longer than the usual second.
	env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute})
	env.SetStartTime(start)
	env.SetTestTimeout(20 * time.Second)
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: taskID, TaskQueue: workflows.QueueMain})
	env.RegisterWorkflow(workflows.Generate)
	env.RegisterWorkflow(workflows.DeliverWebhook)
	return env
}

// same compares got with want.
func same[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func video(w *activitytest.World) mediagate.Task { return w.NewVideo() }

func image(w *activitytest.World) mediagate.Task { return w.NewImage() }

func (b *bundle) began(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.steps = append(b.steps, name)
}

// at runs f when d has passed since the start.
func (b *bundle) at(d time.Duration, f func()) { b.env.RegisterDelayedCallback(f, d) }

// change applies events after d, and wakes the run.
func (b *bundle) change(d time.Duration, events ...task.Event) {
	b.at(d, func() {
		_, err := b.Store.Change(b.t.Context(), taskID, events...)
		b.ok(err)
		b.signal(workflows.SignalWake, nil)
	})
}

// signal sends a signal now.
func (b *bundle) signal(name string, input any) { b.env.SignalWorkflow(name, input) }

// signals sends a signal after d.
func (b *bundle) signals(d time.Duration, name string, input any) {
	b.at(d, func() { b.signal(name, input) })
}

// answersAtOnce makes the synchronous vendor answer with the result.
func (b *bundle) answersAtOnce() {
	b.Sync.OnSubmit = func(_ context.Context, job mediagate.Job) (mediagate.Submission, error) {
		s, err := b.Sync.Accept(job)
		outcome := activitytest.Success()
		s.Outcome = &outcome
		return s, err
	}
}

// loses makes both vendors make the job and lose the answer.
func (b *bundle) loses() {
	for _, v := range []*activitytest.Vendor{b.Async, b.Sync} {
		v.OnSubmit = func(_ context.Context, job mediagate.Job) (mediagate.Submission, error) {
			if _, err := v.Accept(job); err != nil {
				return mediagate.Submission{}, err
			}
			return mediagate.Submission{}, mediagate.Errorf(mediagate.KindAmbiguous, "the answer was lost")
		}
	}
}

// carried lets the run begin with the first step, as the first run of a task does.
func (b *bundle) carried() { b.first = activities.FirstAnswer(b.state().Task, start) }

func (b *bundle) run() {
	b.t.Helper()
	b.env.ExecuteWorkflow(workflows.Generate, workflows.Input{TaskID: taskID, First: b.first})
	if !b.env.IsWorkflowCompleted() {
		b.t.Fatal("the run did not end")
	}
	if err := b.env.GetWorkflowError(); err != nil {
		b.t.Fatalf("the run failed: %v", err)
	}
}

// state returns the task's state.
func (b *bundle) state() task.State {
	st, _ := b.Store.Peek(taskID)
	return st
}

func (b *bundle) ok(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Error(err)
	}
}

// ended checks that the task ended once, and with which failure.
func (b *bundle) ended(want mediagate.Status, code mediagate.FailureCode) {
	b.t.Helper()
	st, end := b.state(), b.Store.End(taskID)
	var got mediagate.FailureCode
	if st.Failure != nil {
		got = st.Failure.Code
	}
	if end.Times != 1 || st.Status != want || got != code {
		b.t.Errorf("the task ended %d times, as %s %s; want once, as %s %s", end.Times, st.Status, got, want, code)
	}
}

// endedAt returns when the task ended, since the start.
func (b *bundle) endedAt() time.Duration { return b.state().EndedAt.Sub(start) }

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
