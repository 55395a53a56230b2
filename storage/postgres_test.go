package storage_test

import (
	"context"
	"database/sql"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/storage"
	"github.com/mediagate/mediagate/storage/pgtest"
)

// Several processes may start at once on an empty database.
func TestMigrateAtOnce(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	db := openRaw(t, url)
	execute(t, db, "CREATE SCHEMA empty")
	first := openPostgres(t, url+"&search_path=empty", storage.Config{})
	if err := first.Migrated(t.Context()); !mediagate.Is(err, mediagate.KindInvalid) || !strings.Contains(err.Error(), "is at migration 0,") {
		t.Errorf("before: %v", err)
	}
	if err := first.AwaitMigrated(t.Context(), 0); !mediagate.Is(err, mediagate.KindInvalid) {
		t.Errorf("before, without patience: %v", err)
	}
	var group sync.WaitGroup
	group.Go(func() {
		if err := first.AwaitMigrated(t.Context(), time.Hour); err != nil {
			t.Errorf("meanwhile: %v", err)
		}
	})
	for range 3 {
		s := openPostgres(t, url+"&search_path=empty", storage.Config{})
		group.Go(func() {
			if err := s.Migrate(t.Context()); err != nil {
				t.Errorf("migrate: %v", err)
			}
		})
	}
	group.Wait()
	if err := first.Migrated(t.Context()); err != nil {
		t.Errorf("after: %v", err)
	}
	migratedOnce(t, db, "empty")
	execute(t, db, `DELETE FROM empty.goose_db_version
		WHERE version_id = (SELECT MAX(version_id) FROM empty.goose_db_version)`)
	if err := first.Migrated(t.Context()); !mediagate.Is(err, mediagate.KindInvalid) {
		t.Errorf("without the last: %v", err)
	}
}

// migratedOnce checks that each migration of the schema ran, and ran once.
func migratedOnce(t *testing.T, db *sql.DB, schema string) {
	t.Helper()
	var ran, different int
	query := "SELECT COUNT(*), COUNT(DISTINCT version_id) FROM " + schema + ".goose_db_version WHERE version_id > 0"
	if err := db.QueryRowContext(t.Context(), query).Scan(&ran, &different); err != nil {
		t.Fatal(err)
	}
	if ran == 0 || ran != different {
		t.Errorf("%d migrations ran %d times", different, ran)
	}
}

func TestServerAway(t *testing.T) {
	t.Parallel()
	_, err := storage.OpenPostgres(t.Context(), "postgres://nobody@127.0.0.1:1/none?connect_timeout=2", storage.Config{})
	if !mediagate.Is(err, mediagate.KindUnavailable) {
		t.Errorf("no server: %v, want unavailable", err)
	}
}

// A server that turns us away is told from one that is not there, and a call that
// we gave up ourselves from both.
func TestServerRefuses(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	s := openPostgres(t, url, storage.Config{})
	called, off := context.WithCancel(t.Context())
	off()
	for want, err := range map[string]error{
		"the database refuses us: ": func() error {
			_, err := storage.OpenPostgres(t.Context(), strings.Replace(url, "postgres://", "postgres://nobody-of-this-name:x@", 1), storage.Config{})
			return err
		}(),
		"called off: ": s.Ping(called),
	} {
		if !mediagate.Is(err, mediagate.KindUnavailable) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "away") {
			t.Errorf("want %q in %v", want, err)
		}
	}
}

