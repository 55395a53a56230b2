package api

import (
	"context"
	"io"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
	"github.com/mediagate/mediagate/task/story"
)

// Store is the database as the API sees it, one interface a concern.
type Store interface {
	SubmitStore
	StartStore
	AdoptionStore
	SpeechStore
	TaskStore
	StoryStore
	SourceStore
	CallerStore
	SessionStore
	RateStore
	SecretStore
	EndpointStore
	AdminAccountStore
	AdminKeyStore
	OwnKeyStore
	AuditStore
	LedgerStore
	ChannelStore
	HintStore
	JobStore
	RestoreStore
}

// SubmitStore takes tasks in.
type SubmitStore interface {
	Submit(ctx context.Context, n mediagate.NewTask) (taskID string, replayed bool, err error)
	// SubmitModal takes the modal parameters of a task in.
	SubmitModal(ctx context.Context, m mediagate.ModalCall) (replayed bool, err error)
	Replay(ctx context.Context, accountID, idempotencyKey, path string, body [32]byte) (taskID string, found bool, err error)
	// CheckHold tells whether account and key can bear a hold: KindPayment where they
	// cannot, KindUnauthenticated where the key is gone.
	CheckHold(ctx context.Context, accountID, keyID string, hold mediagate.Micros) error
}

// StartStore is the queue of tasks that have no run yet.
type StartStore interface {
	// MayStart reports whether the caller starts the task's run itself. If not, the wake
	// scan starts it.
	MayStart(ctx context.Context, taskID string) (bool, error)
}

// AdoptionStore knows of requests that wait for their tasks, and of those whose clients did
// not get the answer.
type AdoptionStore interface {
	// Adopt gives the waiter a task that an equal request made, and whose answer nobody got.
	Adopt(ctx context.Context, accountID string, w mediagate.Waiter) (taskID string, found bool, err error)
	Answered(ctx context.Context, accountID, waiterID string) error
	Unanswered(ctx context.Context, accountID, waiterID string) error
}

// TaskStore reads the tasks of an account, notes its wish to cancel one, and
// erases them.
type TaskStore interface {
	Task(ctx context.Context, accountID, id string) (mediagate.Task, error)
	Tasks(ctx context.Context, f mediagate.TaskFilter) (tasks []mediagate.Task, hasMore bool, err error)
	Versions(ctx context.Context, ids []string) (map[string]int64, error)
	RequestCancel(ctx context.Context, accountID, id string) (mediagate.Task, error)
	// EraseTask erases a task that has ended, but for its files; it returns the
	// keys of those that lie outside of its folder.
	EraseTask(ctx context.Context, accountID, id string) (uploads []string, err error)
}

// StoryStore tells what became of tasks, and takes commands for them.
type StoryStore interface {
	Deliveries(ctx context.Context, taskID string) ([]mediagate.Delivery, error)
	// Outlook reads what a task waits for, Story all that is stored of it, whoever's it is.
	Outlook(ctx context.Context, taskID string) (story.Story, error)
	Story(ctx context.Context, taskID string) (story.Story, error)
	// Command records a command and applies it. Returns KindConflict, naming what
	// applies, for one that does not.
	Command(ctx context.Context, a mediagate.Action, events ...task.Event) (task.Changed, error)
	NotePromptRead(ctx context.Context, accountID, taskID string) error
	// Labels reads what lists show beside tasks, StuckCounts how many of a filter are stuck and why.
	Labels(ctx context.Context, ids ...string) (map[string]mediagate.TaskLabel, error)
	StuckCounts(ctx context.Context, f mediagate.TaskFilter) (map[string]int, error)
}

// SourceStore knows who made what later requests work on.
type SourceStore interface {
	// Producer is the attempt that made what a completed task shows.
	Producer(ctx context.Context, taskID string) (task.Attempt, error)
	// MadeBy finds the task of the account that made what a vendor's id names.
	MadeBy(ctx context.Context, accountID string, kind mediagate.MadeKind, vendorID string) (mediagate.MadeAt, error)
}

