package activities

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/channel"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/webhook"
)

// Store is the database as the activities see it, one interface a concern.
type Store interface {
	TaskStore
	AttemptStore
	PartStore
	SlotStore
	AwaitStore
	EndStore
	WebhookStore
	ReconcileStore
}

// TaskStore reads tasks and parks them.
type TaskStore interface {
	Story(ctx context.Context, taskID string) (mediagate.Story, error)
	TaskByID(ctx context.Context, taskID string) (mediagate.Task, error)
	RequestCancel(ctx context.Context, accountID, taskID string) (mediagate.Task, error)
	Park(ctx context.Context, taskID string, reason mediagate.ParkReason) error
	Unpark(ctx context.Context, taskID string) error
	Judgement(ctx context.Context, taskID string) (mediagate.Judgement, error)
	StoreJudgement(ctx context.Context, taskID string, j mediagate.Judgement) error
	RecordAction(ctx context.Context, a mediagate.Action) (mediagate.Action, error)
	TakeAction(ctx context.Context, id, taker string) (bool, error)
	BeginModal(ctx context.Context, taskID string, n int) error
	ExpireModal(ctx context.Context, taskID string) error
}

// AttemptStore keeps the story of submissions.
type AttemptStore interface {
	Attempt(ctx context.Context, taskID string, n int) (mediagate.Attempt, error)
	Refusals(ctx context.Context, taskID string) (byChannel map[string]int, err error)
	OpenAttempt(ctx context.Context, a mediagate.Attempt, slots mediagate.Slots) (row mediagate.Attempt, opened bool, err error)
	AcceptAttempt(ctx context.Context, taskID string, n int, s mediagate.Submission, firstPollAt time.Time) (ended bool, err error)
	RejectAttempt(ctx context.Context, taskID string, n int, sendBefore time.Time, f mediagate.Failure, detail string) error
	MarkUnknown(ctx context.Context, taskID string, n int, sendBefore time.Time, detail string) error
	DoubtRefusal(ctx context.Context, taskID string, n int, sendBefore time.Time, f mediagate.Failure, detail string) error
	NoteAbsent(ctx context.Context, taskID string, n int, sendBefore, asked time.Time, gap time.Duration) (first time.Time, proven bool, err error)
	ReopenIntent(ctx context.Context, taskID string, n int, lost, sendBefore time.Time) (bool, error)
	GiveUpAttempt(ctx context.Context, taskID string, n int, detail string) error
	RecordOutcome(ctx context.Context, taskID string, n int, o mediagate.Outcome) (won bool, err error)
	StoreMirrored(ctx context.Context, taskID string, n int, results []mediagate.Result) error
}

// PartStore keeps the calls of an attempt that takes several.
type PartStore interface {
	Parts(ctx context.Context, taskID string, n int) ([]mediagate.Part, error)
	OpenPart(ctx context.Context, p mediagate.Part) (opened bool, err error)
	EndPart(ctx context.Context, p mediagate.Part) error
}

// SlotStore keeps who waits for a slot; the channels grant them.
type SlotStore interface {
	Queue(ctx context.Context, taskID string, n int, channels []string) error
	ReleaseSlot(ctx context.Context, taskID string, n int) error
	EndSlots(ctx context.Context) error
}

// AwaitStore keeps what channels poll for.
type AwaitStore interface {
	channel.Store
	DropAwait(ctx context.Context, taskID string, n int) error
	NoteTrouble(ctx context.Context, taskID string, n int, trouble mediagate.ParkReason) error
	RestoreAwait(ctx context.Context, taskID string, n int, nextPollAt time.Time) error
	HintPoll(ctx context.Context, taskID string) error
}

// EndStore ends tasks.
type EndStore interface {
	Settle(ctx context.Context, s mediagate.Settlement) (story mediagate.Story, won bool, err error)
}

// WebhookStore keeps deliveries.
type WebhookStore interface {
	WebhookTarget(ctx context.Context, taskID string, round int) (mediagate.WebhookTarget, error)
	Deliveries(ctx context.Context, taskID string) ([]mediagate.Delivery, error)
	RecordDelivery(ctx context.Context, d mediagate.Delivery, state mediagate.WebhookState, reason string) error
}

