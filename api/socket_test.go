package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
	"github.com/mediagate/mediagate/internal/limit"
)

// serve serves on a real listener, as the program does, until the test ends.
func (g *gateway) serve() (address string) {
	g.t.Helper()
	address, _ = g.serveUntil()
	return address
}

// serveUntil is serve with a function that stops the server before the test ends, and waits
// until it has stopped.
func (g *gateway) serveUntil() (address string, stop func()) {
	g.t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(g.t.Context(), "tcp", "127.0.0.1:0")
	g.must(err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(g.t.Context()))
	served := make(chan error, 1)
	go func() { served <- g.server.Serve(ctx, listener) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-served; err != nil {
			g.t.Error(err)
		}
	})
	g.t.Cleanup(stop)
	return listener.Addr().String(), stop
}

// socket is a client that controls every byte and each side of its connection.
type socket struct {
	t *testing.T
	*net.TCPConn
	answers *bufio.Reader
}

// patience limits every wait for an answer. No test measures it.
const patience = 30 * time.Second

func dial(t *testing.T, address string) *socket {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	must(t, err)
	tcp, _ := conn.(*net.TCPConn)
	t.Cleanup(func() { _ = tcp.Close() })
	must(t, tcp.SetDeadline(time.Now().Add(patience)))
	return &socket{t, tcp, bufio.NewReader(tcp)}
}

func (s *socket) send(text string) {
	s.t.Helper()
	if _, err := io.WriteString(s.TCPConn, text); err != nil {
		s.t.Fatal(err)
	}
}

// finish closes the sending side.
func (s *socket) finish() {
	s.t.Helper()
	must(s.t, s.CloseWrite())
}

// abort resets the connection.
func (s *socket) abort() {
	s.t.Helper()
	must(s.t, s.SetLinger(0))
	_ = s.Close()
}

// answer reads the next answer.
func (s *socket) answer() answer {
	s.t.Helper()
	resp, err := http.ReadResponse(s.answers, nil)
	if err != nil {
		s.t.Fatalf("no answer: %v", err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatalf("half an answer: %v", err)
	}
	a := answer{status: resp.StatusCode, header: resp.Header, body: string(body)}
	if resp.Close {
		a.header.Set("Connection", "close") // ReadResponse takes it out
	}
	_ = json.Unmarshal(body, &a.data)
	return a
}

// silence expects that the connection ends without another byte.
func (s *socket) silence() {
	s.t.Helper()
	if rest, err := io.ReadAll(s.answers); len(rest) > 0 || err != nil {
		s.t.Errorf("after the last answer: %q, %v", rest, err)
	}
}

// text returns the bytes of the request.
func (r request) text(version string, fields ...string) string {
	var b strings.Builder
	method := r.method
	if method == "" {
		method = http.MethodGet
	}
	_, _ = fmt.Fprintf(&b, "%s %s HTTP/%s\r\nHost: gateway\r\n", method, r.path, version)
	if r.key != "" {
		_, _ = fmt.Fprintf(&b, "Authorization: Bearer %s\r\n", r.key)
	}
	for _, field := range fields {
		b.WriteString(field + "\r\n")
	}
	if r.body != "" {
		_, _ = fmt.Fprintf(&b, "Content-Length: %d\r\n", len(r.body))
	}
	return b.String() + "\r\n" + r.body
}

// oftenEnough is how many times a race is run: the issue saw 11 of 20 fall.
const oftenEnough = 20

// TestHalfClose closes the sending side right after the request. Such a client still reads, and
// must get the real answer.
func TestHalfClose(t *testing.T) {
	t.Parallel()
	g := newGateway(t, func(c *api.Config) {
		c.Checks.Database = func(ctx context.Context) error { return ctx.Err() }
	})
	g.grant("10000")
	address := g.serve()
	submit := request{method: "POST", path: videos, key: g.key, body: videoBody}
	stored := func(t *testing.T, a answer) {
		t.Helper()
		if _, err := g.store.Task(t.Context(), g.account.ID, a.taskID(t)); err != nil {
			t.Errorf("acknowledged, but not stored: %v", err)
		}
	}
	for name, test := range map[string]struct {
		request request
		version string
		status  int
		check   func(t *testing.T, a answer)
	}{
		"submit":           {submit, "1.1", 200, stored},
		"submit, HTTP/1.0": {submit, "1.0", 200, stored},
		"ready":            {request{path: "/readyz"}, "1.1", 200, nil},
		"refusal":          {request{method: "POST", path: videos, key: g.key, body: `{}`}, "1.1", 400, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range oftenEnough {
				s := dial(t, address)
				s.send(test.request.text(test.version))
				s.finish()
				a := s.answer()
				if a.status != test.status {
					t.Fatalf("%d %q, want %d", a.status, a.body, test.status)
				}
				if test.check != nil {
					test.check(t, a)
				}
				s.silence()
			}
		})
	}
	t.Run("deletion", func(t *testing.T) { // a key whose deletion was answered is gone
		t.Parallel()
		for range oftenEnough {
			row, secret := g.newKey(mediagate.Key{Unlimited: true})
			s := dial(t, address)
			s.send(request{method: "DELETE", path: "/admin/v1/keys/" + row.ID, key: adminKey}.text("1.1"))
			s.finish()
			if a := s.answer(); a.status != http.StatusNoContent {
				t.Fatalf("%d %q", a.status, a.body)
			}
			g.send(request{path: "/v1/tasks", key: secret}).wantError(t, 401, "authentication_error", "invalid API key")
		}
	})
}

