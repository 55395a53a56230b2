package api

import (
	"context"
	"io"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
	"github.com/mediagate/mediagate/task/story"
)

// Store is the database as the API sees it. Each concern has its own interface.
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

// SubmitStore stores submits.
type SubmitStore interface {
	Submit(ctx context.Context, n mediagate.NewTask) (taskID string, replayed bool, err error)
	// SubmitModal stores the modal parameters of a task.
	SubmitModal(ctx context.Context, m mediagate.ModalCall) (replayed bool, err error)
	Replay(
		ctx context.Context, accountID, idempotencyKey, path string, body [32]byte,
	) (taskID string, found bool, err error)
	// CheckHold checks whether account and key can pay for a hold: KindPayment if they cannot,
	// KindForbidden if the account is suspended, KindUnauthenticated if the key is gone.
	CheckHold(ctx context.Context, accountID, keyID string, hold mediagate.Micros) error
}

// StartStore decides who starts new tasks.
type StartStore interface {
	// MayStart reports whether the caller starts the task's run itself. If not, the wake scan
	// does.
	MayStart(ctx context.Context, taskID string) (bool, error)
}

// AdoptionStore records the requests that wait for their tasks, and whether their clients got the
// answer.
type AdoptionStore interface {
	// Adopt returns the task of an equal request whose client did not get the answer, and records
	// the waiter.
	Adopt(ctx context.Context, accountID string, w mediagate.Waiter) (taskID string, found bool, err error)
	Answered(ctx context.Context, accountID, waiterID string) error
	Unanswered(ctx context.Context, accountID, waiterID string) error
}

// TaskStore reads the tasks of an account, records its requests to cancel them, and erases them.
type TaskStore interface {
	Task(ctx context.Context, accountID, id string) (mediagate.Task, error)
	Tasks(ctx context.Context, f mediagate.TaskFilter) (tasks []mediagate.Task, hasMore bool, err error)
	Versions(ctx context.Context, ids []string) (map[string]int64, error)
	RequestCancel(ctx context.Context, accountID, id string) (mediagate.Task, error)
	// EraseTask erases a task that has ended, but not its files. It returns the keys of the files
	// outside of the task's folder.
	EraseTask(ctx context.Context, accountID, id string) (uploads []string, err error)
}

// StoryStore reads the stories of tasks, and takes commands for them.
type StoryStore interface {
	Deliveries(ctx context.Context, taskID string) ([]mediagate.Delivery, error)
	// Outlook reads what a task waits for. Story reads all that is stored about a task. Both take
	// tasks of any account.
	Outlook(ctx context.Context, taskID string) (story.Story, error)
	Story(ctx context.Context, taskID string) (story.Story, error)
	// Command records a command and applies it. If the command does not apply, it returns
	// KindConflict and names the commands that do.
	Command(ctx context.Context, a mediagate.Action, events ...task.Event) (task.Changed, error)
	NotePromptRead(ctx context.Context, accountID, taskID string) error
	// Labels reads the labels of tasks in lists. StuckCounts counts the stuck tasks of a filter by
	// reason.
	Labels(ctx context.Context, ids ...string) (map[string]mediagate.TaskLabel, error)
	StuckCounts(ctx context.Context, f mediagate.TaskFilter) (map[string]int, error)
}

// SourceStore finds the makers of results that later requests use.
type SourceStore interface {
	// Producer returns the attempt that made the result of a completed task.
	Producer(ctx context.Context, taskID string) (task.Attempt, error)
	// MadeBy finds which task of the account made the clip or voice with the vendor's id.
	MadeBy(ctx context.Context, accountID string, kind mediagate.MadeKind, vendorID string) (mediagate.MadeAt, error)
}

// CallerStore reads keys and accounts.
type CallerStore interface {
	// KeyByHash finds a live key and its account.
	KeyByHash(ctx context.Context, hash [32]byte) (mediagate.Key, mediagate.Account, error)
	Key(ctx context.Context, id string) (mediagate.Key, error)
	TouchKeys(ctx context.Context, usedAt map[string]time.Time) error
	Account(ctx context.Context, id string) (mediagate.Account, error)
}

// SessionStore keeps the sessions of the console.
type SessionStore interface {
	AddSession(ctx context.Context, session mediagate.Session, life time.Duration) error
	// Session finds a live session and the hash of its key.
	Session(ctx context.Context, hash [32]byte) (mediagate.Session, error)
	EndSession(ctx context.Context, hash [32]byte) error
	// TakeLink exchanges a link, once, for a session with another hash.
	TakeLink(ctx context.Context, link, hash [32]byte, life time.Duration) error
}

// RateStore counts submits for all processes.
type RateStore interface {
	// TakeRates takes one submit from each of the limits if each has one left, and otherwise from
	// none. It returns what is left of each, in their order.
	TakeRates(ctx context.Context, limits []mediagate.RateLimit) (left []mediagate.RateLeft, admitted bool, err error)
}

// SecretStore keeps the accounts' webhook secrets.
type SecretStore interface {
	WebhookSecrets(ctx context.Context, accountID string) ([]mediagate.WebhookSecret, error)
	RotateWebhookSecret(ctx context.Context, accountID string, force bool) ([]mediagate.WebhookSecret, error)
}

