package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
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
	dir      string
	source   string // where the bench was started: the S3 server changes the working directory
	log      *slog.Logger
	postgres *pgtest.Cluster
	admin    *sql.DB // of the PostgreSQL server
	history  *sql.DB // Temporal's own database, where ended workflows are counted
	temporal *temporalserver.Server
	s3       *s3server.Server
	vendor   *vendor
	secret   string // of everything that wants one
	closers  []func() error
}

// startMachine starts the servers. Logs are written as in production, to a
// file that goes with the folder.
func startMachine(ctx context.Context) (m *machine, err error) {
	m = &machine{secret: randomHex()}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.close())
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
	if m.vendor, err = startVendor(ctx); err != nil {
		return m, err
	}
	m.closers = append(m.closers, m.vendor.close)
	return m, nil
}

// close stops what was started, the last first.
func (m *machine) close() error {
	var err error
	for len(m.closers) > 0 {
		last := len(m.closers) - 1
		err = errors.Join(err, m.closers[last]())
		m.closers = m.closers[:last]
	}
	return err
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

// ended counts the workflows whose id begins with prefix and whose last run
// has ended, in Temporal's own table: lists of workflows lag behind.
func (m *machine) ended(ctx context.Context, prefix string) (n int, err error) {
	const completed = 3
	err = m.history.QueryRowContext(ctx,
		"SELECT count(*) FROM current_executions WHERE starts_with(workflow_id, $1) AND state = $2", prefix, completed).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("count ended workflows: %w", err)
	}
	return n, nil
}

// timers counts the timers of all workflows, likewise.
func (m *machine) timers(ctx context.Context) (n int, err error) {
	if err := m.history.QueryRowContext(ctx, "SELECT count(*) FROM timer_info_maps").Scan(&n); err != nil {
		return 0, fmt.Errorf("count timers: %w", err)
	}
	return n, nil
}

func randomHex() string {
	raw := make([]byte, 20)
	_, _ = rand.Read(raw) // never fails
	return hex.EncodeToString(raw)
}

func randomKey() string {
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // never fails
	return base64.StdEncoding.EncodeToString(raw)
}
