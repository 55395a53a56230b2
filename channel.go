package mediagate

import (
	"time"
)

// ChannelState is what all processes know of a channel: whether an operator
// lets it take new jobs, and whether its vendor does. Its breaker is open while
// the vendor is away, or refuses our account; then one job at a time is let
// through, at ProbeAt at the earliest, to find out.
type ChannelState struct {
	Name           string
	Enabled        bool
	DisabledReason string     // why an operator disabled it, if one said so
	Open           bool       // the breaker
	Reason         ParkReason // why it opened
	ChangedAt      time.Time  // when it opened or closed, or an operator reset it
	Trips          int        // how often it has opened since it was closed
	ProbeAt        time.Time  // the next job may find out then
	ProbeUntil     time.Time  // until when at the latest one is finding out
	LastError      string     // of a call, by its kind
	LastErrorAt    time.Time
	LastSeenAt     time.Time // when a worker last had the channel

	// Retired are the vendor's names of models that it said it no longer has. Until the time
	// given no job goes to their routes.
	Retired map[string]time.Time
}

// HasRetired reports whether the vendor said lately that it no longer has the model, which
// goes by the vendor's name for it.
func (s ChannelState) HasRetired(upstream string, now time.Time) bool {
	return now.Before(s.Retired[upstream])
}

// TakesJobs reports whether a new job may go to the channel. While the breaker
// is open that is so for one job, once its time has come.
func (s ChannelState) TakesJobs(now time.Time) bool {
	return s.Enabled && (!s.Open || s.ProbeDue(now))
}

// ProbeDue reports that the next job may find out whether the vendor is back.
func (s ChannelState) ProbeDue(now time.Time) bool {
	return s.Open && !now.Before(s.ProbeAt) && !now.Before(s.ProbeUntil)
}

// Trip is a reason to take a channel out.
type Trip struct {
	Channel string
	Reason  ParkReason
	Began   time.Time     // of the call that says so: what came before the breaker last changed is old news
	OpenFor time.Duration // until a job may find out
}

// ChannelCalls are calls of one process for a channel that are not counted yet.
type ChannelCalls struct {
	Channel     string
	Minute      time.Time // in which the submits ended
	Submits     int
	Failures    int    // of the submits, by the vendor's or the account's fault
	LastError   string // of any call; empty: none
	LastErrorAt time.Time
}

// Slots are the jobs that a vendor account takes at once. A job has its slot
// from the intent to submit it until it has ended, also when its task has not
// waited for that.
type Slots struct {
	// Names are the channel's, and then those that it had: their jobs are of
	// the same account.
	Names []string
	Limit int // 0: no limit
}

// SlotsLost is how long a job has its slot of which nobody can tell whether it
// runs, in units of what its model is expected to take.
const SlotsLost = 3

// Queued is a task that waits for a slot for its attempt n.
type Queued struct {
	TaskID string
	N      int
}

// Granting is what a channel's poller asks for: slots for the tasks that are
// queued under a name.
type Granting struct {
	Channel  string // under which the tasks are queued
	Epoch    int64  // of its polling
	Slots    Slots
	Most     int           // grants at once
	TakeBack time.Duration // a grant that nobody used so long is taken back
}

// Granted is what came of it.
type Granted struct {
	Tasks    []string // that have a slot by this call
	InFlight int      // slots that are taken, those grants among them
	Waiting  int      // tasks that are queued still
}
