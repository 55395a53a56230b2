package mediagate

import (
	"context"
	"encoding/json"
	"time"
)

// NewTask is what a submit stores in one transaction: the task, its hold, the
// idempotency record when the client sent a key, and that of its waiter.
type NewTask struct {
	Task           Task
	IdempotencyKey string
	Path           string
	BodySHA256     [32]byte
	Group          string // under whose terms it was submitted
	Capacity       int    // tasks that the group may have in flight; 0: no limit
	// Waiter waits for the task's answer; nil for a request that cannot be adopted.
	Waiter *Waiter
}

// Waiter is a request that waits for the answer of its task. Where its client does not
// get the answer, the next request that is the same adopts the task.
type Waiter struct {
	ID      string        // of the request
	Request [32]byte      // the hash of what makes two requests the same: key, path, and body
	Wait    time.Duration // after which the answer has been given, unless the process has died
	// TaskID is the only task that the waiter may adopt, as its idempotency key names it;
	// empty for any.
	TaskID string
	// Key is the waiter's idempotency key, which names the task that it adopts from then on;
	// empty for none. Path and BodySHA256 are those of its record.
	Key        string
	Path       string
	BodySHA256 [32]byte
}

// AdoptionTTL is how long a task may be adopted whose answer nobody got.
const AdoptionTTL = 10 * time.Minute

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
	Exact     bool // the URL itself is called, without /callback
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

// TaskJob is a command for all tasks that a filter selects. It is the input of a
// workflow, so it stays in a history: it holds what an operator wrote, and no more of a
// client's than the reference that the operator filters by.
type TaskJob struct {
	ID      string     `json:"id"`
	Filter  TaskFilter `json:"filter"` // of tasks that were there when the job began
	Action  string     `json:"action"` // one of the Action constants
	Channel string     `json:"channel,omitempty"`
	Reason  string     `json:"reason"`
	By      string     `json:"by"`
	// PerSecond is how many tasks are given the command a second, at most.
	PerSecond int `json:"per_second"`
	Matched   int `json:"matched"` // when the job began
}

// TaskJobStatus is how far a job for many tasks has come.
type TaskJobStatus struct {
	State TaskJobState
	Count *TaskJobCount // nil where Temporal does not say
}

// TaskJobCount counts the tasks that a job has come to.
type TaskJobCount struct {
	Done    int `json:"done"`    // were given the command
	Skipped int `json:"skipped"` // to which it does not apply, or that are gone
	Failed  int `json:"failed"`  // met errors, however often they were tried
}

// TaskJobState is what Temporal says of a job.
type TaskJobState string

// The states of a job. TaskJobStopped is one that was cancelled, was terminated or failed.
const (
	TaskJobRunning TaskJobState = "running"
	TaskJobDone    TaskJobState = "done"
	TaskJobStopped TaskJobState = "stopped"
)

// ActionID is the id under which the job's command for a task is on record. So a task is
// given it once, however often the job comes by.
func (j TaskJob) ActionID(taskID string) string { return "act_" + j.ID + "/" + taskID }

// Figures are the counts of what is under way, for metrics: what has ended is in none
// of them, so that their cost goes by what is open. Times are by the database's clock.
type Figures struct {
	At       time.Time
	Open     []OpenTasks
	Stuck    map[string]int // tasks by reason: a ParkReason, or ReasonRunOverdue
	Wakes    []WakeFigures
	Channels []ChannelFigures

	Abandoned Abandoned // of all accounts
	Unpaid    int       // accounts that have more unpaid than they may
	Endpoints EndpointFigures
}

// EndpointFigures are the events that endpoints are still to be told of.
type EndpointFigures struct {
	Pending int
	DueAt   time.Time // when the attempt is due that is due first; zero: none follows
}

