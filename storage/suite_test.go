package storage_test

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"os"
	"runtime/debug"
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
	"github.com/mediagate/mediagate/storage/pgtest"
	"github.com/mediagate/mediagate/task"
)

// backend is a fresh, migrated database of one test.
type backend struct {
	// open opens a store on the database with that configuration, whose Dialector is
	// not set. The test's end closes it.
	open func(t *testing.T, c storage.Config) *storage.Store
	// raw opens another connection, past the store, to look and to tamper.
	raw func(t *testing.T) *gorm.DB
	// files are a pattern of the database's files, in which what was erased may not
	// be found either; empty: the server keeps them.
	files string
}

// facts are what is true of the store whatever its database is, each under its name.
type facts map[string]func(*bench)

// prove runs a test of each fact on PostgreSQL and on SQLite. Behind a pooler it runs
// them where there is time for that.
func prove(t *testing.T, f facts) {
	t.Helper()
	for name, fresh := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f.on(t, fresh)
		})
	}
	if os.Getenv("MEDIAGATE_VERIFY") != "" {
		f.pooled(t)
	}
}

// provePooled is prove that never leaves out the pooler. What it is called for has each
// kind of statement, those that the product makes most.
func provePooled(t *testing.T, f facts) {
	t.Helper()
	prove(t, f)
	if os.Getenv("MEDIAGATE_VERIFY") == "" {
		f.pooled(t)
	}
}

// pooled proves the facts behind a pooler: the store does there all that it does without
// one.
func (f facts) pooled(t *testing.T) {
	t.Helper()
	t.Run("pooled", func(t *testing.T) {
		t.Parallel()
		pooler := pgtest.NewPooler(t, pgtest.New(t))
		f.on(t, func(t *testing.T) backend {
			t.Helper()
			return postgresAt(pgtest.New(t), pooler.URL)
		})
	})
}

// on proves each of the facts on a fresh database.
func (f facts) on(t *testing.T, fresh func(t *testing.T) backend) {
	t.Helper()
	for name, fact := range f {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, fresh(t))
			defer b.ends()
			fact(b)
			if !b.corrupt {
				b.checkLedger()
				b.checkRows()
			}
		})
	}
}

// bench is one test's store, with a clock that stands until it is moved.
type bench struct {
	*testing.T
	*storage.Store
	backend backend
	raw     *gorm.DB // opened at first use
	clock   *clock
	corrupt bool // the test tampered with the ledger on purpose
	tasks   atomic.Int64
}

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

func (b *bench) now() time.Time { return b.Now() }

var encryptionKey = []byte("0123456789abcdef0123456789abcdef")

func newBench(t *testing.T, backend backend) *bench {
	t.Helper()
	b := &bench{T: t, backend: backend, clock: &clock{now: time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)}}
	// Tests ask what comes of a crowd, not how soon: its last writer may wait for as
	// long as the machine takes.
	b.Store = backend.open(t, storage.Config{Now: b.clock.read, EncryptionKeys: [][]byte{encryptionKey}, Patience: time.Hour})
	return b
}

// benchOf is for what a test does with a store that it has opened itself.
func benchOf(t *testing.T, s *storage.Store) *bench {
	t.Helper()
	return &bench{T: t, Store: s}
}

// unit is an amount in whole currency units.
func unit(n int64) mediagate.Micros { return mediagate.Micros(n) * mediagate.MicrosPerUnit }

func (b *bench) noError(err error) {
	b.Helper()
	if err != nil {
		b.Fatalf("unexpected error: %v", err)
	}
}

// kind expects an error of that kind, and returns it.
func (b *bench) kind(err error, want mediagate.Kind) mediagate.Error {
	b.Helper()
	var e *mediagate.Error
	if !errors.As(err, &e) || mediagate.KindOf(err) != want {
		b.Fatalf("error %v, want kind %s", err, want)
	}
	return *e
}

