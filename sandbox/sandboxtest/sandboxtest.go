// Package sandboxtest runs the sandbox for the tests of its vendors and its kernel, with a clock
// that the test moves. Only tests import it.
package sandboxtest

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mediagate/mediagate/sandbox"
)

// Clock is a clock that only the test moves.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock that shows a fixed time.
func NewClock() *Clock { return &Clock{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)} }

// Now returns the time that the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock forward by d.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Sandbox is a running sandbox.
type Sandbox struct {
	*sandbox.Server
	URL   string
	Clock *Clock
	HTTP  *http.Client
	Stop  func() // closes the sandbox and its HTTP server
}

// Open runs a sandbox in a folder of its own.
func Open(t *testing.T) *Sandbox {
	t.Helper()
	return OpenIn(t, t.TempDir(), NewClock(), nil)
}

// OpenIn runs a sandbox in the folder, which may hold the journal of an earlier one.
func OpenIn(t *testing.T, dir string, c *Clock, accounts []sandbox.Account) *Sandbox {
	t.Helper()
	s, err := sandbox.New(sandbox.Config{Dir: dir, Now: c.Now, Accounts: accounts})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(s.Handler())
	b := &Sandbox{Server: s, URL: srv.URL, Clock: c, HTTP: srv.Client()}
	b.Stop = sync.OnceFunc(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		srv.Close()
	})
	t.Cleanup(b.Stop)
	return b
}

// Answer is a decoded response.
type Answer struct {
	Status int
	Header http.Header
	Body   map[string]any
	Raw    []byte
}

// At returns the value at a path in the answer, such as At("data", "task_id"). Numbers index
// arrays.
func (a Answer) At(path ...any) any {
	var v any = a.Body
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[p]
		case int:
			l, _ := v.([]any)
			if p >= len(l) {
				return nil
			}
			v = l[p]
		}
	}
	return v
}

// Text returns the string at the path, or "" if there is none.
func (a Answer) Text(path ...any) string {
	s, _ := a.At(path...).(string)
	return s
}

// Call sends a request. body is JSON as a string or bytes, or a value to encode. A path that
// begins with a slash is one of the sandbox.
func (b *Sandbox) Call(t *testing.T, method, path string, header map[string]string, body any) Answer {
	t.Helper()
	var in io.Reader = http.NoBody
	switch v := body.(type) {
	case nil:
	case string:
		in = strings.NewReader(v)
	case []byte:
		in = bytes.NewReader(v)
	default:
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		in = bytes.NewReader(raw)
	}
	url := path
	if strings.HasPrefix(path, "/") {
		url = b.URL + path
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url, in)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for k, v := range header {
		req.Header.Set(k, v)
	}
	resp, err := b.HTTP.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	out := Answer{Status: resp.StatusCode, Header: resp.Header, Raw: raw}
	if len(raw) > 0 && raw[0] == '{' {
		if err := json.Unmarshal(raw, &out.Body); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// M is a JSON object.
type M = map[string]any

// With returns a copy of base with the changes. A change to nil removes the field.
func With(base, changes M) M {
	out := maps.Clone(base)
	for k, v := range changes {
		if v == nil {
			delete(out, k)
		} else {
			out[k] = v
		}
	}
	return out
}

// Jobs returns the jobs that the control endpoint lists for the query.
func (b *Sandbox) Jobs(t *testing.T, query string) []any {
	t.Helper()
	got := b.Call(t, "GET", "/_sandbox/jobs"+query, nil, nil)
	jobs, ok := got.At("jobs").([]any)
	if got.Status != 200 || !ok {
		t.Fatalf("jobs: %d %s", got.Status, got.Raw)
	}
	return jobs
}
