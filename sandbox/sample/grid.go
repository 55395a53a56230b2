package sample

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
)

// Grid makes a PNG of so many pixels that is four pictures in one, each of which
// Quarter makes by itself. Sides are even.
func Grid(width, height int) []byte {
	img := image.NewPaletted(image.Rect(0, 0, width, height), gridColours)
	for n := 1; n <= 4; n++ {
		drawQuarter(img, n, quarterOf(img.Rect, n))
	}
	return encoded(img)
}

// Quarter makes a PNG of the nth of four pictures, from 1: they differ in
// colour, and in how many stripes they have.
func Quarter(n, width, height int) []byte {
	img := image.NewPaletted(image.Rect(0, 0, width, height), gridColours)
	drawQuarter(img, n, img.Rect)
	return encoded(img)
}

// gridColours are white for the stripes, and one for each picture.
var gridColours = color.Palette{
	color.RGBA{255, 255, 255, 255},
	color.RGBA{192, 0, 0, 255},
	color.RGBA{0, 160, 0, 255},
	color.RGBA{0, 0, 192, 255},
	color.RGBA{176, 128, 0, 255},
}

// quarterOf counts from the upper left one in the order of reading.
func quarterOf(r image.Rectangle, n int) image.Rectangle {
	w, h := r.Dx()/2, r.Dy()/2
	return image.Rect(0, 0, w, h).Add(image.Pt((n-1)%2*w, (n-1)/2*h))
}

// drawQuarter draws n stripes upon its colour.
func drawQuarter(img *image.Paletted, n int, r image.Rectangle) {
	for y := range r.Dy() {
		index := uint8(n)
		if band := y * (2*n + 1) / r.Dy(); band%2 == 1 {
			index = 0
		}
		row := img.Pix[img.PixOffset(r.Min.X, r.Min.Y+y):]
		for x := range r.Dx() {
			row[x] = index
		}
	}
}

func encoded(img image.Image) []byte {
	var b bytes.Buffer
	_ = (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&b, img) // a write into memory cannot fail
	return b.Bytes()
}
