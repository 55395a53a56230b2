package storage

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

// Erased data may arrive again, from a sender that hung or from a copy that was under way. So the
// row of a task records for good what it may no longer hold, and every write to an ended task
// reads that record under the lock of the row.

// worksOn is the condition that a task works on the result of another task, which it names in its
// Plan.Source. usesFile is the condition that a task uses a file as an input. The second term
// lets the planner use the partial index tasks_source.
const worksOn = "source_id = ? AND source_id <> ''"

// EraseTask erases a task that has ended. It overwrites what the client and the vendors wrote,
// drops a callback that is still to be delivered, and makes the files due for the sweep at once.
// The row stays, with what the money and its statistics need, but the account no longer sees the
// task. A run that has not asked since the task's end is still woken. EraseTask returns the keys
// of media that came within the request, which are outside the task's folder.
//
// Returns KindNotFound, also for a task of another account and for an erased task. Returns
// KindConflict when the task has not ended, or is the source of a task that has not ended.
func (s *Store) EraseTask(ctx context.Context, accountID, id string) (uploads []string, err error) {
	err = s.write(ctx, "erase task", func(tx *gorm.DB) error {
		uploads = nil
		// FOR UPDATE also keeps out submits that use the task as a source.
		if _, err := one[struct{ N int }](tx, "SELECT 1 FROM tasks WHERE id = ?"+s.lock("FOR UPDATE"), id); err != nil {
			return err
		}
		t, _, err := s.loadState(tx, id, accountID, nil, true)
		if err != nil {
			return err
		}
		// An open task is refused: the client may cancel it first.
		if !t.Status.Terminal() {
			return conflict("the task has not ended: %s", t.Status)
		}
		// A submit that uses this task as a source locks its row too. Either its task is seen here,
		// or the submit sees that this task is erased.
		open, err := one[struct{ ID string }](tx, "SELECT id FROM tasks WHERE "+worksOn+" AND "+isOpen+" LIMIT 1", id)
		if err != nil {
			return err
		}
		// Tasks that use a file of this task as an input need it too (D21).
		if open == nil {
			open, err = one[struct{ ID string }](tx,
				"SELECT id FROM tasks WHERE "+usesFile+" AND "+isOpen+" LIMIT 1", id)
			if err != nil {
				return err
			}
		}
		if open != nil {
			return conflict("the task is the source of %s, which has not ended", open.ID)
		}
		// The objects are removed by the caller after the commit. If that fails, the sweep removes
		// them: erase makes it due at once.
		uploads = slices.Collect(maps.Values(t.Plan.Uploads))
		return s.erase(tx, t)
	})
	if err != nil {
		return nil, err
	}
	return uploads, nil
}

// scrub records whether SQLite's files may still hold erased data. Transactions that erase set
// due. On SQLite, write calls scrubFiles after each commit. mu lets one scrub run at a time.
type scrub struct {
	mu  sync.Mutex
	due atomic.Bool
}

// scrubPatience is how long a scrub waits for readers of the log, in milliseconds. Writes wait
// meanwhile.
const scrubPatience = 100

// scrubFiles empties SQLite's write-ahead log, which keeps pages as they were before an erasure.
// In the database file itself, zeros replace erased data (secure_delete). The log cannot be
// emptied while a transaction reads from it; then the next write tries again.
func (s *Store) scrubFiles(ctx context.Context) {
	s.scrub.mu.Lock() // an eraser waits for a scrub under way, which may include its data
	defer s.scrub.mu.Unlock()
	if !s.scrub.due.Swap(false) {
		return
	}
	// The erasure is committed. A client that leaves now must not keep the log from being emptied.
	ctx = context.WithoutCancel(ctx)
	busy, err := s.emptyLog(ctx)
	if err == nil && !busy {
		return
	}
	s.scrub.due.Store(true)
	s.log.DebugContext(ctx, "erased data stays in the database's log until the next write",
		"busy", busy, "error", err)
}

// emptyLog copies SQLite's log into the database file and truncates it. busy reports that a
// reader prevented that. It uses one connection, since busy_timeout is a setting of the
// connection, and sets the usual timeout again at the end.
func (s *Store) emptyLog(ctx context.Context) (busy bool, err error) {
	conn, err := s.sql.Conn(ctx)
	if err != nil {
		return false, err
	}
	defer func() { err = cmp.Or(err, conn.Close()) }()
	var patience int
	if err := conn.QueryRowContext(ctx, "PRAGMA busy_timeout").Scan(&patience); err != nil {
		return false, err
	}
	wait := func(milliseconds int) error {
		_, err := conn.ExecContext(ctx, fmt.Sprintf("PRAGMA busy_timeout = %d", milliseconds))
		return err
	}
	if err := wait(scrubPatience); err != nil {
		return false, err
	}
	err = conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, new(int), new(int))
	return busy, cmp.Or(err, wait(patience))
}

