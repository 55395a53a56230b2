package storage_test

import (
	"context"
	"database/sql"
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
	if _, err := d.admin.ExecContext(d.t.Context(),
		"DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = "+value+"', current_database()); END $$"); err != nil {
		d.t.Fatal(err)
	}
}

func (d database) cut() {
	d.t.Helper()
	if _, err := d.admin.ExecContext(d.t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name <> 'admin'`); err != nil {
		d.t.Fatal(err)
	}
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
	account, err := s.CreateAccount(t.Context(), mediagate.Account{Name: "one"})
	if err != nil {
		t.Fatal(err)
	}
	d.failOver(true)
	d.cut()
	// A read still works, on as many connections as are asked for at once.
	eventually(t, "read on a standby", func(ctx context.Context) error {
		_, err := s.Account(ctx, account.ID)
		return err
	})
	_, err = s.CreateAccount(t.Context(), mediagate.Account{Name: "two"})
	unavailable(t, "to write", err)
	_, _, _, err = s.Grant(t.Context(), account.ID, 1_000_000, "gift")
	unavailable(t, "a transaction", err)
	unavailable(t, "to ping", s.Ping(t.Context()))

	// The new sessions write again; those that are open never will.
	d.failOver(false)
	eventually(t, "ready again", s.Ping)
	eventually(t, "write again", func(ctx context.Context) error {
		_, _, _, err := s.Grant(ctx, account.ID, 1_000_000, "gift")
		return err
	})
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
	_, err := s.CreateAccount(t.Context(), mediagate.Account{Name: "one"})
	unavailable(t, "to write", err)
	if err := s.Warm(t.Context(), 8); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if _, err := s.CreateAccount(t.Context(), mediagate.Account{Name: "two"}); err != nil {
			t.Fatalf("a connection to the standby is still in use: %v", err)
		}
	}
	eventually(t, "the server sees them go", func(context.Context) error {
		for pid := range d.backends() {
			if before[pid] {
				return mediagate.Errorf(mediagate.KindInternal, "connection %d is still open", pid)
			}
		}
		return nil
	})
}

// backends are the gateway's connections, as the server counts them.
func (d database) backends() map[int]bool {
	d.t.Helper()
	rows, err := d.admin.QueryContext(d.t.Context(),
		"SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'gate'")
	if err != nil {
		d.t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	pids := map[int]bool{}
	for rows.Next() {
		var pid int
		if err := rows.Scan(&pid); err != nil {
			d.t.Fatal(err)
		}
		pids[pid] = true
	}
	if err := rows.Err(); err != nil {
		d.t.Fatal(err)
	}
	return pids
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
		if err := s.Ping(ctx); err != nil {
			return err
		}
		for pid := range d.backends() {
			if before[pid] {
				return mediagate.Errorf(mediagate.KindInternal, "connection %d is still open", pid)
			}
		}
		return nil
	})
}
