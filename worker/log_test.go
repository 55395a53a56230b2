package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/task"
)

// scene is an activity that works on a task while the database fails, with its log.
type scene struct {
	*activitytest.World
	ctx     context.Context // of the worker's activities
	log     bytes.Buffer    // of the worker
	library bytes.Buffer    // of the SDK
}

func newScene(t *testing.T, fault func(method string) error) *scene {
	t.Helper()
	s := &scene{World: activitytest.New(t, time.Now), ctx: t.Context()}
	s.Activities.Logger = slog.New(slog.NewTextHandler(&s.log, nil))
	s.Store.Add(s.NewVideo())
	s.Store.Fault = fault
	return s
}

// run runs the activity as a worker does.
func (s *scene) run(does any, step task.Step) error {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.NewTextHandler(&s.library, nil))))
	env := suite.NewTestActivityEnvironment()
	env.SetWorkerOptions(worker.Options{
		BackgroundActivityContext: s.ctx,
		Interceptors:              []interceptor.WorkerInterceptor{&activityLog{log: s.Activities.Logger, now: time.Now}},
	})
	env.RegisterActivity(s.Activities)
	_, err := env.ExecuteActivity(does, activities.StepArgs{TaskID: activitytest.TaskID, Step: step})
	return err
}

// mirror runs an activity that fails.
func (s *scene) mirror(t *testing.T) error {
	t.Helper()
	err := s.run(s.Activities.MirrorResult, task.Step{Kind: task.Mirror, N: 1})
	if err == nil {
		t.Fatal("the activity succeeded")
	}
	return err
}

// TestAFailedActivityIsOneLine checks that a failed attempt writes one line, with a cause that
// Temporal does not get.
func TestAFailedActivityIsOneLine(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		fault func(string) error
		want  string
	}{
		"with a cause": {func(string) error {
			return &mediagate.Error{Kind: mediagate.KindUnavailable, Message: "the database is away", Err: errors.New("connection refused")}
		}, "unavailable: the database is away: connection refused"},
		"without": {func(string) error {
			return &mediagate.Error{Kind: mediagate.KindUnavailable, Message: "the database is away"}
		}, "the database is away (type: unavailable, retryable: true)"},
		"unforeseen": {func(string) error { return errors.New("what is this") }, "internal: database: read attempt: what is this"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, c.fault)
			err := s.mirror(t)
			if text := s.log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, `msg="activity failed"`) ||
				!strings.Contains(text, `error="`+c.want+`"`) || !strings.Contains(text, "duration_ms=") {
				t.Errorf("the log is\n%s", text)
			}
			if strings.Contains(err.Error(), "refused") || strings.Contains(err.Error(), "what is this") {
				t.Errorf("Temporal is told %q", err)
			}
		})
	}
}

// TestWhatIsCutOffIsNoFailure checks that an activity ended by a stop or a cancellation logs no
// warning and does not count as a failure of the database that it called.
func TestWhatIsCutOffIsNoFailure(t *testing.T) {
	t.Parallel()
	away := &mediagate.Error{Kind: mediagate.KindUnavailable, Message: "the database is away", Err: context.Canceled}
	for name, c := range map[string]struct {
		cause, fault error
		want         string
	}{
		"a stop":   {worker.ErrWorkerShutdown, context.Canceled, "activity cut off by the stop"},
		"a cancel": {temporal.NewCanceledError("by an operator"), away, "activity cancelled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, stop := context.WithCancelCause(t.Context())
			s := newScene(t, func(string) error {
				stop(c.cause)
				return c.fault
			})
			s.ctx = ctx
			_ = s.mirror(t)
			if text := s.log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, `level=INFO msg="`+c.want+`"`) ||
				strings.Contains(text, "database") {
				t.Errorf("the log is\n%s", text)
			}
		})
	}
}

// TestAPanicIsOneLineWithoutItsValue checks that the log line of a panic lacks the panic's
// value, and that Temporal does not get the value either.
func TestAPanicIsOneLineWithoutItsValue(t *testing.T) {
	t.Parallel()
	var s *scene
	s = newScene(t, func(string) error { panic(s.AsyncBound().Channel.Credentials["key"].Reveal() + activitytest.Secret) })
	err := s.mirror(t)
	if got := activities.FromTemporal(err); got.Kind != mediagate.KindInternal {
		t.Fatalf("the activity ends with %v", err)
	}
	text := s.log.String()
	if strings.Count(text, "\n") != 1 || !strings.Contains(text, "panic: with a string") || !strings.Contains(text, "log_test.go") {
		t.Errorf("the log is\n%s", text)
	}
	for what, told := range map[string]string{"the log": text, "the log of the library": s.library.String(), "Temporal": fmt.Sprintf("%+v %+v", err, errors.Unwrap(err))} {
		if strings.Contains(told, activitytest.Secret) {
			t.Errorf("%s is told %s", what, told)
		}
	}
}

// TestShutOutTriesAreNotLogged checks that a task which is parked while all channels are out of
// service does not log a line for each attempt. The channel logs a line of its own.
func TestShutOutTriesAreNotLogged(t *testing.T) {
	t.Parallel()
	s := newScene(t, nil)
	c := s.AsyncBound()
	s.Channels.Set(c)
	if _, err := s.Store.EnableChannel(t.Context(), c.Name, false); err != nil {
		t.Fatal(err)
	}
	err := s.run(s.Activities.SubmitJob, task.Step{Kind: task.Submit, N: 1})
	if got := activities.FromTemporal(err); err == nil || got.Kind != mediagate.KindShutOut {
		t.Fatalf("the activity ends with %v", err)
	}
	if s.log.Len() > 0 {
		t.Errorf("the log is\n%s", s.log.String())
	}
}
