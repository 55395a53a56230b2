package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx

	"github.com/mediagate/mediagate/standalone/s3server"
	"github.com/mediagate/mediagate/standalone/temporalserver"
	"github.com/mediagate/mediagate/storage/pgtest"
)

// machine is the servers that all measurements share.
type machine struct {
	quick    bool
	dir      string
	source   string // where the bench was started: the S3 server changes the working directory
	log      *slog.Logger
	postgres *pgtest.Cluster
	admin    *sql.DB // of the PostgreSQL server
	history  *sql.DB // Temporal's own database, where ended workflows are counted
	temporal *temporalserver.Server
	s3       *s3server.Server
	vendor   *vendor
	customer *customer
	secret   string // of everything that wants one
	closers  []func() error
}

// startMachine starts the servers. Logs are written as in production, to a
// file that goes with the folder.
func startMachine(ctx context.Context, quick bool) (m *machine, err error) {
	m = &machine{quick: quick, secret: rand.Text() + rand.Text()}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.close(0))
		}
	}()
	if m.source, err = os.Getwd(); err != nil {
		return m, err
	}
	if m.dir, err = os.MkdirTemp("", "mediagate-bench-"); err != nil {
		return m, err
	}
	m.closers = append(m.closers, func() error { return os.RemoveAll(m.dir) })
	if err := os.Chmod(m.dir, 0o755); err != nil { //nolint:gosec // PostgreSQL runs as another user and must pass
		return m, err
	}
	logs, err := os.Create(filepath.Join(m.dir, "bench.log"))
	if err != nil {
		return m, err
	}
	m.closers = append(m.closers, logs.Close)
	m.log = slog.New(slog.NewJSONHandler(logs, nil))

	if m.postgres, err = pgtest.Start(filepath.Join(m.dir, "postgres")); err != nil {
		return m, err
	}
	m.closers = append(m.closers, m.postgres.Stop)
	if m.admin, err = sql.Open("pgx", m.postgres.URL("postgres")); err != nil {
		return m, err
	}
	m.closers = append(m.closers, m.admin.Close)
	if m.temporal, err = temporalserver.Start(ctx, temporalserver.Config{
		Addr: "127.0.0.1:0", PostgresURL: m.postgres.URL("postgres"), Logger: m.log,
	}); err != nil {
		return m, err
	}
	m.closers = append(m.closers, within(m.temporal.Stop))
	if m.history, err = sql.Open("pgx", m.postgres.URL("temporal")); err != nil {
		return m, err
	}
	m.closers = append(m.closers, m.history.Close)
	if m.s3, err = s3server.Start(ctx, s3server.Config{
		Addr: "127.0.0.1:0", Dir: filepath.Join(m.dir, "s3"), AccessKey: "bench", SecretKey: m.secret,
	}); err != nil {
		return m, err
	}
	m.closers = append(m.closers, within(m.s3.Stop))
	m.vendor, m.customer = startVendor(), startCustomer()
	m.later(m.vendor.close)
	m.later(m.customer.close)
	return m, nil
}

// later has something closed after the measurement.
func (m *machine) later(closer func()) {
	m.closers = append(m.closers, func() error { closer(); return nil })
}

// close stops what was started, the last first, but for the first few.
func (m *machine) close(first int) error {
	var err error
	for len(m.closers) > first {
		last := len(m.closers) - 1
		err = errors.Join(err, m.closers[last]())
		m.closers = m.closers[:last]
	}
	return err
}

// measure runs a measurement, and closes what it has opened.
func (m *machine) measure(ctx context.Context, run measure) ([]row, error) {
	first := len(m.closers)
	rows, err := run(ctx, m)
	return rows, errors.Join(err, m.close(first))
}

// run keeps something running until the measurement is over.
func (m *machine) run(ctx context.Context, serve func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() { done <- serve(ctx) }()
	m.closers = append(m.closers, func() error {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	})
}

// size is how much is measured: in the whole run, and with -quick.
func (m *machine) size(whole, quick int) int {
	if m.quick {
		return quick
	}
	return whole
}

// stopTime bounds the stop of one server.
const stopTime = 20 * time.Second

func within(stop func(context.Context) error) func() error {
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), stopTime)
		defer cancel()
		return stop(ctx)
	}
}

// workflows counts, in Temporal's own table, since lists of workflows lag behind.
func (m *machine) workflows(ctx context.Context, condition string, args ...any) (int, error) {
	return count(ctx, m.history, "current_executions WHERE "+condition, args...)
}

// count counts rows of a database.
func count(ctx context.Context, db *sql.DB, rows string, args ...any) (n int, err error) {
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM "+rows, args...).Scan(&n); err != nil {
		return 0, fmt.Errorf("count %s: %w", rows, err)
	}
	return n, nil
}
