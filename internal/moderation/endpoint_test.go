package moderation

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/mediagate/mediagate"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newEndpoint(t *testing.T, url string, change ...func(*EndpointConfig)) *Endpoint {
	t.Helper()
	cfg := EndpointConfig{URL: url, Key: "sk-secret", Timeout: 5 * time.Second, Version: "1", Logger: slog.New(slog.DiscardHandler)}
	for _, c := range change {
		c(&cfg)
	}
	e, err := NewEndpoint(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s.URL + "/v1/moderations"
}

func open(c *EndpointConfig) { c.Open = true }

// TestEndpointAsks checks that the call is OpenAI's, with our key and only the client's texts.
func TestEndpointAsks(t *testing.T) {
	t.Parallel()
	var connections atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var got struct {
			Model string   `json:"model"`
			Input []string `json:"input"`
		}
		if err := json.Unmarshal(body, &got); err != nil || got.Model != "m-1" || len(got.Input) != 2 {
			t.Errorf("asked %s", body)
		}
		if r.Method != http.MethodPost || r.URL.Path != "/v1/moderations" || r.Header.Get("Authorization") != "Bearer sk-secret" {
			t.Errorf("asked %s %s %v", r.Method, r.URL, r.Header)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"id": "modr-1", "results": []any{
			map[string]any{"flagged": false}, map[string]any{"flagged": got.Input[1] == "bad", "categories": map[string]any{"x": true}},
		}})
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	e := newEndpoint(t, s.URL+"/v1/moderations", func(c *EndpointConfig) { c.Model = "m-1" })
	v, err := e.Check(t.Context(), []string{"good", "fine"})
	if err != nil || v != (mediagate.Verdict{}) {
		t.Errorf("%+v, %v", v, err)
	}
	v, err = e.Check(t.Context(), []string{"good", "bad"})
	want := mediagate.Verdict{Refused: true, Rule: "endpoint", Digest: read("bad").digest()}
	if diff := cmp.Diff(want, v); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections for two calls", n)
	}
}

func TestEndpointFails(t *testing.T) {
	t.Parallel()
	dead := httptest.NewServer(http.NotFoundHandler())
	dead.Close()
	wait := func(r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then the server sees the client leave
		<-r.Context().Done()
	}
	elsewhere := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") })
	says := func(status int, body string) string {
		return serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		})
	}
	const text = "the client's words"
	for name, c := range map[string]struct{ url, want string }{
		"down": {dead.URL, "connection refused"},
		"slow": {serve(t, func(_ http.ResponseWriter, r *http.Request) {
			wait(r)
		}), "timeout"},
		"slow in the middle": {serve(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, `{"results":[`)
			_ = http.NewResponseController(w).Flush()
			wait(r)
		}), "timeout"},
		"redirecting": {serve(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere, http.StatusTemporaryRedirect)
		}), "the endpoint answered 307"},
		"huge": {serve(t, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"results":[{"flagged":false}],"more":"`+strings.Repeat("x", maxAnswer)+`"}`)
		}), "the endpoint's answer is larger than 1048576 bytes"},
		"broken off": {serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{`)
		}), "the answer broke off"},
		"refused":         {says(401, `{"error":{"message":"`+text+`"}}`), "the endpoint answered 401"},
		"broken":          {says(500, text), "the endpoint answered 500"},
		"a page":          {says(200, "<html>"+text), "the endpoint's answer does not have a verdict on each text"},
		"nothing":         {says(200, ""), "the endpoint's answer does not have a verdict on each text"},
		"another object":  {says(200, `{"choices":[]}`), "the endpoint's answer does not have a verdict on each text"},
		"no flag":         {says(200, `{"results":[{}]}`), "the endpoint's answer does not have a verdict on each text"},
		"a flag in words": {says(200, `{"results":[{"flagged":"no"}]}`), "the endpoint's answer does not have a verdict on each text"},
		"too few":         {says(200, `{"results":[]}`), "the endpoint's answer does not have a verdict on each text"},
		"too many":        {says(200, `{"results":[{"flagged":false},{"flagged":false}]}`), "the endpoint's answer does not have a verdict on each text"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hurried := func(c *EndpointConfig) {
				if c.Timeout = 5 * time.Second; c.URL != "" && strings.HasPrefix(name, "slow") {
					c.Timeout = 50 * time.Millisecond
				}
			}
			v, err := newEndpoint(t, c.url, hurried).Check(t.Context(), []string{text})
			if !mediagate.Is(err, mediagate.KindUnavailable) || !strings.HasSuffix(err.Error(), ": "+c.want) || v != (mediagate.Verdict{}) {
				t.Errorf("closed: %+v, %v, want %s", v, err, c.want)
			}
			v, err = newEndpoint(t, c.url, hurried, open).Check(t.Context(), []string{text})
			if err != nil || v.Refused || v.Unchecked == nil || v.Unchecked.Error() != c.want {
				t.Errorf("open: %+v, %v, want %s", v, err, c.want)
			}
		})
	}
}

