package imagefile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Format is a type of file that Clean accepts.
type Format string

// The formats, by their MIME types.
const (
	JPEG Format = "image/jpeg"
	PNG  Format = "image/png"
	GIF  Format = "image/gif"
	WebP Format = "image/webp"
)

// The limits of a picture. The values themselves are allowed.
const (
	MaxSide   = 16_384
	MaxPixels = 200_000_000
	MaxFrames = 1_000
	// MaxFramePixels is for all frames of a moving picture together.
	MaxFramePixels = 1_000_000_000
)

// MaxGrowth limits the bytes by which a copy is longer than its file: our EXIF may be longer than
// the EXIF that it replaces.
const MaxGrowth = 64

// Unusable is the reason why a file is refused. The words follow the file's name.
type Unusable string

// Error implements error.
func (u Unusable) Error() string { return string(u) }

const (
	errEmpty    Unusable = "is empty"
	errUnknown  Unusable = "is no JPEG, PNG, WebP or GIF image"
	errCut      Unusable = "ends before the image is complete"
	errTrailing Unusable = "goes on after the end of the image"
	errNoPixels Unusable = "holds no image"
	errProfile  Unusable = "has a colour profile that is too large"
)

// damaged returns the reason of a file that breaks its format.
func damaged(format string, args ...any) error {
	return Unusable("is damaged: " + fmt.Sprintf(format, args...))
}

// maxProfile limits the size of a colour profile after decompression.
const maxProfile = 4 << 20

// Info has the values of a picture's header.
type Info struct {
	Format        Format
	Width, Height int
	Frames        int // 1 of a still picture
}

// SniffLen is the number of bytes that Detect needs.
const SniffLen = 12

// Detect returns the format of a file that begins with head.
func Detect(head []byte) (Format, bool) {
	switch {
	case bytes.HasPrefix(head, []byte("\xff\xd8\xff")):
		return JPEG, true
	case bytes.HasPrefix(head, []byte(pngSignature)):
		return PNG, true
	case bytes.HasPrefix(head, []byte("GIF87a")), bytes.HasPrefix(head, []byte("GIF89a")):
		return GIF, true
	case len(head) >= SniffLen && string(head[:4]) == "RIFF" && string(head[8:12]) == "WEBP":
		return WebP, true
	}
	return "", false
}

// Clean copies a picture from r to w without its invisible data. Bytes after the end of a JPEG are
// left in r; after the other formats they are an error. An error about the file is Unusable. Errors
// of r and w are returned as they are, except for io.ErrUnexpectedEOF. After an error, the bytes
// written so far are useless.
func Clean(w io.Writer, r io.Reader) (Info, error) {
	const buffer = 32 << 10
	c := &copier{r: bufio.NewReaderSize(r, buffer), w: bufio.NewWriterSize(w, buffer)}
	head, err := c.r.Peek(SniffLen)
	if err != nil && !errors.Is(err, io.EOF) {
		return Info{}, err
	}
	format, ok := Detect(head)
	switch {
	case len(head) == 0:
		return Info{}, errEmpty
	case !ok:
		return Info{}, errUnknown
	}
	c.info.Format = format
	walk := map[Format]func(*copier) error{
		JPEG: (*copier).jpeg, PNG: (*copier).png, GIF: (*copier).gif, WebP: (*copier).webp,
	}
	if err := walk[format](c); err != nil {
		return Info{}, err
	}
	if format != JPEG {
		if _, err := c.r.Peek(1); err == nil {
			return Info{}, errTrailing
		} else if !errors.Is(err, io.EOF) {
			return Info{}, err
		}
	}
	if err := c.w.Flush(); err != nil {
		return Info{}, err
	}
	return c.info, nil
}

// copier copies one file.
type copier struct {
	r           *bufio.Reader
	w           *bufio.Writer
	info        Info
	framePixels int64
	orientation byte // of EXIF; 0: none found yet
	sidesOnly   bool // read the size alone and do not check it
	scratch     [64]byte
}

// cut converts the end of the file to errCut and returns other errors as they are.
func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errCut
	}
	return err
}

// next reads n bytes into scratch. They are valid until the next call.
func (c *copier) next(n int) ([]byte, error) {
	b := c.scratch[:n]
	_, err := io.ReadFull(c.r, b)
	return b, cut(err)
}

func (c *copier) write(b ...byte) error {
	_, err := c.w.Write(b)
	return err
}

// pass copies the next n bytes. drop skips them.
func (c *copier) pass(n int64) error {
	_, err := io.CopyN(c.w, c.r, n)
	return cut(err)
}

func (c *copier) drop(n int64) error {
	_, err := io.CopyN(io.Discard, c.r, n)
	return cut(err)
}

// fill writes n bytes of the same value.
func (c *copier) fill(b byte, n int64) error {
	for range n {
		if err := c.w.WriteByte(b); err != nil {
			return err
		}
	}
	return nil
}

// setSize checks and records the size of the picture.
func (c *copier) setSize(width, height int) error {
	switch {
	case width < 1 || height < 1:
		return damaged("it has no width or no height")
	case c.sidesOnly:
	case width > MaxSide || height > MaxSide || width*height > MaxPixels:
		return Unusable(
			fmt.Sprintf("is %d × %d pixels: at most %d a side and %d in all are allowed", width, height, MaxSide, MaxPixels),
		)
	}
	c.info.Width, c.info.Height, c.info.Frames = width, height, 1
	return nil
}

// addFrame checks and counts a frame of an animation. The frame must lie within the picture.
func (c *copier) addFrame(n, left, top, width, height int) error {
	switch {
	case n > MaxFrames:
		return Unusable(fmt.Sprintf("has more than %d frames", MaxFrames))
	case width < 1 || height < 1, !c.sidesOnly && (left+width > c.info.Width || top+height > c.info.Height):
		return damaged("a frame does not lie within the image")
	}
	if c.framePixels += int64(width) * int64(height); c.framePixels > MaxFramePixels {
		return Unusable(fmt.Sprintf("has frames of more than %d pixels together", MaxFramePixels))
	}
	c.info.Frames = max(n, 1)
	return nil
}
