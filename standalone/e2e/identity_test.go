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

// klingKey is the sandbox's; what follows a ~ makes it another key of the same
// account, what follows an @ a key of another account.
const klingKey = "sandbox-kling-api-key"

// klingChannel is a channel whose key is all that names its account.
func klingChannel(name, key string, more map[string]any) map[string]any {
	channel := map[string]any{"name": name, "provider": "kling", "credentials": map[string]string{"api_key": key}}
	maps.Copy(channel, more)
	return channel
}

// placed are the channels with the sandbox's address, and the pace of the tests.
func (w *world) placed(channels []map[string]any) []map[string]any {
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
	w.settings["channels"] = w.placed(channels)
	w.writeSettings(w.settings)
	w.workers[0].start(w.t)
}

// awaitAsked waits until the vendor was asked again for all tasks that have not
// ended.
func (w *world) awaitAsked() {
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

// checkNeverParked reads the history of each task: a run writes down that its task is
// parked, so that Temporal lists it.
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

// checkSentOnce counts the submissions.
func (w *world) checkSentOnce() {
	w.t.Helper()
	for _, task := range w.tasks {
		if jobs, err := w.jobs(task); err != nil || len(jobs) != 1 || jobs[0].Calls.Submit != 1 {
			w.t.Errorf("the vendor's jobs for %s: %+v, %v; want one, sent once", task.id, jobs, err)
		}
	}
}

// D11: a key is renewed, a channel renamed, both at once, a label given and the
// key renewed under it: the jobs in flight go on each time, none is parked, and
// none is sent a second time.
func TestD11SameAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{shape: production, channels: []map[string]any{klingChannel("kling-a", klingKey, nil)}})
	submit := func(directive string) {
		w.awaitProcessing(w.submit(job{model: alpha, directive: directive}))
	}
	submit("duration=100s")
	// The answer to this one is lost with the worker: the new key looks it up.
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
		w.awaitAsked()
		submit("duration=40s")
	}
	w.verify(recoverTime)
	w.checkNeverParked()
	w.checkSentOnce()
}

// D11: the key of another account finds nothing. That is no loss and no end:
// the task is parked, and goes on when the key is back.
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

// D8, D11: during a deployment workers of the old and the new settings serve
// side by side. They neither take rows from each other nor park them, and
// spend no history on it.
func TestD11RollingRename(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{shape: production, channels: []map[string]any{klingChannel("kling-a", klingKey, nil)}})
	for range 3 {
		w.awaitProcessing(w.submit(job{model: alpha, directive: "duration=20s"}))
	}
	w.settings["channels"] = w.placed([]map[string]any{klingChannel("kling-b", klingKey+"~2", map[string]any{"former": []string{"kling-a"}})})
	old := w.dir
	w.dir = filepath.Join(old, "new")
	if err := os.Mkdir(w.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	w.addWorker(2, w.writeSettings(w.settings))
	for range 6 { // some go to each
		w.awaitProcessing(w.submit(job{model: alpha, directive: "duration=15s"}))
	}
	w.awaitAsked()
	w.workers[0].terminate(t, time.Minute)
	w.awaitAsked()
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
