package temporalserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path"
	"strings"
	"time"

	"go.temporal.io/server/common/auth"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	_ "go.temporal.io/server/common/persistence/sql/sqlplugin/postgresql" // registers the plugin
	"go.temporal.io/server/tools/common/schema"
	sqltool "go.temporal.io/server/tools/sql"
)

const (
	postgresPlugin = "postgres12_pgx"
	// postgresShards cannot change for existing databases.
	postgresShards = 512

	mainStore       = "default"
	visibilityStore = "visibility"
)

// preparePostgres creates both databases and updates their schemas.
func preparePostgres(ctx context.Context, rawURL string, logger log.Logger) (config.Persistence, error) {
	base, admin, err := postgresConfig(rawURL)
	if err != nil {
		return config.Persistence{}, err
	}
	stores := map[string]config.DataStore{}
	for _, part := range []struct{ store, database, schema string }{
		{mainStore, "temporal", "postgresql/v12/temporal"},
		{visibilityStore, "temporal_visibility", "postgresql/v12/visibility"},
	} {
		if err := ctx.Err(); err != nil {
			return config.Persistence{}, err
		}
		cfg := base
		cfg.DatabaseName = part.database
		if err := migratePostgres(cfg, admin, part.schema, logger); err != nil {
			return config.Persistence{}, fmt.Errorf("database %s: %w", part.database, err)
		}
		stores[part.store] = config.DataStore{SQL: &cfg}
	}
	return config.Persistence{
		DefaultStore:     mainStore,
		VisibilityStore:  visibilityStore,
		NumHistoryShards: postgresShards,
		DataStores:       stores,
	}, nil
}

// migratePostgres creates the database and its version tables and applies the missing steps of
// the schema. If the role may not create databases, the database must exist.
func migratePostgres(cfg config.SQL, admin, schemaName string, logger log.Logger) error {
	create := cfg
	refused := sqltool.DoCreateDatabase(&create, admin, logger)
	conn, err := sqltool.NewConnection(&cfg, logger)
	if err != nil {
		return fmt.Errorf("connect: %w", errors.Join(refused, err))
	}
	defer conn.Close()
	if _, err := conn.ReadSchemaVersion(); err != nil {
		setup := &schema.SetupConfig{InitialVersion: "0.0"}
		if err := schema.NewSetupSchemaTask(conn, setup, logger).Run(); err != nil {
			// The cause may be that the database could not be created.
			return fmt.Errorf("set up the schema: %w", errors.Join(refused, err))
		}
	}
	update := &schema.UpdateConfig{DBName: cfg.DatabaseName, SchemaName: schemaName}
	if err := schema.NewUpdateSchemaTask(conn, update, logger).Run(); err != nil {
		return fmt.Errorf("update the schema: %w", err)
	}
	return nil
}

// postgresConfig converts a URL to the plugin's settings. admin is the database of the URL, from
// which the other databases are created.
func postgresConfig(rawURL string) (cfg config.SQL, admin string, err error) {
	u, err := url.Parse(rawURL)
	if err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") {
		// The error must not contain the URL, which holds a password.
		return config.SQL{}, "", errors.New("the PostgreSQL URL must look like postgres://user:password@host:port/database")
	}
	query := u.Query()
	host := u.Hostname()
	if host == "" {
		host = query.Get("host")
	}
	port := u.Port()
	if port == "" {
		port = "5432"
	}
	if host == "" || strings.HasPrefix(host, "/") {
		return config.SQL{}, "", errors.New("the PostgreSQL URL must name a host: Temporal cannot use a socket's folder")
	}
	password, _ := u.User.Password()
	cfg = config.SQL{
		PluginName:        postgresPlugin,
		User:              u.User.Username(),
		Password:          password,
		ConnectAddr:       net.JoinHostPort(host, port),
		ConnectProtocol:   "tcp",
		ConnectAttributes: map[string]string{},
		MaxConns:          40,
		MaxIdleConns:      40,
		MaxConnLifetime:   time.Hour,
	}
	switch mode := query.Get("sslmode"); mode {
	case "", "disable", "allow", "prefer":
		// The plugin uses no TLS by default.
	default:
		cfg.TLS = &auth.TLS{Enabled: true, EnableHostVerification: mode == "verify-full", ServerName: host}
	}
	admin = path.Base(u.Path)
	if admin == "." || admin == "/" {
		admin = "postgres"
	}
	return cfg, admin, nil
}
