package activities_test

import (
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/channel"
	"github.com/mediagate/mediagate/task"
)

// TestTheVendorsWorkIsTraced checks that a poll that ends a job makes a span for the vendor's
// work, in the trace of the task. A task without a trace has none.
func TestTheVendorsWorkIsTraced(t *testing.T) {
	t.Parallel()
	const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	cases := map[string]struct {
		parent  string
		outcome mediagate.Outcome
		want    map[string]string
	}{
		"a success": {
			trace, activitytest.Success(),
			map[string]string{
				"mediagate.attempt": "1", "mediagate.channel": activitytest.AsyncChannel,
				"mediagate.provider": activitytest.AsyncProvider,
			},
		},
		"a failure": {trace, activitytest.Failed(mediagate.CodeContentPolicy), map[string]string{
			"mediagate.attempt": "1", "mediagate.channel": activitytest.AsyncChannel,
			"mediagate.provider": activitytest.AsyncProvider, "error.type": "content_policy_violation",
		}},
		"no trace": {"", activitytest.Success(), nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kept := tracetest.NewInMemoryExporter()
			w := activitytest.New(t, time.Now)
			w.Activities.Tracer = sdktrace.NewTracerProvider(sdktrace.WithSyncer(kept)).Tracer("test")
			row := w.NewVideo()
			row.TraceParent = c.parent
			w.Store.Add(row)
			if _, err := newEnv(w).ExecuteActivity(w.Activities.SubmitJob, stepOf(taskID, task.Submit, 1)); err != nil {
				t.Fatal(err)
			}
			changed, err := w.Store.Change(t.Context(), taskID, task.VendorEnded{N: 1, Outcome: c.outcome})
			if err != nil {
				t.Fatal(err)
			}
			activities.StepsChanged(t.Context(), w.Activities, []channel.StepChange{{N: 1, Changed: changed}})
			var got map[string]string
			for _, span := range kept.GetSpans() {
				got = map[string]string{}
				for _, a := range span.Attributes {
					got[string(a.Key)] = a.Value.String()
				}
				accepted := changed.State.Attempt(1).AcceptedAt
				if span.Name != "VendorJob" || span.Parent.SpanID().String() != "00f067aa0ba902b7" ||
					!span.StartTime.Equal(accepted) || !span.EndTime.Equal(changed.At) {
					t.Errorf("the span is %+v", span)
				}
			}
			same(t, "attributes", got, c.want)
		})
	}
}
