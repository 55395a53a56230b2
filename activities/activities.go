package activities

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/channel"
	"github.com/mediagate/mediagate/internal/limit"
	"github.com/mediagate/mediagate/media"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/task"
)

// Store is the database as the activities see it.
type Store interface {
	channel.Store
	TaskStore
	WebhookStore
	EndpointStore
	HousekeepingStore
}

// TaskStore reads and changes tasks. Change of channel.Store is how a task changes.
type TaskStore interface {
	TaskByID(ctx context.Context, taskID string) (mediagate.Task, error)
	// State reads the task with its last attempt, and attempt n where that is another.
	State(ctx context.Context, taskID string, n int) (task.State, error)
	// OpenIntent is Change for the intent of an attempt, which takes a slot. Returns
	// KindCapacity if there is none (D7).
	OpenIntent(
		ctx context.Context, taskID string, slots mediagate.Slots, intent task.IntentStored,
	) (task.Changed, error)
	// Command is Change for an operator's command, recorded in the same transaction. One
	// whose id is on record changes nothing, one without an event is only recorded.
	Command(ctx context.Context, a mediagate.Action, events ...task.Event) (task.Changed, error)
	// SelectTasks lists tasks that the filter selects, newest first. After need not be the
	// id of a task.
	SelectTasks(ctx context.Context, f mediagate.TaskFilter) (tasks []mediagate.Task, more bool, err error)
	// TakeFetched takes bytes of those that may be fetched for the account in a day, all of
	// them where they are fewer; ok is false while not as many are left. Negative ones are
	// given back.
	TakeFetched(ctx context.Context, accountID string, bytes int64) (taken int64, ok bool, err error)
	// Refusals counts the rejected attempts of a task, by channel.
	Refusals(ctx context.Context, taskID string) (byChannel map[string]int, err error)
}

// WebhookStore keeps deliveries.
type WebhookStore interface {
	// WebhookTarget reads what a round sends, and where. The body is empty until it is
	// stored.
	WebhookTarget(ctx context.Context, taskID string, round int) (mediagate.WebhookTarget, error)
	// StoreWebhookBody stores the body of the task's callback, once, and returns the one
	// that is stored (D14).
	StoreWebhookBody(ctx context.Context, taskID string, body []byte) (stored []byte, err error)
	Deliveries(ctx context.Context, taskID string) ([]mediagate.Delivery, error)
	RecordDelivery(ctx context.Context, d mediagate.Delivery, state mediagate.WebhookState, reason string) error
}

// EndpointStore keeps the events of accounts for their endpoints.
type EndpointStore interface {
	// NoteCrossings stores the events of balances and keys that have crossed a bound.
	NoteCrossings(ctx context.Context) error
	// FailDisabled ends the pending deliveries of disabled endpoints as failed.
	FailDisabled(ctx context.Context) error
	// DueEndpoints lists endpoints with deliveries that are due, but those that are busy.
	DueEndpoints(ctx context.Context, busy []string, most int) (ids []string, err error)
	// ClaimDeliveries claims due deliveries of an endpoint until the lease ends.
	ClaimDeliveries(
		ctx context.Context, endpointID string, most int, lease time.Duration,
	) (mediagate.EndpointTurn, error)
	// StoreEndpointBody stores the body of a delivery, once, and returns the one that is
	// stored. Returns KindNotFound where the delivery is gone.
	StoreEndpointBody(ctx context.Context, endpointID, eventID string, body []byte) (stored []byte, err error)
	// ReleaseDelivery gives back a claimed delivery of which no attempt was made.
	ReleaseDelivery(ctx context.Context, endpointID, eventID string, claim, next time.Time) error
	RecordEndpointAttempt(ctx context.Context, r mediagate.EndpointResult) error
}

