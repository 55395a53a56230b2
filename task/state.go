package task

import (
	"fmt"
	"slices"
	"time"

	"github.com/mediagate/mediagate"
)

// State is a snapshot of a task: its row, its attempts, their polling, and its wait for a slot.
// Every decision depends on the state and the current time alone.
//
// All times are by the database's clock, and a zero time means "not yet". As in [mediagate.Task],
// fields with a JSON name are in the document of the task's row; fields with the tag "-" are
// columns, or rows of other tables.
type State struct {
	mediagate.Task

	FailRequestedAt time.Time            `json:"-"` // when an operator ordered the task to fail
	Inputs          mediagate.InputCheck `json:"inputs,omitzero"`
	Refusals        int                  `json:"refusals,omitempty"` // how many attempts in a row were refused for the moment

	// The next two are set while the task waits for a slot (D7).
	QueuedFor []string `json:"-"` // the channels that may grant one
	// Granted says that a channel holds a slot for the task. The channel's poller sets it, and
	// clears it if the task leaves the grant unused. It is also cleared when the task leaves the
	// queue, or when a step could not use the slot.
	Granted bool `json:"-"`

	// SourceTasks holds the tasks whose files this one uses, by id, while it still needs them.
	// Only their status, their files, and the times of their end and erasure are loaded. A source
	// that is missing here was erased (D21).
	SourceTasks map[string]mediagate.Task `json:"-"`

	RestoredAt time.Time `json:"-"` // when the row was marked as one of a restored database
	// TailLost says that the database was restored, and that attempts after the last one may be
	// missing. While it is set, nothing is sent for the task (D17).
	TailLost bool `json:"-"`

	// Unreadable says that a JSON document in the rows of the task or of its attempts cannot be
	// decoded. Such a task only parks and ends: by a cancel, by a fail, or at the end of its
	// parking.
	Unreadable bool `json:"-"`

	// Attempts are in the order of their numbers. Storage loads only the last one, and those that
	// events name.
	Attempts []Attempt `json:"-"`
}

// Attempt is one submission of a task to one channel. Fields with a JSON name are in the document
// of the attempt's row; the others are columns of that row, except for Await, which is a row of
// its own.
type Attempt struct {
	Sending                          // identifies the attempt and its last sending
	TaskID    string                 `json:"-"`
	CreatedAt time.Time              `json:"-"`
	State     mediagate.AttemptState `json:"-"`

	// These fields are about a lost answer (D4, D6). Lookups counts the lookups without a result
	// since the attempt became unknown, or since an operator's retry. LookedAt is when the search
	// of our bucket last ended, or was abandoned. AbsentAt and AbsentAgainAt are the times of the
	// two lookups that found no job: together they prove that the vendor has none. If the vendor
	// refused a repeated sending, Refusal keeps that refusal until the proof is complete, since the
	// vendor may only mean that the name is taken.
	SenderLost    bool               `json:"sender_lost,omitempty"` // its sender did not report, and may be in its call
	Lookups       int                `json:"lookups,omitempty"`
	LookedAt      time.Time          `json:"looked_at,omitzero"`
	AbsentAt      time.Time          `json:"absent_at,omitzero"`       // the first lookup that found no job
	AbsentAgainAt time.Time          `json:"absent_again_at,omitzero"` // the second one
	Refusal       *mediagate.Failure `json:"refusal,omitempty"`

	// These fields are about a rejected attempt. Elsewhere says that the next attempt need not
	// wait, because another channel takes jobs and has not refused the task yet. If the vendor has
	// no such model, Elsewhere says that another route is left.
	Failure   *mediagate.Failure `json:"failure,omitempty"`
	Elsewhere bool               `json:"elsewhere,omitempty"`

	// These fields are set once the vendor has the job. GivenUpAt is when an operator gave the
	// attempt up: from then on, what comes of its job is only recorded (D9).
	Ref        mediagate.JobRef     `json:"ref,omitzero"`
	AcceptedAt time.Time            `json:"-"`
	Await      *Await               `json:"-"`                    // set while its channel polls for the job
	Trouble    mediagate.ParkReason `json:"trouble,omitempty"`    // why the channel has stopped polling for it (D11)
	StopTried  bool                 `json:"stop_tried,omitempty"` // the vendor was asked to stop the job
	GivenUpAt  time.Time            `json:"-"`

	// These fields say how the job ended. The first outcome counts (D9). Results are the copied
	// files: nil until they are copied, and empty if the job made none. Unusable says why the
	// files cannot be used, however often they are copied.
	Outcome  *mediagate.Outcome `json:"outcome,omitempty"`
	Results  []mediagate.Result `json:"results"`
	Unusable *mediagate.Failure `json:"unusable,omitempty"`
	Error    string             `json:"error,omitempty"` // for operators

	// The attempt takes a slot of its channel until EndedAt. If it is not known whether the job
	// still runs, the attempt takes the slot until SlotUntil at the latest.
	EndedAt   time.Time `json:"-"`
	SlotUntil time.Time `json:"-"` // zero: as long as the attempt is open
}

