package sample_test

import (
	"bytes"
	"image"
	"image/png"
	"testing"

	"github.com/mediagate/mediagate/sandbox/sample"
)

func decode(t *testing.T, file []byte) image.Image {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func TestGridIsItsQuarters(t *testing.T) {
	t.Parallel()
	const width, height = 48, 28
	grid := decode(t, sample.Grid(2*width, 2*height))
	seen := map[string]bool{}
	for n := 1; n <= 4; n++ {
		file := sample.Quarter(n, width, height)
		if seen[string(file)] {
			t.Errorf("quarter %d looks like another", n)
		}
		seen[string(file)] = true
		quarter, at := decode(t, file), image.Pt((n-1)%2*width, (n-1)/2*height)
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
