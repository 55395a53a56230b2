package storage_test

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/storage"
	"github.com/mediagate/mediagate/storage/pgtest"
)

// meeting has several calls of a store meet at rows that somebody keeps, so that each
// has locked what comes before these when it goes on.
type meeting struct {
	tenant
	t     *testing.T
	db    *sql.DB
	calls sync.WaitGroup
	under atomic.Int64 // calls that have not ended
}

// newMeeting is a meeting at a server of its own tables; settings are those of its
// connections.
func newMeeting(t *testing.T, c storage.Config, settings string) *meeting {
	t.Helper()
	url := pgtest.New(t)
	s := openPostgres(t, url+noVictims+"&lock_timeout=5000"+settings, c)
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return &meeting{tenant: newTenant(t, s, "one"), t: t, db: db}
}

func (m *meeting) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

// keep runs the statement in a transaction that lasts until release.
func (m *meeting) keep(query string, args ...any) (release func()) {
	m.t.Helper()
	tx, err := m.db.BeginTx(m.t.Context(), nil)
	m.must(err)
	m.t.Cleanup(func() { _ = tx.Rollback() })
	_, err = tx.ExecContext(m.t.Context(), query, args...)
	m.must(err)
	return func() { _ = tx.Rollback() }
}

// begin makes a call, and waits until it has ended or waits for a lock.
func (m *meeting) begin(what string, call func(ctx context.Context) error) {
	m.t.Helper()
	m.under.Add(1)
	m.calls.Go(func() {
		defer m.under.Add(-1)
		if err := call(m.t.Context()); err != nil {
			m.t.Errorf("%s: %v", what, err)
		}
	})
	m.still(what)
}

// still waits until each call that has not ended waits for a lock.
func (m *meeting) still(what string) {
	m.t.Helper()
	eventually(m.t, what+" ends or waits", func(ctx context.Context) error {
		var waiting int64
		err := m.db.QueryRowContext(ctx, `SELECT COUNT(DISTINCT l.pid) FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
			WHERE a.datname = current_database() AND NOT l.granted`).Scan(&waiting)
		if under := m.under.Load(); err == nil && waiting != under {
			err = fmt.Errorf("%d of %d wait", waiting, under)
		}
		return err
	})
}

// run makes an attempt of the task, which the channel polls for.
func (m *meeting) run(id string, n int) {
	m.t.Helper()
	_, _, err := m.OpenAttempt(m.t.Context(), mediagate.Attempt{
		TaskID: id, N: n, Channel: "channel", Provider: "p", ExternalID: fmt.Sprint(id, n), SendBefore: time.Now().Add(time.Minute),
	}, mediagate.Slots{Names: []string{"channel"}})
	m.must(err)
	_, err = m.AcceptAttempt(m.t.Context(), id, n, mediagate.Submission{Ref: mediagate.JobRef{JobID: id}}, time.Now().Add(-time.Second))
	m.must(err)
}

func (m *meeting) submitOn(id, source string) {
	m.t.Helper()
	task := mediagate.Task{
		ID: id, AccountID: m.account, KeyID: m.key, Model: "m", Type: mediagate.TypeImage, Params: []byte("{}"), Hold: 1, DeadlineAt: time.Now().Add(time.Hour),
	}
	if source != "" {
		task.Plan.Source = &mediagate.Source{TaskID: source}
	}
	_, _, err := m.Submit(m.t.Context(), mediagate.NewTask{Task: task})
	m.must(err)
}

var lost = mediagate.Outcome{Failure: &mediagate.Failure{Code: mediagate.CodeGenerationFailed, Message: "no"}}

// A key and the one that it was rotated into are changed, where a clock that went back
// gave the later one the smaller id.
func TestKeyMeetsItsSuccessor(t *testing.T) {
	t.Parallel()
	var made atomic.Int64
	m := newMeeting(t, storage.Config{NewID: func(prefix string) string { return fmt.Sprintf("%s%09d", prefix, 999_999_999-made.Add(1)) }}, "")
	second, err := m.RotateKey(t.Context(), m.key, mediagate.KeySecret{Hash: sha256.Sum256([]byte("two"))}, time.Hour)
	m.must(err)
	release := m.keep("SELECT 1 FROM keys WHERE id = $1 FOR NO KEY UPDATE", m.key)
	for _, id := range []string{m.key, second.ID} {
		m.begin("change "+id, func(ctx context.Context) error {
			_, err := m.UpdateKey(ctx, id, func(k *mediagate.Key) error {
				k.InFlight = new(3)
				return nil
			})
			return err
		})
	}
	release()
	m.calls.Wait()
}

