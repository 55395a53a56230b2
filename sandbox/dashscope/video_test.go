package dashscope_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mediagate/mediagate/sandbox/sandboxtest"
)

const (
	generation = "/dashscope/api/v1/services/aigc/multimodal-generation/generation"
	synthesis  = "/dashscope/api/v1/services/aigc/video-generation/video-synthesis"
)

// async is the key with the header that makes the call one that takes jobs.
var async = map[string]string{"Authorization": "Bearer sk-sandbox-dashscope", "X-DashScope-Async": "enable"}

func synthesize(t *testing.T, b *sandboxtest.Sandbox, body any) sandboxtest.Answer {
	t.Helper()
	return b.Call(t, "POST", synthesis, async, body)
}

func video(model string, input, parameters m) m {
	return m{"model": model, "input": input, "parameters": parameters}
}

// files are n of them, of a kind.
func files(kind string, n int) []m {
	var list []m
	for i := range n {
		list = append(list, m{"type": kind, "url": fmt.Sprintf("https://cdn.example.com/%d.png", i)})
	}
	return list
}

func addresses(ending string, n int) []string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf("https://cdn.example.com/%d%s", i, ending))
	}
	return list
}

func TestVideoRules(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	const prompt = "a fox [[sandbox: duration=0]]"
	long := func(n int) string { return strings.Repeat("語", n) }
	text := func(p m) m { return video("wan2.6-t2v", m{"prompt": prompt}, p) }
	textIn := func(in m) m { return video("wan2.6-t2v", with(m{"prompt": prompt}, in), m{}) }
	frame := func(in, p m) m {
		return video("wan2.6-i2v", with(m{"img_url": "https://cdn.example.com/a.png"}, in), p)
	}
	refer := func(urls any, p m) m { return video("wan2.6-r2v", m{"prompt": prompt, "reference_urls": urls}, p) }
	newText := func(in, p m) m { return video("wan2.7-t2v", with(m{"prompt": prompt}, in), p) }
	frames := func(media []m, p m) m { return video("wan2.7-i2v", m{"media": media}, p) }
	newRefer := func(media []m, p m) m { return video("wan2.7-r2v", m{"prompt": prompt, "media": media}, p) }
	edit := func(media []m, p m) m { return video("wan2.7-videoedit", m{"media": media}, p) }
	source := files("video", 1)
	kling := func(in, p m) m {
		return video("kling/kling-v3-video-generation", with(m{"prompt": prompt}, in), with(m{"aspect_ratio": "1:1"}, p))
	}
	omni := func(in, p m) m {
		return with(kling(in, p), m{"model": "kling/kling-v3-omni-video-generation"})
	}
	shot := func(index, seconds int) m { return m{"index": index, "prompt": "x", "duration": seconds} }
	cut := func(list ...m) m { return m{"multi_shot": true, "shot_type": "customize", "multi_prompt": list} }
	vidu := func(media []m, p m) m {
		return video("vidu/viduq3_reference2video", m{"prompt": prompt, "media": media}, p)
	}
	image := files("image", 1)
	for name, tt := range map[string]struct {
		body any
		code string // empty: accepted
	}{
		"no model":         {m{"input": m{}}, "InvalidParameter"},
		"another model":    {video("wan2.5-t2v", m{}, m{}), "ModelNotFound"},
		"an image model":   {video("z-image-turbo", m{}, m{}), "ModelNotFound"},
		"a field too many": {with(text(m{}), m{"callback": "x"}), "InvalidParameter"},

		"text, everything":  {text(m{"size": "1088*832", "duration": 15, "prompt_extend": false, "shot_type": "multi", "watermark": true, "seed": 0}), ""},
		"text of 1501":      {textIn(m{"prompt": long(1501)}), "InvalidParameter"},
		"negative of 501":   {textIn(m{"negative_prompt": long(501)}), "InvalidParameter"},
		"text with a ratio": {text(m{"ratio": "16:9"}), "InvalidParameter"},
		"text with audio":   {text(m{"audio": true}), "InvalidParameter"},
		"1 s":               {text(m{"duration": 1}), "InvalidParameter"},
		"seed 2147483648":   {text(m{"seed": int64(2147483648)}), "InvalidParameter"},
		"frame":             {frame(m{}, m{"resolution": "720P", "audio": false}), ""},
		"frame, 480P":       {frame(m{}, m{"resolution": "480P"}), "InvalidParameter"},
		"no frame":          {frame(m{"img_url": nil}, m{}), "InvalidParameter"},
		"references":        {refer(addresses(".png", 5), m{"duration": 10}), ""},
		"6 references":      {refer(addresses(".png", 6), m{}), "InvalidParameter"},
		"4 videos":          {refer(addresses(".mp4", 4), m{}), "InvalidParameter"},
		"references, 11 s":  {refer(addresses(".png", 1), m{"duration": 11}), "InvalidParameter"},

		"newer text of 5001":      {newText(m{"prompt": long(5001)}, m{}), "InvalidParameter"},
		"newer, a ratio of none":  {newText(m{}, m{"ratio": "21:9"}), "InvalidParameter"},
		"two frames":              {frames(append(files("first_frame", 1), files("last_frame", 1)...), m{"duration": 15}), ""},
		"a last frame":            {frames(files("last_frame", 1), m{}), "InvalidParameter"},
		"two first frames":        {frames(files("first_frame", 2), m{}), "InvalidParameter"},
		"frames, a ratio":         {frames(files("first_frame", 1), m{"ratio": "16:9"}), "InvalidParameter"},
		"frames, a reference":     {frames(files("reference_image", 1), m{}), "InvalidParameter"},
		"newer references":        {newRefer(append(files("first_frame", 1), files("reference_image", 5)...), m{"duration": 15}), ""},
		"newer, 6 references":     {newRefer(append(files("reference_image", 3), files("reference_video", 3)...), m{}), "InvalidParameter"},
		"newer, no references":    {newRefer(files("first_frame", 1), m{}), "InvalidParameter"},
		"newer, a last frame too": {newRefer(append(files("last_frame", 1), files("reference_image", 1)...), m{}), "InvalidParameter"},
		"newer, 11 s of a video":  {newRefer(files("reference_video", 1), m{"duration": 11}), "InvalidParameter"},

		"edit":                 {edit(source, m{"audio_setting": "origin", "ratio": "4:3", "duration": 2}), ""},
		"edit of nothing":      {edit(nil, m{}), "InvalidParameter"},
		"edit, 5 images":       {edit(append(files("reference_image", 5), source...), m{}), "InvalidParameter"},
		"edit, 1 s":            {edit(source, m{"duration": 1}), "InvalidParameter"},
		"edit, 11 s":           {edit(source, m{"duration": 11}), "InvalidParameter"},
		"edit, another sound":  {edit(source, m{"audio_setting": "off"}), "InvalidParameter"},
		"edit, 4K":             {edit(source, m{"resolution": "4K"}), "InvalidParameter"},
		"edit, a file of data": {edit([]m{{"type": "video", "url": "data:video/mp4;base64,AA"}}, m{}), "InvalidParameter"},

		"kling":                  {kling(m{}, m{"mode": "std", "duration": 15, "audio": true, "watermark": true}), ""},
		"kling of 2501":          {kling(m{"prompt": long(2501)}, m{}), "InvalidParameter"},
		"kling 4k":               {kling(m{}, m{"mode": "4k"}), "InvalidParameter"},
		"kling, what not to see": {kling(m{"negative_prompt": "x"}, m{}), "InvalidParameter"},
		"kling without a ratio":  {kling(m{}, m{"aspect_ratio": nil}), "InvalidParameter"},
		"kling, a last frame":    {kling(m{"media": files("last_frame", 1)}, m{}), "InvalidParameter"},
		"kling 2 s":              {kling(m{}, m{"duration": 2}), "InvalidParameter"},
		"kling shots, too short": {kling(cut(shot(1, 3)), m{}), "InvalidParameter"},
		"kling shots, one twice": {kling(cut(shot(1, 3), shot(1, 2)), m{}), "InvalidParameter"},
		"kling shots, not said":  {kling(m{"multi_shot": true}, m{}), "InvalidParameter"},
		"omni":                   {omni(m{"element_list": []m{{"element_id": 7}}, "media": files("first_frame", 1)}, m{}), ""},
		"omni, 4 subjects":       {omni(m{"element_list": []m{{"element_id": 1}, {"element_id": 2}, {"element_id": 3}, {"element_id": 4}}}, m{}), "InvalidParameter"},
		"omni, 11 s of a video":  {omni(m{"media": files("base", 1)}, m{"duration": 11}), "InvalidParameter"},

		"vidu":                 {vidu(image, m{"resolution": "540P", "size": "720*540", "duration": 16, "audio": true, "watermark": true, "seed": 7}), ""},
		"vidu of nothing":      {vidu(nil, m{}), "InvalidParameter"},
		"vidu, 8 images":       {vidu(files("image", 8), m{}), "InvalidParameter"},
		"vidu, 2 s":            {vidu(image, m{"duration": 2}), "InvalidParameter"},
		"vidu, a foreign size": {vidu(image, m{"resolution": "720P", "size": "960*540"}), "InvalidParameter"},
		"vidu, a large seed":   {vidu(image, m{"seed": int64(4294967295)}), "InvalidParameter"},
		"vidu mix, 540P":       {with(vidu(image, m{"resolution": "540P"}), m{"model": "vidu/viduq3-mix_reference2video"}), "InvalidParameter"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := synthesize(t, b, tt.body)
			if (got.Status == 200) != (tt.code == "") || got.Text("code") != tt.code || got.Text("request_id") == "" {
				t.Errorf("%d %s, want %q", got.Status, got.Raw, tt.code)
			}
			if tt.code == "" && got.Text("output", "task_id") == "" {
				t.Errorf("no job: %s", got.Raw)
			}
		})
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	image, film := image("[[sandbox: duration=0]]"), video("wan2.6-t2v", m{"prompt": "a fox"}, m{})
	for name, tt := range map[string]struct {
		path, key, async string
		body             any
		status           int
		code             string
	}{
		"image, no key":           {generation, "", "", image, 401, "InvalidApiKey"},
		"image, bare key":         {generation, "sk-sandbox-dashscope", "", image, 401, "InvalidApiKey"},
		"image, async":            {generation, "Bearer sk-sandbox-dashscope", "enable", image, 403, "AccessDenied"},
		"video, not async":        {synthesis, "Bearer sk-sandbox-dashscope", "", film, 403, "AccessDenied"},
		"video, of another value": {synthesis, "Bearer sk-sandbox-dashscope", "true", film, 403, "AccessDenied"},
		"video, no key":           {synthesis, "", "enable", film, 401, "InvalidApiKey"},
		"another path":            {"/dashscope/api/v1/other", "Bearer sk-sandbox-dashscope", "", image, 400, "InvalidParameter"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := b.Call(t, "POST", tt.path, map[string]string{"Authorization": tt.key, "X-DashScope-Async": tt.async}, tt.body)
			if got.Status != tt.status || got.Text("code") != tt.code {
				t.Errorf("%d %s, want %d %s", got.Status, got.Raw, tt.status, tt.code)
			}
		})
	}
}

