package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/mediagate/mediagate/storage"
	"github.com/mediagate/mediagate/storage/sqlite"
)

func TestFileIsWhereItIsNamed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a b?c#d%41.db")
	s, err := sqlite.OpenStore(t.Context(), path, storage.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
}

func TestMissingFolder(t *testing.T) {
	t.Parallel()
	if _, err := sqlite.Open(filepath.Join(t.TempDir(), "none", "x.db")); err == nil {
		t.Fatal("opened a file in a folder that does not exist")
	}
}

// open opens a database of the test's own.
func open(t *testing.T) *gorm.DB {
	t.Helper()
	d, err := sqlite.Open(filepath.Join(t.TempDir(), "x.db"))
	if err != nil {
		t.Fatal(err)
	}
	db, err := gorm.Open(d, &gorm.Config{Logger: logger.Discard, TranslateError: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.ConnPool.(interface{ Close() error }).Close() })
	return db
}

func TestPragmasAndErrors(t *testing.T) {
	t.Parallel()
	db := open(t)
	writer, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "1", "foreign_keys": "1", "secure_delete": "1", "busy_timeout": "10000", "query_only": "0"} {
		var got string
		if err := writer.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got); err != nil || got != want {
			t.Errorf("PRAGMA %s is %q, want %q (error %v)", pragma, got, want, err)
		}
	}
	for _, statement := range []string{
		"CREATE TABLE parent (id INTEGER PRIMARY KEY, name TEXT UNIQUE, n INTEGER CHECK (n > 0))",
		"CREATE TABLE child (parent_id INTEGER REFERENCES parent (id))",
		"INSERT INTO parent VALUES (1, 'a', 1)",
	} {
		if err := db.Exec(statement).Error; err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		statement string
		want      error
	}{
		"primary key": {"INSERT INTO parent VALUES (1, 'b', 1)", gorm.ErrDuplicatedKey},
		"unique":      {"INSERT INTO parent VALUES (2, 'a', 1)", gorm.ErrDuplicatedKey},
		"foreign key": {"INSERT INTO child VALUES (7)", gorm.ErrForeignKeyViolated},
		"check":       {"INSERT INTO parent VALUES (2, 'b', 0)", gorm.ErrCheckConstraintViolated},
	} {
		if err := db.Exec(test.statement).Error; !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
	}
	if err := db.Exec("SELECT nonsense FROM parent").Error; err == nil || errors.Is(err, gorm.ErrDuplicatedKey) {
		t.Errorf("a wrong statement: %v", err)
	}
}

// A reader in a snapshot neither waits for the writer nor sees what it does.
func TestReadersDoNotWait(t *testing.T) {
	t.Parallel()
	db := open(t)
	if err := db.Exec("CREATE TABLE x (n INTEGER)").Error; err != nil {
		t.Fatal(err)
	}
	count := func(db *gorm.DB) (n int) {
		t.Helper()
		if err := db.Raw("SELECT COUNT(*) FROM x").Scan(&n).Error; err != nil {
			t.Fatal(err)
		}
		return n
	}
	err := db.WithContext(context.Background()).Transaction(func(write *gorm.DB) error {
		if err := write.Exec("INSERT INTO x VALUES (1)").Error; err != nil {
			return err
		}
		if got := count(db); got != 0 {
			t.Errorf("a reader sees %d uncommitted rows", got)
		}
		return db.Transaction(func(read *gorm.DB) error {
			if got := count(read); got != 0 {
				t.Errorf("a snapshot sees %d uncommitted rows", got)
			}
			if err := read.Exec("INSERT INTO x VALUES (2)").Error; err == nil {
				t.Error("a reading transaction wrote")
			}
			return nil
		}, &sql.TxOptions{ReadOnly: true})
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := count(db); got != 1 {
		t.Errorf("%d rows after the commit, want 1", got)
	}
}
