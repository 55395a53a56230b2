package mediagate

import "time"

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
