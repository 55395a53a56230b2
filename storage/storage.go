package storage

import (
	"cmp"
	"context"
	"crypto/cipher"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/oklog/ulid/v2"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/internal/limit"
)

// Config says how to reach the database. Dialector is required for Open.
type Config struct {
	Dialector       gorm.Dialector             // opened by the caller
	EncryptionKeys  [][]byte                   // of webhook secrets and operators' sessions: the first writes, all read
	Now             func() time.Time           // the clock of everything; nil: the database's
	LocalNow        func() time.Time           // this process's own clock, without Now; nil: time.Now
	NewID           func(prefix string) string // nil: prefix + ULID
	Logger          *slog.Logger               // nil: discarded
	MaxOpenConns    int                        // of PostgreSQL; 0: 32
	MaxConnAge      time.Duration              // of PostgreSQL; 0: no bound
	Pooler          Pooler                     // of OpenPostgres; empty: detected
	Writers         *limit.Limit               // bounds concurrent writes of money, by account; nil: no bound
	AccountDefaults mediagate.AccountLimits    // limits of accounts that set none
	Patience        time.Duration              // how long a write waits for others of its account; 0: 10 s
	Observer        Observer                   // nil: none

	failover *failover // of OpenPostgres
}

// Observer is called after this process has committed a submit, an end of a task or an end
// of a callback.
type Observer interface {
	TaskSubmitted(t mediagate.Type)
	TaskEnded(t mediagate.Type, status mediagate.Status, failure mediagate.FailureCode, took time.Duration)
	CallbackEnded(state mediagate.WebhookState)
}

// unobserved is the Observer that does nothing.
type unobserved struct{}

func (unobserved) TaskSubmitted(mediagate.Type) {}

func (unobserved) TaskEnded(mediagate.Type, mediagate.Status, mediagate.FailureCode, time.Duration) {}

func (unobserved) CallbackEnded(mediagate.WebhookState) {}

// Store is the database. It is safe for concurrent use.
type Store struct {
	db       *gorm.DB
	sql      *sql.DB
	begin    func(ctx context.Context, options *sql.TxOptions) (*sql.Tx, error) // on PostgreSQL
	lite     bool                                                               // SQLite, otherwise PostgreSQL
	time     *databaseClock
	newID    func(prefix string) string
	log      *slog.Logger
	keys     [][]byte      // the encryption keys, which sign operators' sessions
	seals    []cipher.AEAD // a cipher for each encryption key
	writers  *limit.Limit  // bounds the connections of writes that move an account's money
	patience time.Duration
	defaults mediagate.AccountLimits
	failover *failover // nil: the caller made the connections
	observer Observer
	scrub    scrub  // of SQLite's files
	unwatch  func() // stops reading the database's clock; nil: nothing reads it
}

// Open connects to the database. It does not migrate.
func Open(ctx context.Context, c Config) (*Store, error) {
	s := &Store{
		lite:     c.Dialector.Name() == dialectSQLite,
		newID:    c.NewID,
		log:      cmp.Or(c.Logger, slog.New(slog.DiscardHandler)),
		observer: cmp.Or(c.Observer, Observer(unobserved{})),
		failover: c.failover,
		defaults: c.AccountDefaults,
		writers:  c.Writers,
		patience: cmp.Or(c.Patience, defaultPatience),
		keys:     c.EncryptionKeys,
	}
	if name := c.Dialector.Name(); !s.lite && name != dialectPostgres {
		return nil, fmt.Errorf("storage speaks PostgreSQL and SQLite, not %q", name)
	}
	s.time = newDatabaseClock(c, s.log)
	if s.newID == nil {
		s.newID = newULIDs(s.Now)
	}
	var err error
	if s.seals, err = sealers(c.EncryptionKeys); err != nil {
		return nil, err
	}
	s.db, err = gorm.Open(c.Dialector, &gorm.Config{
		SkipDefaultTransaction: true, // transactions are explicit here
		TranslateError:         true,
		QueryFields:            true, // columns by name, never *
		DisableAutomaticPing:   true,
		Logger:                 logger.Discard, // errors are returned, and logged where they end
		NowFunc:                s.clock,
	})
	if err != nil {
		return nil, dbError(err, "open the database")
	}
	if s.sql, err = s.db.DB(); err != nil {
		return nil, dbError(err, "open the database")
	}
	if !s.lite {
		// Behind a pooler in transaction mode this is pooled.BeginTx, which sets the settings.
		s.begin = s.db.ConnPool.(gorm.TxBeginner).BeginTx
		width := cmp.Or(c.MaxOpenConns, defaultConns)
		s.sql.SetMaxOpenConns(width)
		// Idle connections keep their prepared statements, for a while.
		s.sql.SetMaxIdleConns(width)
		s.sql.SetConnMaxIdleTime(connIdleTime)
		s.sql.SetConnMaxLifetime(c.MaxConnAge)
	}
	if err := s.Ping(ctx); err != nil {
		_ = s.Close()
		return nil, err
	}
	// Ping has read the database's clock once; from here on it is read each clockPeriod.
	s.watchClock(ctx)
	return s, nil
}

