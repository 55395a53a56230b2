package api

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/mediagate/mediagate/internal/tracing"
)

// traceSubmit begins the span of a submit, as a child of the client's. The task keeps the span's
// context, so that all work for it belongs to the same trace. Only admitted calls get here, so a
// collector cannot be flooded without a key.
func (s *Server) traceSubmit(c *call) (end func(error)) {
	if s.cfg.Tracer == nil {
		return func(error) {}
	}
	ctx, span := s.cfg.Tracer.Start(tracing.FromClient(context.Background(), c.Request().Header), "POST "+c.Path(),
		trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(c.started), trace.WithAttributes(
			attribute.String("http.request.method", http.MethodPost), attribute.String("http.route", c.Path()),
			attribute.String("mediagate.request", c.requestID), attribute.String("mediagate.account", c.caller.key.AccountID),
		))
	c.traceParent = tracing.Parent(ctx)
	return func(err error) {
		status := http.StatusOK
		if err != nil {
			status = renderingOf(domainError(err).Kind, c.envelope).status
			span.SetAttributes(attribute.String("error.type", domainError(err).Kind.String()))
			if isServerFault(err) {
				span.SetStatus(codes.Error, "")
			}
		}
		span.SetAttributes(attribute.Int("http.response.status_code", status), attribute.String("mediagate.task", c.taskID))
		span.End()
	}
}
