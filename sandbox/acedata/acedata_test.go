package acedata_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mediagate/mediagate/media/mediainfo"
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

func retrieve(id string) m { return m{"id": id, "action": "retrieve"} }

// made makes a song and waits for it; it returns the task's id and its answer.
func made(t *testing.T, b *sandboxtest.Sandbox, api string, body m) (string, sandboxtest.Answer) {
	t.Helper()
	id := call(t, b, api+"/audios", body).Text("task_id")
	b.Clock.Advance(2 * time.Second)
	return id, call(t, b, api+"/tasks", retrieve(id))
}

// files serves a song and a page.
func files(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/song.wav", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, sample.WAV(1)) })
	mux.HandleFunc("/page.mp3", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html></html>")) })
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return srv.URL
}

func TestRules(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	_, done := made(t, b, "/suno", custom("la"))
	id := done.Text("response", "data", 0, "id")
	_, other := made(t, b, "/producer", flow("snow"))
	flowID := other.Text("response", "data", 0, "id")
	if id == "" || flowID == "" {
		t.Fatalf("%s %s", done.Raw, other.Raw)
	}
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
		"a song":                 {"/suno", custom("la"), ""},
		"instrumental":           {"/suno", with(custom(""), m{"instrumental": true}), ""},
		"lyrics of a prompt":     {"/suno", with(custom(""), m{"lyric": nil, "lyric_prompt": "snow"}), ""},
		"all weights":            {"/suno", with(custom("la"), m{"style_influence": 0, "weirdness": 1, "audio_weight": 0.5, "vocal_gender": "f"}), ""},
		"no lyrics":              {"/suno", custom(""), "lyric: is required"},
		"a weight of 1.1":        {"/suno", with(custom("la"), m{"weirdness": 1.1}), "weirdness"},
		"a weight below 0":       {"/suno", with(custom("la"), m{"audio_weight": -0.1}), "audio_weight"},
		"a weight that is text":  {"/suno", with(custom("la"), m{"style_influence": "1"}), "style_influence"},
		"another gender":         {"/suno", with(custom("la"), m{"vocal_gender": "male"}), "vocal_gender"},
		"another model":          {"/suno", with(custom("la"), m{"model": "v5"}), "model"},
		"another action":         {"/suno", with(custom("la"), m{"action": "dance"}), "action"},
		"another field":          {"/suno", with(custom("la"), m{"tags": "pop"}), "tags: unknown field"},
		"a call that blocks":     {"/suno", with(custom("la"), m{"async": nil}), "async"},
		"lyrics, v4":             {"/suno", with(custom(long(3000)), m{"model": "chirp-v4"}), ""},
		"long lyrics, v4":        {"/suno", with(custom(long(3001)), m{"model": "chirp-v4"}), "lyric"},
		"long lyrics":            {"/suno", custom(long(5001)), "lyric"},
		"long style, v4":         {"/suno", with(custom("la"), m{"model": "chirp-v4", "style": long(201)}), "style"},
		"long title":             {"/suno", with(custom("la"), m{"title": long(101)}), "title"},
		"a description":          {"/suno", m{"prompt": long(500), "async": true}, ""},
		"a long description":     {"/suno", m{"prompt": long(501), "async": true}, "prompt"},
		"no description":         {"/suno", m{"async": true}, "prompt: is required"},
		"an unknown voice":       {"/suno", with(custom("la"), m{"persona_id": "1"}), "persona_id"},
		"no voice":               {"/suno", with(custom("la"), m{"action": "artist_consistency", "audio_id": id}), "persona_id"},
		"remaster":               {"/suno", follow("remaster", m{"model": "chirp-v5"}), ""},
		"stems":                  {"/suno", follow("all_stems", nil), ""},
		"replace":                {"/suno", follow("replace_section", span(0, 16)), ""},
		"no song":                {"/suno", follow("remaster", m{"audio_id": nil}), "song id does not exist"},
		"an unknown song":        {"/suno", follow("remaster", m{"audio_id": "1"}), "song id does not exist"},
		"the other API's song":   {"/suno", follow("remaster", m{"audio_id": flowID}), "song id does not exist"},
		"no span":                {"/suno", follow("replace_section", nil), "replace_section_start"},
		"half a span":            {"/suno", follow("replace_section", m{"replace_section_start": 1}), "replace_section_end"},
		"a span backwards":       {"/suno", follow("replace_section", span(9, 9)), "replace_section_end"},
		"a span beyond":          {"/suno", follow("replace_section", span(9, 18)), "replace_section_end"},
		"a flow song":            {"/producer", flow("snow"), ""},
		"a flow song of lyrics":  {"/producer", with(flow(""), m{"custom": true, "lyric": "la"}), ""},
		"no sound":               {"/producer", flow(""), "prompt"},
		"a seed that is none":    {"/producer", with(flow("snow"), m{"seed": "7.5"}), "seed"},
		"a seed as a number":     {"/producer", with(flow("snow"), m{"seed": 7}), "seed"},
		"a model of the other":   {"/producer", with(flow("snow"), m{"model": "chirp-v5"}), "model"},
		"an action of the other": {"/producer", m{"action": "remaster", "audio_id": flowID, "async": true}, "action"},
		"flow stems":             {"/producer", m{"action": "stems", "audio_id": flowID, "async": true}, ""},
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

func TestCredentials(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	for name, tc := range map[string]struct {
		header map[string]string
		status int
		code   string
	}{
		"none":           {nil, 400, "no_token"},
		"another scheme": {map[string]string{"Authorization": "Token " + secret}, 400, "no_token"},
		"wrong":          {bearer("nobody"), 401, "invalid_token"},
		"renewed":        {bearer(secret + "~2"), 200, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := b.Call(t, "POST", "/acedata/suno/audios", tc.header, custom("la"))
			if got.Status != tc.status || got.Text("error", "code") != tc.code {
				t.Errorf("%d %s", got.Status, got.Raw)
			}
		})
	}
	if got := call(t, b, "/suno/nothing", m{}); got.Status != 404 || got.Text("error", "code") != "no_api" {
		t.Errorf("%d %s", got.Status, got.Raw)
	}
}

// A task is first known only, then has previews, which cannot be had as files,
// and then its songs.
func TestSong(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	id := call(t, b, "/suno/audios", custom("[[sandbox: duration=10s]] la")).Text("task_id")
	got := call(t, b, "/suno/tasks", retrieve(id))
	if got.Text("id") != id || got.At("response") != nil || got.At("state") != "" {
		t.Fatalf("queued: %s", got.Raw)
	}
	b.Clock.Advance(5 * time.Second)
	got = call(t, b, "/suno/tasks", retrieve(id))
	if got.At("response", "success") != true || got.Text("response", "data", 1, "state") != "running" {
		t.Fatalf("running: %s", got.Raw)
	}
	preview := got.Text("response", "data", 0, "audio_url")
	if r := b.Call(t, "GET", preview, nil, nil); r.Status != 404 {
		t.Errorf("a preview: %d", r.Status)
	}
	b.Clock.Advance(5 * time.Second)
	got = call(t, b, "/suno/tasks", retrieve(id))
	for i, seconds := range []float64{16, 17} {
		if state := got.Text("response", "data", i, "state"); state != "succeeded" || got.At("response", "data", i, "duration") != seconds {
			t.Fatalf("song %d: %s", i, got.Raw)
		}
		file := b.Call(t, "GET", got.Text("response", "data", i, "audio_url"), nil, nil)
		facts, err := mediainfo.Inspect(bytes.NewReader(file.Raw))
		if err != nil || facts.Format.Word() != "mp3" || math.Abs(facts.Duration-seconds) > 0.1 || file.Header.Get("Content-Type") != "audio/mpeg" {
			t.Errorf("song %d: %d %q of %+v (%v)", i, file.Status, file.Header.Get("Content-Type"), facts, err)
		}
		if cover := b.Call(t, "GET", got.Text("response", "data", i, "image_url"), nil, nil); cover.Header.Get("Content-Type") != "image/png" {
			t.Errorf("cover %d: %d", i, cover.Status)
		}
	}
	if film := b.Call(t, "GET", got.Text("response", "data", 0, "video_url"), nil, nil); film.Header.Get("Content-Type") != "video/mp4" {
		t.Errorf("film: %d", film.Status)
	}
	if got := call(t, b, "/producer/tasks", retrieve(id)); got.Status != 404 || got.Text("error", "code") != "not_found" {
		t.Errorf("the other API: %d %s", got.Status, got.Raw)
	}
	if got := b.Call(t, "POST", "/acedata/suno/tasks", bearer(secret+"@acme"), retrieve(id)); got.Status != 404 {
		t.Errorf("another customer: %d %s", got.Status, got.Raw)
	}
}

func TestNativeFields(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	_, got := made(t, b, "/producer", with(flow("snow"), m{"custom": true, "lyric": "one\ntwo"}))
	clip := []any{"response", "data", 0}
	if marks, _ := got.At(append(clip, "lyrics_timing_markers")...).([]any); len(marks) != 2 {
		t.Errorf("%s", got.Raw)
	}
	if got.Text(append(clip, "duration")...) != "16.0000000000" || got.Text(append(clip, "seed")...) != "7" {
		t.Errorf("%s", got.Raw)
	}
	if wav := b.Call(t, "GET", got.Text(append(clip, "wav_url")...), nil, nil); wav.Header.Get("Content-Type") != "audio/wav" {
		t.Errorf("wav: %d", wav.Status)
	}
}

func TestStems(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	_, done := made(t, b, "/suno", custom("la"))
	for action, want := range map[string][]string{
		"all_stems": {"(Vocals)", "(Backing Vocals)", "(Drums)", "(Bass)"}, "stems": {"(Vocals)", "(Instrumental)"},
	} {
		_, got := made(t, b, "/suno", m{"action": action, "audio_id": done.Text("response", "data", 0, "id"), "async": true})
		for i, end := range want {
			if title := got.Text("response", "data", i, "title"); !strings.HasSuffix(title, end) {
				t.Errorf("%s %d: %q", action, i, title)
			}
			if file := b.Call(t, "GET", got.Text("response", "data", i, "audio_url"), nil, nil); file.Status != 200 {
				t.Errorf("%s %d: %d", action, i, file.Status)
			}
		}
		if got.At("response", "data", len(want)) != nil {
			t.Errorf("%s: %s", action, got.Raw)
		}
	}
}

// Tracks of /producer come in one archive.
func TestArchive(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	_, done := made(t, b, "/producer", flow("snow"))
	_, got := made(t, b, "/producer", m{"action": "stems", "audio_id": done.Text("response", "data", 0, "id"), "async": true})
	file := b.Call(t, "GET", got.Text("response", "data", 0, "stems_url"), nil, nil)
	archive, err := zip.NewReader(bytes.NewReader(file.Raw), int64(len(file.Raw)))
	if err != nil {
		t.Fatalf("%s: %v", got.Raw, err)
	}
	var names []string
	for _, f := range archive.File {
		names = append(names, f.Name)
	}
	if !slices.Equal(names, []string{"vocals.mp3", "instrumental.mp3"}) || file.Header.Get("Content-Type") != "application/zip" {
		t.Errorf("%q as %s", names, file.Header.Get("Content-Type"))
	}
}

func TestBatch(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	first := call(t, b, "/suno/audios", custom("la")).Text("task_id")
	second := call(t, b, "/suno/audios", custom("lo")).Text("task_id")
	got := call(t, b, "/suno/tasks", m{"ids": []any{second, "nobody", first}, "action": "retrieve_batch"})
	if got.At("count") != 2.0 || got.Text("items", 0, "id") != second || got.Text("items", 1, "id") != first {
		t.Errorf("%d %s", got.Status, got.Raw)
	}
	for name, body := range map[string]m{
		"no ids": {"action": "retrieve_batch"}, "empty": {"action": "retrieve_batch", "ids": []any{}}, "one": {"action": "retrieve"},
		"another action": {"action": "list", "id": first},
	} {
		if got := call(t, b, "/suno/tasks", body); got.Status != 400 {
			t.Errorf("%s: %d %s", name, got.Status, got.Raw)
		}
	}
}

// An upload is a sound that can be had, and belongs to who uploaded it, in the
// API where it was; a voice is made of it, and sings.
func TestUploadAndVoice(t *testing.T) {
	t.Parallel()
	b, base := sandboxtest.Open(t), files(t)
	for link, says := range map[string]string{
		base + "/page.mp3": "is not a valid audio", base + "/none.mp3": "cannot be fetched", "ftp://x/y": "must be an http",
	} {
		if got := call(t, b, "/suno/upload", m{"audio_url": link}); got.Status != 400 || !strings.Contains(got.Text("error", "message"), says) {
			t.Errorf("%s: %d %s", link, got.Status, got.Raw)
		}
	}
	id := call(t, b, "/suno/upload", m{"audio_url": base + "/song.wav"}).Text("data", "audio_id")
	remaster := m{"action": "remaster", "audio_id": id, "async": true}
	if got := call(t, b, "/suno/audios", remaster); got.Status != 200 {
		t.Errorf("%d %s", got.Status, got.Raw)
	}
	if got := b.Call(t, "POST", "/acedata/suno/audios", bearer(secret+"@acme"), remaster); got.Status != 400 {
		t.Errorf("another customer: %d %s", got.Status, got.Raw)
	}
	if got := call(t, b, "/producer/audios", m{"action": "stems", "audio_id": id, "async": true}); got.Status != 400 {
		t.Errorf("the other API: %d %s", got.Status, got.Raw)
	}
	if n := len(b.Jobs(t, "")); n != 1 {
		t.Errorf("%d jobs, an upload is none", n)
	}
	for name, body := range map[string]m{
		"no name": {"audio_id": id}, "unknown song": {"audio_id": "1", "name": "a"}, "another field": {"audio_id": id, "name": "a", "b": 1},
	} {
		if got := call(t, b, "/suno/persona", body); got.Status != 400 {
			t.Errorf("%s: %d %s", name, got.Status, got.Raw)
		}
	}
	voice := call(t, b, "/suno/persona", m{"audio_id": id, "name": "task_1"}).Text("data", "persona_id")
	sings := with(custom("la"), m{"action": "artist_consistency", "audio_id": id, "persona_id": voice})
	if got := call(t, b, "/suno/audios", sings); got.Status != 200 {
		t.Errorf("%d %s", got.Status, got.Raw)
	}
	if got := b.Call(t, "POST", "/acedata/suno/audios", bearer(secret+"@acme"), with(custom("la"), m{"persona_id": voice})); got.Status != 400 {
		t.Errorf("another customer's voice: %d %s", got.Status, got.Raw)
	}
	if n := len(b.Jobs(t, "?reference=task_1")); n != 1 {
		t.Errorf("%d jobs of the voice", n)
	}
}

func TestDirectives(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	for name, tc := range map[string]struct {
		directive string
		status    int
		code      string
	}{
		"moderation at submit": {"fail=moderation, at=submit", 403, "forbidden"},
		"reject at submit":     {"fail=reject", 400, "bad_request"},
		"internal at submit":   {"fail=internal, at=submit", 500, "api_error"},
		"unreadable":           {"fail=never", 400, "bad_request"},
	} {
		got := call(t, b, "/suno/audios", custom(fmt.Sprintf("[[sandbox: %s]] la", tc.directive)))
		if got.Status != tc.status || got.Text("error", "code") != tc.code {
			t.Errorf("%s: %d %s", name, got.Status, got.Raw)
		}
	}
	if n := len(b.Jobs(t, "")); n != 0 {
		t.Errorf("%d jobs", n)
	}
	for directive, want := range map[string]string{"fail=moderation": "forbidden", "fail=reject, at=poll": "bad_request"} {
		_, got := made(t, b, "/suno", custom("[["+"sandbox: "+directive+"]] la"))
		if got.At("response", "success") != false || got.Text("response", "error", "code") != want {
			t.Errorf("%s: %s", directive, got.Raw)
		}
	}
	id, got := made(t, b, "/suno", custom("[[sandbox: fail=internal, times=1]] la"))
	if got.Status != 500 || call(t, b, "/suno/tasks", retrieve(id)).Status != 200 {
		t.Errorf("internal at poll: %d %s", got.Status, got.Raw)
	}
	// The directive of the section's lyrics, which stand in two fields.
	_, done := made(t, b, "/suno", custom("la"))
	section := "[[sandbox: ref=section]] lo"
	got = call(t, b, "/suno/audios", m{
		"action": "replace_section", "audio_id": done.Text("response", "data", 0, "id"), "lyric": section, "prompt": section,
		"replace_section_start": 1, "replace_section_end": 2, "async": true,
	})
	if got.Status != 200 || len(b.Jobs(t, "?reference=section")) != 1 {
		t.Errorf("%d %s", got.Status, got.Raw)
	}
	_, got = made(t, b, "/suno", custom("[[sandbox: result_bytes=300000]] la"))
	if file := b.Call(t, "GET", got.Text("response", "data", 0, "audio_url"), nil, nil); len(file.Raw) != 300000 {
		t.Errorf("%d bytes", len(file.Raw))
	}
}
