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

// quarters are the colours of a grid, in reading order: they differ in green
// from left to right, and in red from top to bottom.
var quarters = color.Palette{
	color.NRGBA{R: 32, G: 64, B: 128, A: 255},
	color.NRGBA{R: 32, G: 192, B: 128, A: 255},
	color.NRGBA{R: 224, G: 64, B: 128, A: 255},
	color.NRGBA{R: 224, G: 192, B: 128, A: 255},
}

// grid is four pictures in one, each of one colour. Where a side is odd, the
// left and upper ones are the smaller.
type grid struct{ width, height int }

func (g grid) ColorModel() color.Model { return quarters }

func (g grid) Bounds() image.Rectangle { return image.Rect(0, 0, g.width, g.height) }

func (g grid) At(x, y int) color.Color { return quarters[g.ColorIndexAt(x, y)] }

// ColorIndexAt is the quarter that a pixel is in.
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

// Grid writes a picture whose four quarters differ, as PNG, JPEG or WebP, row
// by row: memory does not depend on its size.
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

// Quarter is a PNG of the nth of a grid's pictures, from 1.
func Quarter(n, width, height int) []byte {
	picture := image.NewPaletted(image.Rect(0, 0, width, height), quarters)
	for i := range picture.Pix {
		picture.Pix[i] = uint8(n - 1)
	}
	return encoded(func(w io.Writer) error { return png.Encode(w, picture) })
}

// PNGGrid is a grid as a PNG.
func PNGGrid(width, height int) []byte {
	return encoded(func(w io.Writer) error { return Grid(w, "image/png", width, height) })
}

func encoded(encode func(io.Writer) error) []byte {
	var file bytes.Buffer
	_ = encode(&file) // a write into memory cannot fail
	return file.Bytes()
}
