package workflows_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/workflows"
)

// The histories were recorded from a real service by the program
// standalone/recordhistories: what runs under way depend on.
var histories = []string{
	"callback", "callback-under-way", "cancelled", "cancelled-from-outside", "cancelled-while-mirroring",
	"cancelled-while-judging", "cancelled-while-submitting", "channel", "failed-while-mirroring", "image", "judged", "judged-bad",
	"lost", "modal", "modal-expired", "parked", "queued", "refused", "shut-out", "trouble", "trouble-over", "video",
	// Of runs whose copies settle, which were started as at work.
	"one-step/cancelled", "one-step/cancelled-from-outside", "one-step/cancelled-while-judging", "one-step/cancelled-while-mirroring",
	"one-step/cancelled-while-submitting", "one-step/failed-while-mirroring", "one-step/image", "one-step/judged", "one-step/judged-bad",
	"one-step/lost", "one-step/modal", "one-step/modal-expired", "one-step/parked", "one-step/queued", "one-step/refused",
	"one-step/shut-out", "one-step/trouble", "one-step/trouble-over", "one-step/video",
	// Of the same code, told of tasks that had ended by then or were copied for meanwhile.
	"ended-first/cancelled-while-mirroring", "ended-first/failed-while-mirroring", "ended-first/image", "ended-first/modal", "ended-first/video",
}

func historyFile(name string) string { return filepath.Join("testdata", "histories", name+".json") }

func replay(t *testing.T, history *historypb.History) error {
	t.Helper()
	r := worker.NewWorkflowReplayer()
	r.RegisterWorkflow(workflows.Generate)
	r.RegisterWorkflow(workflows.DeliverWebhook)
	r.RegisterWorkflow(workflows.Channel)
	r.RegisterWorkflow(workflows.Reconciler)
	return r.ReplayWorkflowHistory(log.NewStructuredLogger(slog.New(slog.DiscardHandler)), history)
}

func TestReplay(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(historyFile("*"))
	for _, folder := range []string{"one-step", "ended-first"} {
		newer, _ := filepath.Glob(historyFile(folder + "/*"))
		files = append(files, newer...)
	}
	if err != nil || len(files) != len(histories) {
		t.Fatalf("%d histories (%v), want the %d that are named here", len(files), err, len(histories))
	}
	for _, name := range histories {
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
		if a := e.GetActivityTaskScheduledEventAttributes(); a.GetActivityType().GetName() == "MirrorResult" {
			a.ActivityType.Name = "UnparkTask"
		}
	}
	if err := replay(t, history); err == nil {
		t.Error("a history with another step was replayed")
	}
}

// Runs that began before steps heard more than a cancel go on as they were:
// what reached them while a step ran was left for later.
func TestReplaySignalsThatOldStepsDidNotHear(t *testing.T) {
	t.Parallel()
	for name, input := range map[string]any{
		workflows.SignalWake: nil, mediagate.ActionFail: nil,
		workflows.SignalAction: activities.ActionArgs{ID: "act_1", Action: mediagate.ActionFail},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			history := read(t, "cancelled-while-submitting")
			var signalled *historypb.WorkflowExecutionSignaledEventAttributes
			for _, e := range history.GetEvents() {
				if a := e.GetWorkflowExecutionSignaledEventAttributes(); a != nil {
					signalled = a
				}
			}
			payloads, err := converter.GetDefaultDataConverter().ToPayloads(input)
			if err != nil {
				t.Fatal(err)
			}
			signalled.SignalName, signalled.Input = name, payloads
			without(history, enumspb.EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED)
			if err := replay(t, history); err != nil {
				t.Error(err)
			}
		})
	}
}

// So do those that parked since the database was away while they submitted.
func TestReplayParkedForTheDatabase(t *testing.T) {
	t.Parallel()
	history := read(t, "parked")
	events := history.GetEvents()
	submitted, failed, park := events[7], events[21], events[25]
	attributes := failed.GetActivityTaskFailedEventAttributes()
	attributes.ScheduledEventId, attributes.StartedEventId = 6, 7
	attributes.Failure.GetApplicationFailureInfo().Type = mediagate.KindUnavailable.String()
	failed.EventId, events[7] = submitted.GetEventId(), failed
	park.EventId, events[11] = 12, park
	park.GetActivityTaskScheduledEventAttributes().ActivityId = "12"
	park.GetActivityTaskScheduledEventAttributes().WorkflowTaskCompletedEventId = 11
	history.Events = events[:12]
	if err := replay(t, history); err != nil {
		t.Error(err)
	}
}

// without takes the one event of that type out of a history, and numbers those
// after it anew.
func without(history *historypb.History, kind enumspb.EventType) {
	at := slices.IndexFunc(history.GetEvents(), func(e *historypb.HistoryEvent) bool { return e.GetEventType() == kind })
	gone := history.GetEvents()[at].GetEventId()
	history.Events = slices.Delete(history.GetEvents(), at, at+1)
	move := func(id *int64) {
		if *id > gone {
			*id--
		}
	}
	for _, e := range history.GetEvents() {
		move(&e.EventId)
		if a := e.GetActivityTaskScheduledEventAttributes(); a != nil && e.GetEventId() >= gone {
			a.ActivityId = strconv.FormatInt(e.GetEventId(), 10)
		}
		if a := e.GetActivityTaskCompletedEventAttributes(); a != nil {
			move(&a.ScheduledEventId)
		}
	}
}

// D5: the run asked the step to stop, and settled only when that had ended;
// after a submit the vendor's id was stored by then. The skipping clock's
// suite does not wait for cancelled activities, so this is proven on what a
// real service recorded.
func TestD5TheRunWaitsForTheStepUnderWay(t *testing.T) {
	t.Parallel()
	cases := map[string]string{
		"cancelled-while-submitting":          "schedule SubmitJob, stop SubmitJob, end SubmitJob, schedule CancelJob, end CancelJob, schedule Settle, end Settle",
		"one-step/cancelled-while-submitting": "schedule SubmitJob, stop SubmitJob, end SubmitJob, schedule CancelJob, end CancelJob, schedule Settle, end Settle",
		"one-step/cancelled-while-mirroring": "schedule SubmitJob, end SubmitJob, schedule MirrorResult, stop MirrorResult, stopped MirrorResult, " +
			"schedule Settle, end Settle, schedule SweepResults, end SweepResults",
		"one-step/video":          "schedule SubmitJob, end SubmitJob, schedule MirrorResult, end MirrorResult",
		"cancelled-while-judging": "schedule JudgeInputs, stop JudgeInputs, schedule Settle, end Settle",
		"cancelled-while-mirroring": "schedule SubmitJob, end SubmitJob, schedule MirrorResult, stop MirrorResult, stopped MirrorResult, " +
			"schedule Settle, end Settle, schedule SweepResults, end SweepResults",
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
	for _, name := range histories {
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
