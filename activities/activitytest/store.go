package activitytest

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/storage/storagefault"
	"github.com/mediagate/mediagate/task"
)

// Store is the real store on a database in memory. It adds faults, and methods with which tests
// set a scene and read the result. Those methods ignore the faults, and panic if the database
// refuses them.
type Store struct{ *storagefault.Store }

// NewStore opens an empty store on the clock, until t ends.
func NewStore(t T, now func() time.Time) *Store {
	s := &Store{ok(storagefault.Open(context.Background(), now))}
	t.Cleanup(func() { must(s.Close()) })
	return s
}

// T is what the store needs of a test, or of a program that serves tests.
type T interface{ Cleanup(f func()) }

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func ok[V any](v V, err error) V {
	must(err)
	return v
}

// Exec changes rows directly, in ways in which the gateway never would, to set a scene.
func (s *Store) Exec(statement string, args ...any) {
	_ = ok(s.DB().ExecContext(context.Background(), statement, args...))
}

// plenty is the balance of an account that submits, so that no test runs out of it.
const plenty = 1_000_000 * mediagate.MicrosPerUnit

// Add submits a task, for an account that has the money. If the given task has more than a task
// that was just submitted, such as a status or a wait, Add sets its row accordingly.
func (s *Store) Add(t mediagate.Task) {
	const addAccount = "INSERT INTO accounts (id, name, available, created_at) VALUES (?, '', ?, 0) ON CONFLICT DO NOTHING"
	const addKey = `INSERT INTO keys (id, account_id, hash, name, prefix, last_four, unlimited, created_at)
		VALUES (?, ?, ?, '', '', '', 1, 0) ON CONFLICT DO NOTHING`
	t.KeyID = "key of " + t.AccountID
	s.Exec(addAccount, t.AccountID, plenty)
	s.Exec(addKey, t.KeyID, t.AccountID, []byte(t.KeyID))
	source := t.Plan.Source
	t.Plan.Source = nil // set below, since the task that it names need not exist
	_, _, err := s.Steady.Submit(context.Background(), mediagate.NewTask{Task: submitted(t)})
	must(err)
	if source != nil {
		s.EditTask(t.ID, func(t *mediagate.Task) { t.Plan.Source = source })
	}
	if t.Status != mediagate.StatusPending || t.Wait.Why != "" || !t.CancelRequestedAt.IsZero() {
		s.further(t)
	}
}

// submitted returns a task as it was when it was submitted.
func submitted(t mediagate.Task) mediagate.Task {
	t.Progress, t.Cost, t.StartedAt, t.EndedAt, t.CancelRequestedAt = 0, 0, time.Time{}, time.Time{}, time.Time{}
	t.Wait, t.Results, t.Made, t.Failure = mediagate.Wait{}, nil, nil, nil
	t.Webhook.Round = 0
	return t
}

// further sets in the row what the task has beyond a task that was just submitted.
func (s *Store) further(t mediagate.Task) {
	progress := t.Progress
	if t.Status == mediagate.StatusCompleted {
		progress = 100
	}
	s.Exec(`UPDATE tasks SET status = ?, progress = ?, version = ?, started_at = ?, ended_at = ?, cancel_requested_at = ?,
		wait = ?, wait_reason = ?, wait_since = ?, try_at = ?, wait_ends_at = ?,
		results = ?, cost = ?, document = ? WHERE id = ?`,
		t.Status, progress, max(t.Version, 1), stamp(t.StartedAt), stamp(t.EndedAt), stamp(t.CancelRequestedAt),
		t.Wait.Why, t.Wait.Reason, stamp(t.Wait.Since), stamp(t.Wait.TryAt), stamp(t.Wait.EndsAt),
		document(t.Results), t.Cost, document(t), t.ID)
	if t.Status.Terminal() {
		s.Exec("DELETE FROM wakes WHERE task_id = ?", t.ID)
	}
	if w := t.Webhook; w.State != "" {
		s.Exec("UPDATE tasks SET webhook_round = ?, webhook_reason = ? WHERE id = ?", w.Round, w.Reason, t.ID)
	}
}

// stamp and document are values of columns.
func stamp(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t
}

func document(v any) any {
	if reflect.ValueOf(v).IsZero() {
		return nil
	}
	return string(ok(json.Marshal(v)))
}

// Remove deletes a task's rows.
func (s *Store) Remove(id string) {
	for _, table := range []string{"deliveries", "actions", "queue", "awaits", "attempts", "wakes"} {
		s.Exec("DELETE FROM "+table+" WHERE task_id = ?", id)
	}
	s.Exec("DELETE FROM tasks WHERE id = ?", id)
}

// EditTask changes what was submitted.
func (s *Store) EditTask(id string, f func(*mediagate.Task)) {
	t, _ := s.Peek(id)
	f(&t.Task)
	s.Exec("UPDATE tasks SET type = ?, model = ?, params = ?, document = ?, hold = ? WHERE id = ?",
		t.Type, t.Model, string(t.Params), document(t), t.Hold, id)
}

