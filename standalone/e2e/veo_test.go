package e2e_test

import (
	"bytes"
	"image"
	"image/png"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// pictures is a server of the client's: PATH.png is a picture, any other file
// is none.
func pictures(t *testing.T) string {
	t.Helper()
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 320, 180))); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".png") {
			_, _ = w.Write(picture.Bytes())
			return
		}
		_, _ = w.Write([]byte("no picture"))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// Videos come within the answer of the first vendor: several of them, large
// ones, from frames; those that were held back are not charged.
func TestVideosWithinTheAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{shape: production, providers: []string{"vertex"}})
	at := pictures(t)
	for name, c := range map[string]struct {
		job  job
		want task
	}{
		"a video":           {job{model: epsilonFast}, task{price: "0.8"}},
		"a better video":    {job{model: epsilonQuality, fields: map[string]any{"duration": 4}}, task{price: "0.8"}},
		"from a frame":      {job{model: epsilonFast, fields: map[string]any{"first_frame_image": at + "/a.png", "generate_audio": true, "duration": 6}}, task{price: "0.9"}},
		"from two frames":   {job{model: epsilonQuality, fields: map[string]any{"first_frame_image": at + "/a.png", "last_frame_image": at + "/b.png", "resize_mode": "crop", "seed": 7, "duration": 4}}, task{price: "0.8"}},
		"four videos":       {job{model: epsilonFast, fields: map[string]any{"sample_count": 4, "duration": 4}}, task{files: 4, price: "1.6"}},
		"one is held back":  {job{model: epsilonFast, directive: "filtered=1", fields: map[string]any{"sample_count": 3, "duration": 4}}, task{files: 2, price: "0.8"}},
		"all are held back": {job{model: epsilonFast, directive: "filtered=2", fields: map[string]any{"sample_count": 2}}, task{want: "failed", code: "content_policy_violation"}},
		"a large video":     {job{model: epsilonFast, directive: "result_bytes=67108864"}, task{price: "0.8"}},
		"answers break off": {job{model: epsilonFast, directive: "fail=timeout, at=download, times=2, result_bytes=1000000"}, task{price: "0.8"}},
		"polls that fail":   {job{model: epsilonFast, directive: "fail=internal"}, task{price: "0.8"}},
		"refused at submit": {job{model: epsilonFast, directive: "fail=moderation, at=submit"}, task{want: "failed", code: "content_policy_violation"}},
		"no picture":        {job{model: epsilonFast, fields: map[string]any{"first_frame_image": at + "/a.txt"}}, task{want: "failed", code: "image_processing_error"}},
	} {
		task := w.submit(c.job)
		task.files, task.price, task.want, task.code = c.want.files, c.want.price, c.want.want, c.want.code
		if task.want == "failed" {
			task.minJobs = 0
		}
		t.Logf("%s: %s", task.id, name)
	}
	w.verify(recoverTime)
}

// The second vendor takes what it can express, and its files need its key.
func TestVideosOfTheSecondVendor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{shape: production, providers: []string{"veo"}})
	at := pictures(t)
	text := w.submit(job{model: epsilonQuality, fields: map[string]any{"generate_audio": true, "duration": 4}})
	text.price = "1.6"
	frames := w.submit(job{model: epsilonFast, directive: "filtered=1", fields: map[string]any{
		"generate_audio": true, "duration": 4, "sample_count": 3, "first_frame_image": at + "/a.png", "last_frame_image": at + "/b.png",
	}})
	frames.files, frames.price = 2, "1.2"
	moved := w.submit(job{model: epsilonFast, directive: "media=elsewhere", fields: map[string]any{"generate_audio": true, "duration": 4}})
	moved.price = "0.6"
	one := w.submit(job{model: epsilonFast, directive: "media=page, piece=1", fields: map[string]any{"generate_audio": true, "duration": 4, "sample_count": 2}})
	one.files, one.price = 1, "0.6"
	refused := w.submit(job{model: epsilonFast, directive: "fail=reject, at=download, piece=2", fields: map[string]any{"generate_audio": true, "duration": 4, "sample_count": 2}})
	refused.files, refused.price = 1, "0.6"
	silent := w.submit(job{model: epsilonFast, fields: map[string]any{"generate_audio": false, "duration": 4}})
	silent.price = "0.6" // with sound, as it is made
	away := w.submit(job{model: epsilonFast, directive: "fail=internal, at=download", fields: map[string]any{"generate_audio": true}})
	away.price = "1.2"
	w.verify(recoverTime)
}
