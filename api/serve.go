package api

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api/listener"
	"github.com/mediagate/mediagate/internal/limit"
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

// maxHeaderBytes is what net/http reads of a header, give or take a few KiB.
const maxHeaderBytes = 64 << 10

// listeners are what Serve answers on, each with the same bounds. Connections are
// counted at each by itself: a flood of clients keeps no operator out.
func (s *Server) listeners(l net.Listener) []httpServer {
	open := func(l net.Listener, all *listener.Connections, base context.Context) httpServer {
		return httpServer{&http.Server{
			Handler: s, ReadHeaderTimeout: headerTimeout, ReadTimeout: requestTimeout, WriteTimeout: answerTimeout,
			IdleTimeout: s.cfg.IdleTimeout, MaxHeaderBytes: maxHeaderBytes,
			DisableGeneralOptionsHandler: true, // for it would keep every connection
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
// health and the console, which are at both.
func (s *Server) servedHere(r *http.Request, route string) bool {
	if s.cfg.AdminListener == nil || route == healthPath || route == readyPath || strings.HasPrefix(route, consolePath) {
		return true
	}
	return strings.HasPrefix(route, admin+"/") == (r.Context().Value(throughAdmin{}) != nil)
}

// newConnections bounds those of one listener.
func (s *Server) newConnections(working, spare *limit.Limit) *listener.Connections {
	return listener.New(listener.Config{
		Working: working, Spare: spare, Most: s.cfg.Limits.Connections.Figures().Capacity, Beyond: s.cfg.Limits.Spare.Figures().Capacity,
		Proxies: s.cfg.TrustedProxies, Logger: s.cfg.Logger,
	})
}

// begin lets a call begin, unless its connection was closed for another: nothing
// is begun then of which nobody would hear. It reports whether the connection is
// beyond the cap; without a connection, as in a test, it is not.
func (s *Server) begin(r *http.Request) (beyond bool) {
	c := listener.Of(r)
	if c == nil {
		return false
	}
	there, beyond := c.Begin()
	if beyond {
		c.Refuse()
	}
	if !there {
		panic(http.ErrAbortHandler)
	}
	return beyond
}

var errConnections = &mediagate.Error{Kind: mediagate.KindUnavailable, Message: "too many connections"}
