package e2e_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mediagate/mediagate/sandbox/sample"
)

// goodImage is a picture that every model accepts.
const goodImage = "fox.png"

// mediaServer serves the media of clients, including harmful ones.
type mediaServer struct{ address string }

func (m mediaServer) url(name string) string { return m.address + "/" + name }

func newMediaServer(t *testing.T) mediaServer {
	t.Helper()
	mux := http.NewServeMux()
	for name, body := range map[string][]byte{
		goodImage: sample.Image(640, 360), "no-image.png": []byte("this is no image"), "small.png": sample.Image(127, 200),
	} {
		mux.HandleFunc("GET /"+name, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "image/png")
			_, _ = w.Write(body)
		})
	}
	mux.Handle("GET /metadata.png", http.RedirectHandler("http://169.254.169.254/latest/meta-data/", http.StatusFound))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return mediaServer{server.URL}
}

// TestBadInput checks that a task with an invalid file fails, is refunded, and has an error that
// names the file. The address of the file is checked as well.
func TestBadInput(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{shape: standalone})
	says := map[*task]string{}
	for name, c := range map[string]struct{ code, says string }{
		"no-image.png": {"image_processing_error", "image_urls[1] is not an image"},
		"small.png":    {"invalid_parameters", "image_urls[1] is 127 × 200 pixels, at least 128 × 128 are required"},
		"metadata.png": {"image_processing_error", "image_urls[1] has an address that is not allowed, or leads to one"},
	} {
		images := []string{w.media.url(goodImage), w.media.url(name)}
		task := w.submit(job{model: beta, fields: map[string]any{"image_urls": images}})
		task.wantStatus, task.wantCode, task.minJobs, task.maxJobs = "failed", c.code, 0, 0
		says[task] = c.says
	}
	w.verify(recoverTime)
	for task, want := range says {
		o, err := w.read(task.id)
		if err != nil || o.Error == nil || !strings.HasPrefix(o.Error.Message, want) {
			t.Errorf("%+v (%v), want %s", o.Error, err, want)
		}
	}
}
