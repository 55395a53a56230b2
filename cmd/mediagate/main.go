// Command mediagate runs the gateway and the operators' commands.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/mediagate/mediagate/cmd/mediagate/app"
	"github.com/mediagate/mediagate/cmd/mediagate/operator"
	"github.com/mediagate/mediagate/failpoint"
)

// version is set by the build.
var version = "dev"

const usage = `mediagate: a gateway to vendors of generated video and images.

Usage: mediagate COMMAND [flags]

  api                 serve the HTTP API
  worker              run the durable path
  all                 both in one process
  migrate             prepare database, bucket and Temporal namespace
  config              print the settings in force, without secrets
  version             print the version

for operators, over HTTP (name the gateway with MEDIAGATE_URL and MEDIAGATE_ADMIN_KEY, or a standalone's folder with -data):
  accounts list|create|grant
  keys list|create|revoke
  ledger check

Every setting is a flag, a variable and a line of the settings file:
`

func main() {
	os.Exit(run(os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}

// run returns the exit code: 0 done, 1 failed, 2 wrong use.
func run(args, environ []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(args) == 0 || args[0] == "help" || args[0] == "-h" || args[0] == "--help" {
		_, _ = fmt.Fprint(stderr, usage, app.Usage())
		return 2
	}
	command, rest := args[0], args[1:]
	var err error
	switch command {
	case "version":
		_, _ = fmt.Fprintln(stdout, "mediagate", version, debugVersion())
	case "api", "worker", "all", "migrate", "config":
		err = serve(ctx, command, rest, environ, stdout, stderr)
	case "accounts", "keys", "ledger":
		return operator.Run(ctx, append([]string{command}, rest...), environ, stdout, stderr)
	default:
		_, _ = fmt.Fprintf(stderr, "mediagate: unknown command %q\n\n%s", command, usage)
		return 2
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		_, _ = fmt.Fprint(stderr, usage, app.Usage())
		return 2
	case err != nil:
		_, _ = fmt.Fprintln(stderr, "mediagate: "+strings.ReplaceAll(err.Error(), "\n", "\nmediagate: "))
		return 1
	}
	return 0
}

func serve(ctx context.Context, command string, args, environ []string, stdout, stderr io.Writer) error {
	c, rest, err := app.Load(app.Sources{Base: app.Defaults(), File: os.Getenv("MEDIAGATE_CONFIG"), Env: environ, Args: args})
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return fmt.Errorf("unexpected argument %q", rest[0])
	}
	if command == "config" {
		text, err := c.Print()
		if err != nil {
			return err
		}
		_, _ = fmt.Fprint(stdout, text)
		return c.Validate()
	}
	if err := c.Validate(); err != nil {
		return err
	}
	if name := os.Getenv("MEDIAGATE_FAILPOINT"); name != "" {
		if err := failpoint.Arm(name, os.Getenv("MEDIAGATE_FAILPOINT_DIR")); err != nil {
			return err
		}
	}
	logger := app.NewLogger(c, stderr)
	slog.SetDefault(logger)
	g, err := app.Open(ctx, c, app.Options{Version: version, Logger: logger})
	if err != nil {
		return err
	}
	defer g.Close()
	if command == "migrate" {
		return g.Migrate(ctx)
	}
	roles, err := c.Listen(ctx, command != "worker", command != "api")
	if err != nil {
		return err
	}
	return g.Run(ctx, roles)
}

// debugVersion names the toolchain and the commit, where the build knows it.
func debugVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return info.GoVersion + " " + s.Value
		}
	}
	return info.GoVersion
}
