package kernel_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mediagate/mediagate/sandbox/sandboxtest"
)

func TestDirectiveForms(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	good := []string{
		"duration=3s", "duration=0", "duration=1.5", "duration=720h", "fail=internal", "fail=moderation, at=download",
		"fail=internal, at=poll, times=1", "fail=reject, at=download, times=1000", "result_bytes=1", "progress=40", "progress=100%", "ref=abc", "media=none", "media=empty, piece=2", "media=page", "media=elsewhere", "fail=reject, at=download, piece=1", "download=40s", "download=1h", "answer=10s",
		" duration = 1s ,fail=reject,at=poll, result_bytes=10, progress=0, ref=a b ",
	}
	bad := []string{
		"", "duration", "duration=", "duration=soon", "duration=-1s", "duration=721h", "fail=maybe", "at=poll", "times=2", "fail=internal, at=start",
		"fail=internal, times=0", "fail=internal, times=1001", "fail=timeout, at=poll, times=1", "fail=reject, times=1", "result_bytes=0",
		"result_bytes=x", "result_bytes=68719476737", "progress=101", "progress=-1", "speed=1", "media=gone", "piece=1", "media=none, piece=0", "fail=reject, piece=1", "download=soon", "download=61m", "answer=61s", "duration=1s, duration=2s",
	}
	for _, text := range good {
		if got := b.Call(t, "POST", "/_sandbox/next", nil, m{"provider": "kling", "directive": text}); got.Status != 204 {
			t.Errorf("%q: %d %s", text, got.Status, got.Raw)
		}
	}
	for _, text := range bad {
		if got := b.Call(t, "POST", "/_sandbox/next", nil, m{"provider": "kling", "directive": text}); got.Status != 400 || got.Text("error") == "" {
			t.Errorf("%q: %d %s", text, got.Status, got.Raw)
		}
		got := call(t, b, "POST", "text2video", with(textVideo(), m{"prompt": "x [[sandbox:" + text + "]]"}))
		if got.Status != 400 || got.At("code") != 1201.0 || !strings.Contains(got.Text("message"), "sandbox directive") {
			t.Errorf("prompt %q: %d %s", text, got.Status, got.Raw)
		}
	}
	for _, prompt := range []string{"[[sandbox: duration=1s", "[[sandbox: duration=1s]] [[sandbox: duration=1s]]"} {
		if got := call(t, b, "POST", "text2video", with(textVideo(), m{"prompt": prompt})); got.At("code") != 1201.0 {
			t.Errorf("prompt %q: %d %s", prompt, got.Status, got.Raw)
		}
	}
}

