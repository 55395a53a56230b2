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
		"plain":                 {m{}, ""},
		"everything":            {m{"aigc_watermark": true, "callback_url": "https://cb.example.com", "resolution": "2K", "duration": 15, "ratio": "21:9"}, ""},
		"least":                 {m{"resolution": nil, "duration": nil}, ""},
		"no model":              {m{"model": nil}, "model"},
		"other model":           {m{"model": "MiniMax-Hailuo-02"}, "model"},
		"no content":            {m{"content": nil}, "content"},
		"empty content":         {of(), "content"},
		"content text":          {m{"content": "a fox"}, "content"},
		"unknown":               {m{"seed": 1}, "seed"},
		"prompt":                {m{"prompt": "x"}, "prompt"},
		"blank":                 {of(textPart(" ")), "content"},
		"text 7000":             {of(textPart(strings.Repeat("é", 7000))), ""},
		"text 7001":             {of(textPart(strings.Repeat("é", 7001))), "content[0].text"},
		"two texts":             {of(textPart("a"), textPart("b")), "content"},
		"no type":               {of(m{"text": "a"}), "content[0].type"},
		"other type":            {of(m{"type": "file"}), "content[0].type"},
		"text with role":        {of(m{"type": "text", "text": "a", "role": "user"}), "content[0].role"},
		"duration 3":            {m{"duration": 3}, "duration"},
		"duration 4":            {m{"duration": 4}, ""},
		"duration 16":           {m{"duration": 16}, "duration"},
		"duration word":         {m{"duration": "5"}, "duration"},
		"1080P":                 {m{"resolution": "1080P"}, "resolution"},
		"ratio 9:16":            {m{"ratio": "9:16"}, ""},
		"ratio 2:3":             {m{"ratio": "2:3"}, "ratio"},
		"text, no ratio":        {m{"ratio": nil}, "ratio"},
		"text, adaptive":        {m{"ratio": "adaptive"}, "ratio"},
		"frame, no ratio":       {m{"ratio": nil, "content": []m{frame("first_frame")}}, ""},
		"image, adaptive":       {m{"ratio": "adaptive", "content": []m{textPart("a"), image}}, ""},
		"callback no url":       {m{"callback_url": "there"}, "callback_url"},
		"watermark word":        {m{"aigc_watermark": 1}, "aigc_watermark"},
		"first frame":           {of(textPart("a"), frame("first_frame")), ""},
		"both frames":           {of(frame("first_frame"), frame("last_frame")), ""},
		"last frame alone":      {of(textPart("a"), frame("last_frame")), "content"},
		"two first frames":      {of(frame("first_frame"), frame("first_frame")), "content"},
		"two last frames":       {of(frame("first_frame"), frame("last_frame"), frame("last_frame")), "content"},
		"frame and image":       {of(frame("first_frame"), image), "content"},
		"frame and video":       {of(frame("first_frame"), video), "content"},
		"frame and audio":       {of(frame("first_frame"), audio), "content"},
		"no role":               {of(m{"type": "image_url", "image_url": m{"url": picture}}), "content[0].role"},
		"foreign role":          {of(mediaPart("image_url", "reference_video", picture)), "content[0].role"},
		"video as frame":        {of(mediaPart("video_url", "first_frame", clip)), "content[0].role"},
		"url as text":           {of(m{"type": "image_url", "image_url": picture, "role": "reference_image"}), "content[0].image_url"},
		"no url":                {of(m{"type": "image_url", "image_url": m{}, "role": "reference_image"}), "content[0].image_url.url"},
		"url beside":            {of(m{"type": "image_url", "image_url": m{"url": picture, "detail": "high"}, "role": "reference_image"}), "content[0].image_url.detail"},
		"9 images":              {of(slices.Repeat([]m{image}, 9)...), ""},
		"10 images":             {of(slices.Repeat([]m{image}, 10)...), "content"},
		"3 videos":              {of(slices.Repeat([]m{video}, 3)...), ""},
		"4 videos":              {of(slices.Repeat([]m{video}, 4)...), "content"},
		"3 audios":              {of(append(slices.Repeat([]m{audio}, 3), image)...), ""},
		"4 audios":              {of(append(slices.Repeat([]m{audio}, 4), image)...), "content"},
		"audio and video":       {of(audio, video), ""},
		"audio and text":        {of(textPart("a"), audio), "content"},
		"256 pixels":            {of(data(pngURI(t, 256, 5760))), ""},
		"255 pixels":            {of(data(pngURI(t, 255, 256))), "content[0].image_url.url"},
		"5761 pixels":           {of(data(pngURI(t, 256, 5761))), "content[0].image_url.url"},
		"webp":                  {of(data(webpURI(256, 256))), ""},
		"no picture":            {of(data(uri("image/png", []byte("hello")))), "content[0].image_url.url"},
		"a picture as video":    {of(mediaPart("video_url", "reference_video", pngURI(t, 256, 256))), "content[0].video_url.url"},
		"30 MB":                 {of(data(bigURI(t, 30<<20))), ""},
		"over 30 MB":            {of(data(bigURI(t, 30<<20+1))), "content[0].image_url.url"},
		"video 1 s":             {of(videoOf(1)), "content[0].video_url.url"},
		"video 2 s":             {of(videoOf(2)), ""},
		"video 15 s":            {of(videoOf(15)), ""},
		"video 16 s":            {of(videoOf(16)), "content[0].video_url.url"},
		"videos 15 s":           {of(videoOf(8), videoOf(7)), ""},
		"videos 16 s":           {of(videoOf(8), videoOf(8)), "content"},
		"no video":              {of(mediaPart("video_url", "reference_video", uri("video/mp4", []byte("hello")))), "content[0].video_url.url"},
		"audio 1.999 s":         {of(image, audioOf(wavURI(1999, 0))), "content[1].audio_url.url"},
		"audio 2 s":             {of(image, audioOf(wavURI(2000, 0))), ""},
		"audio 15 s":            {of(image, audioOf(wavURI(15000, 0))), ""},
		"audio 15.001 s":        {of(image, audioOf(wavURI(15001, 0))), "content[1].audio_url.url"},
		"audio 15 MB":           {of(image, audioOf(wavURI(2000, 15<<20-16044))), ""},
		"audio over 15 MB":      {of(image, audioOf(wavURI(2000, 15<<20-16043))), "content[1].audio_url.url"},
		"mp3 of unknown length": {of(image, audioOf(uri("audio/mpeg", []byte("ID3")))), ""},
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

