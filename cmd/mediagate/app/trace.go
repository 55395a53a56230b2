package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	attr "go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.temporal.io/sdk/contrib/opentelemetry"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"
	"golang.org/x/time/rate"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// traces makes and exports the spans of this process (ADR 23). A nil traces makes none. Every
// span except that of a submit has a parent: work that no submit has begun, such as polls and
// housekeeping, is in no trace.
type traces struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// flushTime bounds how long a stop waits for a collector that does not answer.
const flushTime = 5 * time.Second

// openTraces begins to export if the standard variables name an OTLP endpoint. Otherwise it
// returns nil. It makes no connection. Spans that the collector does not accept in time are
// dropped: the queue is bounded, and nothing waits for it.
func openTraces(ctx context.Context, version string, log *slog.Logger) (*traces, error) {
	on, protocol, err := tracesWanted(os.Getenv)
	if err != nil || !on {
		return nil, err
	}
	otel.SetLogger(logr.Discard()) // it logs parts of headers, which contain secrets
	seldom := &rate.Sometimes{Interval: time.Minute}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		seldom.Do(func() { log.WarnContext(ctx, "traces are not exported", "error", err) })
	}))
	var exporter *otlptrace.Exporter
	if protocol == "grpc" {
		exporter, err = otlptracegrpc.New(ctx)
	} else {
		exporter, err = otlptracehttp.New(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(attr.String("service.name", "mediagate"), attr.String(
			"service.version", version,
		)), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("traces: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	t := &traces{provider: sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))}
	t.tracer = t.provider.Tracer("github.com/mediagate/mediagate")
	return t, nil
}

// tracesWanted reads the standard variables that say whether and how traces are exported. The
// libraries read the others.
func tracesWanted(env func(string) string) (on bool, protocol string, err error) {
	const general, own = "OTEL_EXPORTER_OTLP_", "OTEL_EXPORTER_OTLP_TRACES_"
	name, endpoint := own+"ENDPOINT", env(own+"ENDPOINT")
	if endpoint == "" {
		name, endpoint = general+"ENDPOINT", env(general+"ENDPOINT")
	}
	exporter := env("OTEL_TRACES_EXPORTER")
	if endpoint == "" || exporter == "none" || strings.EqualFold(env("OTEL_SDK_DISABLED"), "true") {
		return false, "", nil
	}
	if exporter != "" && exporter != "otlp" {
		return false, "", errors.New("OTEL_TRACES_EXPORTER: must be otlp or none")
	}
	// With any other endpoint the library would export to localhost.
	if u, err := url.Parse(endpoint); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return false, "", errors.New(name + ": must be a URL with http or https and a host")
	}
	protocol = cmp.Or(env(own+"PROTOCOL"), env(general+"PROTOCOL"), "http/protobuf")
	if protocol != "http/protobuf" && protocol != "grpc" {
		return false, "", errors.New(general + "PROTOCOL: must be http/protobuf or grpc")
	}
	return true, protocol, nil
}

// close exports the remaining spans and stops.
func (t *traces) close(log *slog.Logger) {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		log.Warn("the last traces are not exported", "error", err)
	}
}

// Tracer returns the tracer, or nil if there are no traces.
func (t *traces) Tracer() trace.Tracer {
	if t == nil {
		return nil
	}
	return t.tracer
}

// interceptors trace starts of runs, runs, and activities. Signals, queries and the steps that a
// run schedules have no spans of their own.
func (t *traces) interceptors() ([]interceptor.ClientInterceptor, error) {
	if t == nil {
		return nil, nil
	}
	calls, err := opentelemetry.NewTracingInterceptor(opentelemetry.TracerOptions{
		Tracer: t.tracer, TextMapPropagator: propagation.TraceContext{}, SpanStarter: startSpan,
		DisableSignalTracing: true, DisableQueryTracing: true, DisableUpdateTracing: true, DisableBaggage: true,
		AllowInvalidParentSpans: true,
	})
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	return []interceptor.ClientInterceptor{calls, &runTracer{tracer: t.tracer}}, nil
}

// startSpan starts a span for the library's interceptor. It starts none without a parent, and
// none within a workflow: the library would make the run's span anew after each replay, and end
// it when the run leaves the cache.
func startSpan(ctx context.Context, tracer trace.Tracer, name string, opts ...trace.SpanStartOption) trace.Span {
	parent := trace.SpanFromContext(ctx)
	operation, _, _ := strings.Cut(name, ":")
	if !parent.SpanContext().IsValid() || operation == "RunWorkflow" || operation == "StartActivity" ||
		operation == "StartChildWorkflow" {
		return parent
	}
	_, span := tracer.Start(ctx, name, opts...)
	return span
}

