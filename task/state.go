package task

import (
	"fmt"
	"slices"
	"time"

	"github.com/mediagate/mediagate"
)

// State is a snapshot of a task: its row, its attempts, their polling, and its wait
// for a slot. All times are by the database's clock; a zero time means "not yet".
type State struct {
	ID    string
	Terms Terms

	Status            mediagate.Status
	Progress          int   // 0 to 100; 100 exactly when completed
	Version           int64 // +1 at each change that a client can see
	StartedAt         time.Time
	EndedAt           time.Time
	DeadlineAt        time.Time // end of waiting for the vendor; the time of a wait is added when the wait is over
	CancelRequestedAt time.Time // a promise: the task does not complete any more
	FailRequestedAt   time.Time // an operator's fail

	Wait      mediagate.Wait
	QueuedFor []string // while it waits for a slot: the channels of which any may grant one
	Granted   bool     // one of them holds a slot for it: only its poller grants, and takes back
	Refusals  int      // attempts in a row that a vendor refused for now
	RerouteTo string   // the channel that an operator chose for the next attempt; empty: any

	Modal  mediagate.Modal      // the zero value where no vendor asked for more
	Inputs mediagate.InputCheck // how far the client's files are checked

	// Attempts in the order of their numbers. Storage loads only the last one and those
	// that events name.
	Attempts []Attempt

	Failure *mediagate.Failure // why it failed
	Results []mediagate.Result // of a completed task
	Made    *mediagate.Made    // beside the files
	Cost    mediagate.Micros   // what was charged

	WebhookRound  int // 0 until the end
	WebhookState  mediagate.WebhookState
	WebhookReason string

	// Erased says that nothing is left of the task to send.
	Erased     bool
	RestoredAt time.Time // when it was noted that its database had been restored
	// TailLost says that attempts after the last one may be missing, since the database
	// was restored. Nothing is sent meanwhile (D17).
	TailLost bool

	// Unreadable says that a JSON column of the rows cannot be decoded. The task then
	// only parks and ends: by cancel, fail, or the end of the parking.
	Unreadable bool
}

// Terms are what was fixed when the task was submitted.
type Terms struct {
	Provider     string // of the first route, which the first attempt goes to
	Expected     time.Duration
	Timeout      time.Duration // from submit, and from a retry, to the end of waiting
	ParkTimeout  time.Duration // a parked task that nobody mends fails then
	ParkRetry    time.Duration // a parked step is tried again so often
	QueueTimeout time.Duration // a task that no channel has a slot for fails then
	ModalTimeout time.Duration // how long it waits for modal parameters; 0: it takes none
	AbsentGap    time.Duration // between the two lookups that prove absence (D4)
	OnUnknown    string        // mediagate.OnUnknownFail or OnUnknownPark (D6)
	CheckInputs  bool          // the client's files are checked before the first attempt
	Charges      []mediagate.Charge
	Hold         mediagate.Micros
	Uploads      map[string]string // object keys of media that came within the request, by field
}

// Attempt is one submission to one channel.
type Attempt struct {
	N           int
	Channel     string
	Provider    string
	Fingerprint string
	Route       mediagate.Route
	CanStop     bool   // the vendor can stop a job
	ExternalID  string // our id at the vendor

	State      mediagate.AttemptState
	SendBefore time.Time // the first byte of the call is written before this (D4)
	CallEnds   time.Time // nothing of the call is under way from then on
	Sends      int       // how often the intent was stored
	Ref        mediagate.JobRef
	CreatedAt  time.Time
	AcceptedAt time.Time
	EndedAt    time.Time // unset while the job has a slot
	SlotUntil  time.Time // the slot of a job that may still run is freed then; zero: when the attempt is closed

	SenderLost    bool               // of an unknown attempt: its sender did not report, and may be in its call
	Lookups       int                // lookups that told nothing, since it became unknown or since a retry
	LookedAt      time.Time          // when the search of our bucket for its files last ended, or was given up (D6)
	AbsentAt      time.Time          // the first lookup that found no job
	AbsentAgainAt time.Time          // the second one: it is proven that there is none (D4)
	Refusal       *mediagate.Failure // of a repeated sending: counts once two lookups found no job (D4)
	Failure       *mediagate.Failure // of a rejected attempt
	Elsewhere     bool               // of a rejected attempt: another channel, which has not refused the task, takes jobs

	GivenUpAt   time.Time            // when an operator gave it up: what comes of its job is only recorded (D9)
	Outcome     *mediagate.Outcome   // how its job ended; the first one counts (D9)
	Trouble     mediagate.ParkReason // why the channel does not poll for it (D11)
	StopTried   bool                 // the vendor was asked to stop the job
	Results     []mediagate.Result   // of copied files; nil until they are, empty where there are none
	Unusable    *mediagate.Failure   // why its files cannot be used, however often they are copied
	Await       *Await               // while its channel polls for it
	Error       string               // for operators
}

// Await is the polling for an accepted attempt.
type Await struct {
	NextPollAt time.Time
	Claim      string    // token of the poller that asks at this moment (D8)
	ClaimedAt  time.Time // when it claimed the row: it asks after that
	Again      bool   // a poll was requested since it asks: the next one is due at once (D8)
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

// WaitsUntil is the deadline as it stands now: moved by the time of the wait so far
// (D10).
func (s *State) WaitsUntil(now time.Time) time.Time { return s.Wait.Moves(s.DeadlineAt, now) }

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

// succeeded reports that the vendor has made what was asked for.
func (a *Attempt) succeeded() bool { o := a.outcome(); return o != nil && o.Succeeded }

// findable reports that the vendor can be asked for the job by our id. For an attempt
// that was put back all channels are asked that can be (D17).
func (a *Attempt) findable() bool { return a.Route.Find || a.unidentified() }

// slotEnd returns when to free the slot of a job of which it is not known, from now on,
// whether it runs (D7).
func (s *State) slotEnd(now time.Time) time.Time {
	return now.Add(mediagate.SlotsLost * s.Terms.Expected)
}
