package acedata_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mediagate/mediagate/sandbox/sample"
	"github.com/mediagate/mediagate/sandbox/sandboxtest"
)

type m = sandboxtest.M

var with = sandboxtest.With

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "sandbox-acedata-api-key"

func bearer(key string) map[string]string {
	return map[string]string{"Authorization": "Bearer " + key}
}

func call(t *testing.T, b *sandboxtest.Sandbox, path string, body any) sandboxtest.Answer {
	t.Helper()
	return b.Call(t, "POST", "/acedata"+path, bearer(secret), body)
}

func custom(lyric string) m {
	return m{
		"action": "generate", "model": "chirp-v5", "custom": true, "instrumental": false, "lyric": lyric, "title": "Winter", "style": "pop",
		"async": true,
	}
}

func flow(prompt string) m {
	return m{"action": "generate", "model": "FUZZ-2.0 Pro", "custom": false, "prompt": prompt, "seed": "7", "async": true}
}

// made makes a song and waits for it.
func made(t *testing.T, b *sandboxtest.Sandbox, api string, body m) sandboxtest.Answer {
	t.Helper()
	id := call(t, b, api+"/audios", body).Text("task_id")
	b.Clock.Advance(2 * time.Second)
	return call(t, b, api+"/tasks", m{"id": id, "action": "retrieve"})
}

func TestRules(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	id := made(t, b, "/suno", custom("la")).Text("response", "data", 0, "id")
	flowID := made(t, b, "/producer", flow("snow")).Text("response", "data", 0, "id")
	follow := func(action string, changes m) m {
		return with(m{"action": action, "audio_id": id, "async": true}, changes)
	}
	span := func(from, to any) m { return m{"replace_section_start": from, "replace_section_end": to} }
	long := func(n int) string { return strings.Repeat("ä", n) }
	for name, tc := range map[string]struct {
		api  string
		body m
		says string // "" when no rule is broken
	}{
		"all weights":            {"/suno", with(custom("la"), m{"style_influence": 0, "weirdness": 1, "audio_weight": 0.5, "vocal_gender": "f"}), ""},
		"no lyrics":              {"/suno", custom(""), "lyric: is required"},
		"a weight of 1.1":        {"/suno", with(custom("la"), m{"weirdness": 1.1}), "weirdness"},
		"another field":          {"/suno", with(custom("la"), m{"tags": "pop"}), "tags: unknown field"},
		"a call that blocks":     {"/suno", with(custom("la"), m{"async": nil}), "async"},
		"long lyrics, v4":        {"/suno", with(custom(long(3001)), m{"model": "chirp-v4"}), "lyric"},
		"long lyrics":            {"/suno", custom(long(5001)), "lyric"},
		"long style, v4":         {"/suno", with(custom("la"), m{"model": "chirp-v4", "style": long(201)}), "style"},
		"long title":             {"/suno", with(custom("la"), m{"title": long(101)}), "title"},
		"a long description":     {"/suno", m{"prompt": long(501), "async": true}, "prompt"},
		"an unknown voice":       {"/suno", with(custom("la"), m{"persona_id": "1"}), "persona_id"},
		"no song":                {"/suno", follow("remaster", m{"audio_id": nil}), "song id does not exist"},
		"the other API's song":   {"/suno", follow("remaster", m{"audio_id": flowID}), "song id does not exist"},
		"no span":                {"/suno", follow("replace_section", nil), "replace_section_start"},
		"a span beyond":          {"/suno", follow("replace_section", span(9, 18)), "replace_section_end"},
		"a flow song of lyrics":  {"/producer", with(flow(""), m{"custom": true, "lyric": "la"}), ""},
		"no sound":               {"/producer", flow(""), "prompt"},
		"a seed that is none":    {"/producer", with(flow("snow"), m{"seed": "7.5"}), "seed"},
		"an action of the other": {"/producer", m{"action": "remaster", "audio_id": flowID, "async": true}, "action"},
		"the other's song":       {"/producer", m{"action": "stems", "audio_id": id, "async": true}, "song id does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := call(t, b, tc.api+"/audios", tc.body)
			switch {
			case tc.says == "" && (got.Status != 200 || got.Text("task_id") == ""):
				t.Errorf("%d %s", got.Status, got.Raw)
			case tc.says != "" && (got.Status != 400 || got.Text("error", "code") != "bad_request" || !strings.Contains(got.Text("error", "message"), tc.says)):
				t.Errorf("%d %s, want %q", got.Status, got.Raw, tc.says)
			}
		})
	}
}

