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

// readOnly is PostgreSQL's code for a write that the server does not take:
// after a failover a connection may still lead to what is now a standby.
const readOnly = "25006"

// failover keeps the pool from going on with connections to a server that
// has become read-only. Which of them lead there nobody can tell, so all that
// were made before are given up, each before its next use, and the new ones
// go where the URL leads by then.
type failover struct {
	mu    sync.Mutex
	round int       // of new connections
	since time.Time // when it began
}

// failoverGap is the time between two rounds: a database that stays read-only
// must not have each call connect anew.
const failoverGap = time.Second

// begin begins a round.
func (f *failover) begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); now.Sub(f.since) >= failoverGap {
		f.round, f.since = f.round+1, now
	}
}

func (f *failover) current() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.round
}

// roundOf is the key of a connection's round among its data.
const roundOf = "mediagate.round"

// joined marks a new connection.
func (f *failover) joined(conn *pgx.Conn) { conn.PgConn().CustomData()[roundOf] = f.current() }

// watch has the connections of config notice a read-only server: the one that
// hears of it closes at once.
func (f *failover) watch(config *pgx.ConnConfig) {
	stays := config.OnPgError // pgx's own: after a fatal error the connection closes
	config.OnPgError = func(conn *pgconn.PgConn, err *pgconn.PgError) bool {
		if err.Code == readOnly {
			f.begin()
			return false
		}
		return stays(conn, err)
	}
}

// refuse gives up connections of former rounds.
func (f *failover) refuse() stdlib.OptionOpenDB {
	return stdlib.OptionResetSession(func(_ context.Context, conn *pgx.Conn) error {
		if conn.PgConn().CustomData()[roundOf] != f.current() {
			return driver.ErrBadConn
		}
		return nil
	})
}
