package storage

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/mediagate/mediagate"
)

// Pooler is the kind of connection pooler between the store and PostgreSQL.
type Pooler string

const (
	// PoolerNone is no pooler, or a pooler that keeps one server connection for each client
	// connection. Prepared statements and settings of the session last.
	PoolerNone Pooler = "none"
	// PoolerTransaction is PgBouncer or the like in transaction mode. Each transaction may run
	// on another server connection, which other clients use too.
	PoolerTransaction Pooler = "transaction"
)

// startupParameters are sent in a connection's first message unless its URL names them. They
// replace the values of the role and the database, because pgx relies on them to read and
// write text. PgBouncer knows these parameters and sets them for each client.
var startupParameters = map[string]string{
	"client_encoding": "UTF8", "DateStyle": "ISO, MDY", "TimeZone": "UTC", "standard_conforming_strings": "on",
}

// isolation is the level of transactions that do not ask for a snapshot. At a stricter level,
// concurrent writers of one row would fail instead of waiting.
const (
	isolationSetting = "default_transaction_isolation"
	isolation        = "read committed"
)

// commitSetting is the setting by which a commit waits for the disk. A row that was
// acknowledged must survive a crash of the server.
const commitSetting = "synchronous_commit"

// setting is a setting of PostgreSQL with its value as a SQL expression.
type setting struct{ name, value string }

// sessionSettings are set for each connection and replace the values of its role and
// database. The connection's URL may override them.
//
// If the machine of a process is gone, the TCP settings release the locks of the process within
// half a minute; the system's own timers take hours. A statement waits for a lock no longer than a
// client would wait, and runs for as long as its caller allows. Older servers lack some of the
// names, and those are left out.
var sessionSettings = append([]setting{
	{isolationSetting, literal(isolation)},
	{"tcp_keepalives_idle", "'15'"},
	{"tcp_keepalives_interval", "'5'"},
	{"tcp_keepalives_count", "'3'"},
	{"tcp_user_timeout", "'30s'"},
	{"transaction_timeout", "'0'"},
	{"idle_session_timeout", "'0'"},
}, transactionSettings...)

// transactionSettings are the session settings that can be set for a single transaction.
var transactionSettings = []setting{
	{"lock_timeout", "'10s'"},
	{"idle_in_transaction_session_timeout", "'30s'"},
	{"statement_timeout", "'0'"},
	{commitSetting, "COALESCE(NULLIF(current_setting('synchronous_commit'), 'off'), 'on')"},
	// Compiling a statement would take longer than running it. For some statements on tables that
	// are mostly empty, PostgreSQL estimates the opposite.
	{"jit", "'off'"},
}

// literal returns the text as a SQL literal.
func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// takeSettings returns the settings of a session and of a transaction, with the URL's values
// in place of the defaults. It removes those values from the connection's first message,
// since poolers refuse a message with names that they do not know, and adds the startup
// parameters that the URL does not name.
func takeSettings(config *pgx.ConnConfig) (session, transaction []setting) {
	session = slices.Clone(sessionSettings)
	for i, s := range session {
		if value, ok := config.RuntimeParams[s.name]; ok {
			session[i].value = literal(value)
			delete(config.RuntimeParams, s.name)
		}
	}
	named := map[string]bool{}
	for name := range config.RuntimeParams {
		named[strings.ToLower(name)] = true
	}
	for name, value := range startupParameters {
		if !named[strings.ToLower(name)] {
			config.RuntimeParams[name] = value
		}
	}
	// transactionSettings are the last of sessionSettings, so the end of the list has them with the
	// URL's values.
	return session, session[len(session)-len(transactionSettings):]
}

// forSession returns the statement that sets the settings for a session. The join leaves out
// names that the server does not know.
func forSession(settings []setting) string {
	values := make([]string, len(settings))
	for i, s := range settings {
		values[i] = fmt.Sprintf("('%s', %s)", s.name, s.value)
	}
	return "SELECT set_config(name, value, false) FROM (VALUES " + strings.Join(values, ", ") +
		") AS v (name, value) JOIN pg_settings USING (name)"
}

// forTransaction returns the statement that sets the settings for a transaction.
func forTransaction(settings []setting) string {
	calls := make([]string, len(settings))
	for i, s := range settings {
		calls[i] = fmt.Sprintf("set_config('%s', %s, true)", s.name, s.value)
	}
	return "SELECT " + strings.Join(calls, ", ")
}

