package activities

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/mediainfo"
	"github.com/mediagate/mediagate/picture"
)

// cutMemory is what the pictures that are being cut hold at once, in a process:
// one of 16 million pixels, or some of the usual ones. Those beyond it wait.
const cutMemory = 256 << 20

// cutting shares that memory out.
type cutting struct {
	once sync.Once
	free *semaphore.Weighted
}

func (c *cutting) memory() *semaphore.Weighted {
	c.once.Do(func() { c.free = semaphore.NewWeighted(cutMemory) })
	return c.free
}

// cut makes the four pictures of a grid that is in the bucket: main files under
// keys of their own beside that of the grid. A grid that cannot be cut, though it
// may be whole, is left as it is: then there are none.
func (f *files) cut(ctx context.Context, position int, grid mediagate.Result) ([]mediagate.Result, error) {
	quarters, err := f.quarters(ctx, position, grid)
	if errors.Is(err, picture.ErrUnsupported) {
		f.Logger.WarnContext(ctx, "a grid is delivered uncut", "task", f.task.ID, "attempt", f.row.N, "mime_type", grid.MimeType, "error", err)
		return nil, nil
	}
	return quarters, err
}

func (f *files) quarters(ctx context.Context, position int, grid mediagate.Result) ([]mediagate.Result, error) {
	width, height, err := f.sides(ctx, grid)
	if err != nil {
		return nil, err
	}
	need := int64(width) * int64(height) * picture.BytesPerPixel
	if min(width, height) < 2 || need > cutMemory {
		return nil, fmt.Errorf("a grid of %d × %d pixels: %w", width, height, picture.ErrUnsupported)
	}
	free := f.cuts.memory()
	if err := free.Acquire(ctx, need); err != nil {
		return nil, fmt.Errorf("wait for memory to cut a grid: %w", err)
	}
	defer free.Release(need)
	whole, err := f.decode(ctx, grid, width, height)
	if err != nil {
		return nil, err
	}
	quarters := make([]mediagate.Result, picture.Quarters)
	for i := range quarters {
		f.copied.begin(position)
		open := func(ctx context.Context) (io.ReadCloser, int64, error) {
			return makeFile(ctx, func(_ context.Context, w *bufio.Writer) error { return whole.WriteQuarter(w, i) }), -1, nil
		}
		quarters[i], err = f.Bucket.Mirror(ctx, QuarterKey(f.task.ID, f.row.N, position, i), open, Limits{
			MaxBytes: need, Media: string(mediainfo.ClassImage), Progress: f.copied.bytes.Store,
		})
		if err != nil {
			return nil, err
		}
		quarters[i].Role, quarters[i].Index = mediagate.RoleMain, grid.Index*picture.Quarters+i
	}
	return quarters, nil
}

// QuarterKey is the object key of a picture that was cut out of the grid at the
// position. No file of a vendor's has such a one.
func QuarterKey(taskID string, n, position, quarter int) string {
	return fmt.Sprintf("%s-%d", ResultKey(taskID, n, position), quarter+1)
}

// sides reads how large the grid is, further than the copy of it looked.
func (f *files) sides(ctx context.Context, grid mediagate.Result) (width, height int, err error) {
	err = f.readStored(ctx, grid, func(r *source) error {
		width, height, err = picture.Sides(grid.MimeType, bufio.NewReader(r))
		return err
	})
	return width, height, err
}

func (f *files) decode(ctx context.Context, grid mediagate.Result, width, height int) (whole *picture.Picture, err error) {
	err = f.readStored(ctx, grid, func(r *source) error {
		whole, err = picture.Decode(grid.MimeType, bufio.NewReader(r), width, height)
		return err
	})
	return whole, err
}

// readStored reads a file that is in the bucket. What read finds wrong is the
// file's fault, unless the bucket broke off.
func (f *files) readStored(ctx context.Context, file mediagate.Result, read func(*source) error) error {
	ctx, hangUp := context.WithCancel(ctx)
	defer hangUp()
	body, _, err := f.Bucket.Open(ctx, file.Key)
	if err != nil {
		return err
	}
	defer body.Close()
	src := newSource(body, file.Size, hangUp)
	err = read(src)
	switch {
	case src.err != nil:
		return &mediagate.Error{
			Kind: mediagate.KindUnavailable, Code: string(mediagate.ParkStorage),
			Message: "reading a stored file: the object store broke off", Err: errors.Join(src.err, err),
		}
	case err != nil:
		return &mediagate.Error{
			Kind: mediagate.KindInvalid, Code: string(mediagate.CodeResultUnavailable), Message: "the grid cannot be read", Err: err,
		}
	default:
		return nil
	}
}