func TestBodySize(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	const body = `{"model":"MiniMax-H3","content":[{"type":"text","text":"a"}],"ratio":"1:1"}`
	for size, want := range map[int]int{64 << 20: 200, 64<<20 + 1: 400} {
		if got := call(t, b, "POST", "/v2/video_generation", body+strings.Repeat(" ", size-len(body))); got.Status != want {
			t.Errorf("%d bytes: %d %s", size, got.Status, got.Raw)
		}
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
		"no key":         {"POST", "/v2/video_generation", "", secondVideo(), 401, "authorized_error", "(1004)"},
		"foreign key":    {"POST", "/v2/video_generation", "Bearer sk-other", secondVideo(), 401, "authorized_error", "(2049)"},
		"no JSON":        {"POST", "/v2/video_generation", key["Authorization"], "{", 400, "bad_request_error", "(2013)"},
		"reject":         {"POST", "/v2/video_generation", key["Authorization"], secondVideo(textPart("[[sandbox: fail=reject]]")), 400, "bad_request_error", "(2013)"},
		"moderation":     {"POST", "/v2/video_generation", key["Authorization"], secondVideo(textPart("[[sandbox: fail=moderation, at=submit]]")), 422, "unprocessable_entity_error", "(1026)"},
		"internal":       {"POST", "/v2/video_generation", key["Authorization"], secondVideo(textPart("[[sandbox: fail=internal, at=submit]]")), 500, "server_error", "(1024)"},
		"unknown task":   {"GET", "/v2/query/video_generation/1", key["Authorization"], nil, 400, "bad_request_error", "(2013)"},
		"unknown, gone":  {"DELETE", "/v2/video_generation/1", key["Authorization"], nil, 400, "bad_request_error", "(2013)"},
		"page 0":         {"GET", "/v2/query/video_generation?page_num=0", key["Authorization"], nil, 400, "bad_request_error", "(2013)"},
		"page size 101":  {"GET", "/v2/query/video_generation?page_size=101", key["Authorization"], nil, 400, "bad_request_error", "(2013)"},
		"other path":     {"GET", "/v3/video_generation", key["Authorization"], nil, 404, "bad_request_error", "not found"},
		"another method": {"PUT", "/v2/video_generation", key["Authorization"], nil, 404, "bad_request_error", "not found"},
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

func second(t *testing.T, b *sandboxtest.Sandbox, content ...m) (id string, query func() sandboxtest.Answer) {
	t.Helper()
	got := call(t, b, "POST", "/v2/video_generation", with(secondVideo(content...), m{"ratio": "adaptive"}))
	if len(content) < 2 {
		got = call(t, b, "POST", "/v2/video_generation", secondVideo(content...))
	}
	id = got.Text("task_id")
	if id == "" || got.Header.Get("Trace-Id") == "" {
		t.Fatalf("%d %s", got.Status, got.Raw)
	}
	return id, func() sandboxtest.Answer { return call(t, b, "GET", "/v2/query/video_generation/"+id, nil) }
}

func TestSecondLife(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	id, query := second(t, b, textPart("a fox"), mediaPart("video_url", "reference_video", videoURI(4)), mediaPart("image_url", "reference_image", pngURI(t, 300, 300)))
	var got sandboxtest.Answer
	for _, step := range []struct {
		after time.Duration
		word  string
	}{{0, "queued"}, {199 * time.Millisecond, "queued"}, {time.Millisecond, "running"}, {1799 * time.Millisecond, "running"}, {time.Millisecond, "succeeded"}} {
		b.Clock.Advance(step.after)
		if got = query(); got.Status != 200 || got.Text("task", "status") != step.word || got.Text("task", "id") != id || got.Text("task", "model") != "MiniMax-H3" {
			t.Fatalf("%s, want %s", got.Raw, step.word)
		}
	}
	for path, want := range map[string]any{"duration": 5.0, "resolution": "768P", "ratio": "adaptive"} {
		if got.At("task", path) != want {
			t.Errorf("%s is %v, want %v", path, got.At("task", path), want)
		}
	}
	for path, want := range map[string]any{"total_seconds": 9.0, "input_seconds": 4.0, "output_seconds": 5.0, "input_image_count": 1.0} {
		if got.At("task", "usage", path) != want {
			t.Errorf("usage: %s is %v, want %v", path, got.At("task", "usage", path), want)
		}
	}
	file := b.Call(t, "GET", got.Text("task", "content", "url"), nil, nil)
	if file.Status != 200 || !strings.Contains(string(file.Raw[:32]), "ftyp") {
		t.Errorf("file: %d", file.Status)
	}
	b.Clock.Advance(7*24*time.Hour - 2*time.Second - time.Millisecond)
	if got := query(); got.Status != 200 {
		t.Errorf("within 7 days: %d %s", got.Status, got.Raw)
	}
	b.Clock.Advance(time.Millisecond)
	if got := query(); got.Status != 400 || !strings.Contains(got.Text("error", "message"), "task_id") {
		t.Errorf("after 7 days: %d %s", got.Status, got.Raw)
	}
	if got := call(t, b, "GET", "/v2/query/video_generation", nil); got.At("total") != 0.0 {
		t.Errorf("listed after 7 days: %s", got.Raw)
	}
}

func TestSecondFailures(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	_, moderation := second(t, b, textPart("[[sandbox: fail=moderation]]"))
	_, reject := second(t, b, textPart("[[sandbox: fail=reject, at=poll]]"))
	_, broken := second(t, b, textPart("[[sandbox: fail=internal, times=1]]"))
	b.Clock.Advance(2 * time.Second)
	if got := moderation(); got.Status != 200 || got.Text("task", "status") != "failed" || !strings.HasSuffix(got.Text("task", "error", "message"), "(1027)") {
		t.Errorf("moderation: %d %s", got.Status, got.Raw)
	}
	if got := reject(); got.Text("task", "status") != "failed" || got.Text("task", "error", "code") == "" || got.At("task", "content") != nil {
		t.Errorf("reject: %s", got.Raw)
	}
	if got := broken(); got.Status != 500 || got.Text("error", "type") != "server_error" {
		t.Errorf("internal: %d %s", got.Status, got.Raw)
	}
	if got := broken(); got.Text("task", "status") != "succeeded" {
		t.Errorf("after it: %s", got.Raw)
	}
}

func TestDelete(t *testing.T) {
	t.Parallel()
	dir, c := t.TempDir(), sandboxtest.NewClock()
	b := sandboxtest.OpenIn(t, dir, c, nil)
	remove := func(id string) sandboxtest.Answer { return call(t, b, "DELETE", "/v2/video_generation/"+id, nil) }
	cancelled, query := second(t, b)
	other, _ := second(t, b)
	if got := remove(cancelled); got.Status != 200 {
		t.Fatalf("queued: %d %s", got.Status, got.Raw)
	}
	if got := remove(cancelled); got.Status != 400 || !strings.Contains(got.Text("error", "message"), "cancelled") {
		t.Errorf("cancelled: %d %s", got.Status, got.Raw)
	}
	c.Advance(time.Second)
	if got := remove(other); got.Status != 400 || !strings.Contains(got.Text("error", "message"), "running") {
		t.Errorf("running: %d %s", got.Status, got.Raw)
	}
	c.Advance(time.Second)
	if got := query(); got.Text("task", "status") != "cancelled" || got.At("task", "content") != nil {
		t.Errorf("cancelled: %s", got.Raw)
	}
	if got := remove(other); got.Status != 200 {
		t.Errorf("succeeded: %d %s", got.Status, got.Raw)
	}

	// Both changes are kept.
	b = sandboxtest.OpenIn(t, dir, c, nil)
	if got := call(t, b, "GET", "/v2/query/video_generation/"+cancelled, nil); got.Text("task", "status") != "cancelled" {
		t.Errorf("cancelled, after a kill: %s", got.Raw)
	}
	if got := call(t, b, "GET", "/v2/query/video_generation/"+other, nil); got.Status != 400 {
		t.Errorf("removed, after a kill: %s", got.Raw)
	}
	if got := call(t, b, "GET", "/v2/query/video_generation", nil); got.At("total") != 1.0 || got.Text("tasks", 0, "id") != cancelled {
		t.Errorf("list: %s", got.Raw)
	}
	jobs := b.Jobs(t, "?provider=minimax")
	if len(jobs) != 2 {
		t.Fatalf("%d jobs, want 2", len(jobs))
	}
	first, _ := jobs[0].(m)
	if calls, _ := first["calls"].(m); first["state"] != "cancelled" || calls["cancel"] != 2.0 {
		t.Errorf("job: %v", first)
	}
}

func TestSecondList(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	var made []string
	for range 3 {
		id, _ := second(t, b)
		made = append([]string{id}, made...)
	}
	call(t, b, "POST", "/v1/video_generation", firstVideo())
	for query, want := range map[string][]string{"": made, "?page_size=2": made[:2], "?page_num=2&page_size=2": made[2:], "?page_num=3&page_size=2": nil} {
		got := call(t, b, "GET", "/v2/query/video_generation"+query, nil)
		list, _ := got.At("tasks").([]any)
		var ids []string
		for i := range list {
			ids = append(ids, got.Text("tasks", i, "id"))
		}
		if !slices.Equal(ids, want) || got.At("total") != 3.0 {
			t.Errorf("%q: %s, want %v", query, got.Raw, want)
		}
	}
}
