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

// TaskStore reads and changes tasks. A task changes by Change of channel.Store, or by a variant of
// it below.
type TaskStore interface {
	TaskByID(ctx context.Context, taskID string) (mediagate.Task, error)
	// State reads the task with its last attempt, and also attempt n if that is another one.
	State(ctx context.Context, taskID string, n int) (task.State, error)
	// OpenIntent is Change for the intent of an attempt, which takes a slot. It returns
	// KindCapacity if no slot is free (D7).
	OpenIntent(
		ctx context.Context, taskID string, slots mediagate.Slots, intent task.IntentStored,
	) (task.Changed, error)
	// Command is Change for an operator's command, which it records in the same transaction. A
	// command whose id is on record changes nothing. A command without an event is only recorded.
	Command(ctx context.Context, a mediagate.Action, events ...task.Event) (task.Changed, error)
	// SelectTasks lists the tasks that the filter selects, newest first. The filter's After need
	// not be the id of an existing task.
	SelectTasks(ctx context.Context, f mediagate.TaskFilter) (tasks []mediagate.Task, more bool, err error)
	// TakeFetched takes bytes from the account's daily allowance of fetched bytes. If bytes is
	// more than the whole allowance, it takes the whole allowance. ok is false while not enough is
	// left. A negative number gives bytes back.
	TakeFetched(ctx context.Context, accountID string, bytes int64) (taken int64, ok bool, err error)
	// Refusals counts the rejected attempts of a task, by channel.
	Refusals(ctx context.Context, taskID string) (byChannel map[string]int, err error)
}

// WebhookStore keeps deliveries.
type WebhookStore interface {
	// WebhookTarget reads what a round sends, and to which address. The body is empty until it is
	// stored.
	WebhookTarget(ctx context.Context, taskID string, round int) (mediagate.WebhookTarget, error)
	// StoreWebhookBody stores the body of the task's callback, once, and returns the body that is
	// stored (D14).
	StoreWebhookBody(ctx context.Context, taskID string, body []byte) (stored []byte, err error)
	// Deliveries lists the recorded attempts of the task's callback.
	Deliveries(ctx context.Context, taskID string) ([]mediagate.Delivery, error)
	// RecordDelivery records an attempt, and the state in which it leaves the callback.
	RecordDelivery(ctx context.Context, d mediagate.Delivery, state mediagate.WebhookState, reason string) error
}

// EndpointStore keeps the events of accounts for their endpoints.
type EndpointStore interface {
	// NoteCrossings stores an event for each balance or quota that has crossed its bound.
	NoteCrossings(ctx context.Context) error
	// FailDisabled ends the pending deliveries of disabled endpoints as failed.
	FailDisabled(ctx context.Context) error
	// DueEndpoints lists endpoints with due deliveries, except for those that are busy.
	DueEndpoints(ctx context.Context, busy []string, most int) (ids []string, err error)
	// ClaimDeliveries claims due deliveries of an endpoint until the lease ends.
	ClaimDeliveries(
		ctx context.Context, endpointID string, most int, lease time.Duration,
	) (mediagate.EndpointTurn, error)
	// StoreEndpointBody stores the body of a delivery, once, and returns the body that is stored.
	// It returns KindNotFound if the delivery is gone.
	StoreEndpointBody(ctx context.Context, endpointID, eventID string, body []byte) (stored []byte, err error)
	// ReleaseDelivery gives back a claimed delivery for which no attempt was made.
	ReleaseDelivery(ctx context.Context, endpointID, eventID string, claim, next time.Time) error
	// RecordEndpointAttempt records an attempt of a claimed delivery.
	RecordEndpointAttempt(ctx context.Context, r mediagate.EndpointResult) error
}

