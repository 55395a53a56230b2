package storage

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

// dbError turns a driver's error into one of the project: KindUnavailable when the database
// cannot be reached or does not answer in time, KindInternal for the rest. An error of the
// project stays as it is.
//
// what says what was being done, for the message. Inside transactions the driver's errors stay
// as they are: retry looks for a deadlock first, and passes the last error through dbError.
func dbError(err error, what string) error {
	if err == nil {
		return nil
	}
	if ours, ok := errors.AsType[*mediagate.Error](err); ok {
		return ours
	}
	if isStaleStatement(err) {
		err = fmt.Errorf("is there a pooler that database_pooler does not name? %w", err)
	}
	if isAway(err) {
		message := "the database is away: "
		switch {
		case errors.Is(err, context.Canceled):
			message = "called off: " // by the caller: the database is not at fault
		case isRefusal(err):
			message = "the database refuses us: "
		}
		return &mediagate.Error{Kind: mediagate.KindUnavailable, Message: message + what, Err: err}
	}
	return &mediagate.Error{Kind: mediagate.KindInternal, Message: "database: " + what, Err: err}
}

// Result codes of SQLite for conditions that pass.
const (
	sqliteBusy   = 5
	sqliteLocked = 6
	sqliteIOErr  = 10
	sqliteFull   = 13
)

// isAway reports whether the same call may succeed later. A connection may have been lost, a
// lock may not have come free in time, or the server may be starting, stopping or out of
// resources.
func isAway(err error) bool {
	for _, away := range []error{
		context.DeadlineExceeded, context.Canceled, driver.ErrBadConn, sql.ErrConnDone,
		io.EOF, io.ErrUnexpectedEOF, net.ErrClosed,
	} {
		if errors.Is(err, away) {
			return true
		}
	}
	// No connection could be made, or the network failed in the middle.
	var connect *pgconn.ConnectError
	var network net.Error
	if errors.As(err, &connect) || errors.As(err, &network) {
		return true
	}
	if pgconn.SafeToRetry(err) { // the connection was found broken before anything was sent
		return true
	}
	if code := pgCode(err); code != "" {
		// Connection exceptions, resources, operator intervention, I/O.
		for _, class := range []string{"08", "53", "57", "58"} {
			if strings.HasPrefix(code, class) {
				return true
			}
		}
		switch code {
		case readOnly, noLock, "25P03", "25P04": // the last two: a transaction idled or ran too long
			return true
		}
		return isVictim(err) || isStaleStatement(err)
	}
	// SQLite's driver is not imported here (see doc.go), so its error is recognized by a method.
	// The low byte is the primary result code, the rest says more about it.
	var lite interface{ Code() int }
	if errors.As(err, &lite) {
		switch lite.Code() & 0xff {
		case sqliteBusy, sqliteLocked, sqliteIOErr, sqliteFull:
			return true
		}
	}
	// database/sql exports no value for this error.
	return err.Error() == "sql: database is closed"
}

// isRefusal reports whether the server refused the connection for a reason that does not pass
// by itself: the role, its password, its rights, or the name of the database. dbError reports
// it as KindUnavailable too, with another message. 28 is the class of authorization errors,
// 3D000 an unknown database, and 42501 a missing right.
func isRefusal(err error) bool {
	var connect *pgconn.ConnectError
	code := pgCode(err)
	return errors.As(err, &connect) && (strings.HasPrefix(code, "28") || code == "3D000" || code == "42501")
}

// isVictim reports whether PostgreSQL rolled the transaction back because of a deadlock (40P01)
// or a serialization failure (40001). Nothing of it was stored, so retry runs it again.
func isVictim(err error) bool {
	code := pgCode(err)
	return code == "40001" || code == "40P01"
}

// isStaleStatement reports whether PostgreSQL has other prepared statements or cursors than
// the connection expects. A pooler has switched to another server connection, or the schema
// has changed. pgx drops such a statement and prepares it again.
func isStaleStatement(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return false
	}
	switch pg.Code {
	case "42P05", "26000", "42P03", "34000": // a statement or a cursor exists already, or does not exist
		return true
	// A prepared statement's result has other columns since a migration.
	case "0A000":
		return pg.Routine == "RevalidateCachedQuery"
	}
	return false
}

// noLock is PostgreSQL's code for a lock that was not free in time.
const noLock = "55P03"

// pgCode returns PostgreSQL's five-character code of an error, or "" for any other error.
func pgCode(err error) string {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code
	}
	return ""
}

// isDuplicate reports whether a unique constraint was violated. GORM translates errors of Exec
// but not of Raw, so the code 23505 is checked as well.
func isDuplicate(err error) bool {
	return errors.Is(err, gorm.ErrDuplicatedKey) || pgCode(err) == "23505"
}

// isForeignKey reports whether a foreign key was violated.
func isForeignKey(err error) bool { return errors.Is(err, gorm.ErrForeignKeyViolated) }

// notFound returns the KindNotFound error for an object, for example: no task "task_1".
func notFound(what, id string) error {
	return mediagate.Errorf(mediagate.KindNotFound, "no %s %q", what, id)
}

// conflict returns a KindConflict error without a code.
func conflict(format string, args ...any) error {
	return mediagate.Errorf(mediagate.KindConflict, format, args...)
}
