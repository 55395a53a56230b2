package media

import (
	"errors"
	"image"
	"image/color"
	"image/png"
	"io"
)

// bytesPerPixel bounds what decoding holds: the most is a progressive JPEG, with
// its coefficients beside its pixels, or an interlaced PNG of 16 bits.
const bytesPerPixel = 16

// Quarters is how many pictures a grid holds.
const Quarters = 4

// picture is a decoded picture.
type picture struct{ pixels cutter }

// cutter is what all decoders make.
type cutter interface {
	image.Image
	SubImage(r image.Rectangle) image.Image
}

// decodePicture reads a whole picture, which must have the sides that sides told.
func decodePicture(mime string, r io.Reader, width, height int) (*picture, error) {
	m, err := decode(mime, r)
	if err != nil {
		return nil, err
	}
	pixels, ok := m.(cutter)
	if !ok || m.Bounds().Dx() != width || m.Bounds().Dy() != height {
		return nil, errors.New("the picture is not as large as it says")
	}
	return &picture{pixels: pixels}, nil
}

// writeQuarter writes quarter i, in reading order from 0, as PNG with the same
// pixels. Where a side is odd, the left and the upper ones are the smaller by
// one pixel: none is lost and none is there twice.
func (p *picture) writeQuarter(w io.Writer, i int) error {
	m := p.pixels.SubImage(quarter(p.pixels.Bounds(), i))
	if soft, ok := m.(*image.NYCbCrA); ok {
		m = straight{soft}
	}
	e := png.Encoder{CompressionLevel: png.BestSpeed}
	return e.Encode(w, m)
}

func quarter(whole image.Rectangle, i int) image.Rectangle {
	r := whole
	x, y := r.Min.X+r.Dx()/2, r.Min.Y+r.Dy()/2
	if i%2 == 0 {
		r.Max.X = x
	} else {
		r.Min.X = x
	}
	if i/2 == 0 {
		r.Max.Y = y
	} else {
		r.Min.Y = y
	}
	return r
}

// straight is a picture whose colours are not multiplied with their alpha on the
// way to the file, where what little is left of a faint one would be rounded.
type straight struct{ *image.NYCbCrA }

// ColorModel implements image.Image.
func (s straight) ColorModel() color.Model { return color.NRGBAModel }

// At implements image.Image.
func (s straight) At(x, y int) color.Color {
	c := s.NYCbCrAAt(x, y)
	r, g, b := color.YCbCrToRGB(c.Y, c.Cb, c.Cr)
	return color.NRGBA{R: r, G: g, B: b, A: c.A}
}
