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
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/mattn/go-isatty"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mediagate/mediagate/api/mcp"
	"github.com/mediagate/mediagate/client"
	"github.com/mediagate/mediagate/cmd/mediagate/app"
	"github.com/mediagate/mediagate/cmd/mediagate/operator"
	"github.com/mediagate/mediagate/cmd/mediagate/replay"
	"github.com/mediagate/mediagate/cmd/mediagate/runner"
	"github.com/mediagate/mediagate/internal/failpoint"
	"github.com/mediagate/mediagate/providers/all"
	"github.com/mediagate/mediagate/providers/declared"
)

// version is set by the build.
var version = "dev"

// vendorUsage lists the commands that read files of vendors.
const vendorUsage = `  vendors test FILE…  run the examples of files that declare vendors, without network
  vendors new NAME    write NAME.yaml, the start of such a file
  vendors show NAME   print a built-in file
`

const usage = `mediagate: a gateway to vendors of generated video, images, music and speech.

Usage: mediagate COMMAND [flags]

  api                 serve the HTTP API
  worker              run the durable path
  all                 both in one process
  migrate             prepare database, bucket and Temporal namespace, and
                      seal webhook secrets anew under the first encryption key
  config              print the settings in force, without secrets
  version             print the version
  run MODEL           make something: price, progress, files (run -h has the flags;
                      MEDIAGATE_URL, MEDIAGATE_API_KEY)
  completion SHELL    print what bash, zsh or fish needs to complete commands
  mcp                 serve the Model Context Protocol on standard input and output
                      (MEDIAGATE_URL, MEDIAGATE_API_KEY)
  replay ID|FILE      replay the history of a task's run, or one saved from
                      Temporal's UI, against this build: what the run decided
                      step by step, and where this build would differ
` + vendorUsage + `
for operators, over HTTP (name the gateway with MEDIAGATE_URL and MEDIAGATE_ADMIN_KEY, or a standalone's folder with -data):
`

// help lists all commands. Package operator lists its own.
func help() string {
	return usage + operator.Summary() + "\nEvery setting is a flag, a variable and a line of the settings file:\n"
}

