package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// spareKey is the key of another account with the vendor.
const spareKey = klingKey + "@spare"

// twoChannels returns channels for two accounts with one vendor. The second is used when the
// first accepts no jobs.
func twoChannels(first string) []map[string]any {
	return []map[string]any{
		klingChannel("kling-a", first, map[string]any{"priority": 1}),
		klingChannel("kling-b", spareKey, map[string]any{"priority": 2}),
	}
}

// channel is a channel as the admin API shows it.
type channel struct {
	Name     string `json:"name"`
	State    string `json:"state"`
	Reason   string `json:"reason"`
	InFlight int    `json:"in_flight"`
	Polling  int    `json:"polling"`
}

func (w *world) awaitChannel(name, state string, limit time.Duration) {
	w.t.Helper()
	eventually(w.t, limit, name+" is "+state, func() error {
		var c channel
		w.admin(http.MethodGet, "/channels/"+name, nil, &c)
		if c.State != state {
			return fmt.Errorf("it is %+v", c)
		}
		return nil
	})
}

// command runs an operator's command and returns its output.
func (w *world) command(args ...string) string {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), filepath.Join(suite.bin, "mediagate"), args...)
	cmd.Env = []string{"MEDIAGATE_URL=" + w.apiURLs[0], "MEDIAGATE_ADMIN_KEY=" + w.adminKey}
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("mediagate %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// outage makes the vendor unavailable for calls with the key.
func (w *world) outage(key, mode string) {
	w.t.Helper()
	a, err := request{
		method: http.MethodPost, url: w.sandbox + "/_sandbox/outage", body: map[string]string{"provider": "kling", "key": key, "mode": mode},
		header: map[string]string{"Content-Type": "application/json"},
	}.do(w.t.Context())
	if err != nil || a.status != http.StatusNoContent {
		w.t.Fatalf("outage: %d %s, %v", a.status, a.body, err)
	}
}

// attemptChannels returns the channels of a task's attempts, in order.
func (w *world) attemptChannels(t *task) []string {
	w.t.Helper()
	names, err := w.column("SELECT channel FROM attempts WHERE task_id = $1 ORDER BY n", t.id)
	if err != nil {
		w.t.Fatal(err)
	}
	return names
}

// TestChannelOutage lets one of two accounts answer with errors, and recover, with a kill of the
// worker in between. Tasks that the vendor may have accepted stay with the account. New tasks go
// to the other account, and no task is lost or made twice. verifyFailover covers an account that
// does not answer at all.
func TestChannelOutage(t *testing.T) {
	t.Parallel()
	key := klingKey + "@" + strings.ToLower(randomText(8))
	w := newWorld(t, options{shape: production, channels: twoChannels(key)})
	before := w.submit(job{model: alpha, directive: "duration=20s"})
	w.awaitProcessing(before)
	w.outage(key, "error")
	for range 7 { // all at once: the outcome of submits sent before the breaker opens is unknown
		w.submit(job{model: alpha})
	}
	w.awaitChannel("kling-a", "broken", time.Minute)
	elsewhere := func() *task {
		task := w.submit(job{model: alpha})
		w.await(task, time.Minute, "completes elsewhere", func(o object) bool { return o.Status == "completed" })
		return task
	}
	if got := w.attemptChannels(elsewhere()); len(got) != 1 || got[0] != "kling-b" {
		t.Errorf("attempts of a task submitted while the channel is out: %v", got)
	}
	w.workers[0].kill()
	w.workers[0].start(t)
	elsewhere()
	w.outage(key, "off")
	w.verify(recoverTime)
	w.checkSentOnce()
	w.awaitChannel("kling-a", "up", time.Minute)
	back := w.submit(job{model: alpha})
	w.awaitProcessing(back)
	if got := w.attemptChannels(back); len(got) != 1 || got[0] != "kling-a" {
		t.Errorf("attempts of a task submitted after the outage: %v", got)
	}
	w.verify(recoverTime)
}

// TestChannelDisabled checks that a channel that an operator disables drains, and accepts jobs
// again when it is enabled. If all channels are disabled, tasks wait, and go on by themselves
// afterwards.
func TestChannelDisabled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{shape: production, channels: twoChannels(klingKey + "@drain"), settings: map[string]any{"park_retry": "10m"}})
	under := w.submit(job{model: alpha, directive: "duration=8s"})
	w.awaitProcessing(under)
	if out := w.command("channels", "disable", "kling-a"); !strings.Contains(out, "disabled") {
		t.Errorf("disabled:\n%s", out)
	}
	time.Sleep(time.Second) // by then all processes must know
	other := w.submit(job{model: alpha})
	w.awaitProcessing(other)
	w.command("channels", "disable", "kling-b")
	time.Sleep(time.Second)
	waiting := w.submit(job{model: alpha})
	w.awaitParked(waiting, "provider_unavailable")
	if got := w.attemptChannels(waiting); len(got) != 0 {
		t.Errorf("attempts with all channels out: %v", got)
	}
	w.await(under, time.Minute, "completes on the channel that is out", func(o object) bool { return o.Status == "completed" })
	w.command("channels", "enable", "kling-a")
	w.await(waiting, 20*time.Second, "goes on", func(o object) bool { return o.Status != "pending" })
	for task, want := range map[*task]string{under: "kling-a", other: "kling-b", waiting: "kling-a"} {
		if got := w.attemptChannels(task); len(got) != 1 || got[0] != want {
			t.Errorf("attempts of %s: %v, want one with %s", task.id, got, want)
		}
	}
	w.verify(recoverTime)
}

