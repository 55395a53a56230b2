package gemini

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/inline"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// png1 serves a picture of one pixel under every URL.
type png1 string

func (f png1) Open(context.Context, string, int64) (io.ReadCloser, int64, error) {
	return io.NopCloser(strings.NewReader(string(f))), int64(len(f)), nil
}

const onePixel = "\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x00\x00\x00\x00\x3a\x7e\x9b\x55"

// TestMemoryOfSentImages checks that the memory is free as soon as the request has been sent, and
// not only with the answer, which may take minutes.
func TestMemoryOfSentImages(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	vendor := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		close(asked)
		<-r.Context().Done()
	}))
	t.Cleanup(vendor.Close)
	client := vendorhttp.New(vendorhttp.Config{BaseURL: vendor.URL}, vendorhttp.Options{})
	a := &Adapter{Keyed: vendorhttp.Keyed{HTTP: client}, images: inline.NewImages(client.Now)}
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
	for end := time.Now().Add(20 * time.Second); a.images.HeldBytes() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the images of a request that was sent still hold memory")
		}
	}
	cancel()
	if err := <-ended; !mediagate.Is(err, mediagate.KindAmbiguous) {
		t.Error(err)
	}
}
