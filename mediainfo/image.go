package mediainfo

import (
	"bytes"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"

	"golang.org/x/image/webp"
)

// imageHeadMax bounds what is kept of an image. Most formats say their size
// at once; a JPEG says it after its metadata, which can be some 100 KB.
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

// imageSides reads the header only: no pixel is decoded, so a file that claims
// a huge canvas costs nothing.
func imageSides(mime string, r io.Reader) (info Info, ok bool) {
	var decode func(io.Reader) (image.Config, error)
	switch mime {
	case mimePNG:
		decode = png.DecodeConfig
	case mimeJPEG:
		decode = jpeg.DecodeConfig
	case mimeGIF:
		decode = gif.DecodeConfig
	case mimeWebP:
		decode = webp.DecodeConfig
	default:
		return Info{}, false
	}
	c, err := decode(r)
	if err != nil || c.Width <= 0 || c.Height <= 0 {
		return Info{}, false
	}
	return Info{Width: c.Width, Height: c.Height}, true
}
