package mediainfo

import (
	"bytes"
	"errors"
	"image"
	"image/png"
	"io"

	"golang.org/x/image/webp"

	"github.com/mediagate/mediagate/media/imagefile"
)

// imageHeadMax limits the bytes kept of an image. Most formats begin with their size; a JPEG has it
// after its metadata, which can be some 100 KB.
const imageHeadMax = 1 << 20

// imageHead keeps the beginning of an image.
type imageHead struct {
	mime string
	head []byte
}

func (h *imageHead) write(p []byte) {
	room := imageHeadMax - len(h.head)
	h.head = append(h.head, p[:min(room, len(p))]...)
}

func (h *imageHead) info() Info {
	info, _ := imageSides(h.mime, bytes.NewReader(h.head))
	return info
}

// fault returns the error of a header that cannot be read. It accepts a header longer than the kept
// bytes.
func (h *imageHead) fault() error {
	_, err := imageSides(h.mime, bytes.NewReader(h.head))
	switch {
	case err == nil:
		return nil
	case len(h.head) == imageHeadMax && (errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)):
		return nil
	default:
		return unreadable
	}
}

// imageSides reads the size from the header. It decodes no pixel, so a file that claims a huge canvas
// costs nothing.
func imageSides(mime string, r io.Reader) (Info, error) {
	var decode func(io.Reader) (image.Config, error)
	switch mime {
	case mimeGIF:
		width, height, err := imagefile.GIFSides(r)
		return Info{Width: width, Height: height}, err
	case mimeJPEG:
		width, height, err := imagefile.JPEGSides(r)
		return Info{Width: width, Height: height}, err
	case mimePNG:
		decode = png.DecodeConfig
	case mimeWebP:
		decode = webp.DecodeConfig
	default:
		return Info{}, unreadable
	}
	c, err := decode(r)
	if err != nil {
		return Info{}, err
	}
	if c.Width <= 0 || c.Height <= 0 {
		return Info{}, unreadable
	}
	return Info{Width: c.Width, Height: c.Height}, nil
}
