package dashscope_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/mediagate/mediagate/sandbox/sandboxtest"
)

const synthesis = "/dashscope/api/v1/services/aigc/video-generation/video-synthesis"

// async is the key with the header that makes the call one that takes jobs.
var async = map[string]string{"Authorization": "Bearer sk-sandbox-dashscope", "X-DashScope-Async": "enable"}

func synthesize(t *testing.T, b *sandboxtest.Sandbox, body any) sandboxtest.Answer {
	t.Helper()
	return b.Call(t, "POST", synthesis, async, body)
}

// taken submits what must be accepted, and returns the job's id.
func taken(t *testing.T, b *sandboxtest.Sandbox, body any) string {
	t.Helper()
	got := synthesize(t, b, body)
	if got.Status != 200 || got.Text("output", "task_status") != "PENDING" {
		t.Fatalf("%d %s", got.Status, got.Raw)
	}
	return got.Text("output", "task_id")
}

func ask(t *testing.T, b *sandboxtest.Sandbox, id string) sandboxtest.Answer {
	t.Helper()
	return b.Call(t, "GET", "/dashscope/api/v1/tasks/"+id, key, nil)
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
		"no JSON":          {"nothing", "InvalidParameter"},
		"no model":         {m{"input": m{}}, "InvalidParameter"},
		"another model":    {video("wan2.5-t2v", m{}, m{}), "ModelNotFound"},
		"an image model":   {video("z-image-turbo", m{}, m{}), "ModelNotFound"},
		"a field too many": {with(text(m{}), m{"callback": "x"}), "InvalidParameter"},

		"text":                  {text(m{}), ""},
		"text, everything":      {text(m{"size": "1088*832", "duration": 15, "prompt_extend": false, "shot_type": "multi", "watermark": true, "seed": 0}), ""},
		"text of 1500":          {textIn(m{"prompt": long(1500)}), ""},
		"text of 1501":          {textIn(m{"prompt": long(1501)}), "InvalidParameter"},
		"no text":               {textIn(m{"prompt": " "}), "InvalidParameter"},
		"negative of 500":       {textIn(m{"negative_prompt": long(500)}), ""},
		"negative of 501":       {textIn(m{"negative_prompt": long(501)}), "InvalidParameter"},
		"text with an image":    {textIn(m{"img_url": "https://cdn.example.com/a.png"}), "InvalidParameter"},
		"text with a ratio":     {text(m{"ratio": "16:9"}), "InvalidParameter"},
		"text with audio":       {text(m{"audio": true}), "InvalidParameter"},
		"a size that is none":   {text(m{"size": "1280*721"}), "InvalidParameter"},
		"1 s":                   {text(m{"duration": 1}), "InvalidParameter"},
		"2 s":                   {text(m{"duration": 2}), ""},
		"16 s":                  {text(m{"duration": 16}), "InvalidParameter"},
		"seconds as text":       {text(m{"duration": "5"}), "InvalidParameter"},
		"seed 2147483647":       {text(m{"seed": 2147483647}), ""},
		"seed 2147483648":       {text(m{"seed": int64(2147483648)}), "InvalidParameter"},
		"watermark as text":     {text(m{"watermark": "true"}), "InvalidParameter"},
		"frame":                 {frame(m{}, m{"resolution": "720P", "audio": false}), ""},
		"frame, 480P":           {frame(m{}, m{"resolution": "480P"}), "InvalidParameter"},
		"frame, size":           {frame(m{}, m{"size": "1280*720"}), "InvalidParameter"},
		"no frame":              {frame(m{"img_url": nil}, m{}), "InvalidParameter"},
		"a frame as data":       {frame(m{"img_url": "data:image/png;base64,AAAA"}, m{}), "InvalidParameter"},
		"references":            {refer(addresses(".png", 5), m{"duration": 10}), ""},
		"6 references":          {refer(addresses(".png", 6), m{}), "InvalidParameter"},
		"no references":         {refer([]string{}, m{}), "InvalidParameter"},
		"3 videos":              {refer(addresses(".mp4", 3), m{}), ""},
		"4 videos":              {refer(addresses(".mp4", 4), m{}), "InvalidParameter"},
		"references, 11 s":      {refer(addresses(".png", 1), m{"duration": 11}), "InvalidParameter"},
		"a reference of no URL": {refer([]any{5}, m{}), "InvalidParameter"},

		"newer text":              {newText(m{"prompt": long(5000)}, m{"ratio": "3:4", "resolution": "720P"}), ""},
		"newer text of 5001":      {newText(m{"prompt": long(5001)}, m{}), "InvalidParameter"},
		"newer, a size":           {newText(m{}, m{"size": "1280*720"}), "InvalidParameter"},
		"newer, a ratio of none":  {newText(m{}, m{"ratio": "21:9"}), "InvalidParameter"},
		"newer, media":            {newText(m{"media": files("first_frame", 1)}, m{}), "InvalidParameter"},
		"two frames":              {frames(append(files("first_frame", 1), files("last_frame", 1)...), m{"duration": 15}), ""},
		"a last frame":            {frames(files("last_frame", 1), m{}), "InvalidParameter"},
		"two first frames":        {frames(files("first_frame", 2), m{}), "InvalidParameter"},
		"frames, a ratio":         {frames(files("first_frame", 1), m{"ratio": "16:9"}), "InvalidParameter"},
		"frames, a reference":     {frames(files("reference_image", 1), m{}), "InvalidParameter"},
		"newer references":        {newRefer(append(files("first_frame", 1), files("reference_image", 5)...), m{"duration": 15}), ""},
		"newer, 6 references":     {newRefer(append(files("reference_image", 3), files("reference_video", 3)...), m{}), "InvalidParameter"},
		"newer, no references":    {newRefer(files("first_frame", 1), m{}), "InvalidParameter"},
		"newer, a last frame too": {newRefer(append(files("last_frame", 1), files("reference_image", 1)...), m{}), "InvalidParameter"},
		"newer, 10 s of a video":  {newRefer(files("reference_video", 1), m{"duration": 10}), ""},
		"newer, 11 s of a video":  {newRefer(files("reference_video", 1), m{"duration": 11}), "InvalidParameter"},

		"edit":                 {edit(source, m{"audio_setting": "origin", "ratio": "4:3", "duration": 2}), ""},
		"edit of nothing":      {edit(nil, m{}), "InvalidParameter"},
		"edit of two":          {edit(files("video", 2), m{}), "InvalidParameter"},
		"edit, 4 images":       {edit(append(files("reference_image", 4), source...), m{}), ""},
		"edit, 5 images":       {edit(append(files("reference_image", 5), source...), m{}), "InvalidParameter"},
		"edit, 0 s":            {edit(source, m{"duration": 0}), ""},
		"edit, 1 s":            {edit(source, m{"duration": 1}), "InvalidParameter"},
		"edit, 10 s":           {edit(source, m{"duration": 10}), ""},
		"edit, 11 s":           {edit(source, m{"duration": 11}), "InvalidParameter"},
		"edit, another sound":  {edit(source, m{"audio_setting": "off"}), "InvalidParameter"},
		"edit, 4K":             {edit(source, m{"resolution": "4K"}), "InvalidParameter"},
		"edit, metadata":       {edit(source, m{"metadata": m{}}), "InvalidParameter"},
		"edit, a file of data": {edit([]m{{"type": "video", "url": "data:video/mp4;base64,AA"}}, m{}), "InvalidParameter"},

		"kling":                     {kling(m{}, m{"mode": "std", "duration": 15, "audio": true, "watermark": true}), ""},
		"kling of 2500":             {kling(m{"prompt": long(2500)}, m{}), ""},
		"kling of 2501":             {kling(m{"prompt": long(2501)}, m{}), "InvalidParameter"},
		"kling 4k":                  {kling(m{}, m{"mode": "4k"}), "InvalidParameter"},
		"kling, what not to see":    {kling(m{"negative_prompt": "x"}, m{}), "InvalidParameter"},
		"kling without a ratio":     {kling(m{}, m{"aspect_ratio": nil}), "InvalidParameter"},
		"kling, a frame is a ratio": {kling(m{"media": files("first_frame", 1)}, m{"aspect_ratio": nil}), ""},
		"kling, a last frame":       {kling(m{"media": files("last_frame", 1)}, m{}), "InvalidParameter"},
		"kling, a reference":        {kling(m{"media": files("refer", 1)}, m{}), "InvalidParameter"},
		"kling 2 s":                 {kling(m{}, m{"duration": 2}), "InvalidParameter"},
		"kling seconds as text":     {kling(m{}, m{"duration": "5"}), "InvalidParameter"},
		"kling shots":               {kling(cut(shot(2, 2), shot(1, 3)), m{}), ""},
		"kling shots, too short":    {kling(cut(shot(1, 3)), m{}), "InvalidParameter"},
		"kling shots, one twice":    {kling(cut(shot(1, 3), shot(1, 2)), m{}), "InvalidParameter"},
		"kling shots, none":         {kling(cut(), m{}), "InvalidParameter"},
		"kling shots, not said":     {kling(m{"multi_shot": true}, m{}), "InvalidParameter"},
		"kling shots, not meant":    {kling(m{"shot_type": "intelligence"}, m{}), "InvalidParameter"},
		"kling shots of its own":    {kling(m{"multi_shot": true, "shot_type": "intelligence"}, m{}), ""},
		"omni":                      {omni(m{"element_list": []m{{"element_id": 7}}, "media": files("first_frame", 1)}, m{}), ""},
		"omni, 4 subjects":          {omni(m{"element_list": []m{{"element_id": 1}, {"element_id": 2}, {"element_id": 3}, {"element_id": 4}}}, m{}), "InvalidParameter"},
		"omni, a subject as text":   {omni(m{"element_list": []m{{"element_id": "7"}}}, m{}), "InvalidParameter"},
		"omni, 11 s of a video":     {omni(m{"media": files("base", 1)}, m{"duration": 11}), "InvalidParameter"},

		"vidu":                 {vidu(image, m{"resolution": "540P", "size": "720*540", "duration": 16, "audio": true, "watermark": true, "seed": 7}), ""},
		"vidu of nothing":      {vidu(nil, m{}), "InvalidParameter"},
		"vidu, 7 images":       {vidu(files("image", 7), m{}), ""},
		"vidu, 8 images":       {vidu(files("image", 8), m{}), "InvalidParameter"},
		"vidu, 2 s":            {vidu(image, m{"duration": 2}), "InvalidParameter"},
		"vidu, a foreign size": {vidu(image, m{"resolution": "720P", "size": "960*540"}), "InvalidParameter"},
		"vidu, small letters":  {vidu(image, m{"resolution": "720p"}), "InvalidParameter"},
		"vidu, a ratio":        {vidu(image, m{"aspect_ratio": "16:9"}), "InvalidParameter"},
		"vidu, a large seed":   {vidu(image, m{"seed": int64(4294967295)}), "InvalidParameter"},
		"vidu mix, 1 s":        {with(vidu(image, m{"duration": 1}), m{"model": "vidu/viduq3-mix_reference2video"}), ""},
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

func TestVideoHeaders(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	body := video("wan2.6-t2v", m{"prompt": "a fox"}, m{})
	for name, tt := range map[string]struct {
		header map[string]string
		status int
		code   string
	}{
		"no header":       {key, 403, "AccessDenied"},
		"another value":   {changed(async, "X-DashScope-Async", "true"), 403, "AccessDenied"},
		"no key":          {changed(async, "Authorization", ""), 401, "InvalidApiKey"},
		"a key of no use": {changed(async, "Authorization", "Bearer x"), 401, "InvalidApiKey"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := b.Call(t, "POST", synthesis, tt.header, body)
			if got.Status != tt.status || got.Text("code") != tt.code {
				t.Errorf("%d %s", got.Status, got.Raw)
			}
		})
	}
	if jobs := b.Jobs(t, ""); len(jobs) != 0 {
		t.Errorf("%d jobs were made", len(jobs))
	}
}

