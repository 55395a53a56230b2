package temporalserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log/tag"
	"go.temporal.io/server/temporal"

	"github.com/mediagate/mediagate/internal/freeport"
	"github.com/mediagate/mediagate/workflows"
)

// startTimeout bounds the wait for the frontend to answer.
const startTimeout = 30 * time.Second

// Config configures the service.
type Config struct {
	// Addr is the host:port for clients. Port 0 takes a free one.
	Addr string
	// File is the SQLite file. It is created if it does not exist.
	File string
	// PostgresURL names a PostgreSQL server to use instead of File. Its databases temporal and
	// temporal_visibility are created and updated as needed.
	PostgresURL string
	// Namespace is created if it does not exist. Empty means "mediagate".
	Namespace string
	// Logger receives the warnings and errors of the service.
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
	log := newLogger(cfg.Logger)
	var stores config.Persistence
	var err error
	if cfg.PostgresURL != "" {
		stores, err = preparePostgres(ctx, cfg.PostgresURL, log)
	} else {
		stores, err = prepareSQLite(cfg.File, cfg.Namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("temporal: %w", err)
	}
	service, addr, err := startService(ctx, cfg.Addr, log, func(p portPlan) (temporal.Server, error) {
		return startOnce(p, stores, log)
	})
	if err != nil {
		return nil, fmt.Errorf("temporal: %w", err)
	}
	server := &Server{service: service, addr: addr, log: log}
	if err := server.prepareNamespace(ctx, cfg.Namespace); err != nil {
		return nil, errors.Join(fmt.Errorf("temporal: %w", err), server.service.Stop())
	}
	return server, nil
}

// startService calls start with free ports. If another program takes one of them first,
// startService tries again with other ports, unless addr names the port. at is the address for
// clients.
func startService(
	ctx context.Context, addr string, log *logger, start func(portPlan) (temporal.Server, error),
) (service temporal.Server, at string, err error) {
	for try := 1; ; try++ {
		plan, err := planPorts(ctx, addr)
		if err != nil {
			return nil, "", err
		}
		service, err = start(plan)
		if err == nil {
			return service, plan.addr(), nil
		}
		var lost *portTakenError
		if !errors.As(err, &lost) || try == freeport.Tries || (lost.addr == plan.frontend.Addr() && !plan.frontend.Chosen) {
			return nil, "", err
		}
		log.Warn("another program listens on a port that was meant for the service: trying others", tag.Address(lost.addr))
	}
}

func startOnce(plan portPlan, stores config.Persistence, log *logger) (service temporal.Server, err error) {
	defer func() {
		switch thrown := recover().(type) {
		case nil:
		case *portTakenError: // thrown by logger.Fatal instead of ending the process
			service, err = nil, thrown
		default:
			panic(thrown)
		}
	}()
	service, err = temporal.NewServer(
		temporal.WithConfig(serviceConfig(plan, stores)),
		temporal.ForServices(temporal.DefaultServices),
		temporal.WithStaticHosts(plan.hosts()),
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

// portTakenError is the error for a port on which another program listens.
type portTakenError struct {
	addr string
	err  error
}

// Error implements error.
func (c *portTakenError) Error() string {
	return "another program listens on " + c.addr + ": " + c.err.Error()
}

// Unwrap returns the error of the operating system.
func (c *portTakenError) Unwrap() error { return c.err }

// Addr returns the host:port that clients dial.
func (s *Server) Addr() string { return s.addr }

// Stop ends the service. Its workflows stay in the database. If ctx ends first, Stop returns and
// the service ends with the process, which its data survives.
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
	return workflows.EnsureNamespace(ctx, c, namespace, slog.New(slog.DiscardHandler))
}

// waitHealthy polls the frontend until it serves.
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

// reachable returns the address by which this machine reaches a server that listens on host.
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
