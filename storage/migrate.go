package storage

import (
	"context"
	"embed"
	"io/fs"
	"path"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations
var migrations embed.FS

// Migrate brings the schema up to date. Several processes may start at once:
// on PostgreSQL one of them migrates and the others wait for it.
func (s *Store) Migrate(ctx context.Context) error {
	dialect, folder := goose.DialectPostgres, dialectPostgres
	var options []goose.ProviderOption
	if s.lite {
		dialect, folder = goose.DialectSQLite3, dialectSQLite
	} else {
		locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, migrateWaitSeconds))
		if err != nil {
			return dbError(err, "migrate")
		}
		options = append(options, goose.WithSessionLocker(locker))
	}
	files, err := fs.Sub(migrations, path.Join("migrations", folder))
	if err != nil {
		return dbError(err, "migrate")
	}
	provider, err := goose.NewProvider(dialect, s.sql, files, options...)
	if err != nil {
		return dbError(err, "migrate")
	}
	done, err := provider.Up(ctx)
	for _, m := range done {
		s.log.InfoContext(ctx, "migrated", "version", m.Source.Version, "took", m.Duration.Round(time.Millisecond).String())
	}
	return dbError(err, "migrate")
}

// migrateWaitSeconds is how long a process waits for another's migration.
const migrateWaitSeconds = 300