// Park parks a task, which tries again in one hour.
func (s *Store) Park(id string, reason mediagate.ParkReason) {
	now := s.Now()
	s.Exec("UPDATE tasks SET wait = ?, wait_reason = ?, wait_since = ?, try_at = ?, wait_ends_at = ? WHERE id = ?",
		mediagate.WhyParked, reason, now, now.Add(time.Hour), now.Add(24*time.Hour), id)
}

// Retried returns the parked tasks that try again now.
func (s *Store) Retried() (ids []string) {
	s.rows(func(columns func(...any)) {
		var id string
		columns(&id)
		ids = append(ids, id)
	}, "SELECT id FROM tasks WHERE wait_reason <> '' AND try_at IS NULL ORDER BY id")
	return ids
}

// Unsend takes a task back to its submit.
func (s *Store) Unsend(id string) {
	for _, table := range []string{"awaits", "attempts"} {
		s.Exec("DELETE FROM "+table+" WHERE task_id = ?", id)
	}
	s.Exec("UPDATE tasks SET status = 'pending' WHERE id = ?", id)
}

// Erase erases a task as its client does.
func (s *Store) Erase(id string) {
	t := ok(s.Steady.TaskByID(context.Background(), id))
	_ = ok(s.Steady.EraseTask(context.Background(), t.AccountID, id))
}

// Peek reads a task's state with all its attempts.
func (s *Store) Peek(id string) (st task.State, found bool) {
	st, err := s.Steady.State(context.Background(), id, 0)
	if mediagate.Is(err, mediagate.KindNotFound) {
		return task.State{}, false
	}
	must(err)
	var before []task.Attempt
	for n := 1; st.Last() != nil && n < st.Last().N; n++ {
		older := ok(s.Steady.State(context.Background(), id, n))
		if a := older.Attempt(n); a != nil { // a database that lost its last commits may lack one
			before = append(before, *a)
		}
	}
	st.Attempts = append(before, st.Attempts...)
	return st, true
}

// Attempts returns a task's attempts in their order.
func (s *Store) Attempts(id string) []task.Attempt {
	return ok(s.Steady.Attempts(context.Background(), id))
}

// End is how a task's hold was resolved.
type End struct {
	Times int // how often it was resolved: never more than once
	Entry mediagate.EntryKind
	Cost  mediagate.Micros
}

// End returns how the task's hold was resolved.
func (s *Store) End(id string) (end End) {
	t := ok(s.Steady.TaskByID(context.Background(), id))
	transfers, _, err := s.Steady.Ledger(context.Background(), t.AccountID, id, "", 10)
	must(err)
	for _, x := range transfers {
		if x.Kind != mediagate.EntryHold {
			end = End{Times: end.Times + 1, Entry: x.Kind, Cost: t.Cost}
		}
	}
	return end
}

// rows reads rows past the store; scan takes the columns of one.
func (s *Store) rows(scan func(columns func(to ...any)), query string, args ...any) {
	rows := ok(s.DB().QueryContext(context.Background(), query, args...))
	for rows.Next() {
		scan(func(to ...any) { must(rows.Scan(to...)) })
	}
	must(errors.Join(rows.Err(), rows.Close()))
}

// Actions returns the operators' commands in the order in which they came.
func (s *Store) Actions() (all []mediagate.Action) {
	s.rows(func(columns func(...any)) {
		var a mediagate.Action
		columns(&a.ID, &a.TaskID, &a.Action, &a.Channel, &a.By, &a.Reason)
		all = append(all, a)
	}, "SELECT id, task_id, action, channel, by_whom, reason FROM actions ORDER BY rowid")
	return all
}

// Wakes returns the task's wakes, by kind.
func (s *Store) Wakes(id string) map[mediagate.WakeKind]mediagate.Wake {
	all := map[mediagate.WakeKind]mediagate.Wake{}
	s.rows(func(columns func(...any)) {
		w, at := mediagate.Wake{TaskID: id}, int64(0)
		columns(&w.Kind, &w.AccountID, &at, &w.Tries, &w.Asked)
		w.At = time.UnixMicro(at).UTC()
		all[w.Kind] = w
	}, "SELECT kind, account_id, wake_at, tries, asked FROM wakes WHERE task_id = ?", id)
	return all
}

// Awaits returns the attempts that channels poll for, by task.
func (s *Store) Awaits() (all []mediagate.Await) {
	s.rows(func(columns func(...any)) {
		var a mediagate.Await
		var at int64
		columns(&a.TaskID, &a.N, &a.Channel, &a.Claim, &at)
		a.NextPollAt = time.UnixMicro(at).UTC()
		all = append(all, a)
	}, "SELECT task_id, n, channel, claim, next_poll_at FROM awaits ORDER BY task_id, n")
	return all
}

// SeeChannel notes that a worker has the channel now.
func (s *Store) SeeChannel(name string) {
	must(s.Steady.SeenChannel(context.Background(), []string{name}))
}

// Channel returns what is known of a channel.
func (s *Store) Channel(name string) mediagate.ChannelState {
	for _, c := range ok(s.Steady.ChannelStates(context.Background())) {
		if c.Name == name {
			return c
		}
	}
	return mediagate.ChannelState{Name: name, Enabled: true}
}

// names lists the keys in order.
func names[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func missing(what, id string) error {
	return mediagate.Errorf(mediagate.KindNotFound, "no %s %q", what, id)
}
