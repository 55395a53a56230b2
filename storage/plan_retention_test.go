package storage_test

import (
	"database/sql"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/storage"
	"github.com/mediagate/mediagate/storage/pgtest"
)

// A slice of retention reads what it looks at, however much there is, and whatever is
// asked of it: rows that stay, and rows that go.
func TestRetentionReadsSlices(t *testing.T) {
	t.Parallel()
	const (
		slices = 8 // the planner tries five times before it may keep a plan
		ids    = 500
	)
	now := time.Now().UTC().Truncate(time.Microsecond)
	url := pgtest.New(t)
	fillHistory(t, url, now)
	fillAttempts(t, url)
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	run := func(statements ...string) {
		t.Helper()
		for _, statement := range statements {
			if _, err := db.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
	}
	run(`INSERT INTO deliveries (task_id, round, attempt, at) SELECT id, 1, 1, created_at FROM tasks`,
		`INSERT INTO idempotency (account_id, key, path, body_sha256, task_id, created_at, expires_at) SELECT account_id, id, '/', '', id, created_at, created_at FROM tasks`,
		`UPDATE tasks SET results = '[{"key":"results/1"}]' WHERE status = 'completed'`,
		`VACUUM ANALYZE tasks, deliveries, idempotency`)
	slice := func(kind mediagate.Removal, most int64, removes int) {
		t.Helper()
		before, after := rowsRead(t, db), ""
		s := openPostgres(t, url, storage.Config{})
		for range slices {
			got, err := s.RemoveRows(t.Context(), kind, now.Add(-time.Hour), after)
			if err != nil {
				t.Fatal(err)
			}
			if got.Removed < removes-20 || got.Removed > removes || !got.More {
				t.Errorf("%s: %+v, want %d or some less", kind, got, removes)
			}
			after = got.Next
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if read := (rowsRead(t, db) - before) / slices; read > most*ids {
			t.Errorf("%s: %d rows and entries read a slice, want at most %d for each id", kind, read, most)
		}
	}
	slice(mediagate.RemoveDeliveries, 40, ids)
	slice(mediagate.RemoveIdempotency, 40, ids)
	slice(mediagate.RemoveResults, 40, ids)
	slice(mediagate.RemoveTasks, 40, ids)
}
