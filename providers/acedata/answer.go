package acedata

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// reply is the vendor's answer to a call that makes something. Errors of all calls have the same
// envelope.
type reply struct {
	Success vendorhttp.Text `json:"success"`
	TaskID  vendorhttp.Text `json:"task_id"`
	TraceID vendorhttp.Text `json:"trace_id"`
	Data    json.RawMessage `json:"data"`
	Error   fault           `json:"error"`
}

type fault struct {
	Code    vendorhttp.Text `json:"code"`
	Message vendorhttp.Text `json:"message"`
}

// createdIDs returns the ids in the data of an upload or a voice.
func (r *reply) createdIDs() (o struct {
	AudioID   vendorhttp.Text `json:"audio_id"`
	PersonaID vendorhttp.Text `json:"persona_id"`
},
) {
	_ = vendorhttp.Answer{Body: r.Data}.Decode(&o) // data that is not an object has no ids
	return o
}

// task is the vendor's record of a job.
type task struct {
	ID       vendorhttp.Text `json:"id"`
	State    vendorhttp.Text `json:"state"` // may be empty
	Request  json.RawMessage `json:"request"`
	Response *response       `json:"response"`
}

// response holds the results that a task has so far.
type response struct {
	Success vendorhttp.Text `json:"success"`
	TaskID  vendorhttp.Text `json:"task_id"`
	Data    []clip          `json:"data"`
	Error   fault           `json:"error"`
}

// readTask reads the answer to a query for one task.
func (t *task) readTask(answer vendorhttp.Answer) vendorhttp.Reading {
	own := answer.Decode(t) == nil
	hasContent := t.id() != "" || t.State != "" || t.Response != nil
	if own && hasContent && answer.Status == http.StatusOK {
		return vendorhttp.Reading{FromVendor: true, Done: true}
	}
	return new(reply).readQueryError(answer)
}

// list is the answer to a query for several tasks.
type list struct {
	Items []task `json:"items"`
}

func (l *list) readTasks(answer vendorhttp.Answer) vendorhttp.Reading {
	if answer.Decode(l) == nil && l.Items != nil && answer.Status == http.StatusOK {
		return vendorhttp.Reading{FromVendor: true, Done: true}
	}
	return new(reply).readQueryError(answer)
}

func (t task) id() string {
	if id := t.ID.ID(); id != "" || t.Response == nil {
		return id
	}
	return t.Response.TaskID.ID()
}

// states maps the vendor's words for tasks, and for the songs in them.
var states = map[string]mediagate.JobState{
	"pending":    mediagate.JobQueued,
	"processing": mediagate.JobRunning,
	"running":    mediagate.JobRunning,
	"complete":   mediagate.JobSucceeded,
	"succeeded":  mediagate.JobSucceeded,
	"failed":     mediagate.JobFailed,
	"error":      mediagate.JobFailed,
	"cancelled":  mediagate.JobFailed,
	"canceled":   mediagate.JobFailed,
}

// state returns the job's state and the vendor's word for it. A word for anything but success
// decides alone. If State is empty or says success, the response decides, and a job has succeeded
// only when all its songs have ended.
func (t task) state() (mediagate.JobState, vendorhttp.Text) {
	if own, known := states[string(t.State)]; t.State != "" && (!known || own != mediagate.JobSucceeded) {
		if !known {
			own = mediagate.JobUnknown
		}
		return own, t.State
	}
	switch r := t.Response; {
	case r == nil && len(t.Request) > 0 && string(t.Request) != "null" && t.State == "":
		return mediagate.JobRunning, "" // the vendor has accepted the task and reports nothing yet
	case r == nil:
		return mediagate.JobUnknown, t.State
	case r.Success == "false":
		return mediagate.JobFailed, t.State
	case r.Success == "true":
		return stateOfSongs(r.Data, t.State)
	default:
		return mediagate.JobUnknown, t.State
	}
}

// stateOfSongs returns the joint state of a task's songs. The task has failed only if every song
// has failed.
func stateOfSongs(clips []clip, word vendorhttp.Text) (mediagate.JobState, vendorhttp.Text) {
	failed := 0
	for _, c := range clips {
		if c.State == "" { // the older shape of the answer has no state
			continue
		}
		switch state, known := states[string(c.State)]; {
		case !known:
			return mediagate.JobUnknown, c.State
		case state == mediagate.JobFailed:
			failed++
			word = c.State
		case state != mediagate.JobSucceeded:
			return mediagate.JobRunning, c.State
		}
	}
	if failed > 0 && failed == len(clips) {
		return mediagate.JobFailed, word
	}
	return mediagate.JobSucceeded, word
}

// report translates a task into a report.
func (a *Adapter) report(ref mediagate.JobRef, t task) (mediagate.Report, error) {
	state, word := t.state()
	report, err := a.HTTP.Report(ref, vendorhttp.Text(t.id()), states, word)
	if err != nil {
		return report, err
	}
	report.State = state
	switch {
	case state == mediagate.JobSucceeded:
		report.Offer(successOutcome(ref, t.Response.Data))
	case state == mediagate.JobFailed:
		report.Outcome = a.failed(t)
	case states[string(t.State)] == mediagate.JobSucceeded && (t.Response == nil || t.Response.Success == ""):
		report.State = mediagate.JobSucceeded
		report.Offer(successOutcome(ref, nil))
	case state == mediagate.JobRunning && t.Response != nil:
		report.Percent = percent(t.Response.Data)
	}
	return report, nil
}

// percent returns the progress of the slowest song, 99 at most. It returns -1 unless every song has
// a progress.
func percent(clips []clip) int {
	least := -1
	for _, c := range clips {
		n, err := strconv.Atoi(strings.TrimSuffix(string(c.Progress), "%"))
		if err != nil || n < 0 {
			return -1
		}
		if n = min(n, 99); least < 0 || n < least {
			least = n
		}
	}
	return least
}
