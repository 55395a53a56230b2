package midjourney_test

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

	"github.com/mediagate/mediagate/sandbox"
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
	var buf bytes.Buffer
	if err := png.Encode(&buf, image.NewGray(image.Rect(0, 0, 4, 4))); err != nil {
		t.Fatal(err)
	}
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(buf.Bytes())
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

func decode(t *testing.T, b *sandboxtest.Sandbox, link string) image.Image {
	t.Helper()
	got := b.Call(t, "GET", link, nil, nil)
	img, err := png.Decode(bytes.NewReader(got.Raw))
	if err != nil {
		t.Fatalf("%d, %v", got.Status, err)
	}
	return img
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
		"imagine":            {"/mj/submit/imagine", m{"prompt": "a fox"}, ""},
		"everything":         {"/mj-relax/mj/submit/imagine", m{"prompt": "a fox --ar 16:9 --v 7 --seed 4294967295 --stylize 1000 --chaos 100 --weird 3000 --tile --style raw --no a, b-c", "botType": "MID_JOURNEY", "base64Array": pictures(5), "state": strings.Repeat("s", 255), "notifyHook": "https://img.example.com/hook"}, ""},
		"niji":               {"/mj/submit/imagine", m{"prompt": "a fox --niji 6", "botType": "NIJI_JOURNEY"}, ""},
		"no prompt":          {"/mj/submit/imagine", m{}, "prompt"},
		"blank prompt":       {"/mj/submit/imagine", m{"prompt": " "}, "prompt"},
		"other robot":        {"/mj/submit/imagine", m{"prompt": "a", "botType": "DALLE"}, "botType"},
		"unknown field":      {"/mj/submit/imagine", m{"prompt": "a", "size": "1:1"}, "size"},
		"long state":         {"/mj/submit/imagine", m{"prompt": "a", "state": strings.Repeat("s", 256)}, "state"},
		"no picture":         {"/mj/submit/imagine", m{"prompt": "a", "base64Array": []any{"https://img.example.com/a.png"}}, "base64Array[0]"},
		"broken picture":     {"/mj/submit/imagine", m{"prompt": "a", "base64Array": []any{"data:image/png;base64,AAAA"}}, "base64Array[0]"},
		"no such hook":       {"/mj/submit/imagine", m{"prompt": "a", "notifyHook": "there"}, "notifyHook"},
		"ratio of nothing":   {"/mj/submit/imagine", m{"prompt": "a --ar 0:1"}, "--ar"},
		"other version":      {"/mj/submit/imagine", m{"prompt": "a --v 9"}, "--v"},
		"two versions":       {"/mj/submit/imagine", m{"prompt": "a --v 7 --niji 6"}, "--niji"},
		"twice":              {"/mj/submit/imagine", m{"prompt": "a --ar 1:1 --aspect 2:3"}, "--ar"},
		"seed too large":     {"/mj/submit/imagine", m{"prompt": "a --seed 4294967296"}, "--seed"},
		"stylize too large":  {"/mj/submit/imagine", m{"prompt": "a --s 1001"}, "--stylize"},
		"chaos too large":    {"/mj/submit/imagine", m{"prompt": "a --chaos 101"}, "--chaos"},
		"weird too large":    {"/mj/submit/imagine", m{"prompt": "a --weird 3001"}, "--weird"},
		"tile with a value":  {"/mj/submit/imagine", m{"prompt": "a --tile yes"}, "--tile"},
		"no nothing":         {"/mj/submit/imagine", m{"prompt": "a --no"}, "--no"},
		"other parameter":    {"/mj/submit/imagine", m{"prompt": "a --magic 1"}, "--magic"},
		"bad directive":      {"/mj/submit/imagine", m{"prompt": "a [[sandbox: fail=no]]"}, "prompt"},
		"blend":              {"/mj/submit/blend", m{"base64Array": pictures(2), "dimensions": "PORTRAIT", "botType": "MID_JOURNEY"}, ""},
		"blend of five":      {"/mj/submit/blend", m{"base64Array": pictures(5), "dimensions": "SQUARE"}, ""},
		"blend of one":       {"/mj/submit/blend", m{"base64Array": pictures(1), "dimensions": "SQUARE"}, "base64Array"},
		"blend of six":       {"/mj/submit/blend", m{"base64Array": pictures(6), "dimensions": "SQUARE"}, "base64Array"},
		"blend of no shape":  {"/mj/submit/blend", m{"base64Array": pictures(2), "dimensions": "ROUND"}, "dimensions"},
		"describe":           {"/mj/submit/describe", m{"base64": uri}, ""},
		"describe nothing":   {"/mj/submit/describe", m{}, "base64"},
		"action of nothing":  {"/mj/submit/action", m{"taskId": "1"}, "customId"},
		"action on nothing":  {"/mj/submit/action", m{"customId": "MJ::JOB::upsample::1::u"}, "taskId"},
		"modal of nothing":   {"/mj/submit/modal", m{"prompt": "a"}, "taskId"},
		"modal, no picture":  {"/mj/submit/modal", m{"taskId": "1", "maskBase64": "x"}, "maskBase64"},
		"original":           {"/novicezk/mj/submit/imagine", m{"prompt": "a --v 7 --fast"}, ""},
		"original, robot":    {"/novicezk/mj/submit/imagine", m{"prompt": "a", "botType": "MID_JOURNEY"}, "botType"},
		"original, other":    {"/novicezk/mj/submit/change", m{"taskId": "1", "action": "PAN"}, "action"},
		"original, no index": {"/novicezk/mj/submit/change", m{"taskId": "1", "action": "UPSCALE"}, "index"},
		"original, a fifth":  {"/novicezk/mj/submit/change", m{"taskId": "1", "action": "VARIATION", "index": 5}, "index"},
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
		"one":                  {large, "a fox, well-known", 1.0, ""},
		"choices":              {large, "a {red, blue} fox in {a wood, snow, rain}", 6.0, ""},
		"choices of values":    {large, "a fox --ar {1:1, 2:3}", 2.0, ""},
		"of a wrong one":       {large, "a fox --ar {1:1, 0:3}", nil, ""},
		"too many":             {large, "{a,b,c,d,e,f,g} {a,b,c,d,e,f,g}", nil, ""},
		"repeated":             {large, "a fox --repeat 4", 4.0, ""},
		"in short":             {small, "a fox --r 4", 4.0, ""},
		"choices repeated":     {large, "a {red, blue} fox --repeat 3", 6.0, ""},
		"no-break space":       {large, "a fox\u00a0--repeat 4", 4.0, ""},
		"wide space":           {small, "a fox\u3000--repeat 4", 4.0, ""},
		"hidden by a speed":    {large, "a fox --re--fastpeat 4", 4.0, "a fox --repeat 4"},
		"not taken out":        {small, "a fox --re--fastpeat 4", nil, ""},
		"lone dashes":          {large, "a fox -- red  --relax --tile", 1.0, "a fox red  --tile"},
		"speed of the smaller": {small, "a fox --turbo", 1.0, ""},
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

// The steps of a user: four pictures, one of them, a part of it made anew.
func TestChain(t *testing.T) {
	t.Parallel()
	dir, clock := t.TempDir(), sandboxtest.NewClock()
	b := sandboxtest.OpenIn(t, dir, clock, nil)
	imagined := submit(t, b, "/mj-turbo/mj/submit/imagine", m{"prompt": "a fox [[sandbox: duration=100s]] --ar 2:1", "state": "task_1"})
	if got := fetch(t, b, imagined); got.Text("status") != "SUBMITTED" || got.At("imageUrl") != nil || got.Text("mode") != "TURBO" || got.Text("state") != "task_1" {
		t.Errorf("at first: %s", got.Raw)
	}
	b.Clock.Advance(46 * time.Second)
	running := fetch(t, b, imagined)
	if running.Text("status") != "IN_PROGRESS" || running.Text("progress") != "46%" || len(running.At("buttons").([]any)) != 0 {
		t.Errorf("half way: %s", running.Raw)
	}
	draft := running.Text("imageUrl")
	decode(t, b, draft)
	if got := call(t, b, "POST", "/mj/submit/action", m{"taskId": imagined, "customId": "MJ::JOB::upsample::1::u"}); got.At("code") != 4.0 {
		t.Errorf("a button before the end: %s", got.Raw)
	}
	grid := ended(t, b, imagined)
	whole := decode(t, b, grid.Text("imageUrl"))
	if got := b.Call(t, "GET", draft, nil, nil); got.Status != 404 {
		t.Errorf("the draft afterwards: %d", got.Status)
	}

	upscaled := ended(t, b, submit(t, b, "/mj/submit/action", press(t, grid, "MJ::JOB::upsample::2::")))
	one := decode(t, b, upscaled.Text("imageUrl"))
	if whole.Bounds().Dx() != 2*one.Bounds().Dx() || whole.Bounds().Dy() != 2*one.Bounds().Dy() || one.Bounds().Dx() != 2*one.Bounds().Dy() {
		t.Errorf("%v and %v", whole.Bounds(), one.Bounds())
	}
	if one.At(0, 0) != whole.At(one.Bounds().Dx(), 0) || one.At(0, 0) == whole.At(0, 0) {
		t.Error("it is another quarter")
	}
	if upscaled.Text("action") != "UPSCALE" || strings.Contains(upscaled.Text("prompt"), "sandbox") {
		t.Errorf("%s", upscaled.Raw)
	}

	window := call(t, b, "POST", "/mj/submit/action", press(t, upscaled, "MJ::Inpaint::"))
	id := window.Text("result")
	if window.At("code") != 21.0 || window.Text("description") != "Waiting for window confirm" {
		t.Fatalf("%s", window.Raw)
	}
	b.Clock.Advance(time.Hour)
	if got := fetch(t, b, id); got.Text("status") != "MODAL" {
		t.Errorf("not told: %s", got.Raw)
	}
	if got := call(t, b, "POST", "/mj/submit/modal", m{"taskId": id, "prompt": "a hat"}); got.At("code") != 4.0 || !strings.Contains(got.Text("description"), "maskBase64") {
		t.Errorf("without a mask: %s", got.Raw)
	}
	b.Stop()
	b = sandboxtest.OpenIn(t, dir, clock, nil)
	if told := submit(t, b, "/mj-fast/mj/submit/modal", m{"taskId": id, "prompt": "a hat [[sandbox: duration=100s]]", "maskBase64": pngURI(t)}); told != id {
		t.Errorf("told, it is %s, not %s", told, id)
	}
	if got := fetch(t, b, id); got.Text("status") != "SUBMITTED" {
		t.Errorf("told: %s", got.Raw)
	}
	if got := call(t, b, "POST", "/mj/submit/modal", m{"taskId": id, "prompt": "a hat", "maskBase64": pngURI(t)}); got.At("code") != 4.0 {
		t.Errorf("told again: %s", got.Raw)
	}
	b.Clock.Advance(50 * time.Second)
	if got := fetch(t, b, id); got.Text("status") != "IN_PROGRESS" || got.Text("progress") != "50%" {
		t.Errorf("under way: %s", got.Raw)
	}
	b.Stop()
	b = sandboxtest.OpenIn(t, dir, clock, nil)
	if got := ended(t, b, id); got.Text("action") != "VARIATION" || len(got.At("buttons").([]any)) != 9 {
		t.Errorf("%s", got.Raw)
	}
	if jobs := b.Jobs(t, "?provider=midjourney"); len(jobs) != 3 {
		t.Errorf("%d jobs", len(jobs))
	}
}

// Each button makes its kind of job.
func TestButtons(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	grid := ended(t, b, submit(t, b, "/mj/submit/imagine", m{"prompt": "a fox"}))
	single := ended(t, b, submit(t, b, "/mj/submit/action", press(t, grid, "MJ::JOB::upsample::4::")))
	described := ended(t, b, submit(t, b, "/mj/submit/describe", m{"base64": pngURI(t)}))
	for _, tc := range []struct {
		parent        sandboxtest.Answer
		begin, action string // of the job; empty: refused
		grid, waits   bool
	}{
		{grid, "MJ::JOB::variation::3::", "VARIATION", true, false},
		{grid, "MJ::JOB::reroll::", "IMAGINE", true, false},
		{single, "MJ::JOB::upsample_v6_2x_subtle::", "UPSCALE_HD", false, false},
		{single, "MJ::JOB::low_variation::", "VARIATION", true, false},
		{single, "MJ::JOB::high_variation::", "VARIATION", true, false},
		{single, "MJ::Outpaint::50::", "ZOOM", true, false},
		{single, "MJ::Outpaint::75::", "ZOOM", true, false},
		{single, "MJ::CustomZoom::", "ZOOM", true, true},
		{single, "MJ::Inpaint::", "VARIATION", true, true},
		{single, "MJ::JOB::pan_up::", "PAN", true, false},
		{single, "MJ::JOB::animate_high::", "", false, false},
		{single, "MJ::BOOKMARK::", "", false, false},
		{described, "MJ::Job::PicReader::2", "IMAGINE", true, false},
		{described, "MJ::Picread::Retry", "DESCRIBE", false, false},
		{described, "MJ::Job::PicReader::all", "", false, false},
	} {
		body := press(t, tc.parent, tc.begin)
		if tc.action == "" {
			if got := call(t, b, "POST", "/mj/submit/action", body); got.At("code") != 4.0 {
				t.Errorf("%s: %s", tc.begin, got.Raw)
			}
			continue
		}
		id := submit(t, b, "/mj/submit/action", body)
		if tc.waits {
			if got := fetch(t, b, id); got.Text("status") != "MODAL" {
				t.Errorf("%s: %s", tc.begin, got.Raw)
			}
			submit(t, b, "/mj/submit/modal", m{"taskId": id, "prompt": "a {fox, hare} --zoom 1.8", "maskBase64": pngURI(t)})
			if jobs := b.Jobs(t, "?reference="+id); len(jobs) != 1 || jobs[0].(m)["billed"] != 2.0 {
				t.Errorf("told to make two: %v", jobs)
			}
		}
		got := ended(t, b, id)
		four := strings.Contains(string(got.Raw), "MJ::JOB::upsample::4::")
		if got.Text("action") != tc.action || four != tc.grid || got.Text("parentId") != tc.parent.Text("id") {
			t.Errorf("%s: %s", tc.begin, got.Raw)
		}
	}
	if !strings.Contains(described.Text("prompt"), "4️⃣") {
		t.Errorf("%s", described.Raw)
	}
	foreign := press(t, single, "MJ::Inpaint::")
	foreign["taskId"] = grid.Text("id")
	if got := call(t, b, "POST", "/mj/submit/action", foreign); got.At("code") != 4.0 {
		t.Errorf("a button of another job: %s", got.Raw)
	}
	for path, body := range map[string]m{"action": {"taskId": "1", "customId": "MJ::JOB::upsample::1::u"}, "modal": {"taskId": "1", "prompt": "a"}} {
		if got := call(t, b, "POST", "/mj/submit/"+path, body); got.Status != 404 || got.At("code") != 3.0 {
			t.Errorf("%s on no job: %d %s", path, got.Status, got.Raw)
		}
	}
}

// The original knows numbers, and shows no buttons. Its jobs are its own.
func TestNovicezk(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	id := submit(t, b, "/novicezk/mj/submit/imagine", m{"prompt": "a fox --turbo"})
	b.Clock.Advance(time.Minute)
	got := call(t, b, "GET", "/novicezk/mj/task/"+id+"/fetch", nil)
	if got.Text("status") != "SUCCESS" || got.At("buttons") != nil || got.At("mode") != nil || got.Text("properties", "messageHash") == "" {
		t.Errorf("%s", got.Raw)
	}
	for _, body := range []m{{"action": "UPSCALE", "index": 1}, {"action": "VARIATION", "index": 4}, {"action": "REROLL"}} {
		submit(t, b, "/novicezk/mj/submit/change", with(body, m{"taskId": id}))
	}
	upscaled := submit(t, b, "/novicezk/mj/submit/change", m{"taskId": id, "action": "UPSCALE", "index": 2})
	b.Clock.Advance(time.Minute)
	if got := call(t, b, "POST", "/novicezk/mj/submit/change", m{"taskId": upscaled, "action": "REROLL"}); got.At("code") != 4.0 {
		t.Errorf("again of one picture: %s", got.Raw)
	}
	if got := call(t, b, "POST", "/novicezk/mj/submit/change", m{"taskId": "1", "action": "REROLL"}); got.Status != 200 || got.At("code") != 3.0 {
		t.Errorf("of no job: %d %s", got.Status, got.Raw)
	}
	if got := call(t, b, "GET", "/novicezk/mj/task/1/fetch", nil); got.Status != 200 || len(got.Raw) != 0 {
		t.Errorf("no job: %d %s", got.Status, got.Raw)
	}
	if got := fetch(t, b, id); got.Status != 204 {
		t.Errorf("the other dialect knows it: %d %s", got.Status, got.Raw)
	}
	for _, path := range []string{"/novicezk/mj/submit/action", "/novicezk/mj/submit/modal", "/novicezk/mj/task/" + id + "/cancel", "/novicezk/mj-fast/mj/submit/imagine"} {
		if got := call(t, b, "POST", path, m{}); got.Status != 404 {
			t.Errorf("%s: %d", path, got.Status)
		}
	}
}

func TestSecret(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	for _, header := range []map[string]string{nil, {"mj-api-secret": "no"}, {"Authorization": "Bearer sandbox-midjourney-secret"}} {
		if got := b.Call(t, "POST", "/midjourney/mj/submit/imagine", header, m{"prompt": "a"}); got.Status != 401 || string(got.Raw) != "Authorization header missing." {
			t.Errorf("%v: %d %s", header, got.Status, got.Raw)
		}
		if got := b.Call(t, "POST", "/midjourney/novicezk/mj/submit/imagine", header, m{"prompt": "a"}); got.Status != 401 || len(got.Raw) != 0 {
			t.Errorf("%v: %d %s", header, got.Status, got.Raw)
		}
	}
	id := submit(t, b, "/mj/submit/imagine", m{"prompt": "a"})
	other := map[string]string{"mj-api-secret": "sandbox-midjourney-secret@acme"}
	if got := b.Call(t, "GET", "/midjourney/mj/task/"+id+"/fetch", other, nil); got.Status != 204 {
		t.Errorf("another customer reads it: %d %s", got.Status, got.Raw)
	}
	renewed := map[string]string{"mj-api-secret": "sandbox-midjourney-secret~2"}
	if got := b.Call(t, "GET", "/midjourney/mj/task/"+id+"/fetch", renewed, nil); got.Status != 200 {
		t.Errorf("with a new secret: %d %s", got.Status, got.Raw)
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	first, second := submit(t, b, "/mj/submit/imagine", m{"prompt": "a"}), submit(t, b, "/mj/submit/imagine", m{"prompt": "b [[sandbox: fail=internal, times=1]]"})
	if got := call(t, b, "POST", "/mj/task/list-by-condition", m{"ids": []any{first, second}}); got.Status != 500 {
		t.Errorf("spoiled: %d %s", got.Status, got.Raw)
	}
	for _, path := range []string{"/mj/task/list-by-condition", "/mj/task/list-by-ids"} {
		got := call(t, b, "POST", path, m{"ids": []any{second, "1", first}})
		if text := string(got.Raw); got.Status != 200 || !strings.HasPrefix(text, "[") || strings.Count(text, `"status"`) != 2 {
			t.Errorf("%s: %d %s", path, got.Status, text)
		}
	}
	if got := call(t, b, "POST", "/mj/task/list-by-condition", m{}); string(got.Raw) != "[]" {
		t.Errorf("of none: %s", got.Raw)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	id := submit(t, b, "/mj/submit/imagine", m{"prompt": "a [[sandbox: duration=100s]]"})
	b.Clock.Advance(50 * time.Second)
	for _, id := range []string{id, id, "1"} { // it says yes to everything
		if got := call(t, b, "POST", "/mj/task/"+id+"/cancel", nil); got.Status != 200 || len(got.Raw) != 0 {
			t.Errorf("%d %s", got.Status, got.Raw)
		}
	}
	if got := fetch(t, b, id); got.Text("status") != "FAILURE" || got.Text("failReason") != "取消任务" {
		t.Errorf("%s", got.Raw)
	}
	done := submit(t, b, "/mj/submit/imagine", m{"prompt": "a"})
	ended(t, b, done)
	call(t, b, "POST", "/mj/task/"+done+"/cancel", nil)
	if got := fetch(t, b, done); got.Text("status") != "SUCCESS" {
		t.Errorf("after the end: %s", got.Raw)
	}
	window := submit(t, b, "/mj/submit/action", press(t, ended(t, b, submit(t, b, "/mj/submit/action", press(t, fetch(t, b, done), "MJ::JOB::upsample::1"))), "MJ::CustomZoom"))
	call(t, b, "POST", "/mj/task/"+window+"/cancel", nil)
	if got := fetch(t, b, window); got.Text("status") != "FAILURE" {
		t.Errorf("while it waits: %s", got.Raw)
	}
}

func TestDirectives(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		directive string
		code      float64 // of a refusal
		reason    string  // of a failed job
	}{
		"moderation at submit": {"fail=moderation, at=submit", 24, ""},
		"rejected":             {"fail=reject", 4, ""},
		"internal at submit":   {"fail=internal, at=submit", 9, ""},
		"moderation at poll":   {"fail=moderation", 0, "Banned prompt"},
		"rejected at poll":     {"fail=reject, at=poll", 0, "Invalid parameter"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := sandboxtest.Open(t)
			// For a job, and for one that is told what it waits for.
			parent := ended(t, b, submit(t, b, "/mj/submit/action", press(t, ended(t, b, submit(t, b, "/mj/submit/imagine", m{"prompt": "a"})), "MJ::JOB::upsample::1")))
			window := submit(t, b, "/mj/submit/action", press(t, parent, "MJ::CustomZoom"))
			prompt := "a fox [[sandbox: " + tc.directive + "]]"
			for path, body := range map[string]m{"/mj/submit/imagine": {"prompt": prompt}, "/mj/submit/modal": {"taskId": window, "prompt": prompt}} {
				jobs := len(b.Jobs(t, ""))
				if tc.code != 0 {
					if got := call(t, b, "POST", path, body); got.At("code") != tc.code || len(b.Jobs(t, "")) != jobs {
						t.Errorf("%s: %s", path, got.Raw)
					}
					continue
				}
				id := submit(t, b, path, body)
				b.Clock.Advance(time.Minute)
				if got := fetch(t, b, id); got.Text("status") != "FAILURE" || !strings.Contains(got.Text("failReason"), tc.reason) {
					t.Errorf("%s: %s", path, got.Raw)
				}
			}
			if got := fetch(t, b, window); tc.code != 0 && got.Text("status") != "MODAL" {
				t.Errorf("what was refused has told it: %s", got.Raw)
			}
		})
	}
	b := sandboxtest.Open(t)
	id := submit(t, b, "/mj/submit/imagine", m{"prompt": "a [[sandbox: progress=7, duration=100s]]"})
	b.Clock.Advance(90 * time.Second)
	if got := fetch(t, b, id); got.Text("progress") != "7%" {
		t.Errorf("%s", got.Raw)
	}
	// What is arranged for the next job is for one that is told, too.
	b.Clock.Advance(time.Minute)
	single := ended(t, b, submit(t, b, "/mj/submit/action", press(t, fetch(t, b, id), "MJ::JOB::upsample::1")))
	window := submit(t, b, "/mj/submit/action", press(t, single, "MJ::CustomZoom"))
	b.Call(t, "POST", "/_sandbox/next", nil, m{"provider": "midjourney", "directive": "fail=moderation, at=submit"})
	for _, code := range []float64{24, 1} {
		if got := call(t, b, "POST", "/mj/submit/modal", m{"taskId": window, "prompt": "a"}); got.At("code") != code {
			t.Errorf("%s, want %v", got.Raw, code)
		}
	}
}

// The slots of an account are the proxy's own limit; a job that waits takes none.
func TestBusy(t *testing.T) {
	t.Parallel()
	account := sandbox.Account{Provider: "midjourney", Credentials: map[string]string{"api_secret": "sandbox-midjourney-secret"}, Concurrency: 1}
	b := sandboxtest.OpenIn(t, t.TempDir(), sandboxtest.NewClock(), []sandbox.Account{account})
	submit(t, b, "/mj/submit/imagine", m{"prompt": "a"})
	if got := call(t, b, "POST", "/mj/submit/imagine", m{"prompt": "a"}); got.At("code") != 23.0 {
		t.Errorf("%s", got.Raw)
	}
	if got := call(t, b, "POST", "/mj-relax/mj/submit/imagine", m{"prompt": "a"}); got.At("code") != 23.0 {
		t.Errorf("%s", got.Raw)
	}
	b.Clock.Advance(time.Minute)
	if got := call(t, b, "POST", "/mj-relax/mj/submit/imagine", m{"prompt": "a"}); got.At("code") != 22.0 {
		t.Errorf("the slow kind queues: %s", got.Raw)
	}
}