// ReconcileStore finds rows that nothing drives.
type ReconcileStore interface {
	// UnseenTasks and StaleCancels read tasks as the start of a run goes by them,
	// of the accounts after the one named, in turns; next is the account to go on
	// after, "" once all have had their turn.
	UnseenTasks(ctx context.Context, olderThan time.Duration, after string, limit int) (tasks []mediagate.Task, next string, err error)
	StaleCancels(ctx context.Context, olderThan time.Duration, after string, limit int) (tasks []mediagate.Task, next string, err error)
	OpenTasks(ctx context.Context, checkedBefore time.Time, after mediagate.Look, limit int) ([]mediagate.Look, error)
	// OldestOpen is when the oldest of the open tasks was created; zero where
	// none is open.
	OldestOpen(ctx context.Context) (time.Time, error)
	MarkChecked(ctx context.Context, ids []string, seen bool) error
	UntakenActions(ctx context.Context, olderThan time.Duration, after mediagate.Action, limit int) ([]mediagate.Action, error)
	PendingWebhooks(ctx context.Context, olderThan, stuckAfter time.Duration, limit int) ([]mediagate.WebhookRound, error)
	StuckWebhooks(ctx context.Context, again time.Duration, limit int) ([]mediagate.WebhookRound, error)
	ClaimOverdue(ctx context.Context, o mediagate.Overdue, limit int) ([]mediagate.Rescue, error)
	AwaitChannels(ctx context.Context) ([]string, error)
	// UnsettledTasks lists open tasks whose last attempt ended that long ago, and for
	// whose run no signal is outstanding, after that id and in the order of their ids.
	UnsettledTasks(ctx context.Context, olderThan time.Duration, after string, limit int) ([]string, error)
	// UntoldEnds lists tasks that ended that long ago, and whose run has not heard of
	// it, likewise.
	UntoldEnds(ctx context.Context, olderThan time.Duration, after string, limit int) ([]string, error)
	ParkedFor(ctx context.Context, reason mediagate.ParkReason, after string, limit int) ([]string, error)
	DueSweeps(ctx context.Context, limit int) ([]mediagate.Sweep, error)
	SetSweep(ctx context.Context, due mediagate.Sweep, next time.Time) error
	// CountUsage counts what is not counted where it is stored: ends that older
	// processes store, and what vendors charged.
	CountUsage(ctx context.Context, limit int) (counted int, err error)
}

// Descriptions tell what adapters say of their operations.
type Descriptions interface {
	// Operation is the one that a route names; ok is false where no adapter of
	// this worker has it.
	Operation(r mediagate.Route) (o providers.Operation, ok bool)
}

// Fetcher opens a result file of a vendor, or media of a client, through the
// guarded client. It returns KindGone for 401, 403, 404 and 410, KindInvalid for
// an address that the rules refuse, KindTransient otherwise. length is -1 when
// unknown.
type Fetcher interface {
	Fetch(ctx context.Context, url, mediaHost string) (body io.ReadCloser, length int64, err error)
}

// Bucket keeps result files.
type Bucket interface {
	// Mirror opens a file once it has the memory to copy it, streams it to the
	// object key, and closes it. Errors of open come back as they are. See
	// Limits for the bounds.
	Mirror(ctx context.Context, key string, open Opener, limits Limits) (mediagate.Result, error)
	Sign(ctx context.Context, r mediagate.Result, ttl time.Duration) (mediagate.Link, error)
	// Open reads an object. Returns KindGone where there is none.
	Open(ctx context.Context, key string) (body io.ReadCloser, length int64, err error)
	// Exists asks whether a file is stored, by its size; Verify reads it and
	// compares its hash as well. Both return KindGone where it is not.
	Exists(ctx context.Context, r mediagate.Result) error
	Verify(ctx context.Context, r mediagate.Result) error
	// StoreManifest writes a small object that says which files belong
	// together; LoadManifest reads it, and returns KindNotFound where none is.
	StoreManifest(ctx context.Context, key string, manifest []byte) error
	LoadManifest(ctx context.Context, key string) ([]byte, error)
	// Probe reports whether the bucket takes a file now.
	Probe(ctx context.Context) error
}

