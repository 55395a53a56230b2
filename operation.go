package mediagate

import (
	"context"
	"encoding/json"
	"time"
)

// NewTask is what a submit stores in one transaction: the task, its hold, the idempotency record
// if the client sent a key, and the record of the waiting request.
type NewTask struct {
	Task           Task
	IdempotencyKey string
	Path           string
	BodySHA256     [32]byte
	Group          string // the group whose prices and models apply
	Capacity       int    // tasks that the group may have in flight; 0: no limit
	// Waiter is the request that waits for the task. It is nil if no later request may adopt the task.
	Waiter *Waiter
}

// Waiter is a request that waits for its task. If its client does not get the answer, the next
// equal request adopts the task.
type Waiter struct {
	ID      string        // of the request
	Request [32]byte      // a hash of key, path and body: equal requests have the same
	Wait    time.Duration // after which the request has its answer, unless the process has died
	// TaskID is the only task that the waiter may adopt, because its idempotency key names it already.
	// Empty means any.
	TaskID string
	// Key is the waiter's idempotency key. From the adoption on it names the adopted task. It may be
	// empty. Path and BodySHA256 belong to its record.
	Key        string
	Path       string
	BodySHA256 [32]byte
}

// AdoptionTTL is how long a task whose client did not get the answer may be adopted.
const AdoptionTTL = 10 * time.Minute

// PollResult is the result of one poll of an attempt. Outcome or Trouble end the polling.
// Otherwise NextPollAt is the time of the next poll.
type PollResult struct {
	TaskID     string
	N          int
	Progress   int
	NextPollAt time.Time
	Answered   bool // the vendor reported the job's state
	Missing    int  // consecutive answers without a state, such as 404 or 403
	Outcome    *Outcome
	Trouble    ParkReason
	Waiting    bool // the vendor wants modal parameters before it goes on
}

// Sweep is a search for files of an ended task that the task does not show. Again is when another
// sweep is due, since a copy may still be in progress. It may be zero.
type Sweep struct {
	TaskID string
	DueAt  time.Time
	Again  time.Time
}

// WebhookTarget says what a delivery round sends, and where.
type WebhookTarget struct {
	AccountID string
	URL       string
	Exact     bool // call the URL itself, without /callback
	Body      []byte
	Secrets   []WebhookSecret
	State     WebhookState
	Round     int // the number of the newest round
}

// WebhookRound names one delivery round of a task.
type WebhookRound struct {
	TaskID      string
	AccountID   string
	Round       int
	TraceParent string // of the task
}

// WakeKind says what a wake belongs to: the task's run, or a round of its callback.
type WakeKind string

// The kinds of wakes.
const (
	WakeRun   WakeKind = "run"
	WakeRound WakeKind = "round"
)

// Wake is the time by which a task's run must have asked for its next step, or a callback's round
// must have recorded an attempt (D2).
type Wake struct {
	TaskID      string
	AccountID   string
	Kind        WakeKind
	Round       int       // for WakeRound: the newest round
	TraceParent string    // of the task
	At          time.Time // by the database's clock
	Tries       int       // since the wake was set
	Asked       bool      // a run of the task has asked before
}

// Parked selects tasks that are parked for one of the reasons. Channel narrows them to tasks whose
// last attempt was at the channel, and Provider to tasks with a route to the provider.
type Parked struct {
	Reasons  []ParkReason
	Channel  string
	Provider string
}

// TaskJob is a command for all tasks that a filter selects. It is the input of a workflow and so
// stays in a history. Therefore it holds what an operator wrote, and nothing of a client's except
// the reference that the operator filters by.
type TaskJob struct {
	ID      string     `json:"id"`
	Filter  TaskFilter `json:"filter"` // selects only tasks from before the job began
	Action  string     `json:"action"` // one of the Action constants
	Channel string     `json:"channel,omitempty"`
	Reason  string     `json:"reason"`
	By      string     `json:"by"`
	// PerSecond is the maximum number of tasks a second that get the command.
	PerSecond int `json:"per_second"`
	Matched   int `json:"matched"` // when the job began
}

// TaskJobStatus is the progress of a job for many tasks.
type TaskJobStatus struct {
	State TaskJobState
	Count *TaskJobCount // nil if Temporal does not report it
}

// TaskJobCount counts the tasks that a job has processed.
type TaskJobCount struct {
	Done    int `json:"done"`    // got the command
	Skipped int `json:"skipped"` // to which the command does not apply, or that are gone
	Failed  int `json:"failed"`  // failed after all retries
}

// TaskJobState is the state of a job as Temporal reports it.
type TaskJobState string

