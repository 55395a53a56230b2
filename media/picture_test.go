package media

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate/sandbox/sample"
)

func TestQuarter(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		whole image.Rectangle
		want  [Quarters]image.Rectangle
	}{
		"even":        {image.Rect(0, 0, 4, 2), [4]image.Rectangle{image.Rect(0, 0, 2, 1), image.Rect(2, 0, 4, 1), image.Rect(0, 1, 2, 2), image.Rect(2, 1, 4, 2)}},
		"odd":         {image.Rect(0, 0, 5, 3), [4]image.Rectangle{image.Rect(0, 0, 2, 1), image.Rect(2, 0, 5, 1), image.Rect(0, 1, 2, 3), image.Rect(2, 1, 5, 3)}},
		"not from 0":  {image.Rect(3, 1, 7, 5), [4]image.Rectangle{image.Rect(3, 1, 5, 3), image.Rect(5, 1, 7, 3), image.Rect(3, 3, 5, 5), image.Rect(5, 3, 7, 5)}},
		"the least":   {image.Rect(0, 0, 2, 2), [4]image.Rectangle{image.Rect(0, 0, 1, 1), image.Rect(1, 0, 2, 1), image.Rect(0, 1, 1, 2), image.Rect(1, 1, 2, 2)}},
		"three by 99": {image.Rect(0, 0, 3, 99), [4]image.Rectangle{image.Rect(0, 0, 1, 49), image.Rect(1, 0, 3, 49), image.Rect(0, 49, 1, 99), image.Rect(1, 49, 3, 99)}},
	} {
		for i, want := range c.want {
			if got := quarter(c.whole, i); got != want {
				t.Errorf("%s: quarter %d is %v, want %v", name, i, got, want)
			}
		}
	}
}

// noise fills a picture with pixels that are all unlike.
func noise(m draw.Image) draw.Image {
	rng := rand.New(rand.NewPCG(1, 2))
	b := m.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			v := rng.Uint64()
			m.Set(x, y, color.NRGBA64{R: uint16(v), G: uint16(v >> 16), B: uint16(v >> 32), A: uint16(v >> 48)})
		}
	}
	return m
}

func encoded(tb testing.TB, m image.Image) []byte {
	tb.Helper()
	var file bytes.Buffer
	if err := png.Encode(&file, m); err != nil {
		tb.Fatal(err)
	}
	return file.Bytes()
}

// cutAll decodes a file and reads its quarters back.
func cutAll(tb testing.TB, mime string, file []byte) (whole image.Image, quarters [Quarters]image.Image) {
	tb.Helper()
	width, height, err := sides(mime, bytes.NewReader(file))
	if err != nil {
		tb.Fatal(err)
	}
	p, err := decodePicture(mime, bytes.NewReader(file), width, height)
	if err != nil {
		tb.Fatal(err)
	}
	for i := range quarters {
		var out bytes.Buffer
		if err := writeQuarter(&out, p, i); err != nil {
			tb.Fatal(err)
		}
		if quarters[i], err = png.Decode(&out); err != nil {
			tb.Fatal(err)
		}
	}
	return p, quarters
}

// TestQuartersLoseNothing checks that the four quarters together are the picture, bit for bit:
// with 8 and 16 bits, gray, with a palette, with and without alpha.
func TestQuartersLoseNothing(t *testing.T) {
	t.Parallel()
	r := image.Rect(0, 0, 37, 23)
	palette := color.Palette{color.NRGBA{1, 2, 3, 255}, color.NRGBA{200, 0, 9, 128}, color.NRGBA{0, 0, 0, 0}, color.NRGBA{7, 255, 7, 255}}
	opaque := noise(image.NewNRGBA64(r)).(*image.NRGBA64)
	for i := 6; i < len(opaque.Pix); i += 8 {
		opaque.Pix[i], opaque.Pix[i+1] = 255, 255
	}
	for name, c := range map[string]struct {
		picture image.Image
		model   color.Model
	}{
		"gray":              {noise(image.NewGray(r)), color.GrayModel},
		"gray, 16 bits":     {noise(image.NewGray16(r)), color.Gray16Model},
		"alpha":             {noise(image.NewNRGBA(r)), color.NRGBAModel},
		"alpha, 16 bits":    {noise(image.NewNRGBA64(r)), color.NRGBA64Model},
		"no alpha, 16 bits": {opaque, color.RGBA64Model},
		"palette":           {noise(image.NewPaletted(r, palette)), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole, quarters := cutAll(t, mimePNG, encoded(t, c.picture))
			same(t, whole, quarters)
			for i, q := range quarters {
				if c.model != nil && q.ColorModel() != c.model {
					t.Errorf("quarter %d has another colour model", i)
				}
			}
		})
	}
}

