package minimax_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mediagate/mediagate/sandbox/sandboxtest"
)

func textPart(text string) m { return m{"type": "text", "text": text} }

func mediaPart(kind, role, link string) m {
	return m{"type": kind, kind: m{"url": link}, "role": role}
}

func secondVideo(content ...m) m {
	if len(content) == 0 {
		content = []m{textPart("a fox")}
	}
	return m{"model": "MiniMax-H3", "content": content, "resolution": "768P", "duration": 5, "ratio": "16:9"}
}

func TestSecondRules(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	const clip, song = "https://cdn.example.com/a.mp4", "https://cdn.example.com/a.mp3"
	frame := func(role string) m { return mediaPart("image_url", role, picture) }
	image := mediaPart("image_url", "reference_image", picture)
	video := mediaPart("video_url", "reference_video", clip)
	audio := mediaPart("audio_url", "reference_audio", song)
	data := func(link string) m { return mediaPart("image_url", "reference_image", link) }
	videoOf := func(seconds int) m { return mediaPart("video_url", "reference_video", videoURI(seconds)) }
	audioOf := func(link string) m { return mediaPart("audio_url", "reference_audio", link) }
	of := func(content ...m) m { return m{"content": content} }
	for name, tc := range map[string]struct {
		change m
		field  string // names the broken rule; "" when there is none
	}{
		"everything":       {m{"aigc_watermark": true, "callback_url": "https://cb.example.com", "resolution": "2K", "duration": 15, "ratio": "21:9"}, ""},
		"no model":         {m{"model": nil}, "model"},
		"no content":       {m{"content": nil}, "content"},
		"unknown":          {m{"seed": 1}, "seed"},
		"text 7001":        {of(textPart(strings.Repeat("é", 7001))), "content[0].text"},
		"two texts":        {of(textPart("a"), textPart("b")), "content"},
		"other type":       {of(m{"type": "file"}), "content[0].type"},
		"duration 3":       {m{"duration": 3}, "duration"},
		"text, no ratio":   {m{"ratio": nil}, "ratio"},
		"text, adaptive":   {m{"ratio": "adaptive"}, "ratio"},
		"both frames":      {of(frame("first_frame"), frame("last_frame")), ""},
		"last frame alone": {of(textPart("a"), frame("last_frame")), "content"},
		"two first frames": {of(frame("first_frame"), frame("first_frame")), "content"},
		"frame and image":  {of(frame("first_frame"), image), "content"},
		"no role":          {of(m{"type": "image_url", "image_url": m{"url": picture}}), "content[0].role"},
		"video as frame":   {of(mediaPart("video_url", "first_frame", clip)), "content[0].role"},
		"no url":           {of(m{"type": "image_url", "image_url": m{}, "role": "reference_image"}), "content[0].image_url.url"},
		"10 images":        {of(slices.Repeat([]m{image}, 10)...), "content"},
		"4 videos":         {of(slices.Repeat([]m{video}, 4)...), "content"},
		"4 audios":         {of(append(slices.Repeat([]m{audio}, 4), image)...), "content"},
		"audio and text":   {of(textPart("a"), audio), "content"},
		"255 pixels":       {of(data(pngURI(t, 255, 256))), "content[0].image_url.url"},
		"5761 pixels":      {of(data(pngURI(t, 256, 5761))), "content[0].image_url.url"},
		"no picture":       {of(data(uri("image/png", []byte("hello")))), "content[0].image_url.url"},
		"over 30 MB":       {of(data(bigURI(t, 30<<20+1))), "content[0].image_url.url"},
		"video 1 s":        {of(videoOf(1)), "content[0].video_url.url"},
		"video 2 s":        {of(videoOf(2)), ""},
		"video 16 s":       {of(videoOf(16)), "content[0].video_url.url"},
		"videos 16 s":      {of(videoOf(8), videoOf(8)), "content"},
		"audio 1.999 s":    {of(image, audioOf(wavURI(1999, 0))), "content[1].audio_url.url"},
		"audio 15.001 s":   {of(image, audioOf(wavURI(15001, 0))), "content[1].audio_url.url"},
		"audio over 15 MB": {of(image, audioOf(wavURI(2000, 15<<20-16043))), "content[1].audio_url.url"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := call(t, b, "POST", "/v2/video_generation", with(secondVideo(), tc.change))
			if tc.field == "" {
				if got.Status != 200 || got.Text("task_id") == "" {
					t.Errorf("refused: %d %s", got.Status, got.Raw)
				}
				return
			}
			if got.Status != 400 || got.Text("error", "type") != "bad_request_error" || got.Text("error", "http_code") != "400" ||
				!strings.Contains(got.Text("error", "message"), ", "+tc.field+":") || !strings.HasSuffix(got.Text("error", "message"), "(2013)") {
				t.Errorf("%d %s, want 400 naming %s", got.Status, got.Raw, tc.field)
			}
		})
	}
}

