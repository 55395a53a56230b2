package e2e_test

import (
	"bytes"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
)

// upload uploads a file and returns its link.
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
	checkAnswer(request{method: http.MethodPost, url: w.apiURLs[0] + "/v1/uploads/images"}, answer{resp.StatusCode, resp.Header, text})
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
