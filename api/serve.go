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

// httpServer is a listener with its HTTP server. There are two if the admin API has its own
// listener.
type httpServer struct {
	*http.Server
	listener net.Listener
}

// throughAdmin is the context key of requests that came in by the admin API's own listener.
type throughAdmin struct{}

// maxHeaderBytes bounds the header of a request. net/http reads a few KiB more.
const maxHeaderBytes = 64 << 10

// listeners returns the listeners that Serve answers on, all with the same bounds. Each counts only
// its own connections, so that a flood of clients does not keep operators out.
func (s *Server) listeners(l net.Listener) []httpServer {
	open := func(l net.Listener, all *listener.Connections, base context.Context) httpServer {
		return httpServer{&http.Server{
			Handler: s, ReadHeaderTimeout: headerTimeout, ReadTimeout: requestTimeout, WriteTimeout: answerTimeout,
			IdleTimeout: s.cfg.IdleTimeout, MaxHeaderBytes: maxHeaderBytes,
			DisableGeneralOptionsHandler: true, // that handler would keep every connection open
			ConnContext:                  listener.WithConnection, ConnState: listener.NoteState,
			ErrorLog:    listener.NewServerLog(s.log),
			BaseContext: func(net.Listener) context.Context { return base },
		}, all.Listen(l)}
	}
	listeners := []httpServer{open(l, s.connections, context.Background())}
	if s.cfg.AdminListener != nil {
		operators := s.newConnections(nil, nil)
		listeners = append(
			listeners, open(s.cfg.AdminListener, operators, context.WithValue(context.Background(), throughAdmin{}, true)),
		)
	}
	return listeners
}

// shutDown lets the requests in progress finish, at all listeners at once. When ctx ends it calls
// onCut and cuts off those that remain.
func shutDown(ctx context.Context, listeners []httpServer, onCut func()) error {
	errs := make([]error, len(listeners))
	var stopping sync.WaitGroup
	for i, d := range listeners {
		stopping.Go(func() { errs[i] = d.Shutdown(ctx) })
	}
	stopping.Wait()
	err := errors.Join(errs...)
	if err != nil {
		onCut()
		for _, d := range listeners {
			_ = d.Close()
		}
	}
	return err
}

// isServedHere reports whether the listener that a request came by serves the route. If the admin
// API has its own listener, only that listener serves it. Health and the console are served on
// both.
func (s *Server) isServedHere(r *http.Request, route string) bool {
	if s.cfg.AdminListener == nil || route == healthPath || route == readyPath || strings.HasPrefix(route, consolePath) {
		return true
	}
	return strings.HasPrefix(route, admin+"/") == (r.Context().Value(throughAdmin{}) != nil)
}

// newConnections makes the bounds on the connections of one listener.
func (s *Server) newConnections(active, overflow *limit.Limit) *listener.Connections {
	return listener.New(listener.Config{
		Active:      active,
		Overflow:    overflow,
		Max:         s.cfg.Limits.Connections.Figures().Capacity,
		MaxOverflow: s.cfg.Limits.Overflow.Figures().Capacity,
		Proxies:     s.cfg.TrustedProxies,
		Logger:      s.cfg.Logger,
	})
}

// beginCall marks the call's connection as active. It aborts the call if the connection was closed
// to make room for another one, since the client would never see the answer. It reports whether the
// connection is over the limit. Without a connection, as in a test, it returns false.
func (s *Server) beginCall(r *http.Request) (overLimit bool) {
	c := listener.Of(r)
	if c == nil {
		return false
	}
	isOpen, overLimit := c.Begin()
	if overLimit {
		c.Refuse()
	}
	if !isOpen {
		panic(http.ErrAbortHandler)
	}
	return overLimit
}

var errConnections = &mediagate.Error{Kind: mediagate.KindUnavailable, Message: "too many connections"}
