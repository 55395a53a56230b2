package storage_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/storage"
	"github.com/mediagate/mediagate/storage/pgtest"
)

// A pooler is found where nothing is said of one.
func TestPoolerIsFound(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	pooler := pgtest.NewPooler(t, d.url)
	for name, test := range map[string]struct {
		url    string
		given  storage.Pooler
		pooled bool
	}{
		"none":                    {url: d.url},
		"one":                     {url: pooler.URL(d.url), pooled: true},
		"said, and there":         {pooler.URL(d.url), storage.PoolerTransaction, true},
		"said, and not there":     {d.url, storage.PoolerTransaction, true},
		"denied, and not there":   {d.url, storage.PoolerNone, false},
		"denied, as it keeps all": {pooler.URL(d.url), storage.PoolerNone, false},
	} {
		s := openPostgres(t, test.url, storage.Config{Pooler: test.given})
		if got := s.Pooled(); got != test.pooled {
			t.Errorf("%s: pooled is %v", name, got)
		}
	}
}

// rush has two processes do all kinds of writes and reads at once, for many
// accounts, and returns what went wrong. Each has more connections than a pooler has. On a busy
// machine a lock that all of them need may take longer than the usual ten seconds.
func rush(t *testing.T, url string, c storage.Config) (errs []error) {
	t.Helper()
	var mu sync.Mutex
	var group sync.WaitGroup
	for process := range 2 {
		s := openPostgres(t, url+"&lock_timeout=50s", c)
		for i := range 16 {
			group.Go(func() {
				if err := live(t.Context(), s, fmt.Sprintf("%d_%d", process, i)); err != nil {
					mu.Lock()
					defer mu.Unlock()
					errs = append(errs, err)
				}
			})
		}
	}
	group.Wait()
	return errs
}

// live is the life of an account: what it does to rows of its own meets itself, and
// what is counted for a group meets all.
func live(ctx context.Context, s *storage.Store, name string) error {
	account, err := s.CreateAccount(ctx, mediagate.Account{Name: name})
	if err != nil {
		return fmt.Errorf("account: %w", err)
	}
	key, err := s.CreateKey(ctx, mediagate.Key{AccountID: account.ID, Unlimited: true}, sha256.Sum256([]byte(name)))
	if err != nil {
		return fmt.Errorf("key: %w", err)
	}
	grant := func(i int) error { return errOf(s.Grant(ctx, account.ID, 1_000_000, fmt.Sprint(i))) }
	task := func(i int) error {
		id := fmt.Sprintf("task_%s_%d", name, i)
		if _, _, err := s.Submit(ctx, mediagate.NewTask{Group: "all", Capacity: i % 2 * 1000, IdempotencyKey: id, Task: mediagate.Task{
			ID: id, AccountID: account.ID, KeyID: key.ID, Model: "m", Type: mediagate.TypeImage, Params: []byte("{}"), Hold: 10,
			DeadlineAt: time.Now().Add(time.Hour),
		}}); err != nil {
			return err
		}
		if _, err := s.Task(ctx, account.ID, id); err != nil {
			return err
		}
		return errOf(s.Change(ctx, id, cancelled(id).events...))
	}
	rate := func(int) error { return errOf(s.TakeRates(ctx, []mediagate.RateLimit{{Of: "all", PerMinute: 1000}})) }
	count := func(int) error {
		return errOf(s.Statement(ctx, mediagate.StatementFilter{AccountID: account.ID, Limit: 10}))
	}
	if err := grant(-1); err != nil {
		return fmt.Errorf("grant: %w", err)
	}
	var group sync.WaitGroup
	errs := make(chan error, 100)
	for what, do := range map[string]func(int) error{"grant": grant, "task": task, "rate": rate, "statement": count} {
		for i := range 4 {
			group.Go(func() {
				if err := do(i); err != nil {
					errs <- fmt.Errorf("%s: %w", what, err)
				}
			})
		}
	}
	group.Wait()
	close(errs)
	return <-errs
}

