package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mediagate/mediagate/api"
)

// smuggled is what hides in the body of another request. Its answer is the only
// one with this path in it.
func smuggled(g *gateway) string { return request{path: "/v1/smuggled", key: g.key}.text("1.1") }

// TestFramingInDoubt sends requests whose end two readers may see at different
// places. Whatever follows is never taken for a request: the connection ends.
func TestFramingInDoubt(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	g.grant("10000")
	address := g.serve()
	submit := request{method: "POST", path: videos, key: g.key}
	chunks := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(videoBody), videoBody)
	length := fmt.Sprintf("Content-Length: %d", len(chunks))
	for name, test := range map[string]struct {
		text   string
		status int
		says   string
	}{
		"both, the length first":     {submit.text("1.1", length, "Transfer-Encoding: chunked") + chunks, 400, "Content-Length and Transfer-Encoding"},
		"both, the length last":      {submit.text("1.1", "Transfer-Encoding: chunked", length) + chunks, 400, "Content-Length and Transfer-Encoding"},
		"both, in other letters":     {submit.text("1.1", "tRANSFER-encoding: CHUNKED", strings.ToLower(length)) + chunks, 400, "Content-Length and Transfer-Encoding"},
		"both, a length of nothing":  {submit.text("1.1", "Content-Length: 0", "Transfer-Encoding: chunked") + chunks, 400, "Content-Length and Transfer-Encoding"},
		"both, kept alive":           {submit.text("1.1", "Connection: keep-alive", length, "Transfer-Encoding: chunked") + chunks, 400, "Content-Length and Transfer-Encoding"},
		"both, where nothing is":     {request{method: "POST", path: "/v1/nothing", key: g.key}.text("1.1", length, "Transfer-Encoding: chunked") + chunks, 400, "Content-Length and Transfer-Encoding"},
		"both, without a key":        {request{method: "POST", path: videos}.text("1.1", length, "Transfer-Encoding: chunked") + chunks, 400, "Content-Length and Transfer-Encoding"},
		"both, to a read":            {request{path: "/v1/tasks", key: g.key}.text("1.1", length, "Transfer-Encoding: chunked") + chunks, 400, "Content-Length and Transfer-Encoding"},
		"both, to the server itself": {request{method: "OPTIONS", path: "*"}.text("1.1", length, "Transfer-Encoding: chunked") + chunks, 400, "Content-Length and Transfer-Encoding"},
		"both, bare line feeds":      {strings.ReplaceAll(submit.text("1.1", length, "Transfer-Encoding: chunked"), "\r\n", "\n") + chunks, 400, "Content-Length and Transfer-Encoding"},
		"both, folded":               {submit.text("1.1", "Content-Length:\r\n "+strings.TrimPrefix(length, "Content-Length: "), "Transfer-Encoding: chunked") + chunks, 400, "Content-Length and Transfer-Encoding"},
		"HTTP/1.0 in chunks":         {submit.text("1.0", "Connection: keep-alive", "Transfer-Encoding: chunked") + chunks, 400, ""},
		"HTTP/1.0, a read in chunks": {request{path: "/v1/tasks", key: g.key}.text("1.0", "Connection: keep-alive", "Transfer-Encoding: chunked"), 200, ""},
		"HTTP/1.0 and both":          {submit.text("1.0", "Connection: keep-alive", "Transfer-Encoding: chunked", length) + chunks, 400, "Content-Length and Transfer-Encoding"},
		"HTTP/1.0, another coding":   {request{path: "/v1/tasks", key: g.key}.text("1.0", "Connection: keep-alive", "Transfer-Encoding: identity"), 200, ""},
	} {
		for how, before := range map[string]string{
			"first":                 "",
			"on a kept connection":  request{path: "/v1/balance", key: g.key}.text("1.1"),
			"after a body":          request{method: "POST", path: videos, key: g.key, body: videoBody}.text("1.1"),
			"after a body in parts": submit.text("1.1", "Transfer-Encoding: chunked") + chunks,
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				s := dial(t, address)
				if before != "" {
					s.send(before)
					if a := s.answer(); a.status != http.StatusOK || a.header.Get("Connection") == "close" {
						t.Fatalf("before it: %d, Connection: %q, %s", a.status, a.header.Get("Connection"), a.body)
					}
				}
				s.send(test.text + smuggled(g))
				a := s.answer()
				if a.status != test.status || a.header.Get("Connection") != "close" || !strings.Contains(a.body, test.says) {
					t.Errorf("%d, Connection: %q, %s", a.status, a.header.Get("Connection"), a.body)
				}
				s.finish()
				s.silence()
			})
		}
	}
}

