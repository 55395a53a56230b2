package storagefault

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync"

	"modernc.org/sqlite"
)

// memory is a database in memory, which lives as long as its one connection.
type memory struct {
	mu    sync.Mutex
	image []byte // that the next connection begins with; nil: nothing
}

func (m *memory) open() *sql.DB {
	db := sql.OpenDB(m)
	db.SetMaxOpenConns(1)
	db.SetMaxIdleConns(1)
	return db
}

// connection is the driver's.
type connection interface {
	driver.Conn
	Serialize() ([]byte, error)
	Deserialize(image []byte) error
}

// Connect implements driver.Connector.
func (m *memory) Connect(context.Context) (driver.Conn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	const name = "file::memory:?_pragma=foreign_keys(ON)&_time_integer_format=unix_micro&_txlock=immediate"
	conn, err := m.Driver().Open(name)
	if err == nil && m.image != nil {
		err = conn.(connection).Deserialize(m.image)
	}
	return conn, err
}

// Driver implements driver.Connector.
func (*memory) Driver() driver.Driver { return &sqlite.Driver{} }

// become replaces the database, together with its connection: SQLite does not bear it
// that an image replaces one that its functions were used on.
func (m *memory) become(db *sql.DB, image []byte) error {
	err := with(db, func(connection) error {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.image = image
		return driver.ErrBadConn // so that it is closed
	})
	if errors.Is(err, driver.ErrBadConn) {
		err = nil
	}
	return err
}

// imageOf is all that the database holds.
func imageOf(db *sql.DB) (image []byte, err error) {
	return image, with(db, func(c connection) (err error) {
		image, err = c.Serialize()
		return err
	})
}

func with(db *sql.DB, f func(connection) error) error {
	conn, err := db.Conn(context.Background())
	if err != nil {
		return err
	}
	return errors.Join(conn.Raw(func(c any) error { return f(c.(connection)) }), conn.Close())
}
