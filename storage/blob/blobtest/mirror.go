package blobtest

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/storage/blob"
)

const (
	mib = 1 << 20
	// part is the smallest part that S3 takes, and what the store uses.
	part = 5 * mib
)

func (s *suite) testSmall(t *testing.T) {
	key := s.prefix(t, "small") + "task_1/1/0"
	file := picture(t, 33, 21)
	size, sum := digest(t, bytes.NewReader(file))
	got := s.mirror(t, key, bytes.NewReader(file), blob.Limits{MaxBytes: mib, Media: "image"})
	want := mediagate.Result{Key: key, MimeType: "image/png", Size: size, SHA256: sum, Width: 33, Height: 21}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	a := s.get(t, key)
	if a.status != http.StatusOK || a.size != size || a.sha256 != sum {
		t.Errorf("the link gives status %d, %d bytes, %s", a.status, a.size, a.sha256)
	}
	if got := a.header.Get("Content-Type"); got != "image/png" {
		t.Errorf("Content-Type is %q", got)
	}
	if got, want := a.header.Get("Content-Disposition"), `inline; filename="task_1-0.png"`; got != want {
		t.Errorf("Content-Disposition is %q, want %q", got, want)
	}
}

func (s *suite) testSizes(t *testing.T) {
	prefix := s.prefix(t, "sizes")
	for _, size := range []int64{1000, 3072, 3073, part - 1, part, part + 1, 2*part - 1, 2 * part, 3*part + 7} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			key := fmt.Sprintf("%s%d/1/0", prefix, size)
			_, sum := digest(t, film(size))
			got := s.mirror(t, key, film(size), blob.Limits{MaxBytes: size, Media: "video"})
			want := mediagate.Result{
				Key: key, MimeType: "video/mp4", Size: size, SHA256: sum, Width: 640, Height: 360, Duration: 7.5,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			a := s.get(t, key)
			if a.status != http.StatusOK || a.size != size || a.sha256 != sum {
				t.Errorf("the link gives status %d, %d bytes, %s", a.status, a.size, a.sha256)
			}
			if got := a.header.Get("Content-Type"); got != "video/mp4" {
				t.Errorf("Content-Type is %q", got)
			}
		})
	}
}

func (s *suite) testCap(t *testing.T) {
	prefix := s.prefix(t, "cap")
	for _, size := range []int64{2000, part + 1, 4 * part} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			key := fmt.Sprintf("%s%d/1/0", prefix, size)
			_, err := s.store.Mirror(t.Context(), key, from(film(size)), blob.Limits{MaxBytes: size - 1, Media: "video"})
			expectError(t, err, mediagate.KindInvalid, string(mediagate.CodeResultUnavailable))
			s.expectNothing(t, prefix, key)
		})
	}
}

func (s *suite) testRefused(t *testing.T) {
	prefix := s.prefix(t, "refused")
	for name, test := range map[string]struct {
		body  string
		media string
	}{
		"empty":               {"", "video"},
		"a page":              {"<!DOCTYPE html><html><body>sorry</body></html>", "video"},
		"a page as picture":   {"<html><body>sorry</body></html>", "image"},
		"text":                {"busy", "image"},
		"json":                {`{"error":"expired"}`, "video"},
		"picture for a film":  {string(picture(t, 2, 2)), "video"},
		"script in a picture": {`<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`, "image"},
		"script as a GIF":     {"GIF89a<script>alert(1)</script>", "image"},
		"a long one":          {"GIF89a<script>alert(1)</script>" + strings.Repeat(" ", 2*5<<20), "image"},
		"first bytes alone":   {"\x00\x00\x00\x10ftypisom\x00\x00\x02\x00", "video"},
		"a tag alone":         {"ID3\x04\x00\x00\x00\x00\x00\x0a" + strings.Repeat("\x00", 10), "audio"},
		"archive":             {"PK\x03\x04 and so on", "image"},
		"no archive":          {string(picture(t, 2, 2)), "archive"},
		"a broken archive":    {"PK\x03\x04 and so on", "archive"},
		"a long broken one":   {"PK\x03\x04" + strings.Repeat("and so on", 1000), "archive"},
	} {
		t.Run(name, func(t *testing.T) {
			key := prefix + strings.ReplaceAll(name, " ", "-") + "/1/0"
			_, err := s.store.Mirror(t.Context(), key, from(strings.NewReader(test.body)), blob.Limits{MaxBytes: 20 * mib, Media: test.media})
			expectError(t, err, mediagate.KindInvalid, string(mediagate.CodeResultUnavailable))
			s.expectNothing(t, prefix, key)
		})
	}
}

func (s *suite) testBroken(t *testing.T) {
	prefix := s.prefix(t, "broken")
	for _, after := range []int64{0, 100, 4000, part - 1, part, part + 1, 3*part + 5} {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			key := fmt.Sprintf("%s%d/1/0", prefix, after)
			body := io.MultiReader(io.LimitReader(film(5*part), after), failing{io.ErrUnexpectedEOF})
			_, err := s.store.Mirror(t.Context(), key, from(body), blob.Limits{Media: "video"})
			if !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("got %v, want the body's own error", err)
			}
			if e, ok := errors.AsType[*mediagate.Error](err); ok {
				t.Errorf("the body's failure is blamed on the store or the file: %v", e)
			}
			s.expectNothing(t, prefix, key)
		})
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func (s *suite) testStopped(t *testing.T) {
	prefix := s.prefix(t, "stopped")
	for _, after := range []int64{1000, 2*part + 100} {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			key := fmt.Sprintf("%s%d/1/0", prefix, after)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			_, err := s.store.Mirror(ctx, key, from(film(20*part)), blob.Limits{Media: "video", Progress: func(n int64) {
				if n > after {
					cancel()
				}
			}})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want the context's error", err)
			}
			s.expectNothing(t, prefix, key)
		})
	}
}

