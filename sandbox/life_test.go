package sandbox_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"go.uber.org/goleak"

	"github.com/mediagate/mediagate/sandbox"
	"github.com/mediagate/mediagate/sandbox/sample"
	"github.com/mediagate/mediagate/sandbox/sandboxtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type m = sandboxtest.M

// life is a job of one vendor, in the vendor's protocol: a refused submission, an accepted one,
// a poll and a download. The tests of the adapters check the rest of each vendor's protocol.
type life struct {
	header  map[string]string
	submit  string // path of the submission
	body    m      // {song} is replaced by the link to a song
	refused m      // changes to the body that the vendor refuses
	status  int    // HTTP status of the refusal
	says    string // part of the refusal
	id      []any  // path of the job's id in the answer to the submission; empty: the answer has the file
	poll    string // path of the poll, with {id}
	ask     m      // the body of the poll, with {id}; nil: none
	link    []any  // path in the answer of the link to a file, or of the file in base64
}

func bearer(scheme, key string) map[string]string {
	return map[string]string{"Authorization": scheme + " " + key}
}

// vertexKey returns a header with an access token that it requests as the customer's service
// account.
func vertexKey(t *testing.T, b *sandboxtest.Sandbox) map[string]string {
	t.Helper()
	var account struct {
		Email string `json:"client_email"`
		Key   string `json:"private_key"`
		ID    string `json:"private_key_id"`
		URI   string `json:"token_uri"`
	}
	for _, c := range sandbox.Channels(b.URL) {
		if c.Provider == "vertex" {
			if err := json.Unmarshal([]byte(c.Credentials["service_account"]), &account); err != nil {
				t.Fatal(err)
			}
		}
	}
	key, err := jwt.ParseRSAPrivateKeyFromPEM([]byte(account.Key))
	if err != nil {
		t.Fatal(err)
	}
	now := b.Clock.Now()
	token := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.MapClaims{
		"iss": account.Email, "scope": "https://www.googleapis.com/auth/cloud-platform", "aud": account.URI,
		"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	})
	token.Header["kid"] = account.ID
	assertion, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	form := url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"}, "assertion": {assertion}}
	got := b.Call(t, "POST", "/vertex/token", map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, form.Encode())
	return bearer("Bearer", got.Text("access_token"))
}

func lives() map[string]life {
	const link = "https://media.example.com/a.png"
	song := m{"action": "generate", "model": "chirp-v5", "custom": true, "lyric": "la", "title": "Winter", "style": "pop", "async": true}
	return map[string]life{
		"kling": {
			header: bearer("Bearer", "sandbox-kling-api-key"), submit: "/v1/videos/text2video",
			body:    m{"model_name": "kling-v3", "prompt": "a fox", "duration": "5"},
			refused: m{"duration": 5}, status: 400, says: `"code":1201`,
			id: []any{"data", "task_id"}, poll: "/v1/videos/text2video/{id}", link: []any{"data", "task_result", "videos", 0, "url"},
		},
		"kling of the newer generation": {
			header: bearer("Bearer", "sandbox-kling-api-key"), submit: "/image-to-video/kling-3.0",
			body:    m{"contents": []m{{"type": "prompt", "text": "a fox"}, {"type": "first_frame", "url": link}}},
			refused: m{"contents": []m{{"type": "prompt", "text": "a fox"}, {"type": "last_frame", "url": link}}}, status: 400, says: "contents",
			id: []any{"data", "id"}, poll: "/tasks?task_ids={id}", link: []any{"data", 0, "outputs", 0, "url"},
		},
		"dashscope": {
			header: map[string]string{"Authorization": "Bearer sk-sandbox-dashscope", "X-DashScope-Async": "enable"},
			submit: "/api/v1/services/aigc/video-generation/video-synthesis",
			body: m{
				"model": "wan2.7-i2v", "input": m{"media": []m{{"type": "first_frame", "url": link}}}, "parameters": m{"resolution": "720P"},
			},
			refused: m{"parameters": m{"ratio": "16:9"}}, status: 400, says: "parameters.ratio",
			id: []any{"output", "task_id"}, poll: "/api/v1/tasks/{id}", link: []any{"output", "video_url"},
		},
		"dashscope, images": {
			header: bearer("Bearer", "sk-sandbox-dashscope"), submit: "/api/v1/services/aigc/multimodal-generation/generation",
			body: m{
				"model": "z-image-turbo", "input": m{"messages": []m{{"role": "user", "content": []m{{"text": "a fox"}}}}},
			},
			refused: m{"parameters": m{"size": "512*511"}}, status: 400, says: "parameters.size",
			link: []any{"output", "choices", 0, "message", "content", 0, "image"},
		},
		"minimax": {
			header: bearer("Bearer", "sk-sandbox-minimax"), submit: "/v2/video_generation",
			body: m{"model": "MiniMax-H3", "content": []m{
				{"type": "text", "text": "a fox"}, {"type": "image_url", "image_url": m{"url": link}, "role": "reference_image"},
			}},
			refused: m{"content": []m{
				{"type": "image_url", "image_url": m{"url": link}, "role": "first_frame"},
				{"type": "image_url", "image_url": m{"url": link}, "role": "reference_image"},
			}}, status: 400, says: "(2013)",
			id: []any{"task_id"}, poll: "/v2/query/video_generation/{id}", link: []any{"task", "content", "url"},
		},
		"gemini": {
			header: map[string]string{"x-goog-api-key": "sandbox-gemini-api-key"}, submit: "/v1beta/models/gemini-3.1-flash-image:generateContent",
			body:    m{"contents": []m{{"role": "user", "parts": []m{{"text": "a fox"}}}}},
			refused: m{"generationConfig": m{"imageConfig": m{"imageSize": "8K"}}}, status: 400, says: "INVALID_ARGUMENT",
			link: []any{"candidates", 0, "content", "parts", 0, "inlineData", "data"},
		},
		"vidu": {
			header: bearer("Token", "vda_sandbox_vidu"), submit: "/ent/v2/reference2video",
			body:    m{"model": "viduq3", "prompt": "a fox", "images": []string{link}},
			refused: m{"images": []string{}}, status: 400, says: "FieldItemCountOutOfRange",
			id: []any{"task_id"}, poll: "/ent/v2/tasks/{id}/creations", link: []any{"creations", 0, "url"},
		},
		"vertex": {
			submit:  "/v1/projects/sandbox-project/locations/us-central1/publishers/google/models/veo-3.1-generate-001:predictLongRunning",
			body:    m{"instances": []m{{"prompt": "a fox"}}, "parameters": m{"generateAudio": false}},
			refused: m{"parameters": m{"generateAudio": false, "resizeMode": "pad"}}, status: 400, says: "parameters.resizeMode",
			id:   []any{"name"},
			poll: "/v1/projects/sandbox-project/locations/us-central1/publishers/google/models/veo-3.1-generate-001:fetchPredictOperation",
			ask:  m{"operationName": "{id}"}, link: []any{"response", "videos", 0, "bytesBase64Encoded"},
		},
		"veo": {
			header: map[string]string{"x-goog-api-key": "sandbox-veo-api-key"}, submit: "/v1beta/models/veo-3.1-generate-preview:predictLongRunning",
			body:    m{"instances": []m{{"prompt": "a fox"}}},
			refused: m{"parameters": m{"seed": 1}}, status: 400, says: "parameters.seed",
			id: []any{"name"}, poll: "/v1beta/{id}", link: []any{"response", "generateVideoResponse", "generatedSamples", 0, "video", "uri"},
		},
		"acedata": {
			header: bearer("Bearer", "sandbox-acedata-api-key"), submit: "/suno/audios", body: song,
			refused: m{"lyric": nil}, status: 400, says: "lyric",
			id: []any{"task_id"}, poll: "/suno/tasks", ask: m{"id": "{id}", "action": "retrieve"}, link: []any{"response", "data", 1, "audio_url"},
		},
		"sunoapi": {
			header: bearer("Bearer", "sandbox-sunoapi-api-key"), submit: "/api/v1/generate",
			body: m{
				"model": "V5", "customMode": true, "instrumental": false, "prompt": "la", "style": "pop", "title": "Winter", "styleWeight": 0.33,
				"callBackUrl": "https://callback.example.com",
			},
			refused: m{"title": strings.Repeat("ä", 101)}, status: 200, says: `"code":413`,
			id: []any{"data", "taskId"}, poll: "/api/v1/generate/record-info?taskId={id}", link: []any{"data", "response", "sunoData", 1, "audioUrl"},
		},
		"musicapi": {
			header: bearer("Bearer", "sandbox-musicapi-api-key"), submit: "/api/v1/sonic/sample",
			body:    m{"mv": "sonic-v5", "custom_mode": false, "gpt_description_prompt": "a fox", "url": "{song}"},
			refused: m{"sample_clip_id": "1"}, status: 400, says: "oneOf",
			id: []any{"task_id"}, poll: "/api/v1/sonic/task/{id}", link: []any{"data", 1, "audio_url"},
		},
		"midjourney": {
			header: map[string]string{"mj-api-secret": "sandbox-midjourney-secret"}, submit: "/mj-fast/mj/submit/imagine",
			body:    m{"prompt": "a fox --ar 16:9 --v 7"},
			refused: m{"prompt": "a fox --v 9"}, status: 200, says: `"code":4`,
			id: []any{"result"}, poll: "/mj/task/{id}/fetch", link: []any{"imageUrl"},
		},
		"openai": {
			header: bearer("Bearer", "sandbox-openai-api-key"), submit: "/v1/audio/speech",
			body:    m{"model": "gpt-4o-mini-tts", "input": "a fox", "voice": "coral"},
			refused: m{"speed": 4.01}, status: 400, says: "invalid_request_error",
		},
	}
}

func TestLife(t *testing.T) {
	t.Parallel()
	for name, v := range lives() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := sandboxtest.Open(t)
			songs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, sample.MP3(20)) }))
			t.Cleanup(songs.Close)
			if v.header == nil {
				v.header = vertexKey(t, b)
			}
			base, _, _ := strings.Cut(name, " ")
			base = "/" + strings.TrimSuffix(base, ",")
			send := func(header map[string]string, path string, body m, change m) sandboxtest.Answer {
				t.Helper()
				raw, err := json.Marshal(sandboxtest.With(body, change))
				if err != nil {
					t.Fatal(err)
				}
				return b.Call(t, "POST", base+path, header, bytes.ReplaceAll(raw, []byte("{song}"), []byte(songs.URL)))
			}
			if got := send(nil, v.submit, v.body, nil); got.Status < 400 && got.At("code") == nil {
				t.Errorf("without a key: %d %s", got.Status, got.Raw)
			}
			if got := send(v.header, v.submit, v.body, v.refused); got.Status != v.status || !bytes.Contains(got.Raw, []byte(v.says)) {
				t.Errorf("refused: %d %s, want %d and %s", got.Status, got.Raw, v.status, v.says)
			}
			if got := send(v.header, v.submit, v.body, m{"no_field": 1}); !bytes.Contains(got.Raw, []byte("no_field: unknown field")) {
				t.Errorf("an unknown field: %d %s", got.Status, got.Raw)
			}
			if n := len(b.Jobs(t, "")); n != 0 {
				t.Fatalf("refused submissions created %d jobs", n)
			}
			got := send(v.header, v.submit, v.body, nil)
			if jobs := b.Jobs(t, ""); got.Status != http.StatusOK || len(jobs) != 1 {
				t.Fatalf("%d %.300s; jobs %v", got.Status, got.Raw, jobs)
			}
			b.Clock.Advance(time.Minute)
			switch id := got.Text(v.id...); {
			case v.ask != nil:
				ask := m{}
				for key, value := range v.ask {
					ask[key] = strings.ReplaceAll(value.(string), "{id}", id)
				}
				got = send(v.header, v.poll, ask, nil)
			case v.id != nil:
				got = b.Call(t, "GET", base+strings.ReplaceAll(v.poll, "{id}", id), v.header, nil)
			}
			file := got.Raw
			switch link := got.Text(v.link...); {
			case v.link == nil:
			case strings.HasPrefix(link, "http"):
				file = b.Call(t, "GET", link, v.header, nil).Raw
			default:
				file, _ = base64.StdEncoding.DecodeString(link)
			}
			if len(file) < 100 {
				t.Errorf("a file of %d bytes: %.300s", len(file), got.Raw)
			}
		})
	}
}
