package uiserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"github.com/temporalio/ui-server/v2/server/api"
	"github.com/temporalio/ui-server/v2/server/auth"
	"github.com/temporalio/ui-server/v2/server/config"
	"github.com/temporalio/ui-server/v2/server/cors"
	"github.com/temporalio/ui-server/v2/server/csrf"
	"github.com/temporalio/ui-server/v2/server/headers"
	"github.com/temporalio/ui-server/v2/server/route"
	"github.com/temporalio/ui-server/v2/ui"

	"github.com/mediagate/mediagate/standalone/hostguard"
)

// Config configures the interface.
type Config struct {
	// Addr is host:port. Port 0 takes a free one.
	Addr string
	// TemporalAddr is the host:port of Temporal's frontend.
	TemporalAddr string
	// Namespace is the namespace that the interface shows first.
	Namespace string
	// Names are hosts under which browsers may reach the interface, besides the loopback and its
	// own address.
	Names hostguard.Names
}

// Server is a running web interface.
type Server struct {
	http *http.Server
	done chan error
	url  string
}

// Start starts the interface and returns when it listens. Temporal need not run yet.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Addr)
	if err != nil {
		return nil, fmt.Errorf("temporal ui: %w", err)
	}
	at := listener.Addr().(*net.TCPAddr)
	pages, err := handler(&config.Config{
		TemporalGRPCAddress: cfg.TemporalAddr,
		Host:                at.IP.String(),
		Port:                at.Port,
		EnableUI:            true,
		DefaultNamespace:    cfg.Namespace,
		DisableNewsFetch:    true,
		HideLogs:            true,
		// Over plain HTTP, a browser would not send a secure cookie back.
		CORS: config.CORS{CookieInsecure: true},
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("temporal ui: %w", err), listener.Close())
	}
	s := &Server{
		http: &http.Server{Handler: cfg.Names.Wrap(pages), ReadHeaderTimeout: readTimeout},
		done: make(chan error, 1),
		url:  "http://" + net.JoinHostPort(reachable(at.IP), strconv.Itoa(at.Port)),
	}
	go func() { s.done <- s.http.Serve(listener) }()
	return s, nil
}

// readTimeout bounds the wait for a request's header.
const readTimeout = 10 * time.Second

// handler combines the library's parts as the library's own server does. That server accepts no
// listener, and ends the process if it cannot listen.
func handler(settings *config.Config) (http.Handler, error) {
	if err := settings.Validate(); err != nil {
		return nil, err
	}
	provider, err := config.NewConfigProviderWithRefresh(settings)
	if err != nil {
		return nil, err
	}
	assets, err := ui.Assets()
	if err != nil {
		return nil, err
	}
	if assets, err = fs.Sub(assets, "local"); err != nil {
		return nil, err
	}
	e := echo.New()
	e.Use(middleware.Recover(), middleware.Gzip(),
		cors.CORSMiddleware(cors.CORSConfig{
			AllowHeaders: []string{
				echo.HeaderOrigin, echo.HeaderContentType, echo.HeaderAccept, echo.HeaderXCSRFToken, echo.HeaderAuthorization,
				auth.AuthorizationExtrasHeader, callerType,
			},
			AllowCredentials: true,
			ConfigProvider:   provider,
		}),
		middleware.Secure(),
		csrf.EnsureTokenCookie(!settings.CORS.CookieInsecure),
		middleware.CSRFWithConfig(csrf.MiddlewareConfig(provider, !settings.CORS.CookieInsecure)),
	)
	e.Pre(route.PublicPath(settings.PublicPath))
	route.SetHealthRoute(e)
	forwarded := []api.Middleware{headers.WithForwardHeaders([]string{auth.AuthorizationExtrasHeader, callerType})}
	if err := route.SetAPIRoutes(e, provider, forwarded); err != nil {
		return nil, err
	}
	route.SetAuthRoutes(e, provider)
	if err := route.SetUIRoutes(e, settings.PublicPath, assets, provider); err != nil {
		return nil, err
	}
	route.SetRenderRoute(e, "/")
	return e, nil
}

// callerType is the name of a header that the interface sends to Temporal.
const callerType = "Caller-Type"

// URL returns the address for a browser.
func (s *Server) URL() string { return s.url }

// Stop closes the interface and its connections.
func (s *Server) Stop(ctx context.Context) error {
	if err := s.http.Close(); err != nil {
		return fmt.Errorf("temporal ui: %w", err)
	}
	select {
	case err := <-s.done:
		if !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("temporal ui: %w", err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("temporal ui: stop: %w", ctx.Err())
	}
}

// reachable returns the address, or the loopback in place of an unspecified one, which a browser
// cannot open.
func reachable(ip net.IP) string {
	if ip.IsUnspecified() {
		return "127.0.0.1"
	}
	return ip.String()
}
