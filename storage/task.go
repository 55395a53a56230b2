package storage

import (
	"cmp"
	"context"
	"time"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
	"github.com/mediagate/mediagate/task/story"
)

// taskRow is the row of a task: its state, and the columns that are derived from the state.
// The document holds every field without a column.
//
// Some columns only repeat what the document or an attempt says, so that an index or a condition
// can use it: SourceID, FailsAt, Channel, Provider.
type taskRow struct {
	task.State
	GroupName string // only a submit writes it
	// SourceID is the task that this one works on, for the index tasks_source; empty for none.
	SourceID string
	// FailsAt is when the task fails if nothing happens; zero for an ended task.
	FailsAt  time.Time
	Channel  string // of the last attempt, like Provider
	Provider string
	Results  document
	Document document
}

// columns lists the columns that the struct holds. The remaining columns, sweep_at, webhook_body
// and webhook_body_at, are written separately.
func (r *taskRow) columns() []column {
	return []column{
		{"id", &r.ID},
		{"account_id", &r.AccountID},
		{"key_id", &r.KeyID},
		{"group_name", &r.GroupName},
		{"model", &r.Model},
		{"type", &r.Type},
		{"params", (*document)(&r.Params)},
		{"reference", &r.Reference},
		{"trace_parent", &r.TraceParent},
		{"source_id", &r.SourceID},
		{"hold", &r.Hold},
		{"created_at", &r.CreatedAt},
		{"status", &r.Status},
		{"progress", &r.Progress},
		{"version", &r.Version},
		{"started_at", &r.StartedAt},
		{"deadline_at", &r.DeadlineAt},
		{"wait", &r.Wait.Why},
		{"wait_reason", &r.Wait.Reason},
		{"wait_since", &r.Wait.Since},
		{"try_at", &r.Wait.TryAt},
		{"wait_ends_at", &r.Wait.EndsAt},
		{"fails_at", &r.FailsAt},
		{"cancel_requested_at", &r.CancelRequestedAt},
		{"fail_requested_at", &r.FailRequestedAt},
		{"restored_at", &r.RestoredAt},
		{"tail_lost", &r.TailLost},
		{"channel", &r.Channel},
		{"provider", &r.Provider},
		{"ended_at", &r.EndedAt},
		{"results", &r.Results},
		{"cost", &r.Cost},
		{"webhook_url", &r.Webhook.URL},
		{"webhook_state", &r.Webhook.State},
		{"webhook_reason", &r.Webhook.Reason},
		{"webhook_round", &r.Webhook.Round},
		{"inputs_erased_at", &r.InputsErasedAt},
		{"erased_at", &r.ErasedAt},
		{"document", &r.Document},
	}
}

// newTaskRow returns the row of a task.
//
// newTaskRow also fills the columns that repeat other facts. fails_at is NULL for an ended task.
func newTaskRow(st *task.State) (taskRow, error) {
	r := taskRow{State: *st}
	if st.Plan.Source != nil {
		r.SourceID = st.Plan.Source.TaskID
	}
	if !st.Status.Terminal() {
		r.FailsAt = st.FailsAt()
	}
	if a := st.Last(); a != nil {
		r.Channel, r.Provider = a.Channel, a.Provider
	}
	var err error
	if st.Results != nil {
		if r.Results, err = jsonText(st.Results); err != nil {
			return r, err
		}
	}
	r.Document, err = jsonText(st)
	return r, err
}

// state returns the task's state without its attempts. With an error, it returns the parts that can be
// read.
func (r taskRow) state() (task.State, error) {
	st := r.State
	// The document is decoded onto the columns: its JSON has only the fields that have no column.
	err := cmp.Or(fromJSON("tasks.document", r.Document, &st), fromJSON("tasks.results", r.Results, &st.Results))
	return st, err
}

// task returns the task. With an error, it returns the parts that can be read.
func (r taskRow) task() (mediagate.Task, error) {
	st, err := r.state()
	return st.Task, err
}

// listed returns the task as lists have it: an open task whose document cannot be decoded has only the
// parts that can be read. Such a task is parked, and must not hide the others of its list from those
// who repair it, or stop a command for many tasks.
func (r taskRow) listed() (mediagate.Task, error) {
	t, err := r.task()
	if unreadable(err) && !t.Status.Terminal() {
		err = nil
	}
	return t, err
}

