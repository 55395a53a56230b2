package storage

import (
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mediagate/mediagate"
)

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

// jsonOrNull is jsonText, but NULL for a nil pointer.
func jsonOrNull[T any](v *T) (document, error) {
	if v == nil {
		return nil, nil
	}
	return jsonText(v)
}

// fromJSON reads a text column; NULL and "" leave v as it is.
func fromJSON(column string, text document, v any) error {
	if len(text) == 0 {
		return nil
	}
	if err := json.Unmarshal(text, v); err != nil {
		return &mediagate.Error{Kind: mediagate.KindInternal, Message: "column " + column + " does not hold its type", Err: unreadableError{err}}
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

func fromMicros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
