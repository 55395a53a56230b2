package e2e_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/mediagate/mediagate/sandbox/sample"
)

// goodImage is a picture that every model accepts.
const goodImage = "fox.png"

// mediaServer serves the media of clients.
type mediaServer struct{ address string }

func (m mediaServer) url(name string) string { return m.address + "/" + name }

func newMediaServer(t *testing.T) mediaServer {
	t.Helper()
	mux, image := http.NewServeMux(), sample.Image(640, 360)
	mux.HandleFunc("GET /"+goodImage, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "image/png")
		_, _ = w.Write(image)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return mediaServer{server.URL}
}
