package storagetest

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/oklog/ulid/v2"
	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/storage"
	"github.com/mediagate/mediagate/task"
)

// Backend is a fresh, migrated database of one test.
type Backend struct {
	// Open opens a store on the database with that configuration, whose
	// Dialector is not set. The test closes it.
	Open func(t *testing.T, c storage.Config) *storage.Store
	// Raw opens another connection, past the store, to look and to tamper.
	Raw func(t *testing.T) *gorm.DB
	// Files are a pattern of the database's files, in which what was erased may not
	// be found either; empty: the server keeps them.
	Files string
}

// Run runs the suite without the groups that are left out; fresh makes a database for
// each test.
func Run(t *testing.T, fresh func(t *testing.T) Backend, without ...string) {
	t.Helper()
	groups := pathTests()
	maps.Copy(groups, map[string]map[string]func(*bench){
		"accounts":   accountTests,
		"audit":      auditTests,
		"giving":     giveTests,
		"ledger":     ledgerTests,
		"secrets":    secretTests,
		"speeches":   speechTests,
		"submit":     submitTests,
		"limits":     withBoundaries(limitTests),
		"rates":      rateTests,
		"usage":      usageTests,
		"statements": statementTests,
		"lists":      listTests,
		"references": referenceTests,
		"makers":     makerTests,
		"erasure":    eraseTests,
		"repeats":    modalRowTests,
		"invariants": withTampering(checkTests),
		"slices":     sliceTests,
		"model":      modelTests,
		"machine":    machineTests,
		"storm":      stormTests,
		"crowd":      crowdTests,
	})
	maps.DeleteFunc(groups, func(name string, _ map[string]func(*bench)) bool { return slices.Contains(without, name) })
	runGroups(t, groups, func(t *testing.T) *bench {
		t.Helper()
		return newBench(t, fresh(t))
	})
}

func runGroups(t *testing.T, groups map[string]map[string]func(*bench), fresh func(t *testing.T) *bench) {
	t.Helper()
	for group, tests := range groups {
		t.Run(group, func(t *testing.T) {
			t.Parallel()
			for name, test := range tests {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					b := fresh(t)
					test(b)
					if !b.corrupt {
						b.checkLedger()
					}
				})
			}
		})
	}
}

// bench is one test's store, with a clock that stands until it is moved.
type bench struct {
	*testing.T
	Path
	office  // nil in a store that knows no money
	backend Backend
	raw     *gorm.DB // opened at first use
	clock   *clock
	corrupt bool // the test tampered with the ledger on purpose
	tasks   atomic.Int64
	payers  atomic.Int64
}

