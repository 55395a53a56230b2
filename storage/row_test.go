package storage_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate/storage"
	"github.com/mediagate/mediagate/storage/pgtest"
)

// The rows' structs and the migrations are the two places that know a column.
func TestRowsHaveTheTablesColumns(t *testing.T) {
	t.Parallel()
	db := openRaw(t, pgtest.New(t))
	rows, err := db.QueryContext(t.Context(), `SELECT table_name, string_agg(column_name, ' ') FROM information_schema.columns
		WHERE table_schema = 'public' AND table_name <> 'goose_db_version' GROUP BY table_name`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	want := make(map[string][]string)
	for rows.Next() {
		var table, columns string
		if err := rows.Scan(&table, &columns); err != nil {
			t.Fatal(err)
		}
		want[table] = slices.Sorted(slices.Values(strings.Fields(columns)))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	got := storage.RowColumns()
	for table, columns := range got {
		got[table] = slices.Sorted(slices.Values(columns))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tables (-) and rows (+) differ:\n%s", diff)
	}
}