// EndpointStore keeps the accounts' endpoints and their deliveries. It returns KindNotFound for
// what the account does not have.
type EndpointStore interface {
	// CreateEndpoint returns KindConflict if the account has MaxEndpoints already.
	CreateEndpoint(ctx context.Context, e mediagate.Endpoint) (mediagate.Endpoint, mediagate.Secret, error)
	Endpoint(ctx context.Context, accountID, id string) (mediagate.Endpoint, error)
	Endpoints(
		ctx context.Context, accountID, after string, limit int,
	) (endpoints []mediagate.Endpoint, hasMore bool, err error)
	UpdateEndpoint(
		ctx context.Context, accountID, id string, change func(e *mediagate.Endpoint) error,
	) (mediagate.Endpoint, error)
	DeleteEndpoint(ctx context.Context, accountID, id string) error
	RotateEndpointSecret(ctx context.Context, accountID, id string, force bool) ([]mediagate.WebhookSecret, error)
	// SendTest and Redeliver return KindConflict if the endpoint is disabled.
	SendTest(ctx context.Context, accountID, id string) (mediagate.EndpointDelivery, error)
	Redeliver(ctx context.Context, accountID, id, eventID string) (mediagate.EndpointDelivery, error)
	EndpointDeliveries(
		ctx context.Context, id string, state mediagate.EndpointState, after string, limit int,
	) (deliveries []mediagate.EndpointDelivery, hasMore bool, err error)
}

// AdminAccountStore manages accounts for operators.
type AdminAccountStore interface {
	CreateAccount(ctx context.Context, a mediagate.Account) (mediagate.Account, error)
	Accounts(ctx context.Context, search, after string, limit int) (accounts []mediagate.Account, hasMore bool, err error)
	UpdateAccount(ctx context.Context, id string, change func(a *mediagate.Account) error) (mediagate.Account, error)
	// Abandoned counts the jobs of an account's cancelled tasks that may still run.
	Abandoned(ctx context.Context, accountID string) (mediagate.Abandoned, error)
}

// AdminKeyStore manages keys for operators.
type AdminKeyStore interface {
	CreateKey(ctx context.Context, k mediagate.Key, hash [32]byte) (mediagate.Key, error)
	Keys(ctx context.Context, accountID, after string, limit int) (keys []mediagate.Key, hasMore bool, err error)
	UpdateKey(ctx context.Context, id string, change func(k *mediagate.Key) error) (mediagate.Key, error)
	RotateKey(ctx context.Context, id string, secret mediagate.KeySecret, grace time.Duration) (mediagate.Key, error)
	DeleteKey(ctx context.Context, id string) error
}

// OwnKeyStore manages keys on behalf of another key of the account, the giver. It calls the
// functions that it is given, which decide whether the giver may do that, while neither key can
// change.
type OwnKeyStore interface {
	GiveKey(
		ctx context.Context, giver string, secret mediagate.KeySecret, grant func(giver mediagate.Key) (mediagate.Key, error),
	) (mediagate.Key, error)
	ChangeKey(
		ctx context.Context, giver, id string, change func(giver mediagate.Key, k *mediagate.Key) error,
		check func(giver, was, is mediagate.Key) (widened bool, err error),
	) (mediagate.Key, error)
	RenewKey(
		ctx context.Context, giver, id string, secret mediagate.KeySecret, grace time.Duration,
		check func(giver, k mediagate.Key) error,
	) (mediagate.Key, error)
}

// AuditStore reads the audit.
type AuditStore interface {
	Audit(ctx context.Context, f mediagate.AuditFilter) (entries []mediagate.AuditEntry, hasMore bool, err error)
}

// LedgerStore grants money, and reads the ledger, usage and statements.
type LedgerStore interface {
	Grant(
		ctx context.Context, accountID string, amount mediagate.Micros, reference string,
	) (g mediagate.Transfer, available mediagate.Micros, created bool, err error)
	Transfer(ctx context.Context, accountID, id string) (mediagate.Transfer, error)
	Ledger(
		ctx context.Context, accountID, taskID, after string, limit int,
	) (entries []mediagate.Transfer, hasMore bool, err error)
	CheckLedger(ctx context.Context) (mediagate.LedgerReport, error)
	// Names returns the names of accounts and keys by id.
	Names(ctx context.Context, ids []string) (map[string]string, error)
	// Usage returns what was used, and whether there are more rows than the filter allows.
	Usage(ctx context.Context, f mediagate.UsageFilter) (usage []mediagate.Usage, hasMore bool, err error)
	Statement(ctx context.Context, f mediagate.StatementFilter) (mediagate.Statement, error)
}

// ChannelStore holds the state of channels and lets operators change it.
type ChannelStore interface {
	ChannelStates(ctx context.Context) ([]mediagate.ChannelState, error)
	ChannelRates(ctx context.Context, since time.Time) (map[string]mediagate.ChannelCalls, error)
	ChannelLoad(ctx context.Context, name string) (inFlight, queued int, oldest time.Time, err error)
	AwaitStats(ctx context.Context, channel string) (waiting int, nextDue time.Time, err error)
	EnableChannel(ctx context.Context, channel string, enabled bool) (mediagate.ChannelState, error)
}

