package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/mediagate/mediagate/standalone/temporalserver"
)

func main() {
	out := flag.String("out", "../workflows/testdata/histories", "folder for the histories")
	only := flag.String("only", "", "record one history instead of all")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if err := run(ctx, logger, *out, *only); err != nil {
		logger.ErrorContext(ctx, "histories not recorded", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, logger *slog.Logger, out, only string) (err error) {
	dir, err := os.MkdirTemp("", "recordhistories-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	server, err := temporalserver.Start(ctx, temporalserver.Config{
		Addr: "127.0.0.1:0", File: filepath.Join(dir, "temporal.db"), Namespace: namespace,
	})
	if err != nil {
		return err
	}
	defer func() {
		stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
		defer cancel()
		err = errors.Join(err, server.Stop(stopCtx))
	}()
	c, err := client.Dial(client.Options{
		HostPort: server.Addr(), Namespace: namespace, Identity: "recorder",
		Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
	if err != nil {
		return err
	}
	defer c.Close()

	r := &recorder{client: c, out: out, log: logger}
	for _, s := range scenarios() {
		if only != "" && s.name != only {
			continue
		}
		if err := r.record(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

const namespace = "recorder"