func changed(header map[string]string, name, value string) map[string]string {
	out := maps.Clone(header)
	out[name] = value
	return out
}

// A job goes through its states, its file is there, and both are forgotten
// after a day.
func TestVideoLife(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	id := taken(t, b, video("wan2.6-t2v", m{"prompt": "a fox [[sandbox: duration=100s]]"}, m{"size": "720*1280", "duration": 2}))
	word := func(want string) sandboxtest.Answer {
		t.Helper()
		got := ask(t, b, id)
		if got.Status != 200 || got.Text("output", "task_status") != want || got.Text("output", "task_id") != id {
			t.Errorf("%d %s, want %s", got.Status, got.Raw, want)
		}
		return got
	}
	word("PENDING")
	b.Clock.Advance(20 * time.Second)
	if got := word("RUNNING"); got.At("output", "video_url") != nil || got.Text("output", "submit_time") != "2026-03-01 20:00:00.000" {
		t.Errorf("running: %s", got.Raw)
	}
	b.Clock.Advance(80 * time.Second)
	got := word("SUCCEEDED")
	if got.At("usage", "duration") != 2.0 || got.At("usage", "SR") != "720" || got.At("output", "watermark_video_url") != nil {
		t.Errorf("succeeded: %s", got.Raw)
	}
	link := got.Text("output", "video_url")
	if file := b.Call(t, "GET", link, nil, nil); file.Status != 200 || len(file.Raw) == 0 {
		t.Errorf("file: %d", file.Status)
	}
	foreign := map[string]string{"Authorization": "Bearer sk-sandbox-dashscope@acme"}
	if got := b.Call(t, "GET", "/dashscope/api/v1/tasks/"+id, foreign, nil); got.Status != 200 || got.Text("output", "task_status") != "UNKNOWN" {
		t.Errorf("another customer: %d %s", got.Status, got.Raw)
	}
	b.Clock.Advance(24*time.Hour - 101*time.Second)
	word("SUCCEEDED")
	b.Clock.Advance(time.Second)
	word("UNKNOWN")
	b.Clock.Advance(101 * time.Second)
	if file := b.Call(t, "GET", link, nil, nil); file.Status == 200 {
		t.Error("the link is good for ever")
	}
	if got := ask(t, b, "0385dc79-5ff8-4d82-bcb6-7c1f3a2b4d5e"); got.Status != 200 || got.Text("output", "task_status") != "UNKNOWN" {
		t.Errorf("no such job: %d %s", got.Status, got.Raw)
	}
}