// TestPipelinedFramingInDoubt hides the header of a request behind another one,
// sent in one piece: at the latest the connection ends after the answer.
func TestPipelinedFramingInDoubt(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	g.grant("10000")
	address := g.serve()
	read := request{path: "/v1/balance", key: g.key}.text("1.1")
	chunks := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(videoBody), videoBody)
	both := request{method: "POST", path: videos, key: g.key}.text("1.1", fmt.Sprintf("Content-Length: %d", len(chunks)), "Transfer-Encoding: chunked")
	old := request{path: "/v1/balance", key: g.key}.text("1.0", "Connection: keep-alive", "Transfer-Encoding: chunked")
	inChunks := request{method: "POST", path: videos, key: g.key}.text("1.1", "Transfer-Encoding: chunked") + chunks
	for name, text := range map[string]string{
		"both after a read": read + both + chunks, "both after chunks": inChunks + both + chunks,
		"HTTP/1.0 after a read": read + old, "HTTP/1.0 after chunks": inChunks + old,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := dial(t, address)
			s.send(text + smuggled(g))
			s.answer()
			if a := s.answer(); a.header.Get("Connection") != "close" {
				t.Errorf("%d, the connection stays: %s", a.status, a.body)
			}
			s.finish()
			s.silence()
		})
	}
}

// TestChunksKeepTheConnection: a body in chunks ends where all see it end.
func TestChunksKeepTheConnection(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	g.grant("10000")
	s := dial(t, g.serve())
	text := request{method: "POST", path: videos, key: g.key}.text("1.1", "Transfer-Encoding: chunked", "Trailer: X-Sum") +
		fmt.Sprintf("%x\r\n%s\r\n0\r\nX-Sum: 1\r\n\r\n", len(videoBody), videoBody)
	for range 3 {
		s.send(text)
		a := s.answer()
		a.taskID(t)
		if a.header.Get("Connection") == "close" {
			t.Fatal("the connection ends")
		}
	}
	for range 2 { // HTTP/1.0 may keep its connection too
		s.send(request{path: "/v1/balance", key: g.key}.text("1.0", "Connection: keep-alive"))
		if a := s.answer(); a.status != http.StatusOK || a.header.Get("Connection") == "close" {
			t.Fatalf("%d, Connection: %q", a.status, a.header.Get("Connection"))
		}
	}
}

// TestServerRefuses: what never becomes a call is told in the envelope of its
// path, and the connection ends.
func TestServerRefuses(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	address := g.serve()
	long := "X-Long: " + strings.Repeat("a", 100_000)
	for name, test := range map[string]struct {
		text   string
		status int
		says   string
		music  bool
	}{
		"too long a header":    {request{path: "/v1/tasks", key: g.key}.text("1.1", long), 431, "request header fields too large", false},
		"the same of music":    {request{path: "/v1/music/tasks/a", key: g.key}.text("1.1", long), 431, "request header fields too large", true},
		"too long a line":      {request{path: "/v1/tasks?a=" + strings.Repeat("a", 100_000)}.text("1.1"), 431, "request header fields too large", false},
		"no request":           {"hello\r\n\r\n", 400, "bad request", false},
		"no host":              {"GET /v1/tasks HTTP/1.1\r\n\r\n", 400, "missing required Host header", false},
		"two hosts":            {request{path: "/v1/music/tasks/a"}.text("1.1", "Host: another"), 400, "bad request", true},
		"no such version":      {request{path: "/v1/tasks"}.text("2.1"), 505, "unsupported protocol version", false},
		"another coding":       {request{method: "POST", path: videos}.text("1.1", "Transfer-Encoding: gzip"), 501, "Unsupported transfer encoding", false},
		"two lengths":          {request{method: "POST", path: videos}.text("1.1", "Content-Length: 1", "Content-Length: 2"), 400, "bad request", false},
		"a length of a sign":   {request{method: "POST", path: videos}.text("1.1", "Content-Length: +1"), 400, "bad request", false},
		"no such expectation":  {request{method: "POST", path: videos}.text("1.1", "Expect: the-unexpected"), 417, "expectation failed", false},
		"no name of a field":   {request{path: "/v1/tasks"}.text("1.1", "Bad Name: a"), 400, "", false},
		"no value of a field":  {request{path: "/v1/tasks"}.text("1.1", "X-A: \x01"), 400, "bad request", false},
		"TLS where there none": {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400, "bad request", false},
	} {
		for _, kept := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, kept %v", name, kept), func(t *testing.T) {
				t.Parallel()
				s := dial(t, address)
				if kept {
					s.send(request{path: "/healthz"}.text("1.1"))
					s.answer()
				}
				s.send(test.text)
				a := s.answer()
				if a.status != test.status || a.header.Get("Connection") != "close" {
					t.Fatalf("%d, Connection: %q, %s", a.status, a.header.Get("Connection"), a.body)
				}
				word, code := "invalid_request_error", any(float64(test.status))
				if test.music {
					word, code = "invalid_request", "invalid_request"
				}
				if a.at("error", "type") != word || a.at("error", "code") != code || !strings.Contains(a.body, test.says) {
					t.Errorf("want %s and %q in %s", word, test.says, a.body)
				}
				if id := a.header.Get("X-Request-Id"); id == "" || a.at("error", "request_id") != id || a.header.Get("Content-Type") != "application/json" {
					t.Errorf("header %v", a.header)
				}
			})
		}
	}
}

// TestOptionsOfTheServer: who asks whether the server lives keeps the connection.
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

// TestEncodedBody: a body that is encoded is refused by the name of its coding,
// and nothing comes of it.
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
			if a := g.send(request{path: "/v1/tasks", key: g.key, header: header}); a.status != 200 {
				t.Errorf("a read: %d %s", a.status, a.body)
			}
		})
	}
}

// TestIdleTimeout: a connection without a request is kept for as long as the
// setting says, once it has been answered.
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
