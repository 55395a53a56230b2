package media

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

// The types of pictures that are cut.
const (
	mimePNG  = "image/png"
	mimeJPEG = "image/jpeg"
	mimeWebP = "image/webp"
)

// ErrUncut is the cause of an error about a grid that may be whole, and that the
// decoders do not know, another type, an animation, or a rare feature, or that is too
// large or too small to be cut.
var ErrUncut = errors.New("the picture is of a kind that is not decoded")

// unsupported marks the decoders' own errors of that sort.
func unsupported(err error) error {
	if _, ok := errors.AsType[jpeg.UnsupportedError](err); ok {
		return fmt.Errorf("%w: %w", ErrUncut, err)
	}
	if _, ok := errors.AsType[png.UnsupportedError](err); ok {
		return fmt.Errorf("%w: %w", ErrUncut, err)
	}
	return err
}

// sides reads how large a picture is that decodePicture would make. What is wrong may
// have ErrUncut as its cause.
func sides(mime string, r io.Reader) (width, height int, err error) {
	var c image.Config
	switch mime {
	case mimePNG:
		c, err = png.DecodeConfig(r)
	case mimeJPEG:
		c, err = jpeg.DecodeConfig(r)
	case mimeWebP:
		c, err = webpConfig(r)
	default:
		err = ErrUncut
	}
	if err == nil && (c.Width <= 0 || c.Height <= 0) {
		err = errors.New("the picture has no sides")
	}
	return c.Width, c.Height, unsupported(err)
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
		case "ANIM", "ANMF":
			return image.Config{}, ErrUncut
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

func decode(mime string, r io.Reader) (m image.Image, err error) {
	defer func() { err = unsupported(err) }()
	switch mime {
	case mimePNG:
		return png.Decode(r)
	case mimeJPEG:
		return jpeg.Decode(r)
	case mimeWebP:
		return webp.Decode(r)
	default:
		return nil, ErrUncut
	}
}