// What a job was made from counts, and stands apart.
func TestVideoUsage(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	for name, tt := range map[string]struct {
		body    m
		in, out any
		sum     float64
		sr      any
	}{
		"an edit of the whole": {
			video("wan2.7-videoedit", m{"prompt": "x [[sandbox: duration=0]]", "media": files("video", 1)}, m{}), 4.2, 4.2, 8.4, 1080.0,
		},
		"an edit of 3 s": {
			video("wan2.7-videoedit", m{"prompt": "x [[sandbox: duration=0]]", "media": files("video", 1)}, m{"duration": 3, "resolution": "720P"}), 3.0, 3.0, 6, 720.0,
		},
		"a video to refer to": {
			video("wan2.6-r2v", m{"prompt": "x [[sandbox: duration=0]]", "reference_urls": addresses(".mp4", 1)}, m{}), 4.2, 5.0, 9.2, 1080.0,
		},
		"an image to refer to": {
			video("wan2.6-r2v", m{"prompt": "x [[sandbox: duration=0]]", "reference_urls": addresses(".png", 1)}, m{}), nil, nil, 5, "1080",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ask(t, b, taken(t, b, tt.body))
			if got.At("usage", "input_video_duration") != tt.in || got.At("usage", "output_video_duration") != tt.out ||
				got.At("usage", "duration") != tt.sum || got.At("usage", "SR") != tt.sr {
				t.Errorf("usage: %s", got.Raw)
			}
		})
	}
}

