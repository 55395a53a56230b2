package minimax_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mediagate/mediagate/sandbox"
	"github.com/mediagate/mediagate/sandbox/sandboxtest"
)

func firstVideo() m {
	return m{"model": "MiniMax-Hailuo-02", "prompt": "a fox", "duration": 6, "resolution": "768P"}
}

// code is what the first generation says beside its HTTP 200.
func code(a sandboxtest.Answer) any { return a.At("base_resp", "status_code") }

func TestFirstRules(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	image := func(change m) m { return with(m{"first_frame_image": picture}, change) }
	for name, tc := range map[string]struct {
		change m
		field  string // names the broken rule; "" when there is none
	}{
		"everything":             {m{"prompt_optimizer": false, "fast_pretreatment": true, "aigc_watermark": true, "callback_url": "https://cb.example.com", "first_frame_image": picture, "last_frame_image": picture}, ""},
		"no model":               {m{"model": nil}, "model"},
		"the other generation's": {m{"model": "MiniMax-H3"}, "model"},
		"no prompt":              {m{"prompt": nil}, "prompt"},
		"prompt 2001":            {m{"prompt": strings.Repeat("é", 2001)}, "prompt"},
		"callback no url":        {m{"callback_url": "there"}, "callback_url"},
		"unknown":                {m{"seed": 1}, "seed"},
		"duration 5":             {m{"duration": 5}, "duration"},
		"1080P, 10":              {m{"resolution": "1080P", "duration": 10}, "duration"},
		"2K":                     {m{"resolution": "2K"}, "resolution"},
		"512P, text":             {m{"resolution": "512P"}, "resolution"},
		"512P, both frames":      {image(m{"resolution": "512P", "last_frame_image": picture}), "last_frame_image"},
		"2.3, 512P":              {image(m{"model": "MiniMax-Hailuo-2.3", "resolution": "512P"}), "resolution"},
		"2.3, last frame":        {image(m{"model": "MiniMax-Hailuo-2.3", "last_frame_image": picture}), "last_frame_image"},
		"fast, text":             {m{"model": "MiniMax-Hailuo-2.3-Fast"}, "first_frame_image"},
		"no link":                {image(m{"first_frame_image": "a.png"}), "first_frame_image"},
		"no base64":              {image(m{"first_frame_image": "data:image/png;base64,!"}), "first_frame_image"},
		"a gif":                  {image(m{"first_frame_image": uri("image/gif", []byte("GIF89a"))}), "first_frame_image"},
		"no picture":             {image(m{"first_frame_image": uri("image/png", []byte("hello"))}), "first_frame_image"},
		"300 pixels":             {image(m{"first_frame_image": pngURI(t, 300, 400)}), "first_frame_image"},
		"below 2:5":              {image(m{"last_frame_image": pngURI(t, 400, 1001)}), "last_frame_image"},
		"20 MB":                  {image(m{"first_frame_image": bigURI(t, 20<<20)}), "first_frame_image"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := call(t, b, "POST", "/v1/video_generation", with(firstVideo(), tc.change))
			if tc.field == "" {
				if got.Status != 200 || code(got) != 0.0 || got.Text("task_id") == "" {
					t.Errorf("refused: %d %s", got.Status, got.Raw)
				}
				return
			}
			if got.Status != 200 || code(got) != 2013.0 || got.Text("task_id") != "" || !strings.Contains(got.Text("base_resp", "status_msg"), ", "+tc.field+":") {
				t.Errorf("%d %s, want code 2013 naming %s", got.Status, got.Raw, tc.field)
			}
		})
	}
}

func TestRateLimit(t *testing.T) {
	t.Parallel()
	b := sandboxtest.OpenIn(t, t.TempDir(), sandboxtest.NewClock(), []sandbox.Account{
		{Provider: "minimax", Credentials: map[string]string{"api_key": "sk-sandbox-minimax"}, Concurrency: 1},
	})
	if got := call(t, b, "POST", "/v1/video_generation", firstVideo()); code(got) != 0.0 {
		t.Fatalf("%s", got.Raw)
	}
	if got := call(t, b, "POST", "/v1/video_generation", firstVideo()); got.Status != 200 || code(got) != 1002.0 {
		t.Errorf("first: %d %s", got.Status, got.Raw)
	}
	if got := call(t, b, "POST", "/v2/video_generation", secondVideo()); got.Status != 429 || got.Text("error", "type") != "rate_limit_error" {
		t.Errorf("second: %d %s", got.Status, got.Raw)
	}
}

// The file has an id of its own, which is known once the job has ended. Each question
// for it gives a link for an hour. A watermark is in the one file that there is.
func TestFirstFile(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	submit := func(change m) string {
		return call(t, b, "POST", "/v1/video_generation", with(firstVideo(), change)).Text("task_id")
	}
	query := func(id string) sandboxtest.Answer {
		return call(t, b, "GET", "/v1/query/video_generation?task_id="+id, nil)
	}
	retrieve := func(file string) sandboxtest.Answer {
		return call(t, b, "GET", "/v1/files/retrieve?file_id="+file, nil)
	}
	clean := submit(m{"first_frame_image": pngURI(t, 400, 800), "resolution": "1080P"})
	marked := submit(m{"first_frame_image": pngURI(t, 400, 800), "resolution": "1080P", "aigc_watermark": true})
	var words []string
	for _, after := range []time.Duration{0, 100 * time.Millisecond, 100 * time.Millisecond, 1800 * time.Millisecond} {
		b.Clock.Advance(after)
		words = append(words, query(clean).Text("status"))
	}
	if !slices.Equal(words, []string{"Preparing", "Queueing", "Processing", "Success"}) {
		t.Errorf("states %v", words)
	}
	got := query(clean)
	if got.At("video_width") != 1080.0 || got.At("video_height") != 2160.0 {
		t.Errorf("the frame does not decide the shape: %s", got.Raw)
	}
	id := got.Text("file_id")
	file := retrieve(id)
	if id == clean || fmt.Sprintf("%.0f", file.At("file", "file_id")) != id || file.Text("file", "purpose") != "video_generation" {
		t.Errorf("retrieve: %s", file.Raw)
	}
	link := file.Text("file", "download_url")
	b.Clock.Advance(time.Hour - time.Second)
	raw := b.Call(t, "GET", link, nil, nil).Raw
	other := b.Call(t, "GET", retrieve(query(marked).Text("file_id")).Text("file", "download_url"), nil, nil).Raw
	if float64(len(raw)) != file.At("file", "bytes") || bytes.Equal(raw, other) {
		t.Errorf("files of %d and %d bytes", len(raw), len(other))
	}
	b.Clock.Advance(time.Second)
	if got := b.Call(t, "GET", link, nil, nil); got.Status != 403 {
		t.Errorf("an old link: %d", got.Status)
	}
	b.Clock.Advance(-time.Hour - 500*time.Millisecond)
	for _, file := range []string{id, "1", "x", clean} { // the first one's job is under way again
		if got := retrieve(file); got.Status != 200 || code(got) != 2013.0 {
			t.Errorf("file %s: %d %s", file, got.Status, got.Raw)
		}
	}
	if got := call(t, b, "GET", "/v2/query/video_generation/"+clean, nil); got.Status != 400 {
		t.Errorf("found by the other generation: %s", got.Raw)
	}
}
