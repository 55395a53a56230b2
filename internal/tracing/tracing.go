package tracing

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Header carries the context of a client's span.
const Header = "traceparent"

// FromClient returns ctx with the client's span as parent. A malformed or repeated header names no
// span. FromClient ignores tracestate: it is a text of the client, which every span would carry to
// the collector.
func FromClient(ctx context.Context, h http.Header) context.Context {
	if values := h.Values(Header); len(values) == 1 {
		return Below(ctx, values[0])
	}
	return ctx
}

// Below returns ctx with the span of the text form as parent. An empty or malformed text leaves
// ctx as it is.
func Below(ctx context.Context, parent string) context.Context {
	if parent == "" {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{Header: parent})
}

// Parent returns the context of the span in ctx as a text of 55 bytes, or "" if there is no span.
func Parent(ctx context.Context) string {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return ""
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier[Header]
}
