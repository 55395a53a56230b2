package storage

import (
	"context"
	"strings"
	"time"

	"github.com/mediagate/mediagate"
)

// isOpen is written as the partial indexes are, so that the planner takes them.
const isOpen = "status IN ('pending', 'processing')"

// A turn is how the open tasks that match are read: up to so many at once, the
// same number of each account, its oldest by a column. So what an account has many
// of delays nobody else's.
type turn struct {
	match  string // as the partial index has it
	column string // since when; of the index (account_id, column, id)
	before stamp  // tasks that began and were looked at before
}

// begun is what the start of a task's run goes by.
type begun struct {
	ID                string
	AccountID         string
	KeyID             string
	Model             string
	Type              mediagate.Type
	Status            mediagate.Status
	Hold              mediagate.Micros
	Plan              document
	CreatedAt         stamp
	CancelRequestedAt stamp
}

// task is what can be read of it, also where not all can.
func (r begun) task() (mediagate.Task, error) {
	t := mediagate.Task{
		ID: r.ID, AccountID: r.AccountID, KeyID: r.KeyID, Model: r.Model, Type: r.Type, Status: r.Status, Hold: r.Hold,
		CreatedAt: r.CreatedAt.Time, CancelRequestedAt: r.CancelRequestedAt.Time,
	}
	err := fromJSON("tasks.plan", r.Plan, &t.Plan)
	return t, err
}

// inTurns reads tasks of the accounts that come after the one named. next is the
// account to go on after; "" once all have had their turn. Both statements read of
// an index what they return and no more, however many tasks match.
func (s *Store) inTurns(ctx context.Context, what string, t turn, after string, limit int) (tasks []mediagate.Task, next string, err error) {
	// Ordered like the index, which is then the one to take.
	first := "(SELECT account_id FROM tasks WHERE " + isOpen + " AND " + t.match + " AND account_id > %s ORDER BY account_id, " + t.column + ", id LIMIT 1)"
	accounts, err := s.texts(ctx, what, "WITH RECURSIVE found (account_id, n) AS (SELECT "+strings.Replace(first, "%s", "?", 1)+`, 1
			UNION ALL SELECT `+strings.Replace(first, "%s", "found.account_id", 1)+`, n + 1 FROM found WHERE account_id IS NOT NULL AND n < ?)
		SELECT account_id FROM found WHERE account_id IS NOT NULL`, after, limit)
	if err != nil || len(accounts) == 0 {
		return nil, "", err
	}
	if len(accounts) == limit {
		next = accounts[limit-1]
	}
	names, err := jsonText(accounts)
	if err != nil {
		return nil, "", err
	}
	columns := columnsOf[begun]()
	mine := " FROM tasks WHERE " + isOpen + " AND " + t.match + " AND account_id = found.value AND " + t.column + " < ? AND checked_at < ? ORDER BY " + t.column + ", id LIMIT ?"
	from := "json_array_elements_text(CAST(? AS json)) AS found (value) CROSS JOIN LATERAL (SELECT " + columns.text + mine + ") AS t"
	if s.lite {
		from = "json_each(?) AS found JOIN tasks t ON t.id IN (SELECT id" + mine + ")"
	}
	var rows []begun
	err = read(s.on(ctx), &rows, "SELECT "+columns.of("t")+" FROM "+from+
		" ORDER BY row_number() OVER (PARTITION BY t.account_id ORDER BY t."+t.column+", t.id), t."+t.column+", t.id",
		names, t.before, t.before, max(1, limit/len(accounts)))
	if err != nil {
		return nil, "", dbError(err, what)
	}
	tasks = make([]mediagate.Task, len(rows))
	for i, row := range rows {
		if tasks[i], err = row.task(); err != nil { // a signal still reaches its run, and who would start one sees that it has no route
			s.log.ErrorContext(ctx, "a task's plan cannot be read", "task", row.ID, "error", err)
		}
	}
	return tasks, next, nil
}

// UnseenTasks reads open tasks, as the start of a run goes by them, of which no run
// was ever seen and that nobody has looked at for a while; see inTurns.
func (s *Store) UnseenTasks(ctx context.Context, olderThan time.Duration, after string, limit int) (tasks []mediagate.Task, next string, err error) {
	return s.inTurns(ctx, "list unseen tasks", turn{"run_seen_at IS NULL", "created_at", s.ago(olderThan)}, after, limit)
}

