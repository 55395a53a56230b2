package pgtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mediagate/mediagate/storage"
)

// server is the server on which New clones databases. Main sets it.
type server struct {
	admin    *sql.DB
	url      func(database string) string
	template string
	strategy string // of clones, as CREATE DATABASE names it
	next     atomic.Int64
}

// current is the server of this test binary. Package testing offers no other way to pass it from Main
// to New.
var current atomic.Pointer[server]

// Main runs a package's tests with a PostgreSQL server and returns their exit code. Afterwards it stops
// the server and removes its files, however the tests ended.
//
//	func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }
func Main(m *testing.M) int {
	stop, err := open(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		return 1
	}
	code := m.Run()
	if err := stop(); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		return max(code, 1)
	}
	return code
}

// New makes a migrated database for the test and returns its URL. The database is dropped when the
// test ends.
func New(tb testing.TB) string {
	tb.Helper()
	s := current.Load()
	if s == nil {
		tb.Fatal("pgtest: the package's TestMain must run its tests through pgtest.Main")
	}
	name := fmt.Sprintf("%s_%d", s.template, s.next.Add(1))
	if _, err := s.admin.ExecContext(tb.Context(), "CREATE DATABASE "+name+" TEMPLATE "+s.template+s.strategy); err != nil {
		tb.Fatalf("pgtest: clone the template: %v", err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if _, err := s.admin.ExecContext(ctx, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			tb.Errorf("pgtest: drop %s: %v", name, err)
		}
	})
	return s.url(name)
}

// open starts or finds the server and makes the template.
func open(ctx context.Context) (stop func() error, err error) {
	s := &server{template: fmt.Sprintf("mediagate_test_%d_%d", os.Getpid(), time.Now().UnixNano())}
	end := func() error { return nil }
	if given := os.Getenv("MEDIAGATE_TEST_POSTGRES"); given != "" {
		u, err := url.Parse(given)
		if err != nil {
			return nil, errors.New("MEDIAGATE_TEST_POSTGRES is no URL")
		}
		s.url = func(database string) string {
			other := *u
			other.Path = "/" + database
			return other.String()
		}
		if s.admin, err = sql.Open("pgx", given); err != nil {
			return nil, fmt.Errorf("MEDIAGATE_TEST_POSTGRES: %w", err)
		}
	} else {
		dir, err := os.MkdirTemp(quickDir(), "mediagate-pg-")
		if err != nil {
			return nil, fmt.Errorf("make a folder: %w", err)
		}
		cluster, err := start(filepath.Clean(dir), dir)
		if err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
		end = func() error { return errors.Join(cluster.Stop(), os.RemoveAll(dir)) }
		s.url = cluster.URL
		if s.admin, err = sql.Open("pgx", cluster.URL("postgres")); err != nil {
			return nil, errors.Join(err, end())
		}
	}
	stop = func() error {
		current.Store(nil)
		_, dropped := s.admin.ExecContext(ctx, "DROP DATABASE IF EXISTS "+s.template+" WITH (FORCE)")
		return errors.Join(dropped, s.admin.Close(), end())
	}
	if err := s.makeTemplate(ctx); err != nil {
		return nil, errors.Join(err, stop())
	}
	current.Store(s)
	return stop, nil
}

// quickDir returns a folder in memory with room for the databases, or "" if there is none. A database
// has some hundred files; on a disk a test would spend most of its time on making and removing them.
func quickDir() string {
	const memory, room = "/dev/shm", 4 << 30
	var fs unix.Statfs_t
	if err := unix.Statfs(memory, &fs); err != nil || fs.Bavail < room/uint64(fs.Bsize) {
		return ""
	}
	if unix.Access(memory, unix.W_OK|unix.X_OK) != nil {
		return ""
	}
	return memory
}

func (s *server) makeTemplate(ctx context.Context) error {
	var version int
	if err := s.admin.QueryRowContext(ctx, "SELECT current_setting('server_version_num')::int").Scan(&version); err != nil {
		return fmt.Errorf("read the server's version: %w", err)
	}
	// To copy the files of the template takes half as long as the way that newer servers prefer,
	// which writes all of them to the log.
	if version >= 15_00_00 {
		s.strategy = " STRATEGY file_copy"
	}
	if _, err := s.admin.ExecContext(ctx, "CREATE DATABASE "+s.template); err != nil {
		return fmt.Errorf("make the template database: %w", err)
	}
	store, err := storage.OpenPostgres(ctx, s.url(s.template), storage.Config{})
	if err != nil {
		return fmt.Errorf("open the template database: %w", err)
	}
	if err := store.Migrate(ctx); err != nil {
		return errors.Join(fmt.Errorf("migrate the template database: %w", err), store.Close())
	}
	if err := store.Close(); err != nil && !strings.Contains(err.Error(), "closed") {
		return fmt.Errorf("close the template database: %w", err)
	}
	return nil
}
