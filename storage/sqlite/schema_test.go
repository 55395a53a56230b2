package sqlite_test

import (
	"cmp"
	"database/sql"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver

	"github.com/mediagate/mediagate/storage"
	"github.com/mediagate/mediagate/storage/pgtest"
	"github.com/mediagate/mediagate/storage/sqlite"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// table is what a database knows of a table, in words that both share. SQLite
// has three types of values, and both spell conditions in their own way, so
// types are told by class and conditions without brackets.
type table struct {
	Columns map[string]column
	Indexes map[string]index // the primary key under that name, others under their own
	Checks  []string
	Foreign []string
}

type column struct {
	Class    string
	Nullable bool
	Default  string
}

type index struct {
	Columns string
	Unique  bool
	Where   string
}

const primaryKey = "primary key"

// One schema has two migrations, which must make the same tables.
func TestMigrationsMakeTheSameTables(t *testing.T) {
	t.Parallel()
	production := openSQL(t, "pgx", pgtest.New(t))
	path := filepath.Join(t.TempDir(), "x.db")
	s, err := sqlite.OpenStore(t.Context(), path, storage.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	want, got := postgresTables(t, production), sqliteTables(t, openSQL(t, "sqlite", path))
	if want["tasks"].Columns["account_id"].Class != "text" || want["tasks"].Indexes[primaryKey].Columns != "id" || len(want["tasks"].Checks) == 0 {
		t.Fatalf("the tables were not read: %+v", want["tasks"])
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("PostgreSQL (-) and SQLite (+) differ:\n%s", diff)
	}
}

func openSQL(t *testing.T, driver, name string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// lines reads the rows of a query as texts.
func lines(t *testing.T, db *sql.DB, query string, args ...any) [][]string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var out [][]string
	for rows.Next() {
		line, to := make([]sql.NullString, len(names)), make([]any, len(names))
		for i := range line {
			to[i] = &line[i]
		}
		if err := rows.Scan(to...); err != nil {
			t.Fatal(err)
		}
		texts := make([]string, len(line))
		for i, text := range line {
			texts[i] = text.String
		}
		out = append(out, texts)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// gooseTable is the migrations' own bookkeeping.
const gooseTable = "goose_db_version"

func postgresTables(t *testing.T, db *sql.DB) map[string]table {
	t.Helper()
	tables := make(map[string]table)
	for _, line := range lines(t, db, `SELECT table_name, column_name, data_type, is_nullable, column_default
			FROM information_schema.columns WHERE table_schema = 'public' AND table_name <> $1`, gooseTable) {
		name := line[0]
		if _, ok := tables[name]; !ok {
			tables[name] = table{Columns: make(map[string]column), Indexes: make(map[string]index)}
		}
		class, ok := map[string]string{
			"text": "text", "bytea": "blob", "integer": "integer", "bigint": "integer", "boolean": "integer", "timestamp with time zone": "integer",
		}[line[2]]
		if !ok {
			t.Errorf("%s.%s is of the type %s, of which this test knows no class", name, line[1], line[2])
		}
		preset := canonical(line[4])
		if line[2] == "boolean" {
			preset = map[string]string{"": "", "false": "0", "true": "1"}[preset]
		}
		if preset == "pg_current_xact_id" { // for which SQLite has a trigger
			preset = ""
		}
		tables[name].Columns[line[1]] = column{Class: class, Nullable: line[3] == "YES", Default: preset}
	}
	for _, line := range lines(t, db, `SELECT c.relname, CASE WHEN i.indisprimary THEN 'primary key' ELSE x.relname END, i.indisunique,
				(SELECT string_agg(a.attname, ', ' ORDER BY k.place) FROM unnest(i.indkey) WITH ORDINALITY AS k (n, place)
					JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.n),
				pg_get_expr(i.indpred, i.indrelid)
			FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid JOIN pg_class x ON x.oid = i.indexrelid
			WHERE c.relnamespace = 'public'::regnamespace AND c.relname <> $1`, gooseTable) {
		tables[line[0]].Indexes[line[1]] = index{Columns: line[3], Unique: line[2] == "true", Where: canonical(line[4])}
	}
	for _, line := range lines(t, db, `SELECT c.relname, k.contype, pg_get_constraintdef(k.oid)
			FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
			WHERE c.relnamespace = 'public'::regnamespace AND c.relname <> $1 AND k.contype IN ('c', 'f')`, gooseTable) {
		of := tables[line[0]]
		if line[1] == "c" {
			of.Checks = append(of.Checks, canonical(strings.TrimPrefix(strings.ReplaceAll(line[2], `"`, ""), "CHECK ")))
		} else {
			of.Foreign = append(of.Foreign, line[2])
		}
		tables[line[0]] = of
	}
	return ordered(tables)
}

func sqliteTables(t *testing.T, db *sql.DB) map[string]table {
	t.Helper()
	tables := make(map[string]table)
	for _, made := range lines(t, db, "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name <> ? AND name NOT LIKE 'sqlite_%'", gooseTable) {
		name := made[0]
		of := table{Columns: make(map[string]column), Indexes: make(map[string]index), Checks: checks(made[1])}
		type part struct{ place, column string }
		var primary []part
		for _, line := range lines(t, db, "SELECT name, type, \"notnull\", dflt_value, pk FROM pragma_table_info(?)", name) {
			// A primary key of text may be NULL in SQLite alone, but not in its strict tables.
			of.Columns[line[0]] = column{Class: strings.ToLower(line[1]), Nullable: line[2] == "0" && line[4] == "0", Default: canonical(line[3])}
			if line[4] != "0" {
				primary = append(primary, part{line[4], line[0]})
			}
		}
		slices.SortFunc(primary, func(a, b part) int { return cmp.Compare(a.place, b.place) })
		var key []string
		for _, p := range primary {
			key = append(key, p.column)
		}
		of.Indexes[primaryKey] = index{Columns: strings.Join(key, ", "), Unique: true}
		for _, line := range lines(t, db, `SELECT l.name, l."unique", (SELECT group_concat(name, ', ') FROM (SELECT name FROM pragma_index_info(l.name) ORDER BY seqno)), m.sql
				FROM pragma_index_list(?) AS l LEFT JOIN sqlite_master AS m ON m.name = l.name WHERE l.origin <> 'pk'`, name) {
			_, where, _ := strings.Cut(line[3], " WHERE ")
			of.Indexes[line[0]] = index{Columns: line[2], Unique: line[1] == "1", Where: canonical(where)}
		}
		for _, line := range lines(t, db, `SELECT group_concat("from", ', '), "table", group_concat("to", ', '), MIN(on_delete)
				FROM (SELECT * FROM pragma_foreign_key_list(?) ORDER BY id, seq) GROUP BY id, "table"`, name) {
			foreign := "FOREIGN KEY (" + line[0] + ") REFERENCES " + line[1] + "(" + line[2] + ")"
			if line[3] != "NO ACTION" {
				foreign += " ON DELETE " + line[3]
			}
			of.Foreign = append(of.Foreign, foreign)
		}
		tables[name] = of
	}
	return ordered(tables)
}

// checks are the conditions of a table as it was made.
func checks(made string) (out []string) {
	for _, rest := range strings.Split(made, "CHECK (")[1:] {
		depth := 1
		end := strings.IndexFunc(rest, func(r rune) bool {
			depth += map[rune]int{'(': 1, ')': -1}[r]
			return depth == 0
		})
		out = append(out, canonical(rest[:end]))
	}
	return out
}

func ordered(tables map[string]table) map[string]table {
	for _, of := range tables {
		slices.Sort(of.Checks)
		slices.Sort(of.Foreign)
	}
	return tables
}

var (
	casts   = regexp.MustCompile(`::[a-z]+`)
	anyOf   = regexp.MustCompile(`= ANY \(+ARRAY\[([^]]*)\]\)*`)
	between = regexp.MustCompile(`(\w+) BETWEEN (\w+) AND (\w+)`)
	spaces  = regexp.MustCompile(`\s+`)
)

// canonical spells a condition in the one way that both databases' ways lead
// to: PostgreSQL tells its own reading of what it was given.
func canonical(condition string) string {
	condition = casts.ReplaceAllString(condition, "")
	condition = anyOf.ReplaceAllString(condition, "IN $1")
	condition = between.ReplaceAllString(condition, "$1 >= $2 AND $1 <= $3")
	condition = strings.NewReplacer("(", " ", ")", " ", ";", " ", `"`, "").Replace(condition)
	return strings.TrimSpace(spaces.ReplaceAllString(condition, " "))
}
