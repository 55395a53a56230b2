package app

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/internal/tracing"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

func TestTracesWanted(t *testing.T) {
	t.Parallel()
	const endpoint, own = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	cases := map[string]struct {
		env      map[string]string
		protocol string // empty: off
		problem  string
	}{
		"nothing":             {},
		"an endpoint":         {env: map[string]string{endpoint: "http://collector:4318"}, protocol: "http/protobuf"},
		"one for traces":      {env: map[string]string{own: "https://collector.example.com/v1/traces"}, protocol: "http/protobuf"},
		"by gRPC":             {env: map[string]string{endpoint: "http://collector:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, protocol: "grpc"},
		"traces by gRPC":      {env: map[string]string{endpoint: "http://c:4317", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, protocol: "grpc"},
		"only a protocol":     {env: map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_TRACES_EXPORTER": "otlp"}},
		"switched off":        {env: map[string]string{endpoint: "http://collector:4318", "OTEL_SDK_DISABLED": "TRUE"}},
		"no exporter":         {env: map[string]string{endpoint: "http://collector:4318", "OTEL_TRACES_EXPORTER": "none"}},
		"another exporter":    {env: map[string]string{endpoint: "http://collector:4318", "OTEL_TRACES_EXPORTER": "zipkin"}, problem: "OTEL_TRACES_EXPORTER: must be otlp or none"},
		"another protocol":    {env: map[string]string{endpoint: "http://collector:4318", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}, problem: "OTEL_EXPORTER_OTLP_PROTOCOL: must be http/protobuf or grpc"},
		"no scheme":           {env: map[string]string{endpoint: "collector:4318"}, problem: endpoint + ": must be a URL with http or https and a host"},
		"no host":             {env: map[string]string{own: "http:///v1/traces"}, problem: own + ": must be a URL with http or https and a host"},
		"its own comes first": {env: map[string]string{own: "ftp://c", endpoint: "http://collector:4318"}, problem: own + ": must be a URL with http or https and a host"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			on, protocol, err := tracesWanted(func(name string) string { return c.env[name] })
			problem := ""
			if err != nil {
				problem = err.Error()
			}
			if on != (c.protocol != "") || protocol != c.protocol || problem != c.problem {
				t.Errorf("on %v, protocol %q, problem %q, want %q, %q", on, protocol, problem, c.protocol, c.problem)
			}
		})
	}
}

// withoutVariables takes OTEL_* out of the test's environment.
func withoutVariables(t *testing.T) {
	t.Helper()
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "OTEL_") {
			t.Setenv(name, "")
		}
	}
}

// TestNoTracesWithoutVariables checks that nothing is installed without the variables: no
// provider, no interceptor, no hook.
func TestNoTracesWithoutVariables(t *testing.T) {
	withoutVariables(t)
	before := otel.GetTracerProvider()
	traced, err := openTraces(t.Context(), "1.2.3", slog.New(slog.DiscardHandler))
	if err != nil || traced != nil || otel.GetTracerProvider() != before {
		t.Fatalf("traces %+v, %v", traced, err)
	}
	around, err := traced.interceptors()
	if err != nil || around != nil || traced.Tracer() != nil || traced.watch(mediagate.Channel{}) != nil {
		t.Errorf("interceptors %v, %v", around, err)
	}
	traced.call(tracing.Below(t.Context(), someParent), "callback")(http.StatusOK, "")
	traced.close(slog.New(slog.DiscardHandler))
}

const someParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// taker takes spans by either protocol.
type taker struct {
	collector.UnimplementedTraceServiceServer
	mu       sync.Mutex
	requests []*collector.ExportTraceServiceRequest
}

// Export takes them by gRPC.
func (c *taker) Export(_ context.Context, r *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests = append(c.requests, r)
	return &collector.ExportTraceServiceResponse{}, nil
}

// ServeHTTP takes them by HTTP.
func (c *taker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	request := &collector.ExportTraceServiceRequest{}
	if r.URL.Path != "/v1/traces" || proto.Unmarshal(body, request) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	_, _ = c.Export(r.Context(), request)
}

// told is the spans by name, with their attributes and those of the process.
func (c *taker) told() map[string]map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[string]map[string]string{}
	for _, r := range c.requests {
		for _, process := range r.ResourceSpans {
			for _, scope := range process.ScopeSpans {
				for _, span := range scope.Spans {
					values := map[string]string{}
					for _, kv := range slices.Concat(process.Resource.Attributes, span.Attributes) {
						values[kv.Key] = kv.Value.GetStringValue()
						if kv.Value.GetStringValue() == "" {
							values[kv.Key] = kv.Value.String()
						}
					}
					all[span.Name] = values
				}
			}
		}
	}
	return all
}

