package gemini_test

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/png"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mediagate/mediagate/sandbox/sandboxtest"
)

type m = sandboxtest.M

var with = sandboxtest.With

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const path = "/gemini/v1beta/models/gemini-3.1-flash-image:generateContent"

var key = map[string]string{"x-goog-api-key": "sandbox-gemini-api-key"}

func generate(t *testing.T, b *sandboxtest.Sandbox, body any) sandboxtest.Answer {
	t.Helper()
	return b.Call(t, "POST", path, key, body)
}

// turn is a request of one turn.
func turn(parts ...m) m { return m{"contents": []m{{"role": "user", "parts": parts}}} }

func text(s string) m { return m{"text": s} }

// now is a directive that costs the tests no time.
func now(more string) m { return text("a fox [[sandbox: duration=0" + more + "]]") }

func inline(mimeType string, raw []byte) m {
	return m{"inlineData": m{"mimeType": mimeType, "data": base64.StdEncoding.EncodeToString(raw)}}
}

func configured(config m) m { return with(turn(now("")), m{"generationConfig": config}) }

func shaped(config m) m { return configured(m{"imageConfig": config}) }

func TestRules(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	reference := inline("image/png", sandboxtest.PNG(t, 64, 64))
	for name, tc := range map[string]struct {
		body    any
		message string // a part of it; "" when nothing is refused
	}{
		"everything": {with(turn(now(""), reference), m{
			"generationConfig": m{
				"responseModalities": []string{"TEXT", "IMAGE"}, "imageConfig": m{"aspectRatio": "21:9", "imageSize": "512"}, "candidateCount": 1,
				"thinkingConfig": m{"includeThoughts": true, "thinkingLevel": "minimal"},
			},
			"tools":          []m{{"googleSearch": m{}}},
			"safetySettings": []m{{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}},
		}), ""},
		"ends with model":   {m{"contents": []m{{"role": "model", "parts": []m{now("")}}}}, "contents[0].role"},
		"no contents":       {m{}, "contents"},
		"no parts":          {turn(), "contents[0].parts"},
		"empty part":        {turn(m{}), "contents[0].parts[0].data"},
		"two in one part":   {turn(with(reference, text("a"))), "contents[0].parts[0].data"},
		"unknown":           {with(turn(now("")), m{"n": 2}), "n: unknown field"},
		"no JSON":           {"{", "payload"},
		"two candidates":    {configured(m{"candidateCount": 2}), "candidateCount"},
		"only text":         {configured(m{"responseModalities": []string{"TEXT"}}), "responseModalities"},
		"ratio 3:5":         {shaped(m{"aspectRatio": "3:5"}), "aspectRatio"},
		"size 0.5K":         {shaped(m{"imageSize": "0.5K"}), "imageSize"},
		"another tool":      {with(turn(now("")), m{"tools": []m{{"codeExecution": m{}}}}), "tools[0].codeExecution"},
		"safety category":   {with(turn(now("")), m{"safetySettings": []m{{"threshold": "OFF"}}}), "safetySettings[0].category"},
		"14 images":         {turn(append(slices.Repeat([]m{reference}, 14), now(""))...), ""},
		"15 images":         {turn(append(slices.Repeat([]m{reference}, 15), now(""))...), "at most 14"},
		"no heic":           {turn(now(""), inline("image/heic", []byte("hello, world"))), "Unable to process"},
		"gif":               {turn(now(""), inline("image/gif", []byte("GIF89a"))), "mimeType"},
		"no picture":        {turn(now(""), inline("image/png", []byte("hello"))), "Unable to process"},
		"broken base64":     {turn(now(""), m{"inlineData": m{"mimeType": "image/png", "data": "?"}}), "Base64"},
		"file without link": {turn(now(""), m{"fileData": m{"mimeType": "image/png", "fileUri": "files/1"}}), "fileUri"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := generate(t, b, tc.body)
			if tc.message == "" {
				if got.Status != 200 || got.Text("candidates", 0, "finishReason") != "STOP" {
					t.Errorf("refused: %d %.500s", got.Status, got.Raw)
				}
				return
			}
			if got.Status != 400 || got.At("error", "code") != 400.0 || got.Text("error", "status") != "INVALID_ARGUMENT" || !strings.Contains(got.Text("error", "message"), tc.message) {
				t.Errorf("%d %.500s, want 400 saying %s", got.Status, got.Raw, tc.message)
			}
		})
	}
}

