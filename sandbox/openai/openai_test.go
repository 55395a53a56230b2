package openai_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/mediagate/mediagate/sandbox/sandboxtest"
)

type m = sandboxtest.M

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const path = "/openai/v1/audio/speech"

var key = map[string]string{"Authorization": "Bearer sandbox-openai-api-key"}

// request is one of three seconds with some fields changed; null takes one away.
func request(changes m) m {
	body := sandboxtest.With(m{"model": "gpt-4o-mini-tts", "voice": "coral", "input": strings.Repeat("a", 45)}, changes)
	for name, value := range body {
		if value == nil {
			delete(body, name)
		}
	}
	return body
}

func TestRules(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	for name, tc := range map[string]struct {
		body    any
		message string // a part of it; "" when nothing is refused
	}{
		"everything":          {request(m{"instructions": "Whisper.", "speed": 4, "response_format": "pcm", "stream_format": "audio"}), ""},
		"4097 characters":     {request(m{"input": strings.Repeat("a", 4097)}), "input"},
		"no input":            {request(m{"input": nil}), "input: is required"},
		"another voice":       {request(m{"voice": "bob"}), "voice"},
		"another format":      {request(m{"response_format": "ogg"}), "response_format"},
		"fast":                {request(m{"speed": 4.01}), "speed"},
		"events":              {request(m{"stream_format": "sse"}), "stream_format"},
		"unknown":             {request(m{"webhook": "x"}), "webhook: unknown field"},
		"instructions of tts": {request(m{"model": "tts-1", "instructions": "Whisper."}), "instructions"},
		"no JSON":             {"{", "JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := b.Call(t, "POST", path, key, tc.body)
			if tc.message == "" {
				if got.Status != 200 {
					t.Errorf("refused: %d %.500s", got.Status, got.Raw)
				}
				return
			}
			if got.Status != 400 || got.Text("error", "type") != "invalid_request_error" || !strings.Contains(got.Text("error", "message"), tc.message) {
				t.Errorf("%d %.500s, want 400 saying %s", got.Status, got.Raw, tc.message)
			}
		})
	}
}

// The length of the sound follows that of the text, and the speed.
func TestLengths(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	const second = 24000 * 2
	for want, changes := range map[int]m{
		3 * second: {"response_format": "pcm"}, 6 * second: {"response_format": "pcm", "speed": 0.5}, 44 + 3*second: {"response_format": "wav"},
	} {
		if got := b.Call(t, "POST", path, key, request(changes)); len(got.Raw) != want {
			t.Errorf("%v: %d bytes, want %d", changes, len(got.Raw), want)
		}
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	broke := map[string]string{"Authorization": key["Authorization"] + "@broke"}
	if got := b.Call(t, "POST", path, broke, request(nil)); got.Status != 429 || got.Text("error", "code") != "insufficient_quota" {
		t.Errorf("no money: %d %s", got.Status, got.Raw)
	}
	if got := b.Call(t, "POST", path, key, request(m{"model": "tts-9"})); got.Status != 404 || got.Text("error", "code") != "model_not_found" {
		t.Errorf("no model: %d %s", got.Status, got.Raw)
	}
	if got := b.Call(t, "GET", "/openai/v1/models", key, nil); got.Status != 404 {
		t.Errorf("no page: %d %s", got.Status, got.Raw)
	}
	body := `{"model":"gpt-4o-mini-tts","voice":"coral","response_format":"pcm","input":"a [[sandbox: fail=internal, at=download]]"}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", key["Authorization"])
	req.Header.Set("Content-Type", "application/json")
	resp, err := b.HTTP.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if sound, err := io.ReadAll(resp.Body); len(sound) == 0 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a sound that breaks: %d bytes, %v", len(sound), err)
	}
}