// CallerStore knows who calls.
type CallerStore interface {
	// KeyByHash finds a live key, and its account.
	KeyByHash(ctx context.Context, hash [32]byte) (mediagate.Key, mediagate.Account, error)
	Key(ctx context.Context, id string) (mediagate.Key, error)
	TouchKeys(ctx context.Context, usedAt map[string]time.Time) error
	Account(ctx context.Context, id string) (mediagate.Account, error)
}

// SessionStore knows who is signed in.
type SessionStore interface {
	AddSession(ctx context.Context, session mediagate.Session, life time.Duration) error
	// Session finds a live session, and the hash of its key.
	Session(ctx context.Context, hash [32]byte) (mediagate.Session, error)
	EndSession(ctx context.Context, hash [32]byte) error
	// TakeLink exchanges a link for a session with another hash, once.
	TakeLink(ctx context.Context, link, hash [32]byte, life time.Duration) error
}

// RateStore counts submits, for all processes.
type RateStore interface {
	// TakeRates takes a submit of each of the limits if all of them have one left,
	// and otherwise of none. It tells what is left of each, in their order.
	TakeRates(ctx context.Context, limits []mediagate.RateLimit) (left []mediagate.RateLeft, admitted bool, err error)
}

// SecretStore keeps the accounts' webhook secrets.
type SecretStore interface {
	WebhookSecrets(ctx context.Context, accountID string) ([]mediagate.WebhookSecret, error)
	RotateWebhookSecret(ctx context.Context, accountID string, force bool) ([]mediagate.WebhookSecret, error)
}

// EndpointStore keeps the accounts' endpoints and what they are told. Returns KindNotFound
// for what the account does not have.
type EndpointStore interface {
	// CreateEndpoint returns KindConflict where the account has as many as it may.
	CreateEndpoint(ctx context.Context, e mediagate.Endpoint) (mediagate.Endpoint, mediagate.Secret, error)
	Endpoint(ctx context.Context, accountID, id string) (mediagate.Endpoint, error)
	Endpoints(ctx context.Context, accountID, after string, limit int) (endpoints []mediagate.Endpoint, hasMore bool, err error)
	UpdateEndpoint(ctx context.Context, accountID, id string, change func(e *mediagate.Endpoint) error) (mediagate.Endpoint, error)
	DeleteEndpoint(ctx context.Context, accountID, id string) error
	RotateEndpointSecret(ctx context.Context, accountID, id string, force bool) ([]mediagate.WebhookSecret, error)
	// SendTest and Redeliver return KindConflict where the endpoint is disabled.
	SendTest(ctx context.Context, accountID, id string) (mediagate.EndpointDelivery, error)
	Redeliver(ctx context.Context, accountID, id, eventID string) (mediagate.EndpointDelivery, error)
	EndpointDeliveries(ctx context.Context, id string, state mediagate.EndpointState, after string, limit int) (deliveries []mediagate.EndpointDelivery, hasMore bool, err error)
}

// AdminAccountStore is what operators do with accounts.
type AdminAccountStore interface {
	CreateAccount(ctx context.Context, a mediagate.Account) (mediagate.Account, error)
	Accounts(ctx context.Context, search, after string, limit int) (accounts []mediagate.Account, hasMore bool, err error)
	UpdateAccount(ctx context.Context, id string, change func(a *mediagate.Account) error) (mediagate.Account, error)
	// Abandoned tells of the jobs of an account's cancelled tasks that may still run.
	Abandoned(ctx context.Context, accountID string) (mediagate.Abandoned, error)
}

