package musicapi_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mediagate/mediagate/sandbox/sample"
	"github.com/mediagate/mediagate/sandbox/sandboxtest"
)

type m = sandboxtest.M

var with = sandboxtest.With

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func key(customer string) map[string]string {
	return map[string]string{"Authorization": "Bearer sandbox-musicapi-api-key" + customer}
}

const (
	sampling = "/musicapi/api/v1/sonic/sample"
	task     = "/musicapi/api/v1/sonic/task/"
)

func submit(t *testing.T, b *sandboxtest.Sandbox, body m) sandboxtest.Answer {
	t.Helper()
	return b.Call(t, "POST", sampling, key(""), body)
}

func query(t *testing.T, b *sandboxtest.Sandbox, id string) sandboxtest.Answer {
	t.Helper()
	return b.Call(t, "GET", task+id, key(""), nil)
}

func custom(link, prompt string) m {
	return m{
		"url": link, "chop_sample_start_s": 0, "chop_sample_end_s": 9.5, "custom_mode": true, "mv": "sonic-v5", "make_instrumental": false,
		"prompt": prompt, "title": "Winter", "tags": "pop",
	}
}

// files serves a song and a page.
func files(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/song.wav", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, sample.WAV(1)) })
	mux.HandleFunc("/page.mp3", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html></html>")) })
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return srv.URL
}

func TestRules(t *testing.T) {
	t.Parallel()
	b, base := sandboxtest.Open(t), files(t)
	link := base + "/song.wav"
	made := submit(t, b, custom(link, "la")).Text("task_id")
	b.Clock.Advance(2 * time.Second)
	clip := query(t, b, made).Text("data", 0, "clip_id")
	if clip == "" {
		t.Fatal("there is no song")
	}
	own := with(custom(link, "la"), m{"url": nil, "sample_clip_id": clip})
	described := m{"url": link, "custom_mode": false, "mv": "sonic-v4", "gpt_description_prompt": "snow"}
	long := func(n int) string { return strings.Repeat("ä", n) }
	for name, tc := range map[string]struct {
		body m
		says string // "" when no rule is broken
	}{
		"all of a clip":      {with(own, m{"chop_sample_end_s": 16.05}), ""},
		"a blank":            {custom(link, " "), ""},
		"all weights":        {with(own, m{"style_weight": 0, "weirdness_constraint": 1, "audio_weight": 0.333, "vocal_gender": "f", "negative_tags": "a"}), ""},
		"long lyrics, v4":    {with(own, m{"mv": "sonic-v4", "prompt": long(3001)}), "prompt"},
		"long lyrics":        {with(own, m{"prompt": long(5001)}), "prompt"},
		"long tags, v4":      {with(own, m{"mv": "sonic-v4", "tags": long(201)}), "tags"},
		"long tags":          {with(own, m{"tags": long(1001)}), "tags"},
		"long title":         {with(own, m{"title": long(81)}), "title"},
		"a long description": {with(described, m{"gpt_description_prompt": long(401)}), "gpt_description_prompt"},
		"no description":     {with(described, m{"gpt_description_prompt": nil}), "gpt_description_prompt"},
		"no lyrics":          {with(own, m{"prompt": nil}), "prompt"},
		"no mode":            {with(own, m{"custom_mode": nil}), "custom_mode"},
		"no model":           {with(own, m{"mv": nil}), "mv"},
		"lyrics of no mode":  {with(described, m{"auto_lyrics": true}), "auto_lyrics"},
		"a weight of 1.01":   {with(own, m{"style_weight": 1.01}), "style_weight"},
		"another field":      {with(own, m{"audio_id": clip}), "audio_id: unknown field"},
		"no song":            {with(own, m{"sample_clip_id": nil}), "there is no such clip"},
		"two songs":          {with(own, m{"url": link}), "url"},
		"a link of no file":  {custom(base+"/none", "la"), "cannot be fetched"},
		"a link of no sound": {custom(base+"/page.mp3", "la"), "is not a valid audio"},
		"backwards":          {with(own, m{"chop_sample_start_s": 9.5}), "after the start"},
		"beyond the end":     {with(own, m{"chop_sample_end_s": 16.06}), "beyond the end"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := submit(t, b, tc.body)
			switch {
			case tc.says == "" && (got.Status != 200 || got.Text("task_id") == ""):
				t.Errorf("%d %s", got.Status, got.Raw)
			case tc.says != "" && (got.Status != 400 || got.At("code") != 400.0 || !strings.Contains(got.Text("message"), tc.says)):
				t.Errorf("%d %s, want %q", got.Status, got.Raw, tc.says)
			}
		})
	}
	if got := b.Call(t, "POST", sampling, key("@acme"), own); got.Status != 400 || !strings.Contains(got.Text("message"), "no such clip") {
		t.Errorf("another customer's song: %d %s", got.Status, got.Raw)
	}
}

// A job is not ready first, then has two songs that stream, and then can be had as
// files. No answer names it.
func TestSongs(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	id := submit(t, b, custom(files(t)+"/song.wav", "[[sandbox: duration=10s]] la")).Text("task_id")
	if got := query(t, b, id); got.Status != 200 || got.Text("type") != "not_ready" || got.At("data") != nil {
		t.Errorf("queued: %d %s", got.Status, got.Raw)
	}
	b.Clock.Advance(5 * time.Second)
	running := query(t, b, id)
	if r := b.Call(t, "GET", running.Text("data", 0, "audio_url"), nil, nil); r.Status != 404 || running.At("data", 0, "duration") != nil {
		t.Errorf("a stream: %d of %s", r.Status, running.Raw)
	}
	b.Clock.Advance(5 * time.Second)
	done := query(t, b, id)
	if bytes.Contains(done.Raw, []byte(`"`+id+`"`)) || done.Text("data", 1, "duration") != "17.00" || done.At("data", 2) != nil {
		t.Errorf("%s", done.Raw)
	}
	if got := b.Call(t, "GET", "/musicapi/nothing", key(""), nil); got.Status != 404 {
		t.Errorf("no page: %d %s", got.Status, got.Raw)
	}
}