// A job and its file are forgotten after a day. What a video was made from counts, and
// stands apart, and Kling's clean file stands beside the marked one.
func TestVideos(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	submit := func(body m) string { return synthesize(t, b, body).Text("output", "task_id") }
	ask := func(id string) sandboxtest.Answer { return b.Call(t, "GET", "/dashscope/api/v1/tasks/"+id, key, nil) }
	whole := submit(video("wan2.7-videoedit", m{"prompt": "x", "media": files("video", 1)}, m{}))
	part := submit(video("wan2.7-videoedit", m{"prompt": "x", "media": files("video", 1)}, m{"duration": 3, "resolution": "720P"}))
	marked := submit(video("kling/kling-v3-video-generation", m{"prompt": "x"}, m{"aspect_ratio": "1:1", "watermark": true}))
	b.Clock.Advance(2 * time.Second)
	for id, want := range map[string][3]any{whole: {4.2, 8.4, 1080.0}, part: {3.0, 6.0, 720.0}} {
		got := ask(id)
		if usage := [3]any{got.At("usage", "output_video_duration"), got.At("usage", "duration"), got.At("usage", "SR")}; usage != want {
			t.Errorf("usage %v, want %v: %s", usage, want, got.Raw)
		}
	}
	got := ask(marked)
	clean, other := got.Text("output", "video_url"), got.Text("output", "watermark_video_url")
	if !strings.Contains(clean, "/video.mp4?") || !strings.Contains(other, "/video-watermark.mp4?") {
		t.Errorf("files: %s", got.Raw)
	}
	link := ask(whole).Text("output", "video_url")
	b.Clock.Advance(24*time.Hour - time.Second)
	if file := b.Call(t, "GET", link, nil, nil); file.Status != 200 {
		t.Errorf("within a day: %d", file.Status)
	}
	b.Clock.Advance(time.Second)
	if file := b.Call(t, "GET", link, nil, nil); file.Status == 200 {
		t.Error("the link is good for ever")
	}
	if got := ask(marked); got.Status != 200 || got.Text("output", "task_status") != "UNKNOWN" {
		t.Errorf("after a day: %d %s", got.Status, got.Raw)
	}
}
