package storage

import (
	"context"
	"database/sql/driver"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// readOnly is PostgreSQL's code for a write to a read-only server. After a failover a
// connection may still lead to the former primary, which is now a standby.
const readOnly = "25006"

// failover keeps the pool from using connections to a server that has become read-only. It is not
// known which connections lead there, so the first read-only error begins a new round: each
// connection of an earlier round is closed before its next use, and its replacement goes where
// the URL leads by then.
//
// Example: 20 connections of round 1 lead to the primary A. B becomes the primary. The first
// write on A fails with readOnly, and round 2 begins. The other 19 connections are closed as
// they are taken from the pool, and new ones are opened.
type failover struct {
	mu    sync.Mutex
	round int       // the round of new connections
	since time.Time // when the round began
}

// failoverGap is the least time between two rounds. Without it, each call would open a new
// connection while the database stays read-only.
const failoverGap = time.Second

// begin starts a new round, unless the present one began less than failoverGap ago.
func (f *failover) begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); now.Sub(f.since) >= failoverGap {
		f.round, f.since = f.round+1, now
	}
}

// current returns the present round.
func (f *failover) current() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.round
}

// roundOf is the key under which a connection's custom data holds its round.
const roundOf = "mediagate.round"

// joined marks a new connection with the present round.
func (f *failover) joined(conn *pgx.Conn) { conn.PgConn().CustomData()[roundOf] = f.current() }

// watch makes the connections of config begin a round at a read-only error. The connection
// that got the error closes at once.
func (f *failover) watch(config *pgx.ConnConfig) {
	keepOpen := config.OnPgError // pgx's own: after a fatal error the connection closes
	config.OnPgError = func(conn *pgconn.PgConn, err *pgconn.PgError) bool {
		if err.Code == readOnly {
			f.begin()
			return false
		}
		return keepOpen(conn, err)
	}
}

// refuse makes the pool close connections of earlier rounds instead of using them.
func (f *failover) refuse() stdlib.OptionOpenDB {
	return stdlib.OptionResetSession(func(_ context.Context, conn *pgx.Conn) error {
		if conn.PgConn().CustomData()[roundOf] != f.current() {
			return driver.ErrBadConn
		}
		return nil
	})
}
