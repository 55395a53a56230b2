// Package media reads and cleans files, of clients and of vendors. It checks type, size,
// length and pace while a file arrives, takes out of pictures what does not show, cuts
// grids into their four pictures, and packs stems into an archive. It also knows where a
// request names its files.
//
// A file is a stream: no more of it is held than its headers, but a picture that is cut.
// Where files come from, and where they go, is up to the caller. Errors are of the
// module's kinds, in words for the client.
//
// It imports the root package, limit, and what lies below it, imagefile and mediainfo.
package media

import (
	"context"
	"io"
)

// Open opens a file; a length of -1 is unknown.
type Open func(ctx context.Context) (body io.ReadCloser, length int64, err error)