// The states of a job. A stopped job was cancelled or terminated, or has failed.
const (
	TaskJobRunning TaskJobState = "running"
	TaskJobDone    TaskJobState = "done"
	TaskJobStopped TaskJobState = "stopped"
)

// ActionID returns the id under which the job's command for a task is recorded. It makes the job
// give the command to each task only once, however often the job comes to the task.
func (j TaskJob) ActionID(taskID string) string { return "act_" + j.ID + "/" + taskID }

// Figures are the counts of open work, for metrics. They do not count what has ended, so their
// cost depends only on what is open. Times are by the database's clock.
type Figures struct {
	At       time.Time
	Open     []OpenTasks
	Stuck    map[string]int // stuck tasks by reason: a ParkReason, or ReasonRunOverdue
	Wakes    []WakeFigures
	Channels []ChannelFigures

	Abandoned Abandoned // for all accounts
	Unpaid    int       // accounts over their limit of unpaid jobs
	Endpoints EndpointFigures
}

// EndpointFigures counts the events that are still to be delivered to endpoints.
type EndpointFigures struct {
	Pending int
	DueAt   time.Time // when the next attempt is due; zero for none
}

// StuckReasons lists the reasons for which a task can be stuck.
func StuckReasons() []string {
	return []string{
		string(ParkProviderAway), string(ParkCredentials), string(ParkFunds), string(ParkSubmissionUnknown),
		string(ParkChannelMissing),
		string(ParkJobLost), string(ParkResult), string(ParkStorage), string(ParkInternal), ReasonRunOverdue,
	}
}

// WaitStep says roughly what an open task waits for, as far as its rows show it without loading
// the task.
type WaitStep string

// What tasks wait for.
const (
	WaitSource WaitStep = "source" // the end of another task whose file the task uses
	WaitStart  WaitStep = "start"  // the first attempt, or the next one
	WaitSubmit WaitStep = "submit" // the answer to a call that makes a job
	WaitLookup WaitStep = "lookup" // the result of the search for such a job
	WaitVendor WaitStep = "vendor" // the end of the job
	WaitModal  WaitStep = "modal"  // the client
	WaitQueue  WaitStep = "queue"  // a vendor's slot
	WaitEnd    WaitStep = "end"    // the copy of the files, and the end
	WaitParked WaitStep = "parked" // another try later, or an operator
)

// WaitSteps lists the steps.
func WaitSteps() []WaitStep {
	return []WaitStep{WaitSource, WaitStart, WaitSubmit, WaitLookup, WaitVendor, WaitModal, WaitQueue, WaitEnd, WaitParked}
}

// OpenTasks counts the open tasks of a type and status that wait for the same thing.
type OpenTasks struct {
	Type   Type
	Status Status
	Step   WaitStep
	Count  int
	Since  time.Time // when the wait of the oldest began
}

// WakeFigures counts the wakes of a kind.
type WakeFigures struct {
	Kind    WakeKind
	Count   int
	Due     int       // past their time
	Tried   int       // wakes that the scan has tried without success
	Overdue time.Time // since when the oldest due wake is due; zero if none is
}

// ChannelFigures counts the rows of a channel.
type ChannelFigures struct {
	Channel string
	Jobs    int       // jobs with a slot: they run or may run, or hold a grant
	Queued  int       // tasks that wait for a slot
	Awaited int       // jobs that are polled for
	DueAt   time.Time // since when the oldest due poll is due; zero if no job is polled for
}

// Actor is the operator or the key that makes a change, as the audit records it.
type Actor struct {
	By        string // the name of an operator, or the id of a key
	Address   string // the client's address; empty if it is not known
	RequestID string
	Reason    string // the actor's reason for the change; may be empty
}

type actorKey struct{}

// WithActor attributes changes that are made with the context to the actor. It authorizes
// nothing: the store only records the actor with the change. Without an actor the gateway acts by
// itself, and nothing is recorded.
func WithActor(ctx context.Context, a Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, a)
}

// ActorOf returns the actor of the context, if there is one.
func ActorOf(ctx context.Context) (Actor, bool) {
	a, ok := ctx.Value(actorKey{}).(Actor)
	return a, ok
}

// AuditAction is the kind of a recorded change.
type AuditAction string

// The kinds of changes in the audit.
const (
	AuditCreateAccount       AuditAction = "create_account"
	AuditChangeAccount       AuditAction = "change_account"
	AuditGrant               AuditAction = "grant"
	AuditCreateKey           AuditAction = "create_key"
	AuditChangeKey           AuditAction = "change_key"
	AuditRotateKey           AuditAction = "rotate_key"
	AuditDeleteKey           AuditAction = "delete_key"
	AuditRotateWebhookSecret AuditAction = "rotate_webhook_secret" //nolint:gosec // the name of an action, not a secret
	AuditCreateEndpoint      AuditAction = "create_endpoint"
	AuditChangeEndpoint      AuditAction = "change_endpoint"
	AuditDeleteEndpoint      AuditAction = "delete_endpoint"
	AuditChangeChannel       AuditAction = "change_channel"
	AuditTaskAction          AuditAction = "task_action"
	AuditReadPrompt          AuditAction = "read_prompt"
	AuditTaskJob             AuditAction = "task_job"
	AuditRecover             AuditAction = "recover"
)