// lost sends a submission and cancels the call once the job exists.
func lost(t *testing.T, b *sandboxtest.Sandbox, path string, header map[string]string, body, reference string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "POST", b.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for k, v := range header {
		req.Header.Set(k, v)
	}
	done := make(chan error, 1)
	go func() {
		resp, err := b.HTTP.Do(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		done <- err
	}()
	for len(b.Jobs(t, "?reference="+reference)) == 0 {
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
	b := sandboxtest.Open(t)
	lost(t, b, "/kling/v1/videos/text2video", klingKey,
		`{"model_name":"kling-v3","prompt":"[[sandbox: fail=timeout]]","external_task_id":"task_lost"}`, "task_lost")
	if got := call(t, b, "GET", "text2video/task_lost", nil); got.Text("data", "task_status") != "submitted" {
		t.Errorf("lookup: %s", got.Raw)
	}
	if got := call(t, b, "POST", "text2video", with(textVideo(), m{"external_task_id": "task_lost"})); got.At("code") != 1201.0 {
		t.Errorf("sent again: %s", got.Raw)
	}
	if n := len(b.Jobs(t, "?reference=task_lost")); n != 1 {
		t.Errorf("%d jobs", n)
	}
}

// The job exists while its submission waits for the answer.
func TestLateAnswer(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	began := time.Now()
	got := call(t, b, "POST", "text2video", with(textVideo(), m{"prompt": "[[sandbox: answer=200ms]]", "external_task_id": "task_late"}))
	if took := time.Since(began); got.Status != 200 || took < 200*time.Millisecond {
		t.Errorf("%d %s after %v", got.Status, got.Raw, took)
	}
	if n := len(b.Jobs(t, "?reference=task_late")); n != 1 {
		t.Errorf("%d jobs", n)
	}
}

func TestCloseCutsHeldCalls(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	done := make(chan error, 1)
	req, err := http.NewRequestWithContext(t.Context(), "POST", b.URL+"/kling/v1/videos/text2video",
		strings.NewReader(`{"model_name":"kling-v3","prompt":"[[sandbox: fail=timeout]]"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", klingKey["Authorization"])
	go func() {
		resp, err := b.HTTP.Do(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		done <- err
	}()
	for len(b.Jobs(t, "")) == 0 {
		continue
	}
	b.Stop()
	if err := <-done; err == nil {
		t.Error("an answer came")
	}
}

func TestFailAtPoll(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	submit := func(text string) string {
		return call(t, b, "POST", "text2video", with(textVideo(), m{"prompt": "[[sandbox: " + text + "]]"})).Text("data", "task_id")
	}
	poll := func(id string) sandboxtest.Answer { return call(t, b, "GET", "text2video/"+id, nil) }
	moderation, reject := submit("fail=moderation"), submit("fail=reject, at=poll")
	internal, once, endless := submit("fail=internal"), submit("fail=internal, times=1"), submit("fail=timeout, at=poll")
	b.Clock.Advance(2*time.Second - time.Millisecond)
	if got := poll(moderation); got.Text("data", "task_status") != "processing" {
		t.Errorf("failed early: %s", got.Raw)
	}
	b.Clock.Advance(time.Millisecond)
	if got := poll(moderation); got.Text("data", "task_status") != "failed" || !strings.Contains(got.Text("data", "task_status_msg"), "risk control") || got.At("data", "task_result") != nil {
		t.Errorf("moderation: %s", got.Raw)
	}
	if got := poll(reject); got.Text("data", "task_status") != "failed" || got.Text("data", "task_status_msg") == "" {
		t.Errorf("reject: %s", got.Raw)
	}
	for _, want := range []int{500, 500, 500, 200, 200} {
		if got := poll(internal); got.Status != want {
			t.Errorf("internal: %d %s, want %d", got.Status, got.Raw, want)
		}
	}
	if first, second := poll(once).Status, poll(once).Status; first != 500 || second != 200 {
		t.Errorf("once: %d, %d", first, second)
	}
	b.Clock.Advance(365 * 24 * time.Hour)
	if got := poll(endless); got.Text("data", "task_status") != "processing" {
		t.Errorf("timeout: %s", got.Raw)
	}
}

// file submits a video with the directive and returns the link to the video.
func file(t *testing.T, b *sandboxtest.Sandbox, text string) string {
	t.Helper()
	id := call(t, b, "POST", "text2video", with(textVideo(), m{"prompt": "[[sandbox: duration=0, " + text + "]]"})).Text("data", "task_id")
	return call(t, b, "GET", "text2video/"+id, nil).Text("data", "task_result", "videos", 0, "url")
}

func TestDownload(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	for text, want := range map[string][]int{
		"ref=x":                             {200, 200},
		"fail=internal, at=download":        {500, 500, 500, 200},
		"fail=reject, at=download":          {403, 403, 403, 403, 403},
		"fail=reject, at=download, times=1": {403, 200},
		"fail=moderation, at=download":      {404, 404, 404, 404},
	} {
		url := file(t, b, text)
		for i, status := range want {
			if got := b.Call(t, "GET", url, nil, nil); got.Status != status {
				t.Errorf("%s: call %d: %d, want %d", text, i, got.Status, status)
			}
		}
	}
	const size = 3_000_000
	url := file(t, b, "result_bytes=3000000")
	if got := b.Call(t, "GET", url, nil, nil); len(got.Raw) != size {
		t.Errorf("%d bytes, want %d", len(got.Raw), size)
	}
	if got := b.Call(t, "GET", url, map[string]string{"Range": "bytes=2999990-"}, nil); got.Status != 206 || len(got.Raw) != 10 {
		t.Errorf("range: %d, %d bytes", got.Status, len(got.Raw))
	}
	if got := b.Call(t, "GET", strings.Replace(url, "video.mp4", "video-watermark.mp4", 1), nil, nil); got.Status != 404 {
		t.Errorf("a marked file nobody asked for: %d", got.Status)
	}
	waiting := call(t, b, "POST", "text2video", textVideo()).Text("data", "task_id")
	if got := b.Call(t, "GET", "/media/"+waiting+"/video.mp4", nil, nil); got.Status != 404 {
		t.Errorf("the file of a job under way: %d", got.Status)
	}
}

func TestDownloadStalls(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	url := file(t, b, "fail=timeout, at=download, result_bytes=100000")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := b.HTTP.Do(req)
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
	go b.Stop() // cuts the held call
	if n, err := io.Copy(io.Discard, resp.Body); n != 0 || err == nil {
		t.Errorf("%d more bytes, error %v", n, err)
	}
}

func TestDownloadTakesItsTime(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	began := time.Now()
	slow := b.Call(t, "GET", file(t, b, "download=500ms, result_bytes=100000"), nil, nil)
	if took := time.Since(began); slow.Status != 200 || len(slow.Raw) != 100000 || took < 500*time.Millisecond {
		t.Errorf("status %d, %d bytes after %s", slow.Status, len(slow.Raw), took)
	}
	if fast := b.Call(t, "GET", file(t, b, "result_bytes=100000"), nil, nil); string(fast.Raw) != string(slow.Raw) {
		t.Error("another file than without the directive")
	}
}

// A web page can send these requests without a preflight, so they change nothing.
func TestControlTakesNoForms(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	order := m{"provider": "kling", "directive": "ref=second", "mode": "error"}
	for _, kind := range []string{"application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain", "text/plain; application/json", ""} {
		for _, path := range []string{"/_sandbox/next", "/_sandbox/outage"} {
			if got := b.Call(t, "POST", path, map[string]string{"Content-Type": kind}, order); got.Status != 415 || got.Text("error") == "" {
				t.Errorf("%s of type %q: %d %s", path, kind, got.Status, got.Raw)
			}
		}
	}
	order = m{"provider": "kling", "directive": "ref=second"}
	if got := b.Call(t, "POST", "/_sandbox/next", map[string]string{"Content-Type": "application/json; charset=utf-8"}, order); got.Status != 204 {
		t.Errorf("JSON with a charset: %d %s", got.Status, got.Raw)
	}
}

func TestNextDirective(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	for _, bad := range []any{"x", m{"provider": "nobody", "directive": "duration=1s"}, m{"provider": "kling", "directive": "x"}, m{"provider": "kling", "prompt": "x"}} {
		if got := b.Call(t, "POST", "/_sandbox/next", nil, bad); got.Status != 400 {
			t.Errorf("%v: %d", bad, got.Status)
		}
	}
	for _, text := range []string{"fail=moderation, at=submit", "[[sandbox: ref=second]]"} {
		if got := b.Call(t, "POST", "/_sandbox/next", nil, m{"provider": "kling", "directive": text}); got.Status != 204 {
			t.Fatalf("%d %s", got.Status, got.Raw)
		}
	}
	generate(t, b, image("another vendor's"))
	call(t, b, "POST", "text2video", with(textVideo(), m{"duration": "99"}))
	call(t, b, "POST", "text2video", with(textVideo(), m{"prompt": "[[sandbox: ref=own]]"}))
	if got := call(t, b, "POST", "text2video", textVideo()); got.At("code") != 1301.0 {
		t.Errorf("first: %s", got.Raw)
	}
	call(t, b, "POST", "text2video", textVideo())
	call(t, b, "POST", "text2video", textVideo())
	if n := len(b.Jobs(t, "?reference=second")); n != 1 {
		t.Errorf("%d jobs took the second directive", n)
	}
}

// A directive can remove the links of a job that succeeds, or offer unusable files.
func TestMedia(t *testing.T) {
	t.Parallel()
	for directive, want := range map[string]struct {
		status int
		kind   string
		size   int
	}{
		"media=none":                        {0, "", 0},
		"media=none, piece=2":               {200, "video/mp4", -1}, // the only file is number 1
		"media=empty":                       {200, "", 0},
		"media=page":                        {200, "text/html; charset=utf-8", -1},
		"media=page, piece=2":               {200, "video/mp4", -1},
		"media=elsewhere":                   {302, "text/html; charset=utf-8", -1},
		"fail=reject, at=download":          {403, "text/plain; charset=utf-8", -1},
		"fail=reject, at=download, piece=2": {200, "video/mp4", -1},
	} {
		t.Run(directive, func(t *testing.T) {
			t.Parallel()
			b := sandboxtest.Open(t)
			made := call(t, b, "POST", "text2video", with(textVideo(), m{"prompt": "x [[sandbox:" + directive + "]]"}))
			b.Clock.Advance(time.Minute)
			got := call(t, b, "GET", "text2video/"+made.Text("data", "task_id"), nil)
			url := got.At("data", "task_result", "videos", 0, "url")
			link, named := url.(string)
			if got.At("data", "task_status") != "succeed" || named != (want.status != 0) {
				t.Fatalf("%d %s", got.Status, got.Raw)
			}
			if !named {
				return
			}
			client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, link, nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			file, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != want.status || resp.Header.Get("Content-Type") != want.kind || (len(file) == 0) != (want.size == 0) {
				t.Errorf("%d %q with %d bytes (%v), want %+v", resp.StatusCode, resp.Header.Get("Content-Type"), len(file), err, want)
			}
			if to, err := resp.Location(); want.status == 302 && (err != nil || to.Host == req.URL.Host) {
				t.Errorf("the redirect leads to %v (%v)", to, err)
			}
		})
	}
}
