package app

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/workflows"
)

// keptSpans are traces whose spans are kept, with the interceptors of a worker.
func keptSpans(t *testing.T) (*tracetest.InMemoryExporter, []interceptor.WorkerInterceptor) {
	t.Helper()
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	around, err := (&traces{provider: provider, tracer: provider.Tracer("test")}).interceptors()
	must(t, err)
	var list []interceptor.WorkerInterceptor
	for _, i := range around {
		list = append(list, i.(interceptor.WorkerInterceptor)) // as the library takes them for its workers
	}
	return spans, list
}

// header is that of a run below somebody's span.
func header(t *testing.T, parent string) *commonpb.Header {
	t.Helper()
	payload, err := converter.GetDefaultDataConverter().ToPayload(map[string]string{"traceparent": parent})
	must(t, err)
	return &commonpb.Header{Fields: map[string]*commonpb.Payload{"_tracer-data": payload}}
}

// TestARunIsTraced checks that a run and each of its activities is a span below the span under
// which the run was started. So is the run of the callback. A run without a trace makes no spans.
func TestARunIsTraced(t *testing.T) {
	t.Parallel()
	for name, parent := range map[string]string{"in a trace": someParent, "in none": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spans, around := keptSpans(t)
			var suite testsuite.WorkflowTestSuite
			suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
			if parent != "" {
				suite.SetHeader(header(t, parent))
			}
			env := suite.NewTestWorkflowEnvironment()
			env.SetWorkerOptions(worker.Options{Interceptors: around, DeadlockDetectionTimeout: time.Minute})
			env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: activitytest.TaskID, TaskQueue: workflows.QueueMain})
			w := activitytest.New(t, func() time.Time { return env.Now() })
			w.Sync.OnSubmit = func(_ context.Context, job mediagate.Job) (mediagate.Submission, error) {
				s, err := w.Sync.Accept(job)
				outcome := activitytest.Success()
				s.Outcome = &outcome
				return s, err
			}
			w.Store.Add(w.NewImage())
			env.RegisterWorkflow(workflows.Generate)
			env.RegisterWorkflow(workflows.DeliverWebhook)
			env.RegisterActivity(w.Activities)
			env.ExecuteWorkflow(workflows.Generate, workflows.Input{TaskID: activitytest.TaskID})
			must(t, env.GetWorkflowError())
			counts := map[string]int{}
			for _, s := range spans.GetSpans() {
				counts[s.Name]++
				if !strings.Contains(someParent, s.SpanContext.TraceID().String()) || !strings.Contains(someParent, s.Parent.SpanID().String()) {
					t.Errorf("%s is below %s of %s", s.Name, s.Parent.SpanID(), s.SpanContext.TraceID())
				}
			}
			for _, name := range []string{"RunWorkflow:Generate", "RunWorkflow:DeliverWebhook", "RunActivity:SubmitJob", "RunActivity:DeliverWebhook"} {
				if want := min(len(parent), 1); counts[name] != want {
					t.Errorf("%d spans %s, want %d: %v", counts[name], name, want, counts)
				}
			}
			if counts["StartActivity:SubmitJob"]+counts["StartChildWorkflow:DeliverWebhook"] > 0 || parent == "" && len(counts) > 0 {
				t.Errorf("spans that nobody wants: %v", counts)
			}
		})
	}
}

// TestAReplayMakesNoSpans checks that a replay makes no spans, since its steps were traced when
// they happened.
func TestAReplayMakesNoSpans(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "workflows", "testdata", "histories", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no histories: %v", err)
	}
	slices.Sort(files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			must(t, err)
			history, err := client.HistoryFromJSON(bytes.NewReader(text), client.HistoryJSONOptions{})
			must(t, err)
			history.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().Header = header(t, someParent)
			spans, around := keptSpans(t)
			r, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{Interceptors: around})
			must(t, err)
			r.RegisterWorkflow(workflows.Generate)
			r.RegisterWorkflow(workflows.DeliverWebhook)
			r.RegisterWorkflow(workflows.Channel)
			r.RegisterWorkflow(workflows.Wake)
			must(t, r.ReplayWorkflowHistory(log.NewStructuredLogger(slog.New(slog.DiscardHandler)), history))
			for _, s := range spans.GetSpans() {
				t.Errorf("a replay made the span %s", s.Name)
			}
		})
	}
}
