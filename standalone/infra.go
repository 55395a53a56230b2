package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/mediagate/mediagate/sandbox"
	"github.com/mediagate/mediagate/standalone/datadir"
	"github.com/mediagate/mediagate/standalone/s3server"
	"github.com/mediagate/mediagate/standalone/temporalserver"
	"github.com/mediagate/mediagate/standalone/uiserver"
	"github.com/mediagate/mediagate/storage/blob"
)

const (
	bucket = "mediagate"
	region = "us-east-1"
)

// startInfra starts the embedded servers that the options name and stores their addresses in
// announced.
func startInfra(
	ctx context.Context, running *stack, dir *datadir.Dir, secrets datadir.Secrets, opts options, logger *slog.Logger,
	announced *announcement,
) error {
	if opts.starts(infraSandbox) {
		url, err := startSandbox(ctx, running, opts, dir.Path("sandbox"), logger)
		if err != nil {
			return err
		}
		announced.Sandbox = url
	}
	if opts.starts(infraS3) {
		store, err := startS3(ctx, running, opts.s3, dir.Path("s3"), secrets)
		if err != nil {
			return err
		}
		announced.S3 = store
	}
	temporalAddr := opts.temporal
	if opts.starts(infraTemporal) {
		server, err := temporalserver.Start(ctx, temporalConfig(opts, dir, logger))
		if err != nil {
			return err
		}
		running.push(infraTemporal, server.Stop)
		temporalAddr = server.Addr()
		announced.Temporal = temporalAddr
	}
	if opts.starts(infraUI) {
		ui, err := uiserver.Start(ctx, uiserver.Config{
			Addr:         opts.ui,
			TemporalAddr: temporalAddr,
			Namespace:    temporalserver.DefaultNamespace,
			Names:        opts.allowedHosts,
		})
		if err != nil {
			return err
		}
		running.push(infraUI, ui.Stop)
		announced.UI = ui.URL()
	}
	return nil
}

func temporalConfig(opts options, dir *datadir.Dir, logger *slog.Logger) temporalserver.Config {
	cfg := temporalserver.Config{Addr: opts.temporal, Logger: logger}
	if opts.temporalDatabaseURL != "" {
		cfg.PostgresURL = opts.temporalDatabaseURL
	} else {
		cfg.File = dir.Path("temporal.db")
	}
	return cfg
}

// startS3 starts the S3 server and creates the bucket.
func startS3(ctx context.Context, running *stack, addr, folder string, secrets datadir.Secrets) (*s3Access, error) {
	server, err := s3server.Start(ctx, s3server.Config{
		Addr:      addr,
		Dir:       folder,
		AccessKey: secrets.S3AccessKeyID,
		SecretKey: secrets.S3SecretAccessKey,
		Region:    region,
	})
	if err != nil {
		return nil, err
	}
	running.push(infraS3, server.Stop)
	go func() {
		<-server.Done() // closed after Stop too, when no failure is read any more
		running.fail(infraS3, firstErr(server.Err(), errors.New("it stopped by itself")))
	}()
	access := &s3Access{
		Endpoint:        server.Endpoint,
		Region:          region,
		Bucket:          bucket,
		AccessKeyID:     secrets.S3AccessKeyID,
		SecretAccessKey: secrets.S3SecretAccessKey,
	}
	store, err := blob.Open(ctx, blob.Config{
		Endpoint:        access.Endpoint,
		Region:          access.Region,
		Bucket:          access.Bucket,
		AccessKeyID:     access.AccessKeyID,
		SecretAccessKey: access.SecretAccessKey,
		PathStyle:       true,
	})
	if err != nil {
		return nil, fmt.Errorf("s3: %w", err)
	}
	if err := store.EnsureBucket(ctx); err != nil {
		return nil, fmt.Errorf("s3: make the bucket: %w", err)
	}
	return access, nil
}

// startSandbox serves the sandbox and returns its URL.
func startSandbox(
	ctx context.Context, running *stack, opts options, folder string, logger *slog.Logger,
) (string, error) {
	upstream, err := sandbox.New(sandbox.Config{Dir: folder, Logger: logger.With("component", infraSandbox)})
	if err != nil {
		return "", err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", opts.sandbox)
	if err != nil {
		return "", errors.Join(fmt.Errorf("sandbox: %w", err), upstream.Close())
	}
	server := &http.Server{
		Handler:           opts.allowedHosts.Wrap(upstream.Handler()),
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			running.fail(infraSandbox, err)
		}
	}()
	running.push(infraSandbox, func(ctx context.Context) error {
		// Close cuts the answers that the sandbox holds back, which would otherwise delay
		// Shutdown.
		err := upstream.Close()
		if down := server.Shutdown(ctx); down != nil {
			err = errors.Join(err, down, server.Close())
		}
		<-ended
		return err
	})
	return "http://" + reachable(listener.Addr().String()), nil
}

// reachable returns addr with an unspecified host, such as 0.0.0.0, replaced by one that a client
// can dial.
func reachable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	if ip := net.ParseIP(host); host == "" || (ip != nil && ip.IsUnspecified()) {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return addr
}
