package storage

import (
	"cmp"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/mediagate/mediagate"
)

// columns lists the columns of a table or a query, taken from the fields of its row struct.
// Besides the migrations, the struct is the only list of a table's columns: GORM uses it, and
// so do the statements that are written out, for the names, the values and the results. GORM
// could read those results too, but matching names took much of the time of the most
// frequent reads.
type columns struct {
	names  []string
	text   string // the names, separated by commas
	fields [][]int
}

// column is a column of a listedRow: its name, and the address of its value.
type column struct {
	name  string
	value any
}

// listedRow is a row that lists its own columns. Rows of tasks and attempts do: their structs
// are the task's state and the attempt, which have more fields than the table has columns.
//
// columns returns the columns in the order in which SELECTs name them, with addresses inside the
// row, so that the same list serves reading and writing.
type listedRow interface{ columns() []column }

// columnsByRow caches the columns of each row struct, since reflection is slow and the structs
// never change. If two goroutines compute the same entry, the first one stored stays.
var columnsByRow sync.Map // reflect.Type → *columns

// columnsOf lists the columns of a row, those of embedded rows among them.
func columnsOf[R any]() *columns {
	row := reflect.TypeFor[R]()
	known, ok := columnsByRow.Load(row)
	if !ok {
		c := &columns{}
		if listed, ok := any(new(R)).(listedRow); ok {
			c.names = convert(listed.columns(), func(c column) string { return c.name })
		} else {
			c.addFields(row)
		}
		c.text = strings.Join(c.names, ", ")
		known, _ = columnsByRow.LoadOrStore(row, c)
	}
	return known.(*columns)
}

// addFields adds the fields of a row struct. VisibleFields leaves out a field of an embedded
// struct that the outer struct replaces: deliveryRow.At, for example, stands for Delivery.At. The
// fields come in the order of the struct, with those of an embedded struct in its place.
func (c *columns) addFields(row reflect.Type) {
	for _, field := range reflect.VisibleFields(row) {
		if !field.Anonymous {
			c.names = append(c.names, columnName(field))
			c.fields = append(c.fields, field.Index)
		}
	}
}

// columnName is the name that GORM gives the field's column.
func columnName(field reflect.StructField) string {
	given := schema.ParseTagSetting(field.Tag.Get("gorm"), ";")["COLUMN"]
	return cmp.Or(given, schema.NamingStrategy{}.ColumnName("", field.Name))
}

// of returns the names, each qualified by the table.
func (c *columns) of(table string) string {
	return table + "." + strings.Join(c.names, ", "+table+".")
}

// into returns the addresses of the row's fields, in the order of the columns.
//
// row is a pointer to the struct of these columns.
func (c *columns) into(row any) []any {
	if listed, ok := row.(listedRow); ok {
		return convert(listed.columns(), func(c column) any { return addressOf(c.value) })
	}
	v := reflect.ValueOf(row).Elem()
	return convert(c.fields, func(field []int) any { return addressOf(v.FieldByIndex(field).Addr().Interface()) })
}

// addressOf returns the address that a driver reads into: a time is read as a moment.
//
// The drivers cannot read SQLite's microseconds into a time.Time.
func addressOf(field any) any {
	if t, ok := field.(*time.Time); ok {
		return (*moment)(t)
	}
	return field
}

// stored returns the value that the column gets for the field at an address.
func stored(field any) any {
	if valuer, ok := field.(driver.Valuer); ok {
		value, _ := valuer.Value() // those of this package never fail
		return value
	}
	return reflect.ValueOf(field).Elem().Interface()
}

// differing returns the columns in which two rows differ, with the values of the second.
//
// Values are compared as they are stored, so two times within the same microsecond are equal.
func differing[R any](was, is R) map[string]any {
	c, changes := columnsOf[R](), map[string]any{}
	before, after := c.into(&was), c.into(&is)
	for i, name := range c.names {
		if value := stored(after[i]); value != stored(before[i]) {
			changes[name] = value
		}
	}
	return changes
}

// one reads the first row of a statement. It returns nil when there is none. The statement
// returns its columns in the order of the struct's fields.
func one[R any](db *gorm.DB, query string, args ...any) (*R, error) {
	rows := make([]R, 0, 1)
	if err := read(db, &rows, query, args...); err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}

// read appends the rows of a statement, whose columns are in the order of the struct's fields.
//
// read scans by position, so the query must name the columns in that order; another order of the
// same types would go unnoticed.
func read[R any](db *gorm.DB, rows *[]R, query string, args ...any) error {
	found, err := db.Raw(query, args...).Rows()
	if err != nil {
		return err
	}
	defer found.Close()
	c := columnsOf[R]()
	for found.Next() {
		// The row is scanned in its final place, which saves a copy.
		*rows = append(*rows, *new(R))
		if err := found.Scan(c.into(&(*rows)[len(*rows)-1])...); err != nil {
			return err
		}
	}
	return cmp.Or(found.Err(), found.Close())
}

// exec runs a statement and returns how many rows it changed.
//
// For a conditional UPDATE or INSERT the number says whether the condition held.
func exec(db *gorm.DB, query string, args ...any) (int64, error) {
	result := db.Exec(query, args...)
	return result.RowsAffected, result.Error
}

// page cuts off the row that was read beyond the limit to see whether there are more.
//
// Lists read limit + 1 rows: with a limit of 20, the 21st row says that there is a further page
// and is not shown.
func page[R any](rows []R, limit int) (cut []R, hasMore bool) {
	if len(rows) > limit {
		return rows[:limit], true
	}
	return rows, false
}