// erase overwrites the request and the results of a task that has ended. Of its plan it keeps
// the uploads, which are to be swept, and the expected duration: if a job of the task turns up
// later, it keeps its slot for as long as it may run.
//
// The caller holds the lock of the task's row. The money is left as it is: hold and cost stay
// in the row, and the ledger is not touched. The idempotency record of a client's key stays
// too. Otherwise a repeated request would make the task again, and charge for it.
func (s *Store) erase(tx *gorm.DB, t task.State) error {
	s.scrub.due.Store(true)
	now := s.clock()
	left := t
	eraseInputs(&left, now)
	left.ErasedAt = now
	left.InputsErasedAt = cmp.Or(t.InputsErasedAt, now)
	left.Version = t.Version + 1
	left.Reference = ""
	left.TraceParent = ""
	left.Endpoint = ""
	left.Plan = mediagate.Plan{Uploads: t.Plan.Uploads, Expected: t.Plan.Expected}
	left.Results, left.Made = nil, nil
	left.Webhook = mediagate.Webhook{State: t.Webhook.State, Round: t.Webhook.Round}
	// The callback would show what is erased, so it is dropped.
	if t.Webhook.State == mediagate.WebhookPending {
		left.Webhook.State, left.Webhook.Reason = mediagate.WebhookDropped, "task erased"
	}
	// The last argument makes the sweep of the files due now.
	if err := saveTask(tx, &t, &left, now); err != nil {
		return err
	}
	for _, statement := range []string{
		"UPDATE tasks SET webhook_body = NULL WHERE id = ?",
		"DELETE FROM assets WHERE task_id = ?",
		"DELETE FROM deliveries WHERE task_id = ?",
		"DELETE FROM sources WHERE task_id = ?",
		// No open task uses the files any more, as EraseTask has checked.
		"DELETE FROM sources WHERE source_id = ?",
		"DELETE FROM awaits WHERE task_id = ?",
		"DELETE FROM wakes WHERE task_id = ? AND kind = 'round'", // its callback is dropped
		// The records of waiters go: an erased task must not be adopted.
		"DELETE FROM idempotency WHERE task_id = ? AND opens_at IS NOT NULL",
	} {
		if _, err := exec(tx, statement, t.ID); err != nil {
			return err
		}
	}
	if _, err := exec(tx,
		"DELETE FROM endpoint_deliveries WHERE event_id = ?", mediagate.TaskEventID(t.ID)); err != nil {
		return err
	}
	if err := s.dropSource(tx, t.ID); err != nil {
		return err
	}
	return forgetWords(tx, left.Task)
}

// dropSource removes an erased task from the plans of tasks that worked on it. Those tasks have
// ended, so nothing needs their plans. Parts of a plan that cannot be read are removed too. The
// plans are rewritten here and not in SQL, because PostgreSQL refuses texts with U+0000, which
// vendors may send. The tasks' versions are raised, since clients see another request.
func (s *Store) dropSource(tx *gorm.DB, id string) error {
	var rows []struct{ ID string }
	query := "SELECT id FROM tasks WHERE " + worksOn + " ORDER BY id" + s.forUpdate("tasks")
	if err := read(tx, &rows, query, id); err != nil {
		return err
	}
	for _, row := range rows {
		t, _, err := s.loadState(tx, row.ID, "", nil, true)
		if err != nil {
			return err
		}
		t.Plan.Source = nil
		left, err := newTaskRow(&t)
		if err != nil {
			return err
		}
		const forget = "UPDATE tasks SET document = ?, source_id = '', version = version + 1 WHERE id = ?"
		if _, err := exec(tx, forget, left.Document, t.ID); err != nil {
			return err
		}
	}
	return nil
}

// forgetWords removes from the attempts of a task what its row no longer allows, and what
// cannot be read. It reads all attempts of the task, including those that a change does not load.
func forgetWords(tx *gorm.DB, t mediagate.Task) error {
	rows, err := readAttempts(tx, "WHERE a.task_id = ?", t.ID)
	if err != nil {
		return err
	}
	for _, r := range rows {
		a, err := r.attempt()
		if err != nil && !unreadable(err) {
			return err
		}
		left, err := newAttemptRow(t, a)
		if err != nil {
			return err
		}
		if err := updateAttempt(tx, t.ID, a.N, differing(r, left)); err != nil {
			return err
		}
	}
	return nil
}

