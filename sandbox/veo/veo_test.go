package veo_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mediagate/mediagate/sandbox/sandboxtest"
)

type m = sandboxtest.M

var with = sandboxtest.With

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const model = "/veo/v1beta/models/veo-3.1-generate-preview"

var key = map[string]string{"x-goog-api-key": "sandbox-veo-api-key"}

func text(directive string) m {
	return m{"instances": []m{{"prompt": "a fox [[sandbox: duration=0" + directive + "]]"}}}
}

func parameters(p m) m { return with(text(""), m{"parameters": p}) }

func submit(t *testing.T, b *sandboxtest.Sandbox, body any) sandboxtest.Answer {
	t.Helper()
	return b.Call(t, "POST", model+":predictLongRunning", key, body)
}

// done submits a job that is done at once, and asks for it.
func done(t *testing.T, b *sandboxtest.Sandbox, body any) sandboxtest.Answer {
	t.Helper()
	got := submit(t, b, body)
	if got.Status != 200 || !strings.HasPrefix(got.Text("name"), "models/veo-3.1-generate-preview/operations/") {
		t.Fatalf("%d %s", got.Status, got.Raw)
	}
	return b.Call(t, "GET", "/veo/v1beta/"+got.Text("name"), key, nil)
}

// The surface refuses what only Vertex AI has.
func TestRules(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	frame := m{"bytesBase64Encoded": base64.StdEncoding.EncodeToString(sandboxtest.PNG(t, 64, 64)), "mimeType": "image/png"}
	for name, tc := range map[string]struct {
		body    any
		message string
	}{
		"everything":   {m{"instances": []m{{"prompt": "a fox", "image": frame, "lastFrame": frame}}, "parameters": m{"sampleCount": 4, "durationSeconds": 8, "aspectRatio": "9:16", "resolution": "4k", "negativePrompt": "rain", "personGeneration": "allow_adult", "enhancePrompt": true}}, ""},
		"a seed":       {parameters(m{"seed": 1}), "seed: isn't supported"},
		"sound":        {parameters(m{"generateAudio": true}), "generateAudio: isn't supported"},
		"a way to fit": {parameters(m{"resizeMode": "pad"}), "resizeMode: isn't supported"},
		"a bucket":     {parameters(m{"storageUri": "gs://a"}), "storageUri: isn't supported"},
	} {
		got := submit(t, b, tc.body)
		if tc.message == "" && got.Status == 200 {
			continue
		}
		if tc.message == "" || got.Status != 400 || !strings.Contains(got.Text("error", "message"), tc.message) {
			t.Errorf("%s: %d %.300s", name, got.Status, got.Raw)
		}
	}
	if got := b.Call(t, "POST", "/veo/v1beta/models/veo-3.1-generate-001:predictLongRunning", key, text("")); got.Status != 404 {
		t.Errorf("a model of Vertex AI's: %d", got.Status)
	}
	if got := b.Call(t, "POST", model+":predictLongRunning", map[string]string{"x-goog-api-key": "no"}, text("")); got.Status != 400 || got.Text("error", "details", 0, "reason") != "API_KEY_INVALID" {
		t.Errorf("another key: %d %s", got.Status, got.Raw)
	}
	if got := b.Call(t, "POST", model+":predictLongRunning", nil, text("")); got.Status != 403 {
		t.Errorf("no key: %d", got.Status)
	}
}

// A file needs the key, is somewhere else, and is there for two days.
func TestFiles(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	plain := *b.HTTP
	plain.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	b.HTTP = &plain
	got := done(t, b, with(text(", filtered=1"), m{"parameters": m{"sampleCount": 3}}))
	made := []any{"response", "generateVideoResponse"}
	if got.At("done") != true || got.At(append(made, "raiMediaFilteredCount")...) != 1.0 || got.At(append(made, "generatedSamples", 2)...) != nil {
		t.Fatalf("%s", got.Raw)
	}
	uri := got.Text(append(made, "generatedSamples", 1, "video", "uri")...)
	led := b.Call(t, "GET", uri, key, nil)
	if led.Status != 302 {
		t.Fatalf("%d %s", led.Status, led.Raw)
	}
	if got := b.Call(t, "GET", led.Header.Get("Location"), key, nil); got.Status != 200 || got.Header.Get("Content-Type") != "video/mp4" || string(got.Raw[4:8]) != "ftyp" {
		t.Errorf("%d, %d bytes", got.Status, len(got.Raw))
	}
	for name, answer := range map[string]sandboxtest.Answer{
		"without the key":        b.Call(t, "GET", uri, nil, nil),
		"another's":              b.Call(t, "GET", uri, map[string]string{"x-goog-api-key": "sandbox-veo-api-key@acme"}, nil),
		"one that was held back": b.Call(t, "GET", strings.Replace(uri, "-1:", "-2:", 1), key, nil),
		"its description":        b.Call(t, "GET", strings.TrimSuffix(uri, "?alt=media"), key, nil),
	} {
		if answer.Status != 403 {
			t.Errorf("%s: %d %s", name, answer.Status, answer.Raw)
		}
	}
	b.Clock.Advance(48 * time.Hour)
	for _, link := range []string{uri, led.Header.Get("Location")} {
		if got := b.Call(t, "GET", link, key, nil); got.Status != 403 || !strings.Contains(got.Text("error", "message"), "may not exist") {
			t.Errorf("after two days: %d %s", got.Status, got.Raw)
		}
	}
}
