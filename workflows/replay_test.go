package workflows_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"

	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/workflows"
)

// The histories were recorded from a real service by the program
// standalone/recordhistories: runs under way depend on them.
func histories(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(historyFile("*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no histories are recorded: %v", err)
	}
	for i, file := range files {
		files[i] = strings.TrimSuffix(filepath.Base(file), ".json")
	}
	return files
}

func historyFile(name string) string { return filepath.Join("testdata", "histories", name+".json") }

func replay(t *testing.T, history *historypb.History) error {
	t.Helper()
	r := worker.NewWorkflowReplayer()
	workflows.Register(r)
	return r.ReplayWorkflowHistory(log.NewStructuredLogger(slog.New(slog.DiscardHandler)), history)
}

func TestReplay(t *testing.T) {
	t.Parallel()
	for _, name := range histories(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := replay(t, read(t, name)); err != nil {
				t.Error(err)
			}
		})
	}
}

func read(t *testing.T, name string) *historypb.History {
	t.Helper()
	text, err := os.ReadFile(historyFile(name))
	if err != nil {
		t.Fatal(err)
	}
	history, err := client.HistoryFromJSON(bytes.NewReader(text), client.HistoryJSONOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return history
}

// A step that the code would not take is noticed, or the test above proves
// nothing.
func TestReplayNoticesAnotherStep(t *testing.T) {
	t.Parallel()
	history := read(t, "video")
	for _, e := range history.GetEvents() {
		if a := e.GetActivityTaskScheduledEventAttributes(); a.GetActivityType().GetName() == "SubmitJob" {
			a.ActivityType.Name = "MirrorResult"
		}
	}
	if err := replay(t, history); err == nil {
		t.Error("a history with another step was replayed")
	}
}

// D5: the run asked the step to stop, and settled only when that had ended;
// after a submit the vendor's id was stored by then. The skipping clock's
// suite does not wait for cancelled activities, so this is proven on what a
// real service recorded.
func TestD5TheRunWaitsForTheStepUnderWay(t *testing.T) {
	t.Parallel()
	cases := map[string]string{
		"cancelled-while-submitting": "schedule SubmitJob, stop SubmitJob, end SubmitJob, schedule CancelJob, end CancelJob, schedule Settle, end Settle",
		"cancelled-while-checking":   "schedule CheckInputs, stop CheckInputs, stopped CheckInputs, schedule Settle, end Settle",
		"cancelled-while-mirroring": "schedule SubmitJob, end SubmitJob, schedule MirrorResult, stop MirrorResult, stopped MirrorResult, " +
			"schedule Settle, end Settle",
	}
	for name, want := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := strings.Join(steps(read(t, name)), ", "); got != want {
				t.Errorf("steps: %s\nwant: %s", got, want)
			}
		})
	}
}

// steps tells what became of a history's activities.
func steps(history *historypb.History) []string {
	var steps []string
	types := make(map[int64]string)
	for _, e := range history.GetEvents() {
		if a := e.GetActivityTaskScheduledEventAttributes(); a != nil {
			types[e.GetEventId()] = a.GetActivityType().GetName()
			steps = append(steps, "schedule "+a.GetActivityType().GetName())
		}
		if a := e.GetActivityTaskCancelRequestedEventAttributes(); a != nil {
			steps = append(steps, "stop "+types[a.GetScheduledEventId()])
		}
		if a := e.GetActivityTaskCompletedEventAttributes(); a != nil {
			steps = append(steps, "end "+types[a.GetScheduledEventId()])
		}
		if a := e.GetActivityTaskCanceledEventAttributes(); a != nil {
			steps = append(steps, "stopped "+types[a.GetScheduledEventId()])
		}
	}
	return steps
}

// A history holds ids and facts: no prompt, no link, no key. The doubles put
// one word into all of these.
func TestHistoriesHoldNoSecrets(t *testing.T) {
	t.Parallel()
	const maxBytes = 60_000
	for _, name := range histories(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(historyFile(name))
			if err != nil {
				t.Fatal(err)
			}
			if len(text) > maxBytes {
				t.Errorf("%d bytes, want at most %d", len(text), maxBytes)
			}
			var tree any
			if err := json.Unmarshal(text, &tree); err != nil {
				t.Fatal(err)
			}
			seen := 0
			for s := range leaves(tree) {
				seen++
				if data, err := base64.StdEncoding.DecodeString(s); err == nil {
					s += " " + string(data)
				}
				for _, bad := range []string{activitytest.Secret, "http://", "https://", "prompt", "whsec_", "example.com"} {
					if strings.Contains(s, bad) {
						t.Errorf("%q shows in %q", bad, s)
					}
				}
			}
			if seen < 50 {
				t.Errorf("only %d texts looked at", seen)
			}
		})
	}
}

// leaves yields the texts of a JSON tree.
func leaves(tree any) func(func(string) bool) {
	return func(yield func(string) bool) { walk(tree, yield) }
}

func walk(node any, yield func(string) bool) bool {
	switch v := node.(type) {
	case string:
		return yield(v)
	case []any:
		for _, child := range v {
			if !walk(child, yield) {
				return false
			}
		}
	case map[string]any:
		for _, child := range v {
			if !walk(child, yield) {
				return false
			}
		}
	}
	return true
}
