package storage

import (
	"bytes"
	"context"
	"database/sql"
	"embed"
	"io/fs"
	"path"
	"text/template"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/mediagate/mediagate"
)

//go:embed migrations/*.sql
var migrations embed.FS

// postgresWords and sqliteWords hold the SQL for each word of the migrations' templates.
//
// An unknown word is an error (missingkey=error), so a misspelled one cannot become empty SQL.
var postgresWords = map[string]any{
	"postgres": true,
	"bigint":   "bigint",
	"time":     "timestamptz",
	"bytes":    "bytea",
	"bool":     "boolean",
	"false":    "false",
	"true":     "true",
	"bytewise": `COLLATE "C"`,
	"strict":   "",
	// A migration without a transaction builds indexes while their tables are written.
	"concurrently": "CONCURRENTLY",
}

var sqliteWords = map[string]any{
	"postgres": false,
	"bigint":   "integer",
	"time":     "integer", // microseconds since 1970 in UTC
	"bytes":    "blob",
	"bool":     "integer",
	"false":    "0",
	"true":     "1",
	"bytewise": "", // SQLite compares text by its bytes
	"strict":   "STRICT",

	"concurrently": "",
}

// migrationFS contains the migrations in the SQL of one database.
//
// goose reads it like the embedded folder, and needs to know nothing of the templates.
type migrationFS struct {
	fs.FS
	words map[string]any
}

// Open implements fs.FS. It expands the template if name is a migration.
func (m migrationFS) Open(name string) (fs.File, error) {
	file, err := m.FS.Open(name)
	if err != nil || path.Ext(name) != ".sql" {
		return file, err
	}
	parsed, err := template.New(name).Option("missingkey=error").ParseFS(m.FS, name)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err := parsed.Execute(&text, m.words); err != nil {
		return nil, err
	}
	return expandedFile{file, &text}, nil
}

// expandedFile is the file of a template, whose reader gets the expanded text.
type expandedFile struct {
	fs.File
	text *bytes.Buffer
}

// Read implements fs.File.
func (f expandedFile) Read(p []byte) (int, error) { return f.text.Read(p) }

// Migrated returns KindInvalid when the schema lacks a migration that this program has. A
// schema of a newer program is accepted.
func (s *Store) Migrated(ctx context.Context) error {
	files, err := fs.ReadDir(migrations, "migrations") // sorted by name
	if err != nil {
		return dbError(err, "read the migrations")
	}
	// The name of a migration begins with its number, for example 00004_indexes.sql.
	needed, err := goose.NumericComponent(files[len(files)-1].Name())
	if err != nil {
		return dbError(err, "read the migrations")
	}
	var has int64
	const latest = "SELECT COALESCE(MAX(version_id), 0) FROM goose_db_version WHERE is_applied"
	err = s.sql.QueryRowContext(ctx, latest).Scan(&has)
	// Without goose's table no migration has run yet: has stays 0.
	if err != nil && pgCode(err) != noTable {
		return dbError(err, "read the schema's version")
	}
	if has < needed {
		return mediagate.Errorf(mediagate.KindInvalid,
			"the database is at migration %d, and this program needs %d: run its migrate first", has, needed)
	}
	return nil
}

// migratedInterval is how often AwaitMigrated checks the schema.
const migratedInterval = time.Second

// AwaitMigrated repeats Migrated until it succeeds or patience is over: another process may
// be running the migrations.
//
// AwaitMigrated warns once, with the reason. An error that is not about the schema, for example a
// database that is away, ends the wait at once.
func (s *Store) AwaitMigrated(ctx context.Context, patience time.Duration) error {
	over := time.After(patience)
	for warned := false; ; warned = true {
		err := s.Migrated(ctx)
		if !mediagate.Is(err, mediagate.KindInvalid) {
			return err
		}
		if !warned {
			s.log.WarnContext(ctx, "waiting for the database's migrations", "error", err, "at_most", patience.String())
		}
		select {
		case <-ctx.Done():
			return err
		case <-over:
			return err
		case <-time.After(migratedInterval):
		}
	}
}

// noTable is PostgreSQL's code for a table that does not exist.
const noTable = "42P01"

// Migrate brings the schema up to date. Several processes may start at once:
// on PostgreSQL one of them migrates and the others wait for it.
//
// A migration that has run is recorded in goose_db_version and does not run again. If a process
// dies between two migrations, the next call continues.
func (s *Store) Migrate(ctx context.Context) error {
	dialect, words := goose.DialectPostgres, postgresWords
	if s.lite {
		dialect, words = goose.DialectSQLite3, sqliteWords
	} else {
		unlock, err := s.lockMigrations(ctx)
		if err != nil {
			return dbError(err, "wait for another's migration")
		}
		defer unlock()
	}
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return dbError(err, "migrate")
	}
	provider, err := goose.NewProvider(dialect, s.sql, migrationFS{files, words})
	if err != nil {
		return dbError(err, "migrate")
	}
	done, err := provider.Up(ctx)
	for _, m := range done {
		took := m.Duration.Round(time.Millisecond)
		s.log.InfoContext(ctx, "migrated", "version", m.Source.Version, "took", took.String())
	}
	return dbError(err, "migrate")
}

const (
	migrationWait     = 5 * time.Minute // for the migration of another process
	migrationInterval = time.Second     // between two tries to take the lock
)

// lockMigrations takes the advisory lock of migrations until unlock is called. Other
// processes wait for it.
//
// A transaction on a connection of its own holds the lock, since a pooler in transaction mode
// keeps no session. A waiting process holds no connection, because a pooler has few. The
// transaction must hold no snapshot, because CREATE INDEX CONCURRENTLY waits for all older
// snapshots: a statement of the extended protocol would keep one, so the simple protocol
// is used.
func (s *Store) lockMigrations(ctx context.Context) (unlock func(), err error) {
	// The bound is for the wait alone: the transaction that holds the lock lives on ctx, as long as
	// the migrations take.
	wait, cancel := context.WithTimeout(ctx, migrationWait)
	defer cancel()
	for {
		tx, err := s.begin(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
		if err != nil {
			return nil, err
		}
		unlock := func() { _ = tx.Rollback() }
		var locked bool
		// The connection is idle in its transaction while the migrations run on other connections, so
		// the timeout for that is switched off.
		err = tx.QueryRowContext(ctx, `SELECT pg_try_advisory_xact_lock($1),
				set_config('idle_in_transaction_session_timeout', '0', true)`,
			pgx.QueryExecModeSimpleProtocol, lock.DefaultLockID).Scan(&locked, new(string))
		if err == nil && locked {
			return unlock, nil
		}
		unlock()
		if err != nil {
			return nil, err
		}
		select {
		case <-wait.Done():
			return nil, wait.Err()
		case <-time.After(migrationInterval):
		}
	}
}
