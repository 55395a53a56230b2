package api

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mediagate/mediagate/client"
	"github.com/mediagate/mediagate/mcp"
)

const (
	mcpPath = "/mcp"
	mcpBody = 28 << 20 // a picture of 20 MiB in base64, and the rest of the message
	mcpTime = 20 * time.Minute
)

// handleMCP answers a message of the Model Context Protocol over streamable HTTP, without
// sessions. Its tools call this very API, within the process, as the caller. A client that
// leaves ends the wait for its task, not the task.
func (s *Server) handleMCP(c *call) error {
	if c.credential.session {
		return errNoHeader // a page of another program: keys only
	}
	// One message, as strict as any body: a batch would be thousands of calls for one.
	raw, _, err := s.readBody(c, nil)
	if err != nil {
		return err
	}
	c.place.Release() // who waits holds nothing that others need
	ctx, cancel := context.WithTimeout(c.Request().Context(), mcpTime)
	defer cancel()
	defer context.AfterFunc(c.server, cancel)()
	request := c.Request().WithContext(ctx)
	request.Body = io.NopCloser(bytes.NewReader(raw))
	server := mcp.NewServer(s.cfg.Version, &client.Client{
		URL: "http://gateway", Key: c.credential.token, HTTP: &http.Client{Transport: loopback{s, c.Request()}},
	})
	sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{
		Stateless: true, Logger: s.log, MaxRequestBodyBytes: mcpBody,
		DisableLocalhostProtection:   true, // a page that got here by another name has no key, and proxies stand on the same machine
		PropagateRequestCancellation: true,
	}).ServeHTTP(&pacedWriter{
		ResponseWriter: c.Response(), control: http.NewResponseController(c.Response().Writer), end: time.Now().Add(mcpTime),
	}, request)
	return nil
}

// loopback carries the calls of a request's tools to the server that answers it.
type loopback struct {
	server *Server
	from   *http.Request
}

// RoundTrip answers the call as one of whoever sent the request.
func (l loopback) RoundTrip(r *http.Request) (answer *http.Response, err error) {
	defer func() {
		if recover() != nil { // a connection that net/http would cut: here it would end the process
			answer, err = nil, errCut
		}
	}()
	// The call is on no connection: what belongs to one must not count it twice.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer context.AfterFunc(r.Context(), cancel)()
	r = r.Clone(ctx)
	r.RemoteAddr, r.RequestURI, r.Host = l.from.RemoteAddr, r.URL.RequestURI(), l.from.Host
	if forwarded := l.from.Header.Values("X-Forwarded-For"); len(forwarded) > 0 {
		r.Header["X-Forwarded-For"] = forwarded
	}
	a := &recorded{header: http.Header{}, status: http.StatusOK}
	l.server.ServeHTTP(a, r)
	return &http.Response{
		StatusCode: a.status, Header: a.header, Body: io.NopCloser(&a.body), ContentLength: int64(a.body.Len()), Request: r,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

// recorded is an answer that is kept.
type recorded struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *recorded) Header() http.Header         { return a.header }
func (a *recorded) WriteHeader(status int)      { a.status = status }
func (a *recorded) Write(b []byte) (int, error) { return a.body.Write(b) }
