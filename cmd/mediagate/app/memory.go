package app

import (
	"context"
	"log/slog"
	"math"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"github.com/mediagate/mediagate/internal/limit"
	"github.com/mediagate/mediagate/storage/blob"
)

// LimitMemory makes the garbage collector keep to nine tenths of what the
// container may use: without, the heap grows past it and the kernel kills the
// process. A GOMEMLIMIT of the environment stays, and so does no limit at all.
func LimitMemory(ctx context.Context, log *slog.Logger) {
	limitMemory(ctx, log, memlimit.FromCgroup)
}

func limitMemory(ctx context.Context, log *slog.Logger, container memlimit.Provider) {
	limit, err := memlimit.Set(memlimit.WithProvider(container))
	switch {
	case err != nil:
		// Such as a system without control groups: no reason not to start.
		log.InfoContext(ctx, "memory limit not known", "error", err)
	case limit < math.MaxInt64:
		log.InfoContext(ctx, "memory limit", "bytes", limit)
	}
}

// mostBodies is what bodies may take where memory is no concern. With the two that there
// is room for beside, the largest is an eighth: so much is left to each account while two
// others hold all that they may.
const mostBodies = 6 * largestBody

// largestBody is what a body with media may be, with the name of a quote's endpoint.
const largestBody = 31 << 20

// sizes are what the settings and this machine say of the limits.
func (c Config) sizes() limit.Sizes {
	return limit.Sizes{
		Connections: int64(c.connections()), BodyMemory: bodyBudget(), LargestBody: largestBody, UploadMemory: max(2*blob.MinMemory, clientMemory()),
		Writers:    max(int64(c.DatabasePool.Size)/2, 4), // more writers of an account would only wait for its row
		CopyMemory: int64(c.MirrorMemory),
	}
}

// bodyBudget is the share of the memory that bodies of requests may have. An
// eighth, since the collector lets a heap grow to twice what is in use.
func bodyBudget() int64 {
	return min(debug.SetMemoryLimit(-1)/8, mostBodies)
}
