package sandbox_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// imageReady is longer than an image takes by the sandbox's clock, which the
// tests stop.
const imageReady = time.Second

func TestDirectiveForms(t *testing.T) {
	t.Parallel()
	b := setup(t)
	good := []string{
		"duration=3s", "duration=0", "duration=1.5", "duration=720h", "fail=internal", "fail=moderation, at=download",
		"fail=internal, at=poll, times=1", "fail=reject, at=download, times=1000", "result_bytes=1", "progress=40", "progress=100%", "ref=abc", "download=40s", "download=1h",
		" duration = 1s ,fail=reject,at=poll, result_bytes=10, progress=0, ref=a b ",
	}
	bad := []string{
		"", "duration", "duration=", "duration=soon", "duration=-1s", "duration=721h", "fail=maybe", "at=poll", "times=2", "fail=internal, at=start",
		"fail=internal, times=0", "fail=internal, times=1001", "fail=timeout, at=poll, times=1", "fail=reject, times=1", "result_bytes=0",
		"result_bytes=x", "result_bytes=68719476737", "progress=101", "progress=-1", "speed=1", "download=soon", "download=61m", "duration=1s, duration=2s",
	}
	for _, text := range good {
		if got := b.call(t, "POST", "/_sandbox/next", nil, m{"provider": "kling", "directive": text}); got.status != 204 {
			t.Errorf("%q: %d %s", text, got.status, got.raw)
		}
	}
	for _, text := range bad {
		if got := b.call(t, "POST", "/_sandbox/next", nil, m{"provider": "kling", "directive": text}); got.status != 400 || got.text("error") == "" {
			t.Errorf("%q: %d %s", text, got.status, got.raw)
		}
		got := b.kling(t, "POST", "text2video", with(textVideo(), m{"prompt": "x [[sandbox:" + text + "]]"}))
		if got.status != 400 || got.at("code") != 1201.0 || !strings.Contains(got.text("message"), "sandbox directive") {
			t.Errorf("prompt %q: %d %s", text, got.status, got.raw)
		}
	}
	for _, prompt := range []string{"[[sandbox: duration=1s", "[[sandbox: duration=1s]] [[sandbox: duration=1s]]"} {
		if got := b.kling(t, "POST", "text2video", with(textVideo(), m{"prompt": prompt})); got.at("code") != 1201.0 {
			t.Errorf("prompt %q: %d %s", prompt, got.status, got.raw)
		}
	}
}

func TestFailAtSubmit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	cases := map[string]struct {
		klingStatus int
		klingCode   float64
		dashStatus  int
		dashCode    string
	}{
		"fail=reject":                {400, 1201, 400, "InvalidParameter"},
		"fail=moderation, at=submit": {400, 1301, 400, "DataInspectionFailed"},
		"fail=internal, at=submit":   {500, 5000, 500, "InternalError"},
	}
	for text, tc := range cases {
		prompt := "[[sandbox: " + text + "]]"
		if got := b.kling(t, "POST", "text2video", with(textVideo(), m{"prompt": prompt})); got.status != tc.klingStatus || got.at("code") != tc.klingCode {
			t.Errorf("%s: %d %s", text, got.status, got.raw)
		}
		if got := b.dash(t, image(prompt)); got.status != tc.dashStatus || got.text("code") != tc.dashCode {
			t.Errorf("%s: %d %s", text, got.status, got.raw)
		}
	}
	if jobs := b.jobs(t, ""); len(jobs) != 0 {
		t.Errorf("%d jobs were made", len(jobs))
	}
}