func main() {
	os.Exit(run(os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// run runs the command and returns the exit code: 0 done, 1 failed, 2 wrong use.
func run(args, environ []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(args) == 0 {
		_, _ = fmt.Fprint(stderr, help(), app.Usage())
		return exitUsage
	}
	command, rest := args[0], args[1:]
	var err error
	switch command {
	case "help", "-h", "-help", "--help":
		err = flag.ErrHelp
	case "version":
		err = printVersion(rest, stdout)
	case "mcp":
		err = serveMCP(ctx, rest, environ)
	case "run":
		defer context.AfterFunc(ctx, stop)() // a second interrupt ends it at once
		return runner.Run(ctx, rest, environ, streams(stdout, stderr))
	case "completion":
		err = completion(rest, stdout)
	case "complete": // called by the completion scripts
		runner.Complete(ctx, rest, commands(), environ, stdout)
	case "replay":
		err = replayRun(ctx, rest, environ, stdout)
	case "vendors":
		if len(rest) > 0 && rest[0] == "list" {
			return operator.Run(ctx, args, environ, stdout, stderr)
		}
		err = vendorFiles(ctx, rest, stdout)
	case "api", "worker", "all", "migrate", "config":
		err = serve(ctx, command, rest, environ, stdout, stderr)
	default:
		if operator.Has(command) {
			return operator.Run(ctx, args, environ, stdout, stderr)
		}
		_, _ = fmt.Fprintf(stderr, "mediagate: unknown command %q\n\n%s%s", command, usage, operator.Summary())
		return exitUsage
	}
	var wrongUse *app.UsageError
	switch {
	case errors.Is(err, flag.ErrHelp) && command == "replay":
		_, _ = fmt.Fprintln(stdout, "usage: "+replay.Usage)
		return exitDone
	case errors.Is(err, flag.ErrHelp) && command == "vendors":
		_, _ = fmt.Fprint(stdout, "usage: mediagate vendors …\n\n", vendorUsage,
			"  vendors list        list the vendors of a gateway (-h has the flags)\n")
		return exitDone
	case errors.Is(err, errDiffers):
		return exitFailed
	case errors.Is(err, flag.ErrHelp):
		_, _ = fmt.Fprint(stdout, help(), app.Usage())
		return exitDone
	case errors.As(err, &wrongUse):
		_, _ = fmt.Fprintf(stderr, "mediagate %s: %s\n`mediagate help` lists commands and flags\n", command, err)
		return exitUsage
	case err != nil:
		_, _ = fmt.Fprintln(stderr, "mediagate: "+strings.ReplaceAll(err.Error(), "\n", "\nmediagate: "))
		return exitFailed
	}
	return exitDone
}

// streams returns the streams of the process. Terminal is true if standard error and standard input
// are a terminal, so that a person can answer.
func streams(stdout, stderr io.Writer) runner.Streams {
	file, ok := stderr.(*os.File)
	return runner.Streams{
		In: os.Stdin, Out: stdout, Err: stderr,
		Terminal: ok && isatty.IsTerminal(file.Fd()) && isatty.IsTerminal(os.Stdin.Fd()),
	}
}

// completion prints the completion script for a shell.
func completion(args []string, stdout io.Writer) error {
	if len(args) != 1 {
		return app.WrongUse("name a shell: bash, zsh or fish")
	}
	if err := runner.Completion(args[0], stdout); err != nil {
		return app.WrongUse(err.Error())
	}
	return nil
}

// commands returns the names of all commands.
func commands() []string {
	return append(
		operator.Names(), "all", "api", "completion bash", "completion fish", "completion zsh", "config", "help", "mcp",
		"migrate", "replay", "run", "vendors new", "vendors show", "vendors test", "version", "worker",
	)
}

// serveMCP lets the program that started this one use a gateway, until it closes the
// standard input.
func serveMCP(ctx context.Context, args, environ []string) error {
	base, key := operator.Variable(environ, "MEDIAGATE_URL"), operator.Variable(environ, "MEDIAGATE_API_KEY")
	if len(args) > 0 || base == "" || key == "" {
		return app.WrongUse("MEDIAGATE_URL and MEDIAGATE_API_KEY name the gateway and a key of it; there are no arguments")
	}
	return mcp.NewServer(version, &client.Client{URL: base, Key: key}, context.WithCancel).Run(ctx, &sdk.StdioTransport{})
}

// errDiffers ends a replay that printed where this build differs.
var errDiffers = errors.New("this build differs from the run")

func replayRun(ctx context.Context, args, environ []string, stdout io.Writer) error {
	same, err := replay.Run(ctx, args, environ, stdout)
	if err == nil && !same {
		return errDiffers
	}
	return err
}

func serve(ctx context.Context, command string, args, environ []string, stdout, stderr io.Writer) (err error) {
	file := operator.Variable(environ, "MEDIAGATE_CONFIG")
	src := app.Sources{Base: app.Defaults(), File: file, Env: environ, Args: args, Role: roleOf(command)}
	c, err := app.Load(src)
	if command == "config" {
		app.LimitMemory(ctx, slog.New(slog.DiscardHandler)) // as a serving process does
		return printConfig(c, errors.Join(err, c.TestVendors(ctx)), stdout, stderr)
	}
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.New(c.Scrub(err.Error())) // of libraries, too
		}
	}()
	if name := operator.Variable(environ, "MEDIAGATE_FAILPOINT"); name != "" {
		if err := failpoint.Arm(name, operator.Variable(environ, "MEDIAGATE_FAILPOINT_DIR")); err != nil {
			return err
		}
	}
	logger := app.NewLogger(c, stderr)
	app.SetLogger(logger)
	for _, warning := range src.Warnings(c) {
		logger.WarnContext(ctx, "others can see a secret", "where", warning)
	}
	app.LimitMemory(ctx, logger)
	g, err := app.Open(ctx, c, app.Options{Version: version, Logger: logger, Role: src.Role, Sources: &src})
	if err != nil {
		return err
	}
	defer g.Close()
	if command == "migrate" {
		if err := g.Migrate(ctx); err != nil {
			return err
		}
		return g.Reseal(ctx)
	}
	if err := g.Store.AwaitMigrated(ctx, migratePatience); err != nil {
		if ctx.Err() != nil {
			return nil // stopped while waiting
		}
		return err
	}
	roles, err := c.Listen(ctx, command != "worker", command != "api")
	if err != nil {
		return err
	}
	return g.Run(ctx, roles)
}

// migratePatience is how long a process waits for migrate, which may run at the same time.
const migratePatience = time.Minute

// roleOf returns the role of a command's process. The command config prints the settings of a
// process with all roles.
func roleOf(command string) app.Role {
	switch command {
	case "api":
		return app.RoleAPI
	case "worker":
		return app.RoleWorker
	case "migrate":
		return app.RoleMigrate
	default:
		return app.RoleAll
	}
}

// printConfig prints the settings as parsed, even if some are wrong, and returns the error. If none
// is wrong, it names the vendors and models that were read. It warns of models that end.
func printConfig(c app.Config, wrong error, stdout, stderr io.Writer) error {
	var wrongUse *app.UsageError
	if errors.Is(wrong, flag.ErrHelp) || errors.As(wrong, &wrongUse) {
		return wrong
	}
	text, err := c.Print()
	if err == nil {
		text += c.Limits() + c.Cautions()
		if wrong == nil {
			text += c.Files()
		}
		_, err = io.WriteString(stdout, text)
	}
	for _, warning := range c.Ending(time.Now()) {
		_, _ = fmt.Fprintln(stderr, "mediagate: "+warning)
	}
	return errors.Join(wrong, err)
}

// vendorFiles runs the examples of vendor files, writes a new file, or prints a built-in one. None of
// these needs settings or a network.
func vendorFiles(ctx context.Context, args []string, stdout io.Writer) error {
	switch {
	case len(args) > 0 && slices.Contains([]string{"-h", "-help", "--help"}, args[0]):
		return flag.ErrHelp
	case len(args) > 1 && args[0] == "test":
		return testVendors(ctx, args[1:], stdout)
	case len(args) == 2 && args[0] == "new":
		return newVendor(args[1], stdout)
	case len(args) == 2 && args[0] == "show":
		text, err := declared.BuiltinText(args[1])
		if err != nil {
			return app.WrongUse(err.Error())
		}
		_, err = io.WriteString(stdout, text)
		return err
	default:
		return app.WrongUse("vendors test FILE…, vendors new NAME, vendors show NAME, or vendors list")
	}
}

// testVendors reads each vendor file and runs its examples.
func testVendors(ctx context.Context, names []string, stdout io.Writer) error {
	var failed error
	for _, name := range names {
		vendor, err := all.ReadFile(name, nil)
		if err == nil {
			err = vendor.Test(ctx)
		}
		if err == nil {
			examples := "examples"
			if len(vendor.Examples) == 1 {
				examples = "example"
			}
			_, err = fmt.Fprintf(stdout, "%s: ok, %d %s\n", name, len(vendor.Examples), examples)
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// newVendor writes NAME.yaml into the current folder, unless the file exists.
func newVendor(name string, stdout io.Writer) error {
	if all.IsGo(name) {
		return app.WrongUse(name + " is the name of a built-in vendor that a file cannot replace")
	}
	text, err := declared.NewFile(name)
	if err != nil {
		return app.WrongUse(err.Error())
	}
	file, err := os.OpenFile(name+".yaml", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // it holds no secret
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, name+".yaml")
	return err
}

func printVersion(args []string, stdout io.Writer) error {
	if len(args) > 0 {
		if slices.Contains([]string{"-h", "-help", "--help"}, args[0]) {
			return flag.ErrHelp
		}
		return app.Unexpected(args[0])
	}
	_, err := fmt.Fprintln(stdout, "mediagate", version, debugVersion())
	return err
}

// debugVersion returns the toolchain and, if the build recorded it, the commit.
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
