package storage_test

import (
	"database/sql"
	"os"
	"testing"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/mediagate/mediagate/storage"
	"github.com/mediagate/mediagate/storage/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// noVictims lets transactions that wait for each other in a circle wait until a lock
// takes too long, which is an error. PostgreSQL would end one of them after a second,
// which then runs again, so that a circle would be no more than slow.
const noVictims = "&deadlock_timeout=1min"

// newPostgres is a database of the test's own.
func newPostgres(t *testing.T) backend {
	t.Helper()
	return postgresAt(pgtest.New(t), func(url string) string { return url + noVictims })
}

// postgresAt is the database of a URL, which the store reaches by way of another.
func postgresAt(url string, way func(url string) string) backend {
	return backend{
		open: func(t *testing.T, c storage.Config) *storage.Store {
			t.Helper()
			return openPostgres(t, way(url)+"&lock_timeout=50s", c)
		},
		raw: func(t *testing.T) *gorm.DB { t.Helper(); return openGORM(t, url) },
	}
}

// openGORM connects to the database past the store.
func openGORM(t *testing.T, url string) *gorm.DB {
	t.Helper()
	db, err := gorm.Open(postgres.Open(url), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return db
}

// openRaw is openGORM without GORM.
func openRaw(t *testing.T, url string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// execute runs the statements past the store.
func execute(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

func openPostgres(t *testing.T, url string, c storage.Config) *storage.Store {
	t.Helper()
	c.MaxOpenConns = 16
	s, err := storage.OpenPostgres(t.Context(), url, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}
