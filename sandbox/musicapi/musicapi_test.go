package musicapi_test

import (
	"bytes"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mediagate/mediagate/media/mediainfo"
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
		"a link":                 {custom(link, "la"), ""},
		"a clip":                 {own, ""},
		"all of a clip":          {with(own, m{"chop_sample_end_s": 16.05}), ""},
		"a description":          {with(described, m{"gpt_description_prompt": long(400)}), ""},
		"a blank":                {custom(link, " "), ""},
		"lyrics to be written":   {with(own, m{"auto_lyrics": true}), ""},
		"all weights":            {with(own, m{"style_weight": 0, "weirdness_constraint": 1, "audio_weight": 0.333, "vocal_gender": "f", "negative_tags": "a"}), ""},
		"lyrics, v4":             {with(own, m{"mv": "sonic-v4", "prompt": long(3000)}), ""},
		"long lyrics, v4":        {with(own, m{"mv": "sonic-v4", "prompt": long(3001)}), "prompt"},
		"long lyrics":            {with(own, m{"prompt": long(5001)}), "prompt"},
		"long tags, v4":          {with(own, m{"mv": "sonic-v4", "tags": long(201)}), "tags"},
		"long tags":              {with(own, m{"tags": long(1001)}), "tags"},
		"long title":             {with(own, m{"title": long(81)}), "title"},
		"a long description":     {with(described, m{"gpt_description_prompt": long(401)}), "gpt_description_prompt"},
		"no description":         {with(described, m{"gpt_description_prompt": nil}), "gpt_description_prompt"},
		"no lyrics":              {with(own, m{"prompt": nil}), "prompt"},
		"no mode":                {with(own, m{"custom_mode": nil}), "custom_mode"},
		"a mode that is a text":  {with(own, m{"custom_mode": "true"}), "custom_mode"},
		"no model":               {with(own, m{"mv": nil}), "mv"},
		"a newer model":          {with(own, m{"mv": "sonic-v6"}), "mv"},
		"lyrics of no mode":      {with(described, m{"auto_lyrics": true}), "auto_lyrics"},
		"a weight of 1.01":       {with(own, m{"style_weight": 1.01}), "style_weight"},
		"another gender":         {with(own, m{"vocal_gender": "male"}), "vocal_gender"},
		"another field":          {with(own, m{"audio_id": clip}), "audio_id: unknown field"},
		"no song":                {with(own, m{"sample_clip_id": nil}), "there is no such clip"},
		"an unknown song":        {with(own, m{"sample_clip_id": "1"}), "there is no such clip"},
		"two songs":              {with(own, m{"url": link}), "url"},
		"a link of no file":      {custom(base+"/none", "la"), "cannot be fetched"},
		"a link of no sound":     {custom(base+"/page.mp3", "la"), "is not a valid audio"},
		"a link that is none":    {custom("soon", "la"), "must be an http"},
		"a start before it":      {with(own, m{"chop_sample_start_s": -0.01}), "chop_sample_start_s"},
		"a start that is a text": {with(own, m{"chop_sample_start_s": "1"}), "chop_sample_start_s"},
		"backwards":              {with(own, m{"chop_sample_start_s": 9.5}), "after the start"},
		"beyond the end":         {with(own, m{"chop_sample_end_s": 16.06}), "beyond the end"},
		"a start beyond the end": {with(own, m{"chop_sample_start_s": 17, "chop_sample_end_s": nil}), "beyond the end"},
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

// A job is not ready first, then has two songs that stream, and then can be had
// as files. No answer names it.
func TestSongs(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	id := submit(t, b, custom(files(t)+"/song.wav", "[[sandbox: duration=10s]] la")).Text("task_id")
	got := query(t, b, id)
	if got.Status != 200 || got.Text("type") != "not_ready" || got.At("data") != nil {
		t.Fatalf("queued: %d %s", got.Status, got.Raw)
	}
	b.Clock.Advance(5 * time.Second)
	got = query(t, b, id)
	if got.Text("data", 1, "state") != "running" || got.At("data", 2) != nil || got.At("data", 0, "duration") != nil {
		t.Fatalf("running: %s", got.Raw)
	}
	if r := b.Call(t, "GET", got.Text("data", 0, "audio_url"), nil, nil); r.Status != 404 {
		t.Errorf("a stream: %d", r.Status)
	}
	b.Clock.Advance(5 * time.Second)
	got = query(t, b, id)
	if bytes.Contains(got.Raw, []byte(`"`+id+`"`)) {
		t.Errorf("the answer names the job: %s", got.Raw)
	}
	for i, seconds := range []string{"16.00", "17.00"} {
		if got.Text("data", i, "state") != "succeeded" || got.Text("data", i, "duration") != seconds {
			t.Fatalf("song %d: %s", i, got.Raw)
		}
		file := b.Call(t, "GET", got.Text("data", i, "audio_url"), nil, nil)
		facts, err := mediainfo.Inspect(bytes.NewReader(file.Raw))
		if err != nil || facts.Format.Word() != "mp3" || math.Abs(facts.Duration-float64(16+i)) > 0.1 {
			t.Errorf("song %d: %d of %+v (%v)", i, file.Status, facts, err)
		}
		if cover := b.Call(t, "GET", got.Text("data", i, "image_url"), nil, nil); cover.Header.Get("Content-Type") != "image/png" {
			t.Errorf("cover %d: %d", i, cover.Status)
		}
	}
	if film := b.Call(t, "GET", got.Text("data", 0, "video_url"), nil, nil); film.Header.Get("Content-Type") != "video/mp4" {
		t.Errorf("film: %d", film.Status)
	}
	if got := b.Call(t, "GET", task+id, key("@acme"), nil); got.Status != 400 || got.Text("message") != "task not found." {
		t.Errorf("another customer: %d %s", got.Status, got.Raw)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	b, link := sandboxtest.Open(t), files(t)+"/song.wav"
	for name, header := range map[string]map[string]string{
		"missing": nil, "wrong": {"Authorization": "Bearer nobody"}, "of another scheme": {"Authorization": "Token sandbox-musicapi-api-key"},
	} {
		if got := b.Call(t, "POST", sampling, header, custom(link, "la")); got.Status != 401 {
			t.Errorf("%s key: %d %s", name, got.Status, got.Raw)
		}
	}
	if got := b.Call(t, "POST", sampling, key("~2"), custom(link, "la")); got.Status != 200 {
		t.Errorf("renewed key: %d %s", got.Status, got.Raw)
	}
	if got := b.Call(t, "GET", "/musicapi/nothing", key(""), nil); got.Status != 404 {
		t.Errorf("no page: %d %s", got.Status, got.Raw)
	}
	directive := func(text string) m { return custom(link, "[["+"sandbox: "+text+"]] la") }
	for text, status := range map[string]int{"fail=moderation, at=submit": 403, "fail=reject": 400, "fail=internal, at=submit": 500, "fail=never": 400} {
		if got := submit(t, b, directive(text)); got.Status != status {
			t.Errorf("%s: %d %s", text, got.Status, got.Raw)
		}
	}
	for text, says := range map[string]string{"fail=moderation": "inappropriate", "fail=reject, at=poll": "could not be made"} {
		id := submit(t, b, directive(text)).Text("task_id")
		b.Clock.Advance(2 * time.Second)
		if got := query(t, b, id); got.Text("data", 0, "state") != "failed" || !strings.Contains(got.Text("data", 0, "message"), says) {
			t.Errorf("%s: %s", text, got.Raw)
		}
	}
	id := submit(t, b, directive("fail=internal, at=poll, times=1")).Text("task_id")
	if first, second := query(t, b, id).Status, query(t, b, id).Status; first != 500 || second != 200 {
		t.Errorf("internal at poll: %d, then %d", first, second)
	}
	for i, status := range []int{200, 429} {
		if got := b.Call(t, "POST", sampling, key("@one*1"), custom(link, "la")); got.Status != status {
			t.Errorf("job %d at once: %d %s", i, got.Status, got.Raw)
		}
	}
}
