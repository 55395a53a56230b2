package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api/listener"
	"github.com/mediagate/mediagate/limit"
)

// httpServer is a listener and the HTTP server that answers on it. There are two where
// the admin API has one of its own.
type httpServer struct {
	*http.Server
	listener net.Listener
}

// throughAdmin is the key under which the context of a request says that it came
// in by the admin API's own listener.
type throughAdmin struct{}

// listeners are what Serve answers on, each with the same bounds. Connections are
// counted at each by itself: a flood of clients keeps no operator out.
func (s *Server) listeners(l net.Listener) []httpServer {
	open := func(l net.Listener, all *listener.Connections, base context.Context) httpServer {
		return httpServer{&http.Server{
			Handler: s, ReadHeaderTimeout: headerTimeout, ReadTimeout: requestTimeout, WriteTimeout: answerTimeout,
			IdleTimeout: s.cfg.IdleTimeout, MaxHeaderBytes: listener.MaxHeaderBytes,
			DisableGeneralOptionsHandler: true, // for it would not look at the framing
			ConnContext:                  listener.WithConnection, ConnState: listener.NoteState, ErrorLog: listener.NewServerLog(s.log),
			BaseContext: func(net.Listener) context.Context { return base },
		}, all.Listen(l)}
	}
	listeners := []httpServer{open(l, s.connections, context.Background())}
	if s.cfg.AdminListener != nil {
		operators := s.newConnections(nil, nil)
		listeners = append(listeners, open(s.cfg.AdminListener, operators, context.WithValue(context.Background(), throughAdmin{}, true)))
	}
	return listeners
}

// shutDown lets the requests under way finish, at all listeners at once. What has not
// when ctx ends is cut off, after told was called.
func shutDown(ctx context.Context, listeners []httpServer, told func()) error {
	errs := make([]error, len(listeners))
	var stopping sync.WaitGroup
	for i, d := range listeners {
		stopping.Go(func() { errs[i] = d.Shutdown(ctx) })
	}
	stopping.Wait()
	err := errors.Join(errs...)
	if err != nil {
		told()
		for _, d := range listeners {
			_ = d.Close()
		}
	}
	return err
}

// servedHere reports whether the listener by which a request came leads to the route.
// With a listener of its own the admin API is there and nowhere else, beside
// health, which is at both.
func (s *Server) servedHere(r *http.Request, route string) bool {
	if s.cfg.AdminListener == nil || route == healthPath || route == readyPath {
		return true
	}
	return strings.HasPrefix(route, admin+"/") == (r.Context().Value(throughAdmin{}) != nil)
}

// newConnections bounds those of one listener.
func (s *Server) newConnections(working, spare *limit.Limit) *listener.Connections {
	return listener.New(listener.Config{
		Working: working, Spare: spare, Most: s.cfg.Limits.Connections.Figures().Capacity, Beyond: s.cfg.Limits.Spare.Figures().Capacity,
		Proxies: s.cfg.TrustedProxies, Refusal: s.refusal, Logger: s.cfg.Logger,
	})
}

// begin lets a call begin, unless its connection was closed for another: nothing
// is begun then of which nobody would hear. It reports whether the connection is
// beyond the cap, and how sure the end of the request is; without a connection, as
// in a test, all is well.
func (s *Server) begin(r *http.Request) (beyond bool, end listener.Framing) {
	c := listener.Of(r)
	if c == nil {
		return false, listener.Sure
	}
	end = listener.FramingOf(r, c.TakeHead())
	there, beyond := c.Begin()
	if beyond {
		c.Refuse()
	}
	if !there {
		panic(http.ErrAbortHandler)
	}
	return beyond, end
}

var errConnections = &mediagate.Error{Kind: mediagate.KindUnavailable, Message: "too many connections"}

var errTwoLengths = &mediagate.Error{
	Kind: mediagate.KindInvalid, Message: "a request must not have both Content-Length and Transfer-Encoding",
}

// refusal words an answer of net/http anew, in the envelope of the path that the
// header names.
func (s *Server) refusal(head, piece []byte) []byte {
	said, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(piece)), nil)
	if err != nil || said.StatusCode < http.StatusBadRequest {
		return piece
	}
	text, err := io.ReadAll(said.Body)
	_ = said.Body.Close()
	if err != nil {
		return piece
	}
	status := http.StatusText(said.StatusCode)
	e := &mediagate.Error{Message: strings.TrimPrefix(strings.TrimPrefix(string(text), fmt.Sprintf("%d %s", said.StatusCode, status)), ": ")}
	_, path, _ := strings.Cut(string(head), " ")
	c := &call{envelope: envelopeFor(path), requestID: s.newID("req_")}
	r := rendering{status: said.StatusCode, word: wordInvalid, wordB: "invalid_request", codeB: "invalid_request"}
	body, err := json.Marshal(envelopeOf(c, r, e, messageOf(e, r)))
	if err != nil {
		return piece
	}
	s.log.LogAttrs(context.Background(), slog.LevelInfo, "request refused",
		slog.Int("status", said.StatusCode), slog.String("request", c.requestID))
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: %d\r\nX-Request-Id: %s\r\n\r\n%s\n",
		said.StatusCode, status, len(body)+1, c.requestID, body)
}