// allowed returns the attempt without what must not be stored after an erasure of the task or
// of its inputs. It keeps the job's end and whether the job succeeded, since only the first end
// of a job counts.
//
// There are two steps. After an erasure of the inputs, the words of vendors go, because they
// may quote the prompt. After an erasure of the task, the names of the job and the results go
// as well.
func allowed(t mediagate.Task, a task.Attempt) task.Attempt {
	if t.InputsErasedAt.IsZero() {
		return a
	}
	a.Failure = a.Failure.WithoutMessage()
	a.Refusal = a.Refusal.WithoutMessage()
	a.Unusable = a.Unusable.WithoutMessage()
	a.Error = ""
	if a.Outcome != nil {
		a.Outcome = new(a.Outcome.WithoutInputs())
	}
	if t.ErasedAt.IsZero() {
		return a
	}
	a.ExternalID = ""
	a.Ref = mediagate.JobRef{}
	a.Results = nil
	a.Failure = nil
	a.Refusal = nil
	a.Unusable = nil
	if a.Outcome != nil {
		a.Outcome = new(a.Outcome.Bare())
	}
	return a
}

// endSettings are the settings of an account that matter when its tasks end.
type endSettings struct {
	EraseInputs  bool // erase the task's request
	HasEndpoints bool // the account has enabled endpoints, which may subscribe to the end
}

// readEndSettings reads the settings of an account. An account that does not exist has none.
// The read locks nothing: an endpoint that is added at the same moment may miss this end.
func readEndSettings(tx *gorm.DB, accountID string) (endSettings, error) {
	row, err := one[endSettings](tx, `SELECT erase_inputs,
			EXISTS (SELECT 1 FROM endpoints WHERE account_id = accounts.id AND enabled) AS has_endpoints
		FROM accounts WHERE id = ?`, accountID)
	if err != nil || row == nil {
		return endSettings{}, err
	}
	return *row, nil
}

// eraseInputs removes the client's request from a task that has ended, and what vendors wrote
// about it. It only changes the state; the caller stores it.
func eraseInputs(t *task.State, now time.Time) {
	t.Task, t.Inputs = t.WithoutInputs(), mediagate.InputCheck{}
	t.InputsErasedAt = now
}

// isOpen is the condition of an open task, written as the partial indexes write it, so that the
// planner uses them.
const isOpen = "status IN ('pending', 'processing')"

// sweepAfter is how long after a task's end its folder is swept: an hour, twice the longest
// copy. A copy that began before the end stores no more files by then: the time includes a
// margin for a delayed last write.
const sweepAfter = 2 * mediagate.CopyLimit

// OldestOpen returns when the oldest open task was created; zero if no task is open.
func (s *Store) OldestOpen(ctx context.Context) (time.Time, error) {
	row, err := one[struct{ CreatedAt time.Time }](s.on(ctx), "SELECT MIN(created_at) FROM tasks WHERE "+isOpen)
	if err != nil || row == nil {
		return time.Time{}, dbError(err, "find the oldest open task")
	}
	return row.CreatedAt, nil
}

// DueSweeps lists ended tasks whose folder may have files that the task does not show: the files of
// an erased task, which are swept at once, or files that were copied for an end that did not come,
// which are swept once no copy can be under way (D13).
//
// Example: a task ends at 12:00:00 and is erased at 12:10:00. The sweep is due at once, but a
// copy that began before the end may still write. So Again is 13:00:00, and a second sweep
// removes what came meanwhile. The partial index tasks_sweeps finds the due rows in their
// order.
func (s *Store) DueSweeps(ctx context.Context, limit int) ([]mediagate.Sweep, error) {
	now := s.clock()
	var rows []struct {
		ID      string
		SweepAt time.Time
		EndedAt time.Time
	}
	if err := read(s.on(ctx), &rows, `SELECT id, sweep_at, ended_at FROM tasks
		WHERE sweep_at IS NOT NULL AND sweep_at < ? ORDER BY sweep_at LIMIT ?`, at(now), limit); err != nil {
		return nil, dbError(err, "list due sweeps")
	}
	due := make([]mediagate.Sweep, len(rows))
	for i, r := range rows {
		due[i] = mediagate.Sweep{TaskID: r.ID, DueAt: r.SweepAt}
		if last := r.EndedAt.Add(sweepAfter); now.Before(last) {
			due[i].Again = last
		}
	}
	return due, nil
}

// SetSweep records that a due sweep was made, and when the next one is due; zero if nothing is
// left. It changes nothing if another sweep has become due meanwhile: an erasure during the
// sweep sets another sweep_at, no row matches, and the sweep is made again.
func (s *Store) SetSweep(ctx context.Context, due mediagate.Sweep, next time.Time) error {
	_, err := exec(s.on(ctx), "UPDATE tasks SET sweep_at = ? WHERE id = ? AND sweep_at = ?",
		at(next), due.TaskID, at(due.DueAt))
	return dbError(err, "note sweep")
}