func same[T any](b *bench, what string, got, want T) {
	b.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		b.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

func (b *bench) checkLedger() {
	b.Helper()
	report := must(b.CheckLedger(b.Context()))
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
	account := must(b.CreateAccount(b.Context(), mediagate.Account{Name: "someone"}))
	if balance != 0 {
		must3(b.Grant(b.Context(), account.ID, balance, "opening"))
	}
	k.AccountID = account.ID
	key := must(b.CreateKey(b.Context(), k, sha256.Sum256([]byte(account.ID))))
	return payer{account.ID, key.ID}
}

// plan is the snapshot that test tasks carry.
var plan = mediagate.Plan{
	Routes:   []mediagate.Route{{Provider: "kling", Upstream: "kling-v3", Operation: "text2video"}},
	Expected: 90 * time.Second, Timeout: 2 * time.Hour, OnUnknown: mediagate.OnUnknownPark, Media: "video", MaxBytes: 1 << 30,
}

// draft is a task that nobody submitted yet. It costs a micro a second.
func (b *bench) draft(p payer, hold mediagate.Micros) mediagate.NewTask {
	now := b.now()
	return mediagate.NewTask{
		Task: mediagate.Task{
			ID: b.newTaskID(), AccountID: p.account, KeyID: p.key, Model: "alpha-v3", Type: mediagate.TypeVideo,
			Params: []byte(`{"prompt": "a  cat", "duration": 5.0}`), RequestID: "req_1", Plan: plan,
			Charges: []mediagate.Charge{{Item: "alpha-v3 std", Unit: mediagate.UnitSecond, Quantity: int64(hold), UnitPrice: 1}}, Hold: hold,
			CreatedAt: now, DeadlineAt: now.Add(2 * time.Hour),
			Webhook: mediagate.Webhook{URL: "https://receiver.example.com/hook", State: mediagate.WebhookPending},
		},
		Path: "/v1/videos/generations", BodySHA256: sha256.Sum256([]byte("body")),
	}
}

// named is a draft under an id of the test's, without a callback.
func (b *bench) named(p payer, id string) mediagate.NewTask {
	n := b.draft(p, 1)
	n.Task.ID, n.Task.Webhook = id, mediagate.Webhook{}
	return n
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
	id, replayed := must2(b.Submit(b.Context(), n))
	if id != n.Task.ID || replayed {
		b.Fatalf("submitted %s: got %s, replayed %v", n.Task.ID, id, replayed)
	}
	return id
}

const channelName = "kling-a"

// change applies events to a task, which none may refuse.
func (b *bench) change(id string, events ...task.Event) task.Changed {
	b.Helper()
	changed := must(b.Change(b.Context(), id, events...))
	return changed
}

// intentOf is the intent of a task's attempt, at a vendor that can neither stop a job
// nor find one.
func intentOf(id string, n int, now time.Time) task.IntentStored {
	return task.IntentStored{Sending: task.Sending{
		N: n, Channel: channelName, Provider: "kling", Fingerprint: "fp", Route: plan.Routes[0], ExternalID: task.ExternalID(id, n),
		SendBefore: now.Add(10 * time.Second), CallEnds: now.Add(45 * time.Second),
	}}
}

// intent stores the intent of the first attempt.
func (b *bench) intent(id string) task.IntentStored {
	b.Helper()
	e := intentOf(id, 1, b.now())
	b.change(id, e)
	return e
}

func ref(taskID string) mediagate.JobRef {
	return mediagate.JobRef{JobID: "job-" + taskID, ExternalID: taskID, Operation: "text2video"}
}

// accepted is a task whose first attempt the vendor has, due now.
func (b *bench) accepted(p payer, hold mediagate.Micros) string {
	b.Helper()
	id := b.submit(p, hold)
	b.accept(id, b.now())
	return id
}

func (b *bench) accept(id string, firstPollAt time.Time) {
	b.Helper()
	b.change(id, intentOf(id, 1, b.now()), task.Accepted{Sending: intentOf(id, 1, b.now()).Sending, Submission: mediagate.Submission{Ref: ref(id)}, FirstPollAt: firstPollAt})
}

// parked is a task without an attempt that no step can be made of.
func (b *bench) parked(p payer, reason mediagate.ParkReason) string {
	b.Helper()
	id := b.submit(p, unit(1))
	b.park(id, reason)
	return id
}

// park parks a task whose next step is to submit.
func (b *bench) park(id string, reason mediagate.ParkReason) {
	b.Helper()
	next := b.change(id).Step
	changed := b.change(id, task.StepEnded{Step: task.Submit, N: next.N, Failed: true, Kind: mediagate.KindShutOut, Code: string(reason)})
	same(b, "reason", changed.State.Wait.Reason, reason)
}

func (b *bench) task(id string) mediagate.Task {
	b.Helper()
	t := must(b.TaskByID(b.Context(), id))
	return t
}

// state is a task with its last attempt.
func (b *bench) state(id string) *task.State {
	b.Helper()
	s := must(b.State(b.Context(), id, 0))
	return &s
}

// sending is that of the task's last attempt.
func (b *bench) sending(id string) task.Sending {
	b.Helper()
	return b.state(id).Last().Sending
}

// attempt is the task's last one.
func (b *bench) attempt(id string) task.Attempt {
	b.Helper()
	return *b.state(id).Last()
}

func (b *bench) balance(account string) (available, held, spent mediagate.Micros) {
	b.Helper()
	a := must(b.Account(b.Context(), account))
	return a.Available, a.Held, a.Spent
}

func (b *bench) money(p payer, available, held, spent mediagate.Micros) {
	b.Helper()
	gotAvailable, gotHeld, gotSpent := b.balance(p.account)
	same(b, "available, held, spent", []mediagate.Micros{gotAvailable, gotHeld, gotSpent}, []mediagate.Micros{available, held, spent})
	k, err := b.Key(b.Context(), p.key)
	if mediagate.Is(err, mediagate.KindNotFound) {
		return // deleted
	}
	b.noError(err)
	same(b, "the key's held, spent", []mediagate.Micros{k.Held, k.Spent}, []mediagate.Micros{held, spent})
}

// end is a task and the events that end it.
type end struct {
	id     string
	status mediagate.Status
	events []task.Event
}

// success is how a job ends that made a file, for that price. A price of zero is that
// of the whole hold.
func success(cost mediagate.Micros) mediagate.Outcome {
	return mediagate.Outcome{Succeeded: true, Media: []mediagate.Media{{URL: "https://cdn.example.com/1.mp4"}}, Seconds: float64(cost)}
}

var failure = mediagate.Outcome{Failure: &mediagate.Failure{Code: mediagate.CodeContentPolicy, Message: "refused"}, VendorText: "1301"}

func files(id string) []mediagate.Result {
	return []mediagate.Result{{Key: id + "/1/0.mp4", MimeType: "video/mp4", Size: 42, SHA256: strings.Repeat("ab", 32), Duration: 5.04}}
}

// completed ends a task whose first attempt the vendor has.
func completed(id string, cost mediagate.Micros) end {
	return completedBy(id, 1, success(cost), files(id))
}

func completedBy(id string, n int, o mediagate.Outcome, files []mediagate.Result) end {
	return end{id, mediagate.StatusCompleted, []task.Event{task.VendorEnded{N: n, Outcome: o}, task.Mirrored{N: n, Results: files}}}
}

// made completes a task that has no attempt yet, by a synchronous vendor.
func made(id string, cost mediagate.Micros) end {
	intent, o := intentOf(id, 1, time.Time{}), success(cost)
	intent.Route.Sync = true
	return end{id, mediagate.StatusCompleted, []task.Event{
		intent, task.Accepted{Sending: intent.Sending, Submission: mediagate.Submission{Outcome: &o}}, task.Mirrored{N: 1, Results: files(id)},
	}}
}

// failed is an operator's end, cancelled the client's.
func failed(id string) end {
	return end{id, mediagate.StatusFailed, []task.Event{task.FailRequested{}, task.EndDue{}}}
}

func cancelled(id string) end {
	return end{id, mediagate.StatusCancelled, []task.Event{task.CancelRequested{}, task.EndDue{}}}
}

func (b *bench) settle(e end) task.Changed {
	b.Helper()
	changed := b.change(e.id, e.events...)
	if changed.State.Status != e.status || changed.Effects.Entry == "" {
		b.Fatalf("task %s is %s, want %s; entry %q", e.id, changed.State.Status, e.status, changed.Effects.Entry)
	}
	return changed
}

// race runs f from n goroutines that start together.
func (b *bench) race(n int, f func(i int)) {
	b.Helper()
	var group sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		group.Go(func() {
			defer b.ends()
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
	n, _ := must2(b.AwaitStats(b.Context(), channelName))
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
		b.raw = b.backend.raw(b.T)
	}
	return b.raw
}

func sorted(items []string) []string {
	out := slices.Clone(items)
	slices.Sort(out)
	return out
}

// unexpected is the error of a call that must not fail. It ends the test.
type unexpected struct{ error }

// ends fails the test for a call that must not have failed.
func (b *bench) ends() {
	if r := recover(); r != nil {
		e, ok := r.(unexpected)
		if !ok {
			panic(r)
		}
		b.Errorf("unexpected error: %v\n%s", e.error, debug.Stack())
	}
}

// must, must2 and must3 are what a call gives that must not fail.
func must[T any](v T, err error) T {
	if err != nil {
		panic(unexpected{err})
	}
	return v
}

func must2[T, U any](v T, u U, err error) (T, U) { return must(v, err), u }

func must3[T, U, V any](v T, u U, w V, err error) (T, U, V) { return must(v, err), u, w }

// errOf is the error of a call, whatever else it gives.
func errOf(values ...any) error {
	err, _ := values[len(values)-1].(error)
	return err
}

// secondKey is another key of the payer's account, with a quota.
func (b *bench) secondKey(p payer) payer {
	b.Helper()
	k := must(b.CreateKey(b.Context(), mediagate.Key{AccountID: p.account, Quota: unit(40)}, sha256.Sum256([]byte(p.key))))
	return payer{p.account, k.ID}
}

// stored is a time as a parameter past the store.
func (b *bench) stored(t time.Time) any {
	if b.database().Name() == "sqlite" {
		return t.UnixMicro()
	}
	return t
}

// checkRows proves what is true of all rows at any time.
func (b *bench) checkRows() {
	b.Helper()
	for what, query := range map[string]string{
		"rows are polled for that no attempt waits for": `SELECT COUNT(*) FROM awaits w JOIN attempts a ON a.task_id = w.task_id AND a.n = w.n
			WHERE a.state NOT IN ('accepted', 'abandoned') OR a.document LIKE '%"outcome":%'`,
		"attempts go on for tasks that have ended": `SELECT COUNT(*) FROM attempts a JOIN tasks t ON t.id = a.task_id
			WHERE t.status IN ('completed', 'failed', 'cancelled') AND a.state NOT IN ('ended', 'rejected', 'abandoned')`,
		"attempts have a slot for ever": "SELECT COUNT(*) FROM attempts WHERE state = 'abandoned' AND slot_until IS NULL",
		"attempts count for another account": `SELECT COUNT(*) FROM attempts a JOIN tasks t ON t.id = a.task_id
			WHERE a.account_id <> t.account_id`,
		"tasks are queued and not in the queue, or there and not queued": `SELECT COUNT(*) FROM tasks t
			WHERE (wait = 'slot') <> EXISTS (SELECT 1 FROM queue q WHERE q.task_id = t.id)
				OR wait <> '' AND status NOT IN ('pending', 'processing')`,
		"rows of the queue have no turn": `SELECT COUNT(*) FROM queue q
			WHERE NOT EXISTS (SELECT 1 FROM turns t WHERE t.channel = q.channel AND t.account_id = q.account_id)`,
		"open tasks have no wake": `SELECT COUNT(*) FROM tasks t
			WHERE status IN ('pending', 'processing') AND NOT EXISTS (SELECT 1 FROM wakes w WHERE w.task_id = t.id AND w.kind = 'run')`,
	} {
		if n := b.count(query); n > 0 {
			b.Errorf("%d %s", n, what)
		}
	}
}
