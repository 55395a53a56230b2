package gemini

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// slow is a server whose files stop after thirty bytes, until it goes on.
type slow chan struct{}

func (s slow) Open(context.Context, string, int64) (io.ReadCloser, int64, error) {
	return io.NopCloser(io.MultiReader(strings.NewReader(strings.Repeat("x", 30)), s)), -1, nil
}

func (s slow) Read([]byte) (int, error) {
	<-s
	return 0, io.EOF
}

// png1 are the files of a server that is not slow: a picture of one pixel.
type png1 string

func (f png1) Open(context.Context, string, int64) (io.ReadCloser, int64, error) {
	return io.NopCloser(strings.NewReader(string(f))), int64(len(f)), nil
}

const onePixel = "\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x00\x00\x00\x00\x3a\x7e\x9b\x55"

// However many calls there are, their images have a bounded memory. Who gets
// none has sent nothing, and holds nothing.
func TestMemoryOfImages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &Adapter{http: vendorhttp.New(vendorhttp.Config{}, vendorhttp.Options{}), memory: semaphore.NewWeighted(100)}
		ask := func(in mediagate.Inputs) (func(), error) {
			_, release, err := a.body(t.Context(), &params{Images: []reference{"https://img.example.com/a"}}, mediagate.Job{Inputs: in})
			return release, err
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
			if _, err := ask(held); !mediagate.Is(err, mediagate.KindUnreached) {
				t.Errorf("without memory: %v", err)
			}
		}
		close(held)
		for range 3 {
			if err := <-ended; !mediagate.Is(err, mediagate.KindInvalid) { // it was no image
				t.Error(err)
			}
		}
		release, err := ask(png1(onePixel))
		if err != nil || a.memory.TryAcquire(100) {
			t.Fatalf("an image that is not sent holds nothing: %v", err)
		}
		release()
		release()
		if !a.memory.TryAcquire(100) {
			t.Error("not all memory was given back")
		}
	})
}

// The memory is free again as soon as the request has left, not only with the
// answer, which may take minutes.
func TestMemoryOfSentImages(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	vendor := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		close(asked)
		<-r.Context().Done()
	}))
	t.Cleanup(vendor.Close)
	a := &Adapter{http: vendorhttp.New(vendorhttp.Config{BaseURL: vendor.URL}, vendorhttp.Options{}), memory: semaphore.NewWeighted(100)}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := a.Submit(ctx, mediagate.Job{
			Upstream: "m", Operation: opImage, Inputs: png1(onePixel), Params: []byte(`{"prompt":"a","image_urls":["https://img.example.com/a"]}`),
		})
		ended <- err
	}()
	select {
	case <-asked:
	case err := <-ended:
		t.Fatal(err)
	}
	waiting, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	if err := a.memory.Acquire(waiting, 100); err != nil {
		t.Error("the images of a request that has left hold memory")
	}
	cancel()
	if err := <-ended; !mediagate.Is(err, mediagate.KindAmbiguous) {
		t.Error(err)
	}
}
