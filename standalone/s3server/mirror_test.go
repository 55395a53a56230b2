package s3server_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/storage/blob"
)

const (
	mib = 1 << 20
	// part is the smallest part that S3 accepts. The store uses it too.
	part = 5 * mib
)

func (s *suite) testSizes(t *testing.T) {
	prefix := s.prefix(t, "sizes")
	for _, size := range []int64{1000, 3072, 3073, part - 1, part, part + 1, 2*part - 1, 2 * part, 3*part + 7} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			key := fmt.Sprintf("%s%d/1/0", prefix, size)
			var last int64
			got := s.mirror(t, key, film(size), blob.Limits{MaxBytes: size, Media: "video", Progress: func(n int64) {
				if n <= last {
					t.Errorf("progress goes from %d to %d", last, n)
				}
				last = n
			}})
			if last != size {
				t.Errorf("progress ends at %d", last)
			}
			_, sum := digest(t, film(size))
			want := mediagate.Result{Key: key, MimeType: "video/mp4", Size: size, SHA256: sum, Width: 640, Height: 360, Duration: 7.5}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			s.expectFile(t, got, fmt.Sprintf("%d-0.mp4", size))
		})
	}
}

// expectFile checks that the link of a file returns the file with its type and under the name.
func (s *suite) expectFile(t *testing.T, want mediagate.Result, name string) {
	t.Helper()
	a := s.get(t, want.Key)
	if a.status != http.StatusOK || a.size != want.Size || a.sha256 != want.SHA256 {
		t.Errorf("the link gives status %d, %d bytes, %s", a.status, a.size, a.sha256)
	}
	if got := a.header.Get("Content-Type"); got != want.MimeType {
		t.Errorf("Content-Type is %q, want %q", got, want.MimeType)
	}
	if got, want := a.header.Get("Content-Disposition"), fmt.Sprintf("inline; filename=%q", name); got != want {
		t.Errorf("Content-Disposition is %q, want %q", got, want)
	}
}

// testFailed checks that copies that fail leave neither an object nor parts of one. Package
// mediainfo tests which files are valid.
func (s *suite) testFailed(t *testing.T) {
	prefix := s.prefix(t, "failed")
	type failure struct {
		media string
		cap   int64
		body  func(cancel func()) io.Reader
		want  error // error of the body or the context; nil: the file is invalid
	}
	text := func(s string) func(func()) io.Reader {
		return func(func()) io.Reader { return strings.NewReader(s) }
	}
	cases := map[string]failure{
		"empty":         {"video", 0, text(""), nil},
		"a page":        {"video", 0, text("<!DOCTYPE html><html><body>sorry</body></html>"), nil},
		"a long script": {"image", 0, text("GIF89a<script>alert(1)</script>" + strings.Repeat(" ", 2*part)), nil},
	}
	for _, size := range []int64{2000, part + 1, 4 * part} {
		cases[fmt.Sprint("over the cap of ", size-1)] = failure{"video", size - 1, func(func()) io.Reader { return film(size) }, nil}
	}
	for _, after := range []int64{0, 100, 4000, part - 1, part, part + 1, 3*part + 5} {
		cases[fmt.Sprint("broken after ", after)] = failure{"video", 0, func(func()) io.Reader {
			return io.MultiReader(io.LimitReader(film(5*part), after), failing{io.ErrUnexpectedEOF})
		}, io.ErrUnexpectedEOF}
	}
	for _, after := range []int64{1000, 2*part + 100} {
		cases[fmt.Sprint("stopped after ", after)] = failure{"video", 0, func(cancel func()) io.Reader {
			return io.MultiReader(io.LimitReader(film(20*part), after), stopping(cancel), &pattern{})
		}, context.Canceled}
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			key := prefix + strings.ReplaceAll(name, " ", "-") + "/1/0"
			_, err := s.store.Mirror(ctx, key, openerOf(test.body(cancel)), blob.Limits{MaxBytes: test.cap, Media: test.media})
			if test.want == nil {
				expectError(t, err, mediagate.KindInvalid, string(mediagate.CodeResultUnavailable))
			} else if !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if _, ours := errors.AsType[*mediagate.Error](err); ours && errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("the body's failure is blamed on the store or the file: %v", err)
			}
			s.expectNothing(t, prefix, key)
		})
	}
}

// failing is a body whose read fails.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// stopping is a reader without content that calls the function when it is read.
type stopping func()

func (stop stopping) Read([]byte) (int, error) {
	stop()
	return 0, io.EOF
}

// testArchive mirrors archives. An archive is checked by its end, when most of a large one is
// already being uploaded.
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
			_, err = s.store.Mirror(t.Context(), key, openerOf(bytes.NewReader(whole[:len(whole)-1])), limits)
			expectError(t, err, mediagate.KindInvalid, string(mediagate.CodeResultUnavailable))
			s.expectNothing(t, prefix+fmt.Sprint(size)+"/", key)
			r := s.mirror(t, key, bytes.NewReader(whole), limits)
			if _, sum := digest(t, bytes.NewReader(whole)); r.MimeType != "application/zip" || r.SHA256 != sum {
				t.Errorf("the archive is %+v", r)
			}
			s.expectFile(t, r, fmt.Sprintf("%d-0.zip", size))
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
	if _, err := s.store.Mirror(t.Context(), key, openerOf(film(4*part)), limits); err == nil {
		t.Error("a file over the cap was taken")
	}
	if got := s.get(t, key); got.sha256 != second.SHA256 {
		t.Error("a failed copy touched what was there")
	}
	s.expectKeys(t, prefix, "task/1/0")
}

// testMemory measures the live memory while a file forty times the size of a part passes
// through.
func (s *suite) testMemory(t *testing.T) {
	const size, bound = 200 * mib, 40 * mib
	key := s.prefix(t, "memory") + "task/1/0"
	before := alive()
	var peak, next int64
	r := s.mirror(t, key, film(size), blob.Limits{Media: "video", Progress: func(n int64) {
		if n >= next {
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
