package storagefault

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"runtime"
	"strings"

	"gorm.io/gorm"
)

// faulty is a dialector that puts the faults between GORM and the connections.
type faulty struct {
	gorm.Dialector
	store *Store
}

// Initialize implements gorm.Dialector.
func (d faulty) Initialize(db *gorm.DB) error {
	err := d.Dialector.Initialize(db)
	db.ConnPool = &pool{DB: d.store.db, store: d.store}
	return err
}

// Translate implements gorm.ErrorTranslator.
func (d faulty) Translate(err error) error { return d.Dialector.(gorm.ErrorTranslator).Translate(err) }

// pool is the database's connections, with faults.
type pool struct {
	*sql.DB
	store *Store
}

// GetDBConn implements gorm.GetDBConnector.
func (p *pool) GetDBConn() (*sql.DB, error) { return p.DB, nil }

// BeginTx implements gorm.ConnPoolBeginner.
func (p *pool) BeginTx(ctx context.Context, options *sql.TxOptions) (gorm.ConnPool, error) {
	method := caller()
	if err := p.store.fault(method); err != nil {
		return nil, err
	}
	tx, err := p.DB.BeginTx(ctx, options)
	if err != nil {
		return nil, err
	}
	return &transaction{tx, func() error { return p.store.wrote(ctx, method) }}, nil
}

// ExecContext runs a statement outside of a transaction.
func (p *pool) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	method := caller()
	if err := p.store.fault(method); err != nil {
		return nil, err
	}
	result, err := p.DB.ExecContext(ctx, query, args...)
	if err == nil {
		err = p.store.wrote(ctx, method)
	}
	return result, err
}

// QueryContext reads outside of a transaction.
func (p *pool) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if err := p.store.fault(caller()); err != nil {
		return nil, err
	}
	return p.DB.QueryContext(ctx, query, args...)
}

// QueryRowContext reads a row outside of a transaction.
func (p *pool) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if err := p.store.fault(caller()); err != nil {
		away := sql.OpenDB(refusing{err}) // package sql offers no other way to make a row with an error
		defer func() { _ = away.Close() }()
		return away.QueryRowContext(ctx, query)
	}
	return p.DB.QueryRowContext(ctx, query, args...)
}

// refusing is a connector that always fails.
type refusing struct{ err error }

// Connect implements driver.Connector.
func (r refusing) Connect(context.Context) (driver.Conn, error) { return nil, r.err }

// Driver implements driver.Connector.
func (refusing) Driver() driver.Driver { return nil }

// transaction is a transaction whose answer may get lost.
type transaction struct {
	*sql.Tx
	committed func() error
}

// Commit implements gorm.TxCommitter.
func (t *transaction) Commit() error {
	if err := t.Tx.Commit(); err != nil {
		return err
	}
	return t.committed()
}

// of is the prefix with which the runtime names the methods of a store.
const of = "github.com/mediagate/mediagate/storage.(*Store)."

// caller returns the method of storage.Store that was called from outside of its package.
func caller() (method string) {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	for {
		frame, more := frames.Next()
		name, inside := strings.CutPrefix(frame.Function, of)
		switch {
		case inside && name[0] >= 'A' && name[0] <= 'Z':
			method, _, _ = strings.Cut(name, ".") // without the function within it
		case method != "" && !strings.HasPrefix(frame.Function, "gorm.io/") && !strings.HasPrefix(frame.Function, of):
			return method
		}
		if !more {
			return method
		}
	}
}
