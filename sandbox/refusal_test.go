package sandbox_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/mediagate/mediagate/sandbox/sample"
	"github.com/mediagate/mediagate/sandbox/sandboxtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type m = sandboxtest.M

// submission is a request that a vendor accepts, and a change to it that the vendor refuses.
type submission struct {
	header  map[string]string
	path    string
	body    m      // {song} is replaced by the link to a song
	refused m      // the change to the body
	status  int    // HTTP status of the refusal
	says    string // part of the refusal
}

func bearer(scheme, key string) map[string]string {
	return map[string]string{"Authorization": scheme + " " + key}
}

// submissions holds a row for each schema reader of a vendor. Vertex AI reads its requests with the
// code of veo. A refusal of fal is the result of a job: see its own tests.
func submissions() map[string]submission {
	const link = "https://media.example.com/a.png"
	song := m{"action": "generate", "model": "chirp-v5", "custom": true, "lyric": "la", "title": "Winter", "style": "pop", "async": true}
	return map[string]submission{
		"kling": {
			header: bearer("Bearer", "sandbox-kling-api-key"), path: "/v1/videos/text2video",
			body:    m{"model_name": "kling-v3", "prompt": "a fox", "duration": "5"},
			refused: m{"duration": 5}, status: 400, says: `"code":1201`,
		},
		"kling of the newer generation": {
			header: bearer("Bearer", "sandbox-kling-api-key"), path: "/image-to-video/kling-3.0",
			body:    m{"contents": []m{{"type": "prompt", "text": "a fox"}, {"type": "first_frame", "url": link}}},
			refused: m{"contents": []m{{"type": "prompt", "text": "a fox"}, {"type": "last_frame", "url": link}}}, status: 400, says: "contents",
		},
		"dashscope": {
			header: map[string]string{"Authorization": "Bearer sk-sandbox-dashscope", "X-DashScope-Async": "enable"},
			path:   "/api/v1/services/aigc/video-generation/video-synthesis",
			body: m{
				"model": "wan2.7-i2v", "input": m{"media": []m{{"type": "first_frame", "url": link}}}, "parameters": m{"resolution": "720P"},
			},
			refused: m{"parameters": m{"ratio": "16:9"}}, status: 400, says: "parameters.ratio",
		},
		"dashscope, images": {
			header: bearer("Bearer", "sk-sandbox-dashscope"), path: "/api/v1/services/aigc/multimodal-generation/generation",
			body: m{
				"model": "z-image-turbo", "input": m{"messages": []m{{"role": "user", "content": []m{{"text": "a fox"}}}}},
			},
			refused: m{"parameters": m{"size": "512*511"}}, status: 400, says: "parameters.size",
		},
		"minimax": {
			header: bearer("Bearer", "sk-sandbox-minimax"), path: "/v2/video_generation",
			body: m{"model": "MiniMax-H3", "content": []m{
				{"type": "text", "text": "a fox"}, {"type": "image_url", "image_url": m{"url": link}, "role": "reference_image"},
			}},
			refused: m{"content": []m{
				{"type": "image_url", "image_url": m{"url": link}, "role": "first_frame"},
				{"type": "image_url", "image_url": m{"url": link}, "role": "reference_image"},
			}}, status: 400, says: "(2013)",
		},
		"gemini": {
			header: map[string]string{"x-goog-api-key": "sandbox-gemini-api-key"}, path: "/v1beta/models/gemini-3.1-flash-image:generateContent",
			body:    m{"contents": []m{{"role": "user", "parts": []m{{"text": "a fox"}}}}},
			refused: m{"generationConfig": m{"imageConfig": m{"imageSize": "8K"}}}, status: 400, says: "INVALID_ARGUMENT",
		},
		"vidu": {
			header: bearer("Token", "vda_sandbox_vidu"), path: "/ent/v2/reference2video",
			body:    m{"model": "viduq3", "prompt": "a fox", "images": []string{link}},
			refused: m{"images": []string{}}, status: 400, says: "FieldItemCountOutOfRange",
		},
		"veo": {
			header: map[string]string{"x-goog-api-key": "sandbox-veo-api-key"}, path: "/v1beta/models/veo-3.1-generate-preview:predictLongRunning",
			body:    m{"instances": []m{{"prompt": "a fox"}}},
			refused: m{"parameters": m{"seed": 1}}, status: 400, says: "parameters.seed",
		},
		"acedata": {
			header: bearer("Bearer", "sandbox-acedata-api-key"), path: "/suno/audios", body: song,
			refused: m{"lyric": nil}, status: 400, says: "lyric",
		},
		"sunoapi": {
			header: bearer("Bearer", "sandbox-sunoapi-api-key"), path: "/api/v1/generate",
			body: m{
				"model": "V5", "customMode": true, "instrumental": false, "prompt": "la", "style": "pop", "title": "Winter", "styleWeight": 0.33,
				"callBackUrl": "https://callback.example.com",
			},
			refused: m{"title": strings.Repeat("ä", 101)}, status: 200, says: `"code":413`,
		},
		"musicapi": {
			header: bearer("Bearer", "sandbox-musicapi-api-key"), path: "/api/v1/sonic/sample",
			body:    m{"mv": "sonic-v5", "custom_mode": false, "gpt_description_prompt": "a fox", "url": "{song}"},
			refused: m{"sample_clip_id": "1"}, status: 400, says: "oneOf",
		},
		"midjourney": {
			header: map[string]string{"mj-api-secret": "sandbox-midjourney-secret"}, path: "/mj-fast/mj/submit/imagine",
			body:    m{"prompt": "a fox --ar 16:9 --v 7"},
			refused: m{"prompt": "a fox --v 9"}, status: 200, says: `"code":4`,
		},
		"openai": {
			header: bearer("Bearer", "sandbox-openai-api-key"), path: "/v1/audio/speech",
			body:    m{"model": "gpt-4o-mini-tts", "input": "a fox", "voice": "coral"},
			refused: m{"speed": 4.01}, status: 400, says: "invalid_request_error",
		},
	}
}

// TestRefusals checks that each vendor refuses an invalid submission and an unknown field, and
// creates no job of them. The tests of package providers/all follow jobs to their ends, and check
// how the vendors refuse keys.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for name, v := range submissions() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := sandboxtest.Open(t)
			songs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.Copy(w, sample.MP3(20))
			}))
			t.Cleanup(songs.Close)
			base, _, _ := strings.Cut(name, " ")
			send := func(change m) sandboxtest.Answer {
				t.Helper()
				raw, err := json.Marshal(sandboxtest.With(v.body, change))
				if err != nil {
					t.Fatal(err)
				}
				raw = bytes.ReplaceAll(raw, []byte("{song}"), []byte(songs.URL))
				return b.Call(t, http.MethodPost, "/"+strings.TrimSuffix(base, ",")+v.path, v.header, raw)
			}
			if got := send(v.refused); got.Status != v.status || !bytes.Contains(got.Raw, []byte(v.says)) {
				t.Errorf("refused: %d %s, want %d and %s", got.Status, got.Raw, v.status, v.says)
			}
			if got := send(m{"no_field": 1}); !bytes.Contains(got.Raw, []byte("no_field: unknown field")) {
				t.Errorf("an unknown field: %d %s", got.Status, got.Raw)
			}
			if n := len(b.Jobs(t, "")); n != 0 {
				t.Errorf("refused submissions created %d jobs", n)
			}
			if got := send(nil); got.Status != http.StatusOK || len(b.Jobs(t, "")) != 1 {
				t.Errorf("without a change: %d %.300s", got.Status, got.Raw)
			}
		})
	}
}