// TestEndpointCircuit checks that an endpoint is called three times while it fails and then left
// alone.
func TestEndpointCircuit(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	e := newEndpoint(t, serve(t, func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		w.WriteHeader(http.StatusBadGateway)
	}), open)
	for range 20 {
		if v, err := e.Check(t.Context(), []string{"a"}); err != nil || v.Unchecked == nil {
			t.Fatal(v, err)
		}
	}
	if n := calls.Load(); n != failuresOpen {
		t.Errorf("asked %d times", n)
	}
}

// TestEndpointBusyForAMoment checks that a text is sent again if the endpoint was busy.
func TestEndpointBusyForAMoment(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	e := newEndpoint(t, serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) < busyTries {
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		_, _ = io.WriteString(w, `{"results":[{"flagged":true}]}`)
	}))
	if v, err := e.Check(t.Context(), []string{"a"}); err != nil || !v.Refused {
		t.Errorf("%+v, %v", v, err)
	}
}

// staysWell asks the endpoint about odd texts, which are answered by the handler, until it
// would be left alone if that were its own fault. It is not: another's text is judged.
func staysWell(
	t *testing.T, odd http.HandlerFunc, ask func(t *testing.T, name string, e *Endpoint), change ...func(*EndpointConfig),
) {
	t.Helper()
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), "odd") {
			odd(w, r)
			return
		}
		_, _ = io.WriteString(w, `{"results":[{"flagged":true}]}`)
	})
	for name, e := range map[string]*Endpoint{
		"closed": newEndpoint(t, url, change...), "open": newEndpoint(t, url, append(change, open)...),
	} {
		for range failuresOpen {
			ask(t, name, e)
		}
		if v, err := e.Check(t.Context(), []string{"a"}); err != nil || !v.Refused {
			t.Errorf("%s: another is not judged: %+v, %v", name, v, err)
		}
	}
}

func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// TestEndpointBusy checks that a busy endpoint counts as healthy, so that a flood of one client
// does not leave the texts of others unchecked.
func TestEndpointBusy(t *testing.T) {
	t.Parallel()
	busy := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }
	staysWell(t, busy, func(t *testing.T, name string, e *Endpoint) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), busyRest/2) // ends while it rests
		defer cancel()
		switch v, err := e.Check(ctx, []string{"odd"}); {
		case name == "open" && (err != nil || v.Unchecked == nil),
			name == "closed" && !mediagate.Is(err, mediagate.KindUnavailable):
			t.Fatal(name, v, err)
		}
	})
}

// TestEndpointAskedTooLate checks that a request that waited for a permit until its time was
// nearly over does not count against the endpoint, and that its texts do not pass.
func TestEndpointAskedTooLate(t *testing.T) {
	t.Parallel()
	staysWell(t, hang, func(t *testing.T, name string, e *Endpoint) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if v, err := e.Check(ctx, []string{"odd"}); !mediagate.Is(err, mediagate.KindUnavailable) {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
	})
}

// TestEndpointRefusesToCheck checks that texts which the endpoint refuses do not count against
// its health and do not pass unchecked. A client must not decide whether texts of others are
// checked.
func TestEndpointRefusesToCheck(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 413, 414, 422} {
		refuse := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
		staysWell(t, refuse, func(t *testing.T, name string, e *Endpoint) {
			t.Helper()
			v, err := e.Check(t.Context(), []string{"odd"})
			rule := "endpoint: not judged, it answered " + strconv.Itoa(status)
			want := mediagate.Verdict{Refused: true, Rule: rule, Digest: read("odd").digest()}
			if diff := cmp.Diff(want, v); err != nil || diff != "" {
				t.Errorf("%d, %s: %v (-want +got):\n%s", status, name, err, diff)
			}
		})
	}
}

// TestEndpointSlowWithLongTexts checks that a long text for which the endpoint takes too long
// does not count against it and does not pass unchecked.
func TestEndpointSlowWithLongTexts(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("odd ", longQuestion/4+1)
	staysWell(t, hang, func(t *testing.T, name string, e *Endpoint) {
		t.Helper()
		v, err := e.Check(t.Context(), []string{long})
		if !mediagate.Is(err, mediagate.KindUnavailable) || v != (mediagate.Verdict{}) {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
	}, func(c *EndpointConfig) { c.Timeout = 500 * time.Millisecond })
}

func TestEndpointOfNoTexts(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t, serve(t, func(http.ResponseWriter, *http.Request) { t.Error("asked about nothing") }))
	if v, err := e.Check(t.Context(), nil); err != nil || v != (mediagate.Verdict{}) {
		t.Error(v, err)
	}
	if _, err := NewEndpoint(EndpointConfig{URL: "://"}); err == nil {
		t.Error("taken without an address")
	}
}
