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

// sqliteShards cannot change for an existing file. Only one connection writes, so further shards
// would only add timers and loops without work.
const sqliteShards = 1

// prepareSQLite creates the file with its schema and the namespace if it does not exist. So the
// first start need not register the namespace.
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

// sqliteConfig returns the settings that open file with a write-ahead log. With synchronous
// NORMAL, the data survives the death of the process. Only a power cut can undo the last
// commits.
func sqliteConfig(file string) *config.SQL {
	return &config.SQL{
		PluginName: sqliteplugin.PluginName,
		// The plugin builds a URI from the name.
		DatabaseName: (&url.URL{Path: file}).EscapedPath(),
		// With the write-ahead log, the plugin allows more connections but fails with SQLITE_BUSY.
		MaxConns: 1,
		ConnectAttributes: map[string]string{
			"mode":         "rwc",
			"journal_mode": "wal",
			"synchronous":  "1",
			"busy_timeout": "10000",
		},
	}
}

// createSQLite creates the database under another name and renames it. The schema is written
// only once, so a file that a killed process left incomplete would never be completed.
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
	// A write-ahead log would have to be renamed too, so there is none here.
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