// TestHalfClosedPipeline sends three requests at once and closes the sending side: each is
// answered, in order.
func TestHalfClosedPipeline(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	address := g.serve()
	for range oftenEnough {
		s := dial(t, address)
		submit := request{method: "POST", path: videos, key: g.key, body: videoBody}.text("1.1")
		s.send(submit + request{path: "/v1/balance", key: g.key}.text("1.1") + submit)
		s.finish()
		first, balance, second := s.answer(), s.answer(), s.answer()
		if balance.status != 200 || balance.at("success") != true {
			t.Errorf("%d %s", balance.status, balance.body)
		}
		if one, other := first.taskID(t), second.taskID(t); one == other {
			t.Errorf("both are %s", one)
		}
		s.silence()
	}
}

// TestPollsOfOneAccount checks that abandoned long polls use up the share of their account, but
// not the connections and the memory of the process.
func TestPollsOfOneAccount(t *testing.T) {
	t.Parallel()
	g := newGateway(t, bounds(func(p *limit.Process) { p.Waits = limit.New("", 6) }))
	address := g.serve()
	id := g.submit(videos, videoBody)
	poll := request{path: "/v1/tasks/" + id + "?wait=5", key: g.key}
	began := time.Now()
	refused := func() bool {
		s := dial(t, address)
		s.send(poll.text("1.1"))
		s.finish()
		_ = s.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		if _, err := s.answers.Peek(1); err != nil {
			return false // it waits, and this client goes
		}
		a := s.answer()
		a.wantError(t, 429, "rate_limit_error", "waiting requests")
		a.wantWait(t, "1")
		return true
	}
	for i := range 4 {
		if got := refused(); got != (i == 3) {
			t.Errorf("poll %d: refused: %v, after %s", i+1, got, time.Since(began))
		}
	}
	g.send(request{path: "/v1/tasks/" + id, key: g.key}).wantStatus(t, 200, "who does not wait")
	another := g.other()
	theirs := g.send(request{method: "POST", path: videos, key: another, body: videoBody}).taskID(t)
	g.send(request{path: "/v1/tasks/" + theirs + "?wait=1", key: another}).wantStatus(t, 200, "another account")
	eventually(t, "the seats are free again", func() bool { return !refused() })
}

