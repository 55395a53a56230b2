package s3server_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
)

// testFiles stores files that clients upload, in one piece and in parts, and reads them whole
// and from an offset.
func (s *suite) testFiles(t *testing.T) {
	newFile := func() mediagate.File {
		f, ok := mediagate.NewFile(time.Now(), "image/png")
		if !ok {
			t.Fatal("no name")
		}
		t.Cleanup(func() { _ = s.store.Delete(context.WithoutCancel(t.Context()), f.Key()) })
		return f
	}
	head := picture(t, 3, 3)
	for name, size := range map[string]int64{"one piece": int64(len(head)), "a part to the byte": part, "in parts": 3*part + 17} {
		t.Run(name, func(t *testing.T) {
			f, whole := newFile(), make([]byte, size)
			_, _ = io.ReadFull(&pattern{}, whole)
			copy(whole, head)
			n, err := s.store.PutFile(t.Context(), f, bytes.NewReader(whole), size)
			if err != nil || n != size {
				t.Fatalf("stored %d bytes of %d: %v", n, size, err)
			}
			if got := s.get(t, f.Key()); got.status != http.StatusOK || got.header.Get("Content-Type") != "image/png" {
				t.Errorf("the object answers %d, type %q", got.status, got.header.Get("Content-Type"))
			}
			if n, err := s.store.Size(t.Context(), f.Key()); err != nil || n != size {
				t.Errorf("its size is %d: %v", n, err)
			}
			for _, offset := range []int64{0, 1, size / 2, size - 1} {
				body, err := s.store.OpenAt(t.Context(), f.Key(), offset)
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(body)
				_ = body.Close()
				if err != nil || !bytes.Equal(got, whole[offset:]) {
					t.Errorf("from %d: %d bytes, %v", offset, len(got), err)
				}
			}
		})
	}
	broken := errors.New("broken off")
	for name, sent := range map[string]int64{"broken": int64(len(head)), "broken after a part": part + 1} {
		t.Run(name, func(t *testing.T) {
			f, begun := newFile(), make([]byte, sent)
			copy(begun, head)
			_, err := s.store.PutFile(t.Context(), f, io.MultiReader(bytes.NewReader(begun), failing{broken}), 20<<20)
			if !errors.Is(err, broken) {
				t.Errorf("got %v, want the reader's error", err)
			}
			s.expectNothing(t, f.Key(), f.Key())
		})
	}
	absent := newFile()
	_, err := s.store.Size(t.Context(), absent.Key())
	expectError(t, err, mediagate.KindGone, string(mediagate.CodeResultUnavailable))
	_, err = s.store.OpenAt(t.Context(), absent.Key(), 1)
	expectError(t, err, mediagate.KindGone, string(mediagate.CodeResultUnavailable))
}
