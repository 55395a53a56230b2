package sqlite

import (
	"database/sql"
	"path/filepath"
	"testing"
)

// However many connections read, they cache no more than the one that writes.
func TestReadersShareTheCache(t *testing.T) {
	t.Parallel()
	p, err := openPool(filepath.Join(t.TempDir(), "test.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	size := func(of *sql.Row) int {
		t.Helper()
		var n int
		if err := of.Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	const query = "PRAGMA cache_size" // negative: KiB
	writer := size(p.writer.QueryRowContext(t.Context(), query))
	reader := size(p.readers.QueryRowContext(t.Context(), query))
	if all := reader * p.readers.Stats().MaxOpenConnections; writer != -cacheKiB || reader >= 0 || all < writer {
		t.Errorf("cache of the writer %d, of a reader %d, of all readers %d", writer, reader, all)
	}
}