// HousekeepingStore finds what is due.
type HousekeepingStore interface {
	// DueWakes lists wakes that are past their time, accounts in round robin. PutOff sets the
	// next try of each. tried is false if Temporal could not be asked; the try then does not count.
	DueWakes(ctx context.Context, most int) ([]mediagate.Wake, error)
	PutOff(ctx context.Context, wakes []mediagate.Wake, tried bool) error
	// AwaitChannels lists the channels for which tasks wait, for a job or for a slot.
	AwaitChannels(ctx context.Context) ([]string, error)
	// ExpireSlots closes abandoned attempts whose time is over.
	ExpireSlots(ctx context.Context) error
	// OldestOpen returns when the oldest open task was created. It is zero if no task is open.
	OldestOpen(ctx context.Context) (time.Time, error)
	// DueSweeps lists tasks whose files are to be swept. SetSweep sets when a task is swept
	// again, if ever.
	DueSweeps(ctx context.Context, most int) ([]mediagate.Sweep, error)
	SetSweep(ctx context.Context, due mediagate.Sweep, next time.Time) error
	// RemoveRows removes the due rows of one kind from the next slice. The slice begins after the
	// id in after, which is empty for the first slice of a run. Rows younger than before are not
	// due.
	RemoveRows(
		ctx context.Context, kind mediagate.Removal, before time.Time, after string,
	) (mediagate.RemovedSlice, error)
	// RemoveSessions removes sessions of the console that have expired, and returns how many.
	RemoveSessions(ctx context.Context) (removed int, err error)
	// Unnamed returns the given keys, of objects in the folder of results, that no row names.
	Unnamed(ctx context.Context, keys []string) ([]string, error)
	// NoteRemoval adds to the number of removed items of a kind, and moves the kind's mark. If ended
	// is set, it also notes when the removal came to the end of the kind.
	NoteRemoval(ctx context.Context, kind mediagate.Removal, mark string, removed int, ended bool) error
	// RemovalStates returns how far the removal of each kind has come.
	RemovalStates(ctx context.Context) (map[mediagate.Removal]mediagate.RemovalState, error)
	// CountVendorCharges counts the vendors' charges that are not counted yet.
	CountVendorCharges(ctx context.Context, most int) (counted int, err error)
}

// Descriptions returns what adapters say about their operations.
type Descriptions interface {
	// Operation returns the operation that a route names. ok is false if no adapter of this
	// worker has it.
	Operation(r mediagate.Route) (o providers.Operation, ok bool)
}

// Fetcher opens files through the guarded client. It returns KindGone for 401, 403, 404 and 410,
// KindInvalid for an address that the rules refuse, and KindTransient otherwise. length is -1 if
// it is not known.
type Fetcher interface {
	// FetchMedia opens a client's media.
	FetchMedia(ctx context.Context, url string) (body io.ReadCloser, length int64, err error)
	// FetchResult opens a vendor's result file, in the way in which the channel makes its calls.
	// channelName is empty if this worker does not have the channel.
	FetchResult(ctx context.Context, url, channelName string) (body io.ReadCloser, length int64, err error)
}

// Bucket keeps result files.
type Bucket interface {
	// Mirror waits for the memory that a copy takes, opens the file, streams it to the object key,
	// and closes it. It returns the errors of open unchanged. limits bounds the file.
	Mirror(ctx context.Context, key string, open Opener, limits Limits) (mediagate.Result, error)
	// Sign returns a link to the file that works for that time.
	Sign(ctx context.Context, r mediagate.Result, ttl time.Duration) (mediagate.Link, error)
	// Open reads an object. It returns KindGone if there is none.
	Open(ctx context.Context, key string) (body io.ReadCloser, length int64, err error)
	// Exists checks by its size whether a file is stored. Verify reads the file, and compares its
	// hash as well. Both return KindGone if it is not there.
	Exists(ctx context.Context, r mediagate.Result) error
	Verify(ctx context.Context, r mediagate.Result) error
	// StoreManifest writes a small object that says which files belong together. LoadManifest
	// reads it, and returns KindNotFound if there is none.
	StoreManifest(ctx context.Context, key string, manifest []byte) error
	LoadManifest(ctx context.Context, key string) ([]byte, error)
	// Probe returns nil if the bucket takes a file now.
	Probe(ctx context.Context) error
}

// Opener opens a file. It returns a length of -1 if the length is not known.
type Opener = media.Open

