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

// mirror is what an activity works on that fails.
var mirror = activities.StepArgs{TaskID: activitytest.TaskID, Step: task.Step{Kind: task.Mirror, N: 1}}

// A failed attempt is one line, which has the cause that Temporal is not told.
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
			var out bytes.Buffer
			logger := slog.New(slog.NewTextHandler(&out, nil))
			w := activitytest.New(t, time.Now)
			w.Activities.Logger = logger
			w.Store.Add(w.NewVideo())
			w.Store.Fault = c.fault
			var suite testsuite.WorkflowTestSuite
			suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
			env := suite.NewTestActivityEnvironment()
			env.SetWorkerOptions(worker.Options{
				BackgroundActivityContext: context.Background(),
				Interceptors:              []interceptor.WorkerInterceptor{&activityLog{log: logger, now: time.Now}},
			})
			env.RegisterActivity(w.Activities)
			_, err := env.ExecuteActivity(w.Activities.MirrorResult, mirror)
			if err == nil {
				t.Fatal("the activity succeeded")
			}
			if text := out.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, `msg="activity failed"`) ||
				!strings.Contains(text, `error="`+c.want+`"`) || !strings.Contains(text, "duration_ms=") {
				t.Errorf("the log is\n%s", text)
			}
			if strings.Contains(err.Error(), "refused") || strings.Contains(err.Error(), "what is this") {
				t.Errorf("Temporal is told %q", err)
			}
		})
	}
}

// copyCutOff runs a copy whose database fails with fault when its context has just
// ended with cause, and returns the log.
func copyCutOff(t *testing.T, cause, fault error) string {
	t.Helper()
	var out bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&out, nil))
	w := activitytest.New(t, time.Now)
	w.Activities.Logger = logger
	w.Store.Add(w.NewVideo())
	ctx, stop := context.WithCancelCause(t.Context())
	w.Store.Fault = func(string) error {
		stop(cause)
		return fault
	}
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	env.SetWorkerOptions(worker.Options{
		BackgroundActivityContext: ctx,
		Interceptors:              []interceptor.WorkerInterceptor{&activityLog{log: logger, now: time.Now}},
	})
	env.RegisterActivity(w.Activities)
	if _, err := env.ExecuteActivity(w.Activities.MirrorResult, mirror); err == nil {
		t.Fatal("the activity succeeded")
	}
	return out.String()
}

// What a stop cuts off is no failure: it is told, and warns of nothing.
func TestAStopIsNoFailure(t *testing.T) {
	t.Parallel()
	text := copyCutOff(t, worker.ErrWorkerShutdown, context.Canceled)
	if strings.Count(text, "\n") != 1 || !strings.Contains(text, `level=INFO msg="activity cut off by the stop"`) {
		t.Errorf("the log is\n%s", text)
	}
}

// An activity whose heartbeat is told to end is no failure of what it asked then.
func TestACancelIsNoFailure(t *testing.T) {
	t.Parallel()
	text := copyCutOff(t, temporal.NewCanceledError("by an operator"),
		&mediagate.Error{Kind: mediagate.KindUnavailable, Message: "the database is away", Err: context.Canceled})
	if strings.Count(text, "\n") != 1 || !strings.Contains(text, `level=INFO msg="activity cancelled"`) || strings.Contains(text, "database") {
		t.Errorf("the log is\n%s", text)
	}
}

// A panic is logged without its value, and nothing of it gets to Temporal.
func TestAPanicIsOneLineWithoutItsValue(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&out, nil))
	w := activitytest.New(t, time.Now)
	w.Activities.Logger = logger
	w.Store.Add(w.NewVideo())
	w.Store.Fault = func(string) error { panic(w.AsyncBound().Channel.Credentials["key"].Reveal() + activitytest.Secret) }
	var suite testsuite.WorkflowTestSuite
	var library bytes.Buffer
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.NewTextHandler(&library, nil))))
	env := suite.NewTestActivityEnvironment()
	env.SetWorkerOptions(worker.Options{
		BackgroundActivityContext: context.Background(),
		Interceptors:              []interceptor.WorkerInterceptor{&activityLog{log: logger, now: time.Now}},
	})
	env.RegisterActivity(w.Activities)
	_, err := env.ExecuteActivity(w.Activities.MirrorResult, mirror)
	if got := activities.FromTemporal(err); err == nil || got.Kind != mediagate.KindInternal {
		t.Fatalf("the activity ends with %v", err)
	}
	text := out.String()
	if strings.Count(text, "\n") != 1 || !strings.Contains(text, "panic: with a string") || !strings.Contains(text, "log_test.go") {
		t.Errorf("the log is\n%s", text)
	}
	for what, told := range map[string]string{"the log": text, "the log of the library": library.String(), "Temporal": fmt.Sprintf("%+v %+v", err, errors.Unwrap(err))} {
		if strings.Contains(told, activitytest.Secret) {
			t.Errorf("%s is told %s", what, told)
		}
	}
}

// What is parked while all channels are out tries again and again: that is no
// line a try, since the channel's own line has told it.
func TestShutOutTriesAreNotLogged(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&out, nil))
	w := activitytest.New(t, time.Now)
	w.Activities.Logger = logger
	w.Store.Add(w.NewVideo())
	c := w.AsyncBound()
	w.Channels.Set(c)
	if _, err := w.Store.EnableChannel(t.Context(), c.Name, false); err != nil {
		t.Fatal(err)
	}
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	env.SetWorkerOptions(worker.Options{
		BackgroundActivityContext: context.Background(),
		Interceptors:              []interceptor.WorkerInterceptor{&activityLog{log: logger, now: time.Now}},
	})
	env.RegisterActivity(w.Activities)
	_, err := env.ExecuteActivity(w.Activities.SubmitJob, activities.StepArgs{TaskID: activitytest.TaskID, Step: task.Step{Kind: task.Submit, N: 1}})
	if got := activities.FromTemporal(err); err == nil || got.Kind != mediagate.KindShutOut {
		t.Fatalf("the activity ends with %v", err)
	}
	if out.Len() > 0 {
		t.Errorf("the log is\n%s", out.String())
	}
}