// A channel that took over the account of another one grants slots under that one's
// name while a worker of before queues tasks for both.
func TestGrantMeetsQueue(t *testing.T) {
	t.Parallel()
	m := newMeeting(t, storage.Config{}, "")
	m.submitOn("task_1", "")
	m.must(m.SeenChannel(t.Context(), []string{"a", "m", "z"}))
	epoch, err := m.BeginEpoch(t.Context(), "a")
	m.must(err)
	release := m.keep("SELECT 1 FROM channels WHERE name = 'm' FOR NO KEY UPDATE")
	m.begin("queue", func(ctx context.Context) error { return m.Queue(ctx, "task_1", 1, []string{"a", "m", "z"}) })
	m.begin("grant", func(ctx context.Context) error {
		_, err := m.GrantSlots(ctx, mediagate.Granting{
			Channel: "a", Epoch: epoch, Slots: mediagate.Slots{Names: []string{"z", "a"}, Limit: 1}, Most: 1, TakeBack: time.Hour, Again: time.Hour,
		})
		return err
	})
	release()
	m.calls.Wait()
}

// A task is erased whose outcome others worked on, while the end of these, which
// somebody else has decided on meanwhile, is heard of.
func TestEraseMeetsPolls(t *testing.T) {
	t.Parallel()
	m := newMeeting(t, storage.Config{}, "")
	m.submitOn("task_source", "")
	m.must(m.settle(t.Context(), "task_source"))
	m.submitOn("task_0", "")
	var results []mediagate.PollResult
	for _, id := range []string{"task_0", "task_3", "task_2", "task_1"} {
		if id != "task_0" {
			m.submitOn(id, "task_source")
		}
		m.run(id, 1)
		results = append(results, mediagate.PollResult{TaskID: id, N: 1, Answered: true, Outcome: &lost})
	}
	epoch, err := m.BeginEpoch(t.Context(), "channel")
	m.must(err)
	_, err = m.ClaimDue(t.Context(), "channel", epoch, "claim", time.Hour, 10)
	m.must(err)
	first := m.keep("SELECT 1 FROM tasks WHERE id = 'task_0' FOR NO KEY UPDATE")
	m.begin("store polls", func(ctx context.Context) error {
		_, err := m.StorePolls(ctx, "channel", "claim", results)
		return err
	})
	for _, id := range []string{"task_3", "task_2", "task_1"} {
		m.must(m.settle(t.Context(), id))
	}
	second := m.keep("SELECT 1 FROM tasks WHERE id = 'task_2' FOR NO KEY UPDATE")
	first()
	m.still("store polls, up to task_2")
	m.begin("erase", func(ctx context.Context) error {
		_, err := m.EraseTask(ctx, m.account, "task_source")
		return err
	})
	second()
	m.calls.Wait()
}

// Two tasks end that made the same things, which they tell in different orders.
func TestSettleMeetsSettle(t *testing.T) {
	t.Parallel()
	m := newMeeting(t, storage.Config{}, "")
	for _, id := range []string{"task_0", "task_1", "task_2"} {
		m.submitOn(id, "")
	}
	release := m.keep("INSERT INTO makers (account_id, kind, vendor_id, task_id, position) VALUES ($1, 'voice', 'b', 'task_0', 0)", m.account)
	for i, voices := range [][]string{{"a", "b", "c"}, {"c", "b", "a"}} {
		m.begin(fmt.Sprint("settle ", i+1), func(ctx context.Context) error {
			_, _, err := m.Settle(ctx, mediagate.Settlement{
				TaskID: fmt.Sprint("task_", i+1), AccountID: m.account, N: 1, Status: mediagate.StatusCompleted, Made: &mediagate.Made{Voices: voices},
			})
			return err
		})
	}
	release()
	m.calls.Wait()
}

// A channel's polling begins anew while a task ends that has a slot of it and whose
// run was not told yet of its former attempt there.
func TestEpochMeetsSettle(t *testing.T) {
	t.Parallel()
	m := newMeeting(t, storage.Config{}, "")
	epoch, err := m.BeginEpoch(t.Context(), "channel")
	m.must(err)
	for _, id := range []string{"task_0", "task_1"} {
		m.submitOn(id, "")
		m.run(id, 1)
	}
	rows, err := m.ClaimDue(t.Context(), "channel", epoch, "claim", time.Hour, 10)
	m.must(err)
	for _, row := range rows {
		_, err = m.StorePolls(t.Context(), "channel", "claim", []mediagate.PollResult{{TaskID: row.TaskID, N: 1, Answered: true, Outcome: &lost}})
		m.must(err)
	}
	m.must(m.Queue(t.Context(), "task_1", 2, []string{"channel"}))
	_, err = m.GrantSlots(t.Context(), mediagate.Granting{
		Channel: "channel", Epoch: epoch, Slots: mediagate.Slots{Names: []string{"channel"}}, Most: 1, TakeBack: time.Hour, Again: time.Hour,
	})
	m.must(err)
	release := m.keep("SELECT 1 FROM awaits WHERE task_id = 'task_0' FOR UPDATE")
	m.begin("begin epoch", func(ctx context.Context) error {
		_, err := m.BeginEpoch(ctx, "channel")
		return err
	})
	m.begin("settle", func(ctx context.Context) error { return m.settle(ctx, "task_1") })
	release()
	m.calls.Wait()
}