// StuckReasons are the reasons for which a task can be stuck.
func StuckReasons() []string {
	return []string{
		string(ParkProviderAway), string(ParkCredentials), string(ParkFunds), string(ParkSubmissionUnknown), string(ParkChannelMissing),
		string(ParkJobLost), string(ParkResult), string(ParkStorage), string(ParkInternal), ReasonRunOverdue,
	}
}

// WaitStep says what an open task waits for, as far as its rows tell at a glance.
type WaitStep string

// What tasks wait for.
const (
	WaitSource WaitStep = "source" // the end of another task, whose file they use
	WaitStart  WaitStep = "start"  // their first attempt, or the next one
	WaitSubmit WaitStep = "submit" // the answer to a call that makes a job
	WaitLookup WaitStep = "lookup" // what became of such a call
	WaitVendor WaitStep = "vendor" // the end of the job
	WaitModal  WaitStep = "modal"  // the client
	WaitQueue  WaitStep = "queue"  // a vendor's slot
	WaitEnd    WaitStep = "end"    // the copy of the files, and the end
	WaitParked WaitStep = "parked" // better times, or an operator
)

// WaitSteps lists them.
func WaitSteps() []WaitStep {
	return []WaitStep{WaitSource, WaitStart, WaitSubmit, WaitLookup, WaitVendor, WaitModal, WaitQueue, WaitEnd, WaitParked}
}

// OpenTasks are the open tasks of a type and status that wait for the same thing.
type OpenTasks struct {
	Type   Type
	Status Status
	Step   WaitStep
	Count  int
	Since  time.Time // when the wait of the oldest began
}

// WakeFigures are the wakes of a kind.
type WakeFigures struct {
	Kind    WakeKind
	Count   int
	Due     int       // past their time
	Tried   int       // that the scan has tried in vain
	Overdue time.Time // the time of the one that is due longest; zero: none is due
}

// ChannelFigures are the rows under the name of a channel.
type ChannelFigures struct {
	Channel string
	Jobs    int       // that have a slot: they run or may run, or hold a grant
	Queued  int       // tasks that wait for a slot
	Awaited int       // jobs that are polled for
	DueAt   time.Time // when the poll was due that is due longest; zero: no job is polled for
}

// Actor is who makes a change that is looked up later.
type Actor struct {
	By        string // the name of an operator, or the id of a key
	Address   string // the client's; empty where it cannot be known
	RequestID string
	Reason    string // why it makes the change, where it says so: noted beside what changed
}

type actorKey struct{}

// WithActor says who makes the changes that are asked for with the context. It
// decides nothing: who may make them is decided before, and the store only notes
// it beside the change. Without an actor the gateway itself is at work, and
// nothing is noted.
func WithActor(ctx context.Context, a Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, a)
}

// ActorOf is the actor of the context, if there is one.
func ActorOf(ctx context.Context) (Actor, bool) {
	a, ok := ctx.Value(actorKey{}).(Actor)
	return a, ok
}

// AuditAction is what was done.
type AuditAction string

// What is noted in the audit.
const (
	AuditCreateAccount       AuditAction = "create_account"
	AuditChangeAccount       AuditAction = "change_account"
	AuditGrant               AuditAction = "grant"
	AuditCreateKey           AuditAction = "create_key"
	AuditChangeKey           AuditAction = "change_key"
	AuditRotateKey           AuditAction = "rotate_key"
	AuditDeleteKey           AuditAction = "delete_key"
	AuditRotateWebhookSecret AuditAction = "rotate_webhook_secret" //nolint:gosec // the name of a deed, and no secret
	AuditCreateEndpoint      AuditAction = "create_endpoint"
	AuditChangeEndpoint      AuditAction = "change_endpoint"
	AuditDeleteEndpoint      AuditAction = "delete_endpoint"
	AuditChangeChannel       AuditAction = "change_channel"
	AuditTaskAction          AuditAction = "task_action"
	AuditReadPrompt          AuditAction = "read_prompt"
	AuditTaskJob             AuditAction = "task_job"
	AuditRecover             AuditAction = "recover"
)

