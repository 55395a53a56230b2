package activities_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/sandbox/sample"
)

func gridOf(tb testing.TB, mime string, width, height int) []byte {
	tb.Helper()
	var file bytes.Buffer
	if err := sample.Grid(&file, mime, width, height); err != nil {
		tb.Fatal(err)
	}
	return file.Bytes()
}

// pictured returns a task whose vendor made a grid of the file, and other files.
func pictured(t *testing.T, file []byte, more ...mediagate.Media) *bundle {
	t.Helper()
	b := succeeded(t, mediagate.Outcome{
		Succeeded: true, Media: append(
			[]mediagate.Media{{URL: "https://m.example.com/grid", Role: mediagate.RoleGrid}}, more...,
		),
	})
	b.Store.EditTask(taskID, func(task *mediagate.Task) { task.Plan.Media = "image" })
	b.serves(map[string][]byte{"grid": file, "main": gridOf(t, "image/png", 8, 8)})
	return b
}

func TestCut(t *testing.T) {
	t.Parallel()
	b := pictured(t, gridOf(t, "image/jpeg", 129, 67))
	for range 2 { // D13: a repetition makes the same files
		_, err := b.mirror()
		b.ok(err)
		want := []string{
			"0 grid 0 image/jpeg", "0-1 main 0 image/png", "0-2 main 1 image/png", "0-3 main 2 image/png",
			"0-4 main 3 image/png",
		}
		if diff := cmp.Diff(want, b.shown()); diff != "" {
			t.Fatalf("results (-want +got):\n%s", diff)
		}
	}
}

// TestCutNothing checks that no grid is cut if the vendor itself offers the pictures.
func TestCutNothing(t *testing.T) {
	t.Parallel()
	b := pictured(t, gridOf(t, "image/png", 16, 16), mediagate.Media{URL: "https://m.example.com/main"})
	_, err := b.mirror()
	b.ok(err)
	same(t, "results", b.shown(), []string{"0 grid 0 image/png", "1 main 0 image/png"})
}

// TestUncut checks that a grid that may be complete, and that cannot be cut, is delivered as it
// is.
func TestUncut(t *testing.T) {
	t.Parallel()
	jpeg, webp := gridOf(t, "image/jpeg", 64, 64), gridOf(t, "image/webp", 64, 64)
	for name, c := range map[string]struct {
		file []byte
		mime string
	}{
		"too large": {gridOf(t, "image/png", 4097, 4097), "image/png"},
		"one line":  {gridOf(t, "image/png", 50, 1), "image/png"},
		"a GIF":     {[]byte("GIF89a\x02\x00\x02\x00\x80\x00\x00" + strings.Repeat("\x00", 20)), "image/gif"},
		// Luma 2×2 with chroma 2×1 and 1×2.
		"a JPEG of odd samples":  {resampled(t, jpeg, 0x22, 0x21, 0x12), "image/jpeg"},
		"a JPEG of odd samples ": {resampled(t, jpeg, 0x31, 0x11, 0x11), "image/jpeg"},
		"an animated WebP":       {animated(webp), "image/webp"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := pictured(t, c.file)
			_, err := b.mirror()
			b.ok(err)
			same(t, "results", b.shown(), []string{"0 grid 0 " + c.mime})
		})
	}
}

// resampled returns a JPEG whose header states other samples for a component.
func resampled(t *testing.T, file []byte, samples ...byte) []byte {
	t.Helper()
	file = bytes.Clone(file)
	at := bytes.Index(file, []byte{0xff, 0xc0})
	if at < 0 {
		t.Fatal("the JPEG has no header")
	}
	for i, s := range samples {
		file[at+11+3*i] = s
	}
	return file
}

// animated returns a WebP of one frame, which holds the picture.
func animated(still []byte) []byte {
	chunk := func(id string, data []byte) []byte {
		out := binary.LittleEndian.AppendUint32([]byte(id), uint32(len(data)))
		return append(append(out, data...), make([]byte, len(data)%2)...)
	}
	extended := []byte{2, 0, 0, 0, 63, 0, 0, 63, 0, 0}
	frame := append([]byte{0, 0, 0, 0, 0, 0, 63, 0, 0, 63, 0, 0, 100, 0, 0, 0}, still[12:]...)
	body := slices.Concat([]byte("WEBP"), chunk("VP8X", extended), chunk("ANIM", make([]byte, 6)), chunk("ANMF", frame))
	return chunk("RIFF", body)
}

// TestCutFails checks that a damaged grid is not a result.
func TestCutFails(t *testing.T) {
	t.Parallel()
	for name, file := range map[string][]byte{
		"cut":          gridOf(t, "image/png", 64, 64)[:90],
		"no sides":     gridOf(t, "image/png", 64, 64)[:20],
		"only a claim": append(bytes.Clone(gridOf(t, "image/png", 4096, 4096)[:40]), "IEND"...),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := pictured(t, file)
			_, err := b.mirror()
			kind(t, err, mediagate.KindInvalid, mediagate.CodeResultUnavailable, false)
		})
	}
	t.Run("the bucket is away", func(t *testing.T) {
		t.Parallel()
		b := pictured(t, gridOf(t, "image/png", 64, 64))
		tries := 0
		b.Bucket.OnMirror = func(key string) error {
			if strings.HasSuffix(key, "-3") && tries == 0 {
				tries++
				return &mediagate.Error{Kind: mediagate.KindUnavailable, Code: string(mediagate.ParkStorage), Message: "away"}
			}
			return nil
		}
		_, err := b.mirror()
		kind(t, err, mediagate.KindUnavailable, mediagate.ParkStorage, true)
		_, err = b.mirror()
		b.ok(err)
		if got := b.Bucket.Objects(); len(got) != 5 || len(b.attempt(1).Results) != 5 {
			t.Errorf("objects %v", got)
		}
	})
	t.Run("the bucket breaks off", func(t *testing.T) {
		t.Parallel()
		b := pictured(t, gridOf(t, "image/png", 64, 64))
		b.Bucket.OnOpen = func(_ string, body io.Reader) io.Reader {
			return io.MultiReader(io.LimitReader(body, 90), failing{})
		}
		_, err := b.mirror()
		kind(t, err, mediagate.KindUnavailable, mediagate.ParkStorage, true)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("the picture is blamed: %v", err)
		}
	})
}
