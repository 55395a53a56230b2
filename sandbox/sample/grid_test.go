package sample_test

import (
	"bytes"
	"image"
	"image/color"
	_ "image/jpeg" // decodes what is tested
	_ "image/png"  // decodes what is tested
	"io"
	"testing"

	_ "golang.org/x/image/webp" // decodes what is tested

	"github.com/mediagate/mediagate/sandbox/sample"
)

func TestGrid(t *testing.T) {
	t.Parallel()
	for _, size := range []image.Point{{64, 36}, {33, 21}, {2, 2}} {
		for mime, kind := range map[string]string{"image/png": "png", "image/jpeg": "jpeg", "image/webp": "webp"} {
			t.Run(kind+" of "+size.String(), func(t *testing.T) {
				t.Parallel()
				var file bytes.Buffer
				if err := sample.Grid(&file, mime, size.X, size.Y); err != nil {
					t.Fatal(err)
				}
				picture, format, err := image.Decode(&file)
				if err != nil || format != kind || picture.Bounds().Size() != size {
					t.Fatalf("%s of %v (%v)", format, picture, err)
				}
				if size.X < 33 && kind == "jpeg" { // the blocks of a JPEG reach over the seam
					return
				}
				seen := map[color.Color]bool{}
				for _, at := range []image.Point{{0, 0}, {size.X - 1, 0}, {0, size.Y - 1}, {size.X - 1, size.Y - 1}} {
					c := picture.At(at.X, at.Y)
					seen[c] = true
					if kind != "jpeg" && !near(c, []color.NRGBA{{32, 64, 128, 255}, {32, 192, 128, 255}, {224, 64, 128, 255}, {224, 192, 128, 255}}[len(seen)-1]) {
						t.Errorf("%v at %v", c, at)
					}
				}
				if len(seen) != 4 {
					t.Errorf("the quarters are %v", seen)
				}
				for _, odd := range []image.Point{{size.X/2 - 1, 0}, {size.X / 2, 0}} { // the seam
					if left := picture.At(odd.X, 0) == picture.At(0, 0); kind != "jpeg" && left != (odd.X < size.X/2) {
						t.Errorf("the seam is not at %d", size.X/2)
					}
				}
			})
		}
	}
	if err := sample.Grid(io.Discard, "image/gif", 2, 2); err == nil {
		t.Error("a grid is made of a type that none is known of")
	}
}

func near(got color.Color, want color.NRGBA) bool {
	return color.NRGBAModel.Convert(got) == want
}

func TestGridIsItsQuarters(t *testing.T) {
	t.Parallel()
	const width, height = 48, 28
	decode := func(file []byte) image.Image {
		picture, _, err := image.Decode(bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		return picture
	}
	grid := decode(sample.PNGGrid(2*width, 2*height))
	for n := 1; n <= 4; n++ {
		quarter, at := decode(sample.Quarter(n, width, height)), image.Pt((n-1)%2*width, (n-1)/2*height)
		if quarter.Bounds() != image.Rect(0, 0, width, height) {
			t.Fatalf("quarter %d has %v", n, quarter.Bounds())
		}
		for y := range height {
			for x := range width {
				if quarter.At(x, y) != grid.At(at.X+x, at.Y+y) {
					t.Fatalf("quarter %d differs at %d, %d", n, x, y)
				}
			}
		}
	}
}