// AuditFilter selects entries of the audit. Empty fields do not filter.
type AuditFilter struct {
	AccountID string
	By        string // the name of an operator, or the id of a key
	Action    AuditAction
	Object    string
	From, To  time.Time // From is included, To is not
	After     string    // the id of an entry: selects older ones
	Limit     int
}

// AuditActions lists the kinds of changes that a filter can select.
func AuditActions() []AuditAction {
	return []AuditAction{
		AuditCreateAccount, AuditChangeAccount, AuditGrant, AuditCreateKey, AuditChangeKey, AuditRotateKey, AuditDeleteKey,
		AuditRotateWebhookSecret, AuditCreateEndpoint, AuditChangeEndpoint, AuditDeleteEndpoint,
		AuditChangeChannel, AuditTaskAction, AuditReadPrompt, AuditTaskJob, AuditRecover,
	}
}

// AuditEntry is a recorded change: who changed what, and when. It holds no secrets.
type AuditEntry struct {
	ID        string
	At        time.Time
	Actor     Actor
	Action    AuditAction
	Object    string          // the id of the changed object, or a channel's name
	AccountID string          // the object's account; empty for channels
	Before    json.RawMessage // the changed fields before; nil if the object is new
	After     json.RawMessage // the changed fields after; nil if the object was deleted
}

// Retention says how long data is kept after its end. 0 means forever.
type Retention struct {
	Tasks      time.Duration
	Results    time.Duration // the files of completed tasks
	Deliveries time.Duration
}

// FilesUntil returns until when the files of a completed task are kept, or the zero time for
// files that are kept forever.
func (r Retention) FilesUntil(t *Task) time.Time {
	if r.Results == 0 || t.Plan.KeepForever || t.EndedAt.IsZero() {
		return time.Time{}
	}
	return t.EndedAt.Add(r.Results)
}

// Removal is a kind of data that is removed when its time is over.
type Removal string

// The kinds: rows of the database, then objects of the bucket.
const (
	RemoveDeliveries Removal = "deliveries"
	// RemoveEndpointDeliveries removes the deliveries of events to endpoints.
	RemoveEndpointDeliveries Removal = "endpoint_deliveries"

	RemoveIdempotency Removal = "idempotency"
	RemoveResults     Removal = "results" // the row no longer names its files
	RemoveTasks       Removal = "tasks"
	RemoveSpeeches    Removal = "speeches"
	RemoveAudit       Removal = "audit"
	RemoveSessions    Removal = "sessions" // of the console

	RemoveFiles      Removal = "files"      // uploads with a public link
	RemoveUploads    Removal = "uploads"    // media from the bodies of requests
	RemoveUnfinished Removal = "unfinished" // unfinished multipart uploads
	RemoveObjects    Removal = "objects"    // files of tasks that no row names

	// RemovalRun stands for a run through all kinds.
	RemovalRun Removal = "run"
)

// Removals lists the kinds in the order of a run.
func Removals() []Removal {
	return []Removal{
		RemoveDeliveries, RemoveEndpointDeliveries, RemoveIdempotency, RemoveResults, RemoveTasks, RemoveSpeeches,
		RemoveAudit, RemoveSessions,
		RemoveFiles, RemoveUploads, RemoveUnfinished, RemoveObjects,
	}
}

// RemovalState is the progress of retention with a kind.
type RemovalState struct {
	Mark    string    // the id or key before which nothing is left to remove
	Removed int64     // in all, so far
	EndedAt time.Time // when a run last came to the end of this kind
}

// RemovedSlice is the result of one slice of a kind.
type RemovedSlice struct {
	Removed int    `json:"removed"`
	Next    string `json:"next,omitempty"` // the id or key at which the next slice begins
	More    bool   `json:"more,omitempty"` // there is a next slice
}

// UncertainTask is a task that needs an operator's decision after a restore: its row may lack
// attempts, or a run is all that is left of it (D17).
type UncertainTask struct {
	TaskID    string
	AccountID string
	KeyID     string
	Model     string
	Hold      Micros
	State     string     // the task's status, or the state of a run without a row
	Reason    ParkReason // why it is parked
	At        time.Time  // time of the submit, or of the run's start
}
