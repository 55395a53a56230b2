package storage

import (
	"cmp"
	"reflect"
	"strings"
	"sync"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"
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

var columnsByRow sync.Map // reflect.Type → *columns

// columnsOf lists the columns of a row, those of embedded rows among them.
func columnsOf[R any]() *columns {
	row := reflect.TypeFor[R]()
	known, ok := columnsByRow.Load(row)
	if !ok {
		c := &columns{}
		for _, field := range reflect.VisibleFields(row) {
			if !field.Anonymous {
				c.names = append(c.names, columnName(field))
				c.fields = append(c.fields, field.Index)
			}
		}
		c.text = strings.Join(c.names, ", ")
		known, _ = columnsByRow.LoadOrStore(row, c)
	}
	return known.(*columns)
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
	v := reflect.ValueOf(row).Elem()
	to := make([]any, len(c.fields))
	for i, field := range c.fields {
		to[i] = v.FieldByIndex(field).Addr().Interface()
	}
	return to
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

// newest reads the rows that the conditions leave, newest first, those older
// than the row after.
func newest[R any](db *gorm.DB, after string, limit int) (rows []R, hasMore bool, err error) {
	if after != "" {
		db = db.Where("id < ?", after)
	}
	err = db.Order("id DESC").Limit(limit + 1).Find(&rows).Error
	rows, hasMore = page(rows, limit)
	return rows, hasMore, err
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