// leasedTask is a task's row with the lease of its run, zero if it has none.
type leasedTask struct {
	taskRow
	Lease story.Lease
}

func (r *leasedTask) columns() []column {
	return append(r.taskRow.columns(),
		column{"wake_at", &r.Lease.WakeAt},
		column{"tries", &r.Lease.Tries},
		column{"asked", &r.Lease.Asked})
}

// loadState reads the state of a task: its row, its last attempt and the named attempts, then its
// queue rows if it waits for a slot, and its sources if it waits for them. With lock, it locks the
// task's row, and the rows of the sources against their ends. A document that cannot be decoded is no
// error; it makes the state Unreadable.
//
// owner is the account that must own the task; with an owner, an erased task counts as unknown.
// The row of the wake is not locked: renewLease therefore compares wake_at when it writes.
func (s *Store) loadState(
	tx *gorm.DB, id, owner string, named []int, lock bool,
) (st task.State, lease story.Lease, err error) {
	query := "SELECT " + columnsOf[taskRow]().of("t") + `, w.wake_at, COALESCE(w.tries, 0), COALESCE(w.asked, false)
		FROM tasks t LEFT JOIN wakes w ON w.task_id = t.id AND w.kind = 'run'
		WHERE t.id = ?`
	if lock {
		query += s.forUpdate("t")
	}
	row, err := one[leasedTask](tx, query, id)
	if err != nil {
		return st, lease, err
	}
	if row == nil || owner != "" && (row.AccountID != owner || !row.ErasedAt.IsZero()) {
		return st, lease, notFound("task", id)
	}
	st, err = row.state()
	st.Unreadable = unreadable(err)
	if err != nil && !st.Unreadable {
		return st, lease, err
	}
	if err := s.loadAttempts(tx, &st, named); err != nil {
		return st, lease, err
	}
	if st.Wait.Why == mediagate.WhySlot {
		if err := s.loadQueue(tx, &st); err != nil {
			return st, lease, err
		}
	}
	// Only an open task whose sources have not given it all files depends on their state (D21).
	if !st.Status.Terminal() && st.LacksSources() {
		keep := ""
		if lock {
			keep = s.lock("FOR SHARE")
		}
		if st.SourceTasks, err = s.readSources(tx, &st.Task, keep); err != nil {
			return st, lease, err
		}
	}
	return st, row.Lease, nil
}

// saveTask updates the columns of a task's row that differ between two states.
//
// The row is locked, so no other change lies between the two states. A change that differs in no
// column writes nothing.
func saveTask(tx *gorm.DB, before, after *task.State, sweepAt time.Time) error {
	was, err := newTaskRow(before)
	if err != nil {
		return err
	}
	is, err := newTaskRow(after)
	if err != nil {
		return err
	}
	switch {
	// An empty document differs from every new one, so the column is written in any case.
	case !after.InputsErasedAt.Equal(before.InputsErasedAt), !after.ErasedAt.Equal(before.ErasedAt):
		was.Document = nil // an erasure also removes what could not be decoded
	case before.Unreadable && !after.Status.Terminal():
		is.Document = was.Document // a document that could not be decoded stays, so that it can be mended
	}
	changes := differing(was, is)
	if !sweepAt.IsZero() {
		changes["sweep_at"] = at(sweepAt)
	}
	if len(changes) == 0 {
		return nil
	}
	return tx.Table("tasks").Where("id = ?", after.ID).Updates(changes).Error
}

// State reads a task with its last attempt and, unless n is 0, its attempt n. It locks nothing.
// Returns KindNotFound.
func (s *Store) State(ctx context.Context, id string, n int) (task.State, error) {
	st, _, err := s.loadState(s.on(ctx), id, "", []int{n}, false)
	return st, dbError(err, "read state")
}

// Task reads a task of the account. Returns KindNotFound, also for a task of another account and for
// an erased task.
func (s *Store) Task(ctx context.Context, accountID, id string) (mediagate.Task, error) {
	return s.readTask(ctx, id, "WHERE id = ? AND account_id = ? AND erased_at IS NULL", id, accountID)
}

// TaskByID reads a task, or what is left of an erased one. Returns KindNotFound.
func (s *Store) TaskByID(ctx context.Context, id string) (mediagate.Task, error) {
	return s.readTask(ctx, id, "WHERE id = ?", id)
}

