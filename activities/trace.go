package activities

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/mediagate/mediagate/channel"
	"github.com/mediagate/mediagate/internal/tracing"
)

// traceJob makes a span for the vendor's work on an attempt whose end a poll has seen. The span
// begins with the vendor's acceptance. Polls themselves have no spans: most of them ask for the
// jobs of many tasks, and few learn anything.
func (a *Activities) traceJob(ctx context.Context, e channel.StepChange) {
	attempt := e.Changed.State.Attempt(e.N)
	// A change by a poll need not be the end of the job.
	if a.Tracer == nil || attempt == nil || attempt.Outcome == nil {
		return
	}
	t, err := a.Store.TaskByID(ctx, e.Changed.State.ID)
	if err != nil || t.TraceParent == "" {
		return
	}
	_, span := a.Tracer.Start(tracing.Below(ctx, t.TraceParent), "VendorJob",
		trace.WithTimestamp(attempt.AcceptedAt), trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
			attribute.Int("mediagate.attempt", attempt.N),
			attribute.String("mediagate.channel", attempt.Channel),
			attribute.String("mediagate.provider", attempt.Provider),
		))
	// Only the code: the message may hold the vendor's words.
	if failure := attempt.Outcome.Failure; failure != nil {
		span.SetAttributes(attribute.String("error.type", string(failure.Code)))
		span.SetStatus(codes.Error, "")
	}
	span.End(trace.WithTimestamp(e.Changed.At))
}
