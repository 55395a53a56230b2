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

// What was written once may come again: from a sender that hung, from a copy that
// was under way. So the row of a task says for good what it may not hold any
// more, and whoever writes of an ended task asks it, under its lock.

// worksOn is the condition that a task works on another, written as the planner
// takes the index.
const worksOn = "source_id = ? AND source_id <> ''"

// EraseTask erases a task that has ended: what its client and what vendors wrote
// is overwritten, a callback that is still to be delivered is dropped, and its
// files are to be swept at once. The row stays, and in it what the money and its
// statistics need. A run that has not asked since the end is still woken.
// From then on the task is to its account as if it never was. It returns the keys of
// media that came within the request, which lie outside of the task's folder.
//
// Returns KindNotFound, also for someone else's task and for one that is erased,
// and KindConflict when it has not ended, or is the source of one that has not.
func (s *Store) EraseTask(ctx context.Context, accountID, id string) (uploads []string, err error) {
	err = s.write(ctx, "erase task", func(tx *gorm.DB) error {
		uploads = nil
		// Those who submit with the task as their source are locked out, too.
		if _, err := one[struct{ N int }](tx, "SELECT 1 FROM tasks WHERE id = ?"+s.lock("FOR UPDATE"), id); err != nil {
			return err
		}
		t, _, err := s.loadState(tx, id, accountID, nil, true)
		if err != nil {
			return err
		}
		if !t.Status.Terminal() {
			return conflict("the task has not ended: %s", t.Status)
		}
		// Who submits with this task as source has locked its row too: it is seen
		// here, or finds the task erased.
		open, err := one[struct{ ID string }](tx, "SELECT id FROM tasks WHERE "+worksOn+" AND "+isOpen+" LIMIT 1", id)
		if err != nil {
			return err
		}
		if open == nil {
			open, err = one[struct{ ID string }](tx, "SELECT id FROM tasks WHERE "+usesFile+" AND "+isOpen+" LIMIT 1", id)
			if err != nil {
				return err
			}
		}
		if open != nil {
			return conflict("the task is the source of %s, which has not ended", open.ID)
		}
		uploads = slices.Collect(maps.Values(t.Plan.Uploads))
		return s.erase(tx, t)
	})
	if err != nil {
		return nil, err
	}
	return uploads, nil
}

// scrub says whether something was erased that SQLite's files may still hold.
type scrub struct {
	mu  sync.Mutex
	due atomic.Bool
}

// scrubPatience is how long a scrub waits for those who read from the log, in
// milliseconds. Nobody writes meanwhile.
const scrubPatience = 100

// scrubFiles empties SQLite's log, which keeps pages as they were before an erasure.
// The database file has zeros in place of what was erased (secure_delete). While
// somebody reads from the log it cannot be emptied: the next write tries again.
func (s *Store) scrubFiles(ctx context.Context) {
	s.scrub.mu.Lock() // whoever erased waits until another's scrub, which includes it, is done
	defer s.scrub.mu.Unlock()
	if !s.scrub.due.Swap(false) {
		return
	}
	ctx = context.WithoutCancel(ctx)
	busy, err := s.emptyLog(ctx)
	if err == nil && !busy {
		return
	}
	s.scrub.due.Store(true)
	s.log.DebugContext(ctx, "what was erased stays in the database's log until the next write",
		"busy", busy, "error", err)
}

// emptyLog copies SQLite's log into the database file and cuts it to nothing, unless
// somebody reads from it: busy.
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

// erase overwrites what a task that has ended was asked for and made. Of its plan it leaves
// the uploads, which are to be swept, and the expected time: a job that is heard of later
// has a slot for as long as it may run.
func (s *Store) erase(tx *gorm.DB, t task.State) error {
	s.scrub.due.Store(true)
	now := s.clock()
	left := t
	eraseInputs(&left, now)
	left.ErasedAt = now
	left.InputsErasedAt = cmp.Or(t.InputsErasedAt, now)
	left.Version = t.Version + 1
	left.Reference, left.TraceParent, left.Endpoint = "", "", ""
	left.Plan = mediagate.Plan{Uploads: t.Plan.Uploads, Expected: t.Plan.Expected}
	left.Results, left.Made = nil, nil
	left.Webhook = mediagate.Webhook{State: t.Webhook.State, Round: t.Webhook.Round}
	if t.Webhook.State == mediagate.WebhookPending {
		left.Webhook.State, left.Webhook.Reason = mediagate.WebhookDropped, "task erased"
	}
	if err := saveTask(tx, &t, &left, now); err != nil {
		return err
	}
	for _, statement := range []string{
		"UPDATE tasks SET webhook_body = NULL WHERE id = ?",
		"DELETE FROM assets WHERE task_id = ?",
		"DELETE FROM deliveries WHERE task_id = ?",
		"DELETE FROM sources WHERE task_id = ?",
		"DELETE FROM sources WHERE source_id = ?",
		"DELETE FROM awaits WHERE task_id = ?",
		"DELETE FROM wakes WHERE task_id = ? AND kind = 'round'", // its callback is dropped
		"DELETE FROM idempotency WHERE task_id = ? AND opens_at IS NOT NULL",
	} {
		if _, err := exec(tx, statement, t.ID); err != nil {
			return err
		}
	}
	if _, err := exec(tx, "DELETE FROM endpoint_deliveries WHERE event_id = ?", mediagate.TaskEventID(t.ID)); err != nil {
		return err
	}
	if err := s.dropSource(tx, t.ID); err != nil {
		return err
	}
	return forgetWords(tx, left.Task)
}

