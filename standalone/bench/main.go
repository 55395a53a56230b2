package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx

	"github.com/mediagate/mediagate/standalone/s3server"
	"github.com/mediagate/mediagate/standalone/temporalserver"
	"github.com/mediagate/mediagate/storage/pgtest"
)

// question is a question of a user. Its measure function prints the answer.
type question struct {
	name    string
	text    string
	measure func(*bench)
}

func questions() []question {
	return []question{
		{"submit", "How soon is a submit acknowledged?", measureSubmits},
		{"read", "How fast is a task read?", measureReads},
		{"full", "What does a whole task cost the machine?", measureFullTasks},
		{"visible", "How soon after the vendor's end is a task completed?", measureVisible},
		{"waiting", "What do thousands of waiting tasks cost, and are they polled in time?", measureWaiting},
		{"burst", "How does a burst of tasks go on, and what waits at its vendor beside one?", measureBursts},
		{"memory", "How much memory does the standalone program take?", measureMemory},
		{"fairness", "What does one account notice of another one's crowd and backlog?", measureFairness},
	}
}

func main() {
	quick := flag.Bool("quick", false, "shorter, with more noise: 1,000 waiting tasks instead of 10,000")
	only := flag.String("only", "", "`NAMES` of questions: submit,read,full,visible,waiting,burst,memory,fairness")
	temporal := flag.String("temporal", "", "be the Temporal of another bench, over the PostgreSQL at `URL`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if *temporal != "" {
		err = serveTemporal(ctx, *temporal)
	} else {
		err = run(ctx, *quick, *only, os.Stdout)
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, quick bool, only string, out io.Writer) error {
	asked := questions()
	if only != "" {
		names := strings.Split(only, ",")
		asked = slices.DeleteFunc(asked, func(q question) bool { return !slices.Contains(names, q.name) })
		if len(asked) < len(names) {
			return fmt.Errorf("-only: one of %s is no question", only)
		}
	}
	testing.Init()
	if err := flag.Set("test.benchtime", "1x"); err != nil {
		return err
	}
	began, ours, all := time.Now(), cpuTime(), machineTime()
	var failure error
	testing.Benchmark(func(b *testing.B) {
		b.Helper()
		servers := &bench{B: b, ctx: ctx, quick: quick, out: out, failure: &failure}
		servers.start()
		for _, q := range asked {
			_, _ = fmt.Fprintf(out, "%s: %s\n", q.name, q.text)
			servers.part(q.measure)
		}
	})
	if failure != nil {
		return failure
	}
	length := time.Since(began)
	others := machineTime() - all - (cpuTime() - ours)
	share := float64(others) / float64(length) / float64(runtime.NumCPU())
	_, err := fmt.Fprintf(out, "%d cores, %s, %s/%s, %s; others had %.0f %% of the machine.\n",
		runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH, length.Round(time.Second), 100*share)
	return err
}

// bench holds the output and the servers that all questions share.
type bench struct {
	*testing.B
	ctx      context.Context // ends with an interrupt
	quick    bool
	out      io.Writer
	failure  *error
	source   string // folder in which the bench was started; the S3 server changes the working directory
	log      *slog.Logger
	postgres *pgtest.Cluster
	history  *sql.DB // Temporal's own database
	temporal string  // its address
	s3       *s3server.Server
	vendor   *vendor
	secret   string // the secret of all servers and channels
}

// check ends the bench if there is an error.
func (b *bench) check(err error) {
	if err != nil {
		*b.failure = err
		b.FailNow()
	}
}

// part runs a part of the measurements, with its own cleanups.
func (b *bench) part(measure func(*bench)) {
	ok := b.Run("", func(sub *testing.B) {
		part := *b
		part.B = sub
		measure(&part)
	})
	if !ok {
		b.FailNow()
	}
}

// start starts the servers. S3 and the gateway log to a file. Temporal runs in a second process
// of this program, so that the memory of this process is the gateway's.
func (b *bench) start() {
	var err error
	b.source, err = os.Getwd()
	b.check(err)
	b.secret = rand.Text() + rand.Text()
	dir := b.TempDir()
	b.check(os.Chmod(filepath.Dir(dir), 0o755)) //nolint:gosec // PostgreSQL runs as another user and must pass
	logs, err := os.Create(filepath.Join(dir, "bench.log"))
	b.check(err)
	b.log = slog.New(slog.NewJSONHandler(logs, nil))
	b.postgres, err = pgtest.Start(filepath.Join(dir, "postgres"))
	b.check(err)
	b.Cleanup(func() { _ = b.postgres.Stop() })
	self, err := os.Executable()
	b.check(err)
	out, _ := b.process(os.Stderr, self, "-temporal", b.postgres.URL("postgres"))
	_, err = fmt.Fscanln(out, &b.temporal)
	b.check(err)
	b.history, err = sql.Open("pgx", b.postgres.URL("temporal"))
	b.check(err)
	b.Cleanup(func() { _ = b.history.Close() })
	b.s3, err = s3server.Start(b.ctx, s3server.Config{
		Addr:      "127.0.0.1:0",
		Dir:       filepath.Join(dir, "s3"),
		AccessKey: "bench",
		SecretKey: b.secret,
	})
	b.check(err)
	b.Cleanup(func() { _ = b.s3.Stop(context.Background()) })
	b.startVendor()
}

// serveTemporal runs Temporal, prints its address, and returns when the standard input ends. Its
// data is not needed afterwards, so Temporal ends with the process.
func serveTemporal(ctx context.Context, postgresURL string) error {
	server, err := temporalserver.Start(ctx, temporalserver.Config{
		Addr:        "127.0.0.1:0",
		PostgresURL: postgresURL,
		Logger:      slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintln(os.Stdout, server.Addr())
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// process starts a process that ends with the part.
func (b *bench) process(stderr io.Writer, program string, args ...string) (stdout io.Reader, pid int) {
	cmd := exec.CommandContext(context.WithoutCancel(b.ctx), program, args...) //nolint:gosec // programs of ours
	cmd.Stderr = stderr
	in, err := cmd.StdinPipe()
	b.check(err)
	out, err := cmd.StdoutPipe()
	b.check(err)
	b.check(cmd.Start())
	b.Cleanup(func() { _ = errors.Join(in.Close(), cmd.Process.Signal(syscall.SIGTERM), cmd.Wait()) })
	return out, cmd.Process.Pid
}

// size returns how much to measure: whole, or quick with the flag -quick.
func (b *bench) size(whole, quick int) int {
	if b.quick {
		return quick
	}
	return whole
}

// line prints a result beside its aim.
func (b *bench) line(what, found, aim string, met bool) {
	verdict := "ok"
	if !met {
		verdict = "missed"
	}
	_, _ = fmt.Fprintf(b.out, "  %-51s %-62s aim %-9s %s\n", what, found, aim, verdict)
}

// ratio prints a cost as a multiple of the floor's.
func (b *bench) ratio(what, floor string, subject, base time.Duration, most float64) {
	times := float64(subject) / float64(base)
	found := fmt.Sprintf("× %.2f: %s, floor %s, %s", times, rounded(subject), rounded(base), floor)
	b.line(what, found, fmt.Sprintf("≤ × %.2f", most), times <= most)
}

// within prints a duration and its upper bound.
func (b *bench) within(what string, found, most time.Duration) {
	b.line(what, rounded(found).String(), "≤ "+most.String(), found <= most)
}

func rounded(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }
