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
	return b.Call(t, "POST", generation, key, body)
}

func image(prompt string) m {
	return m{"model": "z-image-turbo", "input": m{"messages": []m{{"role": "user", "content": []m{{"text": prompt}}}}}}
}

func TestImageRules(t *testing.T) {
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
		"everything":      {params(m{"size": "1280*720", "prompt_extend": true, "seed": 7}), 200, ""},
		"no model":        {with(image("x"), m{"model": nil}), 400, "InvalidParameter"},
		"other model":     {with(image("x"), m{"model": "z-image"}), 404, "ModelNotFound"},
		"no messages":     {message(), 400, "InvalidParameter"},
		"two messages":    {message(user(m{"text": "a"}), user(m{"text": "b"})), 400, "InvalidParameter"},
		"an image":        {message(user(m{"image": "https://cdn.example.com/a.png"})), 400, "InvalidParameter"},
		"801 characters":  {image(strings.Repeat("é", 801)), 400, "InvalidParameter"},
		"512*511":         {params(m{"size": "512*511"}), 400, "InvalidParameter"},
		"2048*2049":       {params(m{"size": "2048*2049"}), 400, "InvalidParameter"},
		"seed -1":         {params(m{"seed": -1}), 400, "InvalidParameter"},
		"seed 2147483648": {params(m{"seed": int64(2147483648)}), 400, "InvalidParameter"},
		"no JSON":         {"nothing", 400, "InvalidParameter"},
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

func TestImage(t *testing.T) {
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