// testArchive mirrors archives, which are judged by their end: by then most of a
// large one is on its way.
func (s *suite) testArchive(t *testing.T) {
	prefix := s.prefix(t, "archive")
	for _, size := range []int64{100, 5000, 2*part + 100} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			key := fmt.Sprintf("%s%d/1/0", prefix, size)
			var file bytes.Buffer
			w := zip.NewWriter(&file)
			f, err := w.CreateHeader(&zip.FileHeader{Name: "vocals.mp3", Method: zip.Store})
			if err == nil {
				_, err = io.Copy(f, io.LimitReader(&pattern{}, size))
			}
			if err == nil {
				err = w.Close()
			}
			if err != nil {
				t.Fatal(err)
			}
			whole := file.Bytes()
			limits := blob.Limits{MaxBytes: 4 * part, Media: "archive"}
			_, err = s.store.Mirror(t.Context(), key, from(bytes.NewReader(whole[:len(whole)-1])), limits)
			expectError(t, err, mediagate.KindInvalid, string(mediagate.CodeResultUnavailable))
			s.expectNothing(t, prefix+fmt.Sprint(size)+"/", key)
			r := s.mirror(t, key, bytes.NewReader(whole), limits)
			_, sum := digest(t, bytes.NewReader(whole))
			a := s.get(t, key)
			if r.MimeType != "application/zip" || r.SHA256 != sum || a.sha256 != sum || a.header.Get("Content-Type") != "application/zip" {
				t.Errorf("%+v, and the link gives %+v", r, a)
			}
			if got, want := a.header.Get("Content-Disposition"), fmt.Sprintf(`inline; filename="%d-0.zip"`, size); got != want {
				t.Errorf("Content-Disposition is %q, want %q", got, want)
			}
		})
	}
}

func (s *suite) testReplace(t *testing.T) {
	prefix := s.prefix(t, "replace")
	key := prefix + "task/1/0"
	limits := blob.Limits{MaxBytes: 3 * part, Media: "video"}
	s.mirror(t, key, film(2*part), limits)
	second := s.mirror(t, key, film(3000), limits)
	if got := s.get(t, key); got.sha256 != second.SHA256 {
		t.Error("the second file does not stand in place of the first")
	}
	if _, err := s.store.Mirror(t.Context(), key, from(film(4*part)), limits); err == nil {
		t.Error("a file over the cap was taken")
	}
	if got := s.get(t, key); got.sha256 != second.SHA256 {
		t.Error("a failed copy touched what was there")
	}
	n, err := s.store.DeletePrefix(t.Context(), prefix)
	if err != nil {
		t.Fatal(err)
	}
	if n != 1 {
		t.Errorf("%d objects, want 1", n)
	}
}

func (s *suite) testProgress(t *testing.T) {
	key := s.prefix(t, "progress") + "task/1/0"
	var last int64
	s.mirror(t, key, film(2*part), blob.Limits{Media: "video", Progress: func(n int64) {
		if n <= last {
			t.Errorf("progress goes from %d to %d", last, n)
		}
		last = n
	}})
	if last != 2*part {
		t.Errorf("progress ends at %d, want %d", last, 2*part)
	}
}

func (s *suite) testTypes(t *testing.T) {
	prefix := s.prefix(t, "types")
	files := types(t)
	for name, test := range map[string]struct {
		media, mime, ext string
	}{
		"jpeg": {"image", "image/jpeg", ".jpg"},
		"gif":  {"image", "image/gif", ".gif"},
		"webp": {"image", "image/webp", ".webp"},
		"mov":  {"video", "video/quicktime", ".mov"},
		"webm": {"video", "video/webm", ".webm"},
		"mp3":  {"audio", "audio/mpeg", ".mp3"},
		"wav":  {"audio", "audio/wav", ".wav"},
	} {
		t.Run(name, func(t *testing.T) {
			key := prefix + name + "/2/3"
			r := s.mirror(t, key, bytes.NewReader(files[name]), blob.Limits{Media: test.media})
			a := s.get(t, key)
			if r.MimeType != test.mime || a.header.Get("Content-Type") != test.mime {
				t.Errorf("types %q and %q, want %q", r.MimeType, a.header.Get("Content-Type"), test.mime)
			}
			if got, want := a.header.Get("Content-Disposition"), `inline; filename="`+name+`-3`+test.ext+`"`; got != want {
				t.Errorf("Content-Disposition is %q, want %q", got, want)
			}
		})
	}
}

// testMemory counts what is alive while a file forty times the size of a part
// passes through.
func (s *suite) testMemory(t *testing.T) {
	const size, bound = 200 * mib, 40 * mib
	key := s.prefix(t, "memory") + "task/1/0"
	before := alive()
	var peak, next uint64
	r := s.mirror(t, key, film(size), blob.Limits{Media: "video", Progress: func(n int64) {
		if uint64(n) >= next {
			next += 8 * mib
			peak = max(peak, alive())
		}
	}})
	if r.Size != size {
		t.Errorf("size is %d, want %d", r.Size, size)
	}
	if peak > before && peak-before > bound {
		t.Errorf("%d MiB are held for a file of %d MiB, want at most %d", (peak-before)/mib, size/mib, bound/mib)
	}
	t.Logf("%d MiB are held at most for a file of %d MiB", (max(peak, before)-before)/mib, size/mib)
}

// alive is the memory that survives a collection.
func alive() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