// TestRetiredModel checks a vendor that no longer has the model. If the model has another route,
// the task uses it at once. Otherwise the task fails and is refunded. So do the next tasks,
// without a call, until an operator enables the channel.
func TestRetiredModel(t *testing.T) {
	t.Parallel()
	models := t.TempDir()
	for name, text := range map[string]string{
		"alpha.yaml": "id: alpha-v3\noperations:\n  - endpoint: /v1/videos/generations\n    routes: [{provider: kling, upstream: kling-v9, operation: video}]\n",
		"zeta.yaml": "id: zeta-3.1-flash-image-preview\noperations:\n  - endpoint: /v1/images/generations\n    routes:\n" +
			"      - {provider: gemini, upstream: gemini-3.1-flash-image-preview, operation: image}\n" +
			"      - {provider: gemini, upstream: gemini-3.1-flash-image, operation: image}\n",
	} {
		if err := os.WriteFile(filepath.Join(models, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w := newWorld(t, options{shape: production, settings: map[string]any{"catalog_dir": models}})
	fails := func(calls int) {
		t.Helper()
		task := w.submit(job{model: alpha})
		task.wantStatus, task.wantCode, task.minJobs, task.maxJobs = "failed", "model_retired", 0, 0
		w.await(task, 30*time.Second, "fails", func(o object) bool { return o.Status == "failed" })
		w.checkLedger(task, "void", "hold")
		if got := len(w.attemptChannels(task)); got != calls {
			t.Errorf("%d attempts, want %d", got, calls)
		}
	}
	fails(1)
	fails(0)
	if out := w.command("channels", "list"); !strings.Contains(out, "kling-v9 until ") {
		t.Errorf("channels:\n%s", out)
	}
	if out := w.command("channels", "enable", "kling-a"); strings.Contains(out, "kling-v9") {
		t.Errorf("enabled:\n%s", out)
	}
	time.Sleep(time.Second) // by then all processes must know
	fails(1)
	next := w.submit(job{model: zeta})
	w.await(next, 30*time.Second, "completes by its next route", func(o object) bool { return o.Status == "completed" })
	if got := len(w.attemptChannels(next)); got != 2 {
		t.Errorf("%d attempts, want 2", got)
	}
	w.verify(recoverTime)
}