// TestExpectContinue sends Expect: 100-continue, then the body, and closes the sending side.
func TestExpectContinue(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	address := g.serve()
	r := request{method: "POST", path: videos, key: g.key, body: videoBody}
	head := strings.TrimSuffix(r.text("1.1", "Expect: 100-continue"), r.body)
	t.Run("sends", func(t *testing.T) {
		t.Parallel()
		for range oftenEnough {
			s := dial(t, address)
			s.send(head)
			if a := s.answer(); a.status != http.StatusContinue {
				t.Fatalf("%d, want to be told to go on", a.status)
			}
			s.send(r.body)
			s.finish()
			s.answer().taskID(t)
		}
	})
	t.Run("sends nothing", func(t *testing.T) {
		t.Parallel()
		s := dial(t, address)
		s.send(head)
		s.finish()
		if a := s.answer(); a.status != http.StatusContinue {
			t.Fatalf("%d, want to be told to go on", a.status)
		}
		s.answer().wantError(t, 400, "invalid_request_error", "ended before it was complete")
		s.silence()
	})
	t.Run("is refused", func(t *testing.T) {
		t.Parallel()
		stranger, _ := api.NewKey()
		s := dial(t, address)
		s.send(strings.Replace(head, g.key, stranger, 1))
		a := s.answer()
		a.wantError(t, 401, "authentication_error", "")
		if a.header.Get("Connection") != "close" {
			t.Error("the connection stays, with a body to come or not")
		}
	})
}

// rough returns a gateway with short time limits for bodies.
func rough(t *testing.T) *gateway {
	t.Helper()
	return newGateway(t, func(c *api.Config) { c.BodyPace = 3 * time.Second })
}

// bodies has a request of each kind of route that reads a body.
func (g *gateway) bodies() map[string]request {
	account := "/admin/v1/accounts/" + g.account.ID
	return map[string]request{
		"submit":         {method: "POST", path: videos, key: g.key, body: videoBody},
		"quote":          {method: "POST", path: "/v1/quote", key: g.key, body: `{"endpoint":"` + videos + `",` + videoBody[1:]},
		"account made":   {method: "POST", path: "/admin/v1/accounts", key: adminKey, body: `{"name":"a"}`},
		"account change": {method: "PATCH", path: account, key: adminKey, body: `{"name":"b"}`},
		"grant":          {method: "POST", path: account + "/grants", key: adminKey, body: `{"amount":"1","reference":"a"}`},
		"key made":       {method: "POST", path: account + "/keys", key: adminKey, body: `{"name":"a","unlimited":true}`},
	}
}

// TestStalledBody stops before the body is complete and keeps the connection: the answer is 408
// in the route's envelope, and the connection is closed.
func TestStalledBody(t *testing.T) {
	t.Parallel()
	g := rough(t)
	address := g.serve()
	stalled := map[string]*socket{} // all at once: each takes its time
	for name, r := range g.bodies() {
		head := request{method: r.method, path: r.path, key: r.key}.text("1.1", "Transfer-Encoding: chunked")
		whole := r.text("1.1")
		for how, text := range map[string]string{
			"in the middle":     whole[:len(whole)-3],
			"before it":         strings.TrimSuffix(whole, r.body),
			"in a chunk":        head + "ff\r\n{",
			"between chunks":    head + "1\r\n{\r\n",
			"in a chunk's head": head + "f",
		} {
			s := dial(t, address)
			s.send(text)
			stalled[name+", "+how] = s
		}
	}
	for name, s := range stalled {
		t.Run(name, func(t *testing.T) {
			a := s.answer()
			a.wantError(t, 408, "invalid_request_error", "did not arrive in time")
			if a.header.Get("Connection") != "close" {
				t.Errorf("Connection: %q", a.header.Get("Connection"))
			}
			s.silence()
		})
	}
}

