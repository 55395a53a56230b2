package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"runtime"
	"strings"
)

// pool implements gorm.ConnPool over two pools: one connection that writes, and several that only
// read. A transaction of the writer takes the write lock at its beginning, so that it does not fail
// halfway because another transaction wrote.
type pool struct {
	writer, readers *sql.DB
}

func openPool(path string) (*pool, error) {
	writer, err := sql.Open(driverName, dsn(path, url.Values{"_txlock": {"immediate"}}))
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	writer.SetMaxOpenConns(1)
	// The writer first: it makes the file and puts it into WAL mode.
	if err := writer.PingContext(context.Background()); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), writer.Close())
	}
	width := max(4, runtime.GOMAXPROCS(0))
	// All readers together cache as much as the writer. With a full cache each, they would hold the
	// same pages many times: on a machine with many cores, half a gigabyte.
	readers, err := sql.Open(driverName, dsn(path, url.Values{"_pragma": {"query_only(ON)", cacheSize(cacheKiB / width)}}))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), writer.Close())
	}
	readers.SetMaxOpenConns(width)
	readers.SetMaxIdleConns(width)
	return &pool{writer, readers}, nil
}

// Close closes all connections.
func (p *pool) Close() error { return errors.Join(p.readers.Close(), p.writer.Close()) }

// GetDBConn returns the writer, for migrations and pings.
func (p *pool) GetDBConn() (*sql.DB, error) { return p.writer, nil }

// BeginTx begins a transaction that writes, or one that only reads, from one snapshot, if the options
// say ReadOnly. SQLite has one isolation level, the strictest.
func (p *pool) BeginTx(ctx context.Context, opts *sql.TxOptions) (*sql.Tx, error) {
	if opts != nil && opts.ReadOnly {
		return p.readers.BeginTx(ctx, nil)
	}
	return p.writer.BeginTx(ctx, nil)
}

// PrepareContext prepares on the writer.
func (p *pool) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	return p.writer.PrepareContext(ctx, query)
}

// ExecContext writes.
func (p *pool) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return p.writer.ExecContext(ctx, query, args...)
}

// QueryContext reads, unless the query is a write that returns rows.
func (p *pool) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return p.of(query).QueryContext(ctx, query, args...)
}

// QueryRowContext is QueryContext for one row.
func (p *pool) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	return p.of(query).QueryRowContext(ctx, query, args...)
}

func (p *pool) of(query string) *sql.DB {
	if word := "SELECT"; len(query) > len(word) && strings.EqualFold(query[:len(word)], word) {
		return p.readers
	}
	return p.writer
}