// Opener opens a file; a length of -1 is unknown.
type Opener func(ctx context.Context) (body io.ReadCloser, length int64, err error)

// Sweeper removes from the bucket what no task will ever show.
type Sweeper interface {
	// Delete removes one object; that it is not there is no error.
	Delete(ctx context.Context, key string) error
	// DeletePrefix removes all objects below a prefix that ends in a slash, but
	// those to keep; DeleteOlder those that were stored before olderThan ago.
	DeletePrefix(ctx context.Context, prefix string, keep ...string) (removed int, err error)
	DeleteOlder(ctx context.Context, prefix string, olderThan time.Duration) (removed int, err error)
	// AbortStale gives up unfinished uploads that began before olderThan ago.
	AbortStale(ctx context.Context, prefix string, olderThan time.Duration) (aborted int, err error)
}

// Limits bound one mirrored file.
type Limits struct {
	MaxBytes int64
	Media    string // "video", "image", "audio" or "archive"
	Owner    string // the provider, whose files leave memory to those of others
	Progress func(bytes int64)
}

// Deliverer makes one signed delivery attempt.
type Deliverer interface {
	// An error says nothing about the receiver.
	Deliver(ctx context.Context, taskID string, target mediagate.WebhookTarget) (DeliveryResult, error)
}

// DeliveryResult is the outcome of one delivery attempt.
type DeliveryResult struct {
	Verdict Verdict
	Status  int
	Error   string // without addresses or secrets
	Reason  string // for the task's webhook state
	Silent  bool   // no answer, for much of the time that there is
}

// Verdict says what follows from a delivery attempt.
type Verdict string

// The verdicts.
const (
	VerdictDelivered Verdict = "delivered"
	VerdictRetry     Verdict = "retry"
	VerdictAbandon   Verdict = "abandon"
	VerdictDrop      Verdict = "drop"
)

// Engine starts and signals workflows.
type Engine interface {
	// Begin starts the workflow of a task of which no run was ever seen, and asks
	// for a run only where there is one already; it reports whether one was started.
	Begin(ctx context.Context, task mediagate.Task) (started bool, err error)
	// Runs tells whether a run of the task's workflow is under way.
	Runs(ctx context.Context, taskID string) (bool, error)
	// AtWork tells whether a step of the task's run has just given a sign of life.
	AtWork(ctx context.Context, taskID string) (bool, error)
	// Ensure starts the task's workflow unless it runs; it reports whether a
	// run was started.
	Ensure(ctx context.Context, task mediagate.Task) (started bool, err error)
	EnsureWebhook(ctx context.Context, w mediagate.WebhookRound) error
	// Replace terminates the task's run, for the reason that operators will
	// read, and starts another; a run that is visibly at work is left alone, and so
	// is one younger than patience. It reports whether a run was started.
	Replace(ctx context.Context, task mediagate.Task, patience time.Duration, reason string) (started bool, err error)
	// ReplaceWebhook does the same for a delivery round; one that waits for its
	// turn is left alone as well.
	ReplaceWebhook(ctx context.Context, w mediagate.WebhookRound, reason string) (started bool, err error)
	EnsureChannel(ctx context.Context, name string) error
	// SignalUpstream tells the task's run that the waiting of attempt n is over;
	// runs is false where there is none to tell.
	SignalUpstream(ctx context.Context, taskID string, n int) (runs bool, err error)
	// SignalSlot tells the task's run that a slot is granted for its attempt n.
	SignalSlot(ctx context.Context, taskID string, n int) error
	// SignalWake asks the task's run to look at its row. Returns KindConflict where
	// the run takes no signal any more.
	SignalWake(ctx context.Context, taskID string) error
	// RepeatCancel tells the task's run again that its row has a cancel request; a
	// task without one gets one. One whose workflow tasks fail takes no signal: once
	// it is as old as patience it is replaced as by Replace, and replaced says so.
	RepeatCancel(ctx context.Context, task mediagate.Task, patience time.Duration, reason string) (replaced bool, err error)
	SignalAction(ctx context.Context, a mediagate.Action) error
}

