package app

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mediagate/mediagate/api"
)

// TestOpsChecksOnceASecond checks that any number of requests for a worker's health costs one
// check a second.
func TestOpsChecksOnceASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var looks int
		var away error
		handler := opsHandler(api.NewRecent(time.Now, func() error {
			looks++
			return away
		}), http.NotFoundHandler())
		ask := func() int {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", http.NoBody))
			return w.Code
		}
		for range 1000 {
			if code := ask(); code != http.StatusOK {
				t.Fatal(code)
			}
		}
		if looks != 1 {
			t.Errorf("%d looks", looks)
		}
		away = errors.New("away")
		time.Sleep(time.Second)
		if code := ask(); code != http.StatusServiceUnavailable || looks != 2 {
			t.Errorf("a second later: %d after %d looks", code, looks)
		}
	})
}

// pipes is a listener within the process, whose connections keep to a bubble's
// clock.
type pipes struct {
	conns chan net.Conn
	done  context.Context
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done.Done():
		return nil, net.ErrClosed
	}
}
func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p pipes) dial() net.Conn {
	client, server := net.Pipe()
	p.conns <- server
	return client
}

// TestOpsServerBounds checks that a client that sends nothing, sends slowly or reads nothing
// cannot keep a connection to the ops server.
func TestOpsServerBounds(t *testing.T) {
	t.Parallel()
	const line = "GET /healthz HTTP/1.1\r\nHost: x\r\n"
	for name, test := range map[string]struct {
		send string
		most time.Duration
	}{
		"nothing":             {"", opsHeaderTimeout},
		"half a header":       {line, opsHeaderTimeout},
		"half a body":         {line + "Content-Length: 9\r\n\r\nx", opsRequestTimeout},
		"nothing more":        {line + "\r\n", opsIdleTimeout},
		"who takes no answer": {"-", opsAnswerTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				listener := pipes{make(chan net.Conn), ctx}
				handler := opsHandler(api.NewRecent(time.Now, func() error { return nil }), http.NotFoundHandler())
				server := opsServer(ctx, handler, slog.New(slog.DiscardHandler))
				go func() { _ = server.Serve(listener) }()
				conn, began := listener.dial(), time.Now()
				if test.send == "-" {
					_, _ = io.WriteString(conn, line+"\r\n")
					time.Sleep(opsAnswerTimeout + time.Second)
					began = time.Now()
				} else {
					go func() { _, _ = io.WriteString(conn, test.send) }()
				}
				_, _ = io.Copy(io.Discard, conn) // until the server hangs up
				if took := time.Since(began); took > test.most+time.Second {
					t.Errorf("it hung up after %s", took)
				}
				_ = conn.Close()
				cancel()
				_ = server.Close()
			})
		})
	}
	t.Run("a long header", func(t *testing.T) {
		t.Parallel()
		server := httptest.NewUnstartedServer(nil)
		server.Config = opsServer(t.Context(), opsHandler(api.NewRecent(time.Now, func() error { return nil }), http.NotFoundHandler()), slog.New(slog.DiscardHandler))
		server.Start()
		defer server.Close()
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
		must(t, err)
		defer conn.Close()
		go func() { _, _ = io.WriteString(conn, line+"X: "+strings.Repeat("x", 64<<10)+"\r\n\r\n") }()
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		must(t, err)
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("status %d", answer.StatusCode)
		}
	})
}
