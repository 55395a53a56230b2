package blob

import (
	"context"
	"io"

	"github.com/mediagate/mediagate/internal/limit"
)

// DefaultMemory is what all copies of a store hold at once, and
// DefaultClientMemory what the files of clients do, unless Config says
// otherwise.
const (
	DefaultMemory       = 256 << 20
	DefaultClientMemory = 128 << 20
)

// MinMemory is the least with which a file in parts can be uploaded: the first
// part, one that is on its way, and one that is being read.
const MinMemory = (1 + spareParts) * partSize

// spareParts are held beside those on their way: the first part, whose buffer
// the upload manager keeps outside its pool, and the one that is being filled.
const spareParts = 2

// smallest covers what even a file of a few bytes needs on its way.
const smallest = 64 << 10

// Opener opens a file. Its length is exact, or -1 when it is unknown.
type Opener func(ctx context.Context) (body io.ReadCloser, length int64, err error)

// budget is the memory that uploads of a store share. Each takes its
// share once, before its file is opened, so that nobody's connection waits and
// nobody waits while holding; it gives back what the file turns out not to
// need.
//
// Files of one owner, whose servers are slow, keep no other owner's waiting.
type budget struct {
	size  int64
	width int // parts of one file that travel at once, at most
	free  *limit.Limit
}

func newBudget(free *limit.Limit, width int) budget {
	return budget{size: free.Figures().Capacity, width: width, free: free}
}

// shape is how a file is uploaded.
type shape struct {
	part  int64 // bytes of a part
	width int   // parts on their way at once
	share int64 // bytes that are held at most
}

// shapeOf plans the upload of a file of that length, at most maxBytes; 0 says
// that there is no limit. With little memory fewer parts travel at once, and
// they are no larger than it allows.
func (b budget) shapeOf(maxBytes, length int64) shape {
	if length < 0 {
		length = maxBytes
	}
	s := shape{part: min(partSizeFor(maxBytes), b.size/(1+spareParts))}
	if length > 0 && length < partSize { // sent whole, after it was read in pieces
		s.width, s.share = 1, 2*length+smallest
		return s
	}
	s.width = max(1, min(b.width, int(b.size/s.part)-spareParts))
	if length > 0 {
		s.width = max(1, min(s.width, int((length-1)/s.part)))
	}
	s.share = int64(s.width+spareParts) * s.part
	return s
}

// open waits for the share of the worst case, opens the file and keeps what
// the file needs until release is called.
func (b budget) open(ctx context.Context, owner string, maxBytes int64, open Opener) (body io.ReadCloser, s shape, release func(), err error) {
	worst := b.shapeOf(maxBytes, -1)
	held, err := b.free.Acquire(ctx, owner, worst.share)
	if err != nil {
		return nil, shape{}, nil, storageError(ctx, "waiting for memory", err)
	}
	body, length, err := open(ctx)
	if err != nil {
		held.Release()
		return nil, shape{}, nil, err
	}
	s = worst
	if length >= 0 {
		if fits := b.shapeOf(maxBytes, length); fits.share < worst.share {
			held.Shrink(fits.share)
			s = fits
		}
	}
	return body, s, held.Release, nil
}