func TestCalls(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	for name, tc := range map[string]struct {
		method, path, key string
		body              any
		status            int
		word              string
	}{
		"stable model":  {"POST", strings.Replace(path, "-preview", "", 1), "sandbox-gemini-api-key", turn(now("")), 200, ""},
		"no key":        {"POST", path, "", turn(now("")), 403, "PERMISSION_DENIED"},
		"other model":   {"POST", strings.Replace(path, "3.1", "2.0", 1), "sandbox-gemini-api-key", turn(now("")), 404, "NOT_FOUND"},
		"other method":  {"POST", strings.Replace(path, "generate", "streamGenerate", 1), "sandbox-gemini-api-key", turn(now("")), 404, "NOT_FOUND"},
		"a stored file": {"POST", path, "sandbox-gemini-api-key", turn(now(""), m{"fileData": m{"mimeType": "image/png", "fileUri": "https://files.example.com/1"}}), 403, "PERMISSION_DENIED"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := b.Call(t, tc.method, tc.path, map[string]string{"x-goog-api-key": tc.key}, tc.body)
			if got.Status != tc.status || got.Text("error", "status") != tc.word {
				t.Errorf("%d %.500s, want %d %s", got.Status, got.Raw, tc.status, tc.word)
			}
		})
	}
}

// file is the decoded image of the part.
func file(t *testing.T, got sandboxtest.Answer, part int) []byte {
	t.Helper()
	if kind := got.Text("candidates", 0, "content", "parts", part, "inlineData", "mimeType"); kind != "image/png" {
		t.Fatalf("part %d is %q: %d %.500s", part, kind, got.Status, got.Raw)
	}
	raw, err := base64.StdEncoding.DecodeString(got.Text("candidates", 0, "content", "parts", part, "inlineData", "data"))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestShapes(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	for name, tc := range map[string]struct {
		ratio, size string
		parts       []m
		want        image.Point
	}{
		"default":         {"", "", nil, image.Pt(1024, 1024)},
		"16:9 of 2K":      {"16:9", "2K", nil, image.Pt(2752, 1536)},
		"as the picture":  {"", "", []m{inline("image/png", sandboxtest.PNG(t, 320, 180))}, image.Pt(1376, 768)},
		"not the picture": {"1:1", "", []m{inline("image/png", sandboxtest.PNG(t, 320, 180))}, image.Pt(1024, 1024)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := m{}
			if tc.ratio != "" {
				config["aspectRatio"] = tc.ratio
			}
			if tc.size != "" {
				config["imageSize"] = tc.size
			}
			got := generate(t, b, with(turn(append(tc.parts, now(""))...), m{"generationConfig": m{"imageConfig": config, "responseModalities": []string{"IMAGE"}}}))
			img, err := png.Decode(bytes.NewReader(file(t, got, 0)))
			if err != nil {
				t.Fatal(err)
			}
			if size := img.Bounds().Size(); size != tc.want {
				t.Errorf("%v, want %v", size, tc.want)
			}
		})
	}
}

// A large image comes whole, in its time: as base64, whatever remains of its length.
func TestLargeImage(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	began := time.Now()
	for directive, size := range map[string]int{
		", result_bytes=100000": 100_000, ", result_bytes=100001": 100_001, ", result_bytes=100002, download=250ms": 100_002,
	} {
		raw := file(t, generate(t, b, turn(now(directive))), 1)
		if _, err := png.Decode(bytes.NewReader(raw)); err != nil || len(raw) != size {
			t.Errorf("%d bytes, want a PNG of %d: %v", len(raw), size, err)
		}
	}
	if took := time.Since(began); took < 250*time.Millisecond {
		t.Errorf("it took %s", took)
	}
}