// HousekeepingStore finds what is due.
type HousekeepingStore interface {
	// DueWakes lists wakes that are past their time, accounts in turns. PutOff sets the
	// next try of each; a try counts unless Temporal could not be asked.
	DueWakes(ctx context.Context, most int) ([]mediagate.Wake, error)
	PutOff(ctx context.Context, wakes []mediagate.Wake, tried bool) error
	AwaitChannels(ctx context.Context) ([]string, error)
	// ExpireSlots closes abandoned attempts whose time is over.
	ExpireSlots(ctx context.Context) error
	// OldestOpen is when the oldest of the open tasks was created; zero where none
	// is open.
	OldestOpen(ctx context.Context) (time.Time, error)
	DueSweeps(ctx context.Context, most int) ([]mediagate.Sweep, error)
	SetSweep(ctx context.Context, due mediagate.Sweep, next time.Time) error
	// RemoveRows removes what is due of the next slice of a kind of rows, which begins
	// after an id; the first of a run after the empty one. What is younger than before is
	// not due.
	RemoveRows(
		ctx context.Context, kind mediagate.Removal, before time.Time, after string,
	) (mediagate.RemovedSlice, error)
	// RemoveSessions removes sessions of the console that have expired, and tells how many.
	RemoveSessions(ctx context.Context) (removed int, err error)
	// Unnamed returns those of the objects in the folder of results that no row names.
	Unnamed(ctx context.Context, keys []string) ([]string, error)
	// NoteRemoval adds to how much of a kind was removed, moves its mark, and notes the
	// time where it has come to the end.
	NoteRemoval(ctx context.Context, kind mediagate.Removal, mark string, removed int, ended bool) error
	RemovalStates(ctx context.Context) (map[mediagate.Removal]mediagate.RemovalState, error)
	// CountVendorCharges counts what vendors charged, where it is not counted yet.
	CountVendorCharges(ctx context.Context, most int) (counted int, err error)
}

// Descriptions tell what adapters say of their operations.
type Descriptions interface {
	// Operation is the one that a route names; ok is false where no adapter of
	// this worker has it.
	Operation(r mediagate.Route) (o providers.Operation, ok bool)
}

