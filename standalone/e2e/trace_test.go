package e2e_test

import (
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/mediagate/mediagate/sandbox"
)

// The trace and the span of the client that submits.
const (
	clientTrace  = "4bf92f3577b34da6a3ce929d0e0e4736"
	clientSpan   = "00f067aa0ba902b7"
	clientParent = "00-" + clientTrace + "-" + clientSpan + "-01"
)

// collector receives spans by OTLP over HTTP.
type collector struct {
	url string

	mu    sync.Mutex
	spans []*tracepb.Span
	text  strings.Builder // the text of all batches
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

// ServeHTTP receives a batch.
func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	batch := &collectorpb.ExportTraceServiceRequest{}
	if err != nil || proto.Unmarshal(body, batch) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = c.text.WriteString(batch.String())
	for _, process := range batch.ResourceSpans {
		for _, scope := range process.ScopeSpans {
			c.spans = append(c.spans, scope.Spans...)
		}
	}
}

// trace returns the spans of the client's trace. Any other span is an error, because only a
// submit may start a trace.
func (c *collector) trace() (trace, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		if id := hex.EncodeToString(s.TraceId); id != clientTrace {
			return nil, &stopError{fmt.Sprintf("%s is in the trace %s", s.Name, id)}
		}
	}
	return slices.Clone(c.spans), nil
}

type trace []*tracepb.Span

// named returns the spans with the name.
func (tr trace) named(name string) (found trace) {
	for _, s := range tr {
		if s.Name == name {
			found = append(found, s)
		}
	}
	return found
}

// path returns the names from a span up to the client's, or to the first missing parent.
func (tr trace) path(s *tracepb.Span) []string {
	names := []string{s.Name}
	for hex.EncodeToString(s.ParentSpanId) != clientSpan {
		at := slices.IndexFunc(tr, func(p *tracepb.Span) bool { return string(p.SpanId) == string(s.ParentSpanId) })
		if at < 0 {
			return append(names, "?")
		}
		s = tr[at]
		names = append(names, s.Name)
	}
	return append(names, "client")
}

// variables returns the environment with which a process exports its spans to url, soon.
func variables(url string) []string {
	return []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + url, "OTEL_BSP_SCHEDULE_DELAY=100"}
}

// awaitTrace waits until the trace has the expected number of spans of each name.
func (w *world) awaitTrace(c *collector, want map[string]int) (got trace) {
	w.t.Helper()
	eventually(w.t, 30*time.Second, "the trace", func() (err error) {
		if got, err = c.trace(); err != nil {
			return err
		}
		counts := map[string]int{}
		for name := range want {
			counts[name] = len(got.named(name))
		}
		if diff := cmp.Diff(want, counts); diff != "" {
			err = fmt.Errorf("spans by name (-want +got):\n%s", diff)
		}
		return err
	})
	return got
}

// TestOneTraceATask checks that a task has one trace over all processes, from the client's span
// to each call of the vendor and to the callback. No span contains the client's text, a key or
// an address.
func TestOneTraceATask(t *testing.T) {
	t.Parallel()
	took := newCollector(t)
	w := newWorld(t, options{shape: production, env: variables(took.url)})
	w.submit(job{model: alpha, directive: "duration=2s", header: map[string]string{"traceparent": clientParent, "tracestate": "vendor=zebrafish"}})
	w.verify(recoverTime)
	got := w.awaitTrace(took, map[string]int{
		"POST /v1/videos/generations": 1, "StartWorkflow:Generate": 1, "RunWorkflow:Generate": 1, "RunActivity:SubmitJob": 1,
		"vendor submit": 1, "VendorJob": 1, "RunWorkflow:DeliverWebhook": 1, "RunActivity:DeliverWebhook": 1, "callback": 1,
	})
	const submit, run = "POST /v1/videos/generations", "StartWorkflow:Generate"
	for _, want := range [][]string{
		{"vendor submit", "RunActivity:SubmitJob", run, submit, "client"},
		{"callback", "RunActivity:DeliverWebhook", run, submit, "client"},
		{"RunWorkflow:Generate", run, submit, "client"},
		{"VendorJob", submit, "client"},
	} {
		if diff := cmp.Diff(want, got.path(got.named(want[0])[0])); diff != "" {
			t.Errorf("the path of %s (-want +got):\n%s", want[0], diff)
		}
	}
	for _, s := range got {
		if path := got.path(s); path[len(path)-1] != "client" {
			t.Errorf("a parent is missing: %v", path)
		}
	}
	words := map[string]string{
		"prompt": "lighthouse", "reference": w.tasks[0].ref, "key": w.key, "admin key": w.adminKey, "callback address": w.hooks.url,
		"vendor's address": strings.TrimPrefix(w.sandbox, "http://"), "bucket's address": w.s3.Endpoint, "bucket's key": w.s3.SecretAccessKey, "tracestate": "zebrafish",
	}
	for _, c := range sandbox.Channels(w.sandbox) {
		for name, secret := range c.Credentials {
			words["credential "+c.Provider+" "+name] = secret
		}
	}
	took.mu.Lock()
	defer took.mu.Unlock()
	for what, word := range words {
		if len(word) > 3 && strings.Contains(took.text.String(), word) {
			t.Errorf("the collector received the %s", what)
		}
	}
}
