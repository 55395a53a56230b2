package task

import (
	"fmt"
	"slices"
	"time"

	"github.com/mediagate/mediagate"
)

// State is a snapshot of a task: its row, its attempts, their polling, and its wait
// for a slot. All times are by the database's clock; a zero time means "not yet". As in
// [mediagate.Task], what has a name in JSON is in the document of the task's row.
type State struct {
	mediagate.Task

	FailRequestedAt time.Time            `json:"-"` // an operator's fail
	Inputs          mediagate.InputCheck `json:"inputs,omitzero"`
	Refusals        int                  `json:"refusals,omitempty"` // attempts in a row that a vendor refused for now

	// While it waits for a slot.
	QueuedFor []string `json:"-"` // the channels of which any may grant one
	Granted   bool     `json:"-"` // one of them holds a slot for it: only its poller grants, and takes back

	// SourceTasks are the sources as they are, by id, while the task needs them: without
	// what they were asked for. One that is missing is erased.
	SourceTasks map[string]mediagate.Task `json:"-"`

	RestoredAt time.Time `json:"-"` // when it was noted that its database had been restored
	// TailLost says that attempts after the last one may be missing, since the database
	// was restored. Nothing is sent meanwhile (D17).
	TailLost bool `json:"-"`

	// Unreadable says that a document of the rows cannot be decoded. The task then
	// only parks and ends: by cancel, fail, or the end of the parking.
	Unreadable bool `json:"-"`

	// Attempts in the order of their numbers. Storage loads only the last one and those
	// that events name.
	Attempts []Attempt `json:"-"`
}

// Attempt is one submission of a task to one channel. What has a name in JSON is in the
// document of its row; the rest are columns, and its polling.
type Attempt struct {
	Sending                          // its identity, with its last sending
	TaskID    string                 `json:"-"`
	CreatedAt time.Time              `json:"-"`
	State     mediagate.AttemptState `json:"-"`

	// While the answer is lost. Lookups counts those that told nothing, since the attempt
	// became unknown or since a retry. LookedAt is when the search of our bucket for its
	// files last ended, or was given up (D6). The second lookup that finds no job proves
	// that there is none; a refusal of a repeated sending counts from then on (D4).
	SenderLost    bool               `json:"sender_lost,omitempty"` // its sender did not report, and may be in its call
	Lookups       int                `json:"lookups,omitempty"`
	LookedAt      time.Time          `json:"looked_at,omitzero"`
	AbsentAt      time.Time          `json:"absent_at,omitzero"`       // the first lookup that found no job
	AbsentAgainAt time.Time          `json:"absent_again_at,omitzero"` // the second one
	Refusal       *mediagate.Failure `json:"refusal,omitempty"`

	// Of a rejected attempt. Elsewhere says that another channel, which has not refused the
	// task, takes jobs, or that another route is left where the vendor has no such model.
	Failure   *mediagate.Failure `json:"failure,omitempty"`
	Elsewhere bool               `json:"elsewhere,omitempty"`

	// Once the vendor has the job. Of a job that an operator has given up, what comes is
	// only recorded (D9).
	Ref        mediagate.JobRef     `json:"ref,omitzero"`
	AcceptedAt time.Time            `json:"-"`
	Await      *Await               `json:"-"`                    // while its channel polls for it
	Trouble    mediagate.ParkReason `json:"trouble,omitempty"`    // why the channel does not poll for it (D11)
	StopTried  bool                 `json:"stop_tried,omitempty"` // the vendor was asked to stop the job
	GivenUpAt  time.Time            `json:"-"`

	// How the job ended. The first outcome counts (D9). Results are those of copied files:
	// nil until they are copied, empty where there are none. Unusable says why its files
	// cannot be used, however often they are copied.
	Outcome  *mediagate.Outcome `json:"outcome,omitempty"`
	Results  []mediagate.Result `json:"results"`
	Unusable *mediagate.Failure `json:"unusable,omitempty"`
	Error    string             `json:"error,omitempty"` // for operators

	// The slot of its channel is taken until EndedAt, or until SlotUntil where it is not
	// known whether the job runs.
	EndedAt   time.Time `json:"-"`
	SlotUntil time.Time `json:"-"` // zero: until the attempt is closed
}

// Mirrored reports that what the attempt made is in the bucket, which may be no file at all.
func (a Attempt) Mirrored() bool { return a.Results != nil }

// Await is the polling for an accepted attempt.
type Await struct {
	NextPollAt time.Time
	Claim      string    // token of the poller that asks at this moment (D8)
	ClaimedAt  time.Time // when it claimed the row: it asks after that
	Again      bool      // a poll was requested since it asks: the next one is due at once (D8)
}

// Last is the newest attempt; nil when there is none.
func (s *State) Last() *Attempt {
	if len(s.Attempts) == 0 {
		return nil
	}
	return &s.Attempts[len(s.Attempts)-1]
}

// Attempt is attempt n; nil when it is not there.
func (s *State) Attempt(n int) *Attempt {
	at := slices.IndexFunc(s.Attempts, func(a Attempt) bool { return a.N == n })
	if at < 0 {
		return nil
	}
	return &s.Attempts[at]
}

// lastN is the number of the newest attempt; 0 when there is none.
func (s *State) lastN() int {
	if a := s.Last(); a != nil {
		return a.N
	}
	return 0
}

func (s *State) late(now time.Time) bool { return !now.Before(s.WaitsUntil(now)) }

// NextExternalID returns our id at the vendor for the attempt after the last one: the
// task's id, with the attempt's number from the second on. After an attempt that was
// sent more than once and then refused, the id is kept, and the attempt must stay at
// its channel: the refusal proves nothing of the first sending, and only the same id
// keeps the vendor from making its job twice (D4).
func (s *State) NextExternalID() (id string, kept bool) {
	a := s.Last()
	if a != nil && a.State == mediagate.AttemptRejected && s.sentEarlier(a) {
		return a.ExternalID, true
	}
	return Numbered(s.ID, s.lastN()+1), false
}

// sentEarlier reports that the attempt's name was sent before its last sending, so
// that the vendor may have a job by it.
func (s *State) sentEarlier(a *Attempt) bool {
	return a.Sends > 1 || a.ExternalID != Numbered(s.ID, a.N)
}

// Numbered is our id at the vendor for attempt n.
func Numbered(taskID string, n int) string {
	if n == 1 {
		return taskID
	}
	return fmt.Sprintf("%s-%d", taskID, n)
}

// outcome is how the attempt's job ended, where that counts for the task; nil
// otherwise.
func (a *Attempt) outcome() *mediagate.Outcome {
	if !a.GivenUpAt.IsZero() {
		return nil
	}
	return a.Outcome
}

// awaitsReport reports that it is not known whether the vendor has the job.
func (a *Attempt) awaitsReport() bool {
	return a.State == mediagate.AttemptIntent || a.State == mediagate.AttemptUnknown
}

// succeeded reports that the vendor has made what was asked for.
func (a *Attempt) succeeded() bool { o := a.outcome(); return o != nil && o.Succeeded }

// findable reports that the vendor can be asked for the job by our id. For an attempt
// that was put back all channels are asked that can be (D17).
func (a *Attempt) findable() bool { return a.Route.Find || a.unidentified() }
