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

// difference is the first point at which this build decides otherwise.
type difference struct {
	After   int64  `json:"after"`             // the last event on which both agree
	Event   int64  `json:"event,omitempty"`   // of the history that this build would not make
	History string `json:"history,omitempty"` // what the run did there; empty: nothing
	Build   string `json:"build,omitempty"`   // what this build would do; empty: nothing
	Error   string `json:"error"`             // in the words of Temporal's SDK
	last    int64  // event of the decision in question; 0: it is not one decision
}

// compare replays the history against the workflows of this build. It returns nil where
// they decide as the run did.
func compare(history *historypb.History) *difference {
	err := replayed(history.GetEvents())
	if err == nil {
		return nil
	}
	// Each part up to the commands of a workflow task is a history too. The first that
	// cannot be replayed ends with the decision in question.
	tasks := workflowTasks(history.GetEvents())
	first := sort.Search(len(tasks), func(i int) bool {
		wrong := replayed(history.GetEvents()[:tasks[i].commands])
		if wrong != nil {
			err = wrong // the last one is of the shortest part
		}
		return wrong != nil
	})
	d := explain(err.Error())
	if first < len(tasks) {
		d.After, d.last = tasks[first].completed, history.GetEvents()[tasks[first].commands-1].GetEventId()
	} else if first > 0 { // what came to the run after its last decision is not replayed
		d.After = history.GetEvents()[tasks[first-1].commands-1].GetEventId()
	}
	return d
}

// decided is a workflow task: the event of its completion, and how many events there are
// up to the last of its commands.
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

// commandOf is the completed workflow task that an event is a command of; 0 for others.
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

// The forms in which Temporal's SDK tells a difference, and what is shown of an event
// or a command.
var (
	unlike  = regexp.MustCompile(`history event is (.*), replay command is (.*)`)
	missing = regexp.MustCompile(`missing replay command for (.*)`)
	extra   = regexp.MustCompile(`extra replay command for (.*)`)
	named   = regexp.MustCompile(`(?:ActivityType:\(Name:|MarkerName:|WorkflowId:|workflow_id:"|SignalName:)([\w/.-]+)`)
	madeBy  = regexp.MustCompile(`(?:ActivityId|TimerId):(\d+)`)
)

// explain takes the SDK's error apart. An activity and a timer have the number of their
// event as their id.
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

// brief is the kind of an event or command, and what it is of.
func brief(text string) string {
	kind, rest, _ := strings.Cut(text, ":")
	if m := named.FindStringSubmatch(rest); m != nil {
		return kind + " " + m[1]
	}
	return kind
}

// begins reports that the event is the first one on which the two may not agree.
func (d *difference) begins(event int64) bool {
	if d.Event > 0 {
		return event >= d.Event
	}
	return event > d.After
}

// maxError bounds what is shown of the SDK's words.
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
	w.WriteString("A run under way that this build takes over would stand still there, until a build takes it that agrees.\n")
}
