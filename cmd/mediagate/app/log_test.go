package app

import (
	"bufio"
	"bytes"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"time"
)

type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// TestVendorWritesNotIntoTheLog checks that bytes after a vendor's answer, such as the request's
// own credentials, are reported by net/http but not repeated. It runs alone, since the logger
// belongs to the process.
func TestVendorWritesNotIntoTheLog(t *testing.T) { //nolint:paralleltest // see above
	writer, flags, before := log.Writer(), log.Flags(), slog.Default()
	t.Cleanup(func() {
		slog.SetDefault(before)
		log.SetOutput(writer)
		log.SetFlags(flags)
	})
	var text lines
	SetLogger(NewLogger(Defaults(), &text))

	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	wrote, idle := make(chan struct{}), make(chan struct{})
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		req, err := http.ReadRequest(bufio.NewReader(conn))
		if err != nil {
			return
		}
		<-wrote // net/http keeps no connection that answers long before it has noted that the request is written
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
		<-idle
		_, _ = io.WriteString(conn, `you sent "me" `+req.Header.Get("Authorization"))
		_ = conn.Close()
	}()
	client := &http.Client{Transport: &http.Transport{}}
	trace := &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) { close(wrote) },
		PutIdleConn:  func(error) { close(idle) },
	}
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodGet, "http://"+listener.Addr().String(), nil)
	must(t, err)
	req.Header.Set("Authorization", "Bearer the-secret")
	resp, err := client.Do(req)
	must(t, err)
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	for end := time.Now().Add(30 * time.Second); !strings.Contains(text.String(), "\n"); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("no line")
		}
	}
	if got := text.String(); strings.Contains(got, "the-secret") || !strings.Contains(got, `"level":"INFO","msg":"Unsolicited response`) {
		t.Errorf("logged: %s", got)
	}
}
