package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/mediagate/mediagate/cmd/mediagate/app"
	"github.com/mediagate/mediagate/internal/failpoint"
	"github.com/mediagate/mediagate/standalone/datadir"
)

// version is set by the linker.
var version = "dev"

// stopTimeout bounds the stop. It leaves a margin to the 20 s that a stop may take.
const stopTimeout = 17 * time.Second

// Exit statuses.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	// The first signal restores the default action, so a second signal ends the process at once.
	ctx, restore := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, restore)
	syscall.Umask(0o077) // for the files of the embedded servers too
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

// run runs the program and returns its exit status. It ends when ctx does or when a server
// fails.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	opts, err := parseOptions(args, stdout)
	switch {
	case errors.Is(err, errHelp):
		return exitDone
	case err != nil:
		_, _ = fmt.Fprintln(stderr, "mediagate-standalone:", err)
		return exitUsage
	case opts.listFailpoints:
		_, _ = fmt.Fprintln(stdout, strings.Join(failpoint.Names(), "\n"))
		return exitDone
	case opts.version:
		_, _ = fmt.Fprintln(stdout, "mediagate-standalone", version)
		return exitDone
	}
	logger := slog.New(slog.NewJSONHandler(stderr, nil))
	app.LimitMemory(ctx, logger)
	if err := serve(ctx, opts, getenv("MEDIAGATE_FAILPOINT"), logger, stdout); err != nil {
		logger.ErrorContext(ctx, "mediagate-standalone ends", "error", err.Error())
		_, _ = fmt.Fprintln(stderr, "mediagate-standalone:", err)
		return exitFailed
	}
	return exitDone
}

// serve starts everything, waits, and stops everything. It holds the data folder from start to
// stop.
func serve(ctx context.Context, opts options, point string, logger *slog.Logger, stdout io.Writer) (err error) {
	dir, err := datadir.Open(opts.data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	if point != "" {
		if err := failpoint.Arm(point, dir.Path(".")); err != nil {
			return err
		}
	}
	secrets, err := dir.Secrets()
	if err != nil {
		return err
	}

	running := newStack(logger)
	announced, err := startAll(ctx, running, dir, secrets, opts, logger)
	if err == nil {
		err = dir.Announce(announced)
	}
	if err == nil {
		logger.InfoContext(ctx, "serving", "data", opts.data)
		err = printBanner(stdout, announced, dir.Path("."))
	}
	if err == nil {
		select {
		case <-ctx.Done():
		case err = <-running.failed:
		}
	}
	if ctx.Err() != nil {
		err = nil // a stop is no error, even before everything has started
	}

	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if late := running.stop(stopping); late != nil {
		// The parts that did not end in time end with the process, as with kill -9.
		logger.WarnContext(ctx, "not everything stopped by itself", "error", late.Error())
	}
	return errors.Join(err, dir.Retract())
}

// startAll starts the parts that the options ask for. A part starts after the parts that it
// depends on.
func startAll(
	ctx context.Context, running *stack, dir *datadir.Dir, secrets datadir.Secrets, opts options, logger *slog.Logger,
) (announcement, error) {
	announced := announcement{Version: version, PID: os.Getpid()}
	if err := startInfra(ctx, running, dir, secrets, opts, logger, &announced); err != nil {
		return announced, err
	}
	if opts.infraOnly() {
		if opts.config != "" || len(opts.settings) > 0 {
			logger.WarnContext(ctx, "-config, -api, -ops and -database-url are the product's, which -infra leaves out")
		}
		return announced, nil
	}
	return announced, startProduct(ctx, running, dir, secrets, opts, &announced)
}
