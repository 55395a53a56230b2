package media

import (
	"errors"
	"image"
	"image/color"
	"image/png"
	"io"
)

// bytesPerPixel is the most memory that decoding takes for a pixel. A progressive JPEG, with its
// coefficients and pixels, and an interlaced PNG of 16 bits take the most.
const bytesPerPixel = 16

// Quarters is the number of pictures in a grid.
const Quarters = 4

// picture is a decoded picture.
type picture interface {
	image.Image
	SubImage(r image.Rectangle) image.Image
}

// decodePicture decodes a picture. It must have the width and height that sides returned.
func decodePicture(mime string, r io.Reader, width, height int) (picture, error) {
	m, err := decode(mime, r)
	if err != nil {
		return nil, err
	}
	whole, ok := m.(picture)
	if !ok || m.Bounds().Dx() != width || m.Bounds().Dy() != height {
		return nil, errors.New("the picture does not have the size of its header")
	}
	return whole, nil
}

// writeQuarter writes quarter i of a picture, in reading order from 0, as PNG with the same pixels.
// If a side is odd, the left and upper quarters are one pixel smaller, so that each pixel is in one
// quarter.
func writeQuarter(w io.Writer, whole picture, i int) error {
	m := whole.SubImage(quarter(whole.Bounds(), i))
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

// straight is a picture whose colours are not multiplied by their alpha. Multiplied colours of
// nearly transparent pixels would be rounded in the file.
type straight struct{ *image.NYCbCrA }

// ColorModel implements image.Image.
func (s straight) ColorModel() color.Model { return color.NRGBAModel }

// At implements image.Image.
func (s straight) At(x, y int) color.Color {
	c := s.NYCbCrAAt(x, y)
	r, g, b := color.YCbCrToRGB(c.Y, c.Cb, c.Cr)
	return color.NRGBA{R: r, G: g, B: b, A: c.A}
}
