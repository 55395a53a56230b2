package fal_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mediagate/mediagate/sandbox/sandboxtest"
)

type m = sandboxtest.M

var with = sandboxtest.With

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var key = map[string]string{"Authorization": "Key sandbox-fal-key-id:sandbox-fal-key-secret"}

const (
	flux = "/fal/fal-ai/flux"
	ltx  = "/fal/fal-ai/ltx-2.3"
)

// run submits a request and returns the answer to the call for the result.
func run(t *testing.T, b *sandboxtest.Sandbox, app, path string, body m) sandboxtest.Answer {
	t.Helper()
	made := b.Call(t, "POST", app+path, key, body)
	if made.Status != 200 || made.Text("status") != "IN_QUEUE" {
		t.Fatalf("%d %s", made.Status, made.Raw)
	}
	b.Clock.Advance(time.Minute)
	at := app + "/requests/" + made.Text("request_id")
	if got := b.Call(t, "GET", at+"/status", key, nil); got.Status != 200 || got.Text("status") != "COMPLETED" {
		t.Fatalf("%d %s", got.Status, got.Raw)
	}
	return b.Call(t, "GET", at, key, nil)
}

// A refusal of the model is the result of its job.
func TestRules(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	image := m{"prompt": "a fox", "image_size": "square_hd", "num_images": 4, "seed": 0, "output_format": "png"}
	video := m{"prompt": "a fox", "duration": 10, "resolution": "2160p", "aspect_ratio": "9:16", "generate_audio": false}
	for name, tc := range map[string]struct {
		app, path string
		body      m
		field     string // the refused field; "" if no rule is broken
	}{
		"images":           {flux, "/schnell", image, ""},
		"no prompt":        {flux, "/schnell", with(image, m{"prompt": nil}), "prompt"},
		"five images":      {flux, "/schnell", with(image, m{"num_images": 5}), "num_images"},
		"a negative seed":  {flux, "/schnell", with(image, m{"seed": -1}), "seed"},
		"another size":     {flux, "/schnell", with(image, m{"image_size": "21:9"}), "image_size"},
		"another field":    {flux, "/schnell", with(image, m{"size": "1:1"}), "size"},
		"a JPEG":           {flux, "/schnell", with(image, m{"output_format": nil}), "output_format"},
		"a video":          {ltx, "/text-to-video", video, ""},
		"five seconds":     {ltx, "/text-to-video", with(video, m{"duration": 5}), "duration"},
		"seven seconds":    {ltx, "/text-to-video", with(video, m{"duration": 7}), "duration"},
		"eleven seconds":   {ltx, "/text-to-video", with(video, m{"duration": 11}), "duration"},
		"720p":             {ltx, "/text-to-video", with(video, m{"resolution": "720p"}), "resolution"},
		"another ratio":    {ltx, "/text-to-video", with(video, m{"aspect_ratio": "square"}), "aspect_ratio"},
		"sound as a text":  {ltx, "/text-to-video", with(video, m{"generate_audio": "yes"}), "generate_audio"},
		"no prompt at all": {ltx, "/text-to-video", with(video, m{"prompt": " "}), "prompt"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := run(t, b, tc.app, tc.path, tc.body)
			switch {
			case tc.field == "" && got.Status != 200:
				t.Errorf("%d %s", got.Status, got.Raw)
			case tc.field != "" && (got.Status != 422 || got.Text("detail", 0, "loc", 1) != tc.field):
				t.Errorf("%d %s, want a refusal of %s", got.Status, got.Raw, tc.field)
			}
		})
	}
}