// Sweeper removes from the bucket what no task will ever show.
type Sweeper interface {
	// Delete removes one object. If the object is not there, that is not an error.
	Delete(ctx context.Context, key string) error
	// DeletePrefix removes all objects below a prefix that ends in a slash, except for those to
	// keep. DeleteOlder removes those that were stored more than olderThan ago.
	DeletePrefix(ctx context.Context, prefix string, keep ...string) (removed int, err error)
	DeleteOlder(ctx context.Context, prefix string, olderThan time.Duration) (removed int, err error)
	// Older looks at the next objects below a prefix, in the order of their keys, and lists those
	// that were stored more than olderThan ago. DeleteAll removes them.
	Older(
		ctx context.Context, prefix, after string, olderThan time.Duration,
	) (keys []string, last string, more bool, err error)
	DeleteAll(ctx context.Context, keys []string) error
	// AbortStale aborts unfinished uploads that began more than olderThan ago.
	AbortStale(ctx context.Context, prefix string, olderThan time.Duration) (aborted int, err error)
}

// Limits bound one mirrored file.
type Limits struct {
	MaxBytes int64
	Media    string // "video", "image", "audio" or "archive"
	Owner    string // the provider; the files of one provider leave memory for the files of others
	Progress func(bytes int64)
}

// Deliverer makes one signed delivery attempt.
type Deliverer interface {
	// Deliver sends one attempt. An error says nothing about the receiver.
	Deliver(ctx context.Context, taskID string, target mediagate.WebhookTarget) (mediagate.DeliveryResult, error)
}

// Engine starts and signals workflows.
type Engine interface {
	// Start starts the task's run if none was started before. It returns KindConflict if one was.
	Start(ctx context.Context, t mediagate.Task) error
	// Wake signals the task's run to ask for its next step. runs is false if there is none. Wake
	// returns KindConflict if the run takes no more signals.
	Wake(ctx context.Context, taskID string) (runs bool, err error)
	// DescribeRun returns the state of the task's newest run.
	DescribeRun(ctx context.Context, taskID string) (RunState, error)
	// Replace starts a new run of the task, which begins with what the run before had seen. It
	// first terminates a run that is under way. Operators will read the reason. It leaves a busy
	// run alone.
	Replace(ctx context.Context, t mediagate.Task, reason string) error
	// EnsureRound starts a delivery round unless it runs. ReplaceRound first terminates the run
	// that is under way. It leaves a run alone that is busy or waits for a permit.
	EnsureRound(ctx context.Context, w mediagate.WebhookRound) error
	ReplaceRound(ctx context.Context, w mediagate.WebhookRound, reason string) (replaced bool, err error)
	EnsureChannel(ctx context.Context, name string) error
}

// RunState is what Temporal knows of a task's newest run.
type RunState string

// The states of runs.
const (
	// RunNone says that no run is under way.
	RunNone RunState = "none"
	// RunCompleted says that the newest run has completed, as it does once the task has ended.
	RunCompleted RunState = "completed"
	// RunBusy says that an activity of the run sends heartbeats, or that its workflow task waits
	// for a worker.
	RunBusy RunState = "busy"
	// RunIdle says that nothing of the run is pending.
	RunIdle RunState = "idle"
	// RunFailing says that the run's workflow tasks have begun to fail.
	RunFailing RunState = "failing"
	// RunBroken means that the run's workflow task is at its fifth attempt or a later one.
	RunBroken RunState = "broken"
)

// Settings are the times and rates of activities.
type Settings struct {
	CreditsPerUnit int64
	PermitWait     time.Duration // how long an activity waits for a permit, see waitForPermit
	QuickCopy      time.Duration // how long a copy may take within a submit or a poll; 0: no such copies
	SendWindow     time.Duration // from intent to the last moment of the first byte (D4)
	ClockSkew      time.Duration
	InputPace      media.Pace    // of a client's file
	CheckTime      time.Duration // for all files of one task
	LinkTTL        time.Duration // of links in callbacks
	Keep           mediagate.Retention
	PassInterval   time.Duration // between two passes of most kinds of housekeeping
	ChannelGrace   time.Duration // how long a channel may be gone (D11)
}

const day = 24 * time.Hour

// DefaultSettings returns the times of the durable path's rules.
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

// Activities has a method for each activity. The worker sets its fields once.
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
	Tracer       trace.Tracer  // traces the jobs whose end pollers see; may be nil
	Ledger       Ledger        // nil if there is no money
	Meter        channel.Meter // may be nil
	Evidence     EvidenceMeter // may be nil
	// FileOf returns the upload behind a link of ours. It is nil if there are no uploads.
	FileOf func(url string) (f mediagate.File, ok bool)
	// CallbackURL returns the address at which the vendor may report on the attempt's job. It may
	// be nil, or return "".
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
