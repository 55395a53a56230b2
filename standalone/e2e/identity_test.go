package e2e_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"github.com/mediagate/mediagate/sandbox"
	"github.com/mediagate/mediagate/workflows"
)

// klingKey is the key of the sandbox's account. With a suffix ~TEXT it is another key of the
// same account, and with a suffix @NAME a key of another account.
const klingKey = "sandbox-kling-api-key"

// klingChannel returns a channel whose account is identified by the key alone.
func klingChannel(name, key string, more map[string]any) map[string]any {
	channel := map[string]any{"name": name, "provider": "kling", "credentials": map[string]string{"api_key": key}}
	maps.Copy(channel, more)
	return channel
}

// withSandboxURL adds the sandbox's address and short poll intervals to the channels.
func (w *world) withSandboxURL(channels []map[string]any) []map[string]any {
	placed := make([]map[string]any, len(channels))
	for i, channel := range channels {
		placed[i] = maps.Clone(channel)
		for _, c := range sandbox.Channels(w.sandbox) {
			if c.Provider == channel["provider"] {
				placed[i]["base_url"] = w.sandbox + c.Path
			}
		}
		if _, ok := channel["requests_per_second"]; !ok {
			placed[i]["requests_per_second"] = 50
			placed[i]["poll_interval"] = map[string]string{"min": "500ms", "max": "1s"}
		}
	}
	return placed
}

// reconfigure stops the worker and starts it with other channels.
func (w *world) reconfigure(channels ...map[string]any) {
	w.t.Helper()
	w.workers[0].terminate(w.t, time.Minute)
	w.settings["channels"] = w.withSandboxURL(channels)
	w.writeSettings(w.settings)
	w.workers[0].start(w.t)
}

// awaitPolled waits until the vendor has been polled again for each task that has not ended.
func (w *world) awaitPolled() {
	w.t.Helper()
	asked := func(t *task) int {
		jobs, err := w.jobs(t)
		if err != nil || len(jobs) != 1 {
			w.t.Fatalf("the vendor's jobs for %s: %+v, %v", t.id, jobs, err)
		}
		return jobs[0].Calls.Poll
	}
	for _, task := range w.tasks {
		before := asked(task)
		eventually(w.t, time.Minute, task.id+" is asked for", func() error {
			o, err := w.read(task.id)
			if err == nil && !o.terminal() && asked(task) < before+2 {
				err = fmt.Errorf("%d polls", asked(task))
			}
			return err
		})
	}
}

// checkNeverParked checks the history of each task: a run that parks its task records that for
// Temporal's lists.
func (w *world) checkNeverParked() {
	w.t.Helper()
	c := w.dial()
	defer c.Close()
	for _, task := range w.tasks {
		history := c.GetWorkflowHistory(w.t.Context(), task.id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for history.HasNext() {
			event, err := history.Next()
			if err != nil {
				w.t.Fatal(err)
			}
			written := event.GetUpsertWorkflowSearchAttributesEventAttributes().GetSearchAttributes().GetIndexedFields()
			if string(written[workflows.AttrStuck.GetName()].GetData()) == "true" {
				w.t.Errorf("%s was parked for %s", task.id, written[workflows.AttrReason.GetName()].GetData())
			}
		}
	}
}

// checkSentOnce checks that each task was submitted to its vendor once.
func (w *world) checkSentOnce() {
	w.t.Helper()
	for _, task := range w.tasks {
		if jobs, err := w.jobs(task); err != nil || len(jobs) != 1 || jobs[0].Calls.Submit != 1 {
			w.t.Errorf("the vendor's jobs for %s: %+v, %v; want one, sent once", task.id, jobs, err)
		}
	}
}

// TestD11SameAccount renews a key, renames a channel, does both at once, and adds a label and
// renews the key below it (D11). The jobs in progress continue each time. None is parked, and
// none is submitted a second time.
func TestD11SameAccount(t *testing.T) {
	t.Parallel()
	long(t)
	w := newWorld(t, options{shape: production, channels: []map[string]any{klingChannel("kling-a", klingKey, nil)}})
	submit := func(directive string) {
		w.awaitProcessing(w.submit(job{model: alpha, directive: directive}))
	}
	submit("duration=100s")
	// The answer to this submit is lost with the worker. The job is looked up with the new key.
	w.awaitJob(w.submit(job{model: alpha, directive: "fail=timeout, at=submit, duration=5s"}))
	former := []string{"kling-a", "kling-b"}
	for _, next := range []map[string]any{
		klingChannel("kling-a", klingKey+"~2", nil),
		klingChannel("kling-b", klingKey+"~3", map[string]any{"former": former[:1]}),
		klingChannel("kling-c", klingKey+"~3", map[string]any{"former": former}),
		klingChannel("kling-c", klingKey+"~3", map[string]any{"account": "acme", "former": former}),
		klingChannel("kling-c", klingKey+"~4", map[string]any{"account": "acme", "former": former}),
	} {
		w.reconfigure(next)
		w.awaitPolled()
		submit("duration=40s")
	}
	w.verify(recoverTime)
	w.checkNeverParked()
	w.checkSentOnce()
}

// TestD11AnotherAccount replaces the key by that of another account, which does not have the job
// (D11). The job is neither lost nor ended: the task is parked, and continues when the key is
// back.
func TestD11AnotherAccount(t *testing.T) {
	t.Parallel()
	old, other := klingChannel("kling-a", klingKey, nil), klingChannel("kling-a", klingKey+"@other", nil)
	w := newWorld(t, options{shape: production, channels: []map[string]any{old}})
	task := w.submit(job{model: alpha, directive: "duration=10s"})
	w.awaitProcessing(task)
	w.reconfigure(other)
	w.awaitParked(task, "channel_missing")
	fresh := w.submit(job{model: alpha})
	w.await(fresh, time.Minute, "completes with the new account", func(o object) bool { return o.Status == "completed" })
	if o, err := w.read(task.id); err != nil || o.Status != "processing" {
		t.Errorf("with another account the task is %+v, %v", o, err)
	}
	w.reconfigure(old)
	w.verify(recoverTime)
	w.checkSentOnce()
}

// TestD11RollingRename runs workers with the old and the new settings at the same time, as
// during a deployment (D8, D11). They neither take rows from each other nor park them, and add
// no events to the histories.
func TestD11RollingRename(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{shape: production, channels: []map[string]any{klingChannel("kling-a", klingKey, nil)}})
	for range 3 {
		w.awaitProcessing(w.submit(job{model: alpha, directive: "duration=20s"}))
	}
	w.settings["channels"] = w.withSandboxURL([]map[string]any{klingChannel("kling-b", klingKey+"~2", map[string]any{"former": []string{"kling-a"}})})
	old := w.dir
	w.dir = filepath.Join(old, "new")
	if err := os.Mkdir(w.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	w.addWorker(2, w.writeSettings(w.settings))
	for range 6 { // so that each worker gets some
		w.awaitProcessing(w.submit(job{model: alpha, directive: "duration=15s"}))
	}
	w.awaitPolled()
	w.workers[0].terminate(t, time.Minute)
	w.awaitPolled()
	w.verify(recoverTime)
	w.checkNeverParked()
	w.checkSentOnce()
	c := w.dial()
	defer c.Close()
	for _, name := range []string{"channel/kling-a", "channel/kling-b"} {
		about, err := c.DescribeWorkflowExecution(t.Context(), name, "")
		if err != nil {
			t.Fatal(err)
		}
		if n := about.GetWorkflowExecutionInfo().GetHistoryLength(); n > 100 {
			t.Errorf("%s has %d events", name, n)
		}
	}
}
