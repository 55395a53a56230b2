package app

import (
	"context"
	"log/slog"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
)

// writeEvery is how old the last test write to the bucket may be. A write costs more than a read,
// and anyone may call /readyz.
const writeEvery = 5 * time.Second

// checkBucket makes the bucket's check for /readyz: the bucket answers now, and has lately
// accepted a write.
func checkBucket(
	b interface {
		Ping(ctx context.Context) error
		Probe(ctx context.Context) error
	}, now func() time.Time, log *slog.Logger,
) func(context.Context) error {
	writes := api.NewRecentFor(writeEvery, now, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), opsDeadline)
		defer cancel()
		err := mediagate.Guarded(func() error { return b.Probe(ctx) })
		if err != nil {
			log.WarnContext(ctx, "the bucket takes no files", "error", err)
		}
		return err
	})
	return func(ctx context.Context) error {
		if err := b.Ping(ctx); err != nil {
			return err
		}
		return writes.Get()
	}
}