// lost sends a submission and gives up once the job exists.
func lost(t *testing.T, b *bundle, path string, header map[string]string, body, reference string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "POST", b.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for k, v := range header {
		req.Header.Set(k, v)
	}
	done := make(chan error, 1)
	go func() {
		resp, err := b.http.Do(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		done <- err
	}()
	for len(b.jobs(t, "?reference="+reference)) == 0 {
		select {
		case err := <-done:
			t.Fatalf("answered before a job exists: %v", err)
		default:
		}
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("the answer was given: %v", err)
	}
}

func TestLostAnswer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	lost(t, b, "/kling/v1/videos/text2video", klingKey,
		`{"model_name":"kling-v3","prompt":"[[sandbox: fail=timeout]]","external_task_id":"task_lost"}`, "task_lost")
	lost(t, b, "/dashscope/api/v1/services/aigc/multimodal-generation/generation", dashKey,
		`{"model":"z-image-turbo","input":{"messages":[{"role":"user","content":[{"text":"[[sandbox: fail=timeout, ref=here]]"}]}]}}`, "here")
	if got := b.kling(t, "GET", "text2video/task_lost", nil); got.text("data", "task_status") != "submitted" {
		t.Errorf("lookup: %s", got.raw)
	}
	if got := b.kling(t, "POST", "text2video", with(textVideo(), m{"external_task_id": "task_lost"})); got.at("code") != 1201.0 {
		t.Errorf("sent again: %s", got.raw)
	}
	if n := len(b.jobs(t, "?reference=task_lost")); n != 1 {
		t.Errorf("%d jobs", n)
	}
}

