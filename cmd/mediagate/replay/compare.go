package replay

import (
	"fmt"
	"log/slog"
	"regexp"
	"sort"
	"strconv"
	"strings"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"google.golang.org/protobuf/proto"

	"github.com/mediagate/mediagate/cmd/mediagate/operator"
	"github.com/mediagate/mediagate/workflows"
)

// difference is the first event at which this build decides differently.
type difference struct {
	After   int64  `json:"after"`             // the last event where both agree
	Event   int64  `json:"event,omitempty"`   // the event of the history that this build would not make
	History string `json:"history,omitempty"` // what the run did; empty: nothing
	Build   string `json:"build,omitempty"`   // what this build would do; empty: nothing
	Error   string `json:"error"`             // the message of Temporal's SDK
	last    int64  // event of the decision; 0: not a single decision
}

// compare replays the history against the workflows of this build. It returns nil if they decide as
// the run did.
func compare(history *historypb.History) *difference {
	err := replayed(history.GetEvents())
	if err == nil {
		return nil
	}
	// Each prefix up to the commands of a workflow task is a history too. The shortest prefix that
	// cannot be replayed ends with the different decision.
	tasks := workflowTasks(history.GetEvents())
	first := sort.Search(len(tasks), func(i int) bool {
		wrong := replayed(history.GetEvents()[:tasks[i].commands])
		if wrong != nil {
			err = wrong // the last one is of the shortest prefix
		}
		return wrong != nil
	})
	d := explain(err.Error())
	if first < len(tasks) {
		d.After, d.last = tasks[first].completed, history.GetEvents()[tasks[first].commands-1].GetEventId()
	} else if first > 0 { // events after the run's last decision are not replayed
		d.After = history.GetEvents()[tasks[first-1].commands-1].GetEventId()
	}
	return d
}

// decided is a completed workflow task: the event of its completion, and the number of events up to
// the last of its commands.
type decided struct {
	completed int64
	commands  int
}

func workflowTasks(events []*historypb.HistoryEvent) (tasks []decided) {
	for i, e := range events {
		if e.GetWorkflowTaskCompletedEventAttributes() != nil {
			tasks = append(tasks, decided{e.GetEventId(), i + 1})
		} else if len(tasks) > 0 && commandOf(e) == tasks[len(tasks)-1].completed {
			tasks[len(tasks)-1].commands = i + 1
		}
	}
	return tasks
}

// commandOf returns the completed workflow task that made an event by a command; 0 for other events.
func commandOf(e *historypb.HistoryEvent) int64 {
	m := e.ProtoReflect()
	attributes := m.WhichOneof(m.Descriptor().Oneofs().ByName("attributes"))
	if attributes == nil {
		return 0
	}
	field := attributes.Message().Fields().ByName("workflow_task_completed_event_id")
	if field == nil {
		return 0
	}
	return m.Get(attributes).Message().Get(field).Int()
}

// replayed runs the workflow code of this build over the events.
func replayed(events []*historypb.HistoryEvent) error {
	r, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{DisableDeadlockDetection: true})
	if err != nil {
		return err
	}
	workflows.Register(r)
	// A replay changes the events, so each is given its own.
	history := proto.CloneOf(&historypb.History{Events: events})
	return r.ReplayWorkflowHistory(log.NewStructuredLogger(slog.New(slog.DiscardHandler)), history)
}

// The messages of Temporal's SDK about a difference, and the parts of an event or a command to show.
var (
	unlike  = regexp.MustCompile(`history event is (.*), replay command is (.*)`)
	missing = regexp.MustCompile(`missing replay command for (.*)`)
	extra   = regexp.MustCompile(`extra replay command for (.*)`)
	named   = regexp.MustCompile(`(?:ActivityType:\(Name:|MarkerName:|WorkflowId:|workflow_id:"|SignalName:)([\w/.-]+)`)
	madeBy  = regexp.MustCompile(`(?:ActivityId|TimerId):(\d+)`)
)

// explain parses the SDK's error. The id of an activity or a timer is the number of its event.
func explain(text string) *difference {
	d := &difference{Error: strings.TrimPrefix(text, "[TMPRL1100] ")}
	history, build := "", ""
	if m := unlike.FindStringSubmatch(text); m != nil {
		history, build = m[1], m[2]
	} else if m := missing.FindStringSubmatch(text); m != nil {
		history = m[1]
	} else if m := extra.FindStringSubmatch(text); m != nil {
		build = m[1]
	}
	d.History, d.Build = brief(history), brief(build)
	if m := madeBy.FindStringSubmatch(history); m != nil {
		d.Event, _ = strconv.ParseInt(m[1], 10, 64)
	}
	return d
}

// brief returns the kind of an event or command and the name of its object.
func brief(text string) string {
	kind, rest, _ := strings.Cut(text, ":")
	if m := named.FindStringSubmatch(rest); m != nil {
		return kind + " " + m[1]
	}
	return kind
}

// begins reports whether the event is the first on which the history and this build may differ.
func (d *difference) begins(event int64) bool {
	if d.Event > 0 {
		return event >= d.Event
	}
	return event > d.After
}

// maxError limits the length of the SDK's message.
const maxError = 600

func (d *difference) print(w *strings.Builder) {
	or := func(text string) string {
		if text == "" {
			return "nothing"
		}
		return operator.Printable(text)
	}
	where := fmt.Sprintf("after event %d", d.After)
	if d.Event > 0 {
		where = fmt.Sprintf("at event %d", d.Event)
	}
	fmt.Fprintf(w, "\nThis build DIFFERS from the run %s.\n", where)
	if d.History != "" || d.Build != "" {
		fmt.Fprintf(w, "  the run:     %s\n  this build:  %s\n", or(d.History), or(d.Build))
	}
	shown := d.Error
	if len(shown) > maxError {
		shown = strings.ToValidUTF8(shown[:maxError], "") + " …"
	}
	fmt.Fprintf(w, "  in full:     %s\n", operator.Printable(shown))
	w.WriteString(
		"An open run that this build takes over would stop there, until a build that agrees takes it over.\n",
	)
}