// OpenTasks lists open tasks of which a run was seen, and last looked for before
// that time, in the order of their deadlines and after that one. Those that are to
// be cancelled are left to StaleCancels.
func (s *Store) OpenTasks(ctx context.Context, checkedBefore time.Time, after mediagate.Look, limit int) ([]mediagate.Look, error) {
	where, args := isOpen+" AND run_seen_at IS NOT NULL AND cancel_requested_at IS NULL AND checked_at < ?", []any{at(checkedBefore)}
	if after.TaskID != "" {
		where, args = where+" AND (deadline_at, id) > (?, ?)", append(args, at(after.DeadlineAt), after.TaskID)
	}
	var rows []struct {
		ID         string
		DeadlineAt stamp
		CheckedAt  stamp
	}
	err := read(s.on(ctx), &rows, "SELECT id, deadline_at, checked_at FROM tasks WHERE "+where+" ORDER BY deadline_at, id LIMIT ?", append(args, limit)...)
	if err != nil {
		return nil, dbError(err, "list open tasks")
	}
	looks := make([]mediagate.Look, len(rows))
	for i, r := range rows {
		looks[i] = mediagate.Look{TaskID: r.ID, DeadlineAt: r.DeadlineAt.Time, CheckedAt: r.CheckedAt.Time}
	}
	return looks, nil
}

// UnsettledTasks lists open tasks whose last attempt ended that long ago, and for
// whose run no signal is outstanding, after that id and in the order of their ids.
// A run of theirs is about to end them, or has lost what it heard.
func (s *Store) UnsettledTasks(ctx context.Context, olderThan time.Duration, after string, limit int) ([]string, error) {
	id := "id" // in an order that no index of all tasks has: those that are open are few
	if !s.lite {
		id += bytewise
	}
	unsettled := isOpen + ` AND parked_at IS NULL AND ` + id + ` > ?
		AND EXISTS (SELECT 1 FROM attempts a WHERE a.task_id = tasks.id AND a.ended_at < ? AND a.outcome IS NOT NULL
			AND NOT EXISTS (SELECT 1 FROM attempts l WHERE l.task_id = a.task_id AND l.n > a.n))
		AND NOT EXISTS (SELECT 1 FROM awaits w WHERE w.task_id = tasks.id)`
	return s.texts(ctx, "list unsettled tasks", "SELECT id FROM tasks WHERE "+unsettled+" ORDER BY "+id+" LIMIT ?", after, s.ago(olderThan), limit)
}

// UntoldEnds lists tasks that ended that long ago, and whose run has not heard of it,
// after that id and in the order of their ids.
func (s *Store) UntoldEnds(ctx context.Context, olderThan time.Duration, after string, limit int) ([]string, error) {
	// A subquery, which the planner makes no join of: not one through the tasks of years.
	ended := "(SELECT NOT " + isOpen + " AND ended_at < ? FROM tasks WHERE id = w.task_id)"
	return s.texts(ctx, "list ends that no run has heard of", "SELECT DISTINCT w.task_id FROM awaits w WHERE w.owed AND w.task_id > ? AND "+ended+
		" ORDER BY w.task_id LIMIT ?", after, s.ago(olderThan), limit)
}

// OldestOpen is when the oldest of the open tasks was created; zero where none
// is open.
func (s *Store) OldestOpen(ctx context.Context) (time.Time, error) {
	var created stamp
	query := "SELECT MIN(created_at) FROM tasks WHERE " + isOpen
	if err := s.on(ctx).Raw(query).Row().Scan(&created); err != nil {
		return time.Time{}, dbError(err, "find the oldest open task")
	}
	return created.Time, nil
}

