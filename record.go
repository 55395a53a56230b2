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
	TaskID      string
	AccountID   string
	Round       int
	TraceParent string // of the task
}

// WakeKind is what a wake is of: the task's run, or a round of its callback.
type WakeKind string

// The kinds of wakes.
const (
	WakeRun   WakeKind = "run"
	WakeRound WakeKind = "round"
)

// Wake is the time by which a task's run must have asked for its next step, or a round
// must have recorded an attempt (D2).
type Wake struct {
	TaskID      string
	AccountID   string
	Kind        WakeKind
	Round       int       // of WakeRound: the newest
	TraceParent string    // of the task
	At          time.Time // by the database's clock
	Tries       int       // since it was set
	Asked       bool      // a run of the task has asked before
}

// Parked selects tasks that are parked for one of the reasons: all, those whose last
// attempt was at the channel, or those with a route to the provider.
type Parked struct {
	Reasons  []ParkReason
	Channel  string
	Provider string
}
