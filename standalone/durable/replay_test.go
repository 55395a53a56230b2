package durable_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/workflows"
)

// update records the histories anew. Runs in progress depend on the recorded histories: a change
// of the workflows with which they could not continue fails the test. So use it only with code
// that has landed, and only if workflow.GetVersion cannot bridge a change. "make generate" does
// not change the histories.
var update = flag.Bool("update", false, "record the histories anew")

func historyFile(name string) string {
	return filepath.Join("..", "..", "workflows", "testdata", "histories", name+".json")
}

func replay(t *testing.T, history *historypb.History) error {
	t.Helper()
	r := worker.NewWorkflowReplayer()
	workflows.Register(r)
	return r.ReplayWorkflowHistory(log.NewStructuredLogger(slog.New(slog.DiscardHandler)), history)
}

// TestReplay replays the recorded histories. With -update, it first records them on a Temporal
// server.
func TestReplay(t *testing.T) {
	t.Parallel()
	for name := range recordings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if *update {
				record(t, name)
			}
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

// TestReplayNoticesAnotherStep checks that a replay fails if the code would take another step.
// Otherwise TestReplay would prove nothing.
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

// TestD5TheRunWaitsForTheStepUnderWay checks that the run asks the step in progress to stop, and
// settles the task only when the step has ended (D5). After a submit, the vendor's id is stored
// by then. The skipping clock of the workflows' own tests does not wait for cancelled
// activities.
func TestD5TheRunWaitsForTheStepUnderWay(t *testing.T) {
	t.Parallel()
	t.Run("copying", func(t *testing.T) {
		t.Parallel()
		expectSteps(t, read(t, "cancelled-while-mirroring").GetEvents(), "schedule SubmitJob, end SubmitJob, "+
			"schedule MirrorResult, stop MirrorResult, stopped MirrorResult, schedule Settle, end Settle")
	})
	t.Run("submitting", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		answers := make(chan struct{})
		w.Async.OnSubmit = func(_ context.Context, job mediagate.Job) (mediagate.Submission, error) {
			<-answers
			return w.Async.Accept(job)
		}
		w.startWorker([]string{activitytest.AsyncChannel}, activitytest.AsyncProvider)
		task := w.startTask(w.NewVideo(), "task_submitting", time.Hour)
		w.await("the submit is under way", func() bool { return len(w.Async.Submits()) == 1 })
		w.cancel(task.ID)
		w.await("the submit is to stop", func() bool {
			return w.latest(task.ID, enumspb.EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED)
		})
		close(answers)
		w.expectEnd(task.ID, mediagate.StatusCancelled, "")
		expectSteps(t, w.events(task.ID), "schedule SubmitJob, stop SubmitJob, end SubmitJob, "+
			"schedule CancelJob, end CancelJob, schedule Settle, end Settle")
	})
}

func expectSteps(t *testing.T, events []*historypb.HistoryEvent, want string) {
	t.Helper()
	if got := strings.Join(steps(events), ", "); got != want {
		t.Errorf("steps: %s\nwant: %s", got, want)
	}
}

// steps describes the activities of a history and how they ended.
func steps(events []*historypb.HistoryEvent) []string {
	var steps []string
	types := make(map[int64]string)
	for _, e := range events {
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

// TestHistoriesHoldNoSecrets checks that a history holds ids and facts, but no prompt, link or
// key. The doubles put one word into all of these.
func TestHistoriesHoldNoSecrets(t *testing.T) {
	t.Parallel()
	const maxBytes = 60_000
	for name := range recordings {
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
				t.Errorf("only %d texts were checked", seen)
			}
		})
	}
}

// leaves yields the strings of a JSON value.
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
