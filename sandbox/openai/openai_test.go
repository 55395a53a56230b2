package openai_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/mediagate/mediagate/sandbox"
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
		"plain":               {request(nil), ""},
		"everything":          {request(m{"instructions": "Whisper.", "speed": 4, "response_format": "pcm", "stream_format": "audio"}), ""},
		"4096 characters":     {request(m{"input": strings.Repeat("語", 4096)}), ""},
		"4097 characters":     {request(m{"input": strings.Repeat("a", 4097)}), "input"},
		"no input":            {request(m{"input": nil}), "input: is required"},
		"no voice":            {request(m{"voice": nil}), "voice: is required"},
		"no model":            {request(m{"model": nil}), "model: is required"},
		"another voice":       {request(m{"voice": "bob"}), "voice"},
		"another format":      {request(m{"response_format": "ogg"}), "response_format"},
		"slow":                {request(m{"speed": 0.24}), "speed"},
		"fast":                {request(m{"speed": 4.01}), "speed"},
		"speed as text":       {request(m{"speed": "1"}), "speed"},
		"events":              {request(m{"stream_format": "sse"}), "stream_format"},
		"unknown":             {request(m{"webhook": "x"}), "webhook: unknown field"},
		"instructions of tts": {request(m{"model": "tts-1", "instructions": "Whisper."}), "instructions"},
		"directive":           {request(m{"input": "[[sandbox: speed=1]]"}), "sandbox directive"},
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
func TestSounds(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	for format, tc := range map[string]struct{ kind, head string }{
		"":     {"audio/mpeg", "\xff\xfb"},
		"mp3":  {"audio/mpeg", "\xff\xfb"},
		"opus": {"audio/opus", "OggS"},
		"aac":  {"audio/aac", "\xff\xf1"},
		"flac": {"audio/flac", "fLaC"},
		"wav":  {"audio/wav", "RIFF"},
		"pcm":  {"audio/pcm", "\x00\x00"},
	} {
		changes := m{"response_format": format}
		if format == "" {
			changes = m{"response_format": nil}
		}
		got := speak(t, b, request(changes))
		kind, file := got.kind, got.file
		if kind != tc.kind || !bytes.HasPrefix(file, []byte(tc.head)) || got.err != nil {
			t.Errorf("%s: %q %.20q %v", format, kind, file, got.err)
		}
		changes["speed"] = 0.5
		if slow := speak(t, b, request(changes)).file; len(slow) < len(file)*3/2 {
			t.Errorf("%s: %d bytes at half the speed, %d at all of it", format, len(slow), len(file))
		}
		switch format {
		case "pcm":
			if len(file) != 3*24000*2 {
				t.Errorf("%d bytes of PCM for three seconds", len(file))
			}
		case "wav":
			if len(file) != 44+3*24000*2 || binary.LittleEndian.Uint32(file[4:]) != uint32(len(file)-8) || binary.LittleEndian.Uint32(file[40:]) != uint32(len(file)-44) {
				t.Errorf("%d bytes of WAV, %x", len(file), file[:44])
			}
		}
	}
}

type answer struct {
	status int
	kind   string
	file   []byte
	err    error
}

func speak(t *testing.T, b *sandboxtest.Sandbox, body m) (a answer) {
	t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.URL+path, bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", key["Authorization"])
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	a.status, a.kind = resp.StatusCode, resp.Header.Get("Content-Type")
	a.file, a.err = io.ReadAll(resp.Body)
	return a
}

func TestDirectives(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	for text, tc := range map[string]struct {
		status int
		code   any
	}{
		"fail=reject":                    {400, nil},
		"fail=moderation, at=submit":     {400, "content_policy_violation"},
		"fail=internal, at=submit":       {500, nil},
		"fail=moderation":                {400, "content_policy_violation"},
		"fail=reject, at=poll":           {400, nil},
		"fail=internal":                  {500, nil},
		"fail=moderation, at=download":   {400, "content_policy_violation"},
		"duration=0.1, download=0.5":     {200, nil},
		"result_bytes=100000, ref=ahoy ": {200, nil},
	} {
		got := b.Call(t, "POST", path, key, request(m{"input": "a [[sandbox: " + text + "]]"}))
		if got.Status != tc.status || tc.status != 200 && got.At("error", "code") != tc.code {
			t.Errorf("%s: %d %.300s", text, got.Status, got.Raw)
		}
	}
	got := speak(t, b, request(m{"input": "a [[sandbox: fail=internal, at=download]]", "response_format": "pcm"}))
	if got.status != 200 || len(got.file) == 0 || !errors.Is(got.err, io.ErrUnexpectedEOF) {
		t.Errorf("a sound that breaks: %d, %d bytes, %v", got.status, len(got.file), got.err)
	}
}

func TestAccounts(t *testing.T) {
	t.Parallel()
	b := sandboxtest.OpenIn(t, t.TempDir(), sandboxtest.NewClock(), []sandbox.Account{
		{Provider: "openai", Credentials: map[string]string{"api_key": "sandbox-openai-api-key"}, Concurrency: 1},
	})
	for name, tc := range map[string]struct {
		authorization, code string
		status              int
	}{
		"no key":      {"", "invalid_api_key", 401},
		"foreign key": {"Bearer other", "invalid_api_key", 401},
		"no money":    {"Bearer sandbox-openai-api-key@broke", "insufficient_quota", 429},
	} {
		got := b.Call(t, "POST", path, map[string]string{"Authorization": tc.authorization}, request(nil))
		if got.Status != tc.status || got.Text("error", "code") != tc.code {
			t.Errorf("%s: %d %s", name, got.Status, got.Raw)
		}
	}
	// By the clock, which stands still, the first one is never over.
	long := request(m{"input": "a [[sandbox: duration=0, ref=one]]"})
	if got := b.Call(t, "POST", path, key, long); got.Status != 200 {
		t.Fatalf("%d %s", got.Status, got.Raw)
	}
	if got := b.Call(t, "GET", "/openai/v1/models", key, nil); got.Status != 404 {
		t.Errorf("%d %s", got.Status, got.Raw)
	}
	if jobs := b.Jobs(t, "?provider=openai&reference=one"); len(jobs) != 1 {
		t.Errorf("%d jobs", len(jobs))
	}
}