// runTracer makes a span for each run when the run ends. It also adds to the spans of calls the
// attempt that their activity works on.
type runTracer struct {
	interceptor.InterceptorBase
	tracer trace.Tracer
}

// InterceptWorkflow adds the span to a run.
func (r *runTracer) InterceptWorkflow(
	_ workflow.Context, next interceptor.WorkflowInboundInterceptor,
) interceptor.WorkflowInboundInterceptor {
	return &tracedRun{
		WorkflowInboundInterceptorBase: interceptor.WorkflowInboundInterceptorBase{Next: next}, tracer: r.tracer,
	}
}

type tracedRun struct {
	interceptor.WorkflowInboundInterceptorBase
	tracer trace.Tracer
}

// ExecuteWorkflow makes the span. It does not return when the run leaves the cache, and makes no
// span for a run that has ended and is only replayed.
func (r *tracedRun) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	result, err := r.Next.ExecuteWorkflow(ctx, in)
	parent, ok := opentelemetry.SpanFromWorkflowContext(ctx)
	if !ok || !parent.SpanContext().IsValid() || workflow.IsReplaying(ctx) {
		return result, err
	}
	info := workflow.GetInfo(ctx)
	_, span := r.tracer.Start(trace.ContextWithSpan(context.Background(), parent), "RunWorkflow:"+info.WorkflowType.Name,
		trace.WithTimestamp(info.WorkflowStartTime), trace.WithAttributes(
			attr.String("temporalWorkflowID", info.WorkflowExecution.ID),
			attr.String("temporalRunID", info.WorkflowExecution.RunID),
		))
	if err != nil && !workflow.IsContinueAsNewError(err) {
		span.SetStatus(codes.Error, "")
	}
	span.End()
	return result, err
}

// InterceptActivity adds the attempt to an activity's context.
func (*runTracer) InterceptActivity(
	_ context.Context, next interceptor.ActivityInboundInterceptor,
) interceptor.ActivityInboundInterceptor {
	return &tracedActivity{interceptor.ActivityInboundInterceptorBase{Next: next}}
}

type tracedActivity struct {
	interceptor.ActivityInboundInterceptorBase
}

// attemptKey is the context key of an attempt's number.
type attemptKey struct{}

// ExecuteActivity notes the attempt.
func (a *tracedActivity) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	for _, arg := range in.Args {
		if args, ok := arg.(activities.StepArgs); ok && args.Step.N > 0 {
			trace.SpanFromContext(ctx).SetAttributes(attr.Int("mediagate.attempt", args.Step.N))
			ctx = context.WithValue(ctx, attemptKey{}, args.Step.N)
		}
	}
	return a.Next.ExecuteActivity(ctx, in)
}

// call begins the span of a call to another server, and returns the function that ends it.
// Without an answer status is 0 and trouble the kind of the error. The address is in no
// attribute, and the trace context is not sent along: it concerns only us.
func (t *traces) call(
	ctx context.Context, name string, attributes ...attr.KeyValue,
) (end func(status int, trouble string)) {
	if t == nil || !trace.SpanContextFromContext(ctx).IsValid() {
		return func(int, string) {}
	}
	if n, ok := ctx.Value(attemptKey{}).(int); ok {
		attributes = append(attributes, attr.Int("mediagate.attempt", n))
	}
	_, span := t.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributes...))
	return func(status int, trouble string) {
		if status > 0 {
			span.SetAttributes(attr.Int("http.response.status_code", status))
		}
		if trouble != "" {
			span.SetAttributes(attr.String("error.type", trouble))
			span.SetStatus(codes.Error, "")
		}
		span.End()
	}
}

// effects name the effects of calls to vendors.
var effects = map[vendorhttp.Effect]string{
	vendorhttp.Reads: "read", vendorhttp.Submits: "submit", vendorhttp.Stops: "stop",
}

// watch makes a span for each call that a channel's adapter makes for a task.
func (t *traces) watch(ch mediagate.Channel) func(context.Context, vendorhttp.Effect) func(int, error) {
	if t == nil {
		return nil
	}
	return func(ctx context.Context, effect vendorhttp.Effect) func(int, error) {
		end := t.call(ctx, "vendor "+effects[effect], attr.String("mediagate.provider", ch.Provider),
			attr.String("mediagate.channel", ch.Name), attr.String("mediagate.effect", effects[effect]))
		return func(status int, err error) {
			if err != nil {
				end(status, mediagate.KindOf(err).String())
				return
			}
			end(status, "")
		}
	}
}