// An operator's order to fail is on record before the task ends, by somebody who has
// looked for one before.
func TestOrderToFailMeetsSettle(t *testing.T) {
	t.Parallel()
	m := newMeeting(t, storage.Config{}, "")
	m.submitOn("task_1", "")
	release := m.keep("SELECT 1 FROM accounts WHERE id = $1 FOR NO KEY UPDATE", m.account)
	var won bool
	m.begin("settle", func(ctx context.Context) (err error) {
		_, won, err = m.Settle(ctx, mediagate.Settlement{
			TaskID: "task_1", AccountID: m.account, N: 1, Status: mediagate.StatusCompleted, Cost: 1, UnlessOvertaken: true,
		})
		return err
	})
	var ordered atomic.Bool
	m.begin("order", func(ctx context.Context) error {
		_, err := m.RecordAction(ctx, mediagate.Action{TaskID: "task_1", Action: mediagate.ActionFail, By: "operator"})
		ordered.Store(err == nil)
		return err
	})
	onRecord := ordered.Load() && m.under.Load() == 1 // the other one is the settlement
	release()
	m.calls.Wait()
	if onRecord && won {
		t.Error("the task completed, and was charged, though an order to fail was on record before")
	}
}

// A check that is called off leaves nothing behind, also where somebody has its run's
// row at that moment, as the server does which still takes back its last statement.
func TestCheckThatIsCalledOff(t *testing.T) {
	t.Parallel()
	m := newMeeting(t, storage.Config{}, "")
	release := m.keep("LOCK TABLE ledger_check_sums IN EXCLUSIVE MODE")
	ctx, cancel := context.WithCancel(t.Context())
	m.begin("check", func(context.Context) error {
		if _, err := m.CheckLedger(ctx); err == nil {
			return errors.New("it went on")
		}
		return nil
	})
	next, err := m.db.BeginTx(t.Context(), nil)
	m.must(err)
	defer func() { _ = next.Rollback() }()
	taken := make(chan struct{})
	m.begin("who is next", func(ctx context.Context) error {
		defer close(taken)
		_, err := next.ExecContext(ctx, "SELECT 1 FROM ledger_checks FOR UPDATE")
		return err
	})
	cancel()
	<-taken
	release()
	m.still("the check's end")
	m.must(next.Rollback())
	m.calls.Wait()
	var left int
	m.must(m.db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM ledger_checks").Scan(&left))
	if left != 0 {
		t.Errorf("%d runs are left behind", left)
	}
}

// A task is erased while the slots are ended of several of its jobs that may have run on.
func TestEraseMeetsEndSlots(t *testing.T) {
	t.Parallel()
	m := newMeeting(t, storage.Config{}, "&enable_seqscan=off&enable_bitmapscan=off") // the plan of a large table
	m.submitOn("task_1", "")
	ctx, before := t.Context(), time.Now().Add(time.Minute)
	for i, channel := range []string{"c", "b", "a"} {
		n := i + 1
		_, _, err := m.OpenAttempt(ctx, mediagate.Attempt{
			TaskID: "task_1", N: n, Channel: channel, Provider: "p", ExternalID: fmt.Sprint(n), SendBefore: before,
		}, mediagate.Slots{Names: []string{channel}})
		m.must(err)
		if n < 3 { // it is lost, given up at an operator's word, and accepted all the same
			m.must(m.MarkUnknown(ctx, "task_1", n, before, "lost"))
			order, err := m.RecordAction(ctx, mediagate.Action{TaskID: "task_1", Action: mediagate.ActionRetry, By: "operator"})
			m.must(err)
			_, err = m.TakeAction(ctx, order.ID, "run")
			m.must(err)
			m.must(m.GiveUpAttempt(ctx, "task_1", n, "given up"))
		}
		_, err = m.AcceptAttempt(ctx, "task_1", n, mediagate.Submission{Ref: mediagate.JobRef{JobID: fmt.Sprint(n)}}, time.Now())
		m.must(err)
	}
	m.must(m.settle(ctx, "task_1"))
	_, err := m.db.ExecContext(ctx, "ANALYZE attempts")
	m.must(err)
	release := m.keep("SELECT 1 FROM attempts WHERE n = 2 FOR NO KEY UPDATE")
	m.begin("end slots", m.EndSlots)
	m.begin("erase", func(ctx context.Context) error {
		_, err := m.EraseTask(ctx, m.account, "task_1")
		return err
	})
	release()
	m.calls.Wait()
}
