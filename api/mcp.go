package api

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api/mcp"
	"github.com/mediagate/mediagate/client"
)

const (
	mcpPath = "/mcp"
	mcpBody = 28 << 20        // a picture of 20 MiB in base64, and the rest of the message
	mcpTime = 2 * time.Minute // tools answer within 45 s
	// commentEvery is how often a silent stream sends a comment, which keeps it open.
	commentEvery = 10 * time.Second

	typeJSON   = "application/json"
	typeEvents = "text/event-stream"
)

// handleMCP answers a message of the Model Context Protocol over streamable HTTP, without
// sessions. The tools call this same API as the caller, within the process. A client that leaves
// ends the wait for its task, but not the task.
func (s *Server) handleMCP(c *call) error {
	if c.credential.session {
		return errNoHeader // only keys may use MCP: the pages of the console have no use for it
	}
	if s.isForeign(c.Request()) {
		return mediagate.Errorf(
			mediagate.KindForbidden, "the Origin %s may not use this address", mediagate.Quote(c.Request().Header.Get("Origin")),
		)
	}
	if kind, _, err := mime.ParseMediaType(c.Request().Header.Get("Content-Type")); err != nil || kind != typeJSON {
		return c.refuseMCP(http.StatusUnsupportedMediaType, "Content-Type must be "+typeJSON)
	}
	accept := c.Request().Header.Values("Accept")
	asEvents := accepts(accept, typeEvents)
	if !asEvents && !accepts(accept, typeJSON) {
		return c.refuseMCP(http.StatusNotAcceptable, "Accept must allow "+typeJSON+" or "+typeEvents)
	}
	// The body is one message, parsed as strictly as others. A batch could hold thousands of calls.
	raw, _, err := s.readBody(c, nil)
	if err == nil {
		err = checkMessage(raw)
	}
	if err != nil {
		return err
	}
	c.requestPermit.Release() // a waiting call holds nothing that others need
	s.serveMCP(c, raw, asEvents)
	return nil
}

// serveMCP passes a message to the SDK. It rewrites the SDK's refusals into our envelope.
func (s *Server) serveMCP(c *call, raw []byte, asEvents bool) {
	ctx, cancel := context.WithTimeout(c.Request().Context(), mcpTime)
	defer cancel()
	defer context.AfterFunc(c.server, cancel)()
	request := c.Request().Clone(ctx)
	request.Body = io.NopCloser(bytes.NewReader(raw))
	request.Header.Set("Accept", typeJSON+", "+typeEvents) // the SDK requires both; asEvents has the client's choice
	answer := &mcpResponse{out: c.paced(mcpTime)}
	if asEvents {
		c.Response().Header().Set("X-Accel-Buffering", "no") // proxies would hold the events back
	}
	server := mcp.NewServer(s.cfg.Version, &client.Client{
		URL: "http://gateway", Key: c.credential.token, HTTP: &http.Client{Transport: loopback{s, c.Request()}},
	}, func(tool context.Context) (context.Context, context.CancelFunc) {
		answer.begin()
		tool, cancel := context.WithCancel(tool)
		left := context.AfterFunc(ctx, cancel) // the SDK does this for the newest protocol only
		return tool, func() {
			left()
			cancel()
		}
	})
	sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{
		Stateless: true, JSONResponse: !asEvents, Logger: s.log, MaxRequestBodyBytes: mcpBody,
		DisableLocalhostProtection:   true, // calls need a key, and a proxy on the same machine is common
		PropagateRequestCancellation: true,
	}).ServeHTTP(answer, request)
	answer.finish()
	if answer.refused != 0 {
		_ = c.refuseMCP(answer.refused, plainRefusal(answer.reason.String()))
	}
}

// refuseMCP answers in our envelope with a status that no kind of error has.
func (c *call) refuseMCP(status int, message string) error {
	return c.json(status, envelopeBody{Error: errorA{
		Code: status, Message: message, Type: wordInvalid, Reason: renderings[mediagate.KindInvalid].reason,
		RequestID: c.requestID,
	}})
}

// plainRefusal returns the SDK's refusal without the terms of Go packages.
func plainRefusal(text string) string {
	if text = strings.TrimSpace(text); strings.Contains(text, "json") || strings.Contains(text, "marshal") {
		return errMessage.Message
	}
	return text
}

var errMessage = mediagate.Invalid("", "the body must be one JSON-RPC 2.0 message of the Model Context Protocol")

// checkMessage checks the types of those parts of a message for which the SDK's error would name
// Go types.
func checkMessage(raw []byte) error {
	var m struct {
		Method string
		Params *struct {
			Name            string
			Meta            map[string]any `json:"_meta"`
			ProtocolVersion string
			Capabilities    map[string]any
			ClientInfo      *struct{ Name, Title, Version string }
		}
	}
	if json.Unmarshal(raw, &m) != nil {
		return errMessage
	}
	return nil
}

