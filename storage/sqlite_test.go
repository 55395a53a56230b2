package storage_test

import (
	"path/filepath"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/mediagate/mediagate/storage"
	"github.com/mediagate/mediagate/storage/sqlite"
)

// databases make a fresh database of each kind.
var databases = map[string]func(t *testing.T) backend{"postgres": newPostgres, "sqlite": newSQLite}

func newSQLite(t *testing.T) backend {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "odd name?#%20.db")
	open := func(t *testing.T, c storage.Config) *storage.Store {
		t.Helper()
		s, err := sqlite.OpenStore(t.Context(), path, c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	raw := func(t *testing.T) *gorm.DB {
		t.Helper()
		d, err := sqlite.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		db, err := gorm.Open(d, &gorm.Config{Logger: logger.Discard})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.ConnPool.(interface{ Close() error }).Close() })
		db.Exec("PRAGMA foreign_keys = OFF") // to tamper
		return db
	}
	return backend{open: open, raw: raw, files: filepath.Join(dir, "*")}
}
