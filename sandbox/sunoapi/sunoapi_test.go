package sunoapi_test

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mediagate/mediagate/sandbox/sandboxtest"
)

type m = sandboxtest.M

var with = sandboxtest.With

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var key = map[string]string{"Authorization": "Bearer sandbox-sunoapi-api-key"}

func call(t *testing.T, b *sandboxtest.Sandbox, method, path string, body any) sandboxtest.Answer {
	t.Helper()
	return b.Call(t, method, "/sunoapi/api/v1"+path, key, body)
}

const (
	generate   = "/generate"
	replace    = "/generate/replace-section"
	separate   = "/vocal-removal/generate"
	record     = "/generate/record-info?taskId="
	separation = "/vocal-removal/record-info?taskId="
)

func song(prompt string) m {
	return m{
		"prompt": prompt, "customMode": true, "instrumental": false, "model": "V5", "style": "pop", "title": "Winter",
		"callBackUrl": "https://callback.invalid/",
	}
}

func made(t *testing.T, b *sandboxtest.Sandbox) (task, id string) {
	t.Helper()
	task = call(t, b, "POST", generate, song("la")).Text("data", "taskId")
	b.Clock.Advance(2 * time.Second)
	return task, call(t, b, "GET", record+task, nil).Text("data", "response", "sunoData", 0, "id")
}

func TestRules(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	task, id := made(t, b)
	section := m{
		"taskId": task, "audioId": id, "prompt": " ", "tags": " ", "title": " ", "infillStartS": 1, "infillEndS": 9,
		"callBackUrl": "https://callback.invalid/",
	}
	split := m{"taskId": task, "audioId": id, "type": "split_stem", "callBackUrl": "https://callback.invalid/"}
	long := func(n int) string { return strings.Repeat("ä", n) }
	for name, tc := range map[string]struct {
		path string
		body m
		code float64
		says string
	}{
		"blank texts":        {generate, with(song(" "), m{"style": " ", "title": " "}), 200, ""},
		"a long description": {generate, with(song(long(501)), m{"customMode": false}), 413, "prompt"},
		"no lyrics":          {generate, song(""), 400, "prompt"},
		"no style":           {generate, with(song("la"), m{"style": nil}), 400, "style"},
		"no mode":            {generate, with(song("la"), m{"customMode": nil}), 400, "customMode"},
		"no model":           {generate, with(song("la"), m{"model": nil}), 400, "model"},
		"no callback":        {generate, with(song("la"), m{"callBackUrl": nil}), 400, "callBackUrl"},
		"another field":      {generate, with(song("la"), m{"tags": "pop"}), 400, "tags"},
		"weights":            {generate, with(song("la"), m{"styleWeight": 0, "weirdnessConstraint": 1, "audioWeight": 0.55, "vocalGender": "m"}), 200, ""},
		"three decimals":     {generate, with(song("la"), m{"styleWeight": 0.555}), 400, "styleWeight"},
		"long lyrics, V4":    {generate, with(song(long(3001)), m{"model": "V4"}), 413, "prompt"},
		"a voice":            {generate, with(song("la"), m{"personaId": "1"}), 400, "personaId"},
		"a section":          {replace, section, 200, ""},
		"5.99 seconds":       {replace, with(section, m{"infillEndS": 6.99}), 400, "6 to 60"},
		"more than half":     {replace, with(section, m{"infillEndS": 9.01}), 400, "half"},
		"beyond the song":    {replace, with(section, m{"infillStartS": 9, "infillEndS": 17}), 400, "within the song"},
		"no lyrics of it":    {replace, with(section, m{"prompt": nil}), 400, "prompt"},
		"another song":       {replace, with(section, m{"audioId": "1"}), 400, "audioId"},
		"another separation": {separate, with(split, m{"type": "separate_vocal"}), 400, "type"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := call(t, b, "POST", tc.path, tc.body)
			if got.Status != 200 || got.At("code") != tc.code || !strings.Contains(got.Text("msg"), tc.says) || (tc.code == 200) != (got.Text("data", "taskId") != "") {
				t.Errorf("%d %s, want %g %q", got.Status, got.Raw, tc.code, tc.says)
			}
		})
	}
}

// Songs come one after the other.
func TestStages(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	task := call(t, b, "POST", generate, song("[[sandbox: duration=10s]] la")).Text("data", "taskId")
	for i, want := range []struct {
		status string
		done   int
	}{{"PENDING", -1}, {"TEXT_SUCCESS", 0}, {"FIRST_SUCCESS", 1}, {"SUCCESS", 2}} {
		got := call(t, b, "GET", record+task, nil)
		if got.Text("data", "status") != want.status || got.Text("data", "taskId") != task {
			t.Fatalf("step %d: %s", i, got.Raw)
		}
		for n := range 2 {
			if link := got.Text("data", "response", "sunoData", n, "audioUrl"); (link != "") != (n < want.done) {
				t.Errorf("step %d, song %d: %q", i, n, link)
			}
		}
		b.Clock.Advance(time.Duration(3+i) * time.Second)
	}
	for name, path := range map[string]string{"of another kind": separation + task, "no page": "/nothing"} {
		if got := call(t, b, "GET", path, nil); got.At("code") != 404.0 {
			t.Errorf("%s: %s", name, got.Raw)
		}
	}
}