// convert returns f of each row.
func convert[R, T any](rows []R, f func(R) T) []T {
	out := make([]T, len(rows))
	for i, row := range rows {
		out[i] = f(row)
	}
	return out
}

// convertAll is convert for functions that may fail. It stops at the first error.
func convertAll[R, T any](rows []R, f func(R) (T, error)) ([]T, error) {
	out := make([]T, len(rows))
	for i, row := range rows {
		v, err := f(row)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

// stamp is a time column: timestamptz in PostgreSQL, microseconds since 1970
// in SQLite. The zero time is NULL.
type stamp struct{ time.Time }

// at returns the stamp of a time.
func at(t time.Time) stamp { return stamp{t} }

// Scan reads what either driver returns.
//
// PostgreSQL's driver returns a time, and SQLite's an integer. All times are read in UTC.
func (s *stamp) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		s.Time = time.Time{}
	case time.Time:
		s.Time = v.UTC()
	case int64:
		s.Time = time.UnixMicro(v).UTC()
	default:
		return fmt.Errorf("a time column holds %T", v)
	}
	return nil
}

// Value writes the time in UTC, truncated to the column's microseconds.
func (s stamp) Value() (driver.Value, error) {
	if s.IsZero() {
		return nil, nil
	}
	return s.UTC().Truncate(time.Microsecond), nil
}

// moment reads and writes a time.Time of a domain type as a stamp does.
type moment time.Time

// Scan reads what either driver returns.
func (m *moment) Scan(v any) error {
	var s stamp
	err := s.Scan(v)
	*m = moment(s.Time)
	return err
}

// Value writes the time as a stamp does.
func (m moment) Value() (driver.Value, error) { return at(time.Time(m)).Value() }

// document is a column of JSON. Nil is NULL.
//
// The columns have the type text, not json: the store reads and writes a document as a whole.
type document []byte

// Scan reads what either driver returns.
func (d *document) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		*d = nil
	case string:
		*d = document(v)
	case []byte:
		// The driver may reuse the bytes after the row was scanned.
		*d = slices.Clone(v)
	default:
		return fmt.Errorf("a column of JSON holds %T", v)
	}
	return nil
}

// Value writes the document as text: SQLite would store bytes as a blob.
func (d document) Value() (driver.Value, error) {
	if d == nil {
		return nil, nil
	}
	return string(d), nil
}

// jsonText renders v for a text column.
func jsonText(v any) (document, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, &mediagate.Error{Kind: mediagate.KindInternal, Message: "a value cannot be stored", Err: err}
	}
	return b, nil
}

// fromJSON reads a column of JSON into v. NULL and "" leave v unchanged.
func fromJSON(column string, text document, v any) error {
	if len(text) == 0 {
		return nil
	}
	if err := json.Unmarshal(text, v); err != nil {
		return &mediagate.Error{
			Kind:    mediagate.KindInternal,
			Message: "column " + column + " does not hold its type",
			Err:     unreadableError{err},
		}
	}
	return nil
}

// unreadableError reports that a column does not hold its type, because a newer program or a
// person wrote it. It concerns one row: code that works on many rows goes on with the others.
type unreadableError struct{ error }

// Unwrap returns the cause.
func (e unreadableError) Unwrap() error { return e.error }

// unreadable reports whether an error is, or wraps, an unreadableError.
func unreadable(err error) bool {
	_, ok := errors.AsType[unreadableError](err)
	return ok
}

// micros returns a duration as its column holds it.
//
// The names of such columns end in _us.
func micros(d time.Duration) int64 { return d.Microseconds() }

// statement is a SQL statement under construction, with the values of its parameters.
//
// Values become parameters, so no text from a client gets into the SQL.
type statement struct {
	text strings.Builder
	args []any
}

// say appends pieces of text.
func (s *statement) say(pieces ...string) *statement {
	for _, piece := range pieces {
		s.text.WriteString(piece)
	}
	return s
}

// with appends text whose question marks stand for the values.
func (s *statement) with(text string, values ...any) *statement {
	for _, value := range values {
		before, after, _ := strings.Cut(text, "?")
		s.text.WriteString(before)
		s.arg(value)
		text = after
	}
	s.text.WriteString(text)
	return s
}

// arg appends one parameter.
func (s *statement) arg(value any) {
	s.args = append(s.args, value)
	s.text.WriteByte('?')
}

// add appends another statement, with its values.
func (s *statement) add(other *statement) *statement {
	s.args = append(s.args, other.args...)
	return s.say(other.text.String())
}

// insert is an INSERT of the row by a SELECT. A column in made gets that expression instead of
// the row's value, for example the sequence number that the statement itself computes.
//
// The caller may append a FROM clause. A submit appends "FROM payer": if payer has no row, nothing
// is inserted.
func insert[R any](table string, r R, made map[string]string) *statement {
	s, c := &statement{}, columnsOf[R]()
	s.say("INSERT INTO ", table, " (", c.text, ") SELECT ")
	for i, field := range c.into(&r) {
		if i > 0 {
			s.say(", ")
		}
		if expression, ok := made[c.names[i]]; ok {
			s.say(expression)
		} else {
			s.arg(stored(field))
		}
	}
	return s
}

// run executes the statement.
func (s *statement) run(db *gorm.DB) error {
	_, err := exec(db, s.text.String(), s.args...)
	return err
}

// lock is the clause that locks the rows of a SELECT. SQLite needs none: its transactions
// begin by taking the one write lock.
func (s *Store) lock(clause string) string {
	if s.lite {
		return ""
	}
	return " " + clause
}
