package tracing_test

import (
	"net/http"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"github.com/mediagate/mediagate/internal/tracing"
)

const (
	traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	parent  = "00-" + traceID + "-00f067aa0ba902b7-01"
)

func TestFromClient(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		values []string
		want   string // of the span in text form; empty: a new trace begins
	}{
		"none":                  {nil, ""},
		"sampled":               {[]string{parent}, parent},
		"not sampled":           {[]string{"00-" + traceID + "-00f067aa0ba902b7-00"}, "00-" + traceID + "-00f067aa0ba902b7-00"},
		"unknown flags":         {[]string{"00-" + traceID + "-00f067aa0ba902b7-f1"}, ""},
		"of a later version":    {[]string{"01-" + traceID + "-00f067aa0ba902b7-01-more"}, parent},
		"twice":                 {[]string{parent, parent}, ""},
		"a word":                {[]string{"a cat in the rain"}, ""},
		"empty":                 {[]string{""}, ""},
		"too long to be looked": {[]string{parent + strings.Repeat("0", 60_000)}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := http.Header{"Traceparent": c.values, "Tracestate": {"vendor=a-prompt-of-the-client"}}
			ctx := tracing.FromClient(t.Context(), h)
			if got := tracing.Parent(ctx); got != c.want {
				t.Errorf("Parent() = %q, want %q", got, c.want)
			}
			if state := trace.SpanContextFromContext(ctx).TraceState(); state.Len() > 0 {
				t.Errorf("the client's tracestate %q was taken over", state)
			}
		})
	}
}

// What was stored with a task, or was not, is what comes back.
func TestBelow(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", parent} {
		if got := tracing.Parent(tracing.Below(t.Context(), text)); got != text {
			t.Errorf("Parent(Below(%q)) = %q", text, got)
		}
	}
	if tracing.Below(t.Context(), "") != t.Context() {
		t.Error("without a trace there is another context")
	}
	within := tracing.Below(t.Context(), parent)
	if got := tracing.Parent(tracing.Below(within, "no parent")); got != parent {
		t.Errorf("a malformed text leaves %q", got)
	}
}
