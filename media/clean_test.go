package media_test

import (
	"bytes"
	"errors"
	raster "image"
	jpegs "image/jpeg"
	"io"
	"strings"
	"testing"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/media"
)

var film = string(movie(640, 360, 5000))

// cleaned reads the file as a vendor gets it.
func cleaned(file string, length int64) (string, error) {
	r, _, err := media.Clean("image_urls[0]", io.NopCloser(strings.NewReader(file)), length, 1<<20, func(err error) error { return err })
	if err != nil {
		return "", err
	}
	defer r.Close()
	got, err := io.ReadAll(r)
	return string(got), err
}

// TestClean checks that a vendor gets a picture as uploads are stored, without invisible data and
// bytes after its end, and any other file unchanged.
func TestClean(t *testing.T) {
	t.Parallel()
	var plain bytes.Buffer
	if err := jpegs.Encode(&plain, raster.NewGray(raster.Rect(0, 0, 16, 16)), nil); err != nil {
		t.Fatal(err)
	}
	jpeg := plain.String()
	noted := jpeg[:2] + "\xff\xfe\x00\x07where" + jpeg[2:]
	for name, c := range map[string]struct{ file, want string }{
		"a JPEG":                {jpeg, jpeg},
		"a comment":             {noted, jpeg},
		"a film behind it":      {jpeg + film, jpeg},
		"a second picture":      {noted + noted, jpeg},
		"padding":               {jpeg + strings.Repeat("\x00", 100_000), jpeg},
		"a film":                {film, film},
		"a PNG with a ZIP":      {string(png(16, 16)) + "PK\x03\x04", ""},
		"another kind of AVIF":  {string(box("ftyp", []byte("avif\x00\x00\x00\x00avifmif1"))), string(box("ftyp", []byte("avif\x00\x00\x00\x00avifmif1")))},
		"a JPEG without an end": {jpeg[:len(jpeg)-2], ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := cleaned(c.file, int64(len(c.file)))
			if c.want == "" {
				if e, _ := errors.AsType[*mediagate.Error](err); e == nil || e.Kind != mediagate.KindInvalid || e.Code != string(mediagate.CodeImageProcessing) {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil || got != c.want {
				t.Errorf("%d bytes were read, want %d; %v", len(got), len(c.want), err)
			}
		})
	}
}

// TestCleanIsBounded checks that the reader gets at most the limit, and that errors are passed to
// note.
func TestCleanIsBounded(t *testing.T) {
	t.Parallel()
	whole := string(png(16, 16))
	for name, c := range map[string]struct {
		file   string
		length int64
		limit  int
		says   string
	}{
		"as long as allowed": {film, -1, len(film), ""},
		"one byte more":      {film + "x", -1, len(film), "image_urls[0] is larger than "},
		"said to be larger":  {film, int64(len(film)), len(film) - 1, "image_urls[0] is larger than "},
		"no media":           {"<!DOCTYPE html>", -1, 100, "image_urls[0] is not an image, a video or a sound"},
		"one pixel":          {string(png(1, 1)), -1, 1000, "image_urls[0] is 1 × 1 pixels, too small to be used"},
		"a picture":          {whole, -1, len(whole), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var noted error
			file, _, err := media.Clean("image_urls[0]", io.NopCloser(strings.NewReader(c.file)), c.length, int64(c.limit), func(err error) error {
				noted = err
				return err
			})
			if err == nil {
				_, err = io.Copy(io.Discard, file)
			}
			if c.says == "" && (err != nil || noted != nil) || c.says != "" && (err == nil || noted == nil || !strings.Contains(noted.Error(), c.says)) {
				t.Errorf("%v, noted %v; want %q", err, noted, c.says)
			}
		})
	}
}