func TestSecondErrors(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	for name, tc := range map[string]struct {
		method, path, key string
		body              any
		status            int
		kind, code        string
	}{
		"no key":        {"POST", "/v2/video_generation", "", secondVideo(), 401, "authorized_error", "(1004)"},
		"foreign key":   {"POST", "/v2/video_generation", "Bearer sk-other", secondVideo(), 401, "authorized_error", "(2049)"},
		"no JSON":       {"POST", "/v2/video_generation", key["Authorization"], "{", 400, "bad_request_error", "(2013)"},
		"unknown task":  {"GET", "/v2/query/video_generation/1", key["Authorization"], nil, 400, "bad_request_error", "(2013)"},
		"unknown, gone": {"DELETE", "/v2/video_generation/1", key["Authorization"], nil, 400, "bad_request_error", "(2013)"},
		"other path":    {"GET", "/v3/video_generation", key["Authorization"], nil, 404, "bad_request_error", "not found"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := b.Call(t, tc.method, "/minimax"+tc.path, map[string]string{"Authorization": tc.key}, tc.body)
			if got.Status != tc.status || got.Text("type") != "error" || got.Text("error", "type") != tc.kind || !strings.HasSuffix(got.Text("error", "message"), tc.code) {
				t.Errorf("%d %s, want %d %s %s", got.Status, got.Raw, tc.status, tc.kind, tc.code)
			}
			if trace := got.Header.Get("Trace-Id"); trace == "" || trace != got.Text("request_id") {
				t.Errorf("trace %q beside %s", trace, got.Raw)
			}
		})
	}
	if jobs := b.Jobs(t, ""); len(jobs) != 0 {
		t.Errorf("%d jobs were made", len(jobs))
	}
}

// What a job was made from counts. It is kept for a week, or until its customer deletes
// it, also when the sandbox was killed.
func TestSecondJobs(t *testing.T) {
	t.Parallel()
	dir, clock := t.TempDir(), sandboxtest.NewClock()
	b := sandboxtest.OpenIn(t, dir, clock, nil)
	content := secondVideo(
		textPart("a fox"), mediaPart("video_url", "reference_video", videoURI(4)), mediaPart("image_url", "reference_image", pngURI(t, 300, 300)),
	)
	made := call(t, b, "POST", "/v2/video_generation", content)
	id, other := made.Text("task_id"), call(t, b, "POST", "/v2/video_generation", secondVideo()).Text("task_id")
	if made.Header.Get("Trace-Id") == "" {
		t.Errorf("no trace: %s", made.Raw)
	}
	clock.Advance(2 * time.Second)
	query := func(id string) sandboxtest.Answer { return call(t, b, "GET", "/v2/query/video_generation/"+id, nil) }
	got := query(id)
	for path, want := range map[string]any{"total_seconds": 9.0, "input_seconds": 4.0, "output_seconds": 5.0, "input_image_count": 1.0} {
		if got.At("task", "usage", path) != want {
			t.Errorf("usage: %s is %v, want %v", path, got.At("task", "usage", path), want)
		}
	}
	if got := call(t, b, "DELETE", "/v2/video_generation/"+other, nil); got.Status != 200 {
		t.Errorf("deleted after its end: %d %s", got.Status, got.Raw)
	}
	b = sandboxtest.OpenIn(t, dir, clock, nil)
	if got := query(other); got.Status != 400 {
		t.Errorf("a deleted job: %d %s", got.Status, got.Raw)
	}
	clock.Advance(7*24*time.Hour - 2*time.Second - time.Millisecond)
	if got := query(id); got.Status != 200 {
		t.Errorf("within 7 days: %d %s", got.Status, got.Raw)
	}
	clock.Advance(time.Millisecond)
	if got := query(id); got.Status != 400 || !strings.Contains(got.Text("error", "message"), "task_id") {
		t.Errorf("after 7 days: %d %s", got.Status, got.Raw)
	}
}