func same(t *testing.T, whole image.Image, quarters [Quarters]image.Image) {
	t.Helper()
	seen := 0
	for i, q := range quarters {
		r := quarter(whole.Bounds(), i)
		if q.Bounds().Size() != r.Size() {
			t.Fatalf("quarter %d is %v, want %v", i, q.Bounds(), r)
		}
		for y := range r.Dy() {
			for x := range r.Dx() {
				seen++
				want, got := whole.At(r.Min.X+x, r.Min.Y+y), q.At(x, y)
				if color.NRGBA64Model.Convert(want) != color.NRGBA64Model.Convert(got) {
					t.Fatalf("quarter %d at %d,%d: %v, want %v", i, x, y, got, want)
				}
			}
		}
	}
	if seen != whole.Bounds().Dx()*whole.Bounds().Dy() {
		t.Errorf("%d pixels", seen)
	}
}

func TestQuartersOfFormats(t *testing.T) {
	t.Parallel()
	for _, mime := range []string{mimePNG, mimeJPEG, mimeWebP} {
		for _, size := range []image.Point{{64, 64}, {33, 21}, {2, 2}, {3, 500}} {
			t.Run(fmt.Sprint(mime, size), func(t *testing.T) {
				t.Parallel()
				var file bytes.Buffer
				if err := sample.Grid(&file, mime, size.X, size.Y); err != nil {
					t.Fatal(err)
				}
				whole, quarters := cutAll(t, mime, file.Bytes())
				same(t, whole, quarters)
			})
		}
	}
	t.Run("a lossy WebP", func(t *testing.T) {
		t.Parallel()
		file, err := os.ReadFile(filepath.Join("mediainfo", "testdata", "picture.webp"))
		if err != nil {
			t.Fatal(err)
		}
		whole, quarters := cutAll(t, mimeWebP, file)
		same(t, whole, quarters)
	})
	t.Run("a JPEG of little colour, cut between two of its samples", func(t *testing.T) {
		t.Parallel()
		var file bytes.Buffer
		if err := jpeg.Encode(&file, noise(image.NewRGBA(image.Rect(0, 0, 50, 35))), nil); err != nil {
			t.Fatal(err)
		}
		whole, quarters := cutAll(t, mimeJPEG, file.Bytes())
		same(t, whole, quarters)
	})
}

// TestAlphaIsNotMultiplied checks that a nearly transparent colour is not rounded in the file.
func TestAlphaIsNotMultiplied(t *testing.T) {
	t.Parallel()
	m := image.NewNYCbCrA(image.Rect(0, 0, 16, 16), image.YCbCrSubsampleRatio444)
	for i := range m.Y {
		m.Y[i], m.Cb[i], m.Cr[i], m.A[i] = byte(i), byte(7*i), byte(13*i), byte(i)
	}
	for i := range Quarters {
		var file bytes.Buffer
		if err := writeQuarter(&file, m, i); err != nil {
			t.Fatal(err)
		}
		q, err := png.Decode(&file)
		if err != nil {
			t.Fatal(err)
		}
		r := quarter(m.Rect, i)
		for y := range 8 {
			for x := range 8 {
				if diff := cmp.Diff(straight{m}.At(r.Min.X+x, r.Min.Y+y), q.At(x, y)); diff != "" {
					t.Fatalf("quarter %d at %d,%d (-want +got):\n%s", i, x, y, diff)
				}
			}
		}
	}
}

