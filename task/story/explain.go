// Package story tells operators about a task: what it does or waits for, until when, what happens
// by itself after that, and what has happened so far. Everything is computed from the task's
// rows, so the console, the command line and Temporal's UI say the same.
//
// The package may import the module root and task.
package story

import (
	"fmt"
	"strings"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

// Explanation is what operators see of the next step: what the task does or waits for, until
// when, what happens then by itself, and which commands apply. It is part of a run's history, so
// it holds ids, times and words of ours, but no text of a client or a vendor. Reasons are given by
// their codes; the console has words for them.
type Explanation struct {
	Step       task.Step              `json:"step"`
	Status     mediagate.Status       `json:"status,omitempty"`
	Failure    mediagate.FailureCode  `json:"failure,omitempty"`
	N          int                    `json:"n,omitempty"` // of the newest attempt; 0 if there is none
	State      mediagate.AttemptState `json:"state,omitempty"`
	Channel    string                 `json:"channel,omitempty"`
	Provider   string                 `json:"provider,omitempty"`
	ParkReason mediagate.ParkReason   `json:"park_reason,omitempty"`
	ParkedAt   time.Time              `json:"parked_at,omitzero"`
	FailsAt    time.Time              `json:"fails_at,omitzero"` // when it fails if nothing happens before
	QueuedFor  []string               `json:"queued_for,omitempty"`
	WaitsFor   []string               `json:"waits_for,omitempty"` // the ids of the sources that have not ended
	Cancelled  bool                   `json:"cancelled,omitempty"` // the client asked to cancel
	Actions    []string               `json:"actions,omitempty"`   // the commands that apply
}

// Explain explains the step that Advance returned at the time now.
func Explain(s *task.State, step task.Step, now time.Time) Explanation {
	e := Explanation{
		Step: step, Status: s.Status, ParkReason: s.Wait.Reason, QueuedFor: s.QueuedFor,
		Cancelled: !s.CancelRequestedAt.IsZero(), Actions: s.Actions(now), Provider: s.Provider(),
	}
	if !s.Status.Terminal() {
		e.FailsAt = s.FailsAt()
	}
	if s.Wait.Reason != "" {
		e.ParkedAt = s.Wait.Since
	}
	if s.Failure != nil {
		e.Failure = s.Failure.Code
	}
	if step.Why == task.SleepSource {
		e.WaitsFor = s.OpenSources()
	}
	if last := s.Last(); last != nil {
		e.N, e.State, e.Channel = last.N, last.State, last.Channel
	}
	return e
}

// Word names the step by its kind, and a sleep by its reason.
func (e Explanation) Word() string {
	if e.Step.Kind == task.Sleep {
		return string(e.Step.Why)
	}
	return string(e.Step.Kind)
}

// Doing says what the task does or waits for.
func (e Explanation) Doing() string {
	switch step := e.Step; step.Kind {
	case task.CheckInputs:
		return "check the media of the request"
	case task.Submit:
		return fmt.Sprintf("submit attempt %d to %s", step.N, step.Provider)
	case task.Lookup:
		return fmt.Sprintf("look up attempt %d by our own id, since the vendor's answer was lost", step.N)
	case task.Mirror:
		return "copy the result into the bucket and end the task"
	case task.CancelJob:
		return "ask the vendor to stop its job"
	case task.Settle:
		return "end the task"
	case task.Sleep:
		return e.sleeping()
	case task.Done:
	}
	if e.Failure != "" {
		return fmt.Sprintf("ended: %s, %s", e.Status, e.Failure)
	}
	return "ended: " + string(e.Status)
}

func (e Explanation) sleeping() string {
	switch e.Step.Why {
	case task.SleepSource:
		if len(e.WaitsFor) == 0 {
			return "its sources have ended: about to read their results"
		}
		return "waiting for the end of " + strings.Join(e.WaitsFor, ", ")
	case task.SleepVendor:
		return fmt.Sprintf("waiting for %s (attempt %d)", e.Provider, e.Step.N)
	case task.SleepCall:
		return "waiting for the answer to a submission that may be under way"
	case task.SleepUnknown:
		return "the vendor's answer was lost, and the vendor has no lookup: check with the vendor, then decide"
	case task.SleepLookup:
		return "the vendor's answer was lost: waiting for the next lookup"
	case task.SleepSlot:
		if e.ParkReason != "" {
			return "queued for a slot, and parked because no channel takes jobs: " + string(e.ParkReason)
		}
		return "queued for a slot"
	case task.SleepParked:
		return "parked: " + string(e.ParkReason)
	case task.SleepModal:
		return "waiting for the client's modal parameters"
	case task.SleepPause:
	}
	return "waiting for the next try"
}

// Then says what happens by itself when the time of the step has come, or the step has ended. It
// is empty for a task that has ended.
func (e Explanation) Then() string {
	then := ""
	switch step := e.Step; step.Kind {
	case task.CheckInputs:
		then = "the task is submitted, or fails if its media cannot be used"
	case task.Submit:
		then = "the task waits for the vendor or for a slot, or tries its next channel"
	case task.Lookup:
		then = "if the vendor has the job, the task waits for it; if the job is proven absent, it is submitted again; " +
			"otherwise another lookup follows"
	case task.Mirror:
		then = "the task completes"
	case task.CancelJob, task.Settle:
		then = "the task ends"
	case task.Sleep:
		then = e.awakening()
	case task.Done:
		return ""
	}
	if !e.FailsAt.IsZero() && !e.FailsAt.Equal(e.Step.Until) {
		then += "; without success, it fails and is refunded at " + e.FailsAt.UTC().Format(time.RFC3339)
	}
	return then
}

func (e Explanation) awakening() string {
	if e.Step.Until.Equal(e.FailsAt) && e.Step.Why != task.SleepModal {
		return "the task fails and is refunded"
	}
	switch e.Step.Why {
	case task.SleepSource:
		return "the task reads the state of its sources, and does so earlier when a source ends. Then it goes on with " +
			"their files, or fails with source_failed and is refunded as soon as a source ends without its file"
	case task.SleepVendor:
		return "the vendor is polled a last time; if the job has not ended, the task fails and is refunded"
	case task.SleepCall:
		if e.Cancelled || len(e.Actions) == 0 {
			return "the task ends"
		}
		return "a lookup asks the vendor what became of the submission"
	case task.SleepLookup:
		return "the vendor is asked for the job by our own id"
	case task.SleepSlot:
		if e.ParkReason != "" {
			return "the task tries to get a slot; it goes on earlier if a channel takes jobs again, " +
				"or as the probe of a channel"
		}
		return "the task tries to get a slot; if a slot becomes free earlier, the task gets it at once"
	case task.SleepModal:
		return "the task fails with modal_expired and is refunded"
	case task.SleepUnknown, task.SleepParked, task.SleepPause:
	}
	return "the step is tried again"
}