// A link must lead to a sound. What a customer uploaded, and the voice made of it, are
// its own, in the API where it was.
func TestUploads(t *testing.T) {
	t.Parallel()
	files := http.NewServeMux()
	files.HandleFunc("/song.wav", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, sample.WAV(1)) })
	files.HandleFunc("/page.mp3", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html></html>")) })
	srv := httptest.NewServer(files)
	t.Cleanup(srv.Close)
	b := sandboxtest.Open(t)
	id := call(t, b, "/suno/upload", m{"audio_url": srv.URL + "/song.wav"}).Text("data", "audio_id")
	voice := call(t, b, "/suno/persona", m{"audio_id": id, "name": "task_1"}).Text("data", "persona_id")
	remaster := m{"action": "remaster", "audio_id": id, "async": true}
	sings := with(custom("la"), m{"action": "artist_consistency", "audio_id": id, "persona_id": voice})
	for name, tc := range map[string]struct {
		customer, path string
		body           m
		says           string // "" when nothing is refused
	}{
		"no sound":                 {"", "/suno/upload", m{"audio_url": srv.URL + "/page.mp3"}, "is not a valid audio"},
		"no link":                  {"", "/suno/upload", m{"audio_url": "ftp://x/y"}, "must be an http"},
		"its own":                  {"", "/suno/audios", remaster, ""},
		"another customer's":       {"@acme", "/suno/audios", remaster, "song id does not exist"},
		"of the other API":         {"", "/producer/audios", m{"action": "stems", "audio_id": id, "async": true}, "song id does not exist"},
		"a voice without a name":   {"", "/suno/persona", m{"audio_id": id}, "name"},
		"a voice of nothing":       {"", "/suno/persona", m{"audio_id": "1", "name": "a"}, "song id does not exist"},
		"its own voice":            {"", "/suno/audios", sings, ""},
		"another customer's voice": {"@acme", "/suno/audios", with(custom("la"), m{"persona_id": voice}), "persona_id"},
	} {
		got := b.Call(t, "POST", "/acedata"+tc.path, bearer(secret+tc.customer), tc.body)
		if (got.Status == 200) != (tc.says == "") || !strings.Contains(got.Text("error", "message"), tc.says) {
			t.Errorf("%s: %d %s", name, got.Status, got.Raw)
		}
	}
	if n := len(b.Jobs(t, "?reference=task_1")); n != 1 {
		t.Errorf("%d jobs of the voice", n)
	}
}

// A song has a preview first, which cannot be had as a file. The directive of a
// section's lyrics, which stand in two fields, counts once.
func TestSongs(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	query := func(id string) sandboxtest.Answer {
		return call(t, b, "/suno/tasks", m{"id": id, "action": "retrieve"})
	}
	id := call(t, b, "/suno/audios", custom("[[sandbox: duration=10s]] la")).Text("task_id")
	if got := query(id); got.Text("id") != id || got.At("response") != nil || got.At("state") != "" {
		t.Errorf("queued: %s", got.Raw)
	}
	b.Clock.Advance(5 * time.Second)
	running := query(id)
	if r := b.Call(t, "GET", running.Text("response", "data", 0, "audio_url"), nil, nil); r.Status != 404 {
		t.Errorf("a preview: %d of %s", r.Status, running.Raw)
	}
	b.Clock.Advance(5 * time.Second)
	section := "[[sandbox: ref=section]] lo"
	got := call(t, b, "/suno/audios", m{
		"action": "replace_section", "audio_id": query(id).Text("response", "data", 0, "id"), "lyric": section, "prompt": section,
		"replace_section_start": 1, "replace_section_end": 2, "async": true,
	})
	if got.Status != 200 || len(b.Jobs(t, "?reference=section")) != 1 {
		t.Errorf("%d %s", got.Status, got.Raw)
	}
}