// Starter starts and signals the runs of tasks. A failed call loses nothing: after each change of
// a task's row its wake is due within seconds.
type Starter interface {
	// Start starts the run of a submitted task. The task comes without parameters, media, source,
	// prices and callback. It returns KindConflict if the run was started before.
	Start(ctx context.Context, t mediagate.Task) error
	// Wake has the task's run ask for its next step. It reports whether there is a run.
	Wake(ctx context.Context, taskID string) (runs bool, err error)
	// Run returns the id of the task's newest run, if there is one, and its page in Temporal's
	// UI, if that is known. It returns the page even together with an error.
	Run(ctx context.Context, taskID string) (runID, page string, err error)
	// StartJob starts a job that gives a command to many tasks. After an error the job may have
	// begun.
	StartJob(ctx context.Context, job mediagate.TaskJob) error
	// Job returns the progress of a job, and its newest run with that run's page, as Run does. It
	// returns KindNotFound for an unknown job.
	Job(ctx context.Context, id string) (status mediagate.TaskJobStatus, runID, page string, err error)
}

// Runs lists the runs of tasks that Temporal knows.
type Runs interface {
	// RunsSince lists the runs of tasks that began at that time or later, in any order and some
	// of them twice. It returns the token of the next page, or "" after the last one. It returns
	// KindInvalid if page is not such a token.
	RunsSince(ctx context.Context, since time.Time, page string) (runs []mediagate.UncertainTask, next string, err error)
}

// RestoreStore does what is needed after the database was restored (D17).
type RestoreStore interface {
	// NoteRestore records that the database was restored to that time, and returns when that was
	// first recorded.
	NoteRestore(ctx context.Context, to time.Time) (notedAt time.Time, err error)
	// MarkRestored marks up to limit open tasks, once each, because their rows may lack attempts.
	// If it marks fewer than limit, all are marked.
	MarkRestored(ctx context.Context, notedAt time.Time, limit int) (marked int, err error)
	// UncertainTasks lists the marked tasks that wait for an operator.
	UncertainTasks(ctx context.Context, after string, limit int) (tasks []mediagate.UncertainTask, hasMore bool, err error)
	// Unknown returns the ids that belong to no task.
	Unknown(ctx context.Context, ids []string) (unknown []string, err error)
}

// Routes asks the vendors' adapters about requests. It calls no vendor.
type Routes interface {
	// Supports says whether one of our channels supports a request for the model by this route.
	// It reads only params and source of the job.
	Supports(model string, route mediagate.Route, job mediagate.Job) Support
}

// Moderator checks what clients write for vendors.
type Moderator interface {
	// Check returns an error if the texts cannot be checked and must not pass: KindUnavailable.
	Check(ctx context.Context, texts []string) (mediagate.Verdict, error)
}

// Uploads stores the media in the bodies of requests.
type Uploads interface {
	// PutUpload stores a picture of an account and returns the object's key. The id is unique
	// within the account.
	PutUpload(ctx context.Context, accountID, id string, picture io.Reader) (key string, err error)
}

// Remover removes the files of erased tasks from the bucket.
type Remover interface {
	// Remove removes all objects below a folder, unfinished uploads included, and the objects
	// with these keys.
	Remove(ctx context.Context, folder string, objects ...string) error
}

// Files keeps the uploads that have a public link, and reads any object of the bucket.
type Files interface {
	// PutFile stores a file of at most maxBytes while it arrives, and returns its size. If the
	// reader fails it stores nothing.
	PutFile(ctx context.Context, f mediagate.File, file io.Reader, maxBytes int64) (bytes int64, err error)
	// Size returns the length of an object. OpenAt reads it from an offset on. Both return KindGone
	// if there is no such object.
	Size(ctx context.Context, key string) (int64, error)
	OpenAt(ctx context.Context, key string, offset int64) (io.ReadCloser, error)
}

// Signer makes links to stored results, without I/O.
type Signer interface {
	Sign(ctx context.Context, r mediagate.Result, ttl time.Duration) (mediagate.Link, error)
	// SignAs signs a link for a method, GET or HEAD. The client saves the file under the name, or
	// shows it if that is empty.
	SignAs(ctx context.Context, r mediagate.Result, ttl time.Duration, method, name string) (mediagate.Link, error)
}

// Checks report whether the parts that the API depends on work. A nil check passes.
type Checks struct {
	Database func(ctx context.Context) error
	Clock    func(ctx context.Context) error
	Temporal func(ctx context.Context) error
	Bucket   func(ctx context.Context) error
	Catalog  func(ctx context.Context) error // whether the current files are in use
	// Moderation reports whether the current lists of words are in use.
	Moderation func(ctx context.Context) error
	// Operators reports whether the operators in the current settings file are in force.
	Operators func(ctx context.Context) error
	// OIDC reports whether the identity provider answers.
	OIDC func(ctx context.Context) error
}
