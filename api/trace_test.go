package api_test

import (
	"net/http"
	"strings"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/mediagate/mediagate/api"
)

const (
	clientTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	clientSpan  = "00f067aa0ba902b7"
)

// tracedGateway is a gateway whose spans are kept.
func tracedGateway(t *testing.T) (*gateway, *tracetest.InMemoryExporter) {
	t.Helper()
	kept := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(kept))
	return newGateway(t, func(c *api.Config) { c.Tracer = provider.Tracer("test") }), kept
}

// The task of a submit keeps the span of the submit, which is below the client's.
func TestSubmitIsTraced(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		headers []string
		parent  string // span id
	}{
		"below the client's span": {[]string{"00-" + clientTrace + "-" + clientSpan + "-01"}, clientSpan},
		"two parents":             {[]string{"00-" + clientTrace + "-" + clientSpan + "-01", "00-" + clientTrace + "-" + clientSpan + "-01"}, ""},
		"no parent":               {nil, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, kept := tracedGateway(t)
			id := g.send(request{method: http.MethodPost, path: videos, key: g.key, body: videoBody, header: http.Header{"Traceparent": c.headers}}).taskID(t)
			spans := kept.GetSpans()
			if len(spans) != 1 || spans[0].Name != "POST "+videos {
				t.Fatalf("the spans are %+v", spans)
			}
			span := spans[0]
			if got := span.Parent.SpanID().String(); c.parent == "" && span.Parent.IsValid() || c.parent != "" && got != c.parent {
				t.Errorf("the parent is %s, want %q", got, c.parent)
			}
			if got := span.SpanContext.TraceID().String(); (got == clientTrace) != (c.parent != "") {
				t.Errorf("the trace is %s", got)
			}
			row := g.row(id)
			want := "00-" + span.SpanContext.TraceID().String() + "-" + span.SpanContext.SpanID().String() + "-01"
			if started := g.started(); row.TraceParent != want || len(started) != 1 || started[0].TraceParent != want {
				t.Errorf("the task has %q, its start %+v, want %q", row.TraceParent, started, want)
			}
			attributes := map[string]string{}
			for _, a := range span.Attributes {
				attributes[string(a.Key)] = a.Value.String()
			}
			if attributes["mediagate.task"] != id || attributes["mediagate.account"] != g.account.ID || attributes["http.response.status_code"] != "200" {
				t.Errorf("the attributes are %v", attributes)
			}
		})
	}
}

// What a client wrote, and what was wrong with it, is in no span.
func TestRefusedSubmitIsTracedWithoutItsWords(t *testing.T) {
	t.Parallel()
	g, kept := tracedGateway(t)
	a := g.post(videos, `{"model":"alpha-v3","prompt":"zebrafish","duration":"zebrafish"}`)
	if a.status != http.StatusBadRequest {
		t.Fatalf("%d %s", a.status, a.body)
	}
	stubs := kept.GetSpans()
	if len(stubs) != 1 || len(stubs[0].Events) > 0 || stubs[0].Status.Description != "" {
		t.Fatalf("the spans are %+v", stubs)
	}
	for _, at := range stubs[0].Attributes {
		if strings.Contains(at.Value.String(), "zebrafish") || at.Key == "http.response.status_code" && at.Value.AsInt64() != http.StatusBadRequest {
			t.Errorf("%s is %s", at.Key, at.Value.String())
		}
	}
}

// Who is not let in makes no span, and without a tracer there is no trace.
func TestNoTrace(t *testing.T) {
	t.Parallel()
	g, kept := tracedGateway(t)
	g.key = "mgk_nobody"
	if a := g.post(videos, videoBody); a.status != http.StatusUnauthorized || len(kept.GetSpans()) > 0 {
		t.Errorf("%d, spans %+v", a.status, kept.GetSpans())
	}
	plain := newGateway(t)
	id := plain.send(request{
		method: http.MethodPost, path: videos, key: plain.key, body: videoBody,
		header: http.Header{"Traceparent": {"00-" + clientTrace + "-" + clientSpan + "-01"}},
	}).taskID(t)
	row := plain.row(id)
	if row.TraceParent != "" {
		t.Errorf("without a tracer the task has the trace %q", row.TraceParent)
	}
}
