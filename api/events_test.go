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
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
	"github.com/mediagate/mediagate/internal/limit"
)

// events is an open stream.
type events struct {
	t      *testing.T
	status int
	header http.Header
	lines  *bufio.Reader
	close  func()
}

// event is an event of a stream. Only a comment has no name.
type event struct{ id, name, data string }

// follow opens the stream of a task after the event last.
func (g *gateway) follow(address, id, key, last string) *events {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), patience)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/v1/tasks/"+id+"/events", http.NoBody)
	g.must(err)
	r.Header.Set("Authorization", "Bearer "+key)
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	client := &http.Client{Transport: &http.Transport{}}
	answer, err := client.Do(r)
	if err != nil {
		cancel()
		g.t.Fatal(err)
	}
	s := &events{g.t, answer.StatusCode, answer.Header, bufio.NewReader(answer.Body), func() {
		cancel()
		_ = answer.Body.Close()
		client.CloseIdleConnections()
	}}
	g.t.Cleanup(s.close)
	return s
}

// next returns the next event or comment. ok is false at the end of the stream.
func (s *events) next() (e event, ok bool) {
	s.t.Helper()
	for {
		line, err := s.lines.ReadString('\n')
		if err == io.EOF && line == "" {
			return e, false
		}
		if err != nil {
			s.t.Fatalf("after %q: %v", line, err)
		}
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch field {
		case "id":
			e.id = value
		case "event":
			e.name = value
		case "data":
			e.data = value
		case ":":
		case "":
			return e, true
		default:
			s.t.Fatalf("a line of no kind: %q", line)
		}
	}
}

// wantTask returns the next event and expects that it shows the task's current state.
func (s *events) wantTask(g *gateway, id, version string) {
	s.t.Helper()
	e, ok := s.next()
	for ok && e == (event{}) { // a comment
		e, ok = s.next()
	}
	if !ok || e.name != "task" || e.id != version {
		s.t.Fatalf("%+v, %t; want version %s", e, ok, version)
	}
	var got any
	if err := json.Unmarshal([]byte(e.data), &got); err != nil {
		s.t.Fatalf("%q: %v", e.data, err)
	}
	if diff := cmp.Diff(g.get("/v1/tasks/"+id).at("data"), got); diff != "" {
		s.t.Errorf("the event is not the task (-read +event):\n%s", diff)
	}
}

func (s *events) wantEnd() {
	s.t.Helper()
	if e, ok := s.next(); ok {
		s.t.Errorf("%+v after the end", e)
	}
}

// TestEvents checks that a stream sends the task, each visible change, and ends with the task.
func TestEvents(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	address := g.serve()
	id := g.submit(videos, videoBody)
	s := g.follow(address, id, g.key, "")
	if s.status != http.StatusOK || s.header.Get("Content-Type") != "text/event-stream" || s.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("status %d, header %v", s.status, s.header)
	}
	s.wantTask(g, id, "1")
	g.accept(id)
	s.wantTask(g, id, "2")
	g.complete(id, mediagate.Result{Key: "results/1", MimeType: "video/mp4", Size: 7})
	s.wantTask(g, id, "3")
	s.wantEnd()
}

// TestEventsResume checks that a client that returns gets only newer events, and is told not to
// return after the end.
func TestEventsResume(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	address := g.serve()
	id := g.submit(videos, videoBody)
	g.accept(id)
	g.follow(address, id, g.key, "1").wantTask(g, id, "2")
	g.follow(address, id, g.key, "99").wantTask(g, id, "2") // of a database that was set back

	s := g.follow(address, id, g.key, "2")
	g.fail(id, mediagate.Failure{
		Code: mediagate.CodeGenerationFailed, Message: "no",
	})
	s.wantTask(g, id, "3")
	s.wantEnd()

	header := http.Header{"Last-Event-Id": {"3"}}
	if a := g.send(request{path: "/v1/tasks/" + id + "/events", key: g.key, header: header}); a.status != http.StatusNoContent || a.body != "" {
		t.Errorf("who has seen the end: %d %s", a.status, a.body)
	}
	for _, last := range []string{"", "2"} {
		s := g.follow(address, id, g.key, last)
		s.wantTask(g, id, "3")
		s.wantEnd()
	}
}

