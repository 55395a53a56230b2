package blob

import (
	"context"
	"io"

	"github.com/mediagate/mediagate/internal/limit"
)

// The defaults of Config: the bytes that all copies of a store hold at once, and those that
// clients' files hold.
const (
	DefaultMemory       = 256 << 20
	DefaultClientMemory = 128 << 20
)

// MinMemory is the least memory with which a file can be uploaded in parts: the first part, a
// part on its way, and a part that is being read.
const MinMemory = (1 + spareParts) * partSize

// spareParts are the parts in memory that are not on their way: the first part, whose buffer the
// upload manager keeps outside its pool, and the part that is being filled.
const spareParts = 2

// smallest is the memory that a file of a few bytes needs on its way.
const smallest = 64 << 10

// Opener opens a file. Its length is exact, or -1 when it is unknown.
type Opener func(ctx context.Context) (body io.ReadCloser, length int64, err error)

// budget is the memory that the uploads of a store share. An upload acquires its share once,
// before its file is opened. So no upload waits for memory with an open connection, or while it
// holds memory. Once the length of the file is known, the upload returns the memory that the file
// does not need.
//
// The limit shares the memory among owners, so that the files of an owner with slow servers do
// not delay the files of others.
type budget struct {
	size  int64
	width int // the most parts of one file that are on their way at once
	free  *limit.Limit
}

func newBudget(free *limit.Limit, width int) budget {
	return budget{size: free.Figures().Capacity, width: width, free: free}
}

// shape is how a file is uploaded.
type shape struct {
	part  int64 // bytes of a part
	width int   // parts on their way at once
	share int64 // the most bytes that are held
}

// shapeOf plans the upload of a file of that length, at most maxBytes; 0 means no limit. With
// little memory, parts are smaller and fewer of them are on their way at once.
func (b budget) shapeOf(maxBytes, length int64) shape {
	if length < 0 {
		length = maxBytes
	}
	s := shape{part: min(partSizeFor(maxBytes), b.size/(1+spareParts))}
	if length > 0 && length < partSize { // read in pieces, and sent as a whole
		s.width = 1
		s.share = 2*length + smallest
		return s
	}
	s.width = max(1, min(b.width, int(b.size/s.part)-spareParts))
	if length > 0 {
		s.width = max(1, min(s.width, int((length-1)/s.part)))
	}
	s.share = int64(s.width+spareParts) * s.part
	return s
}

// open acquires the share of the worst case, opens the file, and keeps the memory that the file
// needs until release is called.
func (b budget) open(
	ctx context.Context, owner string, maxBytes int64, open Opener,
) (body io.ReadCloser, s shape, release func(), err error) {
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
