package midjourney_test

import (
	"bytes"
	"encoding/base64"
	"slices"
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

var secret = map[string]string{"mj-api-secret": "sandbox-midjourney-secret"}

func call(t *testing.T, b *sandboxtest.Sandbox, method, path string, body any) sandboxtest.Answer {
	t.Helper()
	return b.Call(t, method, "/midjourney"+path, secret, body)
}

func pngURI(t *testing.T) string {
	t.Helper()
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(sandboxtest.PNG(t, 4, 4))
}

// submit makes a job and returns its id.
func submit(t *testing.T, b *sandboxtest.Sandbox, path string, body any) string {
	t.Helper()
	got := call(t, b, "POST", path, body)
	if got.Status != 200 || !slices.Contains([]any{1.0, 21.0, 22.0}, got.At("code")) || got.Text("result") == "" {
		t.Fatalf("%s: %d %s", path, got.Status, got.Raw)
	}
	return got.Text("result")
}

func fetch(t *testing.T, b *sandboxtest.Sandbox, id string) sandboxtest.Answer {
	t.Helper()
	return call(t, b, "GET", "/mj/task/"+id+"/fetch", nil)
}

// ended lets a job end well.
func ended(t *testing.T, b *sandboxtest.Sandbox, id string) sandboxtest.Answer {
	t.Helper()
	b.Clock.Advance(time.Minute)
	got := fetch(t, b, id)
	if got.Text("status") != "SUCCESS" || got.Text("progress") != "100%" {
		t.Fatalf("%d %s", got.Status, got.Raw)
	}
	return got
}

// press is the body that presses the button whose customId begins so.
func press(t *testing.T, job sandboxtest.Answer, begin string) m {
	t.Helper()
	for _, item := range job.At("buttons").([]any) {
		if id, _ := item.(m)["customId"].(string); strings.HasPrefix(id, begin) {
			return m{"taskId": job.Text("id"), "customId": id}
		}
	}
	t.Fatalf("no button %s: %s", begin, job.Raw)
	return nil
}

func TestRules(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	uri := pngURI(t)
	pictures := func(n int) []any { return slices.Repeat([]any{uri}, n) }
	for name, tc := range map[string]struct {
		path  string
		body  any
		field string // that is refused; empty: no rule is broken
	}{
		"everything":         {"/mj-relax/mj/submit/imagine", m{"prompt": "a fox --ar 16:9 --v 7 --seed 4294967295 --stylize 1000 --chaos 100 --weird 3000 --tile --style raw --no a, b-c", "botType": "MID_JOURNEY", "base64Array": pictures(5), "state": strings.Repeat("s", 255), "notifyHook": "https://img.example.com/hook"}, ""},
		"no prompt":          {"/mj/submit/imagine", m{}, "prompt"},
		"other robot":        {"/mj/submit/imagine", m{"prompt": "a", "botType": "DALLE"}, "botType"},
		"long state":         {"/mj/submit/imagine", m{"prompt": "a", "state": strings.Repeat("s", 256)}, "state"},
		"broken picture":     {"/mj/submit/imagine", m{"prompt": "a", "base64Array": []any{"data:image/png;base64,AAAA"}}, "base64Array[0]"},
		"no such hook":       {"/mj/submit/imagine", m{"prompt": "a", "notifyHook": "there"}, "notifyHook"},
		"ratio of nothing":   {"/mj/submit/imagine", m{"prompt": "a --ar 0:1"}, "--ar"},
		"other version":      {"/mj/submit/imagine", m{"prompt": "a --v 9"}, "--v"},
		"two versions":       {"/mj/submit/imagine", m{"prompt": "a --v 7 --niji 6"}, "--niji"},
		"twice":              {"/mj/submit/imagine", m{"prompt": "a --ar 1:1 --aspect 2:3"}, "--ar"},
		"seed too large":     {"/mj/submit/imagine", m{"prompt": "a --seed 4294967296"}, "--seed"},
		"tile with a value":  {"/mj/submit/imagine", m{"prompt": "a --tile yes"}, "--tile"},
		"no nothing":         {"/mj/submit/imagine", m{"prompt": "a --no"}, "--no"},
		"other parameter":    {"/mj/submit/imagine", m{"prompt": "a --magic 1"}, "--magic"},
		"blend of five":      {"/mj/submit/blend", m{"base64Array": pictures(5), "dimensions": "SQUARE"}, ""},
		"blend of one":       {"/mj/submit/blend", m{"base64Array": pictures(1), "dimensions": "SQUARE"}, "base64Array"},
		"blend of six":       {"/mj/submit/blend", m{"base64Array": pictures(6), "dimensions": "SQUARE"}, "base64Array"},
		"blend of no shape":  {"/mj/submit/blend", m{"base64Array": pictures(2), "dimensions": "ROUND"}, "dimensions"},
		"action of nothing":  {"/mj/submit/action", m{"taskId": "1"}, "customId"},
		"modal of nothing":   {"/mj/submit/modal", m{"prompt": "a"}, "taskId"},
		"modal, no picture":  {"/mj/submit/modal", m{"taskId": "1", "maskBase64": "x"}, "maskBase64"},
		"original":           {"/novicezk/mj/submit/imagine", m{"prompt": "a --v 7 --fast"}, ""},
		"original, robot":    {"/novicezk/mj/submit/imagine", m{"prompt": "a", "botType": "MID_JOURNEY"}, "botType"},
		"original, other":    {"/novicezk/mj/submit/change", m{"taskId": "1", "action": "PAN"}, "action"},
		"original, no index": {"/novicezk/mj/submit/change", m{"taskId": "1", "action": "UPSCALE"}, "index"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := call(t, b, "POST", tc.path, tc.body)
			code := got.At("code")
			if tc.field == "" {
				if got.Status != 200 || code != 1.0 && code != 22.0 || got.Text("result") == "" {
					t.Errorf("%d %.300s", got.Status, got.Raw)
				}
				return
			}
			if got.Status != 200 || code != 4.0 || !strings.Contains(got.Text("description"), tc.field) {
				t.Errorf("%d %.300s, want a refusal of %s", got.Status, got.Raw, tc.field)
			}
		})
	}
}