// MarkChecked notes that the tasks' runs were looked for now; seen says that
// they are there. A task that is being written at this moment is left out: it
// comes up again.
func (s *Store) MarkChecked(ctx context.Context, ids []string, seen bool) error {
	if len(ids) == 0 {
		return nil
	}
	text, err := jsonText(ids)
	if err != nil {
		return err
	}
	run, args := "", []any{text, at(s.clock())}
	if seen {
		run = ", run_seen_at = COALESCE(run_seen_at, ?)" // an index rests on whether it is set
		args = append(args, at(s.clock()))
	}
	_, err = exec(s.on(ctx), "WITH marked AS MATERIALIZED (SELECT id FROM tasks WHERE id IN "+s.inList()+" ORDER BY id"+s.skipLocked("tasks")+`)
		UPDATE tasks SET checked_at = ?`+run+" FROM marked WHERE tasks.id = marked.id", args...)
	return dbError(err, "mark tasks checked")
}

// StaleCancels reads open tasks, as the start of a run goes by them, whose client
// wished to cancel them a while ago and that nobody has looked at since as long;
// see inTurns.
func (s *Store) StaleCancels(ctx context.Context, olderThan time.Duration, after string, limit int) (tasks []mediagate.Task, next string, err error) {
	return s.inTurns(ctx, "list stale cancels", turn{"cancel_requested_at IS NOT NULL", "cancel_requested_at", s.ago(olderThan)}, after, limit)
}

// PendingWebhooks offers delivery rounds that are still pending though they
// began, or were last offered, a while ago. Each is offered once in that time,
// to one caller. One that is offered for the first time counts as stuck, for
// StuckWebhooks, that long after its beginning.
func (s *Store) PendingWebhooks(ctx context.Context, olderThan, stuckAfter time.Duration, limit int) ([]mediagate.WebhookRound, error) {
	now := s.clock()
	var rows []struct {
		ID           string
		AccountID    string
		WebhookRound int
	}
	err := read(s.on(ctx), &rows, `WITH due AS MATERIALIZED (
			SELECT id FROM tasks WHERE webhook_state = 'pending' AND webhook_round > 0 AND webhook_checked_at < ?
			ORDER BY webhook_checked_at LIMIT ?`+s.skipLocked("tasks")+`)
		UPDATE tasks SET webhook_checked_at = ?, rescue_at = COALESCE(rescue_at, CAST(? AS timestamptz)) FROM due WHERE tasks.id = due.id
		RETURNING tasks.id, tasks.account_id, tasks.webhook_round`, s.ago(olderThan), limit, at(now), at(now.Add(stuckAfter-olderThan)))
	if err != nil {
		return nil, dbError(err, "list pending webhooks")
	}
	rounds := make([]mediagate.WebhookRound, len(rows))
	for i, r := range rows {
		rounds[i] = mediagate.WebhookRound{TaskID: r.ID, AccountID: r.AccountID, Round: r.WebhookRound}
	}
	return rounds, nil
}

// DueSweeps lists ended tasks for which files may be stored that they do not show:
// copied for an end that did not come, once no copy can be under way any more
// (D13), or erased.
func (s *Store) DueSweeps(ctx context.Context, limit int) ([]mediagate.Sweep, error) {
	now := s.clock()
	var rows []struct {
		ID      string
		SweepAt stamp
		EndedAt stamp
	}
	err := read(s.on(ctx), &rows, "SELECT id, sweep_at, ended_at FROM tasks WHERE sweep_at IS NOT NULL AND sweep_at < ? ORDER BY sweep_at LIMIT ?", at(now), limit)
	if err != nil {
		return nil, dbError(err, "list due sweeps")
	}
	due := make([]mediagate.Sweep, len(rows))
	for i, r := range rows {
		due[i] = mediagate.Sweep{TaskID: r.ID, DueAt: r.SweepAt.Time}
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
	_, err := exec(s.on(ctx), "UPDATE tasks SET sweep_at = ? WHERE id = ? AND sweep_at = ?", at(next), due.TaskID, at(due.DueAt))
	return dbError(err, "note sweep")
}

// CountOpen counts the tasks that have not ended.
func (s *Store) CountOpen(ctx context.Context) (int, error) {
	row, err := one[struct{ N int }](s.on(ctx), "SELECT COUNT(*) AS n FROM tasks WHERE "+isOpen)
	if err != nil {
		return 0, dbError(err, "count open tasks")
	}
	return row.N, nil
}
