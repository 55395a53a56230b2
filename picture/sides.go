package picture

import (
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"io"

	"golang.org/x/image/riff"
	"golang.org/x/image/vp8"
	"golang.org/x/image/vp8l"
	"golang.org/x/image/webp"
)

// The types that are decoded.
const (
	mimePNG  = "image/png"
	mimeJPEG = "image/jpeg"
	mimeWebP = "image/webp"
)

// errFormat is of a type that is not decoded.
var errFormat = errors.New("the picture is neither PNG nor JPEG nor WebP")

// Sides reads how large a picture is that Decode would make.
func Sides(mime string, r io.Reader) (width, height int, err error) {
	var c image.Config
	switch mime {
	case mimePNG:
		c, err = png.DecodeConfig(r)
	case mimeJPEG:
		c, err = jpeg.DecodeConfig(r)
	case mimeWebP:
		c, err = webpConfig(r)
	default:
		err = errFormat
	}
	if err == nil && (c.Width <= 0 || c.Height <= 0) {
		err = errors.New("the picture has no sides")
	}
	return c.Width, c.Height, err
}

// webpConfig reads the sides of the pixels: those of the canvas, which come
// first, may be others.
func webpConfig(r io.Reader) (image.Config, error) {
	_, chunks, err := riff.NewReader(r)
	for err == nil {
		var (
			id   riff.FourCC
			size uint32
			data io.Reader
		)
		if id, size, data, err = chunks.Next(); err != nil {
			break
		}
		switch string(id[:]) {
		case "VP8L":
			return vp8l.DecodeConfig(data)
		case "VP8 ":
			d := vp8.NewDecoder()
			d.Init(data, int(size))
			h, err := d.DecodeFrameHeader()
			return image.Config{Width: h.Width, Height: h.Height}, err
		}
	}
	return image.Config{}, fmt.Errorf("read the chunks: %w", err)
}

func decode(mime string, r io.Reader) (image.Image, error) {
	switch mime {
	case mimePNG:
		return png.Decode(r)
	case mimeJPEG:
		return jpeg.Decode(r)
	case mimeWebP:
		return webp.Decode(r)
	default:
		return nil, errFormat
	}
}
