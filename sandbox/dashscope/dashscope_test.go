package dashscope_test

import (
	"bytes"
	"image/png"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mediagate/mediagate/sandbox/sandboxtest"
)

type m = sandboxtest.M

var with = sandboxtest.With

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var key = map[string]string{"Authorization": "Bearer sk-sandbox-dashscope"}

func generate(t *testing.T, b *sandboxtest.Sandbox, body any) sandboxtest.Answer {
	t.Helper()
	return b.Call(t, "POST", "/dashscope/api/v1/services/aigc/multimodal-generation/generation", key, body)
}

func image(prompt string) m {
	return m{"model": "z-image-turbo", "input": m{"messages": []m{{"role": "user", "content": []m{{"text": prompt}}}}}}
}

func TestDashScopeRules(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	params := func(p m) m { return with(image("a fox"), m{"parameters": with(m{}, p)}) }
	message := func(msgs ...m) m { return m{"model": "z-image-turbo", "input": m{"messages": msgs}} }
	user := func(content ...m) m { return m{"role": "user", "content": content} }
	cases := map[string]struct {
		body   any
		status int
		code   string
	}{
		"plain":            {image("[[sandbox: duration=0]]"), 200, ""},
		"everything":       {params(m{"size": "1280*720", "prompt_extend": true, "seed": 7}), 200, ""},
		"no model":         {with(image("x"), m{"model": nil}), 400, "InvalidParameter"},
		"other model":      {with(image("x"), m{"model": "z-image"}), 404, "ModelNotFound"},
		"no input":         {m{"model": "z-image-turbo"}, 400, "InvalidParameter"},
		"no messages":      {message(), 400, "InvalidParameter"},
		"two messages":     {message(user(m{"text": "a"}), user(m{"text": "b"})), 400, "InvalidParameter"},
		"system role":      {message(m{"role": "system", "content": []m{{"text": "a"}}}), 400, "InvalidParameter"},
		"two texts":        {message(user(m{"text": "a"}, m{"text": "b"})), 400, "InvalidParameter"},
		"an image":         {message(user(m{"image": "https://cdn.example.com/a.png"})), 400, "InvalidParameter"},
		"blank":            {image(" "), 400, "InvalidParameter"},
		"800 characters":   {image(strings.Repeat("é", 800)), 200, ""},
		"801 characters":   {image(strings.Repeat("é", 801)), 400, "InvalidParameter"},
		"512*512":          {params(m{"size": "512*512"}), 200, ""},
		"512*511":          {params(m{"size": "512*511"}), 400, "InvalidParameter"},
		"2048*2048":        {params(m{"size": "2048*2048"}), 200, ""},
		"2048*2049":        {params(m{"size": "2048*2049"}), 400, "InvalidParameter"},
		"x for *":          {params(m{"size": "1024x1024"}), 400, "InvalidParameter"},
		"size ratio":       {params(m{"size": "1:1"}), 400, "InvalidParameter"},
		"negative":         {params(m{"size": "-1024*-1024"}), 400, "InvalidParameter"},
		"overflow":         {params(m{"size": "4294967296*4294967296"}), 400, "InvalidParameter"},
		"seed -1":          {params(m{"seed": -1}), 400, "InvalidParameter"},
		"seed 2147483647":  {params(m{"seed": 2147483647}), 200, ""},
		"seed 2147483648":  {params(m{"seed": int64(2147483648)}), 400, "InvalidParameter"},
		"extend word":      {params(m{"prompt_extend": "true"}), 400, "InvalidParameter"},
		"n":                {params(m{"n": 1}), 400, "InvalidParameter"},
		"params no object": {with(image("x"), m{"parameters": []m{}}), 400, "InvalidParameter"},
		"no JSON":          {"nothing", 400, "InvalidParameter"},
		"broken directive": {image("[[sandbox: speed=1]]"), 400, "InvalidParameter"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := generate(t, b, tc.body)
			if got.Status != tc.status || got.Text("code") != tc.code || got.Text("request_id") == "" {
				t.Errorf("%d %s, want %d %s", got.Status, got.Raw, tc.status, tc.code)
			}
		})
	}
}

func TestDashScopeHeaders(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	const path = "/dashscope/api/v1/services/aigc/multimodal-generation/generation"
	cases := map[string]struct {
		method, path string
		header       map[string]string
		status       int
		code         string
	}{
		"no key":       {"POST", path, nil, 401, "InvalidApiKey"},
		"bare key":     {"POST", path, map[string]string{"Authorization": "sk-sandbox-dashscope"}, 401, "InvalidApiKey"},
		"foreign key":  {"POST", path, map[string]string{"Authorization": "Bearer sk-other"}, 401, "InvalidApiKey"},
		"async":        {"POST", path, map[string]string{"Authorization": key["Authorization"], "X-DashScope-Async": "enable"}, 403, "AccessDenied"},
		"wrong method": {"GET", path, key, 400, "InvalidParameter"},
		"other path":   {"POST", "/dashscope/api/v1/other", key, 400, "InvalidParameter"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := b.Call(t, tc.method, tc.path, tc.header, image("[[sandbox: duration=0]]"))
			if got.Status != tc.status || got.Text("code") != tc.code {
				t.Errorf("%d %s, want %d %s", got.Status, got.Raw, tc.status, tc.code)
			}
		})
	}
	if jobs := b.Jobs(t, ""); len(jobs) != 0 {
		t.Errorf("%d jobs were made", len(jobs))
	}
}

func TestDashScopeImage(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	got := generate(t, b, with(image("a fox"), m{"parameters": m{"size": "864*1152", "prompt_extend": true}}))
	message := func(path ...any) any {
		return got.At(append([]any{"output", "choices", 0, "message"}, path...)...)
	}
	if got.At("usage", "width") != 864.0 || got.At("usage", "height") != 1152.0 || message("reasoning_content") == nil {
		t.Errorf("answer: %s", got.Raw)
	}
	url, _ := message("content", 0, "image").(string)
	b.Clock.Advance(time.Second)
	file := b.Call(t, "GET", url, nil, nil)
	img, err := png.Decode(bytes.NewReader(file.Raw))
	if err != nil {
		t.Fatalf("%d: %v", file.Status, err)
	}
	if size := img.Bounds().Size(); size.X != 864 || size.Y != 1152 {
		t.Errorf("file is %v", size)
	}
}
