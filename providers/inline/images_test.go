package inline

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mediagate/mediagate"
)

// slow is a server whose files stall after 30 bytes until the channel is closed.
type slow chan struct{}

func (s slow) Open(context.Context, string, int64) (io.ReadCloser, int64, error) {
	return io.NopCloser(io.MultiReader(strings.NewReader(strings.Repeat("x", 30)), s)), -1, nil
}

func (s slow) Read([]byte) (int, error) {
	<-s
	return 0, io.EOF
}

// png1 is a server that returns a picture of one pixel at once.
type png1 string

func (f png1) Open(context.Context, string, int64) (io.ReadCloser, int64, error) {
	return io.NopCloser(strings.NewReader(string(f))), int64(len(f)), nil
}

const onePixel = "\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x00\x00\x00\x00\x3a\x7e\x9b\x55"

// TestMemoryOfImages checks that the images of many calls stay within the memory limit. A call that
// gets no memory has sent nothing and holds nothing.
func TestMemoryOfImages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &Images{now: time.Now, limit: 100}
		ask := func(in mediagate.Inputs) (*Request, error) {
			return m.Request(t.Context(), mediagate.Job{Inputs: in}, []Image{{"image", "https://img.example.com/a"}}, func(b []Blob) any { return b })
		}
		held, ended := make(slow), make(chan error, 3)
		for range 3 {
			go func() {
				_, err := ask(held)
				ended <- err
			}()
		}
		synctest.Wait()
		for range 2 {
			if _, err := ask(held); !mediagate.Is(err, mediagate.KindUnreached) || !errors.Is(err, mediagate.ErrHeldUp) {
				t.Errorf("without memory: %v", err)
			}
		}
		close(held)
		for range 3 {
			if err := <-ended; !mediagate.Is(err, mediagate.KindInvalid) { // the file is not an image
				t.Error(err)
			}
		}
		r, err := ask(png1(onePixel))
		if err != nil || m.HeldBytes() == 0 {
			t.Fatalf("an image that is not sent holds nothing: %v", err)
		}
		r.Release()
		r.Release()
		if m.HeldBytes() != 0 {
			t.Errorf("%d bytes were not given back", m.HeldBytes())
		}
	})
}