// TestSlowBody sends a body that never stalls but is too slow.
func TestSlowBody(t *testing.T) {
	t.Parallel()
	g := newGateway(t, func(c *api.Config) { c.BodyPace = 300 * time.Millisecond })
	s := dial(t, g.serve())
	text := request{method: "POST", path: videos, key: g.key, body: padded(mebibyte)}.text("1.1")
	for text != "" && s.waits(20*time.Millisecond) {
		s.send(text[:200])
		text = text[200:]
	}
	s.answer().wantError(t, 408, "invalid_request_error", "did not arrive in time")
}

// waits reports whether no answer comes within a duration.
func (s *socket) waits(d time.Duration) bool {
	s.t.Helper()
	_ = s.SetReadDeadline(time.Now().Add(d))
	defer func() { _ = s.SetReadDeadline(time.Now().Add(patience)) }()
	_, err := s.answers.Peek(1)
	return err != nil
}

// TestBodyEndsEarly closes the sending side within the body: a client that still reads gets a
// 400.
func TestBodyEndsEarly(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	address := g.serve()
	for name, r := range g.bodies() {
		head := request{method: r.method, path: r.path, key: r.key}.text("1.1", "Transfer-Encoding: chunked")
		whole := r.text("1.1")
		for how, text := range map[string]string{
			"in the middle":    whole[:len(whole)-3],
			"before it":        strings.TrimSuffix(whole, r.body),
			"HTTP/1.0":         r.text("1.0")[:len(whole)-3],
			"in a chunk":       head + "ff\r\n{",
			"before the last":  head + fmt.Sprintf("%x\r\n%s\r\n", len(r.body), r.body),
			"in a chunk's end": head + fmt.Sprintf("%x\r\n%s\r\n0\r\n", len(r.body), r.body),
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				for range oftenEnough / 4 {
					s := dial(t, address)
					s.send(text)
					s.finish()
					a := s.answer()
					a.wantError(t, 400, "invalid_request_error", "ended before it was complete")
					s.silence()
				}
			})
		}
	}
	t.Run("nothing came of it", func(t *testing.T) {
		tasks, _, err := g.store.Tasks(t.Context(), mediagate.TaskFilter{AccountID: g.account.ID, Limit: 10})
		if err != nil || len(tasks) > 0 {
			t.Errorf("%d tasks, %v", len(tasks), err)
		}
	})
}

// TestBrokenChunks checks that an invalid chunk gives 400, and that following bytes are not read
// as a request.
func TestBrokenChunks(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	s := dial(t, g.serve())
	s.send(request{method: "POST", path: videos, key: g.key}.text("1.1", "Transfer-Encoding: chunked") +
		"zz\r\n" + request{path: "/healthz"}.text("1.1"))
	a := s.answer()
	a.wantError(t, 400, "invalid_request_error", "chunks")
	if a.header.Get("Connection") != "close" {
		t.Errorf("Connection: %q", a.header.Get("Connection"))
	}
	s.finish()
	s.silence()
}

// TestUnreadBody announces a body and sends none, on routes that never read it: the answer comes
// soon and the connection ends.
func TestUnreadBody(t *testing.T) {
	t.Parallel()
	g := newGateway(t, smallBodies(t))
	address := g.serve()
	stranger, _ := api.NewKey()
	id := g.submit(videos, videoBody)
	for name, test := range map[string]struct {
		request
		status int
	}{
		"no such key":   {request{method: "POST", path: videos, key: stranger}, 401},
		"no such route": {request{method: "POST", path: "/v1/nothing", key: g.key}, 404},
		"wrong method":  {request{method: "PUT", path: videos, key: g.key}, 405},
		"too large":     {request{method: "POST", path: videos, key: g.key}, 413},
		"a read":        {request{path: "/v1/tasks/" + id, key: g.key}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			announced := "Content-Length: 1000"
			if test.status == 413 {
				announced += "0000"
			}
			s := dial(t, address)
			s.send(test.text("1.1", announced))
			a := s.answer()
			if a.status != test.status || a.header.Get("Connection") != "close" {
				t.Errorf("%d, Connection: %q, %s", a.status, a.header.Get("Connection"), a.body)
			}
		})
	}
	t.Run("the connection stays for who sends it", func(t *testing.T) {
		t.Parallel()
		s := dial(t, address)
		for range 3 {
			s.send(request{method: "POST", path: videos, key: stranger, body: videoBody}.text("1.1"))
			s.answer().wantError(t, 401, "authentication_error", "")
		}
	})
}

