package kernel_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/mediagate/mediagate/sandbox/kernel"
	"github.com/mediagate/mediagate/sandbox/sample"
)

func TestFetchSound(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		head string
		want string // the error
	}{
		"mp3":       {"\xff\xfb\x10\xc0", ""},
		"tagged":    {"ID3\x04", ""},
		"wav":       {"RIFF\x00\x00\x00\x00WAVE", ""},
		"flac":      {"fLaC", ""},
		"ogg":       {"OggS", ""},
		"m4a":       {"\x00\x00\x00\x20ftypM4A ", ""},
		"text":      {"<html>", "is not a valid audio"},
		"nothing":   {"", "is not a valid audio"},
		"one byte":  {"\xff", "is not a valid audio"},
		"webp":      {"RIFF\x00\x00\x00\x00WEBP", "is not a valid audio"},
		"jpeg":      {"\xff\xd8\xff", "is not a valid audio"},
		"a film":    {"\x00\x00\x00\x20ftypisom", "is not a valid audio"},
		"byte mark": {"\xff\xfe", "is not a valid audio"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, tc.head) }))
			defer srv.Close()
			said := ""
			if err := kernel.FetchSound(t.Context(), srv.URL); err != nil {
				said = err.Error()
			}
			if said != tc.want {
				t.Errorf("%q, want %q", said, tc.want)
			}
		})
	}
}

func TestFetchSoundBounds(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.Copy(w, sample.Extended(sample.MP3(1), 51<<20))
	})
	mux.HandleFunc("/short", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100000")
		_, _ = io.Copy(w, sample.MP3(1))
	})
	srv := httptest.NewServer(mux)
	defer srv.Close()
	for link, want := range map[string]string{
		srv.URL + "/large": "is too large", srv.URL + "/short": "cannot be fetched", srv.URL + "/none": "cannot be fetched: HTTP 404",
		"http://127.0.0.1:1/": "cannot be fetched", "http://\x00": "cannot be fetched",
	} {
		if err := kernel.FetchSound(t.Context(), link); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %q", link, err, want)
		}
	}
}
