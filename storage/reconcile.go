package storage

import (
	"context"
	"time"

	"github.com/mediagate/mediagate"
)

// isOpen is written as the partial indexes are, so that the planner takes them.
const isOpen = "status IN ('pending', 'processing')"

// inTurns names the open tasks that match, up to a parameter more: one of each
// account, the oldest by the column, then the next one of each. So what an account
// has many of delays nobody else's.
func inTurns(match, column string) string {
	return `SELECT id FROM (
			SELECT id, ` + column + ` AS since, row_number() OVER (PARTITION BY account_id ORDER BY ` + column + `, id) AS turn
			FROM tasks WHERE ` + isOpen + ` AND ` + match + `) AS matching
		ORDER BY turn, since, id LIMIT ?`
}

// UnseenTasks names open tasks, in turns of their accounts, of which no run was
// ever seen though they were taken in a while ago.
func (s *Store) UnseenTasks(ctx context.Context, olderThan time.Duration, limit int) ([]string, error) {
	return s.texts(ctx, "list unseen tasks", inTurns("run_seen_at IS NULL AND created_at < ?", "created_at"), s.ago(olderThan), limit)
}

// OpenTasks names open tasks whose run was last looked for before that time,
// the longest unchecked first.
func (s *Store) OpenTasks(ctx context.Context, checkedBefore time.Time, limit int) ([]string, error) {
	return s.texts(ctx, "list open tasks", "SELECT id FROM tasks WHERE "+isOpen+" AND checked_at < ? ORDER BY checked_at LIMIT ?",
		at(checkedBefore), limit)
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
	skip, run := " FOR UPDATE SKIP LOCKED", ""
	if s.lite {
		skip = ""
	}
	args := []any{text, at(s.clock())}
	if seen {
		run = ", run_seen_at = COALESCE(run_seen_at, ?)" // an index rests on whether it is set
		args = append(args, at(s.clock()))
	}
	_, err = exec(s.on(ctx), "WITH marked AS MATERIALIZED (SELECT id FROM tasks WHERE id IN "+s.inList()+" ORDER BY id"+skip+`)
		UPDATE tasks SET checked_at = ?`+run+" FROM marked WHERE tasks.id = marked.id", args...)
	return dbError(err, "mark tasks checked")
}

// StaleCancels names open tasks, in turns of their accounts, whose client wished
// to cancel them a while ago.
func (s *Store) StaleCancels(ctx context.Context, olderThan time.Duration, limit int) ([]string, error) {
	return s.texts(ctx, "list stale cancels", inTurns("cancel_requested_at IS NOT NULL AND cancel_requested_at < ?", "cancel_requested_at"),
		s.ago(olderThan), limit)
}

// PendingWebhooks offers delivery rounds that are still pending though they
// began, or were last offered, a while ago. Each is offered once in that time,
// to one caller. One that is offered for the first time counts as stuck, for
// StuckWebhooks, that long after its beginning.
func (s *Store) PendingWebhooks(ctx context.Context, olderThan, stuckAfter time.Duration, limit int) ([]mediagate.WebhookRound, error) {
	skip := " FOR UPDATE SKIP LOCKED"
	if s.lite {
		skip = ""
	}
	now := s.clock()
	var rows []struct {
		ID           string
		AccountID    string
		WebhookRound int
	}
	err := read(s.on(ctx), &rows, `WITH due AS MATERIALIZED (
			SELECT id FROM tasks WHERE webhook_state = 'pending' AND webhook_round > 0 AND webhook_checked_at < ?
			ORDER BY webhook_checked_at LIMIT ?`+skip+`)
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