func TestServerDropsConnections(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	s := openPostgres(t, url, storage.Config{})
	if _, err := s.CreateAccount(t.Context(), mediagate.Account{Name: "before"}); err != nil {
		t.Fatal(err)
	}
	execute(t, openRaw(t, url), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	// The call that finds its connection cut may fail, but says that a
	// repetition helps; and it does.
	if _, err := s.CreateAccount(t.Context(), mediagate.Account{Name: "after"}); err != nil {
		if !mediagate.Is(err, mediagate.KindUnavailable) {
			t.Fatalf("a cut connection: %v, want unavailable", err)
		}
		if _, err := s.CreateAccount(t.Context(), mediagate.Account{Name: "after"}); err != nil {
			t.Fatalf("repeated: %v", err)
		}
	}
}

// A lock that somebody keeps is an answer within a bound, which the URL may set.
func TestLockedRow(t *testing.T) {
	t.Parallel()
	m := newMeeting(t, storage.Config{}, "&lock_timeout=100")
	release := m.keep("SELECT 1 FROM accounts WHERE id = $1 FOR UPDATE", m.account)
	grant := func() error { return errOf(m.Grant(m.Context(), m.account, 1_000_000, "gift")) }
	m.kind(grant(), mediagate.KindUnavailable)
	release()
	m.noError(grant())
}

// What a connection asks of the server, so that a lost machine's locks are
// given back.
func TestSessionSettings(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	s := openPostgres(t, url+"&application_name=settings&lock_timeout=3210", storage.Config{MaxOpenConns: 1})
	for name, want := range map[string]string{
		"lock_timeout":                        "3210ms", // as the URL has it
		"idle_in_transaction_session_timeout": "30s",
	} {
		got, err := s.Setting(t.Context(), name)
		if err != nil || got != want {
			t.Errorf("%s is %q (%v), want %q", name, got, err, want)
		}
	}
	plain := openPostgres(t, url, storage.Config{MaxOpenConns: 1})
	if got, err := plain.Setting(t.Context(), "lock_timeout"); err != nil || got != "10s" {
		t.Errorf("lock_timeout is %q (%v), want 10s", got, err)
	}
}

func TestEncryptionKeyLength(t *testing.T) {
	t.Parallel()
	_, err := storage.OpenPostgres(t.Context(), pgtest.New(t), storage.Config{EncryptionKeys: [][]byte{make([]byte, 16)}})
	if err == nil || !strings.Contains(err.Error(), "encryption key 1 has 16 bytes") {
		t.Errorf("a short key: %v", err)
	}
}

// An index must serve what runs for every task or every second. Without rows
// the planner guesses by the width of a row alone: it is told not to sort.
// TestListsReadWhatTheyShow and TestLooksReadNoPast measure the statements on tasks,
// attempts and the ledger.
func TestPlansUseIndexes(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	config, err := stdlib.GetDefaultDriver().(*stdlib.Driver).OpenConnector(url + "&enable_seqscan=off&enable_bitmapscan=off")
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(config)
	t.Cleanup(func() { _ = db.Close() })
	for index, query := range map[string]string{
		"awaits_due":         "SELECT task_id FROM awaits WHERE channel = 'a' AND next_poll_at <= now() ORDER BY next_poll_at LIMIT 10",
		"keys_hash":          "SELECT id FROM keys WHERE hash = 'x' AND deleted_at IS NULL",
		"sessions_key":       "DELETE FROM sessions WHERE key_id = 'a'",
		"sessions_expiry":    "SELECT token_hash FROM sessions WHERE expires_at <= now() LIMIT 500",
		"queue_waiting":      "SELECT task_id FROM queue q WHERE channel = 'a' AND account_id = 'b' AND granted_at IS NULL AND NOT EXISTS (SELECT 1 FROM queue o WHERE o.task_id = q.task_id AND o.granted_at IS NOT NULL) ORDER BY since, task_id LIMIT 1",
		"queue_granted":      "UPDATE queue SET granted_at = NULL WHERE channel = 'a' AND granted_at <= now()",
		"wakes_due":          "SELECT account_id FROM wakes WHERE (asked OR tries > 0) AND account_id > 'a' ORDER BY account_id LIMIT 1",
		"wakes_new":          "SELECT account_id FROM wakes WHERE NOT asked AND tries = 0 AND account_id > 'a' ORDER BY account_id LIMIT 1",
		"turns_next":         "SELECT account_id FROM turns t WHERE channel = 'a' AND (SELECT 1 FROM queue q WHERE q.channel = t.channel AND q.account_id = t.account_id AND granted_at IS NULL LIMIT 1) IS NOT NULL ORDER BY served, since, account_id LIMIT 1",
		"tasks_account_open": "SELECT status FROM tasks WHERE account_id = 'a' AND status IN ('pending', 'processing') AND created_at >= now() AND created_at < now()",
		"usage_sums_time":    "SELECT cost FROM usage_sums WHERE span = 'day' AND begins_at >= now() AND begins_at < now()",
		"tasks_source":       "SELECT id FROM tasks WHERE source_id = 'a' AND source_id <> '' AND status IN ('pending', 'processing') LIMIT 1",
		"sources_pkey":       "SELECT task_id FROM sources WHERE source_id = 'a' AND task_id < 'b' ORDER BY task_id DESC LIMIT 10",
		"sources_task":       "DELETE FROM sources WHERE task_id = 'a'",
	} {
		if text := explain(t, db, query); !strings.Contains(text, index) || strings.Contains(text, "Sort") {
			t.Errorf("%s is not used by:\n%s", index, text)
		}
	}
}

func explain(t *testing.T, db *sql.DB, query string) string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "EXPLAIN "+query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var plan []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		plan = append(plan, line)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(plan, "\n")
}

// A process that stands still within a transaction loses it. When it goes on it
// may do it all again: nothing is wrong with what it asked.
func TestServerEndsIdleTransactions(t *testing.T) {
	t.Parallel()
	s := openPostgres(t, pgtest.New(t)+"&idle_in_transaction_session_timeout=50", storage.Config{})
	if err := s.Pausing(t.Context(), func() { time.Sleep(500 * time.Millisecond) }); !mediagate.Is(err, mediagate.KindUnavailable) {
		t.Errorf("after a pause: %v, want unavailable", err)
	}
	if err := s.Pausing(t.Context(), func() {}); err != nil {
		t.Errorf("without one: %v", err)
	}
}
