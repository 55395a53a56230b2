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

// info reads the header only: no pixel is decoded, so a file that claims a
// huge canvas costs nothing.
func (h *imageHead) info() Info {
	var decode func(io.Reader) (image.Config, error)
	switch h.mime {
	case "image/png":
		decode = png.DecodeConfig
	case "image/jpeg":
		decode = jpeg.DecodeConfig
	case "image/gif":
		decode = gif.DecodeConfig
	case "image/webp":
		decode = webp.DecodeConfig
	default:
		return Info{}
	}
	c, err := decode(bytes.NewReader(h.head))
	if err != nil {
		return Info{}
	}
	return Info{Width: c.Width, Height: c.Height}
}
