package uiserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/temporalio/ui-server/v2/server"
	"github.com/temporalio/ui-server/v2/server/config"
	"github.com/temporalio/ui-server/v2/server/server_options"

	"github.com/mediagate/mediagate/standalone/freeport"
)

// Config says where the interface listens and what it shows.
type Config struct {
	// Addr is host:port; port 0 takes a free one.
	Addr string
	// TemporalAddr is the host:port of Temporal's frontend.
	TemporalAddr string
	// Namespace is shown first.
	Namespace string
}

// Server is a running web interface.
type Server struct {
	ui   *server.Server
	done chan error
	url  string
}

// Start returns when the interface answers. The interface does not need
// Temporal to be there yet.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	// The library ends the process when it cannot listen, so that has to be
	// found out before.
	host, port, err := freeport.Resolve(cfg.Addr)
	if err != nil {
		return nil, fmt.Errorf("temporal ui: %w", err)
	}
	settings := &config.Config{
		TemporalGRPCAddress: cfg.TemporalAddr,
		Host:                host,
		Port:                port,
		EnableUI:            true,
		DefaultNamespace:    cfg.Namespace,
		DisableNewsFetch:    true,
		HideLogs:            true,
		// Plain HTTP: a browser would not send a secure cookie back.
		CORS: config.CORS{CookieInsecure: true},
	}
	if err := settings.Validate(); err != nil {
		return nil, fmt.Errorf("temporal ui: %w", err)
	}
	s := &Server{
		ui:   server.NewServer(server_options.WithConfigProvider(settings)),
		done: make(chan error, 1),
		url:  "http://" + net.JoinHostPort(browsable(host), strconv.Itoa(port)),
	}
	go func() { s.done <- s.ui.Start() }()
	if err := s.waitReady(ctx); err != nil {
		s.ui.Stop()
		return nil, errors.Join(fmt.Errorf("temporal ui: %w", err), <-s.done)
	}
	return s, nil
}

// URL returns the address for a browser.
func (s *Server) URL() string { return s.url }

// Stop closes the interface and its connections.
func (s *Server) Stop(ctx context.Context) error {
	s.ui.Stop()
	select {
	case err := <-s.done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("temporal ui: stop: %w", ctx.Err())
	}
}

func (s *Server) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	transport := &http.Transport{DisableKeepAlives: true}
	client := &http.Client{Transport: transport}
	for {
		err := probe(ctx, client, s.url+"/healthz")
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("does not answer: %w", errors.Join(ctx.Err(), err))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func probe(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %s", resp.Status)
	}
	return nil
}

// browsable replaces "every address" by one that can be opened.
func browsable(host string) string {
	if ip := net.ParseIP(host); host == "" || (ip != nil && ip.IsUnspecified()) {
		return "127.0.0.1"
	}
	return host
}