// AuditFilter selects entries of the audit. Empty fields select all.
type AuditFilter struct {
	AccountID string
	By        string // the name of an operator, or the id of a key
	Action    AuditAction
	Object    string
	From, To  time.Time // from From on and before To
	After     string    // the id of an entry: only older ones
	Limit     int
}

// AuditActions are all of them.
func AuditActions() []AuditAction {
	return []AuditAction{
		AuditCreateAccount, AuditChangeAccount, AuditGrant, AuditCreateKey, AuditChangeKey, AuditRotateKey, AuditDeleteKey,
		AuditRotateWebhookSecret, AuditChangeChannel, AuditTaskAction, AuditReadPrompt, AuditTaskJob, AuditRecover,
	}
}

// AuditEntry is a change that was made: who did what when. It holds no secret.
type AuditEntry struct {
	ID        string
	At        time.Time
	Actor     Actor
	Action    AuditAction
	Object    string          // the id of what was changed, or a channel's name
	AccountID string          // whose it is; empty for channels
	Before    json.RawMessage // the fields that changed, as they were; nil for what was not there
	After     json.RawMessage // the same, as they became; nil for what is there no more
}

// Retention is how long things are kept after their end; 0 is for ever.
type Retention struct {
	Tasks      time.Duration
	Results    time.Duration // the files of completed tasks
	Deliveries time.Duration
}

// FilesUntil is until when the files of a completed task are kept; zero for ever.
func (r Retention) FilesUntil(t *Task) time.Time {
	if r.Results == 0 || t.Plan.KeepForever || t.EndedAt.IsZero() {
		return time.Time{}
	}
	return t.EndedAt.Add(r.Results)
}

// Removal is a kind of things that are removed in time.
type Removal string

// The kinds: rows of the database, then objects of the bucket.
const (
	RemoveDeliveries Removal = "deliveries"
	// RemoveEndpointDeliveries is of events that endpoints were told of.
	RemoveEndpointDeliveries Removal = "endpoint_deliveries"

	RemoveIdempotency Removal = "idempotency"
	RemoveResults     Removal = "results" // the row names its files no more
	RemoveTasks       Removal = "tasks"
	RemoveSpeeches    Removal = "speeches"
	RemoveAudit       Removal = "audit"
	RemoveSessions    Removal = "sessions" // of the console

	RemoveFiles      Removal = "files"      // that clients uploaded
	RemoveUploads    Removal = "uploads"    // media that came within requests
	RemoveUnfinished Removal = "unfinished" // multipart uploads that nobody ended
	RemoveObjects    Removal = "objects"    // files of tasks that no row names

	// RemovalRun stands for a whole run through all kinds.
	RemovalRun Removal = "run"
)

// Removals lists the kinds in the order in which a run goes through them.
func Removals() []Removal {
	return []Removal{
		RemoveDeliveries, RemoveEndpointDeliveries, RemoveIdempotency, RemoveResults, RemoveTasks, RemoveSpeeches, RemoveAudit, RemoveSessions,
		RemoveFiles, RemoveUploads, RemoveUnfinished, RemoveObjects,
	}
}

// RemovalState is how far retention is with a kind.
type RemovalState struct {
	Mark    string    // up to which id or key nothing is left to remove
	Removed int64     // ever
	EndedAt time.Time // of the last time that it came to the end
}

// RemovedSlice is what one slice of a kind came to.
type RemovedSlice struct {
	Removed int    `json:"removed"`
	Next    string `json:"next,omitempty"` // where the next slice begins: an id, or a key of the bucket
	More    bool   `json:"more,omitempty"` // there is one
}

// Doubted is a task of which a person has to decide after a restore: its row may lack
// attempts, or a run of it is all that is left (D17).
type Doubted struct {
	TaskID    string
	AccountID string
	KeyID     string
	Model     string
	Hold      Micros
	State     string     // the task's status; of a run without a row, the run's
	Reason    ParkReason // why it is parked
	At        time.Time  // of the submit, or of the start of the run
}