// dropSource takes what a task made out of the plans of those that worked on it,
// which have ended: nothing of a plan is needed then. What of them cannot be read goes
// as well. The database does not read the plans, as PostgreSQL refuses texts of vendors
// that hold U+0000. The version changes, as the requests that clients get of them do.
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

// forgetWords rewrites the attempts of a task to what its row allows. What cannot be read
// goes.
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

// allowed is what the row of a task allows to be stored of an attempt. That the job has
// ended stays, and how: the first end counts.
func allowed(t mediagate.Task, a task.Attempt) task.Attempt {
	if t.InputsErasedAt.IsZero() {
		return a
	}
	a.Failure = a.Failure.Wordless()
	a.Refusal = a.Refusal.Wordless()
	a.Unusable = a.Unusable.Wordless()
	a.Error = ""
	if a.Outcome != nil {
		a.Outcome = new(a.Outcome.WithoutInputs())
	}
	if t.ErasedAt.IsZero() {
		return a
	}
	a.ExternalID, a.Ref, a.Results = "", mediagate.JobRef{}, nil
	a.Failure, a.Refusal, a.Unusable = nil, nil, nil
	if a.Outcome != nil {
		a.Outcome = new(a.Outcome.Bare())
	}
	return a
}

// endSettings are what an account wants to be done when its tasks end.
type endSettings struct {
	EraseInputs  bool // drop what the task was asked for
	HasEndpoints bool // that may want to be told
}

// readEndSettings reads the settings of an account; of one that is gone there are none.
func readEndSettings(tx *gorm.DB, accountID string) (endSettings, error) {
	row, err := one[endSettings](tx, `SELECT erase_inputs,
			EXISTS (SELECT 1 FROM endpoints WHERE account_id = accounts.id AND enabled) AS has_endpoints
		FROM accounts WHERE id = ?`, accountID)
	if err != nil || row == nil {
		return endSettings{}, err
	}
	return *row, nil
}

// eraseInputs drops what a task that has ended took from its client, and what vendors
// wrote of it.
func eraseInputs(t *task.State, now time.Time) {
	t.Task, t.Inputs = t.WithoutInputs(), mediagate.InputCheck{}
	t.InputsErasedAt = now
}

// isOpen is written as the partial indexes are, so that the planner takes them.
const isOpen = "status IN ('pending', 'processing')"

// sweepAfter is how long after a task's end files may still be copied for it:
// a copy that began before the end, and whatever delays its last write.
const sweepAfter = 2 * mediagate.CopyLimit

// OldestOpen is when the oldest of the open tasks was created; zero where none
// is open.
func (s *Store) OldestOpen(ctx context.Context) (time.Time, error) {
	row, err := one[struct{ CreatedAt time.Time }](s.on(ctx), "SELECT MIN(created_at) FROM tasks WHERE "+isOpen)
	if err != nil || row == nil {
		return time.Time{}, dbError(err, "find the oldest open task")
	}
	return row.CreatedAt, nil
}

// DueSweeps lists ended tasks for which files may be stored that they do not show:
// copied for an end that did not come, once no copy can be under way any more
// (D13), or erased.
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

// SetSweep notes when a task whose sweep was due is to be swept again; the zero
// time says that nothing is left. It changes nothing where another sweep has
// become due meanwhile.
func (s *Store) SetSweep(ctx context.Context, due mediagate.Sweep, next time.Time) error {
	_, err := exec(s.on(ctx), "UPDATE tasks SET sweep_at = ? WHERE id = ? AND sweep_at = ?",
		at(next), due.TaskID, at(due.DueAt))
	return dbError(err, "note sweep")
}