// TestTracesAreExported checks that waiting spans are exported at the stop, by either protocol
// and under the name in the standard variables. A span needs a parent.
func TestTracesAreExported(t *testing.T) {
	for _, protocol := range []string{"http/protobuf", "grpc"} {
		t.Run(protocol, func(t *testing.T) {
			withoutVariables(t)
			took := &taker{}
			var endpoint string
			if protocol == "grpc" {
				var lc net.ListenConfig
				l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
				must(t, err)
				server := grpc.NewServer()
				collector.RegisterTraceServiceServer(server, took)
				go func() { _ = server.Serve(l) }()
				t.Cleanup(server.Stop)
				endpoint = "http://" + l.Addr().String()
			} else {
				server := httptest.NewServer(took)
				t.Cleanup(server.Close)
				endpoint = server.URL
			}
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
			t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
			t.Setenv("OTEL_SERVICE_NAME", "gateway-eu")
			t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
			traced, err := openTraces(t.Context(), "1.2.3", slog.New(slog.DiscardHandler))
			must(t, err)
			watch := traced.watch(mediagate.Channel{Name: "kling-a", Provider: "kling"})
			watch(t.Context(), vendorhttp.Reads)(http.StatusOK, nil) // of no task
			ctx := context.WithValue(tracing.Below(t.Context(), someParent), attemptKey{}, 3)
			watch(ctx, vendorhttp.Submits)(http.StatusOK, nil)
			watch(ctx, vendorhttp.Stops)(0, mediagate.Errorf(mediagate.KindTransient, "https://vendor.example.com/?key=zebrafish did not answer"))
			traced.close(slog.New(slog.DiscardHandler))
			all := took.told()
			submit, stop := all["vendor submit"], all["vendor stop"]
			if names := slices.Sorted(maps.Keys(all)); !slices.Equal(names, []string{"vendor stop", "vendor submit"}) {
				t.Errorf("the spans are %v", names)
			}
			if submit["service.name"] != "gateway-eu" || submit["service.version"] != "1.2.3" || submit["deployment.environment.name"] != "test" ||
				submit["mediagate.channel"] != "kling-a" || submit["mediagate.provider"] != "kling" || submit["mediagate.effect"] != "submit" ||
				!strings.Contains(submit["mediagate.attempt"], "3") || stop["error.type"] != "transient" {
				t.Errorf("the attributes are %v and %v", submit, stop)
			}
		})
	}
}

// TestAHangingCollectorHoldsNobodyUp checks that a hanging collector delays nothing: spans
// without room are dropped.
func TestAHangingCollectorHoldsNobodyUp(t *testing.T) {
	withoutVariables(t)
	asked, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		once.Do(func() { close(asked) })
		<-release
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(release) })
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
	traced, err := openTraces(t.Context(), "1.2.3", slog.New(slog.DiscardHandler))
	must(t, err)
	ctx := tracing.Below(t.Context(), someParent)
	traced.call(ctx, "callback")(http.StatusOK, "")
	<-asked // an export is under way, and stays so
	for range 3 * 2048 {
		traced.call(ctx, "callback")(http.StatusOK, "")
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := traced.provider.Shutdown(over); err == nil {
		t.Error("the stop waited for the collector, though its time was over")
	}
}
