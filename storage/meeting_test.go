package storage_test

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/storage"
	"github.com/mediagate/mediagate/storage/pgtest"
	"github.com/mediagate/mediagate/task"
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

func (m *meeting) submitOn(id, source string) {
	m.t.Helper()
	t := mediagate.Task{
		ID: id, AccountID: m.account, KeyID: m.key, Model: "m", Type: mediagate.TypeImage, Params: []byte("{}"), Hold: 1, DeadlineAt: time.Now().Add(time.Hour),
	}
	if source != "" {
		t.Plan.Source = &mediagate.Source{TaskID: source}
	}
	_, _, err := m.Submit(m.t.Context(), mediagate.NewTask{Task: t})
	m.must(err)
}

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
// name while a worker queues tasks for both.
func TestGrantMeetsQueue(t *testing.T) {
	t.Parallel()
	m := newMeeting(t, storage.Config{}, "")
	m.submitOn("task_1", "")
	m.must(m.SeenChannel(t.Context(), []string{"a", "m", "z"}))
	epoch, err := m.BeginEpoch(t.Context(), "a")
	m.must(err)
	release := m.keep("SELECT 1 FROM channels WHERE name = 'm' FOR NO KEY UPDATE")
	m.begin("queue", func(ctx context.Context) error {
		_, err := m.Change(ctx, "task_1", task.Queued{N: 1, Channels: []string{"a", "m", "z"}})
		return err
	})
	m.begin("grant", func(ctx context.Context) error {
		_, err := m.GrantSlots(ctx, mediagate.Granting{
			Channel: "a", Epoch: epoch, Slots: mediagate.Slots{Names: []string{"z", "a"}, Limit: 1}, Most: 1, TakeBack: time.Hour,
		})
		return err
	})
	release()
	m.calls.Wait()
}

// A task is erased whose outcome others worked on, while the progress of these, which
// have ended meanwhile, is stored.
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
		m.must(m.run(t.Context(), id, 1))
		results = append(results, mediagate.PollResult{TaskID: id, N: 1, Answered: true, Progress: 50, NextPollAt: time.Now().Add(time.Minute)})
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
	release := m.keep("INSERT INTO assets (account_id, kind, vendor_id, task_id, position) VALUES ($1, 'voice', 'b', 'task_0', 0)", m.account)
	for i, voices := range [][]string{{"a", "b", "c"}, {"c", "b", "a"}} {
		m.begin(fmt.Sprint("settle ", i+1), func(ctx context.Context) error {
			return m.complete(ctx, fmt.Sprint("task_", i+1), &mediagate.Made{Voices: voices}, nil)
		})
	}
	release()
	m.calls.Wait()
}

// Slots are granted to tasks that have waited in one order, while a breaker closes for
// which they are parked in another: both move their wakes.
func TestGrantMeetsRetry(t *testing.T) {
	t.Parallel()
	m := newMeeting(t, storage.Config{}, "")
	epoch, err := m.BeginEpoch(t.Context(), "channel")
	m.must(err)
	for _, id := range []string{"task_3", "task_2", "task_1"} {
		m.submitOn(id, "")
		_, err := m.Change(t.Context(), id, task.StepEnded{Step: task.Submit, N: 1, Failed: true, Kind: mediagate.KindTransient},
			task.Queued{N: 1, Channels: []string{"channel"}}, task.Asked{})
		m.must(err)
	}
	_, err = m.db.ExecContext(t.Context(), "UPDATE tasks SET parked_at = parked_at + CAST(right(id, 1) AS int) * interval '1 second'")
	m.must(err)
	release := m.keep("SELECT 1 FROM wakes WHERE task_id = 'task_2' FOR UPDATE")
	m.begin("grant", func(ctx context.Context) error {
		got, err := m.GrantSlots(ctx, mediagate.Granting{
			Channel: "channel", Epoch: epoch, Slots: mediagate.Slots{Names: []string{"channel"}}, Most: 3, TakeBack: time.Hour,
		})
		if err == nil && len(got.Tasks) != 3 {
			err = fmt.Errorf("granted to %v", got.Tasks)
		}
		return err
	})
	m.begin("retry", func(ctx context.Context) error {
		retried, err := m.RetryParked(ctx, mediagate.Parked{Reasons: []mediagate.ParkReason{mediagate.ParkProviderAway}}, 10)
		if err == nil && retried != 3 {
			err = fmt.Errorf("%d try again", retried)
		}
		return err
	})
	release()
	m.calls.Wait()
}

// Slots of abandoned jobs expire while the vendor's answer for one of them comes, which
// tells that the job runs.
func TestExpiryMeetsLateAnswer(t *testing.T) {
	t.Parallel()
	m := newMeeting(t, storage.Config{}, "&enable_seqscan=off&enable_hashjoin=off&enable_mergejoin=off")
	for i, id := range []string{"task_1", "task_2"} {
		m.submitOn(id, "")
		sent := intent(id, 1, "channel")
		_, err := m.Change(t.Context(), id, sent, task.SubmitUnknown{Sending: sent.Sending}, task.CancelRequested{}, task.EndDue{})
		m.must(err)
		_, err = m.db.ExecContext(t.Context(), "UPDATE attempts SET slot_until = $1 WHERE task_id = $2", time.Now().Add(time.Duration(i-2)*time.Hour), id)
		m.must(err)
	}
	release := m.keep("SELECT 1 FROM attempts WHERE task_id = 'task_1' FOR NO KEY UPDATE")
	m.begin("expire", m.ExpireSlots)
	_, err := m.Change(t.Context(), "task_2", task.Accepted{Sending: intent("task_2", 1, "channel").Sending, Submission: mediagate.Submission{Ref: mediagate.JobRef{JobID: "job"}}, FirstPollAt: time.Now()})
	m.must(err)
	release()
	m.calls.Wait()
	for id, want := range map[string]mediagate.AttemptState{"task_1": mediagate.AttemptEnded, "task_2": mediagate.AttemptAbandoned} {
		st, err := m.State(t.Context(), id, 0)
		m.must(err)
		if a := st.Last(); a.State != want || (a.Await != nil) != (want == mediagate.AttemptAbandoned) {
			t.Errorf("the attempt of %s is %+v, want %s", id, *a, want)
		}
	}
}
