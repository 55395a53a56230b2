package gemini_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mediagate/mediagate/sandbox"
	"github.com/mediagate/mediagate/sandbox/sandboxtest"
)

type m = sandboxtest.M

var with = sandboxtest.With

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const path = "/gemini/v1beta/models/gemini-3.1-flash-image-preview:generateContent"

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

func pngFile(t *testing.T, width, height int) []byte {
	t.Helper()
	var buf bytes.Buffer
	if err := png.Encode(&buf, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func jpegFile(t *testing.T, width, height int) []byte {
	t.Helper()
	var buf bytes.Buffer
	if err := jpeg.Encode(&buf, image.NewGray(image.Rect(0, 0, width, height)), nil); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestRules(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	reference := inline("image/png", pngFile(t, 64, 64))
	for name, tc := range map[string]struct {
		body    any
		message string // a part of it; "" when nothing is refused
	}{
		"plain": {turn(now("")), ""},
		"everything": {with(turn(now(""), reference), m{
			"generationConfig": m{
				"responseModalities": []string{"TEXT", "IMAGE"}, "imageConfig": m{"aspectRatio": "21:9", "imageSize": "512"}, "candidateCount": 1,
				"thinkingConfig": m{"includeThoughts": true, "thinkingLevel": "minimal"},
			},
			"tools":          []m{{"googleSearch": m{}}},
			"safetySettings": []m{{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}},
		}), ""},
		"turns":              {m{"contents": []m{{"role": "user", "parts": []m{text("a")}}, {"role": "model", "parts": []m{text("b")}}, {"role": "user", "parts": []m{now("")}}}}, ""},
		"no role":            {m{"contents": []m{{"parts": []m{now("")}}}}, ""},
		"ends with model":    {m{"contents": []m{{"role": "model", "parts": []m{now("")}}}}, "contents[0].role"},
		"other role":         {m{"contents": []m{{"role": "system", "parts": []m{now("")}}}}, "contents[0].role"},
		"no contents":        {m{}, "contents"},
		"empty contents":     {m{"contents": []m{}}, "contents"},
		"no parts":           {turn(), "contents[0].parts"},
		"empty part":         {turn(m{}), "contents[0].parts[0].data"},
		"two in one part":    {turn(with(reference, text("a"))), "contents[0].parts[0].data"},
		"unknown":            {with(turn(now("")), m{"n": 2}), "n: unknown field"},
		"unknown config":     {configured(m{"numberOfImages": 2}), "numberOfImages"},
		"no JSON":            {"{", "payload"},
		"two candidates":     {configured(m{"candidateCount": 2}), "candidateCount"},
		"only image":         {configured(m{"responseModalities": []string{"IMAGE"}}), ""},
		"only text":          {configured(m{"responseModalities": []string{"TEXT"}}), "responseModalities"},
		"with audio":         {configured(m{"responseModalities": []string{"IMAGE", "AUDIO"}}), "responseModalities"},
		"no modalities":      {configured(m{"responseModalities": []string{}}), "responseModalities"},
		"modalities as text": {configured(m{"responseModalities": "IMAGE"}), "responseModalities"},
		"ratio auto":         {shaped(m{"aspectRatio": "auto"}), "aspectRatio"},
		"ratio 3:5":          {shaped(m{"aspectRatio": "3:5"}), "aspectRatio"},
		"size 1k":            {shaped(m{"imageSize": "1k"}), "imageSize"},
		"size 0.5K":          {shaped(m{"imageSize": "0.5K"}), "imageSize"},
		"size number":        {shaped(m{"imageSize": 512}), "imageSize"},
		"shape beside":       {shaped(m{"width": 512}), "imageConfig.width"},
		"another tool":       {with(turn(now("")), m{"tools": []m{{"codeExecution": m{}}}}), "tools[0].codeExecution"},
		"search settings":    {with(turn(now("")), m{"tools": []m{{"googleSearch": m{"x": 1}}}}), "tools[0].googleSearch.x"},
		"safety category":    {with(turn(now("")), m{"safetySettings": []m{{"threshold": "OFF"}}}), "safetySettings[0].category"},
		"safety threshold":   {with(turn(now("")), m{"safetySettings": []m{{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "NONE"}}}), "safetySettings[0].threshold"},
		"14 images":          {turn(append(slices.Repeat([]m{reference}, 14), now(""))...), ""},
		"15 images":          {turn(append(slices.Repeat([]m{reference}, 15), now(""))...), "at most 14"},
		"jpeg":               {turn(now(""), inline("image/jpeg", jpegFile(t, 64, 64))), ""},
		"heic":               {turn(now(""), inline("image/heic", []byte("\x00\x00\x00\x18ftypheic"))), ""},
		"no heic":            {turn(now(""), inline("image/heic", []byte("hello, world"))), "Unable to process"},
		"gif":                {turn(now(""), inline("image/gif", []byte("GIF89a"))), "mimeType"},
		"video":              {turn(now(""), inline("video/mp4", []byte("x"))), "mimeType"},
		"no type":            {turn(now(""), m{"inlineData": m{"data": "aGVsbG8="}}), "mimeType"},
		"no picture":         {turn(now(""), inline("image/png", []byte("hello"))), "Unable to process"},
		"empty picture":      {turn(now(""), inline("image/png", nil)), "Unable to process"},
		"broken base64":      {turn(now(""), m{"inlineData": m{"mimeType": "image/png", "data": "?"}}), "Base64"},
		"a data URI":         {turn(now(""), m{"inlineData": m{"mimeType": "image/png", "data": "data:image/png;base64,aGVsbG8="}}), "Base64"},
		"inline beside":      {turn(now(""), m{"inlineData": m{"mimeType": "image/png", "data": "", "url": "x"}}), "inlineData.url"},
		"file without link":  {turn(now(""), m{"fileData": m{"mimeType": "image/png", "fileUri": "files/1"}}), "fileUri"},
		"directive":          {turn(text("[[sandbox: speed=1]]")), "sandbox directive"},
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
		"foreign key":   {"POST", path, "other", turn(now("")), 400, "INVALID_ARGUMENT"},
		"other model":   {"POST", strings.Replace(path, "3.1", "2.0", 1), "sandbox-gemini-api-key", turn(now("")), 404, "NOT_FOUND"},
		"other method":  {"POST", strings.Replace(path, "generate", "streamGenerate", 1), "sandbox-gemini-api-key", turn(now("")), 404, "NOT_FOUND"},
		"other path":    {"POST", "/gemini/v1/models", "sandbox-gemini-api-key", turn(now("")), 404, "NOT_FOUND"},
		"another verb":  {"GET", path, "sandbox-gemini-api-key", nil, 404, "NOT_FOUND"},
		"a stored file": {"POST", path, "sandbox-gemini-api-key", turn(now(""), m{"fileData": m{"mimeType": "image/png", "fileUri": "https://files.example.com/1"}}), 403, "PERMISSION_DENIED"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := b.Call(t, tc.method, tc.path, map[string]string{"x-goog-api-key": tc.key}, tc.body)
			if got.Status != tc.status || got.Text("error", "status") != tc.word {
				t.Errorf("%d %.500s, want %d %s", got.Status, got.Raw, tc.status, tc.word)
			}
			if name == "foreign key" && got.Text("error", "details", 0, "reason") != "API_KEY_INVALID" {
				t.Errorf("no reason: %s", got.Raw)
			}
		})
	}
}

func TestRequestSize(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	raw, err := json.Marshal(turn(now("")))
	if err != nil {
		t.Fatal(err)
	}
	for size, want := range map[int]int{20 << 20: 200, 20<<20 + 1: 400} {
		if got := generate(t, b, string(raw)+strings.Repeat(" ", size-len(raw))); got.Status != want {
			t.Errorf("%d bytes: %d %.500s", size, got.Status, got.Raw)
		}
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
		"512":             {"1:1", "512", nil, image.Pt(512, 512)},
		"2:3":             {"2:3", "1K", nil, image.Pt(848, 1264)},
		"16:9 of 2K":      {"16:9", "2K", nil, image.Pt(2752, 1536)},
		"8:1 of 4K":       {"8:1", "4K", nil, image.Pt(12288, 1536)},
		"1:8 of 512":      {"1:8", "512", nil, image.Pt(192, 1536)},
		"as the picture":  {"", "", []m{inline("image/png", pngFile(t, 320, 180))}, image.Pt(1376, 768)},
		"as the first":    {"", "", []m{inline("image/jpeg", jpegFile(t, 100, 410)), inline("image/png", pngFile(t, 320, 180))}, image.Pt(512, 2048)},
		"not the picture": {"1:1", "", []m{inline("image/png", pngFile(t, 320, 180))}, image.Pt(1024, 1024)},
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

func TestParts(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	kinds := func(config m) []string {
		got := generate(t, b, configured(config))
		parts, _ := got.At("candidates", 0, "content", "parts").([]any)
		var out []string
		for _, p := range parts {
			p, _ := p.(m)
			word := "image"
			if p["text"] != nil {
				word = "text"
			}
			if p["thought"] == true {
				word = "thought " + word
			}
			out = append(out, word)
		}
		if got.Text("modelVersion") != "gemini-3.1-flash-image-preview" || got.Text("responseId") == "" ||
			got.At("usageMetadata", "candidatesTokenCount") != 1120.0 || got.Text("candidates", 0, "content", "role") != "model" {
			t.Errorf("%.300s … %s", got.Raw, got.Raw[len(got.Raw)-300:])
		}
		return out
	}
	for name, tc := range map[string]struct {
		config m
		want   []string
	}{
		"default":  {m{}, []string{"text", "image"}},
		"image":    {m{"responseModalities": []string{"IMAGE"}}, []string{"image"}},
		"both":     {m{"responseModalities": []string{"TEXT", "IMAGE"}}, []string{"text", "image"}},
		"thoughts": {m{"responseModalities": []string{"IMAGE"}, "thinkingConfig": m{"includeThoughts": true}}, []string{"thought text", "thought image", "image"}},
	} {
		if got := kinds(tc.config); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

func TestDirectives(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	for text, tc := range map[string]struct {
		status        int
		block, finish string
		word          string
		texts         bool
		made          int
	}{
		"fail=reject":                  {400, "", "", "INVALID_ARGUMENT", false, 0},
		"fail=moderation, at=submit":   {200, "PROHIBITED_CONTENT", "", "", false, 0},
		"fail=internal, at=submit":     {500, "", "", "INTERNAL", false, 0},
		"fail=moderation":              {200, "", "IMAGE_SAFETY", "", false, 1},
		"fail=reject, at=poll":         {200, "", "STOP", "", true, 1},
		"fail=internal":                {500, "", "", "INTERNAL", false, 1},
		"fail=moderation, at=download": {200, "", "IMAGE_SAFETY", "", false, 1},
		"fail=reject, at=download":     {200, "", "STOP", "", true, 1},
		"fail=internal, at=download":   {500, "", "", "INTERNAL", false, 1},
	} {
		reference := "(" + strings.NewReplacer("=", "-", ", ", "-").Replace(text) + ")"
		got := generate(t, b, turn(now(", ref="+reference+", "+text)))
		said := got.Text("candidates", 0, "content", "parts", 0, "text") != ""
		if got.Status != tc.status || got.Text("promptFeedback", "blockReason") != tc.block || got.Text("candidates", 0, "finishReason") != tc.finish ||
			got.Text("error", "status") != tc.word || said != tc.texts || bytes.Contains(got.Raw, []byte("inlineData")) {
			t.Errorf("%s: %d %.500s", text, got.Status, got.Raw)
		}
		if n := len(b.Jobs(t, "?reference="+reference)); n != tc.made {
			t.Errorf("%s: %d jobs, want %d", text, n, tc.made)
		}
	}
}

func TestQuota(t *testing.T) {
	t.Parallel()
	b := sandboxtest.OpenIn(t, t.TempDir(), sandboxtest.NewClock(), []sandbox.Account{
		{Provider: "gemini", Credentials: map[string]string{"api_key": "sandbox-gemini-api-key"}, Concurrency: 1},
	})
	// By the clock, which stands still, the first image is never ready.
	if got := generate(t, b, turn(text("a fox"))); got.Status != 200 {
		t.Fatalf("%d %.500s", got.Status, got.Raw)
	}
	if got := generate(t, b, turn(text("a fox"))); got.Status != 429 || got.Text("error", "status") != "RESOURCE_EXHAUSTED" {
		t.Errorf("%d %.500s", got.Status, got.Raw)
	}
}

// The call is in the journal before its answer, under the job that it made.
func TestJournal(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	got := generate(t, b, turn(text("a red fox"), text("[[sandbox: duration=0]]")))
	id := got.Text("responseId")
	jobs := b.Jobs(t, "?provider=gemini&reference=red+fox")
	if len(jobs) != 1 {
		t.Fatalf("%d jobs", len(jobs))
	}
	if j, _ := jobs[0].(m); j["id"] != id || j["model"] != "gemini-3.1-flash-image-preview" || j["prompt"] != "a red fox\n[[sandbox: duration=0]]" {
		t.Errorf("job %v of answer %s", j, id)
	}
	calls := b.Call(t, "GET", "/_sandbox/calls?job="+id, nil, nil)
	if calls.Text("calls", 0, "kind") != "submit" || calls.At("calls", 0, "status") != 200.0 || calls.At("calls", 0, "made") != true || calls.At("calls", 1) != nil {
		t.Errorf("calls: %s", calls.Raw)
	}
	if strings.Contains(string(calls.Raw), "sandbox-gemini-api-key") {
		t.Error("calls tell the key")
	}
}

// open begins a call and leaves its answer to be read.
func open(t *testing.T, b *sandboxtest.Sandbox, body any) *http.Response {
	t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), "POST", b.URL+path, bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("x-goog-api-key", key["x-goog-api-key"])
	resp, err := b.HTTP.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

func TestLargeImage(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	for _, size := range []int{3_000_000, 3_000_001, 3_000_002, 30 << 20} {
		raw := file(t, generate(t, b, turn(now(", result_bytes="+strconv.Itoa(size)))), 1)
		if len(raw) != size {
			t.Errorf("%d bytes, want %d", len(raw), size)
		}
		if _, err := png.Decode(bytes.NewReader(raw)); err != nil {
			t.Errorf("%d bytes are no PNG: %v", size, err)
		}
	}
}

// It does not run beside others, whose memory it would count.
func TestLargeImageIsNotHeld(t *testing.T) {
	b := sandboxtest.Open(t)
	generate(t, b, turn(now(""))) // what is made once is made
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n, err := io.Copy(io.Discard, open(t, b, turn(now(", result_bytes=134217728"))).Body)
	runtime.ReadMemStats(&after)
	if err != nil || n < 134217728/3*4 {
		t.Errorf("%d bytes, error %v", n, err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 16<<20 {
		t.Errorf("%d bytes were taken for it", took)
	}
}

func TestSlowAnswer(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	began := time.Now()
	slow := file(t, generate(t, b, turn(now(", download=1s, result_bytes=100000"))), 1)
	if took := time.Since(began); took < time.Second || len(slow) != 100000 {
		t.Errorf("%d bytes after %s", len(slow), took)
	}
}

func TestAnswerCutShort(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	resp := open(t, b, turn(now(", fail=timeout, at=download, result_bytes=300000")))
	half, err := io.ReadAll(io.LimitReader(resp.Body, 200000))
	if err != nil || resp.StatusCode != 200 || !bytes.Contains(half, []byte("inlineData")) {
		t.Fatalf("%d, %d bytes, error %v", resp.StatusCode, len(half), err)
	}
	go b.Stop() // lets the held call go
	if n, err := io.Copy(io.Discard, resp.Body); n > 10000 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%d more bytes, error %v", n, err)
	}
}

func TestLostAnswer(t *testing.T) {
	t.Parallel()
	for _, directive := range []string{"fail=timeout", "duration=0, fail=timeout, at=poll"} {
		b := sandboxtest.Open(t)
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, "POST", b.URL+path, strings.NewReader(`{"contents":[{"parts":[{"text":"[[sandbox: `+directive+`]]"}]}]}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("x-goog-api-key", key["x-goog-api-key"])
		done := make(chan error, 1)
		go func() {
			resp, err := b.HTTP.Do(req)
			if err == nil {
				_ = resp.Body.Close()
			}
			done <- err
		}()
		noted := func() bool {
			calls := b.Call(t, "GET", "/_sandbox/calls", nil, nil)
			return calls.At("calls", 0, "made") == true && calls.At("calls", 0, "status") == 0.0
		}
		for !noted() {
			select {
			case err := <-done:
				t.Fatalf("%s: answered: %v", directive, err)
			default:
			}
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: the answer was given: %v", directive, err)
		}
		if n := len(b.Jobs(t, "")); n != 1 {
			t.Errorf("%s: %d jobs", directive, n)
		}
	}
}