// What a prompt makes several jobs of is billed as often, and found where the proxy
// takes words out of it.
func TestBilled(t *testing.T) {
	t.Parallel()
	const large, small = "/mj-fast/mj/submit/imagine", "/novicezk/mj/submit/imagine"
	for name, tc := range map[string]struct {
		path, prompt string
		billed       any    // nil: refused
		final        string // where it is not the prompt
	}{
		"one":               {large, "a fox, well-known", 1.0, ""},
		"choices":           {large, "a {red, blue} fox in {a wood, snow, rain}", 6.0, ""},
		"of a wrong one":    {large, "a fox --ar {1:1, 0:3}", nil, ""},
		"too many":          {large, "{a,b,c,d,e,f,g} {a,b,c,d,e,f,g}", nil, ""},
		"repeated":          {large, "a fox --repeat 4", 4.0, ""},
		"no-break space":    {large, "a fox\u00a0--repeat 4", 4.0, ""},
		"hidden by a speed": {large, "a fox --re--fastpeat 4", 4.0, "a fox --repeat 4"},
		"not taken out":     {small, "a fox --re--fastpeat 4", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := sandboxtest.Open(t)
			got := call(t, b, "POST", tc.path, m{"prompt": tc.prompt})
			if tc.billed == nil {
				if got.At("code") != 4.0 || len(b.Jobs(t, "")) != 0 {
					t.Errorf("not refused: %s", got.Raw)
				}
				return
			}
			if tc.billed == 1.0 {
				tc.billed = nil // goes without saying
			}
			if jobs := b.Jobs(t, ""); len(jobs) != 1 || jobs[0].(m)["billed"] != tc.billed {
				t.Errorf("%s\njobs %v, want one that is billed as %v", got.Raw, jobs, tc.billed)
			}
			final := tc.final
			if final == "" {
				final = tc.prompt
			}
			dialect := strings.TrimSuffix(strings.TrimPrefix(tc.path, "/mj-fast"), "/mj/submit/imagine")
			if job := call(t, b, "GET", dialect+"/mj/task/"+got.Text("result")+"/fetch", nil); job.At("properties", "finalPrompt") != final {
				t.Errorf("told Midjourney: %s", job.Raw)
			}
		})
	}
}

// Half way there is a draft, which is gone afterwards, and the progress that its
// directive wants.
func TestDraft(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	id := submit(t, b, "/mj-turbo/mj/submit/imagine", m{"prompt": "a fox [[sandbox: duration=100s]]", "state": "task_1"})
	told := submit(t, b, "/mj/submit/imagine", m{"prompt": "a [[sandbox: progress=7, duration=100s]]"})
	if got := fetch(t, b, id); got.Text("mode") != "TURBO" || got.Text("state") != "task_1" || got.At("imageUrl") != nil {
		t.Errorf("at first: %s", got.Raw)
	}
	b.Clock.Advance(46 * time.Second)
	if got := fetch(t, b, told); got.Text("progress") != "7%" {
		t.Errorf("%s", got.Raw)
	}
	running := fetch(t, b, id)
	draft := running.Text("imageUrl")
	if running.Text("progress") != "46%" || len(running.At("buttons").([]any)) != 0 || b.Call(t, "GET", draft, nil, nil).Status != 200 {
		t.Errorf("half way: %s", running.Raw)
	}
	if got := call(t, b, "POST", "/mj/submit/action", m{"taskId": id, "customId": "MJ::JOB::upsample::1::u"}); got.At("code") != 4.0 {
		t.Errorf("a button before the end: %s", got.Raw)
	}
	whole := ended(t, b, id)
	if got := b.Call(t, "GET", draft, nil, nil); got.Status != 404 {
		t.Errorf("the draft afterwards: %d", got.Status)
	}
	quarter := ended(t, b, submit(t, b, "/mj/submit/action", press(t, whole, "MJ::JOB::upsample::2::")))
	if file := b.Call(t, "GET", quarter.Text("imageUrl"), nil, nil); !bytes.Equal(file.Raw, sample.Quarter(2, 512, 512)) {
		t.Errorf("it is another picture: %d", file.Status)
	}
}

