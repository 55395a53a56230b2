package temporalserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/temporal"

	"github.com/mediagate/mediagate/standalone/freeport"
	"github.com/mediagate/mediagate/workflows"
)

// startTimeout bounds the wait for the frontend to answer.
const startTimeout = 30 * time.Second

// Config says where the service keeps its data and where it listens.
type Config struct {
	// Addr is where clients connect, host:port; port 0 takes a free one.
	Addr string
	// File is the SQLite file. It is made when it is absent.
	File string
	// PostgresURL, instead of File, names a PostgreSQL server; its databases
	// temporal and temporal_visibility are made and updated as needed.
	PostgresURL string
	// Namespace is made when it is absent; empty means "mediagate".
	Namespace string
	// Logger gets warnings and errors of the service.
	Logger *slog.Logger
}

// Server is a running Temporal service.
type Server struct {
	service temporal.Server
	addr    string
	log     *logger
}

// Start starts the service and returns when it answers and the namespace is
// ready for workflows.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	if (cfg.File == "") == (cfg.PostgresURL == "") {
		return nil, errors.New("temporal: exactly one of a SQLite file and a PostgreSQL URL is needed")
	}
	if cfg.Namespace == "" {
		cfg.Namespace = DefaultNamespace
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	host, port, err := freeport.Resolve(cfg.Addr)
	if err != nil {
		return nil, fmt.Errorf("temporal: %w", err)
	}
	log := newLogger(cfg.Logger)
	var stores config.Persistence
	if cfg.PostgresURL != "" {
		stores, err = preparePostgres(ctx, cfg.PostgresURL, log)
	} else {
		stores, err = prepareSQLite(cfg.File, cfg.Namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("temporal: %w", err)
	}
	service, err := startService(host, port, stores, log)
	if err != nil {
		return nil, fmt.Errorf("temporal: %w", err)
	}
	server := &Server{service: service, addr: net.JoinHostPort(reachable(host), strconv.Itoa(port)), log: log}
	if err := server.prepareNamespace(ctx, cfg.Namespace); err != nil {
		return nil, errors.Join(fmt.Errorf("temporal: %w", err), service.Stop())
	}
	return server, nil
}

// startService assembles and starts the roles. The ports between the roles are
// looked for and then listened on, so another process may come in between:
// then others are looked for.
func startService(host string, port int, stores config.Persistence, log *logger) (temporal.Server, error) {
	for try := 1; ; try++ {
		layout, err := planPorts(host, port)
		if err != nil {
			return nil, err
		}
		service, err := startOnce(layout, stores, log)
		if err == nil || try == 3 || freeport.Check(host, port) != nil || !strings.Contains(err.Error(), "address already in use") {
			return service, err
		}
	}
}

func startOnce(layout portPlan, stores config.Persistence, log *logger) (temporal.Server, error) {
	service, err := temporal.NewServer(
		temporal.WithConfig(serviceConfig(layout, stores)),
		temporal.ForServices(temporal.DefaultServices),
		temporal.WithStaticHosts(layout.hosts()),
		temporal.WithLogger(log),
		temporal.WithAuthorizer(authorization.NewNoopAuthorizer()),
		temporal.WithClaimMapper(func(*config.Config) authorization.ClaimMapper {
			return authorization.NewNoopClaimMapper()
		}),
		temporal.WithDynamicConfigClient(dynamicSettings()),
	)
	if err != nil {
		return nil, fmt.Errorf("assemble the service: %w", err)
	}
	if err := service.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start the service: %w", err), service.Stop())
	}
	return service, nil
}

// Addr returns the host:port that clients dial.
func (s *Server) Addr() string { return s.addr }

// Stop ends the service. What runs in it is kept in its database. When ctx
// ends first the service is left to the end of the process, which it survives.
func (s *Server) Stop(ctx context.Context) error {
	s.log.muteWarnings()
	done := make(chan error, 1)
	go func() { done <- s.service.Stop() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("temporal: stop: %w", ctx.Err())
	}
}

// prepareNamespace waits for the frontend and brings the namespace up to date.
func (s *Server) prepareNamespace(ctx context.Context, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	c, err := client.NewLazyClient(client.Options{
		HostPort:  s.addr,
		Namespace: namespace,
		Logger:    quietSDK{},
	})
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	defer c.Close()
	if err := waitHealthy(ctx, c); err != nil {
		return err
	}
	return workflows.EnsureNamespace(ctx, c, namespace)
}

// waitHealthy asks the frontend until it serves.
func waitHealthy(ctx context.Context, c client.Client) error {
	for {
		_, err := c.CheckHealth(ctx, &client.CheckHealthRequest{})
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the frontend does not answer: %w", errors.Join(ctx.Err(), err))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// reachable is the address under which this machine reaches what listens on
// host.
func reachable(host string) string {
	if host == "" {
		return loopback
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		if ip.To4() != nil {
			return loopback
		}
		return "::1"
	}
	return host
}
