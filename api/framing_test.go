package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mediagate/mediagate/api"
)

// smuggled is a request hidden in the body of another. Only its answer contains this path.
func smuggled(g *gateway) string { return request{path: "/v1/smuggled", key: g.key}.text("1.1") }

// TestAmbiguousFraming sends requests whose end two readers may see at different bytes. It checks
// that the connection ends and that following bytes are never read as a request.
func TestAmbiguousFraming(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	g.grant("10000")
	address := g.serve()
	submit := request{method: "POST", path: videos, key: g.key}
	read := request{path: "/v1/tasks", key: g.key}
	chunks := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(videoBody), videoBody)
	length := fmt.Sprintf("Content-Length: %d", len(chunks))
	const coded, kept = "Transfer-Encoding: chunked", "Connection: keep-alive"
	for name, test := range map[string]struct {
		text   string
		status int
	}{
		"chunks":                     {submit.text("1.1", coded) + chunks, 200},
		"chunks with a trailer":      {submit.text("1.1", coded, "Trailer: X-Sum") + strings.TrimSuffix(chunks, "\r\n") + "X-Sum: 1\r\n\r\n", 200},
		"both, the length first":     {submit.text("1.1", length, coded) + chunks, 200},
		"both, the length last":      {submit.text("1.1", coded, length) + chunks, 200},
		"both, in other letters":     {submit.text("1.1", "tRANSFER-encoding: CHUNKED", strings.ToLower(length)) + chunks, 200},
		"both, a length of nothing":  {submit.text("1.1", "Content-Length: 0", coded) + chunks, 200},
		"both, kept alive":           {submit.text("1.1", kept, length, coded) + chunks, 200},
		"both, where nothing is":     {request{method: "POST", path: "/v1/nothing", key: g.key}.text("1.1", length, coded) + chunks, 404},
		"both, without a key":        {request{method: "POST", path: videos}.text("1.1", length, coded) + chunks, 401},
		"both, to a read":            {read.text("1.1", length, coded) + chunks, 200},
		"both, to the server itself": {request{method: "OPTIONS", path: "*"}.text("1.1", length, coded) + chunks, 200},
		"both, bare line feeds":      {strings.ReplaceAll(submit.text("1.1", length, coded), "\r\n", "\n") + chunks, 200},
		"HTTP/1.0":                   {read.text("1.0", kept), 200},
		"HTTP/1.0 in chunks":         {submit.text("1.0", kept, coded) + chunks, 400},
		"HTTP/1.0, a read in chunks": {read.text("1.0", kept, coded), 200},
		"HTTP/1.0 and both":          {submit.text("1.0", kept, coded, length) + chunks, 400},
		"HTTP/1.0, another coding":   {read.text("1.0", kept, "Transfer-Encoding: identity"), 200},
	} {
		balance := request{path: "/v1/balance", key: g.key}.text("1.1")
		for how, send := range map[string]func(s *socket){
			"first": func(s *socket) { s.send(test.text + smuggled(g)) },
			"behind a body": func(s *socket) {
				s.send(request{method: "POST", path: videos, key: g.key, body: videoBody}.text("1.1") + test.text + smuggled(g))
				s.answer()
			},
			"behind a read":        func(s *socket) { s.send(balance + test.text + smuggled(g)); s.answer() },
			"on a kept connection": func(s *socket) { s.send(balance); s.answer(); s.send(test.text + smuggled(g)) },
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				s := dial(t, address)
				send(s)
				a := s.answer()
				if a.status != test.status || a.header.Get("Connection") != "close" {
					t.Errorf("%d, Connection: %q, %s", a.status, a.header.Get("Connection"), a.body)
				}
				s.finish()
				s.silence()
			})
		}
	}
}

// TestOptionsOfTheServer checks that OPTIONS * keeps the connection.
func TestOptionsOfTheServer(t *testing.T) {
	t.Parallel()
	s := dial(t, newGateway(t).serve())
	for range 2 {
		s.send(request{method: "OPTIONS", path: "*"}.text("1.1"))
		if a := s.answer(); a.status != http.StatusOK || a.body != "" || a.header.Get("Connection") == "close" {
			t.Errorf("%d, Connection: %q, %s", a.status, a.header.Get("Connection"), a.body)
		}
	}
}

// TestEncodedBody checks that an encoded body is refused with the name of its encoding and has no
// effect.
func TestEncodedBody(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	for name, test := range map[string]struct {
		codings []string
		named   string // empty: it is taken
	}{
		"gzip":               {[]string{"gzip"}, "gzip"},
		"a coding of ours":   {[]string{"x-secret"}, "x-secret"},
		"the second of them": {[]string{"identity, br"}, "br"},
		"the second header":  {[]string{"identity", "deflate"}, "deflate"},
		"identity":           {[]string{"Identity"}, ""},
		"twice identity":     {[]string{"identity, identity"}, ""},
		"an empty one":       {[]string{""}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for route, r := range g.bodies() {
				if route == "grant" || route == "account change" || route == "key made" {
					continue // they work on the same thing in each case
				}
				r.header = http.Header{"Content-Encoding": test.codings}
				a := g.send(r)
				if test.named == "" {
					if a.status >= 300 {
						t.Errorf("%s: %d %s", route, a.status, a.body)
					}
					continue
				}
				a.wantError(t, 415, "invalid_request_error", test.named)
				if a.header.Get("Accept-Encoding") != "identity" {
					t.Errorf("%s: %v", route, a.header)
				}
			}
			if test.named == "" {
				return
			}
			header := http.Header{"Content-Encoding": test.codings}
			g.send(request{method: "POST", path: "/v1/music/generations", key: g.key, body: `{}`, header: header}).
				wantErrorB(t, 415, "invalid_request", "invalid_request", "", test.named)
			if a := g.send(request{method: "POST", path: "/v1/uploads/images", key: g.key, body: "--a--", header: header}); a.status != 415 || a.at("error", "type") != "invalid_request" {
				t.Errorf("an upload: %d %s", a.status, a.body)
			}
			g.send(request{path: "/v1/tasks", key: g.key, header: header}).wantStatus(t, 200, "a read")
		})
	}
}

// TestIdleTimeout checks that a connection without a request is kept for the configured time
// after an answer.
func TestIdleTimeout(t *testing.T) {
	t.Parallel()
	g := newGateway(t, func(c *api.Config) { c.IdleTimeout = 50 * time.Millisecond })
	s := dial(t, g.serve())
	s.send(request{path: "/healthz"}.text("1.1"))
	if a := s.answer(); a.status != http.StatusOK || a.header.Get("Connection") == "close" {
		t.Fatalf("%d, Connection: %q", a.status, a.header.Get("Connection"))
	}
	s.silence()
}