// AdminKeyStore is what operators do with keys.
type AdminKeyStore interface {
	CreateKey(ctx context.Context, k mediagate.Key, hash [32]byte) (mediagate.Key, error)
	Keys(ctx context.Context, accountID, after string, limit int) (keys []mediagate.Key, hasMore bool, err error)
	UpdateKey(ctx context.Context, id string, change func(k *mediagate.Key) error) (mediagate.Key, error)
	RotateKey(ctx context.Context, id string, secret mediagate.KeySecret, grace time.Duration) (mediagate.Key, error)
	DeleteKey(ctx context.Context, id string) error
}

// OwnKeyStore is what a key does with its account's keys. The functions decide
// whether it may, while neither the giver nor the key can change.
type OwnKeyStore interface {
	GiveKey(ctx context.Context, giver string, secret mediagate.KeySecret, grant func(giver mediagate.Key) (mediagate.Key, error)) (mediagate.Key, error)
	ChangeKey(ctx context.Context, giver, id string, change func(giver mediagate.Key, k *mediagate.Key) error, check func(giver, was, is mediagate.Key) (widened bool, err error)) (mediagate.Key, error)
	RenewKey(ctx context.Context, giver, id string, secret mediagate.KeySecret, grace time.Duration, check func(giver, k mediagate.Key) error) (mediagate.Key, error)
}

// AuditStore knows who changed what.
type AuditStore interface {
	Audit(ctx context.Context, f mediagate.AuditFilter) (entries []mediagate.AuditEntry, hasMore bool, err error)
}

// LedgerStore is the money as operators see it.
type LedgerStore interface {
	Grant(ctx context.Context, accountID string, amount mediagate.Micros, reference string) (g mediagate.Transfer, available mediagate.Micros, created bool, err error)
	Transfer(ctx context.Context, accountID, id string) (mediagate.Transfer, error)
	Ledger(ctx context.Context, accountID, taskID, after string, limit int) (entries []mediagate.Transfer, hasMore bool, err error)
	CheckLedger(ctx context.Context) (mediagate.LedgerReport, error)
	// Names reads the names of accounts and keys by their ids.
	Names(ctx context.Context, ids []string) (map[string]string, error)
	// Usage tells what was used, and whether there is more than the filter allows.
	Usage(ctx context.Context, f mediagate.UsageFilter) (usage []mediagate.Usage, hasMore bool, err error)
	Statement(ctx context.Context, f mediagate.StatementFilter) (mediagate.Statement, error)
}

// ChannelStore is what is known of our channels, and the operators' word on them.
type ChannelStore interface {
	ChannelStates(ctx context.Context) ([]mediagate.ChannelState, error)
	ChannelRates(ctx context.Context, since time.Time) (map[string]mediagate.ChannelCalls, error)
	ChannelLoad(ctx context.Context, name string) (inFlight, queued int, oldest time.Time, err error)
	AwaitStats(ctx context.Context, channel string) (waiting int, nextDue time.Time, err error)
	EnableChannel(ctx context.Context, channel string, enabled bool) (mediagate.ChannelState, error)
}

// Starter starts and signals the tasks' runs. A call that fails loses nothing: the
// task's wake is due some seconds after each change of its row.
type Starter interface {
	// Start starts the run of a task as it was submitted, without parameters, media,
	// source, prices and callback. Returns KindConflict where one was started before.
	Start(ctx context.Context, t mediagate.Task) error
	// Wake has the task's run ask for its next step. It reports whether there is a run.
	Wake(ctx context.Context, taskID string) (runs bool, err error)
	// Run names the task's newest run, where there is one, and its page in Temporal's
	// UI, where that is known. The page comes with an error too.
	Run(ctx context.Context, taskID string) (runID, page string, err error)
	// StartJob starts a job that gives a command to many tasks. After an error it may
	// have begun.
	StartJob(ctx context.Context, job mediagate.TaskJob) error
	// Job says how far a job has come, and names its newest run and that run's page, as
	// Run does. Returns KindNotFound where there is no such job.
	Job(ctx context.Context, id string) (status mediagate.TaskJobStatus, runID, page string, err error)
}

