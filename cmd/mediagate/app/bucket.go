package app

import (
	"context"
	"log/slog"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
)

// writeEvery is how old the last write to the bucket may be when we say that it
// takes one. A write costs more than a question, and anyone may ask us.
const writeEvery = 5 * time.Second

// checkBucket makes the check of /readyz: the bucket answers now, and has lately
// taken what a copy writes.
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
