package minimax_test

import (
	"fmt"
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
		"plain":                  {m{}, ""},
		"everything":             {m{"prompt_optimizer": false, "fast_pretreatment": true, "aigc_watermark": true, "callback_url": "https://cb.example.com", "first_frame_image": picture, "last_frame_image": picture}, ""},
		"least":                  {m{"duration": nil, "resolution": nil}, ""},
		"no model":               {m{"model": nil}, "model"},
		"unknown model":          {m{"model": "MiniMax-Hailuo-9"}, "model"},
		"the other generation's": {m{"model": "MiniMax-H3"}, "model"},
		"model number":           {m{"model": 2}, "model"},
		"no prompt":              {m{"prompt": nil}, "prompt"},
		"blank prompt":           {m{"prompt": " \n"}, "prompt"},
		"image without prompt":   {image(m{"prompt": nil}), ""},
		"prompt 2000":            {m{"prompt": strings.Repeat("é", 2000)}, ""},
		"prompt 2001":            {m{"prompt": strings.Repeat("é", 2001)}, "prompt"},
		"optimizer word":         {m{"prompt_optimizer": "true"}, "prompt_optimizer"},
		"pretreatment word":      {m{"fast_pretreatment": 1}, "fast_pretreatment"},
		"watermark word":         {m{"aigc_watermark": "yes"}, "aigc_watermark"},
		"callback no url":        {m{"callback_url": "there"}, "callback_url"},
		"subject":                {m{"subject_reference": []m{{"type": "character"}}}, "subject_reference"},
		"unknown":                {m{"seed": 1}, "seed"},
		"duration 5":             {m{"duration": 5}, "duration"},
		"duration 7":             {m{"duration": 7}, "duration"},
		"duration 10":            {m{"duration": 10}, ""},
		"duration 11":            {m{"duration": 11}, "duration"},
		"duration word":          {m{"duration": "6"}, "duration"},
		"1080P, 6":               {m{"resolution": "1080P"}, ""},
		"1080P, 10":              {m{"resolution": "1080P", "duration": 10}, "duration"},
		"768p":                   {m{"resolution": "768p"}, "resolution"},
		"2K":                     {m{"resolution": "2K"}, "resolution"},
		"512P, text":             {m{"resolution": "512P"}, "resolution"},
		"512P, image":            {image(m{"resolution": "512P"}), ""},
		"512P, image, 10":        {image(m{"resolution": "512P", "duration": 10}), ""},
		"512P, both frames":      {image(m{"resolution": "512P", "last_frame_image": picture}), "last_frame_image"},
		"2.3, text":              {m{"model": "MiniMax-Hailuo-2.3"}, ""},
		"2.3, 512P":              {image(m{"model": "MiniMax-Hailuo-2.3", "resolution": "512P"}), "resolution"},
		"2.3, 1080P, 10":         {m{"model": "MiniMax-Hailuo-2.3", "resolution": "1080P", "duration": 10}, "duration"},
		"2.3, last frame":        {image(m{"model": "MiniMax-Hailuo-2.3", "last_frame_image": picture}), "last_frame_image"},
		"fast, image":            {image(m{"model": "MiniMax-Hailuo-2.3-Fast"}), ""},
		"fast, text":             {m{"model": "MiniMax-Hailuo-2.3-Fast"}, "first_frame_image"},
		"no link":                {image(m{"first_frame_image": "a.png"}), "first_frame_image"},
		"bare base64":            {image(m{"first_frame_image": "aGVsbG8="}), "first_frame_image"},
		"no base64":              {image(m{"first_frame_image": "data:image/png;base64,!"}), "first_frame_image"},
		"a gif":                  {image(m{"first_frame_image": uri("image/gif", []byte("GIF89a"))}), "first_frame_image"},
		"no picture":             {image(m{"first_frame_image": uri("image/png", []byte("hello"))}), "first_frame_image"},
		"301 pixels":             {image(m{"first_frame_image": pngURI(t, 301, 301)}), ""},
		"300 pixels":             {image(m{"first_frame_image": pngURI(t, 300, 400)}), "first_frame_image"},
		"5:2":                    {image(m{"first_frame_image": pngURI(t, 1000, 400)}), ""},
		"over 5:2":               {image(m{"first_frame_image": pngURI(t, 1001, 400)}), "first_frame_image"},
		"2:5":                    {image(m{"last_frame_image": pngURI(t, 400, 1000)}), ""},
		"below 2:5":              {image(m{"last_frame_image": pngURI(t, 400, 1001)}), "last_frame_image"},
		"jpeg":                   {image(m{"first_frame_image": jpegURI(t, 400, 400)}), ""},
		"webp":                   {image(m{"first_frame_image": webpURI(400, 400)}), ""},
		"webp, 300 pixels":       {image(m{"first_frame_image": webpURI(300, 300)}), "first_frame_image"},
		"below 20 MB":            {image(m{"first_frame_image": bigURI(t, 20<<20-1)}), ""},
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

func TestFirstKeys(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	for header, want := range map[string]float64{
		"": 1004, "Bearer ": 1004, "sk-sandbox-minimax": 1004, "Bearer sk-other": 2049, "Bearer sk-sandbox-minimax": 2013,
	} {
		got := b.Call(t, "GET", "/minimax/v1/query/video_generation?task_id=1", map[string]string{"Authorization": header}, nil)
		if got.Status != 200 || code(got) != want || got.Header.Get("Trace-Id") == "" {
			t.Errorf("%q: %d %s, want code %v", header, got.Status, got.Raw, want)
		}
	}
}

func TestFirstLife(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	got := call(t, b, "POST", "/v1/video_generation", with(firstVideo(), m{"prompt": "a fox [[sandbox: duration=20s]]"}))
	id := got.Text("task_id")
	poll := func() sandboxtest.Answer { return call(t, b, "GET", "/v1/query/video_generation?task_id="+id, nil) }
	for _, step := range []struct {
		after time.Duration
		word  string
	}{
		{0, "Preparing"},
		{999 * time.Millisecond, "Preparing"},
		{time.Millisecond, "Queueing"},
		{999 * time.Millisecond, "Queueing"},
		{time.Millisecond, "Processing"},
		{18*time.Second - time.Millisecond, "Processing"},
		{time.Millisecond, "Success"},
	} {
		if got := poll(); got.Text("file_id") != "" {
			t.Errorf("a file before the end: %s", got.Raw)
		}
		b.Clock.Advance(step.after)
		if got = poll(); got.Status != 200 || code(got) != 0.0 || got.Text("status") != step.word || got.Text("task_id") != id {
			t.Fatalf("%s, want %s", got.Raw, step.word)
		}
	}
	if got.At("video_width") != 1366.0 || got.At("video_height") != 768.0 {
		t.Errorf("size: %s", got.Raw)
	}
	fileID := got.Text("file_id")
	if fileID == "" || fileID == id {
		t.Fatalf("file: %s", got.Raw)
	}
	retrieve := func() sandboxtest.Answer { return call(t, b, "GET", "/v1/files/retrieve?file_id="+fileID, nil) }
	got = retrieve()
	link := got.Text("file", "download_url")
	if code(got) != 0.0 || fmt.Sprintf("%.0f", got.At("file", "file_id")) != fileID || got.Text("file", "purpose") != "video_generation" {
		t.Errorf("retrieve: %s", got.Raw)
	}
	b.Clock.Advance(time.Hour - time.Second)
	if file := b.Call(t, "GET", link, nil, nil); file.Status != 200 || float64(len(file.Raw)) != got.At("file", "bytes") {
		t.Errorf("file: %d, %d bytes of %v", file.Status, len(file.Raw), got.At("file", "bytes"))
	}
	b.Clock.Advance(time.Second)
	if file := b.Call(t, "GET", link, nil, nil); file.Status != 403 {
		t.Errorf("an old link: %d", file.Status)
	}
	if file := b.Call(t, "GET", retrieve().Text("file", "download_url"), nil, nil); file.Status != 200 {
		t.Errorf("a fresh link: %d", file.Status)
	}
	for _, path := range []string{"/v1/files/retrieve?file_id=1", "/v1/files/retrieve?file_id=x", "/v1/files/retrieve?file_id=" + id, "/v1/query/video_generation?task_id=1"} {
		if got := call(t, b, "GET", path, nil); got.Status != 200 || code(got) != 2013.0 {
			t.Errorf("%s: %d %s", path, got.Status, got.Raw)
		}
	}
	if got := call(t, b, "GET", "/v2/query/video_generation/"+id, nil); got.Status != 400 {
		t.Errorf("found by the other generation: %s", got.Raw)
	}
}

func TestFirstFileTooEarly(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	id := call(t, b, "POST", "/v1/video_generation", firstVideo()).Text("task_id")
	b.Clock.Advance(2 * time.Second)
	fileID := call(t, b, "GET", "/v1/query/video_generation?task_id="+id, nil).Text("file_id")
	again := sandboxtest.Open(t)
	if got := call(t, again, "GET", "/v1/files/retrieve?file_id="+fileID, nil); code(got) != 2013.0 {
		t.Errorf("another sandbox's file: %s", got.Raw)
	}
	b.Clock.Advance(-time.Second)
	if got := call(t, b, "GET", "/v1/files/retrieve?file_id="+fileID, nil); code(got) != 2013.0 {
		t.Errorf("the file of a job under way: %s", got.Raw)
	}
}

// A watermark is in the one file that there is; the frame decides the shape.
func TestFirstFile(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	link := func(change m) (string, sandboxtest.Answer) {
		id := call(t, b, "POST", "/v1/video_generation", with(firstVideo(), change)).Text("task_id")
		b.Clock.Advance(2 * time.Second)
		got := call(t, b, "GET", "/v1/query/video_generation?task_id="+id, nil)
		return call(t, b, "GET", "/v1/files/retrieve?file_id="+got.Text("file_id"), nil).Text("file", "download_url"), got
	}
	clean, _ := link(nil)
	marked, _ := link(m{"aigc_watermark": true})
	if a, z := b.Call(t, "GET", clean, nil, nil), b.Call(t, "GET", marked, nil, nil); a.Status != 200 || z.Status != 200 || string(a.Raw) == string(z.Raw) {
		t.Errorf("files: %d and %d, of %d and %d bytes", a.Status, z.Status, len(a.Raw), len(z.Raw))
	}
	if _, got := link(m{"first_frame_image": pngURI(t, 400, 800), "resolution": "1080P"}); got.At("video_width") != 1080.0 || got.At("video_height") != 2160.0 {
		t.Errorf("from a tall frame: %s", got.Raw)
	}
}

func TestFirstDirectives(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	submit := func(text string) sandboxtest.Answer {
		return call(t, b, "POST", "/v1/video_generation", with(firstVideo(), m{"prompt": "[[sandbox: " + text + "]]"}))
	}
	for text, want := range map[string]float64{
		"fail=reject": 2013, "fail=moderation, at=submit": 1026, "fail=internal, at=submit": 1024, "speed=1": 2013,
	} {
		if got := submit(text); got.Status != 200 || code(got) != want || got.Text("task_id") != "" {
			t.Errorf("%s: %d %s, want code %v", text, got.Status, got.Raw, want)
		}
	}
	if jobs := b.Jobs(t, ""); len(jobs) != 0 {
		t.Fatalf("%d jobs were made", len(jobs))
	}
	moderation, reject, broken := submit("fail=moderation").Text("task_id"), submit("fail=reject, at=poll").Text("task_id"), submit("fail=internal, times=2").Text("task_id")
	b.Clock.Advance(2 * time.Second)
	for _, tc := range []struct {
		id, word string
		code     float64
	}{
		{moderation, "Fail", 1027},
		{reject, "Fail", 0},
		{broken, "", 1024},
		{broken, "", 1024},
		{broken, "Success", 0},
	} {
		got := call(t, b, "GET", "/v1/query/video_generation?task_id="+tc.id, nil)
		if got.Status != 200 || got.Text("status") != tc.word || code(got) != tc.code {
			t.Errorf("%s, want %q with code %v", got.Raw, tc.word, tc.code)
		}
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
