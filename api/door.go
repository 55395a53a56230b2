package api

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
)

// door is a listener and the HTTP server that answers on it. There are two where
// the admin API has one of its own.
type door struct {
	*http.Server
	listener net.Listener
}

// throughAdmin is the key under which the context of a request says that it came
// in by the admin API's own listener.
type throughAdmin struct{}

// doors are what Serve answers on, each with the same bounds. Connections are
// counted at each by itself: a flood of clients keeps no operator out.
func (s *Server) doors(l net.Listener) []door {
	open := func(l net.Listener, all *connections, base context.Context) door {
		return door{&http.Server{
			Handler: s, ReadHeaderTimeout: headerTimeout, ReadTimeout: requestTimeout, WriteTimeout: answerTimeout,
			IdleTimeout: s.cfg.IdleTimeout, MaxHeaderBytes: maxHeaderBytes,
			DisableGeneralOptionsHandler: true, // for it would not look at the framing
			ConnContext:                  withConnection, ConnState: noteState, ErrorLog: NewServerLog(s.log),
			BaseContext: func(net.Listener) context.Context { return base },
		}, listener{l, all}}
	}
	doors := []door{open(l, s.connections, context.Background())}
	if s.cfg.AdminListener != nil {
		operators := newConnections(s.cfg, nil, nil)
		operators.refusal = s.refusal
		doors = append(doors, open(s.cfg.AdminListener, operators, context.WithValue(context.Background(), throughAdmin{}, true)))
	}
	return doors
}

// shutDown lets the requests under way finish, at all doors at once. What has not
// when ctx ends is cut off, after told was called.
func shutDown(ctx context.Context, doors []door, told func()) error {
	errs := make([]error, len(doors))
	var stopping sync.WaitGroup
	for i, d := range doors {
		stopping.Go(func() { errs[i] = d.Shutdown(ctx) })
	}
	stopping.Wait()
	err := errors.Join(errs...)
	if err != nil {
		told()
		for _, d := range doors {
			_ = d.Close()
		}
	}
	return err
}

// servedHere reports whether the door by which a request came leads to the route.
// With a listener of its own the admin API is there and nowhere else, beside
// health, which is at both.
func (s *Server) servedHere(r *http.Request, route string) bool {
	if s.cfg.AdminListener == nil || route == healthPath || route == readyPath {
		return true
	}
	return strings.HasPrefix(route, admin+"/") == (r.Context().Value(throughAdmin{}) != nil)
}
