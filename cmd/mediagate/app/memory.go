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

// LimitMemory makes the garbage collector keep to nine tenths of the container's memory. Without
// it the heap would grow past the limit, and the kernel would kill the process. A GOMEMLIMIT in
// the environment takes precedence, and without a limit nothing changes.
func LimitMemory(ctx context.Context, log *slog.Logger) {
	limitMemory(ctx, log, memlimit.FromCgroup)
}

func limitMemory(ctx context.Context, log *slog.Logger, container memlimit.Provider) {
	limit, err := memlimit.Set(memlimit.WithProvider(container))
	switch {
	case err != nil:
		// For example without control groups. The process can still start.
		log.InfoContext(ctx, "memory limit not known", "error", err)
	case limit < math.MaxInt64:
		log.InfoContext(ctx, "memory limit", "bytes", limit)
	}
}

// mostBodies bounds the memory for bodies if memory is plentiful. Together with the two bodies
// that Limits.Bodies adds, it has room for eight of the largest. So even while two accounts hold
// all that they may, every other account has room for one.
const mostBodies = 6 * largestBody

// largestBody is the largest body with media, including the endpoint's name in a quote.
const largestBody = 31 << 20

// sizes returns the sizes of limits that follow from the settings and the machine.
func (c Config) sizes() limit.Sizes {
	return limit.Sizes{
		Connections: int64(c.connections()), BodyMemory: bodyBudget(), LargestBody: largestBody,
		UploadMemory: max(2*blob.MinMemory, clientMemory()),
		Writers:      max(int64(c.DatabasePool.Size)/2, 4), // more writers of one account would only wait for its row
		CopyMemory:   int64(c.MirrorMemory),
	}
}

// bodyBudget returns the share of the memory for request bodies. It is an eighth, since the
// garbage collector lets a heap grow to twice what is in use.
func bodyBudget() int64 {
	return min(debug.SetMemoryLimit(-1)/8, mostBodies)
}
