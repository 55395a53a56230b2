package s3server_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/storage/blob"
)

func (s *suite) testManifest(t *testing.T) {
	key := s.prefix(t, "manifest") + "1/outcome.json"
	_, err := s.store.LoadManifest(t.Context(), key)
	expectError(t, err, mediagate.KindNotFound, "")
	for _, text := range []string{`{"files":2}`, `{}`} {
		if err := s.store.StoreManifest(t.Context(), key, []byte(text)); err != nil {
			t.Fatal(err)
		}
		got, err := s.store.LoadManifest(t.Context(), key)
		if err != nil || string(got) != text {
			t.Errorf("read %q (%v), want %q", got, err, text)
		}
	}
}

// testStored checks Exists and Verify for files that are stored whole, in part, or not at all.
func (s *suite) testStored(t *testing.T) {
	prefix := s.prefix(t, "stored")
	whole := s.mirror(t, prefix+"1/1/0", film(2*part+7), blob.Limits{Media: "video"})
	other := whole
	other.SHA256 = strings.Repeat("0", 64)
	shorter := whole
	shorter.Size--
	absent := whole
	absent.Key = prefix + "1/1/1"
	for name, test := range map[string]struct {
		file            mediagate.Result
		exists, matches bool
	}{
		"whole": {whole, true, true}, "of other content": {other, true, false},
		"of another size": {shorter, false, false}, "absent": {absent, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			for ask, c := range map[string]struct {
				call func(context.Context, mediagate.Result) error
				want bool
			}{"exists": {s.store.Exists, test.exists}, "verify": {s.store.Verify, test.matches}} {
				err := c.call(t.Context(), test.file)
				if c.want && err != nil {
					t.Errorf("%s: %v", ask, err)
				}
				if !c.want {
					expectError(t, err, mediagate.KindGone, string(mediagate.CodeResultUnavailable))
				}
			}
		})
	}
	body, length, err := s.store.Open(t.Context(), whole.Key)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if size, sum := digest(t, body); length != whole.Size || size != whole.Size || sum != whole.SHA256 {
		t.Errorf("read %d bytes of %d", size, length)
	}
	_, _, err = s.store.Open(t.Context(), absent.Key)
	expectError(t, err, mediagate.KindGone, string(mediagate.CodeResultUnavailable))
}

// testOlder lists files by their age, in pages.
func (s *suite) testOlder(t *testing.T) {
	prefix := s.prefix(t, "older")
	s.put(t, prefix+"1/1", prefix+"1/2")
	if keys, _, _, err := s.store.Older(t.Context(), prefix, "", time.Hour); err != nil || len(keys) != 0 {
		t.Errorf("old: %v (%v)", keys, err)
	}
	keys, last, more, err := s.store.Older(t.Context(), prefix, prefix+"1/1", anyAge)
	if want := prefix + "1/2"; err != nil || !slices.Equal(keys, []string{want}) || last != want || more {
		t.Errorf("after the first: %v up to %q, more: %v (%v)", keys, last, more, err)
	}
	if n, err := s.store.DeleteOlder(t.Context(), prefix, time.Hour); err != nil || n != 0 {
		t.Errorf("deleted %d that are young (%v)", n, err)
	}
	c := s.config
	c.Now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	if n, err := open(t, c).DeleteOlder(t.Context(), prefix, time.Hour); err != nil || n != 2 {
		t.Errorf("deleted %d that are old (%v), want 2", n, err)
	}
	s.expectKeys(t, prefix)
	_, err = s.store.DeleteOlder(t.Context(), "", time.Hour)
	expectError(t, err, mediagate.KindInvalid, "")
}

func (s *suite) testUploads(t *testing.T) {
	account := "blobtest-" + s.config.Bucket
	folder := mediagate.UploadFolder + account + "/"
	t.Cleanup(func() {
		if _, err := s.store.DeletePrefix(context.WithoutCancel(t.Context()), folder); err != nil {
			t.Error(err)
		}
	})
	file := picture(t, 3, 3)
	key, err := s.store.PutUpload(t.Context(), account, "01A", bytes.NewReader(file), blob.Limits{Media: "image", MaxBytes: int64(len(file))})
	if err != nil || key != folder+"01A" {
		t.Fatalf("stored as %q (%v), want %q", key, err, folder+"01A")
	}
	if got := s.get(t, key); got.status != http.StatusOK || got.header.Get("Content-Type") != "image/png" || got.size != int64(len(file)) {
		t.Errorf("the link answers %d, type %q", got.status, got.header.Get("Content-Type"))
	}
	broken := errors.New("broken off")
	for name, test := range map[string]struct {
		file   io.Reader
		limits blob.Limits
		says   string // part of the error
	}{
		"too large": {bytes.NewReader(file), blob.Limits{Media: "image", MaxBytes: int64(len(file)) - 1}, "larger"},
		"no image":  {film(5000), blob.Limits{Media: "image"}, "not image"},
		"text":      {strings.NewReader("<html>"), blob.Limits{Media: "image"}, "not image"},
		"broken":    {io.MultiReader(bytes.NewReader(file), failing{broken}), blob.Limits{Media: "image"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			key, err := s.store.PutUpload(t.Context(), account, "02B", test.file, test.limits)
			if test.says == "" && !errors.Is(err, broken) {
				t.Errorf("got %v, want the reader's error", err)
			}
			if test.says != "" {
				expectError(t, err, mediagate.KindInvalid, "")
				if !strings.Contains(err.Error(), test.says) {
					t.Errorf("%v does not say %q", err, test.says)
				}
			}
			if key != "" {
				t.Errorf("a key %q of nothing", key)
			}
			s.expectNothing(t, folder, folder+"02B")
		})
	}
}
