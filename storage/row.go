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

// columns are those of a table, or of a query, as the fields of its row's
// struct tell. The struct is the one list of a table's columns besides the
// migrations: GORM goes by it, and so do the statements that are written out,
// in what they name, send and read. GORM could read those as well, but its
// matching of names was a good part of the cost of the reads made most.
type columns struct {
	names  []string
	text   string // the names, as SQL has them
	fields [][]int
}

// column is a column of a row that lists its own, and the address of its value.
type column struct {
	name  string
	value any
}

// listedRow is a row that lists its columns itself, as those of tasks and attempts: their
// structs are the task's state and the attempt, which have more than the columns.
type listedRow interface{ columns() []column }

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

// of are the names with the table's before each.
func (c *columns) of(table string) string {
	return table + "." + strings.Join(c.names, ", "+table+".")
}

// into points at the row's fields.
func (c *columns) into(row any) []any {
	if listed, ok := row.(listedRow); ok {
		return convert(listed.columns(), func(c column) any { return addressOf(c.value) })
	}
	v := reflect.ValueOf(row).Elem()
	return convert(c.fields, func(field []int) any { return addressOf(v.FieldByIndex(field).Addr().Interface()) })
}

// addressOf is the address of a field, as drivers read and write it.
func addressOf(field any) any {
	if t, ok := field.(*time.Time); ok {
		return (*moment)(t)
	}
	return field
}

// stored is what a field's column has, given the field's address.
func stored(field any) any {
	if valuer, ok := field.(driver.Valuer); ok {
		value, _ := valuer.Value() // those of this package never fail
		return value
	}
	return reflect.ValueOf(field).Elem().Interface()
}

// differing returns the columns in which two rows differ, with the values of the second.
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

// one reads the first row of a statement, or nil when there is none. What it
// returns is named by columnsOf, or stands in the order of the struct's fields.
func one[R any](db *gorm.DB, query string, args ...any) (*R, error) {
	rows := make([]R, 0, 1)
	if err := read(db, &rows, query, args...); err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}

// read reads the rows of a statement, as one does.
func read[R any](db *gorm.DB, rows *[]R, query string, args ...any) error {
	found, err := db.Raw(query, args...).Rows()
	if err != nil {
		return err
	}
	defer found.Close()
	c := columnsOf[R]()
	for found.Next() {
		*rows = append(*rows, *new(R))
		if err := found.Scan(c.into(&(*rows)[len(*rows)-1])...); err != nil {
			return err
		}
	}
	return cmp.Or(found.Err(), found.Close())
}

// take reads the one row that the conditions leave, or nil when there is none.
// It sets no limit: with one PostgreSQL would plan the statement anew each time.
func take[R any](db *gorm.DB) (*R, error) {
	rows := make([]R, 0, 1)
	if err := db.Find(&rows).Error; err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}

// exec runs a statement and tells how many rows it changed.
func exec(db *gorm.DB, query string, args ...any) (int64, error) {
	result := db.Exec(query, args...)
	return result.RowsAffected, result.Error
}

// page cuts the one row that was read beyond the limit.
func page[R any](rows []R, limit int) (cut []R, hasMore bool) {
	if len(rows) > limit {
		return rows[:limit], true
	}
	return rows, false
}

func convert[R, T any](rows []R, f func(R) T) []T {
	out := make([]T, len(rows))
	for i, row := range rows {
		out[i] = f(row)
	}
	return out
}

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

func at(t time.Time) stamp { return stamp{t} }

// Scan reads what either driver returns.
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

// Value writes the time in UTC, without what the column cannot hold.
func (s stamp) Value() (driver.Value, error) {
	if s.IsZero() {
		return nil, nil
	}
	return s.UTC().Truncate(time.Microsecond), nil
}

// moment is a field of a domain type that is a time column, as stamp.
type moment time.Time

// Scan reads what either driver returns.
func (m *moment) Scan(v any) error {
	var s stamp
	err := s.Scan(v)
	*m = moment(s.Time)
	return err
}

// Value is that of a stamp.
func (m moment) Value() (driver.Value, error) { return at(time.Time(m)).Value() }

// document is a column of JSON. Nil is NULL.
type document []byte

// Scan reads what either driver returns.
func (d *document) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		*d = nil
	case string:
		*d = document(v)
	case []byte:
		*d = slices.Clone(v)
	default:
		return fmt.Errorf("a column of JSON holds %T", v)
	}
	return nil
}

// Value writes it as text: SQLite takes bytes for something else.
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

// fromJSON reads a text column; NULL and "" leave v as it is.
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

// unreadableError says that a column holds no such thing: what a newer program wrote,
// or somebody by hand. It is the trouble of one row. Who works on many must not let
// that keep the others.
type unreadableError struct{ error }

// Unwrap is the cause.
func (e unreadableError) Unwrap() error { return e.error }

func unreadable(err error) bool {
	_, ok := errors.AsType[unreadableError](err)
	return ok
}

// micros is a duration column.
func micros(d time.Duration) int64 { return d.Microseconds() }

// statement is one that is written out together with what its parameters hold.
type statement struct {
	text strings.Builder
	args []any
}

// say writes pieces of text.
func (s *statement) say(pieces ...string) *statement {
	for _, piece := range pieces {
		s.text.WriteString(piece)
	}
	return s
}

// with writes text in which question marks stand for the values.
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

func (s *statement) arg(value any) {
	s.args = append(s.args, value)
	s.text.WriteByte('?')
}

// add writes another statement, with its values.
func (s *statement) add(other *statement) *statement {
	s.args = append(s.args, other.args...)
	return s.say(other.text.String())
}

// insert is an INSERT of the row by a SELECT. A column that the statement itself makes has
// an expression instead of a value.
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
