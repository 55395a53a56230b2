package temporalserver

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"

	"go.temporal.io/server/common/config"
	sqliteplugin "go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	sqliteschema "go.temporal.io/server/schema/sqlite"
)

// sqliteShards is fixed for the life of a file. One connection writes: more
// shards than this only add timers and loops that find nothing.
const sqliteShards = 1

// prepareSQLite makes the file with its schema when it is absent, and the
// namespace in it, so that the first start needs no round of registration.
func prepareSQLite(file, namespace string) (config.Persistence, error) {
	if err := createSQLite(file, namespace); err != nil {
		return config.Persistence{}, err
	}
	return config.Persistence{
		DefaultStore:     sqliteplugin.PluginName,
		VisibilityStore:  sqliteplugin.PluginName,
		NumHistoryShards: sqliteShards,
		DataStores: map[string]config.DataStore{
			sqliteplugin.PluginName: {SQL: sqliteConfig(file)},
		},
	}, nil
}

// sqliteConfig opens file with the write-ahead log. NORMAL survives the death
// of the process; only a power cut can undo the last commits.
func sqliteConfig(file string) *config.SQL {
	return &config.SQL{
		PluginName: sqliteplugin.PluginName,
		// The plugin makes a URI of it.
		DatabaseName: (&url.URL{Path: file}).EscapedPath(),
		// The plugin allows more with the log on, and fails with SQLITE_BUSY then.
		MaxConns: 1,
		ConnectAttributes: map[string]string{
			"mode":         "rwc",
			"journal_mode": "wal",
			"synchronous":  "1",
			"busy_timeout": "10000",
		},
	}
}

// createSQLite builds the database under another name and renames it, because
// the schema is written once only: a file that a killed process left half
// made would never be completed.
func createSQLite(file, namespace string) error {
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	unfinished := file + ".new"
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if err := os.Remove(unfinished + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove what an interrupted start left: %w", err)
		}
	}
	cfg := sqliteConfig(unfinished)
	// No write-ahead log here: it would have to be moved along.
	cfg.ConnectAttributes["journal_mode"] = "delete"
	if err := sqliteschema.SetupSchema(cfg); err != nil {
		return fmt.Errorf("create the schema: %w", err)
	}
	ns, err := newNamespace(namespace)
	if err != nil {
		return fmt.Errorf("describe the namespace: %w", err)
	}
	if err := sqliteschema.CreateNamespaces(cfg, ns); err != nil {
		return fmt.Errorf("create the namespace: %w", err)
	}
	return os.Rename(unfinished, file)
}