// canvas is a WebP with an extended header, which states a canvas and flags, before a
// picture of 64 × 64 pixels and after chunks.
func canvas(tb testing.TB, width, height int, flags byte, chunks ...string) []byte {
	tb.Helper()
	var inner bytes.Buffer
	if err := sample.Grid(&inner, mimeWebP, 64, 64); err != nil {
		tb.Fatal(err)
	}
	head := make([]byte, 10)
	head[0] = flags
	head[4], head[5] = byte(width-1), byte((width-1)>>8)
	head[7], head[8] = byte(height-1), byte((height-1)>>8)
	body := append([]byte("WEBPVP8X\x0a\x00\x00\x00"), head...)
	for _, chunk := range chunks {
		body = append(body, chunk...)
	}
	body = append(body, inner.Bytes()[12:]...)
	return append(binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(len(body))), body...)
}

// TestWebPHeader checks that a WebP that the decoder refuses, because its header contradicts its
// pixels, stays uncut: it may be intact.
func TestWebPHeader(t *testing.T) {
	t.Parallel()
	const alpha = "ALPH\x02\x00\x00\x00\x00\x00"
	for name, c := range map[string]struct {
		file  []byte
		uncut bool
	}{
		"the same":         {canvas(t, 64, 64, 0), false},
		"alpha of its own": {canvas(t, 64, 64, webpAlpha), false},
		"a larger canvas":  {canvas(t, 80, 64, 0), true},
		"a smaller canvas": {canvas(t, 64, 3, 0), true},
		"alpha twice":      {canvas(t, 64, 64, webpAlpha, alpha), true},
	} {
		width, height, err := sides(mimeWebP, bytes.NewReader(c.file))
		if c.uncut != errors.Is(err, ErrUncut) || !c.uncut && (err != nil || width != 64 || height != 64) {
			t.Errorf("%s: %d × %d (%v)", name, width, height, err)
		}
		if _, err := decodePicture(mimeWebP, bytes.NewReader(c.file), 64, 64); c.uncut == (err == nil) {
			t.Errorf("%s: the decoder says %v", name, err)
		}
	}
}

func TestSidesAreThoseOfThePixels(t *testing.T) {
	t.Parallel()
	file := encoded(t, image.NewGray(image.Rect(0, 0, 9, 9)))
	if _, err := decodePicture(mimePNG, bytes.NewReader(file), 8, 9); err == nil {
		t.Error("a picture of other sides than were told is taken")
	}
	for name, c := range map[string]struct {
		mime string
		file []byte
	}{
		"cut":           {mimePNG, file[:20]},
		"another":       {mimeJPEG, file},
		"unknown":       {"image/avif", file},
		"empty":         {mimeWebP, nil},
		"no chunks":     {mimeWebP, []byte("RIFF\x04\x00\x00\x00WEBP")},
		"only a canvas": {mimeWebP, append([]byte("RIFF\x16\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00"), make([]byte, 10)...)},
	} {
		if w, h, err := sides(c.mime, bytes.NewReader(c.file)); err == nil {
			t.Errorf("%s: %d × %d", name, w, h)
		}
		if _, err := decodePicture(c.mime, bytes.NewReader(c.file), 9, 9); err == nil {
			t.Errorf("%s is decoded", name)
		}
	}
}

// FuzzDecode holds that no file makes the decoders panic, or make a picture of
// other sides than were told before.
func FuzzDecode(f *testing.F) {
	for _, mime := range []string{mimePNG, mimeJPEG, mimeWebP} {
		var file bytes.Buffer
		if err := sample.Grid(&file, mime, 9, 7); err != nil {
			f.Fatal(err)
		}
		f.Add(mime, file.Bytes())
	}
	f.Fuzz(func(t *testing.T, mime string, file []byte) {
		width, height, err := sides(mime, bytes.NewReader(file))
		if err != nil || width*height > 1<<20 {
			return
		}
		p, err := decodePicture(mime, bytes.NewReader(file), width, height)
		if err != nil || min(width, height) < 2 {
			return
		}
		for i := range Quarters {
			if err := writeQuarter(new(bytes.Buffer), p, i); err != nil {
				t.Errorf("quarter %d of %d × %d: %v", i, width, height, err)
			}
		}
	})
}