// Settings are the times and rates that activities obey.
type Settings struct {
	CreditsPerUnit int64
	CallsAtOnce    int           // that make jobs, at one channel, in this process
	CopiesAtOnce   int           // of one provider's files, in this process
	CopyWait       time.Duration // with a place of the worker's, for one of the provider's
	QuickCopy      time.Duration // of files before their run is told of the job's end; 0: none
	SendWindow     time.Duration // from intent to the last moment of the first byte (D4)
	ClockSkew      time.Duration
	AbsentGap      time.Duration // between the two lookups that prove absence (D4)
	InputLook      time.Duration // within this something of a client's file has to arrive,
	InputPace      int64         // so many bytes once it has begun
	InputTime      time.Duration // for one of them
	JudgeTime      time.Duration // for all of a task
	LinkTTL        time.Duration // of links in callbacks
	PassInterval   time.Duration // between two passes of the reconciler
	ChannelGrace   time.Duration // a channel may be gone so long (D11)
	ParkTimeout    time.Duration // a parked task that nobody mends fails then
	ParkRetry      time.Duration // a parked step is tried again so often
	QueueTimeout   time.Duration // a task that no channel has a slot for fails then
	OverdueAfter   time.Duration // a run so long past its time is replaced (D2)
	RoundAfter     time.Duration // and one of a delivery round so long after its beginning
	RescueEvery    time.Duration // between two such looks at the same, at first
}

// DefaultSettings are the times of the durable path's rules.
func DefaultSettings() Settings {
	return Settings{
		CreditsPerUnit: 1000,
		CallsAtOnce:    200,
		CopiesAtOnce:   16, // half of what a worker copies
		CopyWait:       2 * time.Second,
		QuickCopy:      5 * time.Second,
		SendWindow:     10 * time.Second,
		ClockSkew:      5 * time.Second,
		AbsentGap:      30 * time.Second,
		InputLook:      15 * time.Second,
		InputPace:      16 << 10,
		InputTime:      3 * time.Minute,
		JudgeTime:      5 * time.Minute,
		LinkTTL:        7 * 24 * time.Hour,
		PassInterval:   5 * time.Second,
		ChannelGrace:   10 * time.Minute,
		ParkTimeout:    24 * time.Hour,
		ParkRetry:      5 * time.Minute,
		QueueTimeout:   24 * time.Hour,
		OverdueAfter:   30 * time.Minute,
		RoundAfter:     10 * time.Minute,
		RescueEvery:    10 * time.Minute,
	}
}

// Activities does the side effects. Its fields are set once, by the worker.
type Activities struct {
	Store        Store
	Channels     channel.Channels
	Breakers     *channel.Breakers
	Descriptions Descriptions
	Fetcher      Fetcher
	Bucket       Bucket
	Sweeper      Sweeper
	Deliverer    Deliverer
	Engine       Engine
	Ledger       Ledger                                       // nil: there is no money
	FileOf       func(url string) (f mediagate.File, ok bool) // the upload behind a link of ours; nil: there are none
	Settings     Settings
	StartedAt    time.Time // of this worker
	Now          func() time.Time
	Logger       *slog.Logger
	NewID        func(prefix string) string

	opened     sync.Once
	vendors    *channel.Accounts // see accounts
	copies     copies            // under way
	cuts       cutting
	places     channel.Places // of calls that make jobs
	looking    channel.Places // of looks for a channel
	mirrors    channel.Places // of copies, by provider
	finishers  channel.Places // of ends before a run is told, by channel
	tellers    channel.Places // of signals that a job has ended, by channel
	delivering webhook.Places // of attempts at callbacks
	silences   silences
	untold     untold
}
