package vendorhttp

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mediagate/mediagate"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, base string, opt Options) *Client {
	t.Helper()
	c := New(Config{BaseURL: base, Secrets: []mediagate.Secret{mediagate.NewSecret("sk-secret-1")}}, opt)
	t.Cleanup(c.Close)
	return c
}

// D4: the gate checks the deadline when the transport writes. A raw listener proves that no byte of
// the head arrives after the deadline, however long dialing took.
func TestGateHoldsBackEveryByte(t *testing.T) {
	t.Parallel()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	received := make(chan []byte, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			received <- []byte(err.Error())
			return
		}
		b, _ := io.ReadAll(conn)
		_ = conn.Close()
		received <- b
	}()

	// The call begins in time, but is late when the connection is open.
	before := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var asked atomic.Int32
	now := func() time.Time {
		if asked.Add(1) == 1 {
			return before.Add(-time.Nanosecond)
		}
		return before
	}
	c := open(t, "http://"+l.Addr().String(), Options{Now: now})
	_, err = c.Do(t.Context(), Call{
		Effect: Submits, Path: "/jobs", SendBefore: before, Body: JSON(map[string]string{"prompt": strings.Repeat("x", 1<<20)}),
		Header: http.Header{"Authorization": {"Bearer " + strings.Repeat("t", maxCredential)}},
	})
	if !mediagate.Is(err, mediagate.KindUnreached) || !errors.Is(err, errLate) || !errors.Is(err, mediagate.ErrHeldUp) {
		t.Errorf("Submit: %v, want unreached because it is late", err)
	}
	if b := <-received; len(b) != 0 {
		t.Errorf("%d bytes arrived: %.80q", len(b), b)
	}
}

// After a call has ended, a transport that still holds the request can no longer send it.
func TestGateStaysShut(t *testing.T) {
	t.Parallel()
	g := &gate{now: time.Now}
	if opened, _ := g.shut(); opened {
		t.Error("a gate that nothing passed counts as opened")
	}
	if err := g.pass(); !errors.Is(err, errShut) {
		t.Errorf("pass after shut: %v, want errShut", err)
	}

	g = &gate{now: time.Now}
	if err := g.pass(); err != nil {
		t.Errorf("pass: %v", err)
	}
	if opened, _ := g.shut(); !opened {
		t.Error("a gate that was passed does not count as opened")
	}
}

// An open gate lets the rest of the request pass: half a request would be worse than a late one.
func TestGateIsJudgedOnce(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, tc := range map[string]struct {
		first time.Time
		want  error
	}{
		"in time":  {start.Add(-time.Nanosecond), nil},
		"on time":  {start, errLate},
		"too late": {start.Add(time.Hour), errLate},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := tc.first
			g := &gate{before: start, now: func() time.Time { return now }}
			for range 2 {
				if err := g.pass(); !errors.Is(err, tc.want) {
					t.Errorf("pass at %v: %v, want %v", now, err, tc.want)
				}
				now = start.Add(time.Minute)
			}
		})
	}
}

// Over TLS, the gate lets the handshake pass and stops the request.
func TestGateHoldsBackOverTLS(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls.Add(1) }))
	t.Cleanup(server.Close)
	roots := server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	before := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, tc := range map[string]struct {
		atWrite time.Time
		calls   int32
	}{
		"late":    {before, 0},
		"in time": {before.Add(-time.Nanosecond), 1},
	} {
		var asked atomic.Int32
		c := open(t, server.URL, Options{RootCAs: roots, Now: func() time.Time {
			if asked.Add(1) == 1 {
				return before.Add(-time.Second)
			}
			return tc.atWrite
		}})
		calls.Store(0)
		_, err := c.Do(t.Context(), Call{Effect: Submits, SendBefore: before, Body: JSON(struct{}{})})
		if (err == nil) != (tc.calls == 1) || (err != nil && !mediagate.Is(err, mediagate.KindUnreached)) {
			t.Errorf("%s: %v", name, err)
		}
		if n := calls.Load(); n != tc.calls {
			t.Errorf("%s: %d requests, want %d", name, n, tc.calls)
		}
	}
}

func TestAnswerCap(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		size int
		ok   bool
	}{"at the bound": {1000, true}, "one over": {1001, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, strings.Repeat("x", tc.size))
			}))
			t.Cleanup(server.Close)
			c := open(t, server.URL, Options{MaxBody: 1000})
			answer, err := c.Do(t.Context(), Call{Effect: Submits, Body: JSON(struct{}{})})
			if tc.ok {
				if err != nil || len(answer.Body) != tc.size {
					t.Errorf("Submit: %d bytes, %v", len(answer.Body), err)
				}
			} else if !mediagate.Is(err, mediagate.KindAmbiguous) {
				t.Errorf("Submit: %v, want ambiguous", err)
			}
			_, err = c.Do(t.Context(), Call{Effect: Reads})
			if tc.ok != (err == nil) || (!tc.ok && !mediagate.Is(err, mediagate.KindTransient)) {
				t.Errorf("Get: %v", err)
			}
		})
	}
}