// readTask reads one task in a single statement, if it has no sources: clients poll tasks more often
// than they do anything else.
func (s *Store) readTask(ctx context.Context, id, where string, args ...any) (mediagate.Task, error) {
	row, err := one[taskRow](s.on(ctx), "SELECT "+columnsOf[taskRow]().text+" FROM tasks "+where, args...)
	if err != nil {
		return mediagate.Task{}, dbError(err, "read task")
	}
	if row == nil {
		return mediagate.Task{}, notFound("task", id)
	}
	t, err := row.task()
	if err != nil {
		return t, err
	}
	return t, dbError(s.noteSourceStates(s.on(ctx), &t), "read sources")
}

// Versions reads the versions of tasks. It leaves out unknown and erased tasks.
//
// The watcher of event streams asks for the versions of all awaited tasks, and wakes the waiters
// of those that have changed (D19).
func (s *Store) Versions(ctx context.Context, ids []string) (map[string]int64, error) {
	versions := make(map[string]int64, len(ids))
	if len(ids) == 0 {
		return versions, nil
	}
	text, err := jsonText(ids)
	if err != nil {
		return nil, err
	}
	var rows []struct {
		ID      string
		Version int64
	}
	query := "SELECT id, version FROM tasks WHERE erased_at IS NULL AND id IN " + s.inList()
	if err := read(s.on(ctx), &rows, query, text); err != nil {
		return nil, dbError(err, "read versions")
	}
	for _, row := range rows {
		versions[row.ID] = row.Version
	}
	return versions, nil
}

// RequestCancel stores the client's request to cancel, once. Returns KindNotFound, also for a task of
// another account, and KindConflict when the task has ended.
func (s *Store) RequestCancel(ctx context.Context, accountID, id string) (mediagate.Task, error) {
	// The check runs under the lock of the task's row, so an end that comes first refuses the cancel,
	// and a cancel that comes first holds (D13).
	ended := func(_ *gorm.DB, t mediagate.Task) (bool, error) {
		if t.Status.Terminal() {
			return false, conflict("the task has ended: %s", t.Status)
		}
		return true, nil
	}
	_, err := s.change(ctx, id, &changing{
		events: []task.Event{task.CancelRequested{}},
		owner:  accountID,
		first:  ended,
	})
	if err != nil {
		return mediagate.Task{}, err
	}
	return s.TaskByID(ctx, id)
}

// SubmitModal stores the modal parameters of a task in one transaction with the idempotency record, if
// the request has a key (D15). A repeated request returns replayed, even if both arrive at the same
// time. Of two different requests only one is accepted.
//
// Returns KindNotFound, also for a task of another account. Returns KindConflict when the task does not
// wait for parameters, and with code idempotency_conflict when the key belongs to another request.
//
// The record is inserted under the lock of the task's row, before the event. If the event is
// refused, the rollback removes it.
func (s *Store) SubmitModal(ctx context.Context, m mediagate.ModalCall) (replayed bool, err error) {
	once := func(tx *gorm.DB, _ mediagate.Task) (bool, error) {
		// write may run this function again after a deadlock.
		replayed = false
		if m.IdempotencyKey == "" {
			return true, nil
		}
		now := at(s.clock())
		first, err := storeRecord(tx, &idempotencyRow{
			AccountID:  m.AccountID,
			Key:        m.IdempotencyKey,
			Path:       m.Path,
			BodySHA256: m.BodySHA256[:],
			TaskID:     m.TaskID,
			CreatedAt:  now,
		}, now)
		replayed = err == nil && !first
		return first, err
	}
	_, err = s.change(ctx, m.TaskID, &changing{
		events: []task.Event{task.ModalGiven{Input: m.Input}},
		owner:  m.AccountID,
		first:  once,
	})
	if err != nil || !replayed {
		return false, err
	}
	// Replay decides whether the earlier request was the same: an equal one is a repetition, another
	// one a conflict.
	taskID, found, err := s.Replay(ctx, m.AccountID, m.IdempotencyKey, m.Path, m.BodySHA256)
	if err == nil && (!found || taskID != m.TaskID) {
		err = mediagate.Errorf(mediagate.KindUnavailable, "the idempotency record keeps changing")
	}
	return true, err
}