// office is what a store has besides the durable path.
type office interface {
	Account(ctx context.Context, id string) (mediagate.Account, error)
	Accounts(ctx context.Context, after string, limit int) (accounts []mediagate.Account, hasMore bool, err error)
	CreateAccount(ctx context.Context, a mediagate.Account) (mediagate.Account, error)
	UpdateAccount(ctx context.Context, id string, change func(a *mediagate.Account) error) (mediagate.Account, error)
	Key(ctx context.Context, id string) (mediagate.Key, error)
	KeyByHash(ctx context.Context, hash [32]byte) (mediagate.Key, mediagate.Account, error)
	LiveKeys(ctx context.Context, hashes [][32]byte) (live [][32]byte, err error)
	Keys(ctx context.Context, accountID, after string, limit int) (keys []mediagate.Key, hasMore bool, err error)
	CreateKey(ctx context.Context, k mediagate.Key, hash [32]byte) (mediagate.Key, error)
	UpdateKey(ctx context.Context, id string, change func(k *mediagate.Key) error) (mediagate.Key, error)
	RotateKey(ctx context.Context, id string, secret mediagate.KeySecret, grace time.Duration) (mediagate.Key, error)
	DeleteKey(ctx context.Context, id string) error
	GiveKey(ctx context.Context, giver string, secret mediagate.KeySecret, grant func(giver mediagate.Key) (mediagate.Key, error)) (mediagate.Key, error)
	ChangeKey(ctx context.Context, giver, id string, change func(giver mediagate.Key, k *mediagate.Key) error, check func(giver, was, is mediagate.Key) (widened bool, err error)) (mediagate.Key, error)
	RenewKey(ctx context.Context, giver, id string, secret mediagate.KeySecret, grace time.Duration, check func(giver, k mediagate.Key) error) (mediagate.Key, error)
	Audit(ctx context.Context, accountID, after string, limit int) (entries []mediagate.AuditEntry, hasMore bool, err error)
	TouchKeys(ctx context.Context, usedAt map[string]time.Time) error
	TakeRates(ctx context.Context, limits []mediagate.RateLimit) (left []mediagate.RateLeft, admitted bool, err error)
	Grant(ctx context.Context, accountID string, amount mediagate.Micros, reference string) (g mediagate.Transfer, available mediagate.Micros, created bool, err error)
	Ledger(ctx context.Context, accountID, taskID, after string, limit int) (transfers []mediagate.Transfer, hasMore bool, err error)
	Transfer(ctx context.Context, accountID, id string) (mediagate.Transfer, error)
	CheckLedger(ctx context.Context) (mediagate.LedgerReport, error)
	CheckLedgerSince(ctx context.Context) (mediagate.LedgerReport, error)
	Usage(ctx context.Context, f mediagate.UsageFilter) (usage []mediagate.Usage, hasMore bool, err error)
	CountUsage(ctx context.Context, limit int) (counted int, err error)
	Statement(ctx context.Context, f mediagate.StatementFilter) (mediagate.Statement, error)
	OpenSpeech(ctx context.Context, n mediagate.Speech, lease time.Duration) error
	RenewSpeech(ctx context.Context, id string, lease time.Duration) (open bool, err error)
	EndSpeech(ctx context.Context, id string, end mediagate.SpeechState) (won bool, err error)
	VoidSpeeches(ctx context.Context, limit int) (voided int, err error)
	WebhookSecrets(ctx context.Context, accountID string) ([]mediagate.WebhookSecret, error)
	RotateWebhookSecret(ctx context.Context, accountID string, force bool) (secrets []mediagate.WebhookSecret, err error)
	ResealWebhookSecrets(ctx context.Context) (resealed int, seals mediagate.Seals, err error)
	WebhookSeals(ctx context.Context) (mediagate.Seals, error)
	Replay(ctx context.Context, accountID, idemKey, path string, body [32]byte) (taskID string, found bool, err error)
	Task(ctx context.Context, accountID, id string) (mediagate.Task, error)
	Tasks(ctx context.Context, f mediagate.TaskFilter) (tasks []mediagate.Task, hasMore bool, err error)
	Versions(ctx context.Context, ids []string) (map[string]int64, error)
	CountOpen(ctx context.Context) (int, error)
	MadeBy(ctx context.Context, accountID string, kind mediagate.MadeKind, vendorID string) (mediagate.MadeAt, error)
	Migrate(ctx context.Context) error
	Ping(ctx context.Context) error
	Change(ctx context.Context, id string, events ...task.Event) (storage.Changed, error)
	OpenIntent(ctx context.Context, id string, slots mediagate.Slots, intent task.IntentStored) (storage.Changed, error)
}

func newClock() *clock { return &clock{now: time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)} }

type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// pass moves the clock.
func (b *bench) pass(d time.Duration) {
	b.clock.mu.Lock()
	defer b.clock.mu.Unlock()
	b.clock.now = b.clock.now.Add(d)
}

func (b *bench) now() time.Time { return b.clock.read() }

var encryptionKey = []byte("0123456789abcdef0123456789abcdef")

func newBench(t *testing.T, backend Backend) *bench {
	t.Helper()
	b := &bench{T: t, backend: backend, clock: newClock()}
	// Tests ask what comes of a crowd, not how soon: its last writer may wait for as
	// long as the machine takes.
	store := backend.Open(t, storage.Config{Now: b.clock.read, EncryptionKeys: [][]byte{encryptionKey}, Patience: time.Hour})
	b.Path, b.office = store, store
	return b
}

// unit is an amount in whole currency units.
func unit(n int64) mediagate.Micros { return mediagate.Micros(n) * mediagate.MicrosPerUnit }

func (b *bench) noError(err error) {
	b.Helper()
	if err != nil {
		b.Fatalf("unexpected error: %v", err)
	}
}

func (b *bench) kind(err error, want mediagate.Kind) {
	b.Helper()
	if err == nil {
		b.Fatalf("no error, want kind %s", want)
	}
	if got := mediagate.KindOf(err); got != want {
		b.Fatalf("error %v is of kind %s, want %s", err, got, want)
	}
}