func TestCloseCutsHeldCalls(t *testing.T) {
	t.Parallel()
	b := setup(t)
	done := make(chan error, 1)
	req, err := http.NewRequestWithContext(t.Context(), "POST", b.url+"/kling/v1/videos/text2video",
		strings.NewReader(`{"model_name":"kling-v3","prompt":"[[sandbox: fail=timeout]]"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", klingKey["Authorization"])
	go func() {
		resp, err := b.http.Do(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		done <- err
	}()
	for len(b.jobs(t, "")) == 0 {
		continue
	}
	b.stop()
	if err := <-done; err == nil {
		t.Error("an answer came")
	}
}

func TestFailAtPoll(t *testing.T) {
	t.Parallel()
	b := setup(t)
	submit := func(text string) string {
		return b.kling(t, "POST", "text2video", with(textVideo(), m{"prompt": "[[sandbox: " + text + "]]"})).text("data", "task_id")
	}
	poll := func(id string) answer { return b.kling(t, "GET", "text2video/"+id, nil) }
	moderation, reject := submit("fail=moderation"), submit("fail=reject, at=poll")
	internal, once, endless := submit("fail=internal"), submit("fail=internal, times=1"), submit("fail=timeout, at=poll")
	b.clock.Advance(2*time.Second - time.Millisecond)
	if got := poll(moderation); got.text("data", "task_status") != "processing" {
		t.Errorf("failed early: %s", got.raw)
	}
	b.clock.Advance(time.Millisecond)
	if got := poll(moderation); got.text("data", "task_status") != "failed" || !strings.Contains(got.text("data", "task_status_msg"), "risk control") || got.at("data", "task_result") != nil {
		t.Errorf("moderation: %s", got.raw)
	}
	if got := poll(reject); got.text("data", "task_status") != "failed" || got.text("data", "task_status_msg") == "" {
		t.Errorf("reject: %s", got.raw)
	}
	for _, want := range []int{500, 500, 500, 200, 200} {
		if got := poll(internal); got.status != want {
			t.Errorf("internal: %d %s, want %d", got.status, got.raw, want)
		}
	}
	if first, second := poll(once).status, poll(once).status; first != 500 || second != 200 {
		t.Errorf("once: %d, %d", first, second)
	}
	b.clock.Advance(365 * 24 * time.Hour)
	if got := poll(endless); got.text("data", "task_status") != "processing" {
		t.Errorf("timeout: %s", got.raw)
	}

	for text, want := range map[string]string{"fail=moderation": "DataInspectionFailed", "fail=reject, at=poll": "InvalidParameter", "fail=internal": "InternalError"} {
		if got := b.dash(t, image("[[sandbox: duration=0, ref=sync, "+text+"]]")); got.text("code") != want {
			t.Errorf("%s: %d %s, want %s", text, got.status, got.raw, want)
		}
	}
	if n := len(b.jobs(t, "?reference=sync")); n != 3 {
		t.Errorf("%d images were begun, want 3", n)
	}
}

// file submits a video with the directive and returns its link.
func (b *bundle) file(t *testing.T, text string) string {
	t.Helper()
	id := b.kling(t, "POST", "text2video", with(textVideo(), m{"prompt": "[[sandbox: duration=0, " + text + "]]"})).text("data", "task_id")
	return b.kling(t, "GET", "text2video/"+id, nil).text("data", "task_result", "videos", 0, "url")
}

func TestDownload(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for text, want := range map[string][]int{
		"ref=x":                             {200, 200},
		"fail=internal, at=download":        {500, 500, 500, 200},
		"fail=reject, at=download":          {403, 403, 403, 403, 403},
		"fail=reject, at=download, times=1": {403, 200},
		"fail=moderation, at=download":      {404, 404, 404, 404},
	} {
		url := b.file(t, text)
		for i, status := range want {
			if got := b.call(t, "GET", url, nil, nil); got.status != status {
				t.Errorf("%s: call %d: %d, want %d", text, i, got.status, status)
			}
		}
	}
	const size = 3_000_000
	url := b.file(t, "result_bytes=3000000")
	if got := b.call(t, "GET", url, nil, nil); len(got.raw) != size {
		t.Errorf("%d bytes, want %d", len(got.raw), size)
	}
	if got := b.call(t, "GET", url, map[string]string{"Range": "bytes=2999990-"}, nil); got.status != 206 || len(got.raw) != 10 {
		t.Errorf("range: %d, %d bytes", got.status, len(got.raw))
	}
	if got := b.call(t, "GET", strings.Replace(url, "video.mp4", "video-watermark.mp4", 1), nil, nil); got.status != 404 {
		t.Errorf("a marked file nobody asked for: %d", got.status)
	}
	waiting := b.kling(t, "POST", "text2video", textVideo()).text("data", "task_id")
	if got := b.call(t, "GET", "/media/"+waiting+"/video.mp4", nil, nil); got.status != 404 {
		t.Errorf("the file of a job under way: %d", got.status)
	}
}

func TestDownloadStalls(t *testing.T) {
	t.Parallel()
	b := setup(t)
	url := b.file(t, "fail=timeout, at=download, result_bytes=100000")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := b.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.ContentLength != 100000 {
		t.Errorf("length %d", resp.ContentLength)
	}
	if _, err := io.ReadFull(resp.Body, make([]byte, 50000)); err != nil {
		t.Fatal(err)
	}
	go b.stop() // lets the held call go
	if n, err := io.Copy(io.Discard, resp.Body); n != 0 || err == nil {
		t.Errorf("%d more bytes, error %v", n, err)
	}
}

func TestDownloadTakesItsTime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	began := time.Now()
	slow := b.call(t, "GET", b.file(t, "download=1s, result_bytes=100000"), nil, nil)
	if took := time.Since(began); slow.status != 200 || len(slow.raw) != 100000 || took < time.Second {
		t.Errorf("status %d, %d bytes after %s", slow.status, len(slow.raw), took)
	}
	if fast := b.call(t, "GET", b.file(t, "result_bytes=100000"), nil, nil); string(fast.raw) != string(slow.raw) {
		t.Error("another file than without the directive")
	}
}

func TestNextDirective(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, bad := range []any{"x", m{"provider": "nobody", "directive": "duration=1s"}, m{"provider": "kling", "directive": "x"}, m{"provider": "kling", "prompt": "x"}} {
		if got := b.call(t, "POST", "/_sandbox/next", nil, bad); got.status != 400 {
			t.Errorf("%v: %d", bad, got.status)
		}
	}
	for _, text := range []string{"fail=moderation, at=submit", "[[sandbox: ref=second]]"} {
		if got := b.call(t, "POST", "/_sandbox/next", nil, m{"provider": "kling", "directive": text}); got.status != 204 {
			t.Fatalf("%d %s", got.status, got.raw)
		}
	}
	b.dash(t, image("another vendor's"))
	b.kling(t, "POST", "text2video", with(textVideo(), m{"duration": "99"}))
	b.kling(t, "POST", "text2video", with(textVideo(), m{"prompt": "[[sandbox: ref=own]]"}))
	if got := b.kling(t, "POST", "text2video", textVideo()); got.at("code") != 1301.0 {
		t.Errorf("first: %s", got.raw)
	}
	b.kling(t, "POST", "text2video", textVideo())
	b.kling(t, "POST", "text2video", textVideo())
	if n := len(b.jobs(t, "?reference=second")); n != 1 {
		t.Errorf("%d jobs took the second directive", n)
	}
}