const (
	defaultConns = 32
	connIdleTime = 5 * time.Minute
)

// The dialects, by the names of their GORM drivers.
const (
	dialectPostgres = "postgres"
	dialectSQLite   = "sqlite"
)

// connectTimeout bounds how long a new connection may take.
const connectTimeout = 10 * time.Second

// CheckURL reports what is wrong with a PostgreSQL URL or with the files that it names.
// The error never contains the password.
func CheckURL(raw string) error {
	if _, err := url.Parse(raw); err != nil {
		return errors.New("is no URL: in a name or a password / is %2F, : is %3A, @ is %40, % is %25")
	}
	if _, err := pgx.ParseConfig(raw); err != nil {
		_, reason, _ := strings.Cut(err.Error(), "`: ") // after the URL
		return errors.New(reason)
	}
	return nil
}

// OpenPostgres connects to a PostgreSQL URL. Each connection prepares a statement once
// (pgx's statement cache). Behind a pooler in transaction mode, a connection only asks once
// for the statement's description, because prepared statements do not outlive a transaction
// there.
func OpenPostgres(ctx context.Context, address string, c Config) (*Store, error) {
	config, err := pgx.ParseConfig(address)
	if err != nil {
		return nil, dbError(err, "read the database's URL")
	}
	config.ConnectTimeout = cmp.Or(config.ConnectTimeout, connectTimeout)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	session, transaction := takeSettings(config)
	pooler, err := checkPooler(ctx, config, c.Pooler, c.Logger)
	if err != nil {
		return nil, dbError(err, "open the database")
	}
	// The session's settings are set once for each connection; behind a pooler in transaction mode
	// each transaction sets its own instead.
	set := forSession(session)
	if pooler == PoolerTransaction {
		set = ""
		if config.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
			config.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
		}
	}
	c.failover = &failover{}
	c.failover.watch(config)
	joined := stdlib.OptionAfterConnect(func(ctx context.Context, conn *pgx.Conn) error {
		// The connection belongs to the present round of the failover.
		c.failover.joined(conn)
		if set == "" {
			return nil
		}
		_, err := conn.PgConn().Exec(ctx, set).ReadAll()
		return err
	})
	db := stdlib.OpenDB(*config, c.failover.refuse(), joined)
	var pool gorm.ConnPool = db
	if pooler == PoolerTransaction {
		pool = pooled{db, forTransaction(transaction)}
	}
	c.Dialector = postgres.New(postgres.Config{Conn: pool})
	store, err := Open(ctx, c)
	if err != nil {
		_ = db.Close()
	}
	return store, err
}

