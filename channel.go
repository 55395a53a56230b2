package mediagate

import (
	"time"
)

// ChannelState is what all processes know about a channel: whether an operator and its vendor let
// it take new jobs. Its breaker is open while the vendor is away or refuses our account. Then, at
// ProbeAt at the earliest, one job at a time is let through as a probe.
type ChannelState struct {
	Name           string
	Enabled        bool
	DisabledReason string     // the operator's reason, if one was given
	Open           bool       // the breaker is open
	Reason         ParkReason // why the breaker opened
	ChangedAt      time.Time  // when the breaker opened or closed, or an operator reset it
	Trips          int        // how often the breaker has opened since it was last closed
	ProbeAt        time.Time  // when the next job may be a probe
	ProbeUntil     time.Time  // when the current probe ends at the latest
	LastError      string     // kind of the last failed call
	LastErrorAt    time.Time
	LastSeenAt     time.Time // when a worker last served the channel

	// Retired are the vendor's names of models that it said it no longer has. Until the time
	// given no job goes to their routes.
	Retired map[string]time.Time
}

// HasRetired reports whether the vendor said lately that it no longer has the model. upstream is
// the vendor's name for the model.
func (s ChannelState) HasRetired(upstream string, now time.Time) bool {
	return now.Before(s.Retired[upstream])
}

// TakesJobs reports whether a new job may go to the channel. While the breaker is open only a due
// probe may.
func (s ChannelState) TakesJobs(now time.Time) bool {
	return s.Enabled && (!s.Open || s.ProbeDue(now))
}

// ProbeDue reports whether the next job may probe whether the vendor is back.
func (s ChannelState) ProbeDue(now time.Time) bool {
	return s.Open && !now.Before(s.ProbeAt) && !now.Before(s.ProbeUntil)
}

// Trip is a reason to open a channel's breaker.
type Trip struct {
	Channel string
	Reason  ParkReason
	Began   time.Time     // when the failed call began; calls from before the breaker's last change do not count
	OpenFor time.Duration // until a probe is due
}

// ChannelCalls counts calls of one process for a channel that are not stored yet.
type ChannelCalls struct {
	Channel     string
	Minute      time.Time // the minute in which the submits ended
	Submits     int
	Failures    int    // submits that failed because of the vendor or our account
	LastError   string // of any call; empty: none
	LastErrorAt time.Time
}

// Slots bound the jobs that run at a vendor account at once. A job has its slot from the intent
// to submit it until it has ended, even if its task has not waited for that.
type Slots struct {
	// Names are the channel's name and its earlier names, whose jobs are on the same account.
	Names []string
	Limit int // 0: no limit
}

// SlotsLost is how long a job keeps its slot if it is not known whether it runs, as a multiple of
// its model's expected time.
const SlotsLost = 3

// Queued is a task that waits for a slot for its attempt n.
type Queued struct {
	TaskID string
	N      int
}

// Granting is a poller's request for slots for the tasks that are queued at its channel.
type Granting struct {
	Channel  string // the channel at which the tasks are queued
	Epoch    int64  // the poller's epoch
	Slots    Slots
	Most     int           // grants at once
	TakeBack time.Duration // after which an unused grant is taken back
}

// Granted is the result of a Granting.
type Granted struct {
	Tasks    []string // tasks that this call gave a slot
	InFlight int      // taken slots, including these grants
	Waiting  int      // tasks that are still queued
}
