package sample

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
)

// quarters are the colours of a grid, in reading order. They differ in green from left to right,
// and in red from top to bottom.
var quarters = color.Palette{
	color.NRGBA{R: 32, G: 64, B: 128, A: 255},
	color.NRGBA{R: 32, G: 192, B: 128, A: 255},
	color.NRGBA{R: 224, G: 64, B: 128, A: 255},
	color.NRGBA{R: 224, G: 192, B: 128, A: 255},
}

// grid is an image of four pictures, each of one colour. If a side is odd, the left or upper
// pictures are one pixel smaller.
type grid struct{ width, height int }

func (g grid) ColorModel() color.Model { return quarters }

func (g grid) Bounds() image.Rectangle { return image.Rect(0, 0, g.width, g.height) }

func (g grid) At(x, y int) color.Color { return quarters[g.ColorIndexAt(x, y)] }

// ColorIndexAt returns the number of the quarter that contains the pixel.
func (g grid) ColorIndexAt(x, y int) uint8 {
	var i uint8
	if x >= g.width/2 {
		i++
	}
	if y >= g.height/2 {
		i += 2
	}
	return i
}

// Grid writes an image with four different quarters as PNG, JPEG or WebP. It writes row by row,
// so its memory does not depend on the size.
func Grid(w io.Writer, mime string, width, height int) error {
	g := grid{width, height}
	switch mime {
	case "image/png":
		return png.Encode(w, g)
	case "image/jpeg":
		return jpeg.Encode(w, g, &jpeg.Options{Quality: 90})
	case "image/webp":
		return writeWebP(w, g)
	default:
		return fmt.Errorf("no grid is made as %q", mime)
	}
}

// Quarter returns a PNG of the nth picture of a grid, counted from 1.
func Quarter(n, width, height int) []byte {
	picture := image.NewPaletted(image.Rect(0, 0, width, height), quarters)
	for i := range picture.Pix {
		picture.Pix[i] = uint8(n - 1)
	}
	return encoded(func(w io.Writer) error { return png.Encode(w, picture) })
}

// PNGGrid returns a grid as a PNG.
func PNGGrid(width, height int) []byte {
	return encoded(func(w io.Writer) error { return Grid(w, "image/png", width, height) })
}

func encoded(encode func(io.Writer) error) []byte {
	var file bytes.Buffer
	_ = encode(&file) // a write into memory cannot fail
	return file.Bytes()
}
