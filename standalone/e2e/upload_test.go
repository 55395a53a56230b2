package e2e_test

import (
	"bytes"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"github.com/mediagate/mediagate/sandbox/sample"
)

// upload gives a file a link.
func (w *world) upload(name string, content []byte) string {
	w.t.Helper()
	var form bytes.Buffer
	writer := multipart.NewWriter(&form)
	part, err := writer.CreateFormFile("file", name)
	if err == nil {
		_, err = part.Write(content)
	}
	if err == nil {
		err = writer.Close()
	}
	if err != nil {
		w.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.apiURLs[0]+"/v1/uploads/images", &form)
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+w.key)
	req.Header.Set("Content-Type", writer.FormDataContentType())
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	see(request{method: http.MethodPost, url: w.apiURLs[0] + "/v1/uploads/images"}, answer{resp.StatusCode, resp.Header, text})
	var got struct {
		URL, Filename string
		ContentType   string `json:"content_type"`
		Bytes         int
	}
	if err := json.Unmarshal(text, &got); err != nil || resp.StatusCode != http.StatusOK ||
		got.Filename != name || got.ContentType != "image/png" || got.Bytes != len(content) {
		w.t.Fatalf("upload: %d %s", resp.StatusCode, text)
	}
	if w.uploads == nil {
		w.uploads = map[string]bool{}
	}
	w.uploads[strings.TrimPrefix(got.URL, w.apiURLs[0]+"/")] = true
	return got.URL
}

// An uploaded picture becomes a video: judged by the gateway, sent as a link to
// the vendors that take one, as bytes to the one that takes these.
func TestUploadToVideo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{shape: standalone})
	picture := sample.Image(640, 360)
	link := w.upload("fox.png", picture)
	read, err := request{method: http.MethodGet, url: link}.do(t.Context())
	if err != nil || read.status != http.StatusOK || !bytes.Equal(read.body, picture) || !strings.HasPrefix(link, w.apiURLs[0]+"/files/") {
		t.Fatalf("%s answers %d, %d bytes: %v", link, read.status, len(read.body), err)
	}
	small := w.upload("small.png", sample.Image(64, 64))
	w.submit(job{model: beta, fields: map[string]any{"image_urls": []string{link, link}}})
	w.submit(job{model: "alpha-v3", fields: map[string]any{"image_urls": []string{link}}}).price = "0.42"
	w.submit(job{model: epsilonFast, fields: map[string]any{"first_frame_image": link, "duration": 4}}).price = "0.4"
	bad := w.submit(job{model: beta, fields: map[string]any{"image_urls": []string{link, small}}})
	bad.want, bad.code, bad.minJobs = "failed", "invalid_parameters", 0
	for says, wrong := range map[string]string{
		"there is no such upload": w.apiURLs[0] + "/files/../v1/tasks",
		"the upload has expired":  w.apiURLs[0] + "/files/1000000000-ABCDEFGHIJKLMNOPQRSTUVWXYZ.png",
	} {
		r, _ := w.request(job{model: beta, fields: map[string]any{"image_urls": []string{link, wrong}}})
		a, err := r.do(t.Context())
		if err != nil || a.status != http.StatusBadRequest || !strings.Contains(string(a.body), "image_urls[1] is refused: "+says) {
			t.Errorf("%s: %d %s %v", wrong, a.status, a.body, err)
		}
	}
	w.verify(recoverTime)
}
