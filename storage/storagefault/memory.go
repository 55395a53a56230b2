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
	image []byte // the content with which the next connection begins; nil: an empty database
}

func (m *memory) open() *sql.DB {
	db := sql.OpenDB(m)
	db.SetMaxOpenConns(1)
	db.SetMaxIdleConns(1)
	return db
}

// connection is a connection of the driver.
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

// become replaces the content of the database by the image. It replaces the connection as well,
// since SQLite cannot load an image into a database that was used before.
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

// imageOf returns the whole content of the database.
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
