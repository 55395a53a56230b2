package kernel_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/mediagate/mediagate/sandbox/sandboxtest"
)

type m = sandboxtest.M

var with = sandboxtest.With

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The tests of the kernel use two vendors: Kling, which is polled, and DashScope, which answers
// a request for an image at once.
var klingKey = map[string]string{"Authorization": "Bearer sandbox-kling-api-key"}

func call(t *testing.T, b *sandboxtest.Sandbox, method, path string, body any) sandboxtest.Answer {
	t.Helper()
	return b.Call(t, method, "/kling/v1/videos/"+path, klingKey, body)
}

func textVideo() m {
	return m{"model_name": "kling-v3", "prompt": "a fox", "duration": "5"}
}

var dashKey = map[string]string{"Authorization": "Bearer sk-sandbox-dashscope"}

func generate(t *testing.T, b *sandboxtest.Sandbox, body any) sandboxtest.Answer {
	t.Helper()
	return b.Call(t, "POST", "/dashscope/api/v1/services/aigc/multimodal-generation/generation", dashKey, body)
}

func image(prompt string) m {
	return m{"model": "z-image-turbo", "input": m{"messages": []m{{"role": "user", "content": []m{{"text": prompt}}}}}}
}