// Kling keeps the clean file beside the marked one.
func TestVideoMarks(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	const prompt = "x [[sandbox: duration=0]]"
	for name, tt := range map[string]struct {
		body          m
		clean, marked string
	}{
		"wan":          {video("wan2.6-t2v", m{"prompt": prompt}, m{}), "video.mp4", ""},
		"wan marked":   {video("wan2.6-t2v", m{"prompt": prompt}, m{"watermark": true}), "video-watermark.mp4", ""},
		"kling":        {video("kling/kling-v3-video-generation", m{"prompt": prompt}, m{"aspect_ratio": "1:1"}), "video.mp4", ""},
		"kling marked": {video("kling/kling-v3-video-generation", m{"prompt": prompt}, m{"aspect_ratio": "1:1", "watermark": true}), "video.mp4", "video-watermark.mp4"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ask(t, b, taken(t, b, tt.body))
			if !strings.Contains(got.Text("output", "video_url"), "/"+tt.clean+"?") || !strings.Contains(got.Text("output", "watermark_video_url"), tt.marked) ||
				(got.Text("output", "watermark_video_url") == "") != (tt.marked == "") {
				t.Errorf("files: %s", got.Raw)
			}
		})
	}
}

func TestVideoCancel(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	body := video("wan2.6-t2v", m{"prompt": "x [[sandbox: duration=100s]]"}, m{})
	stop := func(id string) sandboxtest.Answer {
		return b.Call(t, "POST", "/dashscope/api/v1/tasks/"+id+"/cancel", key, nil)
	}
	queued, running := taken(t, b, body), taken(t, b, body)
	if got := stop(queued); got.Status != 200 || got.Text("code") != "" {
		t.Errorf("queued: %d %s", got.Status, got.Raw)
	}
	if got := ask(t, b, queued); got.Text("output", "task_status") != "CANCELED" {
		t.Errorf("stopped: %s", got.Raw)
	}
	b.Clock.Advance(20 * time.Second)
	for id, code := range map[string]string{running: "UnsupportedOperation", queued: "UnsupportedOperation", "none": "InvalidParameter"} {
		if got := stop(id); got.Status != 400 || got.Text("code") != code {
			t.Errorf("%s: %d %s, want %s", id, got.Status, got.Raw, code)
		}
	}
	if got := ask(t, b, running); got.Text("output", "task_status") != "RUNNING" {
		t.Errorf("running: %s", got.Raw)
	}
}