// Fetcher opens files through the guarded client. It returns KindGone for 401, 403, 404
// and 410, KindInvalid for an address that the rules refuse, KindTransient otherwise.
// length is -1 when unknown.
type Fetcher interface {
	// FetchMedia opens media of a client.
	FetchMedia(ctx context.Context, url string) (body io.ReadCloser, length int64, err error)
	// FetchResult opens a result file of a vendor, on the way of the channel's calls. An
	// empty channel is one that this worker does not have.
	FetchResult(ctx context.Context, url, channelName string) (body io.ReadCloser, length int64, err error)
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
type Opener = media.Open

// Sweeper removes from the bucket what no task will ever show.
type Sweeper interface {
	// Delete removes one object; that it is not there is no error.
	Delete(ctx context.Context, key string) error
	// DeletePrefix removes all objects below a prefix that ends in a slash, but
	// those to keep; DeleteOlder those that were stored before olderThan ago.
	DeletePrefix(ctx context.Context, prefix string, keep ...string) (removed int, err error)
	DeleteOlder(ctx context.Context, prefix string, olderThan time.Duration) (removed int, err error)
	// Older lists of the next objects below a prefix, in the order of their keys, those
	// that were stored before olderThan ago. DeleteAll removes them.
	Older(
		ctx context.Context, prefix, after string, olderThan time.Duration,
	) (keys []string, last string, more bool, err error)
	DeleteAll(ctx context.Context, keys []string) error
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
	Deliver(ctx context.Context, taskID string, target mediagate.WebhookTarget) (mediagate.DeliveryResult, error)
}

// Engine starts and signals workflows.
type Engine interface {
	// Start starts the task's run where none was started before. Returns KindConflict
	// where one was.
	Start(ctx context.Context, t mediagate.Task) error
	// Wake asks the task's run to ask for its next step. It reports whether there is one
	// to tell. Returns KindConflict where the run takes no more signals.
	Wake(ctx context.Context, taskID string) (runs bool, err error)
	// Look describes the task's newest run.
	Look(ctx context.Context, taskID string) (RunState, error)
	// Replace starts a new run of the task, which begins with what the one before has seen. A
	// run that is under way is terminated first, for the reason that operators will read.
	Replace(ctx context.Context, t mediagate.Task, reason string) error
	// EnsureRound starts a delivery round unless it runs. ReplaceRound terminates the one
	// that runs first; one that is at work or waits for a permit is left alone.
	EnsureRound(ctx context.Context, w mediagate.WebhookRound) error
	ReplaceRound(ctx context.Context, w mediagate.WebhookRound, reason string) (replaced bool, err error)
	EnsureChannel(ctx context.Context, name string) error
}

// RunState is what Temporal says of a task's newest run.
type RunState string

// The states of runs.
const (
	// RunNone says that none is under way.
	RunNone RunState = "none"
	// RunCompleted says that the newest has completed, as a task's run does once the task
	// has ended.
	RunCompleted RunState = "completed"
	// RunBusy says that an activity of it gives signs of life, or that its workflow task
	// waits for a worker.
	RunBusy RunState = "busy"
	// RunIdle says that nothing of it is pending.
	RunIdle RunState = "idle"
	// RunFailing says that its workflow tasks have begun to fail.
	RunFailing RunState = "failing"
	// RunBroken says that its workflow tasks have failed five times.
	RunBroken RunState = "broken"
)

// Settings are the times and rates of activities.
type Settings struct {
	CreditsPerUnit int64
	PermitWait     time.Duration // with a slot of the worker's, see waitForPermit
	QuickCopy      time.Duration // of files that came with the answer to a submit, within its step; 0: none
	SendWindow     time.Duration // from intent to the last moment of the first byte (D4)
	ClockSkew      time.Duration
	InputPace      media.Pace    // of a client's file
	CheckTime      time.Duration // for all of them of a task
	LinkTTL        time.Duration // of links in callbacks
	Keep           mediagate.Retention
	PassInterval   time.Duration // between two looks of most kinds of housekeeping
	ChannelGrace   time.Duration // a channel may be gone so long (D11)
}

const day = 24 * time.Hour

// DefaultSettings are the times of the durable path's rules.
func DefaultSettings() Settings {
	return Settings{
		CreditsPerUnit: 1000,
		PermitWait:     2 * time.Second,
		QuickCopy:      5 * time.Second,
		SendWindow:     10 * time.Second,
		ClockSkew:      5 * time.Second,
		InputPace:      media.Pace{Silence: 15 * time.Second, Whole: 3 * time.Minute},
		CheckTime:      5 * time.Minute,
		LinkTTL:        7 * day,
		Keep:           mediagate.Retention{Tasks: 90 * day, Results: 30 * day, Deliveries: 30 * day},
		PassInterval:   5 * time.Second,
		ChannelGrace:   10 * time.Minute,
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
	Tracer       trace.Tracer  // of what pollers see end; nil: there are no traces
	Ledger       Ledger        // nil: there is no money
	Meter        channel.Meter // nil: nobody counts polls
	Evidence     EvidenceMeter // nil: nobody counts evidence of lost commits
	// FileOf returns the upload behind a link of ours. nil: there are none.
	FileOf func(url string) (f mediagate.File, ok bool)
	// CallbackURL is where the vendor may tell of the attempt's job. nil or empty: nowhere.
	CallbackURL func(row task.Attempt) string
	Limits      *limit.Process
	Settings    Settings
	StartedAt   time.Time // of this worker
	Now         func() time.Time
	Logger      *slog.Logger
	NewID       func(prefix string) string

	opened  sync.Once
	vendors *channel.Accounts // see accounts
	cuts    media.Cutter

	evidenceLog sync.Map // mediagate.Evidence → *rate.Sometimes
}
