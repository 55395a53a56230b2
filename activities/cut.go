package activities

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/media"
	"github.com/mediagate/mediagate/mediainfo"
)

// cut makes the four pictures of a grid that is in the bucket: main files under
// keys of their own beside that of the grid. A grid that cannot be cut, though it
// may be whole, is left as it is: then there are none.
func (f *files) cut(ctx context.Context, position int, grid mediagate.Result) ([]mediagate.Result, error) {
	var quarters []mediagate.Result
	open := func(ctx context.Context) (io.ReadCloser, int64, error) { return f.Bucket.Open(ctx, grid.Key) }
	err := f.cuts.Cut(ctx, grid, open, func(i int, open media.Open, mostBytes int64) error {
		f.copied.begin(position)
		quarter, err := f.Bucket.Mirror(ctx, QuarterKey(f.task.ID, f.row.N, position, i), open, Limits{
			MaxBytes: mostBytes, Media: string(mediainfo.ClassImage), Progress: f.copied.bytes.Store,
		})
		quarter.Role, quarter.Index = mediagate.RoleMain, grid.Index*media.Quarters+i
		quarters = append(quarters, quarter)
		return err
	})
	switch {
	case err == nil:
		return quarters, nil
	case errors.Is(err, media.ErrUncut):
		f.Logger.WarnContext(ctx, "a grid is delivered uncut", "task", f.task.ID, "attempt", f.row.N, "mime_type", grid.MimeType, "error", err)
		return nil, nil
	default:
		return nil, err
	}
}

// QuarterKey is the object key of a picture that was cut out of the grid at the
// position. No file of a vendor's has such a one.
func QuarterKey(taskID string, n, position, quarter int) string {
	return fmt.Sprintf("%s-%d", ResultKey(taskID, n, position), quarter+1)
}
