package e2e_test

import (
	"fmt"
	"net/http"
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
