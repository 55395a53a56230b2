package sqlite

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	moderncsqlite "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/mediagate/mediagate/storage"
)

const driverName = "sqlite" // as modernc.org/sqlite registers itself

// Open opens the database in the file, and makes the file if it does not exist. The dialector owns
// the connections until storage.Store.Close.
func Open(path string) (gorm.Dialector, error) {
	pool, err := openPool(path)
	if err != nil {
		return nil, err
	}
	return Over(pool), nil
}

// Over returns a dialector that uses the caller's connections.
func Over(pool gorm.ConnPool) gorm.Dialector {
	return &dialector{sqlite.New(sqlite.Config{DriverName: driverName, Conn: pool})}
}

// OpenStore opens and migrates the store in the file. It replaces the dialector of c.
func OpenStore(ctx context.Context, path string, c storage.Config) (*storage.Store, error) {
	pool, err := openPool(path)
	if err != nil {
		return nil, err
	}
	c.Dialector = Over(pool)
	store, err := storage.Open(ctx, c)
	if err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	if err := store.Migrate(ctx); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return store, nil
}

// cacheKiB is how much of the file the connection that writes keeps in memory.
const cacheKiB = 16_000

// cacheSize returns the pragma that sets the cache to that size. SQLite takes KiB as a negative
// number.
func cacheSize(kib int) string { return fmt.Sprintf("cache_size(-%d)", kib) }

// dsn returns the data source name: the file and the settings of each connection. WAL with NORMAL
// survives a kill of the process. A loss of power may lose the last commits, but the file stays
// consistent. Deleted data is overwritten with zeros, because clients erase tasks.
func dsn(path string, extra url.Values) string {
	q := url.Values{
		"_pragma": {
			"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(NORMAL)", "foreign_keys(ON)",
			"secure_delete(ON)", cacheSize(cacheKiB), "temp_store(MEMORY)",
		},
		"_time_integer_format": {"unix_micro"}, // what storage's time columns hold
	}
	for k, v := range extra {
		q[k] = append(q[k], v...)
	}
	return (&url.URL{Scheme: "file", Opaque: url.PathEscape(path), RawQuery: q.Encode()}).String()
}

// dialector is GORM's, with the errors of this driver.
type dialector struct{ gorm.Dialector }

// Translate implements gorm.ErrorTranslator for this driver's result codes. GORM's own translation
// only knows the codes of another driver.
func (d *dialector) Translate(err error) error {
	var lite *moderncsqlite.Error
	if !errors.As(err, &lite) {
		return err
	}
	known := map[int]error{
		sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY: gorm.ErrDuplicatedKey,
		sqlite3.SQLITE_CONSTRAINT_UNIQUE:     gorm.ErrDuplicatedKey,
		sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY: gorm.ErrForeignKeyViolated,
		sqlite3.SQLITE_CONSTRAINT_CHECK:      gorm.ErrCheckConstraintViolated,
	}
	if kind, ok := known[lite.Code()]; ok {
		return fmt.Errorf("%w: %w", kind, err)
	}
	return err
}
