package media

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/mediagate/mediagate"
)

// cutMemory limits the memory of all pictures that a process cuts at once: one of 16 million
// pixels, or several of a usual size. More pictures wait.
const cutMemory = 256 << 20

// Cutter cuts stored grids into their four pictures within cutMemory.
type Cutter struct {
	once sync.Once
	free *semaphore.Weighted // made by the first Cut
}

// Cut calls store with each picture of the grid and the maximum size of its file. It opens the grid
// twice. It returns ErrUncut for a grid that should stay as it is, KindInvalid with code
// result_unavailable for one that cannot be read, KindUnavailable if the object store breaks off, and
// the errors of open and store.
func (c *Cutter) Cut(
	ctx context.Context, grid mediagate.Result, open Open, store func(quarter int, open Open, mostBytes int64) error,
) error {
	var width, height int
	err := readStored(ctx, open, func(r io.Reader) (err error) { // sides reads more of the header than the copy did
		width, height, err = sides(grid.MimeType, bufio.NewReader(r))
		return err
	})
	if err != nil {
		return err
	}
	need := int64(width) * int64(height) * bytesPerPixel
	if min(width, height) < 2 || need > cutMemory {
		return fmt.Errorf("a grid of %d × %d pixels: %w", width, height, ErrUncut)
	}
	c.once.Do(func() { c.free = semaphore.NewWeighted(cutMemory) })
	if err := c.free.Acquire(ctx, need); err != nil {
		return fmt.Errorf("wait for memory to cut a grid: %w", err)
	}
	defer c.free.Release(need)
	var whole picture
	err = readStored(ctx, open, func(r io.Reader) (err error) {
		whole, err = decodePicture(grid.MimeType, bufio.NewReader(r), width, height)
		return err
	})
	for i := 0; i < Quarters && err == nil; i++ {
		err = store(i, func(ctx context.Context) (io.ReadCloser, int64, error) {
			return makeFile(ctx, func(_ context.Context, w *bufio.Writer) error { return writeQuarter(w, whole, i) }), -1, nil
		}, need)
	}
	return err
}

// readStored reads a stored file. An error of read means a broken file, unless the object store
// broke off.
func readStored(ctx context.Context, open Open, read func(io.Reader) error) error {
	ctx, hangUp := context.WithCancel(ctx)
	defer hangUp()
	body, _, err := open(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	src := NewSource(body, hangUp)
	err = read(src)
	switch {
	case src.err != nil:
		return &mediagate.Error{
			Kind: mediagate.KindUnavailable, Code: string(mediagate.ParkStorage),
			Message: "reading a stored file: the object store broke off", Err: errors.Join(src.err, err),
		}
	case err != nil:
		return &mediagate.Error{
			Kind: mediagate.KindInvalid, Code: string(mediagate.CodeResultUnavailable), Message: "the grid cannot be read",
			Err: err,
		}
	default:
		return nil
	}
}
