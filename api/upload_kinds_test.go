package api_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/mediagate/mediagate/sandbox/sample"
)

// Videos and sounds are stored byte for byte, under the type of their content, each by its
// own path and within its own bound.
func TestUploadsOfVideosAndSounds(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	film := string(sample.Video(sample.VideoSpec{Width: 640, Height: 360, Seconds: 2}))
	song, err := io.ReadAll(sample.MP3(3))
	g.must(err)
	up := func(kind, file string) answer {
		return g.send(request{
			method: http.MethodPost, path: "/v1/uploads/" + kind, key: g.key, body: formOf(filePart(file)),
			header: http.Header{"Content-Type": {"multipart/form-data; boundary=" + boundary}},
		})
	}
	for name, test := range map[string]struct{ kind, file, mime, extension string }{
		"a film": {"videos", film, "video/mp4", ".mp4"},
		"a song": {"audios", string(song), "audio/mpeg", ".mp3"},
	} {
		a := up(test.kind, test.file)
		link, _ := a.at("url").(string)
		if a.status != http.StatusOK || a.at("content_type") != test.mime || a.at("bytes") != float64(len(test.file)) || !strings.HasSuffix(link, test.extension) {
			t.Fatalf("%s: %d %s", name, a.status, a.body)
		}
		read := g.send(request{path: strings.TrimPrefix(link, "https://gw.example.com")})
		if read.status != http.StatusOK || read.header.Get("Content-Type") != test.mime || read.body != test.file || read.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %v, %d bytes", name, read.status, read.header, len(read.body))
		}
	}
	before := len(g.bucket.keys())
	for name, test := range map[string]struct {
		kind, file string
		status     int
		says       string
	}{
		"a picture as a film": {"videos", aPicture, 400, "file must be one of mp4, mov, webm, by its content"},
		"a film as a sound":   {"audios", film, 400, "file must be one of mp3, wav, m4a, ogg, flac, aac, by its content"},
		"a song as a picture": {"images", string(song), 400, "file"},
	} {
		a := up(test.kind, test.file)
		if message, _ := a.at("error", "message").(string); a.status != test.status || !strings.Contains(message, test.says) {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	if after := len(g.bucket.keys()); after != before {
		t.Errorf("%d files were stored of uploads that were refused", after-before)
	}
}