// The directives, in this vendor's words.
func TestVideoFailures(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	body := func(directive string) m {
		return video("wan2.6-t2v", m{"prompt": "x [[sandbox: " + directive + "]]"}, m{})
	}
	for directive, code := range map[string]string{
		"fail=moderation, at=submit": "DataInspectionFailed", "fail=reject": "InvalidParameter", "fail=internal, at=submit": "InternalError",
		"speed=1": "InvalidParameter",
	} {
		if got := synthesize(t, b, body(directive)); got.Text("code") != code {
			t.Errorf("%s: %d %s", directive, got.Status, got.Raw)
		}
	}
	for directive, code := range map[string]string{
		"duration=0, fail=moderation": "DataInspectionFailed", "duration=0, fail=reject, at=poll": "InternalError.Algo",
	} {
		if got := ask(t, b, taken(t, b, body(directive))); got.Status != 200 || got.Text("output", "task_status") != "FAILED" || got.Text("output", "code") != code {
			t.Errorf("%s: %d %s", directive, got.Status, got.Raw)
		}
	}
	id := taken(t, b, body("duration=0, fail=internal, times=2"))
	for i, want := range []int{500, 500, 200} {
		if got := ask(t, b, id); got.Status != want {
			t.Errorf("poll %d: %d %s", i+1, got.Status, got.Raw)
		}
	}
}