// Ping checks that the database answers, and reads its clock. A PostgreSQL server that
// accepts no writes counts as away: KindUnavailable.
func (s *Store) Ping(ctx context.Context) error {
	if s.lite {
		return dbError(s.sql.PingContext(ctx), "ping the database")
	}
	conn, err := s.sql.Conn(ctx) // first: the wait for a connection must not count as the clock's delay
	if err != nil {
		return dbError(err, "ping the database")
	}
	defer func() { _ = conn.Close() }()
	// began is this process's clock when the query is sent, and took the time until its answer. The
	// database read its clock in between (readingOf).
	began, start := s.time.local(), time.Now()
	var at time.Time
	var standby bool
	query := "SELECT clock_timestamp(), current_setting('transaction_read_only') = 'on'"
	if err := conn.QueryRowContext(ctx, query).Scan(&at, &standby); err != nil {
		return dbError(err, "ping the database")
	}
	if standby {
		if s.failover != nil {
			s.failover.begin()
		}
		return &mediagate.Error{Kind: mediagate.KindUnavailable, Message: "the database is read-only"}
	}
	if !s.time.fixed {
		s.time.note(ctx, readingOf(began, time.Since(start), at))
	}
	return nil
}

// Close closes all connections.
func (s *Store) Close() error {
	if s.unwatch != nil {
		s.unwatch()
	}
	if pool, ok := s.db.ConnPool.(io.Closer); ok { // it may hold more than one *sql.DB
		return dbError(pool.Close(), "close the database")
	}
	return dbError(s.sql.Close(), "close the database")
}

// on returns a GORM session for one call.
func (s *Store) on(ctx context.Context) *gorm.DB { return s.db.WithContext(ctx) }

// write runs f in a transaction. After a deadlock it runs f again, so f must not keep
// state between runs.
//
// On SQLite, write then empties the write-ahead log, if f erased anything.
func (s *Store) write(ctx context.Context, what string, f func(tx *gorm.DB) error) error {
	err := retry(what, func() error { return s.on(ctx).Transaction(f) })
	if s.lite && err == nil {
		s.scrubFiles(ctx)
	}
	return err
}

// retry runs a transaction, up to four times while PostgreSQL picks it as the victim of a
// deadlock.
func retry(what string, transaction func() error) error {
	var err error
	for range 4 {
		if err = transaction(); !isVictim(err) {
			break
		}
	}
	return dbError(err, what)
}

// writeFor runs f as write does, for transactions that lock the account's row, for which all submits
// of the account wait. Changes of keys, which are rare, and VoidSpeeches, which ends one hold at a
// time, use write.
//
// The permit comes before the connection: a write without a permit waits without a connection.
func (s *Store) writeFor(ctx context.Context, accountID, what string, f func(tx *gorm.DB) error) error {
	leave, err := s.enter(ctx, accountID)
	if err != nil {
		return err
	}
	defer leave()
	return s.write(ctx, what, f)
}

// defaultPatience is Config.Patience where the caller of Open sets none: as long as a
// statement waits for a lock.
const defaultPatience = 10 * time.Second

// enter waits until a write of the account may take a connection. The permit is held until
// leave is called; the holder must not call enter again before that.
//
// A write that moves an account's money waits for the lock of the account's row while it has
// a connection. Without this bound, many writes of one account would take every connection
// of the pool during that wait, and no other account could even read. Returns
// KindUnavailable where no permit is free in time.
//
// Example: the row of an account is locked, and 100 submits of that account arrive. Submits with a
// permit wait at the database, each with a connection. The rest wait here, and the other
// connections serve other accounts.
func (s *Store) enter(ctx context.Context, account string) (leave func(), err error) {
	waiting, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	lease, err := s.writers.Acquire(waiting, account, 1)
	if err != nil {
		return nil, &mediagate.Error{
			Kind:    mediagate.KindUnavailable,
			Message: "the account is busy: too many of its requests wait for its balance",
			Err:     err,
		}
	}
	return lease.Release, nil
}

// either returns the piece of SQL for the database in use.
func (s *Store) either(postgres, sqlite string) string {
	if s.lite {
		return sqlite
	}
	return postgres
}