// No call follows a redirect, which would carry credentials to another host. The client does not
// parse the Location either: http.Client would take many seconds to turn the longest host into
// ASCII.
func TestRedirectsAreAnswers(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	var host strings.Builder
	for i := range 20_000 { // no two runes alike
		host.WriteRune(rune(0x4e00 + i*7919%20_000))
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to := "/elsewhere"
		if calls.Add(1) > 2 {
			to = "https://" + host.String() + ".com/"
		}
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusTemporaryRedirect)
	}))
	t.Cleanup(server.Close)
	c := open(t, server.URL, Options{})
	for range 2 {
		began := time.Now()
		if a, err := c.Do(t.Context(), Call{Effect: Submits, Body: JSON(struct{}{})}); err != nil || a.Status != http.StatusTemporaryRedirect {
			t.Errorf("Submit: %d, %v", a.Status, err)
		}
		if a, err := c.Do(t.Context(), Call{Effect: Reads}); err != nil || a.Status != http.StatusTemporaryRedirect {
			t.Errorf("Get: %d, %v", a.Status, err)
		}
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("took %s", took)
		}
	}
	if n := calls.Load(); n != 4 {
		t.Errorf("%d requests, want 4", n)
	}
}

// Stream.Location is the unchanged Location of an answer.
func TestStreamTellsItsLocation(t *testing.T) {
	t.Parallel()
	const to = "https://files.example.com/a?b=c"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Mediagate-Location", "https://elsewhere.example.com")
		if r.URL.Path == "/led" {
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusFound)
		}
	}))
	t.Cleanup(server.Close)
	c := open(t, server.URL, Options{})
	for path, want := range map[string]string{"/led": to, "/there": ""} {
		s, err := c.Stream(t.Context(), Call{Effect: Reads, Path: path})
		if err != nil {
			t.Fatal(err)
		}
		if s.Location != want || s.Header.Get("Location") != "" {
			t.Errorf("%s leads to %q and has a header %q, want %q", path, s.Location, s.Header.Get("Location"), want)
		}
		if err := s.Body.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The client never uses HTTP/2, which resends requests that the server seems not to have processed.
func TestOnlyHTTP1(t *testing.T) {
	t.Parallel()
	var proto atomic.Value
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { proto.Store(r.Proto) }))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	roots := server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	c := open(t, server.URL, Options{RootCAs: roots})
	for name, do := range map[string]func() error{
		"submit": func() error { _, err := c.Do(t.Context(), Call{Effect: Submits, Body: JSON(struct{}{})}); return err },
		"get":    func() error { _, err := c.Do(t.Context(), Call{Effect: Reads}); return err },
	} {
		if err := do(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := proto.Load(); got != "HTTP/1.1" {
			t.Errorf("%s over %v", name, got)
		}
	}
}

// Watch hears once of each call, with its status or its error.
func TestWatch(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/teapot":
			w.WriteHeader(http.StatusTeapot)
		case "/cut":
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("no more"))
		case "/hang":
			panic(http.ErrAbortHandler)
		}
	}))
	t.Cleanup(server.Close)
	cases := map[string]struct {
		call   Call
		status int
		kind   mediagate.Kind
		fails  bool
	}{
		"read":                 {call: Call{Effect: Reads, Path: "/"}, status: http.StatusOK},
		"submit, refused":      {call: Call{Effect: Submits, Path: "/teapot"}, status: http.StatusTeapot},
		"an answer cut short":  {call: Call{Effect: Submits, Path: "/cut"}, status: http.StatusOK, kind: mediagate.KindAmbiguous, fails: true},
		"no answer":            {call: Call{Effect: Stops, Path: "/hang"}, kind: mediagate.KindTransient, fails: true},
		"a call of no effect":  {call: Call{Path: "/"}, kind: mediagate.KindInternal, fails: true},
		"sent too late a call": {call: Call{Effect: Submits, Path: "/", SendBefore: time.Unix(1, 0)}, kind: mediagate.KindUnreached, fails: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			type end struct {
				effect Effect
				status int
				err    error
			}
			var ends []end
			client := open(t, server.URL, Options{Watch: func(_ context.Context, effect Effect) func(int, error) {
				return func(status int, err error) { ends = append(ends, end{effect, status, err}) }
			}})
			_, err := client.Do(t.Context(), c.call)
			if (err != nil) != c.fails || c.fails && mediagate.KindOf(err) != c.kind {
				t.Fatalf("the call: %v", err)
			}
			if len(ends) != 1 || ends[0].effect != c.call.Effect || ends[0].status != c.status || !errors.Is(ends[0].err, err) {
				t.Errorf("Watch heard %+v, the call returned %v", ends, err)
			}
		})
	}
}
