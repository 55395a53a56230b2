package imagefile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Format is a type of file that Clean takes.
type Format string

// The formats, by their MIME types.
const (
	JPEG Format = "image/jpeg"
	PNG  Format = "image/png"
	GIF  Format = "image/gif"
	WebP Format = "image/webp"
)

// The bounds of a picture, all of them allowed.
const (
	MaxSide   = 16_384
	MaxPixels = 200_000_000
	MaxFrames = 1_000
	// MaxFramePixels is for all frames of a moving picture together.
	MaxFramePixels = 1_000_000_000
)

// MaxGrowth bounds the bytes by which a copy is longer than its file: EXIF of ours
// can be longer than what it takes the place of.
const MaxGrowth = 64

// Unusable is why a file is refused: the words follow the file's name.
type Unusable string

// Error is the words.
func (u Unusable) Error() string { return string(u) }

const (
	errEmpty    Unusable = "is empty"
	errUnknown  Unusable = "is no JPEG, PNG, WebP or GIF image"
	errCut      Unusable = "ends before the image is complete"
	errTrailing Unusable = "goes on after the end of the image"
	errNoPixels Unusable = "holds no image"
	errProfile  Unusable = "has a colour profile that is too large"
)

// damaged is a break of the structure.
func damaged(format string, args ...any) error {
	return Unusable("is damaged: " + fmt.Sprintf(format, args...))
}

// maxProfile bounds a colour profile, unpacked.
const maxProfile = 4 << 20

// Info is what the file says of itself.
type Info struct {
	Format        Format
	Width, Height int
	Frames        int // 1 of a still picture
}

// SniffLen is how many bytes tell the format.
const SniffLen = 12

// Detect names the format of a file that begins with head: by its content
// alone.
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

// Clean copies a picture from r to w without what does not show. What follows the
// end of a JPEG is cut off, and left in r; what follows the others' is a fault. An
// error that is the file's fault is Unusable; errors of r and w come back as they
// are, io.ErrUnexpectedEOF aside. What was written before an error is of no use.
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
	walk := map[Format]func(*copier) error{JPEG: (*copier).jpeg, PNG: (*copier).png, GIF: (*copier).gif, WebP: (*copier).webp}
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

// copier is one file on its way.
type copier struct {
	r           *bufio.Reader
	w           *bufio.Writer
	info        Info
	framePixels int64
	orientation byte // of EXIF, once it was found; 0: none
	sidesOnly   bool // nothing is asked but the size, which is not judged
	scratch     [64]byte
}

// cut tells the end of the file from an error of the reader.
func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errCut
	}
	return err
}

// next reads so many bytes, at most as many as scratch holds. They are good
// until the next call.
func (c *copier) next(n int) ([]byte, error) {
	b := c.scratch[:n]
	_, err := io.ReadFull(c.r, b)
	return b, cut(err)
}

func (c *copier) write(b ...byte) error {
	_, err := c.w.Write(b)
	return err
}

// pass copies the next n bytes; drop reads over them.
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

// sized notes the size of the picture.
func (c *copier) sized(width, height int) error {
	switch {
	case width < 1 || height < 1:
		return damaged("it has no width or no height")
	case c.sidesOnly:
	case width > MaxSide || height > MaxSide || width*height > MaxPixels:
		return Unusable(fmt.Sprintf("is %d × %d pixels: at most %d a side and %d in all are allowed", width, height, MaxSide, MaxPixels))
	}
	c.info.Width, c.info.Height, c.info.Frames = width, height, 1
	return nil
}

// framed counts a frame of a moving picture, which must lie within it.
func (c *copier) framed(n, left, top, width, height int) error {
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