// Runs lists what Temporal knows of tasks' runs.
type Runs interface {
	// RunsSince lists runs of tasks that began at that time or later, in any order and
	// some of them twice. next is where the next page begins, empty after the last one.
	// Returns KindInvalid for a page that is none.
	RunsSince(ctx context.Context, since time.Time, page string) (runs []mediagate.Doubted, next string, err error)
}

// RestoreStore is what is to be done after the database was restored (D17).
type RestoreStore interface {
	// OldestOpen is when the oldest open task was submitted; zero where there is none.
	OldestOpen(ctx context.Context) (time.Time, error)
	// NoteRestore notes that the database was restored to that time. It returns when that
	// was noted first.
	NoteRestore(ctx context.Context, to time.Time) (notedAt time.Time, err error)
	// MarkRestored tells open tasks, up to limit, that they may lack attempts, once. Fewer
	// than limit means that all know.
	MarkRestored(ctx context.Context, notedAt time.Time, limit int) (marked int, err error)
	// DoubtedTasks lists tasks that wait for an operator since.
	DoubtedTasks(ctx context.Context, after string, limit int) (tasks []mediagate.Doubted, hasMore bool, err error)
	// Unknown returns those of the ids that no task has.
	Unknown(ctx context.Context, ids []string) (unknown []string, err error)
}

// Routes asks the adapters of vendors. It makes no call.
type Routes interface {
	// Express says whether the route can express a request for the model on one
	// of our accounts. Of the job, params and source are read.
	Express(model string, route mediagate.Route, job mediagate.Job) Expression
}

// Moderator judges what clients write for vendors.
type Moderator interface {
	// Judge returns an error where nobody can judge the texts, of
	// KindUnavailable, if they are not to pass for that.
	Judge(ctx context.Context, texts []string) (mediagate.Verdict, error)
}

// Uploads stores the media that came within a request.
type Uploads interface {
	// PutUpload stores a picture of an account and returns the object's key. id
	// is unique within the account.
	PutUpload(ctx context.Context, accountID, id string, picture io.Reader) (key string, err error)
}

// Remover takes the files of erased tasks out of the bucket.
type Remover interface {
	// Remove removes all that is stored below a folder, uploads that are under way
	// among it, and the objects.
	Remove(ctx context.Context, folder string, objects ...string) error
}

// Files keeps the uploads that have a public link.
type Files interface {
	// PutFile stores a file of at most so many bytes as it comes, and returns how
	// many there were. Where the file's reader fails nothing is stored.
	PutFile(ctx context.Context, f mediagate.File, file io.Reader, maxBytes int64) (bytes int64, err error)
	// Size is the length of an object, and OpenAt reads it from a place within
	// it. Both return KindGone where there is none.
	Size(ctx context.Context, key string) (int64, error)
	OpenAt(ctx context.Context, key string, offset int64) (io.ReadCloser, error)
}

// Signer makes links to stored results; it does no I/O.
type Signer interface {
	Sign(ctx context.Context, r mediagate.Result, ttl time.Duration) (mediagate.Link, error)
	// SignAs signs a link for a method, GET or HEAD, under which the file is saved by
	// that name; empty: shown.
	SignAs(ctx context.Context, r mediagate.Result, ttl time.Duration, method, name string) (mediagate.Link, error)
}

// Checks tell whether the parts that we need are there. A nil check passes.
type Checks struct {
	Database func(ctx context.Context) error
	Clock    func(ctx context.Context) error
	Temporal func(ctx context.Context) error
	Bucket   func(ctx context.Context) error
	Catalog  func(ctx context.Context) error // whether its files as they are are in use
	// Moderation is the same of the lists of words.
	Moderation func(ctx context.Context) error
	// Operators is the same of the settings file, as far as it names operators.
	Operators func(ctx context.Context) error
	// OIDC reports whether the identity provider answers.
	OIDC func(ctx context.Context) error
}
