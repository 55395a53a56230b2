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

// The types of pictures that Cut decodes.
const (
	mimePNG  = "image/png"
	mimeJPEG = "image/jpeg"
	mimeWebP = "image/webp"
)

// webpAlpha is the alpha flag of an extended WebP's header.
const webpAlpha = 1 << 4

// ErrUncut is the cause of an error about a grid that may be intact but cannot be cut. Its type or a
// rare feature has no decoder, it is an animation, or it is too large or too small.
var ErrUncut = errors.New("the picture is of a kind that is not decoded")

// unsupported adds ErrUncut to a decoder's error about an unsupported feature.
func unsupported(err error) error {
	if _, ok := errors.AsType[jpeg.UnsupportedError](err); ok {
		return fmt.Errorf("%w: %w", ErrUncut, err)
	}
	if _, ok := errors.AsType[png.UnsupportedError](err); ok {
		return fmt.Errorf("%w: %w", ErrUncut, err)
	}
	return err
}

// sides returns the width and height of the picture that decodePicture would decode. Its error may
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

// webpConfig reads the size of the pixels. The header of an extended file may state another canvas
// size, or alpha that the file lacks. Viewers show such a picture but the decoder refuses it, so the
// error has ErrUncut as its cause.
func webpConfig(r io.Reader) (image.Config, error) {
	var canvas, pixels image.Point // canvas is zero in a file without an extended header
	var promised, alpha bool
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
		case "VP8X":
			var head [10]byte
			_, err = io.ReadFull(data, head[:])
			promised = head[0]&webpAlpha != 0
			canvas = image.Pt(int(head[4])|int(head[5])<<8|int(head[6])<<16, int(head[7])|int(head[8])<<8|int(head[9])<<16)
			canvas = canvas.Add(image.Pt(1, 1))
			continue
		case "ALPH":
			alpha = true
			continue
		case "ANIM", "ANMF":
			return image.Config{}, ErrUncut
		case "VP8L":
			var c image.Config
			c, err = vp8l.DecodeConfig(data)
			pixels, promised = image.Pt(c.Width, c.Height), false // its alpha is among its pixels
		case "VP8 ":
			d := vp8.NewDecoder()
			d.Init(data, int(size))
			var h vp8.FrameHeader
			h, err = d.DecodeFrameHeader()
			pixels = image.Pt(h.Width, h.Height)
		default:
			continue
		}
		switch {
		case err != nil:
			return image.Config{}, err
		case canvas != image.Point{} && canvas != pixels:
			return image.Config{}, fmt.Errorf("a frame of %v on a canvas of %v: %w", pixels, canvas, ErrUncut)
		case alpha != promised:
			return image.Config{}, fmt.Errorf("alpha that the header does not promise, or only promises: %w", ErrUncut)
		}
		return image.Config{Width: pixels.X, Height: pixels.Y}, nil
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