// Two processes with more connections than the pooler has work at once, and leave
// the pooler's sessions as they were for whoever else uses them.
func TestPoolerUnderLoad(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	pooler := pgtest.NewPooler(t, d.url)
	for _, err := range rush(t, pooler.URL(d.url), storage.Config{}) {
		t.Error(err)
	}
	var sessions int
	row := d.admin.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name <> 'admin'`)
	if err := row.Scan(&sessions); err != nil || sessions > pgtest.PoolSize {
		t.Errorf("%d sessions (%v)", sessions, err)
	}

	// Transactions that are open at the same time have all of the pooler's sessions.
	other := openRaw(t, pooler.URL(d.url)+"&default_query_exec_mode=simple_protocol")
	for range pgtest.PoolSize {
		tx, err := other.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		var set, prepared, locks string
		if err := tx.QueryRowContext(t.Context(), `SELECT COALESCE((SELECT string_agg(name, ', ') FROM pg_settings
				WHERE source = 'session' AND name NOT IN ('client_encoding', 'DateStyle', 'TimeZone', 'standard_conforming_strings', 'application_name')), ''),
			COALESCE((SELECT string_agg(name, ', ') FROM pg_prepared_statements), ''),
			COALESCE((SELECT string_agg(mode, ', ') FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()), '')`).Scan(&set, &prepared, &locks); err != nil {
			t.Fatal(err)
		}
		if set != "" || prepared != "" || locks != "" {
			t.Errorf("left in a session: settings %q, prepared statements %q, locks %q", set, prepared, locks)
		}
	}
}

// A pooler that is not named makes statements fail that may be tried again: the
// database is away.
func TestPoolerThatIsDenied(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s := openPostgres(t, pgtest.NewPooler(t, d.url).URL(d.url), storage.Config{Pooler: storage.PoolerNone})
	failed := false
	for round := 0; round < 100 && !failed; round++ {
		var group sync.WaitGroup
		errs := make([]error, 16)
		for i := range errs {
			group.Go(func() { errs[i] = live(t.Context(), s, fmt.Sprintf("%d_%d", round, i)) })
		}
		group.Wait()
		for _, err := range errs {
			if failed = failed || err != nil; err != nil && !mediagate.Is(err, mediagate.KindUnavailable) {
				t.Errorf("%v, want unavailable", err)
			}
		}
	}
	if !failed {
		t.Error("all statements found what they had prepared")
	}
}

// Of many processes that start at once behind a pooler one migrates.
func TestMigrateBehindPooler(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.set(map[string]string{"search_path": "fresh"})
	execute(t, d.admin, "CREATE SCHEMA fresh")
	url := pgtest.NewPooler(t, d.url).URL(d.url)
	var group sync.WaitGroup
	for range 2 * pgtest.PoolSize {
		s := openPostgres(t, url, storage.Config{})
		group.Go(func() {
			if err := s.Migrate(t.Context()); err != nil {
				t.Errorf("migrate: %v", err)
			}
		})
	}
	group.Wait()
	migratedOnce(t, d.admin, "fresh")
}

// strange is what a role or a database may have, and nothing here relies on.
var strange = map[string]string{
	"default_transaction_isolation": "serializable", "statement_timeout": "500ms", "lock_timeout": "500ms", "idle_in_transaction_session_timeout": "500ms",
	"idle_session_timeout": "1s", "timezone": "Asia/Kathmandu", "datestyle": "SQL, DMY", "intervalstyle": "sql_standard", "bytea_output": "escape",
	"standard_conforming_strings": "off", "client_encoding": "LATIN1", "extra_float_digits": "-15", "synchronous_commit": "off", "jit": "on",
	"default_transaction_deferrable": "on", "array_nulls": "off", "quote_all_identifiers": "on", "plan_cache_mode": "force_generic_plan",
}

func (d database) set(settings map[string]string) {
	d.t.Helper()
	for name, value := range settings {
		execute(d.t, d.admin, fmt.Sprintf(
			"DO $$ BEGIN EXECUTE format('ALTER DATABASE %%I SET %s = %%L', current_database(), '%s'); END $$", name, value))
	}
}

// A session sets what it relies on.
func TestStrangeSettings(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.set(strange)
	for _, err := range rush(t, d.url, storage.Config{}) {
		t.Error(err)
	}
	s := openPostgres(t, d.url, storage.Config{})
	name := "Zoë \\ ünïcode 映画"
	account, err := s.CreateAccount(t.Context(), mediagate.Account{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	var stored string
	if err := d.admin.QueryRowContext(t.Context(), "SELECT name FROM accounts WHERE id = $1", account.ID).Scan(&stored); err != nil || stored != name {
		t.Errorf("stored %q (%v), want %q", stored, err, name)
	}
	if off := s.ClockOffset(); off.Abs() > time.Minute {
		t.Errorf("the database's clock was read %s apart", off)
	}
	for name, want := range map[string]string{"synchronous_commit": "on", "statement_timeout": "0", "default_transaction_isolation": "read committed", "idle_session_timeout": "0"} {
		if got, err := s.Setting(t.Context(), name); err != nil || got != want {
			t.Errorf("%s is %q (%v), want %q", name, got, err, want)
		}
	}
	migrated := openPostgres(t, d.url+"&search_path=empty", storage.Config{})
	execute(t, d.admin, "CREATE SCHEMA empty")
	if err := migrated.Migrate(t.Context()); err != nil {
		t.Errorf("migrate: %v", err)
	}
}

// Behind a pooler the role has to have the isolation level that single statements
// rely on, and commits that last. Other settings are told in the log.
func TestStrangeSettingsBehindPooler(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	fresh := func() string { return pgtest.NewPooler(t, d.url).URL(d.url) } // whose sessions begin with what is set by then
	var log bytes.Buffer
	open := func() error {
		s, err := storage.OpenPostgres(t.Context(), fresh(), storage.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err == nil {
			t.Cleanup(func() { _ = s.Close() })
		}
		return err
	}
	if err := open(); err != nil {
		t.Fatal(err)
	}
	if want := "idle_in_transaction_session_timeout, jit, lock_timeout"; !strings.Contains(log.String(), want) {
		t.Errorf("the log does not name %q:\n%s", want, &log)
	}
	apart := map[string]string{"lock_timeout": "20s", "idle_in_transaction_session_timeout": "1min", "jit": "off"}
	for name, value := range strange {
		if !strings.HasSuffix(name, "_timeout") && name != "jit" && name != "default_transaction_isolation" && name != "synchronous_commit" {
			apart[name] = value
		}
	}
	d.set(apart)
	log.Reset()
	for _, err := range rush(t, fresh(), storage.Config{}) {
		t.Error(err)
	}
	if err := open(); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(log.String(), "lacks settings") {
		t.Errorf("the log complains:\n%s", &log)
	}
	for _, refused := range []struct{ name, value, want string }{
		{"default_transaction_isolation", "serializable", "read committed"}, {"synchronous_commit", "off", "on"},
	} {
		d.set(map[string]string{refused.name: refused.value})
		if err := open(); !mediagate.Is(err, mediagate.KindInvalid) || !strings.Contains(err.Error(), fmt.Sprintf("SET %s = '%s'", refused.name, refused.want)) {
			t.Errorf("open with %s %s: %v", refused.name, refused.value, err)
		}
		d.set(map[string]string{refused.name: refused.want})
	}
}
