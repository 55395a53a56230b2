package kernel_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate/sandbox"
	"github.com/mediagate/mediagate/sandbox/sandboxtest"
)

// killed returns a copy of the folder as a kill of its server would leave it: with the journal
// as the operating system has it while the server runs.
func killed(t *testing.T, dir string) string {
	t.Helper()
	left := t.TempDir()
	raw, err := os.ReadFile(filepath.Join(dir, "sandbox.db"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(left, "sandbox.db"), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return left
}

func TestSurvivesKill(t *testing.T) {
	t.Parallel()
	dir, c := t.TempDir(), sandboxtest.NewClock()
	b := sandboxtest.OpenIn(t, dir, c, nil)
	id := call(t, b, "POST", "text2video", with(textVideo(), m{"external_task_id": "task_1"})).Text("data", "task_id")
	for range 2 {
		call(t, b, "GET", "text2video/task_1", nil)
	}
	call(t, b, "POST", "text2video", with(textVideo(), m{"external_task_id": "task_1"}))
	b.Call(t, "POST", "/_sandbox/next", nil, m{"provider": "kling", "directive": "ref=next"})
	before, calls := b.Jobs(t, ""), b.Call(t, "GET", "/_sandbox/calls", nil, nil).Body

	dir = killed(t, dir)
	b = sandboxtest.OpenIn(t, dir, c, nil)
	if diff := cmp.Diff(before, b.Jobs(t, "")); diff != "" {
		t.Errorf("jobs changed:\n%s", diff)
	}
	if diff := cmp.Diff(calls, b.Call(t, "GET", "/_sandbox/calls", nil, nil).Body); diff != "" {
		t.Errorf("calls changed:\n%s", diff)
	}
	c.Advance(2 * time.Second)
	if got := call(t, b, "GET", "text2video/"+id, nil); got.Text("data", "task_status") != "succeed" {
		t.Errorf("not finished meanwhile: %s", got.Raw)
	}
	if got := call(t, b, "POST", "text2video", with(textVideo(), m{"external_task_id": "task_1"})); got.At("code") != 1201.0 {
		t.Errorf("the external id is free again: %s", got.Raw)
	}
	call(t, b, "POST", "text2video", textVideo())
	if n := len(b.Jobs(t, "?reference=next")); n != 1 {
		t.Errorf("the arranged directive is lost")
	}
	b = sandboxtest.OpenIn(t, killed(t, dir), c, nil)
	call(t, b, "POST", "text2video", textVideo())
	if n := len(b.Jobs(t, "?reference=next")); n != 1 {
		t.Errorf("the arranged directive was used %d times", n)
	}
}

func TestBrokenJournal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "sandbox.db"), []byte(strings.Repeat("nonsense", 4096)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sandbox.New(sandbox.Config{Dir: dir}); err == nil {
		t.Error("opened")
	}
	if _, err := sandbox.New(sandbox.Config{}); err == nil {
		t.Error("opened without a folder")
	}
}

func TestOneJobAnExternalID(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	var wg sync.WaitGroup
	made := make(chan int, 20)
	for range 20 {
		wg.Go(func() {
			made <- call(t, b, "POST", "text2video", with(textVideo(), m{"external_task_id": "task_same"})).Status
		})
	}
	wg.Wait()
	close(made)
	statuses := map[int]int{}
	for s := range made {
		statuses[s]++
	}
	if diff := cmp.Diff(map[int]int{200: 1, 400: 19}, statuses); diff != "" {
		t.Error(diff)
	}
	if n := len(b.Jobs(t, "")); n != 1 {
		t.Errorf("%d jobs", n)
	}
}

func TestControl(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	id := call(t, b, "POST", "text2video", with(textVideo(), m{"external_task_id": "task_1-2", "prompt": "a red fox [[sandbox: ref=mine]]"})).Text("data", "task_id")
	call(t, b, "POST", "text2video", with(textVideo(), m{"external_task_id": "task_10"}))
	call(t, b, "GET", "text2video/"+id, nil)
	b.Clock.Advance(2 * time.Second)
	b.Call(t, "GET", call(t, b, "GET", "text2video/"+id, nil).Text("data", "task_result", "videos", 0, "url"), nil, nil)
	generate(t, b, image("[[sandbox: duration=0]] a fox"))

	for query, want := range map[string]int{
		"": 3, "?provider=kling": 2, "?provider=dashscope": 1, "?provider=nobody": 0, "?reference=" + id: 1, "?reference=task_1": 1,
		"?reference=task_1-2": 1, "?reference=task_10": 1, "?reference=task": 2, "?reference=mine": 1, "?reference=red+fox": 1, "?reference=fox": 3,
		"?provider=kling&reference=nothing": 0,
	} {
		if n := len(b.Jobs(t, query)); n != want {
			t.Errorf("%q: %d jobs, want %d", query, n, want)
		}
	}
	want := m{
		"id": id, "provider": "kling", "model": "kling-v3", "external_id": "task_1-2", "prompt": "a red fox [[sandbox: ref=mine]]",
		"state": "succeeded", "created": float64(sandboxtest.NewClock().Now().Unix()),
		"calls": m{"submit": 1.0, "poll": 2.0, "download": 1.0, "cancel": 0.0},
	}
	if diff := cmp.Diff(any(want), b.Jobs(t, "?reference="+id)[0]); diff != "" {
		t.Errorf("job:\n%s", diff)
	}

	got := b.Call(t, "GET", "/_sandbox/calls", nil, nil)
	list, _ := got.At("calls").([]any)
	var calls []string
	for _, c := range list {
		c := c.(m)
		calls = append(calls, fmt.Sprint(c["provider"], " ", c["kind"], " ", c["status"]))
	}
	if diff := cmp.Diff([]string{
		"kling submit 200", "kling submit 200", "kling poll 200", "kling poll 200", "kling download 200", "dashscope submit 200",
	}, calls); diff != "" {
		t.Errorf("calls:\n%s", diff)
	}
	for _, secret := range []string{"sandbox-kling-api-key", "sk-sandbox", "Bearer"} {
		if strings.Contains(string(got.Raw), secret) {
			t.Errorf("calls tell %q", secret)
		}
	}
	if got := b.Call(t, "DELETE", "/_sandbox/jobs", nil, nil); got.Status != 204 {
		t.Fatalf("%d %s", got.Status, got.Raw)
	}
	if n := len(b.Jobs(t, "")); n != 0 {
		t.Errorf("%d jobs after forgetting", n)
	}
	if got := call(t, b, "GET", "text2video/task_10", nil); got.At("code") != 1201.0 {
		t.Errorf("a forgotten job is found: %s", got.Raw)
	}
	if got := call(t, b, "POST", "text2video", with(textVideo(), m{"external_task_id": "task_10"})); got.Status != 200 {
		t.Errorf("a forgotten id is in use: %s", got.Raw)
	}
}

// A customer that renews its key keeps its jobs. Another customer's key does not show them.
func TestVariantsOfKeys(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	const key = "sandbox-kling-api-key"
	bearer := func(key string) map[string]string { return map[string]string{"Authorization": "Bearer " + key} }
	for external, key := range map[string]string{"mine": key, "other": key + "@acme"} {
		got := b.Call(t, "POST", "/kling/v1/videos/text2video", bearer(key), with(textVideo(), m{"external_task_id": external}))
		if got.Status != 200 {
			t.Fatalf("%s: %s", external, got.Raw)
		}
	}
	for name, test := range map[string]struct {
		key         string
		mine, other float64 // codes in the answers
	}{
		"the key":                     {key, 0, 1201},
		"renewed":                     {key + "~2", 0, 1201},
		"another customer":            {key + "@acme", 1201, 0},
		"another customer's, renewed": {key + "@acme~x", 1201, 0},
		"with a limit":                {key + "@acme*5", 1201, 0},
		"with a limit, renewed":       {key + "@acme*5~2", 1201, 0},
		"with a limit that is none":   {key + "@acme*no", 1000, 1000},
		"no key":                      {"~2", 1000, 1000},
		"an unknown key":              {"another@acme", 1000, 1000},
	} {
		for external, want := range map[string]float64{"mine": test.mine, "other": test.other} {
			if got := b.Call(t, "GET", "/kling/v1/videos/text2video/"+external, bearer(test.key), nil); got.At("code") != want {
				t.Errorf("%s asks for %s: %s, want code %v", name, external, got.Raw, want)
			}
		}
	}
}

// An account has a largest number of jobs at once. When jobs end, it may start new ones.
func TestConcurrency(t *testing.T) {
	t.Parallel()
	b := sandboxtest.OpenIn(t, t.TempDir(), sandboxtest.NewClock(), []sandbox.Account{
		{Provider: "kling", Credentials: map[string]string{"api_key": "one"}, Concurrency: 2},
		{Provider: "kling", Credentials: map[string]string{"api_key": "two"}},
	})
	submit := func(key string) int {
		return b.Call(t, "POST", "/kling/v1/videos/text2video", map[string]string{"Authorization": "Bearer " + key}, textVideo()).Status
	}
	if got := [...]int{submit("one"), submit("one"), submit("one"), submit("two")}; got != [...]int{200, 200, 429, 200} {
		t.Errorf("at once: %v", got)
	}
	b.Clock.Advance(2 * time.Second)
	if got := submit("one"); got != 200 {
		t.Errorf("after the others ended: %d", got)
	}
}