func TestEventsRefused(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	id := g.submit(videos, videoBody)
	path := "/v1/tasks/" + id + "/events"
	for _, last := range []string{"x", "-1", "1.5", "99999999999999999999", "1,2"} {
		g.send(request{path: path, key: g.key, header: http.Header{"Last-Event-Id": {last}}}).wantError(t, 400, "invalid_request_error", "Last-Event-ID")
	}
	g.send(request{path: path}).wantError(t, 401, "authentication_error", "No Authorization header")
	g.get(path+"?language=xx").wantError(t, 400, "invalid_request_error", "language")
	if a := g.send(request{method: http.MethodHead, path: path, key: g.key}); a.status != 200 || a.header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("HEAD: %d %v", a.status, a.header)
	}
}

// TestEventsRest checks that comments are sent while nothing changes, and that the key's right to
// read is checked again.
func TestEventsRest(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	api.Rest(g.server, 20*time.Millisecond)
	address := g.serve()
	id := g.submit(videos, videoBody)
	row, key := g.newKey(mediagate.Key{Unlimited: true})
	s := g.follow(address, id, key, "1")
	for range 3 {
		if e, ok := s.next(); !ok || e != (event{}) {
			t.Fatalf("%+v, %t; want a comment", e, ok)
		}
	}
	g.must(g.store.DeleteKey(t.Context(), row.ID))
	g.clock.advance(time.Second) // so long a key is believed
	for {
		e, ok := s.next()
		if !ok {
			break
		}
		if e != (event{}) {
			t.Fatalf("%+v to a key that is gone", e)
		}
	}
}

// TestEventsSeats checks that a stream counts against its account, under any key, until its
// client leaves, and that it ends when the server stops.
func TestEventsSeats(t *testing.T) {
	t.Parallel()
	g := newGateway(t, func(c *api.Config) { // of whose connections a half may wait
		c.Limits = limit.For(limit.Sizes{Connections: 8, BodyMemory: 1 << 20, LargestBody: 1 << 20})
	})
	address := g.serve()
	id := g.submit(videos, videoBody)
	child := g.manage(g.key, http.MethodPost, "", `{"name":"child","unlimited":true}`).text("key")
	first, second := g.follow(address, id, g.key, ""), g.follow(address, id, child, "")
	first.wantTask(g, id, "1")
	second.wantTask(g, id, "1")
	if third := g.follow(address, id, g.key, ""); third.status != http.StatusTooManyRequests || third.header.Get("Retry-After") != "1" {
		t.Errorf("the third: %d %v", third.status, third.header)
	}
	first.close()
	eventually(t, "the seat is free again", func() bool {
		s := g.follow(address, id, g.key, "")
		defer s.close()
		return s.status == http.StatusOK
	})
	g.server.Close()
	second.wantEnd()
}

// counted is a store that counts how often a task is read.
type counted struct {
	api.Store
	reads *atomic.Int64
}

func (s counted) Task(ctx context.Context, accountID, id string) (mediagate.Task, error) {
	s.reads.Add(1)
	return s.Store.Task(ctx, accountID, id)
}

// TestD19HalfClosedStreamsReadNoMore checks D19: the task of a client that closed its sending
// side is read no more often than others.
func TestD19HalfClosedStreamsReadNoMore(t *testing.T) {
	t.Parallel()
	var reads atomic.Int64
	g := newGateway(t, func(c *api.Config) { c.Store = counted{c.Store, &reads} })
	api.Rest(g.server, time.Hour)
	address := g.serve()
	id := g.submit(videos, videoBody)
	conn, err := net.Dial("tcp", address)
	g.must(err)
	defer conn.Close()
	before := reads.Load()
	_, err = fmt.Fprintf(conn, "GET /v1/tasks/%s/events HTTP/1.1\r\nHost: x\r\nLast-Event-ID: 1\r\nAuthorization: Bearer %s\r\n\r\n", id, g.key)
	g.must(err)
	closer, _ := conn.(*net.TCPConn)
	g.must(closer.CloseWrite())
	lines := bufio.NewReader(conn)
	for comments := 0; comments < 3; {
		line, err := lines.ReadString('\n')
		g.must(err)
		if line == ":\n" {
			comments++
		}
	}
	if n := reads.Load() - before; n != 1 {
		t.Errorf("the task was read %d times, want once", n)
	}
}