// isForeign reports whether the request comes from a page of an origin that is neither ours nor
// allowed to use the API.
func (s *Server) isForeign(r *http.Request) bool {
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return false
	}
	own := originOf(s.cfg.PublicURL)
	// Under any other name a page may reach us by DNS rebinding.
	if own == "" && isOwnMachine((&url.URL{Host: r.Host}).Hostname()) {
		own = strings.ToLower("http://" + r.Host)
	}
	return slices.ContainsFunc(origins, func(origin string) bool {
		return origin != own && !slices.Contains(s.cfg.CORSOrigins, origin) && !slices.Contains(s.cfg.CORSOrigins, "*")
	})
}

// accepts reads Accept (RFC 9110): the most specific range that covers the type decides. Without
// the header every type is accepted.
func accepts(values []string, wanted string) bool {
	if strings.TrimSpace(strings.Join(values, "")) == "" {
		return true
	}
	class, _, _ := strings.Cut(wanted, "/")
	ranges := []string{"*/*", class + "/*", wanted} // the most specific last
	best, accepted := -1, false
	for text := range strings.SplitSeq(strings.Join(values, ","), ",") {
		name, parameters, err := mime.ParseMediaType(text)
		if at := slices.Index(ranges, name); err == nil && at > best {
			q, bad := strconv.ParseFloat(parameters["q"], 64)
			best, accepted = at, bad != nil || q > 0
		}
	}
	return accepted
}

// mcpResponse writes the SDK's answer. It sends the header of a stream when the tool begins, and
// comments while the stream is silent. It holds back refusals in plain text, which serveMCP
// rewrites.
type mcpResponse struct {
	out http.ResponseWriter

	mu      sync.Mutex
	silent  *time.Timer // fires for the next comment; nil before the stream has begun
	ended   bool
	refused int // the status of a refusal; 0 for none
	reason  strings.Builder
}

// Header implements http.ResponseWriter.
func (a *mcpResponse) Header() http.Header { return a.out.Header() }

// WriteHeader implements http.ResponseWriter.
func (a *mcpResponse) WriteHeader(status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if status >= http.StatusBadRequest && !strings.HasPrefix(a.out.Header().Get("Content-Type"), typeJSON) {
		a.refused = status
		return
	}
	a.out.WriteHeader(status)
}

func (a *mcpResponse) Write(b []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.refused != 0 {
		return a.reason.Write(b)
	}
	if a.silent != nil {
		a.silent.Reset(commentEvery)
	}
	return a.out.Write(b)
}

// FlushError lets http.ResponseController flush.
func (a *mcpResponse) FlushError() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return http.NewResponseController(a.out).Flush()
}

// begin sends the header of a stream.
func (a *mcpResponse) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.silent != nil || a.refused != 0 || a.out.Header().Get("Content-Type") != typeEvents {
		return
	}
	a.out.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(a.out).Flush()
	a.silent = time.AfterFunc(commentEvery, a.comment)
}

// comment sends a comment, which clients ignore.
func (a *mcpResponse) comment() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return
	}
	_, _ = io.WriteString(a.out, ":\n\n")
	_ = http.NewResponseController(a.out).Flush()
	a.silent.Reset(commentEvery)
}

// finish stops the comments.
func (a *mcpResponse) finish() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
	if a.silent != nil {
		a.silent.Stop()
	}
}

// inProcess is the context key of requests from within the process. Such a request has no
// connection that could be half closed, so its context ends only when the caller has left.
type inProcess struct{}

// loopback carries the calls of a request's tools to the server that answers the request.
type loopback struct {
	server *Server
	from   *http.Request
}

// RoundTrip answers the call on behalf of the client that sent the request.
func (l loopback) RoundTrip(r *http.Request) (answer *http.Response, err error) {
	defer func() {
		// The panic is http.ErrAbortHandler. net/http would cut the connection; here it would end the process.
		if recover() != nil {
			answer, err = nil, errCut
		}
	}()
	// The call has no connection of its own, or it would count twice in the limits on connections.
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), inProcess{}, true))
	defer cancel()
	defer context.AfterFunc(r.Context(), cancel)()
	r = r.Clone(ctx)
	r.RemoteAddr, r.RequestURI, r.Host = l.from.RemoteAddr, r.URL.RequestURI(), l.from.Host
	if forwarded := l.from.Header.Values("X-Forwarded-For"); len(forwarded) > 0 {
		r.Header["X-Forwarded-For"] = forwarded
	}
	a := &recorder{header: http.Header{}, status: http.StatusOK}
	l.server.ServeHTTP(a, r)
	return &http.Response{
		StatusCode: a.status, Header: a.header, Body: io.NopCloser(&a.body), ContentLength: int64(a.body.Len()), Request: r,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

// recorder keeps an answer in memory.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *recorder) Header() http.Header         { return a.header }
func (a *recorder) WriteHeader(status int)      { a.status = status }
func (a *recorder) Write(b []byte) (int, error) { return a.body.Write(b) }