// A job that waits for words is told them once, also by a sandbox that was killed
// meanwhile. What is refused has not told it.
func TestWindow(t *testing.T) {
	t.Parallel()
	dir, clock := t.TempDir(), sandboxtest.NewClock()
	b := sandboxtest.OpenIn(t, dir, clock, nil)
	grid := ended(t, b, submit(t, b, "/mj/submit/imagine", m{"prompt": "a fox"}))
	single := ended(t, b, submit(t, b, "/mj/submit/action", press(t, grid, "MJ::JOB::upsample::1::")))
	window := call(t, b, "POST", "/mj/submit/action", press(t, single, "MJ::Inpaint::"))
	id := window.Text("result")
	if window.At("code") != 21.0 || window.Text("description") != "Waiting for window confirm" {
		t.Fatalf("%s", window.Raw)
	}
	clock.Advance(time.Hour)
	tell := func(changes m) sandboxtest.Answer {
		return call(t, b, "POST", "/mj-fast/mj/submit/modal", with(m{"taskId": id, "prompt": "a hat", "maskBase64": pngURI(t)}, changes))
	}
	for name, tc := range map[string]struct {
		changes m
		code    float64
	}{
		"no mask":    {m{"maskBase64": nil}, 4},
		"rejected":   {m{"prompt": "a hat [[sandbox: fail=reject]]"}, 4},
		"moderation": {m{"prompt": "a hat [[sandbox: fail=moderation, at=submit]]"}, 24},
		"internal":   {m{"prompt": "a hat [[sandbox: fail=internal, at=submit]]"}, 9},
		"no job":     {m{"taskId": "1"}, 3},
	} {
		if got := tell(tc.changes); got.At("code") != tc.code {
			t.Errorf("%s: %s, want %v", name, got.Raw, tc.code)
		}
	}
	b.Call(t, "POST", "/_sandbox/next", nil, m{"provider": "midjourney", "directive": "fail=moderation, at=submit"})
	if got := tell(nil); got.At("code") != 24.0 {
		t.Errorf("what is arranged for the next job is for this one, too: %s", got.Raw)
	}
	b = sandboxtest.OpenIn(t, dir, clock, nil)
	if got := fetch(t, b, id); got.Text("status") != "MODAL" {
		t.Errorf("not told: %s", got.Raw)
	}
	if got := tell(m{"prompt": "a hat [[sandbox: duration=100s]]"}); got.At("code") != 1.0 || got.Text("result") != id {
		t.Errorf("told: %s", got.Raw)
	}
	if got := tell(nil); got.At("code") != 4.0 {
		t.Errorf("told again: %s", got.Raw)
	}
	clock.Advance(50 * time.Second)
	b = sandboxtest.OpenIn(t, dir, clock, nil)
	if got := fetch(t, b, id); got.Text("status") != "IN_PROGRESS" || got.Text("progress") != "50%" {
		t.Errorf("under way: %s", got.Raw)
	}
	if got := ended(t, b, id); got.Text("action") != "VARIATION" || len(got.At("buttons").([]any)) != 9 {
		t.Errorf("%s", got.Raw)
	}
	other := submit(t, b, "/mj/submit/action", press(t, single, "MJ::CustomZoom::"))
	call(t, b, "POST", "/mj/task/"+other+"/cancel", nil)
	if got := fetch(t, b, other); got.Text("status") != "FAILURE" || got.Text("failReason") != "取消任务" {
		t.Errorf("stopped while it waits: %s", got.Raw)
	}
}

// Where no slot is free, only the slow kind queues.
func TestBusy(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	busy := map[string]string{"mj-api-secret": secret["mj-api-secret"] + "@one*1"}
	imagine := func(kind string) any {
		return b.Call(t, "POST", "/midjourney"+kind+"/mj/submit/imagine", busy, m{"prompt": "a"}).At("code")
	}
	if got := [...]any{imagine("/mj-relax"), imagine("/mj-fast"), imagine("/mj-relax")}; got != [...]any{22.0, 23.0, 23.0} {
		t.Errorf("codes %v", got)
	}
}