// TestAbortedConnection resets the connection after each byte of a submit. At every point, each
// task has a line in the log, and a repetition with the same key makes one task.
func TestAbortedConnection(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	g.grant("10000")
	address := g.serve()
	text := func(key string) string {
		return request{method: "POST", path: videos, key: g.key, body: videoBody}.text("1.1", "Idempotency-Key: "+key)
	}
	size := len(text("key-000"))
	head := size - len(videoBody)
	var keys []string
	for cut := head - 2; cut <= size; cut++ {
		key := fmt.Sprintf("key-%03d", cut)
		keys = append(keys, key)
		s := dial(t, address)
		s.send(text(key)[:cut])
		s.abort()
	}
	for _, key := range keys {
		s := dial(t, address)
		s.send(text(key))
		s.answer().taskID(t)
	}
	tasks := map[string]bool{}
	for after := ""; ; {
		page, more, err := g.store.Tasks(t.Context(), mediagate.TaskFilter{AccountID: g.account.ID, Limit: 100, After: after})
		g.must(err)
		for _, task := range page {
			tasks[task.ID], after = true, task.ID
		}
		if !more {
			break
		}
	}
	if len(tasks) != len(keys) {
		t.Errorf("%d tasks of %d keys", len(tasks), len(keys))
	}
	eventually(t, "a line for each task", func() bool {
		log := g.log.String()
		for id := range tasks {
			if !strings.Contains(log, id) {
				return false
			}
		}
		return true
	})
	for line := range strings.SplitSeq(strings.TrimSpace(g.log.String()), "\n") {
		if strings.Contains(line, `"status":200`) == !strings.Contains(line, `"task":`) {
			t.Errorf("status and task do not agree: %s", line)
		}
	}
}

// TestCutIsLogged checks that a connection that ends without an answer has a log line that says
// so.
func TestCutIsLogged(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	address := g.serve()
	whole := request{method: "POST", path: videos, key: g.key, body: videoBody}.text("1.1")
	for i := range oftenEnough {
		s := dial(t, address)
		s.send(whole[:len(whole)-1])
		s.abort()
		eventually(t, "a line for each cut connection", func() bool { return strings.Count(g.log.String(), `"status":499`) == i+1 })
	}
	if strings.Contains(g.log.String(), `"status":200`) {
		t.Errorf("a success that nobody had: %s", g.log.String())
	}
}

// TestLogLinesAreShort checks that a client without a key adds only one short log line a request.
func TestLogLinesAreShort(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	s := dial(t, g.serve())
	long := strings.Repeat("M", 20_000)
	r := request{method: long, path: "/healthz?" + long, key: long}
	s.send(r.text("1.1"))
	s.answer().wantError(t, 405, "invalid_request_error", "")
	if log := g.log.String(); len(log) > 500 || !strings.Contains(log, `"method":"MMM`) {
		t.Errorf("%d bytes logged: %.600s", len(log), log)
	}
}

// TestHandlerCutsTheConnection checks that http.ErrAbortHandler cuts the connection after the log
// line.
func TestHandlerCutsTheConnection(t *testing.T) {
	t.Parallel()
	g := newGateway(t, func(c *api.Config) {
		c.CheckWebhookURL = func(string) error { panic(http.ErrAbortHandler) }
	})
	s := dial(t, g.serve())
	s.send(request{method: "POST", path: videos, key: g.key, body: `{"model":"alpha-v3","prompt":"a","webhook":"https://example.com"}`}.text("1.1"))
	s.silence()
	if !strings.Contains(g.log.String(), `"status":499`) {
		t.Errorf("not in the log: %s", g.log.String())
	}
}

func eventually(t *testing.T, what string, ask func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ask(); {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}
