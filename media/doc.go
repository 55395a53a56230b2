// Package media reads and cleans files of clients and vendors. It checks type, size, length and
// pace while a file arrives, removes invisible data from pictures, cuts grids into their four
// pictures, and packs stems into an archive. It also finds the files that a request names.
//
// A file is a stream: memory holds only its headers, and the pixels of a picture that is cut. The
// caller decides where files come from and go. Errors have the module's kinds and messages for the
// client.
//
// It imports the root package, internal/limit, media/imagefile and media/mediainfo.
package media

import (
	"context"
	"io"
)

// Open opens a file; a length of -1 is unknown.
type Open func(ctx context.Context) (body io.ReadCloser, length int64, err error)
