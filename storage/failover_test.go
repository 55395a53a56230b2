package storage_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/storage"
	"github.com/mediagate/mediagate/storage/pgtest"
)

// database is a test's database as an operator sees it.
type database struct {
	t     *testing.T
	url   string
	admin *sql.DB // past the store, and writing whatever is the default
}

func newDatabase(t *testing.T) database {
	t.Helper()
	url := pgtest.New(t)
	admin := openRaw(t, url+"&default_transaction_read_only=off&application_name=admin")
	return database{t, url, admin}
}

// failOver makes new sessions read-only, or writing again, as if the database's
// address led to another server from now on. Sessions that are open stay what
// they are, unless they are cut.
func (d database) failOver(readOnly bool) {
	d.t.Helper()
	value := "off"
	if readOnly {
		value = "on"
	}
	d.set(map[string]string{"default_transaction_read_only": value})
}

func (d database) cut() {
	d.t.Helper()
	execute(d.t, d.admin, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name <> 'admin'`)
}

// eventually asks until ok says so. It waits for what takes its time by
// design: failovers are told apart by a second.
func eventually(t *testing.T, what string, ok func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		err := ok(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func unavailable(t *testing.T, what string, err error) {
	t.Helper()
	if !mediagate.Is(err, mediagate.KindUnavailable) {
		t.Errorf("%s on a read-only server: %v, want unavailable", what, err)
	}
}

// After a failover the pool's connections lead to what is a
// standby now. That counts as away, and none of them is used again.
func TestReadOnlyServer(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.failOver(true)
	_, err := storage.OpenPostgres(t.Context(), d.url, storage.Config{})
	unavailable(t, "to open", err)

	d.failOver(false)
	s := openPostgres(t, d.url+"&application_name=gate", storage.Config{})
	p := benchOf(t, s).newPayer(0)
	grant := func(ctx context.Context) error { return errOf(s.Grant(ctx, p.account, 1_000_000, "gift")) }
	d.failOver(true)
	d.cut()
	// A read still works, on as many connections as are asked for at once.
	eventually(t, "read on a standby", func(ctx context.Context) error { return errOf(s.Account(ctx, p.account)) })
	unavailable(t, "to write", errOf(s.CreateAccount(t.Context(), mediagate.Account{Name: "two"})))
	unavailable(t, "a transaction", grant(t.Context()))
	unavailable(t, "to ping", s.Ping(t.Context()))

	// The new sessions write again; those that are open never will.
	d.failOver(false)
	eventually(t, "ready again", s.Ping)
	eventually(t, "write again", grant)
}

// One connection that meets the standby is enough for all others to be given
// up, also those that are in use at the time.
func TestReadOnlyServerEndsAllConnections(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s := openPostgres(t, d.url+"&application_name=gate", storage.Config{})
	d.failOver(true)
	d.cut()
	eventually(t, "read on a standby", func(ctx context.Context) error { return s.Warm(ctx, 8) })
	before := d.backends()
	if len(before) < 8 {
		t.Fatalf("%d connections are open", len(before))
	}
	d.failOver(false)
	unavailable(t, "to write", errOf(s.CreateAccount(t.Context(), mediagate.Account{Name: "one"})))
	if err := s.Warm(t.Context(), 8); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if _, err := s.CreateAccount(t.Context(), mediagate.Account{Name: "two"}); err != nil {
			t.Fatalf("a connection to the standby is still in use: %v", err)
		}
	}
	eventually(t, "the server sees them go", func(context.Context) error { return d.gone(before) })
}

// backends are the processes of the gateway's connections, as the server counts them.
func (d database) backends() []string {
	d.t.Helper()
	var pids string
	row := d.admin.QueryRowContext(d.t.Context(), `SELECT COALESCE(string_agg(pid::text, ' '), '') FROM pg_stat_activity
		WHERE datname = current_database() AND application_name = 'gate'`)
	if err := row.Scan(&pids); err != nil {
		d.t.Fatal(err)
	}
	return strings.Fields(pids)
}

// gone is an error while one of the connections is open.
func (d database) gone(before []string) error {
	for _, pid := range d.backends() {
		if slices.Contains(before, pid) {
			return fmt.Errorf("connection %s is still open", pid)
		}
	}
	return nil
}

// Connections are as many and as old as the settings allow.
func TestPoolBounds(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s, err := storage.OpenPostgres(t.Context(), d.url+"&application_name=gate", storage.Config{MaxOpenConns: 3, MaxConnAge: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if err := s.Warm(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := s.Warm(short, 4); err == nil {
		t.Error("four connections of three")
	}
	before := d.backends()
	eventually(t, "old connections are replaced", func(ctx context.Context) error {
		return errors.Join(s.Ping(ctx), d.gone(before))
	})
}