// Mirrored reports whether everything that the attempt made is in the bucket. It may have made no
// file at all.
func (a Attempt) Mirrored() bool { return a.Results != nil }

// Await is the polling for the job of an accepted or abandoned attempt: a row that makes the
// channel's poller ask for the job.
type Await struct {
	NextPollAt time.Time
	Claim      string    // the token of the claim under which a poller is asking; empty if none is (D8)
	ClaimedAt  time.Time // when that poller claimed the row; the poller asks the vendor after that
	Again      bool      // a poll was requested after the claim: the next is due at once (D8)
}

// Last returns the newest attempt, or nil if there is none.
func (s *State) Last() *Attempt {
	if len(s.Attempts) == 0 {
		return nil
	}
	return &s.Attempts[len(s.Attempts)-1]
}

// Attempt returns attempt n, or nil if it is not loaded.
func (s *State) Attempt(n int) *Attempt {
	at := slices.IndexFunc(s.Attempts, func(a Attempt) bool { return a.N == n })
	if at < 0 {
		return nil
	}
	return &s.Attempts[at]
}

// lastN returns the number of the newest attempt, or 0 if there is none.
func (s *State) lastN() int {
	if a := s.Last(); a != nil {
		return a.N
	}
	return 0
}

// isLate reports whether the task's deadline has passed.
func (s *State) isLate(now time.Time) bool { return !now.Before(s.WaitsUntil(now)) }

// NextExternalID returns our id at the vendor for the attempt after the last one. It is the
// task's id; from the second attempt on, the number of the attempt is appended.
//
// kept says that the next attempt gets the same id as the last one, and must go to the same
// channel. This is so if the last attempt was rejected, and an earlier sending had used the same
// id. The refusal answers only the last sending. The earlier one may have made a job, and only the
// same id keeps the vendor from making a second one (D4).
func (s *State) NextExternalID() (id string, kept bool) {
	a := s.Last()
	if a != nil && a.State == mediagate.AttemptRejected && s.sentEarlier(a) {
		return a.ExternalID, true
	}
	return ExternalID(s.ID, s.lastN()+1), false
}

// sentEarlier reports whether a job was sent under the attempt's name before the attempt's last
// sending. The vendor may then have a job under that name.
func (s *State) sentEarlier(a *Attempt) bool {
	return a.Sends > 1 || a.ExternalID != ExternalID(s.ID, a.N)
}

// ExternalID returns our id at the vendor for attempt n of a task: task_1, then task_1-2.
func ExternalID(taskID string, n int) string {
	if n == 1 {
		return taskID
	}
	return fmt.Sprintf("%s-%d", taskID, n)
}

// outcome returns how the attempt's job ended, or nil if it has not ended. It is also nil if an
// operator gave the attempt up, since the outcome does not count for the task then.
func (a *Attempt) outcome() *mediagate.Outcome {
	if !a.GivenUpAt.IsZero() {
		return nil
	}
	return a.Outcome
}

// awaitsReport reports whether it is not known yet if the vendor has the job: the attempt is an
// intent or unknown.
func (a *Attempt) awaitsReport() bool {
	return a.State == mediagate.AttemptIntent || a.State == mediagate.AttemptUnknown
}

// succeeded reports whether the vendor has made what was asked for.
func (a *Attempt) succeeded() bool { o := a.outcome(); return o != nil && o.Succeeded }

// findable reports whether the vendor can be asked for the job by our id. If the row knows only the
// attempt's number and name, every channel that can be asked is asked (D17).
func (a *Attempt) findable() bool { return a.Route.Find || a.unidentified() }
