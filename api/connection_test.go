package api_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
	"github.com/mediagate/mediagate/api/listener"
	"github.com/mediagate/mediagate/internal/limit"
)

// street is a listener whose connections come from the addresses that a test names, in order.
type street struct {
	net.Listener
	from chan string
}

func (s street) Accept() (net.Conn, error) {
	conn, err := s.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return resident{conn, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(<-s.from))}, nil
}

type resident struct {
	net.Conn
	at net.Addr
}

func (r resident) RemoteAddr() net.Addr { return r.at }

// CloseWrite closes the sending side, like that of a *net.TCPConn.
func (r resident) CloseWrite() error { return r.Conn.(*net.TCPConn).CloseWrite() }

// street serves the gateway and returns a function that connects from an address.
func (g *gateway) street() (from func(address string) *socket) {
	g.t.Helper()
	inner, err := (&net.ListenConfig{}).Listen(g.t.Context(), "tcp", "127.0.0.1:0")
	g.must(err)
	addresses := make(chan string, 1)
	ctx, cancel := context.WithCancel(context.WithoutCancel(g.t.Context()))
	served := make(chan error, 1)
	go func() { served <- g.server.Serve(ctx, street{inner, addresses}) }()
	g.t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			g.t.Error(err)
		}
	})
	return func(address string) *socket {
		addresses <- address
		return dial(g.t, inner.Addr().String())
	}
}

func (s *socket) ask(r request) answer {
	s.t.Helper()
	s.send(r.text("1.1"))
	return s.answer()
}

// gone expects that the server closed the connection.
func (s *socket) gone() {
	s.t.Helper()
	if b, err := s.answers.ReadByte(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		s.t.Errorf("the connection lives: %q, %v", b, err)
	}
}

// alive expects an answer.
func (s *socket) alive() {
	s.t.Helper()
	s.ask(request{path: "/healthz"}).wantStatus(s.t, http.StatusOK)
}

const spareConnections = 64

// connectionsOf returns the connection limits of a process.
func connectionsOf(n int64) func(*api.Config) {
	return bounds(func(p *limit.Process) {
		p.Connections, p.Overflow = limit.New("", n), limit.New("", spareConnections)
	})
}

// TestSilentConnectionsMakeRoom checks that idle connections are closed for new ones, the longest
// idle first.
func TestSilentConnectionsMakeRoom(t *testing.T) {
	t.Parallel()
	g := newGateway(t, connectionsOf(4))
	from := g.street()
	rests := func(n int) { // a client has its answer before its connection is silent again
		eventually(t, fmt.Sprintf("%d are silent", n), func() bool { return api.Silent(g.server) == n })
	}
	var old []*socket
	for i := range 4 {
		s := from(fmt.Sprintf("192.0.2.%d:1", i+1))
		if i == 1 {
			s.send("GET /healthz HTT") // half a header is nothing yet
		} else {
			s.alive()
		}
		rests(i + 1)
		old = append(old, s)
	}
	old[0].alive() // so it is the last now
	rests(4)
	from("192.0.2.9:1").alive()
	rests(4)
	from("192.0.2.10:1").alive()
	rests(4)
	own := from("192.0.2.4:2") // in the place of its own address
	own.alive()
	rests(4)
	for i, s := range old {
		switch i {
		case 1, 2, 3:
			s.gone()
		default:
			s.alive()
		}
	}
	for i := range 200 { // a flood
		from(fmt.Sprintf("198.51.100.%d:1", i))
		if i%50 == 0 {
			from("192.0.2.1:1").ask(request{path: "/readyz"}).wantStatus(t, http.StatusOK, "during a flood")
		}
	}
	if n := api.Connections(g.server); n > 4 {
		t.Errorf("%d connections, of 4", n)
	}
	if n := strings.Count(g.log.String(), "connections were refused or closed"); n != 1 {
		t.Errorf("%d lines about a flood", n)
	}
}