// forUpdate is the clause that locks the rows of a SELECT against changes. The lock is NO KEY
// UPDATE, so writes of rows that refer to the locked rows by a foreign key do not wait for it.
// With FOR UPDATE, inserts of such rows would wait, and also updates: PostgreSQL checks the
// reference again when a transaction writes a referring row a second time. SQLite needs no lock:
// its transactions begin by taking the one write lock.
func (s *Store) forUpdate(of string) string { return s.either(" FOR NO KEY UPDATE OF "+of, "") }

// skipLocked is forUpdate that leaves out rows which another transaction has locked.
//
// Statements that move many rows use it: a row that is busy now is left to the next call.
func (s *Store) skipLocked(of string) string { return s.either(s.forUpdate(of)+" SKIP LOCKED", "") }

// lockLeft is skipLocked that also keeps out inserts that refer to the rows.
//
// FOR UPDATE conflicts with the FOR KEY SHARE of a foreign key, so a row that is to be deleted
// gets no new reference meanwhile.
func (s *Store) lockLeft() string { return s.either(" FOR UPDATE SKIP LOCKED", "") }

// forReference is the clause that keeps the rows of a SELECT from being deleted, as a foreign
// key does.
//
// The row may still be changed: FOR NO KEY UPDATE does not conflict with FOR KEY SHARE.
func (s *Store) forReference() string { return s.either(" FOR KEY SHARE", "") }

// inList is the right side of IN for one parameter that holds a JSON array of texts, so that
// one prepared statement serves lists of any length.
func (s *Store) inList() string {
	return s.either("(SELECT json_array_elements_text(CAST(? AS json)))", "(SELECT value FROM json_each(?))")
}

// rowsOf is one parameter that holds a JSON array of objects, as a table v. The columns are
// given as PostgreSQL declares them, for example "task_id text, n bigint".
//
// On SQLite the columns have no declared types: a JSON number is a number, and a text is a text.
func (s *Store) rowsOf(columns string) string {
	if !s.lite {
		return "json_to_recordset(CAST(? AS json)) AS v (" + columns + ")"
	}
	fields := strings.Split(columns, ", ")
	for i, column := range fields {
		name, _, _ := strings.Cut(column, " ")
		fields[i] = "value ->> '" + name + "' AS " + name
	}
	return "(SELECT " + strings.Join(fields, ", ") + " FROM json_each(?)) AS v"
}

// timeOf is the expression of a time from a column of microseconds since 1970.
func (s *Store) timeOf(column string) string {
	return s.either("(timestamptz 'epoch' + "+column+" * interval '1 microsecond')", column)
}

// microsOf is the expression of microseconds since 1970 from a column of times.
func (s *Store) microsOf(column string) string {
	return s.either("CAST(EXTRACT(EPOCH FROM "+column+") * 1000000 AS bigint)", column)
}

// hourOf is the expression of the beginning of the column's hour, in UTC.
//
// SQLite's column has microseconds, of which an hour has 3600000000.
func (s *Store) hourOf(column string) string {
	return s.either("date_trunc('hour', "+column+", 'UTC')", column+" - "+column+" % 3600000000")
}

// dayOf is the expression of the beginning of the column's day, in UTC.
func (s *Store) dayOf(column string) string {
	return s.either("date_trunc('day', "+column+", 'UTC')", column+" - "+column+" % 86400000000")
}

// later is the expression of the time d after the column's.
func (s *Store) later(column string, d time.Duration) string {
	return fmt.Sprintf(s.either("(%s + %d * interval '1 microsecond')", "(%s + %d)"), column, d.Microseconds())
}

// newULIDs returns a maker of ids that sort by time, also within a millisecond.
//
// The first 48 bits of a ULID are the time in milliseconds, by the database's clock. Within a
// millisecond each id of a process is greater than the one before. Lists and retention rely on the
// time in the ids.
func newULIDs(now func() time.Time) func(string) string {
	entropy := &ulid.LockedMonotonicReader{MonotonicReader: ulid.Monotonic(rand.Reader, 0)}
	return func(prefix string) string {
		return prefix + ulid.MustNew(ulid.Timestamp(now()), entropy).String()
	}
}