// detectPooler reports whether the connection goes through a pooler. PostgreSQL sends the id
// of its process when a connection begins; a pooler sends an id of its own. A pooler that
// keeps sessions counts as PoolerTransaction, which works there too.
func detectPooler(ctx context.Context, conn *pgx.Conn) (Pooler, error) {
	var pid uint32
	if err := conn.QueryRow(ctx, "SELECT pg_backend_pid()", pgx.QueryExecModeSimpleProtocol).Scan(&pid); err != nil {
		return "", err
	}
	if pid == conn.PgConn().PID() {
		return PoolerNone, nil
	}
	return PoolerTransaction, nil
}

// checkPooler returns the given pooler, or detects the pooler where none is given.
//
// Behind a pooler in transaction mode, statements outside transactions run with the settings
// of the role. checkPooler returns KindInvalid when the role's isolation level differs from
// isolation, or when its commits do not wait for the disk. It logs other settings that the
// role lacks.
func checkPooler(ctx context.Context, config *pgx.ConnConfig, given Pooler, log *slog.Logger) (Pooler, error) {
	if given == PoolerNone {
		return given, nil
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close(ctx) }()
	if given == "" {
		if given, err = detectPooler(ctx, conn); err != nil || given == PoolerNone {
			return given, err
		}
		log.InfoContext(ctx, "a pooler is before the database", "database_pooler", string(given))
	}
	// source says whether the value comes from the role or the database, rather than from the
	// server's own defaults.
	rows, err := conn.Query(ctx, `SELECT name, setting, source IN ('database', 'user', 'database user') FROM pg_settings
		WHERE name IN ('default_transaction_isolation', 'synchronous_commit',
			'lock_timeout', 'idle_in_transaction_session_timeout', 'jit')
		ORDER BY name`, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		return "", err
	}
	type found struct {
		Name, Setting string
		OfRole        bool
	}
	settings, err := pgx.CollectRows(rows, pgx.RowToStructByPos[found])
	if err != nil {
		return "", err
	}
	refuse := func(s found, which, want string) error {
		return mediagate.Errorf(mediagate.KindInvalid,
			"the database role has %s %q, which %scannot be set through a pooler in transaction mode: "+
				"ALTER ROLE … SET %s = '%s', or where the pooler keeps sessions, database_pooler: none",
			s.Name, s.Setting, which, s.Name, want)
	}
	var unset []string
	for _, s := range settings {
		switch {
		case s.Name == isolationSetting && s.Setting != isolation:
			return "", refuse(s, "", isolation)
		case s.Name == commitSetting && s.Setting == "off":
			return "", refuse(s, "loses what was acknowledged, and ", "on")
		case s.Name != isolationSetting && s.Name != commitSetting && !s.OfRole:
			unset = append(unset, s.Name)
		}
	}
	if len(unset) > 0 {
		log.WarnContext(ctx, "the database role lacks settings that cannot be set through a pooler",
			"settings", strings.Join(unset, ", "))
	}
	return given, nil
}

// pooled is a pool of connections to a pooler in transaction mode. Each transaction sets the
// settings that it relies on.
type pooled struct {
	*sql.DB
	settings string // the statement of forTransaction
}

// GetDBConn implements gorm.GetDBConnector.
func (p pooled) GetDBConn() (*sql.DB, error) { return p.DB, nil }

// BeginTx begins a transaction.
//
// The settings cost a round trip for each transaction, but no setting of a session lasts behind
// such a pooler. A transaction that asks for no isolation level gets READ COMMITTED explicitly,
// whatever the role's level is.
func (p pooled) BeginTx(ctx context.Context, options *sql.TxOptions) (*sql.Tx, error) {
	var o sql.TxOptions
	if options != nil {
		o = *options
	}
	if o.Isolation == sql.LevelDefault {
		o.Isolation = sql.LevelReadCommitted
	}
	tx, err := p.DB.BeginTx(ctx, &o)
	if err != nil {
		return nil, err
	}
	if _, err := tx.ExecContext(ctx, p.settings); err != nil {
		_ = tx.Rollback()
		return nil, err
	}
	return tx, nil
}