// TestConnectionsBeyondTheCap checks that a connection is refused while all others are active,
// and that health still answers.
func TestConnectionsBeyondTheCap(t *testing.T) {
	t.Parallel()
	g := newGateway(t, connectionsOf(2))
	from := g.street()
	id := g.submit(videos, videoBody)
	poll := request{path: "/v1/tasks/" + id + "?wait=60", key: g.key}
	polls := []*socket{from("192.0.2.1:1"), from("192.0.2.3:1")}
	for _, s := range polls {
		s.send(poll.text("1.1"))
	}
	eventually(t, "both wait", func() bool { return api.Silent(g.server) == 0 && api.Waiting(g.server) == 1 })
	for path, status := range map[string]int{
		"/healthz": 200, "/readyz": 200, "/v1/tasks": 503, "/v1/balance": 503, "/v1/music/tasks/" + id: 503, "/v1/nothing": 503,
	} {
		s := from("192.0.2.2:1")
		a := s.ask(request{path: path, key: g.key})
		if a.status != status || a.header.Get("Connection") != "close" {
			t.Errorf("%s: %d %v %s", path, a.status, a.header, a.body)
		}
		if status == 503 && a.header.Get("Retry-After") != "1" {
			t.Errorf("%s: Retry-After %q", path, a.header.Get("Retry-After"))
		}
		s.silence()
	}
	submit := from("192.0.2.2:2").ask(request{method: "POST", path: videos, key: g.key, body: videoBody})
	submit.wantError(t, 503, "server_error", "try again")
	for i := range 3 * spareConnections {
		from(fmt.Sprintf("198.51.100.%d:1", i+1)) // says nothing
	}
	if n, most := api.Connections(g.server), 2+spareConnections; n > most {
		t.Errorf("%d connections, want %d at most", n, most)
	}
	from("192.0.2.2:3").ask(request{path: "/readyz"}).wantStatus(t, 200, "/readyz")
	g.complete(id, mediagate.Result{Key: "results/1", MimeType: "video/mp4", Size: 7})
	for _, s := range polls {
		if a := s.answer(); a.at("data", "status") != "completed" {
			t.Errorf("who was there is served: %d %s", a.status, a.body)
		}
	}
	eventually(t, "there is room again", func() bool {
		return from("192.0.2.2:4").ask(request{path: "/v1/tasks", key: g.key}).status == 200
	})
}

// TestConnectionsOfAnAddress checks the limit of an address, which for IPv6 is a /64.
func TestConnectionsOfAnAddress(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		addresses []string // of three connections
		proxies   listener.Proxies
		bound     bool
	}{
		"one address":          {addresses: []string{"192.0.2.1:1", "192.0.2.1:2", "192.0.2.1:3"}, bound: true},
		"mapped":               {addresses: []string{"192.0.2.1:1", "[::ffff:192.0.2.1]:2", "192.0.2.1:3"}, bound: true},
		"one /64":              {addresses: []string{"[2001:db8::1]:1", "[2001:db8::2]:1", "[2001:db8::ffff:1:1]:1"}, bound: true},
		"three addresses":      {addresses: []string{"192.0.2.1:1", "192.0.2.2:1", "192.0.2.3:1"}},
		"the loopback":         {addresses: []string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"}},
		"a proxy that we know": {addresses: []string{"10.0.0.1:1", "10.0.0.1:2", "10.0.0.1:3"}, proxies: listener.Proxies{Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}},
		"past that proxy":      {addresses: []string{"192.0.2.1:1", "192.0.2.1:2", "192.0.2.1:3"}, proxies: listener.Proxies{Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}, bound: true},
		"always a proxy":       {addresses: []string{"192.0.2.1:1", "192.0.2.1:2", "192.0.2.1:3"}, proxies: listener.Proxies{Hops: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGateway(t, connectionsOf(4), func(c *api.Config) { c.TrustedProxies = test.proxies })
			from := g.street()
			id := g.submit(videos, videoBody)
			poll := request{path: "/v1/tasks/" + id + "?wait=60", key: g.key}
			polls := []*socket{from(test.addresses[0]), from(test.addresses[1])}
			for _, s := range polls {
				s.send(poll.text("1.1"))
			}
			eventually(t, "both wait", func() bool { return api.Silent(g.server) == 0 })
			third := from(test.addresses[2]).ask(request{path: "/v1/tasks", key: g.key})
			if third.status == http.StatusServiceUnavailable != test.bound {
				t.Errorf("the third: %d %s", third.status, third.body)
			}
			from(test.addresses[2]).ask(request{path: "/healthz"}).wantStatus(t, http.StatusOK, "health")
			from("203.0.113.9:1").alive()
			g.complete(id, mediagate.Result{Key: "results/1", MimeType: "video/mp4", Size: 7})
			for _, s := range polls {
				if a := s.answer(); a.at("data", "status") != "completed" {
					t.Errorf("who was there is served: %d %s", a.status, a.body)
				}
			}
		})
	}
}

// TestPipelineIsOneConnection checks that pipelined requests are answered in order and count as
// one connection.
func TestPipelineIsOneConnection(t *testing.T) {
	t.Parallel()
	g := newGateway(t, connectionsOf(1))
	s := g.street()("192.0.2.1:1")
	s.send(strings.Repeat(request{path: "/v1/tasks", key: g.key}.text("1.1"), 50))
	for range 50 {
		if a := s.answer(); a.status != 200 {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	if n := api.Connections(g.server); n != 1 {
		t.Errorf("%d connections", n)
	}
	_ = s.Close()
	eventually(t, "the books are empty", func() bool { return api.Connections(g.server) == 0 && api.Silent(g.server) == 0 })
}
