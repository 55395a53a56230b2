package mediagate

import "time"

// NewTask is what a submit stores in one transaction: the task, its hold, and
// the idempotency record when the client sent a key.
type NewTask struct {
	Task           Task
	IdempotencyKey string
	Path           string
	BodySHA256     [32]byte
	Group          string // under whose terms it was submitted
	Capacity       int    // tasks that the group may have in flight; 0: no limit
}

// PollResult is what one poll of an awaited attempt found. Outcome or Trouble
// end the waiting; otherwise NextPollAt says when to ask again.
type PollResult struct {
	TaskID     string
	N          int
	Progress   int
	NextPollAt time.Time
	Answered   bool // the vendor told the job's state
	Missing    int  // consecutive answers that told nothing: "not found", "not you"
	Outcome    *Outcome
	Trouble    ParkReason
	Waiting    bool // the vendor wants modal parameters before it goes on
}

// AccountProof says that two fingerprints are of one vendor account: a job that
// the first had made was found with the second.
type AccountProof struct {
	Made    string
	Found   string
	Channel string // with which it was found
	TaskID  string
	N       int
}

// Settlement is the end of a task. Cost is 0 unless completed.
type Settlement struct {
	TaskID         string
	AccountID      string // whose task it is, hence whose money moves
	N              int    // the attempt that it rests on; 0 when there is none
	Status         Status
	Failure        *Failure
	Cost           Micros
	Results        []Result
	Made           *Made
	EndedAt        time.Time
	WebhookBody    []byte // nil when nothing is to be sent
	WithoutInputs  []byte // WebhookBody of an account whose inputs are erased
	WithoutOutcome bool   // given up for want of the attempt's outcome: one that is on record prevents it
	// UnlessOvertaken is of an end that the task's run has not decided on: an operator's
	// fail that is on record prevents it, taken or not, and so does a later attempt.
	UnlessOvertaken bool
	// RunUntold is of one that the run does not know of: the signal that is outstanding
	// for its attempt stays.
	RunUntold bool
}

// Sweep is a look for files of an ended task that it does not show. Again is when
// another has to follow, as a copy may still be under way; zero for none.
type Sweep struct {
	TaskID string
	DueAt  time.Time
	Again  time.Time
}

// WebhookTarget is what a delivery round sends, and where.
type WebhookTarget struct {
	AccountID string
	URL       string
	Body      []byte
	BodyAt    time.Time // when the links in Body were signed
	Secrets   []WebhookSecret
	State     WebhookState
	Round     int // the newest round
}

// WebhookRound names one delivery round of a task.
type WebhookRound struct {
	TaskID    string
	AccountID string
	Round     int
}

// Overdue says when an open task should have ended.
type Overdue struct {
	Grace          time.Duration // on top of all that follows
	ParkTimeout    time.Duration // after parked_at
	UnknownTimeout time.Duration // of a lost submission, after deadline_at
	QueueTimeout   time.Duration // after queued_at
	Again          time.Duration // until the same task is looked at again; the pauses grow
}

// Look is an open task whose run is to be looked for.
type Look struct {
	TaskID     string
	DeadlineAt time.Time // by which the looks are ordered
	CheckedAt  time.Time // when its run was last looked for
}

// Rescue is an overdue task that somebody has to get going.
type Rescue struct {
	TaskID string
	Times  int // including this one
}
