package app

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/mediagate/mediagate/api"
	"github.com/mediagate/mediagate/api/listener"
)

// opsDeadline bounds a check of what a worker needs.
const opsDeadline = 3 * time.Second

// errNotPolling is the error of a worker that does not poll yet.
var errNotPolling = errors.New("the worker has not begun to poll")

// OpsHandler serves health and metrics of a process. A worker answers 503 without the database or
// Temporal (D20), until it polls, and with a wrong clock (D10). A process without a worker does
// not need Temporal. The answer is at most a second old.
func (g *Gateway) OpsHandler(worker bool) http.Handler {
	return opsHandler(api.NewRecent(g.Store.Now, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), opsDeadline)
		defer cancel()
		err := errors.Join(g.Store.Ping(ctx), g.Store.CheckClock(ctx))
		if worker {
			err = errors.Join(err, g.checkPolling(ctx))
		}
		if err != nil {
			g.log.WarnContext(ctx, "the process is not ready", "error", err)
		}
		return err
	}), g.metrics.Handler(g.log))
}

// checkPolling checks that the worker polls its queues, in a namespace that works.
func (g *Gateway) checkPolling(ctx context.Context) error {
	if !g.polling.Load() {
		return errNotPolling
	}
	return g.pingTemporal(ctx)
}

func opsHandler(ready *api.Recent[error], metrics http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"status":"ok"}` + "\n"))
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if ready.Get() != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(`{"status":"unavailable"}` + "\n"))
			return
		}
		_, _ = w.Write([]byte(`{"status":"ok"}` + "\n"))
	})
	return mux
}

// The bounds of a connection to the ops server. Its answers are one line, or some hundred kilobytes of
// metrics.
const (
	opsHeaderTimeout  = 5 * time.Second
	opsRequestTimeout = 10 * time.Second
	opsAnswerTimeout  = 10 * time.Second // from the end of the header; it includes opsDeadline
	opsIdleTimeout    = 2 * time.Minute
	opsHeaderBytes    = 16 << 10
)

// opsServer serves health and metrics.
func opsServer(ctx context.Context, handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: opsHeaderTimeout, ReadTimeout: opsRequestTimeout, WriteTimeout: opsAnswerTimeout,
		IdleTimeout: opsIdleTimeout, MaxHeaderBytes: opsHeaderBytes, ErrorLog: listener.NewServerLog(log),
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
}

// ServeOps serves health and metrics of a process until ctx ends. worker says whether the process
// has a worker.
func (g *Gateway) ServeOps(ctx context.Context, l net.Listener, worker bool) error {
	s := opsServer(ctx, g.OpsHandler(worker), g.log)
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	if err := s.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