func same[T any](b *bench, what string, got, want T) {
	b.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		b.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

func (b *bench) checkLedger() {
	b.Helper()
	if b.office == nil {
		return
	}
	report, err := b.CheckLedger(b.Context())
	b.noError(err)
	if !report.OK {
		b.Fatalf("the ledger is broken:\n%s", strings.Join(report.Problems, "\n"))
	}
}

// payer is an account with one key.
type payer struct{ account, key string }

// newPayer makes an account with that balance and an unlimited key.
func (b *bench) newPayer(balance mediagate.Micros) payer {
	b.Helper()
	return b.newPayerKey(balance, mediagate.Key{Unlimited: true})
}

func (b *bench) newPayerKey(balance mediagate.Micros, k mediagate.Key) payer {
	b.Helper()
	if b.office == nil {
		return payer{fmt.Sprintf("acc_%d", b.payers.Add(1)), "key"}
	}
	account, err := b.CreateAccount(b.Context(), mediagate.Account{Name: "someone"})
	b.noError(err)
	if balance != 0 {
		_, _, _, err = b.Grant(b.Context(), account.ID, balance, "opening")
		b.noError(err)
	}
	k.AccountID = account.ID
	key, err := b.CreateKey(b.Context(), k, sha256.Sum256([]byte(account.ID)))
	b.noError(err)
	return payer{account.ID, key.ID}
}

// plan is the snapshot that test tasks carry.
var plan = mediagate.Plan{
	Routes:   []mediagate.Route{{Provider: "kling", Upstream: "kling-v3", Operation: "text2video"}},
	Expected: 90 * time.Second, Timeout: 2 * time.Hour, OnUnknown: mediagate.OnUnknownPark, Media: "video", MaxBytes: 1 << 30,
}

// draft is a task that nobody submitted yet.
func (b *bench) draft(p payer, hold mediagate.Micros) mediagate.NewTask {
	now := b.now()
	return mediagate.NewTask{
		Task: mediagate.Task{
			ID: b.newTaskID(), AccountID: p.account, KeyID: p.key, Model: "alpha-v3", Type: mediagate.TypeVideo,
			Params: []byte(`{"prompt": "a  cat", "duration": 5.0}`), RequestID: "req_1", Plan: plan,
			Charges: []mediagate.Charge{{Item: "alpha-v3 std", Unit: mediagate.UnitSecond, Quantity: 1, UnitPrice: hold}}, Hold: hold,
			CreatedAt: now, DeadlineAt: now.Add(2 * time.Hour),
			Webhook: &mediagate.Webhook{URL: "https://receiver.example.com/hook", State: mediagate.WebhookPending},
		},
		Path: "/v1/videos/generations", BodySHA256: sha256.Sum256([]byte("body")),
	}
}

// newTaskID is an id as the API makes it, whose time is the clock's.
func (b *bench) newTaskID() string {
	var entropy [10]byte
	binary.BigEndian.PutUint64(entropy[2:], uint64(b.tasks.Add(1)))
	var id ulid.ULID
	b.noError(id.SetTime(ulid.Timestamp(b.now())))
	b.noError(id.SetEntropy(entropy[:]))
	return "task_" + id.String()
}

// submit takes a task in and returns its id.
func (b *bench) submit(p payer, hold mediagate.Micros) string {
	b.Helper()
	n := b.draft(p, hold)
	id, replayed, err := b.Submit(b.Context(), n)
	b.noError(err)
	if id != n.Task.ID || replayed {
		b.Fatalf("submitted %s: got %s, replayed %v", n.Task.ID, id, replayed)
	}
	return id
}

const channelName = "kling-a"

func (b *bench) intent(taskID string, n int) mediagate.Attempt {
	b.Helper()
	row, opened, err := b.OpenAttempt(b.Context(), mediagate.Attempt{
		TaskID: taskID, N: n, Channel: channelName, Provider: "kling", Fingerprint: "fp",
		Route: plan.Routes[0], ExternalID: fmt.Sprintf("%s-%d", taskID, n), SendBefore: b.now().Add(10 * time.Second),
	}, mediagate.Slots{})
	b.noError(err)
	if !opened {
		b.Fatalf("attempt %d of %s was there already: %s", n, taskID, row.State)
	}
	return row
}

// lost is the intent of the first attempt, with its fate open.
func (b *bench) lost(taskID string) mediagate.Attempt {
	b.Helper()
	row := b.intent(taskID, 1)
	b.noError(b.MarkUnknown(b.Context(), taskID, 1, row.SendBefore, "lost"))
	return row
}

const absentGap = 30 * time.Second

// absentTwice is two lookups of a lost attempt that found nothing.
func (b *bench) absentTwice(taskID string, row mediagate.Attempt) {
	b.Helper()
	for range 2 {
		_, _, err := b.NoteAbsent(b.Context(), taskID, row.N, row.SendBefore, b.now(), absentGap)
		b.noError(err)
		b.pass(absentGap)
	}
}

// retry is an operator's command that a run of the task has taken.
func (b *bench) retry(taskID string) {
	b.Helper()
	b.pass(time.Microsecond) // no earlier than what it is about
	row, err := b.RecordAction(b.Context(), mediagate.Action{TaskID: taskID, Action: mediagate.ActionRetry})
	b.noError(err)
	taken, err := b.TakeAction(b.Context(), row.ID, "run")
	b.noError(err)
	same(b, "taken", taken, true)
}

func ref(taskID string) mediagate.JobRef {
	return mediagate.JobRef{JobID: "job-" + taskID, ExternalID: taskID + "-1", Operation: "text2video"}
}

// accepted is a task whose first attempt the vendor has, due now.
func (b *bench) accepted(p payer, hold mediagate.Micros) string {
	b.Helper()
	id := b.submit(p, hold)
	b.intent(id, 1)
	ended, err := b.AcceptAttempt(b.Context(), id, 1, mediagate.Submission{Ref: ref(id)}, b.now())
	b.noError(err)
	if ended {
		b.Fatalf("the vendor's acceptance of %s came too late", id)
	}
	return id
}

func (b *bench) task(id string) mediagate.Task {
	b.Helper()
	t, err := b.TaskByID(b.Context(), id)
	b.noError(err)
	return t
}

func (b *bench) attempt(id string, n int) mediagate.Attempt {
	b.Helper()
	a, err := b.Attempt(b.Context(), id, n)
	b.noError(err)
	return a
}

func (b *bench) story(id string) mediagate.Story {
	b.Helper()
	s, err := b.Story(b.Context(), id)
	b.noError(err)
	return s
}

func (b *bench) balance(account string) (available, held, spent mediagate.Micros) {
	b.Helper()
	a, err := b.Account(b.Context(), account)
	b.noError(err)
	return a.Available, a.Held, a.Spent
}

func (b *bench) money(p payer, available, held, spent mediagate.Micros) {
	b.Helper()
	if b.office == nil {
		return
	}
	gotAvailable, gotHeld, gotSpent := b.balance(p.account)
	same(b, "available, held, spent", []mediagate.Micros{gotAvailable, gotHeld, gotSpent}, []mediagate.Micros{available, held, spent})
	k, err := b.Key(b.Context(), p.key)
	if mediagate.Is(err, mediagate.KindNotFound) {
		return // deleted
	}
	b.noError(err)
	same(b, "the key's held, spent", []mediagate.Micros{k.Held, k.Spent}, []mediagate.Micros{held, spent})
}

func completed(id string, cost mediagate.Micros) mediagate.Settlement {
	return mediagate.Settlement{
		TaskID: id, N: 1, Status: mediagate.StatusCompleted, Cost: cost, WebhookBody: []byte(`{"id":"` + id + `"}`),
		Results: []mediagate.Result{{Key: id + "/1/0.mp4", MimeType: "video/mp4", Size: 42, SHA256: strings.Repeat("ab", 32), Duration: 5.04}},
	}
}

func failed(id string) mediagate.Settlement {
	return mediagate.Settlement{
		TaskID: id, N: 1, Status: mediagate.StatusFailed, WebhookBody: []byte(`{"id":"` + id + `"}`),
		Failure: &mediagate.Failure{Code: mediagate.CodeGenerationFailed, Message: "the vendor failed", Retryable: true},
	}
}

func cancelled(id string) mediagate.Settlement {
	return mediagate.Settlement{TaskID: id, Status: mediagate.StatusCancelled}
}

func (b *bench) settle(end mediagate.Settlement) mediagate.Story {
	b.Helper()
	story, won, err := b.Settle(b.Context(), end)
	b.noError(err)
	if !won {
		b.Fatalf("task %s had ended already: %s", end.TaskID, story.Status)
	}
	return story
}

// race runs f from n goroutines that start together.
func (b *bench) race(n int, f func(i int)) {
	b.Helper()
	var group sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		group.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	group.Wait()
}

// waiting is how many rows the channel polls for.
func (b *bench) waiting() int {
	b.Helper()
	n, _, err := b.AwaitStats(b.Context(), channelName)
	b.noError(err)
	return n
}

// count is the number of rows of a query.
func (b *bench) count(query string, args ...any) int {
	b.Helper()
	var n int
	b.noError(b.database().Raw(query, args...).Scan(&n).Error)
	return n
}

// database is a connection past the store.
func (b *bench) database() *gorm.DB {
	b.Helper()
	if b.raw == nil {
		b.raw = b.backend.Raw(b.T)
	}
	return b.raw
}

func sorted(items []string) []string {
	out := slices.Clone(items)
	slices.Sort(out)
	return out
}
